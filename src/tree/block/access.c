/*
 * access.c
 *	  Words and blocks of memory nodes: by pointer where the provider is direct,
 *	  by verbs elsewhere; and the requests that wait for the next batch.
 *
 * A CAS by pointer is a full barrier: what this client stored before it is visible
 * to a client that loads the new value with acquire (smart_load_acquire,
 * smart_cover).
 *
 * On a remote provider three sorts of requests of a change wait, so that the change
 * costs few round trips: WRITEs of blocks that are not linked yet, the CASes that
 * make linked blocks live, and CASes of meta whose outcome is not needed before the
 * next batch (SEAL, D1).  They go ahead of the next batch that the operation has to
 * post anyway, or are posted when it ends.
 *
 * Order.  A block's WRITE has to be complete before the CAS that links it takes
 * effect, and a leaf has to be sealed before its slot goes over: they share a batch
 * if they go to one memory node, where a batch's WRITEs stay ahead of its atomics,
 * and a fence keeps SEAL ahead; otherwise they come in a batch of their own
 * (smart_link).  When a block becomes live does not matter: until then every client
 * that finds it makes it live.
 *
 * WRITEs and CASes of meta are posted, or given up, before the operation leaves its
 * epoch.  So the WRITE of a block that was retired unlinked comes before that block can
 * be another's (I6).  CASes that make blocks live may stay for the client's next
 * operation, if that is still true of them then: the compute node tells the same number
 * (services.h, moment) as before the first of these blocks was linked.  Else they are
 * given up; another client will find these blocks.
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "tree/block/access.h"
#include "tree/block/gather.h"
#include "tree/block/lock.h"

/* Attempts before a loop gives up: far more than any interleaving needs. */
#define ATTEMPTS_MAX 1000000
/* Attempts that are made at once, without letting others run. */
#define ATTEMPTS_EAGER 8

#define WAITING_MAX 128
#define BYTES_MAX   (32 * 1024)
#define BIRTHS_MAX  256

_Static_assert(BYTES_MAX >= SMART_LEAF_BYTES_MAX, "every block finds room when all others have been posted");

/* A block that this operation made: its state's word, as written. */
struct birth
{
	fabric_address word;
	uint64_t value;
};

struct smart_post
{
	int count;
	uint32_t used;   /* bytes */
	uint64_t moment; /* before any block was linked that waits to become live, or is in birth[] */
	bool carries;    /* the operation began with some that waited */
	unsigned int births;
	struct birth birth[BIRTHS_MAX]; /* the last ones */
	struct fabric_request waiting[WAITING_MAX];
	uint64_t *seen[WAITING_MAX]; /* where the result of a CAS is wanted, else NULL */
	int wiped;                   /* leaves with values that are retired when the batch that wipes them is complete */
	smart_slot wipes[WAITING_MAX];
	uint8_t bytes[BYTES_MAX];
};

struct smart_post *
smart_post_open(struct smart_env *env)
{
	struct smart_post *post = env->allocate(env, sizeof(*post));

	if (post != NULL)
	{
		post->count = 0;
		post->used = 0;
		post->births = 0;
		post->moment = 0;
		post->carries = false;
		post->wiped = 0;
	}
	return post;
}

/* ---- batches ---- */

/* V4: the batch that wiped leaves has ended.  If it failed they are left to be marked. */
static void
retire_wiped(struct smart_tree *tree, smart_status status)
{
	struct smart_post *post = tree->post;

	for (int i = 0; i < post->wiped && status == SMART_OK; i++)
		tree->services->retire(tree->services, tree->options.id, smart_slot_class(post->wipes[i]),
							   smart_slot_address(post->wipes[i]));
	post->wiped = 0;
}

/* Posts what waits, in batch, and behind it count further requests that are there already. */
static smart_status
execute_waiting(struct smart_tree *tree, struct fabric_request *batch, int count)
{
	struct smart_post *post = tree->post;
	int waiting = post->count;
	smart_status status;

	post->count = 0;
	post->used = 0;
	status = fabric_execute(tree->fabric, batch, waiting + count);
	for (int i = 0; i < waiting; i++)
	{
		if (post->seen[i] != NULL)
			*post->seen[i] = batch[i].result;
	}
	if (post->wiped > 0)
		retire_wiped(tree, status);
	return status;
}

smart_status
smart_execute(struct smart_tree *tree, struct fabric_request *requests, int count)
{
	struct smart_post *post = tree->post;
	struct fabric_request batch[WAITING_MAX + SMART_EXECUTE_MAX];
	int waiting = post->count;
	smart_status status;

	smart_assert(count > 0 && count <= SMART_EXECUTE_MAX);
	if (waiting == 0)
		return fabric_execute(tree->fabric, requests, count);
	memcpy(batch, post->waiting, (size_t) waiting * sizeof(batch[0]));
	memcpy(batch + waiting, requests, (size_t) count * sizeof(batch[0]));
	status = execute_waiting(tree, batch, count);
	for (int i = 0; i < count; i++)
		requests[i].result = batch[waiting + i].result;
	return status;
}

bool
smart_post_waits(const struct smart_tree *tree)
{
	return tree->post->count > 0;
}

smart_status
smart_post_flush(struct smart_tree *tree)
{
	if (tree->direct || tree->post->count == 0)
		return SMART_OK;
	return execute_waiting(tree, tree->post->waiting, 0);
}

/* The request becomes the last of those that wait.  seen: NULL, or what is set to its result. */
static smart_status
wait_for_batch(struct smart_tree *tree, struct fabric_request request, uint64_t *seen)
{
	struct smart_post *post = tree->post;
	smart_status status = SMART_OK;

	if (post->count == WAITING_MAX)
		status = smart_post_flush(tree);
	if (status != SMART_OK)
		return status;
	smart_assert(post->count < WAITING_MAX && (seen == NULL || request.verb == FABRIC_CAS));
	post->seen[post->count] = seen;
	post->waiting[post->count++] = request;
	return SMART_OK;
}

/* ---- words and blocks ---- */

smart_status
smart_word_cas(struct smart_tree *tree, fabric_address word, uint64_t expected, uint64_t desired, uint64_t *seen)
{
	struct fabric_request request;
	smart_status status;

	smart_assert(expected != desired && word % sizeof(uint64_t) == 0);
	if (tree->direct)
	{
		uint64_t *pointer = fabric_direct(tree->fabric, word, sizeof(uint64_t));

		if (pointer == NULL)
			return SMART_CORRUPT;
		*seen = expected;
		__atomic_compare_exchange_n(pointer, seen, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE);
		return SMART_OK;
	}
	request = smart_cas_request(word, expected, desired, false);
	status = smart_execute(tree, &request, 1);
	if (status == SMART_OK)
		*seen = request.result;
	return status;
}

smart_status
smart_post_cas(struct smart_tree *tree, fabric_address word, uint64_t expected, uint64_t desired, uint64_t *seen)
{
	smart_assert(tree->entered && smart_meta_state(expected) == SMART_LIVE);
	if (tree->direct)
		return smart_word_cas(tree, word, expected, desired, seen);
	return wait_for_batch(tree, smart_cas_request(word, expected, desired, false), seen);
}

smart_status
smart_word_read(struct smart_tree *tree, fabric_address word, uint64_t *value)
{
	smart_assert(word % sizeof(*value) == 0);
	if (tree->direct)
	{
		uint64_t *pointer = fabric_direct(tree->fabric, word, sizeof(uint64_t));

		if (pointer == NULL)
			return SMART_CORRUPT;
		*value = smart_load_acquire(pointer);
		return SMART_OK;
	}
	return smart_block_read(tree, word, value, sizeof(*value));
}

smart_status
smart_block_read(struct smart_tree *tree, fabric_address block, void *buffer, size_t length)
{
	struct fabric_request request = smart_read_request(block, buffer, length);

	smart_assert(!tree->direct && length > 0);
	return smart_execute(tree, &request, 1);
}

smart_status
smart_block_write(struct smart_tree *tree, fabric_address remote, const void *bytes, size_t length)
{
	struct smart_post *post = tree->post;
	smart_status status = SMART_OK;
	uint8_t *copy;

	smart_assert(length > 0 && length <= SMART_LEAF_BYTES_MAX);
	smart_assert(tree->entered || tree->born == SMART_LIVE);
	if (tree->direct)
	{
		void *pointer = fabric_direct(tree->fabric, remote, length);

		if (pointer == NULL)
			return SMART_CORRUPT;
		memcpy(pointer, bytes, length);
		return SMART_OK;
	}
	if (tree->gather != NULL)
		return smart_gather_write(tree, tree->gather, remote, bytes, length);
	if (post->count == WAITING_MAX || post->used + length > BYTES_MAX)
		status = smart_post_flush(tree);
	if (status != SMART_OK)
		return status;
	copy = post->bytes + post->used;
	memcpy(copy, bytes, length);
	post->used += (uint32_t) length;
	return wait_for_batch(
		tree,
		(struct fabric_request){.verb = FABRIC_WRITE, .remote = remote, .local = copy, .length = (uint32_t) length},
		NULL);
}

/* ---- slots that go over to new blocks ---- */

smart_status
smart_link(struct smart_tree *tree, fabric_address word, smart_slot expected, smart_slot desired,
		   struct smart_leaf_lock *lock, uint64_t *seen)
{
	const struct smart_post *post = tree->post;
	struct fabric_request batch[2];
	bool unlocks = lock != NULL && lock->meta != 0;
	bool first = false; /* what waits has to be complete before this CAS is posted */
	bool fence = false; /* it has to come before this CAS takes effect */
	smart_status status = SMART_OK;

	/* I3: a partial key never changes, a used slot stays so, a frozen one is not changed. */
	smart_assert(tree->entered && smart_slot_used(desired) && !smart_slot_frozen(desired | expected));
	smart_assert(expected == 0 || smart_slot_pk(expected) == smart_slot_pk(desired));
	if (tree->direct)
		return smart_word_cas(tree, word, expected, desired, seen);
	for (int i = 0; i < post->count; i++)
	{
		bool seals = post->seen[i] != NULL;

		fence |= seals;
		first |= (seals || post->waiting[i].verb == FABRIC_WRITE) &&
				 fabric_node(post->waiting[i].remote) != fabric_node(word);
	}
	if (first)
		status = smart_post_flush(tree);
	if (status != SMART_OK)
		return status;
	batch[0] = smart_cas_request(word, expected, desired, fence);
	if (unlocks)
		batch[1] = smart_cas_request(lock->word_address, lock->meta, lock->meta & ~SMART_META_LOCKED, true);
	status = smart_execute(tree, batch, unlocks ? 2 : 1);
	if (unlocks)
		lock->meta = 0;
	if (status == SMART_OK)
		*seen = batch[0].result;
	return status;
}

/* ---- the cache of nodes ---- */

/*
 * A changed slot is changed in the node's copy, too; a node that this client
 * made goes into the cache as it was made, and one that it retires goes out.  So
 * the clients of a compute node, when they alone write a tree, rarely find the
 * cache wrong.  It stays a hint all the same (B1): two changes may reach it in
 * another order than the tree, and another compute node's do not reach it.
 */
void
smart_keep_node(struct smart_tree *tree, smart_slot slot, const uint64_t *words)
{
	if (tree->services->cache_store != NULL)
		tree->services->cache_store(tree->services, tree->options.id, slot, words, 0);
}

void
smart_keep_read_node(struct smart_tree *tree, const struct smart_node *node, bool today)
{
	smart_assert(tree->entered && (!node->part || SMART_FAULT(partview)));
	if (tree->services->cache_store != NULL)
		tree->services->cache_store(tree->services, tree->options.id, node->link, node->words,
									today ? tree->moment : 0);
}

void
smart_forget_node(struct smart_tree *tree, smart_slot slot)
{
	if (tree->services->cache_drop != NULL)
		tree->services->cache_drop(tree->services, tree->options.id, slot);
}

void
smart_slot_changed(struct smart_tree *tree, smart_slot link, int index, smart_slot from, smart_slot to)
{
	if (tree->services->cache_update != NULL)
		tree->services->cache_update(tree->services, tree->options.id, link,
									 link == 0 ? 0 : SMART_NODE_HEAD_WORDS + (unsigned int) index, from, to);
}

/* ---- blocks that come and go ---- */

smart_status
smart_allocate(struct smart_tree *tree, smart_class class, fabric_address *block)
{
	uint64_t since_ns = 0;
	smart_status status;

	smart_assert(class < SMART_CLASSES && smart_class_bytes(class) > 0);
	if (tree->room != 0 && smart_slot_class(tree->room) == class)
	{
		*block = smart_slot_address(tree->room);
		tree->room = 0;
		return SMART_OK;
	}
	do
		status = tree->services->allocate(tree->services, tree->options.id, class, block);
	while (tree->gather != NULL && smart_await(tree, status, &since_ns));
	if (smart_no_room(status) && tree->mends && tree->services->allocate_spared != NULL)
		status = tree->services->allocate_spared(tree->services, tree->options.id, class, false, block);
	smart_assert(status != SMART_OK || (*block & ~SMART_SLOT_ADDRESS_MASK) == 0);
	return status;
}

/* V4: the leaf is zeros before it is retired, so that no READ mixes its values with those of its next life. */
static void
wipe(struct smart_tree *tree, smart_slot slot)
{
	static const uint8_t zeros[SMART_LEAF_BYTES_MAX];
	struct smart_post *post = tree->post;

	if (smart_block_write(tree, smart_slot_address(slot), zeros, smart_slot_size(slot) * SMART_UNIT) != SMART_OK)
		return;
	smart_assert(post->wiped < WAITING_MAX && post->wiped < post->count);
	post->wipes[post->wiped++] = slot;
}

void
smart_retire_slot(struct smart_tree *tree, smart_slot slot)
{
	if (!smart_slot_used(slot) || smart_slot_is_empty(slot))
		return;
	smart_assert(tree->entered || tree->born == SMART_LIVE);
	smart_assert(smart_class_bytes(smart_slot_class(slot)) > 0);
	if (smart_slot_is_node(slot))
		smart_forget_node(tree, slot);
	else if (tree->options.value && !SMART_FAULT(nowipe))
	{
		wipe(tree, slot);
		return;
	}
	tree->services->retire(tree->services, tree->options.id, smart_slot_class(slot), smart_slot_address(slot));
}

/*
 * If the completion of the CAS got lost, the copy may be linked: then it is left to be
 * marked or not, one day, since a linked block must not be used again.
 */
void
smart_retire_loser(struct smart_tree *tree, smart_status status, smart_slot slot)
{
	if (status == SMART_OK)
		smart_retire_slot(tree, slot);
}

void
smart_post_birth(struct smart_tree *tree, fabric_address word, uint64_t value)
{
	struct smart_services *services = tree->services;
	struct smart_post *post = tree->post;

	/* A bulk load's blocks are born live. */
	if (tree->direct || tree->gather != NULL)
		return;
	if (post->births == 0 && !post->carries && services->moment != NULL)
		post->moment = services->moment(services);
	post->birth[post->births++ % BIRTHS_MAX] = (struct birth){word, value};
}

static inline uint64_t
live_word(bool node, uint64_t value)
{
	return node ? smart_node_with_state(value, SMART_LIVE) : smart_meta_with_state(value, SMART_LIVE);
}

/*
 * On a remote provider a block that this operation made becomes live with the next batch,
 * by the value that was written; by pointers, or if that was too many blocks ago, at once.
 * Losing means that another client did it, and perhaps changed the block since.
 */
smart_status
smart_slot_activate(struct smart_tree *tree, smart_slot link)
{
	const struct smart_post *post = tree->post;
	bool node = smart_slot_is_node(link);
	fabric_address word;
	uint64_t value;
	uint64_t seen;
	smart_status status;

	smart_assert(tree->entered && smart_slot_used(link) && !smart_slot_frozen(link));
	if (smart_slot_is_empty(link))
		return SMART_OK;
	word = node ? smart_slot_address(link) : smart_leaf_meta_address(smart_slot_address(link), smart_slot_size(link));
	if (!tree->direct && tree->born == SMART_NEW)
	{
		unsigned int first = post->births > BIRTHS_MAX ? post->births - BIRTHS_MAX : 0;

		for (unsigned int i = post->births; i-- > first;)
		{
			value = post->birth[i % BIRTHS_MAX].value;
			if (post->birth[i % BIRTHS_MAX].word == word)
				return wait_for_batch(tree, smart_cas_request(word, value, live_word(node, value), false), NULL);
		}
	}
	status = smart_word_read(tree, word, &value);
	if (status != SMART_OK || (node ? smart_node_state(value) : smart_meta_state(value)) != SMART_NEW)
		return status;
	return smart_word_cas(tree, word, value, live_word(node, value), &seen);
}

/* ---- operations ---- */

void
smart_enter(struct smart_tree *tree)
{
	struct smart_post *post = tree->post;

	smart_assert(!tree->entered && tree->locked == 0);
	tree->services->enter(tree->services);
	tree->entered = true;
	if (tree->direct)
		return;
	/* Who owns a range for a time is told nothing of what others retire in the meantime. */
	tree->moment = 0;
	if (tree->services->moment != NULL && tree->options.tenure == 0)
		tree->moment = tree->services->moment(tree->services);
	smart_assert(post->births == 0);
	/* What was left for this operation is given up if it is too old. */
	if (post->count > 0 && tree->services->moment(tree->services) != post->moment)
		post->count = 0;
	post->carries = post->count > 0;
}

smart_status
smart_leave(struct smart_tree *tree, smart_status status)
{
	smart_assert(tree->entered && tree->locked == 0);
	if (!tree->direct)
	{
		struct smart_post *post = tree->post;
		/* CASes that make blocks live may stay while those blocks cannot be used again. */
		bool stays = post->count > 0 && status == SMART_OK && tree->services->moment != NULL;

		for (int i = 0; i < post->count && stays; i++)
			stays = post->waiting[i].verb != FABRIC_WRITE && post->seen[i] == NULL;
		if (stays)
			stays = tree->services->moment(tree->services) == post->moment;
		if (status == SMART_OK && !stays)
			status = smart_post_flush(tree);
		else if (status != SMART_OK && status != SMART_UNREACHABLE && post->wiped > 0)
			(void) smart_post_flush(tree);
		if (!stays)
			post->count = post->wiped = 0;
		post->births = 0;
	}
	tree->entered = false;
	tree->services->leave(tree->services);
	return status;
}

smart_status
smart_again(struct smart_tree *tree, unsigned int *attempts)
{
	unsigned int attempt = (*attempts)++;

	if (attempt < ATTEMPTS_EAGER)
		return SMART_OK;
	if (tree->env->interrupted(tree->env))
		return SMART_INTERRUPTED;
	if (attempt > ATTEMPTS_MAX)
		return SMART_TIMEOUT;
	tree->env->pause(tree->env, attempt - ATTEMPTS_EAGER);
	return SMART_OK;
}

uint64_t
smart_prefix_hash(const struct smart_tree *tree, const struct smart_key *key, unsigned int length)
{
	uint8_t padded[SMART_KEY_MAX + 1];

	if (length <= key->length)
		return XXH3_64bits_withSeed(key->bytes, length, tree->options.id);
	smart_assert(length <= SMART_KEY_MAX);
	memcpy(padded, key->bytes, key->length);
	memset(padded + key->length, key->pad, length - key->length);
	return XXH3_64bits_withSeed(padded, length, tree->options.id);
}
