/*
 * plan.c
 *	  What a history is like: limits, loads, mishaps and keys, all by dice.
 */
#include <limits.h>
#include <string.h>

#include "sim/client.h"
#include "sim/world.h"

static bool
chosen(int setting, struct dice *dice, unsigned int percent)
{
	bool by_dice = dice_below(dice, 100) < percent;

	return setting < 0 ? by_dice : setting != 0;
}

static void
plan_shape(struct plan *plan, struct dice *dice)
{
	plan->shared = chosen(world.settings.shared, dice, 55);
	plan->direct = chosen(world.settings.direct, dice, 25);
	plan->memory_nodes = dice_one_in(dice, 4) ? 2 : 1;
	plan->clients = dice_between(dice, 2, 5);
	plan->compute_nodes = !plan->shared          ? 1
						  : dice_one_in(dice, 4) ? dice_between(dice, 1, plan->clients)
												 : plan->clients;
	plan->locks = dice_one_in(dice, 3) ? LOCKS_MAX : 1;
	plan->leaf_size = dice_one_in(dice, 5) ? 128 : 64;
	plan->tiny_nodes = dice_between(dice, 2, 3);
	/* One in six nodes as large as they are: blocks of leaves and nodes then hold words in the same places. */
	if (dice_one_in(dice, 6))
		plan->tiny_nodes = 6;
	plan->payload = dice_one_in(dice, 4) ? dice_between(dice, 1, 3) : 0;
	plan->fixed = dice_below(dice, 3) != 0 && !world.settings.any_length;
	plan->cache_skip_one_in = dice_one_in(dice, 2) ? 0 : dice_between(dice, 2, 4);
	plan->cache_miss_one_in = dice_one_in(dice, 2) ? 0 : dice_between(dice, 2, 16);
	plan->cache_shared = dice_one_in(dice, 3);
	plan->cache_real = chosen(world.settings.real_cache, dice, 40);
	plan->prime = dice_one_in(dice, 2);
	plan->poison = dice_below(dice, 3);
}

/* By dice of its own: without descents a seed's history is what it always was. */
static void
plan_descents(struct plan *plan)
{
	struct dice dice = {.state = ~world.seed};

	if (!plan->direct && chosen(world.settings.descents, &dice, 40))
		plan->descents = dice_one_in(&dice, 4) ? DESCENTS_HINTS : DESCENTS_EXACT;
}

/* By dice of its own, too.  Where clients wait for long, leaves are hardly ever rewritten while their lock is held. */
static void
plan_patience(struct plan *plan)
{
	struct dice dice = {.state = world.seed ^ UINT64_C(0x5851f42d4c957f2d)};

	plan->patience = dice_one_in(&dice, 4) ? 0 : dice_between(&dice, 1, 3);
}

/* By dice of its own.  Their nodes take many steps to READ and to freeze. */
static void
plan_nodes(struct plan *plan)
{
	struct dice dice = {.state = world.seed ^ UINT64_C(0x2545f4914f6cdd1d)};

	plan->wide_nodes = !plan->direct && dice_one_in(&dice, 8);
}

/* By dice of its own.  Trees are small here, and scans short. */
static void
plan_flights(struct plan *plan)
{
	struct dice dice = {.state = world.seed ^ UINT64_C(0xd1342543de82ef95)};

	plan->first_window = dice_one_in(&dice, 3) ? 0 : dice_between(&dice, 1, 3);
	plan->keep_scans = dice_one_in(&dice, 2);
}

/* By dice of its own.  Where moments last, blocks are used again later. */
static void
plan_moments(struct plan *plan)
{
	struct dice dice = {.state = world.seed ^ UINT64_C(0x9fb21c651e98df25)};

	plan->lasting_moments = dice_one_in(&dice, 2);
}

static void
plan_load(struct plan *plan, struct dice *dice)
{
	static const unsigned int weights[][8] = {
		/* lookup, insert, remove, scan, erase, maintain, prime; updates see plan_values */
		{3, 9, 5, 2, 1, 2, 1},
		{2, 14, 2, 1, 1, 1, 0},
		{2, 7, 8, 1, 2, 3, 1},
		{6, 6, 4, 8, 1, 1, 1},
	};
	static const unsigned int merge[8] = {2, 6, 8, 1, 1, 8, 1};
	static const unsigned int fill[8] = {3, 8, 8, 1, 1, 1, 2};
	static const unsigned int repeat[8] = {1, 16, 8, 0, 0, 0, 0};
	static const unsigned int pool[8] = {1, 10, 8, 0, 0, 3, 1};
	static const unsigned int share[8] = {4, 16, 8, 0, 0, 1, 0};
	static const unsigned int full[8] = {2, 6, 8, 2, 6, 2, 0};
	static const unsigned int many[8] = {3, 16, 8, 2, 2, 3, 0};
	static const unsigned int switches[] = {2, 5, 15, 60};

	memcpy(plan->weight, weights[dice_below(dice, 4)], sizeof(plan->weight));
	if (world.settings.bias == BIAS_MERGE)
		memcpy(plan->weight, merge, sizeof(plan->weight));
	if (world.settings.bias == BIAS_POOL)
		memcpy(plan->weight, pool, sizeof(plan->weight));
	if (world.settings.bias == BIAS_SHARE)
		memcpy(plan->weight, share, sizeof(plan->weight));
	if (world.settings.bias == BIAS_REPEAT)
		memcpy(plan->weight, repeat, sizeof(plan->weight));
	if (world.settings.bias == BIAS_FILL)
		memcpy(plan->weight, fill, sizeof(plan->weight));
	if (world.settings.bias == BIAS_FULL)
		memcpy(plan->weight, full, sizeof(plan->weight));
	if (world.settings.bias == BIAS_MANY)
		memcpy(plan->weight, many, sizeof(plan->weight));
	plan->hot = dice_between(dice, 3, HOT_MAX);
	plan->setup = dice_below(dice, 10);
	plan->operations = dice_between(dice, 2, 6);
	plan->switch_one_in = switches[dice_below(dice, 4)];
}

static void
plan_mishaps(struct plan *plan, struct dice *dice)
{
	static const unsigned int stalls[] = {0, 24, 8, 3};

	plan->stall_one_in = stalls[dice_below(dice, 4)];
	plan->stalls = dice_one_in(dice, 3) ? 0 : dice_between(dice, 1, 3);
	if (dice_one_in(dice, 3))
		plan->death = plan->shared && dice_one_in(dice, 2) ? DEATH_ONE : DEATH_ALL;
	plan->death_at = dice_below(dice, dice_one_in(dice, 3) ? 1500 : 300);
	plan->no_space_one_in = dice_one_in(dice, 8) ? dice_between(dice, 2, 12) : 0;
	plan->lost_one_in = !plan->direct && dice_one_in(dice, 10) ? dice_between(dice, 10, 100) : 0;
	plan->interrupt_one_in = dice_one_in(dice, 12) ? dice_between(dice, 1, 8) : 0;
}

/* Crowds at few leaves, which hold more than two entries; holders that sleep, and caches that lead astray. */
static void
plan_crowd(struct plan *plan, struct dice *dice)
{
	plan->direct = false;
	plan->clients = dice_between(dice, 4, 6);
	plan->compute_nodes = plan->shared ? dice_between(dice, 1, 2) : 1;
	plan->leaf_size = dice_between(dice, 2, 4) * 64;
	plan->tiny_nodes = dice_between(dice, 3, 6);
	plan->hot = HOT_MAX;
	plan->operations = dice_between(dice, 3, 7);
	plan->switch_one_in = dice_between(dice, 2, 15);
	plan->stall_one_in = dice_between(dice, 4, 24);
	plan->stall_read_one_in = dice_one_in(dice, 2) ? dice_between(dice, 8, 30) : 0;
}

/* Updates that sleep ahead of their CAS, at few leaves that are rewritten all the time. */
static void
plan_updates(struct plan *plan, struct dice *dice)
{
	/* lookup, insert, remove, scan, erase, maintain, prime */
	static const unsigned int crowd[8] = {6, 1, 1, 0, 0, 0, 0};
	static const unsigned int churn[8] = {8, 6, 8, 0, 0, 0, 0};

	plan->shared = chosen(world.settings.shared, dice, 100);
	plan->fixed = !world.settings.any_length;
	plan->direct = false;
	plan->clients = dice_between(dice, 3, 6);
	plan->compute_nodes = plan->shared ? dice_between(dice, 1, plan->clients) : 1;
	plan->leaf_size = dice_between(dice, 1, 3) * 64;
	plan->operations = dice_between(dice, 3, 8);
	plan->stall_one_in = dice_between(dice, 3, 24);
	plan->stall_read_one_in = dice_one_in(dice, 2) ? dice_between(dice, 4, 20) : 0;
	if (dice_one_in(dice, 2))
	{
		/* A crowd at two or three values, from two compute nodes. */
		memcpy(plan->weight, crowd, sizeof(plan->weight));
		plan->clients = dice_between(dice, 5, 6);
		plan->compute_nodes = plan->shared ? 2 : 1;
		plan->hot = dice_between(dice, 1, 3);
		plan->setup = dice_between(dice, 4, 10);
		plan->operations = dice_between(dice, 4, 8);
		plan->prime = false;
	}
	else if (dice_one_in(dice, 2))
	{
		/* Caches that lead to leaves that have been replaced, and whose blocks are used again meanwhile. */
		memcpy(plan->weight, churn, sizeof(plan->weight));
		plan->leaf_size = 64;
		plan->cache_shared = plan->cache_real = false;
		plan->cache_miss_one_in = 0;
		plan->cache_skip_one_in = 2;
		plan->prime = true;
		plan->clients = 3;
		plan->compute_nodes = plan->shared ? 3 : 1;
		plan->hot = dice_between(dice, 1, 2);
		plan->setup = dice_between(dice, 2, 8);
		plan->switch_one_in = dice_between(dice, 2, 15);
		plan->stall_one_in = plan->stall_read_one_in = 0;
		plan->stalls = dice_between(dice, 4, 20);
		plan->operations = dice_between(dice, 10, 24);
	}
}

/* Calls for many keys that overlap, at leaves of all sizes; clients that sleep or die between the steps of their changes. */
static void
plan_batches(struct plan *plan, struct dice *dice)
{
	plan->direct = world.settings.direct > 0;
	plan->shared = false;
	plan->compute_nodes = 1;
	plan->memory_nodes = dice_between(dice, 1, 2);
	plan->clients = dice_between(dice, 2, 5);
	plan->leaf_size = dice_between(dice, 1, 4) * 64;
	plan->tiny_nodes = dice_between(dice, 3, 6);
	plan->setup = dice_below(dice, 30);
	plan->operations = dice_between(dice, 2, 7);
	plan->stall_one_in = dice_between(dice, 3, 24);
	plan->stall_read_one_in = dice_one_in(dice, 2) ? dice_between(dice, 8, 30) : 0;
	plan->no_space_one_in = dice_one_in(dice, 5) ? dice_between(dice, 2, 12) : 0;
}

/* Promises at one leaf or two, that others take back and that are kept too late. */
static void
plan_late(struct plan *plan, struct dice *dice)
{
	/* lookup, insert, remove, scan, erase, maintain, prime */
	static const unsigned int weights[8] = {12, 8, 2, 1, 0, 0, 0};

	memcpy(plan->weight, weights, sizeof(plan->weight));
	plan->shared = plan->fixed = true;
	plan->direct = false;
	plan->payload = 0;
	plan->clients = dice_between(dice, 3, 6);
	plan->compute_nodes = plan->clients;
	plan->leaf_size = dice_between(dice, 1, 3) * 64;
	plan->hot = dice_between(dice, 1, 3);
	plan->setup = dice_below(dice, 6);
	plan->operations = dice_between(dice, 3, 10);
	plan->switch_one_in = dice_between(dice, 1, 3);
	plan->stall_one_in = dice_between(dice, 1, 3);
	plan->stall_read_one_in = 0;
	plan->stalls = dice_between(dice, 2, 12);
	plan->death = DEATH_NONE;
}

static void
plan_bias(struct plan *plan, struct dice *dice)
{
	if (world.settings.bias == BIAS_MANY)
		plan_batches(plan, dice);
	if (world.settings.bias == BIAS_MERGE)
	{
		/* Many on few keys of one node, helpers that sleep between their READs, room for one more slot. */
		plan->clients = dice_between(dice, 4, 6);
		plan->compute_nodes = plan->shared ? plan->clients : 1;
		plan->operations = dice_between(dice, 4, 10);
		plan->leaf_size = 64;
		plan->tiny_nodes = dice_between(dice, 3, 6);
		plan->stall_read_one_in = dice_between(dice, 8, 30);
		plan->stall_one_in = dice_between(dice, 4, 12);
		plan->switch_one_in = dice_between(dice, 2, 12);
		plan->death = DEATH_NONE;
		plan->no_space_one_in = plan->lost_one_in = plan->interrupt_one_in = 0;
	}
	if (world.settings.bias == BIAS_SHARE)
		plan_crowd(plan, dice);
	if (world.settings.bias == BIAS_PROMISE)
		plan_late(plan, dice);
	if (world.settings.bias == BIAS_VALUE)
		plan_updates(plan, dice);
	if (world.settings.bias == BIAS_REPEAT)
	{
		/* Leaves that come and go while clients remember them. */
		plan->leaf_size = 128;
		plan->hot = HOT_MAX;
		plan->operations = dice_between(dice, 8, 24);
	}
	if (world.settings.bias == BIAS_POOL)
	{
		/* A leaf's lock and a node's last slot then lie at the same offset. */
		plan->tiny_nodes = 6;
		plan->leaf_size = 64;
		plan->stall_one_in = 3;
		/* Compute nodes that learn nothing of each other's changes, and have come by everything. */
		plan->shared = world.settings.shared != 0;
		plan->clients = dice_between(dice, 4, 6);
		plan->compute_nodes = plan->shared ? plan->clients : 1;
		plan->cache_shared = plan->cache_real = false;
		plan->cache_miss_one_in = 0;
		plan->cache_skip_one_in = 2;
		plan->prime = true;
		plan->hot = HOT_MAX;
		plan->setup = dice_between(dice, 4, 16);
		plan->operations = dice_between(dice, 4, 10);
	}
}

/* By dice of its own: a history without it is the same as ever. */
static void
plan_rdwc(struct plan *plan)
{
	struct dice dice = {.state = world.seed * UINT64_C(0x9e3779b97f4a7c15) + 7};
	bool crowded = world.settings.bias == BIAS_SHARE || (world.settings.bias == BIAS_VALUE && plan->compute_nodes == 2);

	plan->rdwc = chosen(world.settings.rdwc, &dice, crowded ? 100 : 40) && !plan->direct;
	plan->places = dice_one_in(&dice, 2) ? PLACES_MAX : 1;
	/* An entry of the dead that was handed in and may have been added is one event in the history, not two. */
	if (plan->rdwc && plan->lost_one_in != 0)
		plan->death = DEATH_NONE;
	/* Clients that share nothing are what most shared trees have. */
	if (plan->rdwc && plan->shared && plan->compute_nodes > 2)
		plan->compute_nodes = dice_between(&dice, 1, 2);
}

/* So, too. */
static void
plan_results(struct plan *plan)
{
	struct dice dice = {.state = world.seed * UINT64_C(0x9e3779b97f4a7c15) + 11};

	plan->results = !plan->direct && !plan->shared && !dice_one_in(&dice, 4);
	plan->hints = !plan->direct && !plan->shared && !dice_one_in(&dice, 3);
	plan->point_digits = dice_between(&dice, 2, 3);
}

/* So, too. */
static void
plan_many(struct plan *plan)
{
	struct dice dice = {.state = world.seed * UINT64_C(0x9e3779b97f4a7c15) + 19};

	if (world.settings.bias == BIAS_MANY && plan->rdwc)
		plan->lost_one_in = 0;
	/* Not where it could not be told which of several entries may have been added by others: too many orders are possible. */
	plan->many = !plan->shared && !(plan->rdwc && plan->lost_one_in != 0) &&
				 (dice_one_in(&dice, 2) || world.settings.bias == BIAS_MANY);
}

/* So, too. */
static void
plan_promises(struct plan *plan)
{
	struct dice dice = {.state = world.seed * UINT64_C(0x9e3779b97f4a7c15) + 31};

	plan->promises = plan->shared && !plan->direct && !plan->values && plan->fixed &&
					 (!dice_one_in(&dice, 3) || world.settings.bias == BIAS_PROMISE);
	if (world.settings.bias == BIAS_PROMISE)
		plan->patience = 1;
}

/* So, too.  Who dies as the giver of a range, or its owner, takes its compute node along. */
static void
plan_owners(struct plan *plan)
{
	struct dice dice = {.state = world.seed * UINT64_C(0x9e3779b97f4a7c15) + 23};

	plan->owners = chosen(world.settings.owners, &dice, 30) && !plan->direct && !plan->shared &&
				   (world.settings.bias == BIAS_NONE || world.settings.bias == BIAS_VALUE);
	if (!plan->owners)
		return;
	plan->compute_nodes = dice_between(&dice, 2, plan->clients < 3 ? 2 : 3);
	plan->lost_one_in = plan->interrupt_one_in = 0;
	if (plan->death != DEATH_NONE && dice_one_in(&dice, 2))
		plan->death = DEATH_ONE;
}

/* So, too. */
static void
plan_recovery(struct plan *plan)
{
	struct dice dice = {.state = world.seed * UINT64_C(0x9e3779b97f4a7c15) + 13};

	if (world.settings.bias == BIAS_CRASH)
	{
		plan->death = DEATH_ALL;
		plan->death_at = dice_below(&dice, 300);
		plan->lost_one_in = 0;
		plan->lives = dice_between(&dice, 2, 5);
		plan->recovers = true;
		return;
	}
	plan->lives = plan->death == DEATH_ALL ? 2 : 1;
	plan->recovers = dice_one_in(&dice, 2);
}

/* So, too.  What others would have finished is finished where a lost completion leaves nothing in the way. */
static void
plan_full(struct plan *plan)
{
	struct dice dice = {.state = world.seed * UINT64_C(0x9e3779b97f4a7c15) + 17};

	plan->full = dice_one_in(&dice, 6) || world.settings.bias == BIAS_FULL;
	plan->room = dice_below(&dice, 8);
	/* One to a client, and as many that wait for operations to end; clients that die take theirs along. */
	plan->standbys = plan->full ? 2 * plan->clients * plan->lives : UINT_MAX;
	if (plan->full)
		plan->lost_one_in = 0;
	if (world.settings.bias != BIAS_FULL)
		return;
	plan->leaf_size = dice_between(&dice, 1, 4) * 64;
	plan->setup = dice_between(&dice, 10, 40);
	plan->hot = HOT_MAX;
	plan->operations = dice_between(&dice, 4, 12);
}

/* So, too. */
static void
plan_values(struct plan *plan)
{
	struct dice dice = {.state = world.seed * UINT64_C(0x9e3779b97f4a7c15) + 19};
	unsigned int percent = world.settings.bias == BIAS_VALUE ? 100 : 30;

	plan->values = chosen(world.settings.values, &dice, percent) && !plan->direct;
	if (!plan->values)
		return;
	/* Leaf copies instead. */
	plan->copies = !plan->shared && !dice_one_in(&dice, 4);
	plan->results = plan->hints = plan->many = false;
	plan->payload = 0;
	plan->weight[OPERATION_UPDATE] = dice_between(&dice, 4, 24);
	/* V4: a block is used again as it was retired, and removals have no standbys. */
	plan->poison = POISON_NONE;
	plan->full = false;
	plan->standbys = UINT_MAX;
}

/* So, too.  Whatever changes entries goes through the log; at few keys, which go there and into the tree again and again. */
static void
plan_log(struct plan *plan)
{
	struct dice dice = {.state = world.seed * UINT64_C(0x9e3779b97f4a7c15) + 29};

	plan->log = plan->owners && chosen(world.settings.log, &dice, 50);
	if (!plan->log)
		return;
	plan->log_copies = dice_between(&dice, 1, plan->memory_nodes < 2 ? 1 : 2);
	plan->log_flights = dice_between(&dice, 1, 4);
	plan->apply_one_in = dice_one_in(&dice, 2) ? 0 : dice_between(&dice, 2, 12);
	plan->weight[OPERATION_ERASE] = 0;
	if (dice_one_in(&dice, 2))
		plan->weight[OPERATION_SCAN] = 0;
	plan->many = plan->full = false;
	plan->standbys = UINT_MAX;
	plan->operations = dice_between(&dice, 4, 20);
	if (dice_one_in(&dice, 2))
		plan->hot = dice_between(&dice, 2, 4);
}

void
plan_make(struct plan *plan)
{
	struct dice *dice = &world.dice;

	memset(plan, 0, sizeof(*plan));
	plan_shape(plan, dice);
	plan_load(plan, dice);
	plan_mishaps(plan, dice);
	if (plan->direct)
	{
		/* Fewer points where clients can change places: more of them are used. */
		plan->switch_one_in = plan->switch_one_in / 4 + 1;
		plan->stalls *= 3;
	}
	plan_bias(plan, dice);
	plan_rdwc(plan);
	plan_results(plan);
	plan_many(plan);
	plan_descents(plan);
	plan_patience(plan);
	plan_nodes(plan);
	plan_moments(plan);
	plan_flights(plan);
	plan_owners(plan);
	plan_recovery(plan);
	plan_full(plan);
	plan_values(plan);
	plan_log(plan);
	plan_promises(plan);
}

/* ---- keys ---- */

/* Where the three bytes that tell keys apart stand, and what they may be. */
static void
keys_shape(unsigned int *position, uint8_t *values, struct dice *dice)
{
	static const uint8_t near[4] = {0, 1, 2, 3};
	static const uint8_t high[4] = {252, 253, 254, 255};
	static const uint8_t far[4] = {0, 1, 254, 255};
	static const uint8_t *const choices[] = {near, near, high, far};
	unsigned int gap = dice_one_in(dice, 3) ? dice_between(dice, 1, 9) : 0;

	position[0] = dice_one_in(dice, 6) ? dice_between(dice, 1, 7) : 0;
	position[1] = position[0] + 1 + (dice_one_in(dice, 2) ? gap : 0);
	position[2] = position[1] + 1 + (dice_one_in(dice, 2) ? gap : 0);
	world.plan.long_keys = dice_one_in(dice, 16);
	if (world.plan.long_keys)
		position[2] += dice_between(dice, 30, 40);
	memcpy(values, choices[dice_below(dice, 4)], 4);
	if (values[3] == 255 && values[1] == 1)
		world.plan.tiny_nodes = dice_between(dice, 3, 4);
}

/* A few keys that every client uses: some anywhere, some close to each other. */
static void
choose_hot(struct keyset *keys, struct dice *dice)
{
	unsigned int base = dice_below(dice, KEYS);
	unsigned int shift = 2 * dice_below(dice, 3);

	for (unsigned int i = 0; i < world.plan.hot; i++)
	{
		if (world.settings.bias == BIAS_MERGE && i < 5)
		{
			/* Keys that differ in one byte. */
			keys->hot[i] = (base & ~(3u << shift)) | (i & 3) << shift;
			continue;
		}
		switch (dice_below(dice, 3))
		{
			case 0:
				keys->hot[i] = dice_below(dice, KEYS);
				break;
			case 1:
				keys->hot[i] = base / 4 * 4 + dice_below(dice, 4);
				break;
			default:
				keys->hot[i] = base / 16 * 16 + dice_below(dice, 16);
				break;
		}
	}
}

void
keys_make(struct keyset *keys)
{
	struct dice *dice = &world.dice;
	unsigned int position[3];
	uint8_t values[4];
	unsigned int tail;

	keys_shape(position, values, dice);
	keys->point_length = position[world.plan.point_digits - 1] + 1;
	/* Two or three entries to a leaf of 64 bytes. */
	tail = dice_between(dice, 6, 12);
	for (unsigned int key = 0; key < KEYS; key++)
	{
		unsigned int length = position[2] + 1 + tail + (world.plan.fixed ? 0 : key * 7 % 5);

		smart_assert(length + world.plan.payload <= KEY_BYTES_MAX);
		memset(keys->bytes[key], 0x55, KEY_BYTES_MAX);
		for (unsigned int digit = 0; digit < 3; digit++)
			keys->bytes[key][position[digit]] = values[key >> (4 - 2 * digit) & 3];
		keys->key_length[key] = length;
		keys->length[key] = length + world.plan.payload;
		memset(keys->bytes[key] + length, (int) (0x80 + key), world.plan.payload);
	}
	choose_hot(keys, dice);
}

/* A key's point (smart_point_fn): bytes that stand in front of all that differ in length. */
size_t
keys_point(void *argument, const uint8_t *bytes, size_t length)
{
	const struct keyset *keys = argument;

	smart_assert(length > keys->point_length);
	return keys->point_length;
}

/* Which key an entry is, payload included; -1: none. */
int
keys_find(const struct keyset *keys, const uint8_t *entry, size_t length)
{
	unsigned int low = 0;
	unsigned int high = KEYS;

	while (low < high)
	{
		unsigned int middle = (low + high) / 2;
		int order = smart_compare_bytes(keys->bytes[middle], keys->length[middle], entry, length);

		if (order == 0)
			return (int) middle;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return -1;
}
