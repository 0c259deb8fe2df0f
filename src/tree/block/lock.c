/*
 * lock.c
 *	  The lock of a leaf: what excludes two appenders from the same bytes.
 *
 * The local lock of the compute node comes first.  In shared mode the lock in the leaf's
 * meta follows: one CAS sets it, from the exact meta that was read, so that who has it
 * knows what the leaf holds; and the CAS of meta that publishes an append takes it away.
 * A client that finds it set looks again after a while, by READs alone.  The lock
 * protects nothing but the bytes at and above used (I4): a client that waits too
 * long rewrites the leaf instead (FORWARD), and the late holder's CAS on meta
 * fails.
 */
#include "tree/block/access.h"
#include "tree/block/lock.h"
#include "tree/block/piggyback.h"

smart_status
smart_lock_local(struct smart_tree *tree, smart_slot link)
{
	smart_status status;

	smart_assert(tree->entered && tree->locked == 0 && smart_slot_is_leaf(link));
	status = tree->services->lock_leaf(tree->services, smart_slot_address(link));
	if (status == SMART_OK)
		tree->locked = smart_slot_address(link);
	return status;
}

bool
smart_try_lock_local(struct smart_tree *tree, smart_slot link)
{
	struct smart_services *services = tree->services;

	smart_assert(tree->entered && tree->locked == 0 && smart_slot_is_leaf(link));
	if (services->try_lock_leaf == NULL || !services->try_lock_leaf(services, smart_slot_address(link)))
		return false;
	tree->locked = smart_slot_address(link);
	return true;
}

void
smart_unlock_local(struct smart_tree *tree)
{
	smart_assert(tree->locked != 0);
	tree->services->unlock_leaf(tree->services, tree->locked);
	tree->locked = 0;
}

/* Looks at a lock that one holder keeps, before that one counts as stuck; and in all, whoever keeps it. */
#define PATIENCE  24
#define LOOKS_MAX 1000

/* Where what is waited for takes a round trip, the first pause is as long as this one of others. */
#define FIRST_PAUSE 6

/* Waiting for a lock that other compute nodes hold. */
struct patience
{
	uint64_t meta;      /* as it was seen last, locked */
	unsigned int looks; /* since it was first seen so */
	unsigned int all;
	unsigned int most; /* looks */
};

/* Does another client append to the leaf that was READ?  Its entry is not there yet, or it holds the lock. */
static bool
is_awaited(const struct smart_tree *tree, const struct smart_leaf *leaf, bool good)
{
	return good ? leaf->state == SMART_LIVE && smart_meta_locked(leaf->meta) : smart_leaf_has_open_promise(tree, leaf);
}

/* Another look is due; false: this has been going on for too long. */
static bool
wait_for_holder(struct smart_tree *tree, struct patience *patience, uint64_t meta)
{
	if (meta != patience->meta)
		patience->looks = 0;
	patience->meta = meta;
	if (++patience->looks > patience->most || ++patience->all > LOOKS_MAX)
		return false;
	tree->env->pause(tree->env, (tree->direct ? 0 : FIRST_PAUSE) + patience->looks);
	return true;
}

/* By itself, or, in exclusive mode, with the node above it that is planned. */
static smart_status
read_once(struct smart_tree *tree, smart_slot link, const struct smart_key *key, struct smart_leaf *leaf, bool *good)
{
	struct fabric_request batch[1 + SMART_PIGGYBACK_REQUESTS];
	int count = tree->options.shared ? 0 : smart_piggyback_prepare(tree, &batch[1]);
	smart_status status = SMART_OK;

	smart_assert(tree->locked == smart_slot_address(link));
	*good = false;
	if (count > 0)
	{
		batch[0] = smart_read_request(smart_slot_address(link), tree->leaf_buffer, smart_slot_size(link) * SMART_UNIT);
		status = smart_execute(tree, batch, 1 + count);
		*good = status == SMART_OK && smart_leaf_from_copy(tree, link, tree->leaf_buffer, key, leaf);
	}
	/* By itself, too, if it has come torn. */
	return status == SMART_OK && !*good ? smart_leaf_read_alone(tree, link, key, tree->leaf_buffer, leaf, good)
										: status;
}

smart_status
smart_leaf_read_locked(struct smart_tree *tree, smart_slot link, const struct smart_key *key,
					   struct smart_leaf_lock *lock, struct smart_leaf *leaf, bool *good, bool *stuck)
{
	struct patience patience = {.most = tree->options.patience > 0 ? tree->options.patience : PATIENCE};
	smart_status status;

	smart_assert(tree->entered && tree->locked == smart_slot_address(link));
	*lock = (struct smart_leaf_lock){
		.leaf = smart_slot_address(link),
		.word_address = smart_leaf_meta_address(smart_slot_address(link), smart_slot_size(link)),
	};
	*stuck = false;
	for (;;)
	{
		status = read_once(tree, link, key, leaf, good);
		if (status != SMART_OK || !is_awaited(tree, leaf, *good) || SMART_FAULT(inplace))
			break;
		*stuck = !wait_for_holder(tree, &patience, leaf->meta);
		if (!*stuck && tree->env->interrupted(tree->env))
			status = SMART_INTERRUPTED;
		if (status != SMART_OK || *stuck)
			break;
	}
	if (status != SMART_OK)
		smart_unlock_local(tree);
	return status;
}

smart_status
smart_leaf_take_shared(struct smart_tree *tree, struct smart_leaf_lock *lock, struct smart_leaf *leaf, bool *taken)
{
	struct fabric_request batch[1 + SMART_PIGGYBACK_REQUESTS];
	uint64_t locked = smart_meta_settled(leaf->meta) | SMART_META_LOCKED;
	uint64_t seen = 0;
	smart_status status;

	smart_assert(tree->locked == leaf->address && lock->leaf == leaf->address && leaf->state == SMART_LIVE);
	smart_assert(tree->options.shared);
	if (SMART_FAULT(inplace) && locked == leaf->meta)
	{
		lock->meta = locked;
		*taken = true;
		return SMART_OK;
	}
	/* From the exact meta that was read: what was read is what the leaf holds until this client lets go, or it is sealed. */
	smart_assert(lock->meta == 0 && !smart_meta_locked(leaf->meta));
	if (tree->direct)
		status = smart_word_cas(tree, lock->word_address, leaf->meta, locked, &seen);
	else
	{
		batch[0] = smart_cas_request(lock->word_address, leaf->meta, locked, false);
		status = smart_execute(tree, batch, 1 + smart_piggyback_prepare(tree, &batch[1]));
		seen = batch[0].result;
	}
	*taken = status == SMART_OK && seen == leaf->meta;
	if (*taken)
		lock->meta = leaf->meta = locked;
	return status;
}

smart_status
smart_leaf_unlock(struct smart_tree *tree, struct smart_leaf_lock *lock)
{
	smart_status status = SMART_OK;
	uint64_t seen;

	smart_assert(tree->locked == lock->leaf);
	/* If it is lost the leaf was sealed, and is no client's any more. */
	if (lock->meta != 0)
		status = smart_word_cas(tree, lock->word_address, lock->meta, lock->meta & ~SMART_META_LOCKED, &seen);
	lock->meta = 0;
	smart_unlock_local(tree);
	return status;
}
