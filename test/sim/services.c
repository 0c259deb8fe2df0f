/*
 * services.c
 *	  What a simulated client asks of its compute node and its environment:
 *	  epochs, local locks, a cache that may be stale in every way.
 */
#include <string.h>

#include "sim/watch.h"
#include "sim/world.h"
#include "support/cache.h"

#define OWNER(type, member, pointer) ((type *) (void *) ((char *) (pointer) -offsetof(type, member)))

static struct client *
client_of(struct smart_services *services)
{
	return OWNER(struct client, services, services);
}

static smart_status
allocate(struct smart_services *services, uint64_t tree, smart_class class, fabric_address *block)
{
	return store_allocate(class, block);
}

static smart_status
allocate_spared(struct smart_services *services, uint64_t tree, smart_class class, bool standby, fabric_address *block)
{
	return standby ? store_allocate_standby(class, block) : store_allocate_spared(class, block);
}

static smart_status
reuse(struct smart_services *services, smart_class class, fabric_address block)
{
	struct client *client = client_of(services);
	uint64_t since = world.now;

	if (client->pin != NEVER)
		world_violation("client %d waits within an epoch for others to leave theirs", client->number);
	for (unsigned int attempt = 0; !store_is_unseen(since); attempt++)
	{
		if (client->env.interrupted(&client->env))
			return SMART_INTERRUPTED;
		client->env.pause(&client->env, attempt);
	}
	store_reuse(class, block);
	watch_counts[WATCH_STANDBY]++;
	return SMART_OK;
}

static void
retire(struct smart_services *services, uint64_t tree, smart_class class, fabric_address block)
{
	store_retire(class, block);
}

static void
enter(struct smart_services *services)
{
	struct client *client = client_of(services);

	if (client->pin != NEVER)
		world_violation("client %d enters an epoch twice", client->number);
	client->pin = world.now;
	client->reached = world.now;
	client->heads_count = 0;
}

static void
leave(struct smart_services *services)
{
	struct client *client = client_of(services);

	if (client->pin == NEVER)
		world_violation("client %d leaves an epoch that it did not enter", client->number);
	client->pin = NEVER;
}

/*
 * The same for all: who is told a number when it has just entered has been inside, as far as blocks are concerned, since that
 * number came up.
 */
static uint64_t
lasting_moment(struct client *client)
{
	if (client->pin == world.now && world.moment_since < client->pin)
		client->pin = world.moment_since;
	return world.moment;
}

/* The same for each client by itself, since it was first told the number: so blocks are used again sooner. */
static uint64_t
own_moment(struct client *client)
{
	if (client->moment != world.moment)
	{
		client->moment = world.moment;
		client->moment_at = world.now;
	}
	else if (client->pin == world.now && client->moment_at < client->pin)
		client->pin = client->moment_at;
	return world.moment;
}

/* Rises whenever a block is used again, and now and then. */
static uint64_t
moment(struct smart_services *services)
{
	struct client *client = client_of(services);

	return world.plan.lasting_moments ? lasting_moment(client) : own_moment(client);
}

static struct local_lock *
lock_of(struct client *client, fabric_address leaf)
{
	return &client->compute->locks[(leaf / SMART_UNIT) % world.plan.locks];
}

static smart_status
lock_leaf(struct smart_services *services, fabric_address leaf)
{
	struct client *client = client_of(services);
	struct local_lock *lock = lock_of(client, leaf);

	while (lock->holder >= 0)
	{
		if (lock->holder == client->number)
			world_violation("client %d takes a local lock twice", client->number);
		schedule_wait(client, lock);
	}
	lock->holder = client->number;
	return SMART_OK;
}

static bool
try_lock_leaf(struct smart_services *services, fabric_address leaf)
{
	struct client *client = client_of(services);
	struct local_lock *lock = lock_of(client, leaf);

	if (lock->holder >= 0)
		return false;
	lock->holder = client->number;
	return true;
}

static void
unlock_leaf(struct smart_services *services, fabric_address leaf)
{
	struct client *client = client_of(services);
	struct local_lock *lock = lock_of(client, leaf);

	if (lock->holder != client->number)
		world_violation("client %d releases a local lock that it does not hold", client->number);
	lock->holder = -1;
	schedule_wake(lock);
}

/* ---- the cache ---- */

/* One for all, or, where they own the tree by turns, one for each compute node. */
static struct smart_cache *
results_of(const struct client *client)
{
	return (struct smart_cache *) (void *) world.results[world.plan.owners ? client->compute - world.compute : 0];
}

static struct smart_cache *
real_of(struct cache *cache)
{
	return (struct smart_cache *) (void *) cache->real;
}

/* Nodes of another tree, of every kind, so that the server's cache is full from the start. */
static void
fill_cache(struct smart_cache *cache)
{
	uint64_t words[SMART_NODE_WORDS_MAX] = {0};

	for (unsigned int i = 1; i < 64; i++)
		test_cache_store(cache, SOLO, 0, smart_slot_make_node(0, 1 + i % SMART_NODE_KINDS, i * SMART_UNIT), words);
}

void
cache_open(struct cache *cache)
{
	cache->has_root = false;
	for (int i = 0; i < CACHE_ENTRIES; i++)
		cache->entries[i].slot = 0;
	if (!world.plan.cache_real)
		return;
	smart_assert(smart_cache_size(SMART_CACHE_BYTES_MIN, SOLO + 1) <= CACHE_BYTES);
	smart_cache_init(real_of(cache), SMART_CACHE_BYTES_MIN, SOLO + 1, dice_roll(&world.dice));
	if (dice_one_in(&world.dice, 2))
		fill_cache(real_of(cache));
}

static bool
has_results(void)
{
	return world.plan.results || world.plan.hints || world.plan.copies;
}

/* Shared memory starts anew. */
void
results_open(void)
{
	uint64_t seed;
	bool full;

	if (!has_results())
		return;
	seed = dice_roll(&world.dice);
	full = dice_one_in(&world.dice, 2);
	for (unsigned int i = 0; i <= (world.plan.owners ? COMPUTE_MAX : 0); i++)
	{
		struct smart_cache *cache = (struct smart_cache *) (void *) world.results[i];

		smart_cache_init(cache, SMART_CACHE_BYTES_MIN, SOLO + 1, seed + i);
		if (full)
			fill_cache(cache);
	}
}

static smart_slot
cache_key(smart_slot slot)
{
	return slot & (SMART_SLOT_ADDRESS_MASK | (UINT64_C(0x7f) << SMART_SLOT_SIZE_SHIFT));
}

static struct cache_entry *
cache_entry(struct cache *cache, smart_slot slot)
{
	return &cache->entries[(smart_slot_address(slot) / SMART_UNIT * 7 + smart_slot_size(slot)) % CACHE_ENTRIES];
}

/* Words of a node, at most: tiny nodes use fewer. */
static size_t
cached_bytes(smart_slot slot)
{
	return (SMART_NODE_HEAD_WORDS + smart_kind_slots(smart_slot_size(slot))) * sizeof(uint64_t);
}

static bool
world_cache_find(struct smart_services *services, uint64_t tree, smart_slot slot, uint64_t *words, uint64_t *moment)
{
	struct cache *cache = client_of(services)->cache;
	struct cache_entry *entry;
	uint64_t unused;

	/* What it shows has come about by now. */
	client_of(services)->reached = world.now;
	if (dice_one_in(&world.dice, world.plan.cache_miss_one_in))
		return false;
	*moment = 0;
	if (world.plan.cache_real)
		return test_cache_find_node(real_of(cache), (unsigned int) client_of(services)->number, tree, slot, words,
									world.plan.lasting_moments ? moment : &unused);
	if (slot == 0)
	{
		words[0] = cache->root;
		return cache->has_root;
	}
	entry = cache_entry(cache, slot);
	if (entry->slot != cache_key(slot))
		return false;
	memcpy(words, entry->words, cached_bytes(slot));
	*moment = world.plan.lasting_moments ? entry->moment : 0;
	return true;
}

static bool
world_cache_wants(struct smart_services *services, uint64_t tree, smart_slot slot)
{
	if (dice_one_in(&world.dice, 4))
		return true;
	watch_counts[WATCH_PART]++;
	return false;
}

static void
world_cache_store(struct smart_services *services, uint64_t tree, smart_slot slot, const uint64_t *words,
				  uint64_t moment)
{
	struct cache *cache = client_of(services)->cache;
	struct cache_entry *entry;

	if (world.plan.cache_real)
	{
		if (!dice_one_in(&world.dice, world.plan.cache_skip_one_in))
			test_cache_store_node(real_of(cache), (unsigned int) client_of(services)->number, tree, slot, words,
								  moment);
		return;
	}
	if (slot == 0)
	{
		cache->root = words[0];
		cache->has_root = true;
		return;
	}
	entry = cache_entry(cache, slot);
	/* An older copy may stay. */
	if (entry->slot == cache_key(slot) && dice_one_in(&world.dice, world.plan.cache_skip_one_in))
		return;
	entry->slot = cache_key(slot);
	entry->moment = moment;
	memcpy(entry->words, words, cached_bytes(slot));
}

static void
world_cache_update(struct smart_services *services, uint64_t tree, smart_slot slot, unsigned int index, uint64_t from,
				   uint64_t to)
{
	struct cache *cache = client_of(services)->cache;
	struct cache_entry *entry;

	if (dice_one_in(&world.dice, world.plan.cache_skip_one_in))
		return;
	if (world.plan.cache_real)
	{
		test_cache_update(real_of(cache), (unsigned int) client_of(services)->number, tree, slot, index, from, to);
		return;
	}
	if (slot == 0)
	{
		cache->has_root = cache->root == from || cache->root == to;
		cache->root = to;
		return;
	}
	entry = cache_entry(cache, slot);
	if (entry->slot != cache_key(slot))
		return;
	if (entry->words[index] == from)
		entry->words[index] = to;
	else if (entry->words[index] != to)
		entry->slot = 0;
}

static void
world_cache_drop(struct smart_services *services, uint64_t tree, smart_slot slot)
{
	struct cache *cache = client_of(services)->cache;
	struct cache_entry *entry;

	if (dice_one_in(&world.dice, world.plan.cache_skip_one_in))
		return;
	if (world.plan.cache_real)
	{
		test_cache_drop(real_of(cache), (unsigned int) client_of(services)->number, tree, slot);
		return;
	}
	if (slot == 0)
	{
		cache->has_root = false;
		return;
	}
	entry = cache_entry(cache, slot);
	if (entry->slot == cache_key(slot))
		entry->slot = 0;
}

/* ---- cached results ---- */

static bool
find_result(struct smart_services *services, uint64_t tree, const uint8_t *point, unsigned int length,
			struct smart_result *result)
{
	bool found;

	result->ticket = 0;
	result->hot = false;
	if (dice_one_in(&world.dice, world.plan.cache_miss_one_in))
		return false;
	found = test_cache_result(results_of(client_of(services)), (unsigned int) client_of(services)->number, tree, point,
							  length, result);
	watch_counts[WATCH_RESULT] += found;
	return found;
}

static void
keep_result(struct smart_services *services, uint64_t tree, const uint8_t *point, unsigned int length,
			const struct smart_result *result)
{
	struct smart_cache_stat before;
	struct smart_cache_stat after;

	if (dice_one_in(&world.dice, world.plan.cache_skip_one_in))
		return;
	smart_cache_stat(results_of(client_of(services)), &before);
	test_cache_keep_result(results_of(client_of(services)), (unsigned int) client_of(services)->number, tree, point,
						   length, result);
	smart_cache_stat(results_of(client_of(services)), &after);
	watch_counts[WATCH_RESULT_REFUSED] += after.counters.result_refusals - before.counters.result_refusals;
}

static struct smart_blocked
block_point(struct smart_services *services, uint64_t tree, const uint8_t *point, unsigned int length)
{
	return test_cache_block(results_of(client_of(services)), (unsigned int) client_of(services)->number, tree, point,
							length);
}

static uint64_t
unblock_point(struct smart_services *services, const struct smart_blocked *blocked)
{
	return test_cache_unblock(results_of(client_of(services)), blocked);
}

static bool
find_hint(struct smart_services *services, smart_slot leaf, struct smart_leaf_hint *hint)
{
	bool found =
		!dice_one_in(&world.dice, world.plan.cache_miss_one_in) &&
		test_cache_hint(results_of(client_of(services)), (unsigned int) client_of(services)->number, leaf, hint);

	watch_counts[WATCH_HINT] += found;
	return found;
}

static void
keep_hint(struct smart_services *services, smart_slot leaf, const struct smart_leaf_hint *hint, uint64_t ticket,
		  bool hot)
{
	if (!dice_one_in(&world.dice, world.plan.cache_skip_one_in))
		test_cache_keep_hint(results_of(client_of(services)), (unsigned int) client_of(services)->number, leaf, hint,
							 ticket, hot);
}

static struct smart_blocked
block_hint(struct smart_services *services, smart_slot leaf)
{
	return test_cache_block_hint(results_of(client_of(services)), (unsigned int) client_of(services)->number, leaf);
}

static bool
find_leaf(struct smart_services *services, uint64_t tree, smart_slot leaf, bool ahead, uint8_t *copy, uint64_t *ticket)
{
	bool found;

	*ticket = 0;
	if (dice_one_in(&world.dice, world.plan.cache_miss_one_in))
		return false;
	found = test_cache_leaf(results_of(client_of(services)), (unsigned int) client_of(services)->number, tree, leaf,
							ahead, copy, ticket);
	watch_counts[ahead ? WATCH_COPY_AHEAD : WATCH_COPY] += found;
	return found;
}

static void
keep_leaf(struct smart_services *services, uint64_t tree, smart_slot leaf, const uint8_t *copy, uint64_t meta,
		  uint64_t ticket, enum smart_keep how)
{
	if (!dice_one_in(&world.dice, world.plan.cache_skip_one_in))
		test_cache_keep_leaf(results_of(client_of(services)), (unsigned int) client_of(services)->number, tree, leaf,
							 copy, meta, ticket, how);
}

static bool
asks_leaves(struct smart_services *services)
{
	(void) services;
	return !dice_one_in(&world.dice, world.plan.cache_miss_one_in);
}

/* ---- the environment ---- */

static void *
env_allocate(struct smart_env *env, size_t bytes)
{
	return arena_allocate(bytes);
}

static void
env_release(struct smart_env *env, void *memory)
{
	arena_release(memory);
}

static uint64_t
env_now_ns(struct smart_env *env)
{
	return world.now * 100;
}

static uint64_t
env_random(struct smart_env *env)
{
	return dice_roll(&world.dice);
}

static void
env_log(struct smart_env *env, enum smart_log_level level, const char *line)
{
	world_trace("logs: %s", line);
}

static bool
env_interrupted(struct smart_env *env)
{
	return world.running != SOLO && dice_one_in(&world.dice, world.plan.interrupt_one_in);
}

static void
env_pause(struct smart_env *env, unsigned int attempt)
{
	schedule_pause(OWNER(struct client, env, env), attempt);
}

void
services_init(struct client *client)
{
	client->services = (struct smart_services){
		.allocate = allocate,
		.allocate_spared = allocate_spared,
		.reuse = reuse,
		.retire = retire,
		.enter = enter,
		.leave = leave,
		.moment = moment,
		.lock_leaf = lock_leaf,
		.unlock_leaf = unlock_leaf,
		.try_lock_leaf = try_lock_leaf,
	};
	if (!world.plan.direct)
	{
		client->services.cache_find = world_cache_find;
		client->services.cache_store = world_cache_store;
		client->services.cache_wants = world_cache_wants;
		client->services.cache_update = world_cache_update;
		client->services.cache_drop = world_cache_drop;
	}
	if (world.plan.rdwc)
		rdwc_services(client);
	if (has_results())
	{
		client->services.find_result = find_result;
		client->services.keep_result = keep_result;
		client->services.block_point = block_point;
		client->services.unblock_point = unblock_point;
		client->services.find_hint = find_hint;
		client->services.keep_hint = keep_hint;
		client->services.block_hint = block_hint;
		client->services.find_leaf = find_leaf;
		client->services.keep_leaf = keep_leaf;
		client->services.asks_leaves = asks_leaves;
	}
	client->env = (struct smart_env){
		.allocate = env_allocate,
		.release = env_release,
		.now_ns = env_now_ns,
		.random = env_random,
		.log = env_log,
		.interrupted = env_interrupted,
		.pause = env_pause,
	};
}
