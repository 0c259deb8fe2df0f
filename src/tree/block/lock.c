/*
 * lock.c
 *	  The lock of a leaf: what excludes two appenders from the same bytes.
 *
 * The local lock of the compute node comes first.  In shared mode the rear lock
 * of the leaf follows, by a CAS that travels with the READ of the leaf.  The
 * lock protects nothing but the bytes at and above used (I4): a client that waits too
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

void
smart_unlock_local(struct smart_tree *tree)
{
	smart_assert(tree->locked != 0);
	tree->services->unlock_leaf(tree->services, tree->locked);
	tree->locked = 0;
}

/* Takes the rear lock of a leaf and READs the leaf behind that, in one batch. */
static smart_status
take_rear_lock(struct smart_tree *tree, smart_slot link, const struct smart_key *key, struct smart_leaf_lock *lock,
			   struct smart_leaf *leaf, bool *locked, bool *good)
{
	struct fabric_request batch[2 + SMART_PIGGYBACK_REQUESTS];
	smart_status status;

	lock->word_address = smart_leaf_lock_address(lock->leaf, smart_slot_size(link));
	lock->word = smart_lock_make(tree->options.lease, tree->options.backend, ++tree->acquisition);
	if (tree->direct)
	{
		uint64_t seen;

		status = smart_word_cas(tree, lock->word_address, 0, lock->word, &seen);
		*locked = status == SMART_OK && seen == 0;
		return *locked ? smart_leaf_read(tree, link, key, tree->leaf_buffer, leaf, good) : status;
	}
	batch[0] = smart_cas_request(lock->word_address, 0, lock->word, false);
	batch[1] = smart_read_request(lock->leaf, tree->leaf_buffer, smart_slot_size(link) * SMART_UNIT);
	status = smart_execute(tree, batch, 2 + smart_piggyback_prepare(tree, &batch[2]));
	*locked = status == SMART_OK && batch[0].result == 0;
	if (SMART_FAULT(inplace) && status == SMART_OK && !*locked)
	{
		uint64_t holder = batch[0].result;
		uint64_t seen;

		status = smart_word_cas(tree, lock->word_address, holder, lock->word, &seen);
		*locked = status == SMART_OK && seen == holder;
		return *locked ? smart_leaf_read(tree, link, key, tree->leaf_buffer, leaf, good) : status;
	}
	if (*locked)
		*good = smart_leaf_from_copy(tree, link, tree->leaf_buffer, key, leaf);
	return status;
}

smart_status
smart_leaf_read_locked(struct smart_tree *tree, smart_slot link, const struct smart_key *key,
					   struct smart_leaf_lock *lock, struct smart_leaf *leaf, bool *locked, bool *good)
{
	struct fabric_request batch[1 + SMART_PIGGYBACK_REQUESTS];
	int count;
	smart_status status = SMART_OK;

	smart_assert(tree->entered && tree->locked == smart_slot_address(link));
	*locked = *good = false;
	*lock = (struct smart_leaf_lock){.leaf = smart_slot_address(link)};
	if (tree->options.shared)
		status = take_rear_lock(tree, link, key, lock, leaf, locked, good);
	else
	{
		count = smart_piggyback_prepare(tree, &batch[1]);
		batch[0] = smart_read_request(lock->leaf, tree->leaf_buffer, smart_slot_size(link) * SMART_UNIT);
		if (count > 0)
			status = smart_execute(tree, batch, 1 + count);
		*good = count > 0 && status == SMART_OK && smart_leaf_from_copy(tree, link, tree->leaf_buffer, key, leaf);
		/* By itself, if no node goes with it or the leaf has come torn. */
		if (status == SMART_OK && !*good)
			status = smart_leaf_read_alone(tree, link, key, tree->leaf_buffer, leaf, good);
		*locked = status == SMART_OK;
	}
	if (!*locked)
	{
		lock->word = 0;
		smart_unlock_local(tree);
	}
	else if (status != SMART_OK)
	{
		smart_leaf_unlock(tree, lock);
		*locked = false;
	}
	smart_assert(*locked == (tree->locked != 0) && (*locked || lock->word == 0));
	return status;
}

smart_status
smart_leaf_unlock(struct smart_tree *tree, struct smart_leaf_lock *lock)
{
	smart_status status = SMART_OK;
	uint64_t seen;

	smart_assert(tree->locked == lock->leaf);
	if (lock->word != 0)
		status = smart_word_cas(tree, lock->word_address, lock->word, 0, &seen);
	lock->word = 0;
	smart_unlock_local(tree);
	return status;
}
