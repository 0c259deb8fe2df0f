/*
 * lock.c
 *	  The lock of a leaf: what excludes two appenders from the same bytes.
 *
 * The local lock of the compute node comes first.  In shared mode the rear lock
 * of the leaf follows, by a CAS that travels with the READ of the leaf.  The
 * lock protects nothing but the bytes at and above used (I4): whoever waits too
 * long rewrites the leaf instead (FORWARD), and the late holder's CAS on meta
 * fails.
 */
#include "tree/internal.h"

static smart_status
take_rear_lock(struct smart_tree *tree, smart_slot link, const struct smart_key *key, struct smart_leaf_lock *lock,
			   struct smart_leaf *leaf, bool *locked, bool *good)
{
	unsigned int length = smart_slot_size(link) * SMART_UNIT;
	struct fabric_request batch[2 + SMART_BESIDE_REQUESTS];
	smart_status status;

	lock->word_address = smart_leaf_lock_address(lock->leaf, smart_slot_size(link));
	lock->word = smart_lock_make(tree->options.lease, tree->options.backend, ++tree->acquisition);
	if (tree->direct)
	{
		uint64_t seen;

		status = smart_word_cas(tree, lock->word_address, 0, lock->word, &seen);
		*locked = status == SMART_OK && seen == 0;
		return status == SMART_OK && *locked ? smart_leaf_read(tree, link, key, tree->leaf_buffer, leaf, good) : status;
	}
	batch[0] =
		(struct fabric_request){.verb = FABRIC_CAS, .remote = lock->word_address, .compare = 0, .operand = lock->word};
	batch[1] = (struct fabric_request){.verb = FABRIC_READ,
									   .remote = lock->leaf,
									   .local = tree->leaf_buffer,
									   .length = length};
	status = smart_execute(tree, batch, 2 + smart_beside_prepare(tree, &batch[2]));
	*locked = status == SMART_OK && batch[0].result == 0;
	if (SMART_FAULT(inplace) && status == SMART_OK && !*locked)
		return smart_fault_take_over(tree, link, key, lock, batch[0].result, leaf, locked, good);
	if (*locked)
		*good = smart_leaf_from_copy(tree, link, tree->leaf_buffer, key, leaf);
	return status;
}

/* The leaf whose local lock is held; with the node above it, if that is planned and the leaf does not come torn. */
static smart_status
read_under_lock(struct smart_tree *tree, smart_slot link, const struct smart_key *key, struct smart_leaf *leaf,
				bool *good)
{
	struct fabric_request batch[1 + SMART_BESIDE_REQUESTS];
	int count = smart_beside_prepare(tree, &batch[1]);
	smart_status status;

	if (count > 0)
	{
		batch[0] = (struct fabric_request){.verb = FABRIC_READ,
										   .remote = smart_slot_address(link),
										   .local = tree->leaf_buffer,
										   .length = smart_slot_size(link) * SMART_UNIT};
		status = smart_execute(tree, batch, 1 + count);
		*good = status == SMART_OK && smart_leaf_from_copy(tree, link, tree->leaf_buffer, key, leaf);
		if (status != SMART_OK || *good)
			return status;
	}
	return smart_leaf_read_alone(tree, link, key, tree->leaf_buffer, leaf, good);
}

smart_status
smart_leaf_read_locked(struct smart_tree *tree, smart_slot link, const struct smart_key *key,
					   struct smart_leaf_lock *lock, struct smart_leaf *leaf, bool *locked, bool *good)
{
	smart_status status;

	*locked = *good = false;
	*lock = (struct smart_leaf_lock){.leaf = smart_slot_address(link)};
	if (tree->options.shared)
		status = take_rear_lock(tree, link, key, lock, leaf, locked, good);
	else
	{
		status = read_under_lock(tree, link, key, leaf, good);
		*locked = status == SMART_OK;
	}
	if (!*locked)
	{
		lock->word = 0;
		tree->services->unlock_leaf(tree->services, lock->leaf);
	}
	else if (status != SMART_OK)
	{
		smart_leaf_unlock(tree, lock);
		*locked = false;
	}
	return status;
}

smart_status
smart_leaf_lock_and_read(struct smart_tree *tree, smart_slot link, const struct smart_key *key,
						 struct smart_leaf_lock *lock, struct smart_leaf *leaf, bool *locked, bool *good)
{
	smart_status status;

	*locked = *good = false;
	status = tree->services->lock_leaf(tree->services, smart_slot_address(link));
	return status == SMART_OK ? smart_leaf_read_locked(tree, link, key, lock, leaf, locked, good) : status;
}

smart_status
smart_leaf_unlock(struct smart_tree *tree, struct smart_leaf_lock *lock)
{
	smart_status status = SMART_OK;
	uint64_t seen;

	if (lock->word != 0)
		status = smart_word_cas(tree, lock->word_address, lock->word, 0, &seen);
	lock->word = 0;
	tree->services->unlock_leaf(tree->services, lock->leaf);
	return status;
}

/* The key's entry of length bytes as it stands in the leaf; its bytes there. */
unsigned int
smart_leaf_put_entry(const struct smart_tree *tree, const struct smart_leaf *leaf, uint8_t *target,
					 const struct smart_key *key, size_t length)
{
	unsigned int consumed = leaf->depth + leaf->prefix_length;
	unsigned int suffix = (unsigned int) length - consumed;
	unsigned int head = tree->options.fixed_length == 0 ? smart_put_length(target, suffix) : 0;

	memcpy(target + head, key->bytes + consumed, suffix);
	return head + suffix;
}

/*
 * One batch: WRITE the bytes at used, CAS meta, and CAS the lock back, which is
 * fenced behind the CAS on meta: a ghost of the publication must not come after
 * somebody else took the lock.  before: NULL, or where a READ brings what lies below
 * used; it goes in any order with the others, since those bytes do not change (I4), and
 * the block is not used again within this epoch (I6).
 */
smart_status
smart_leaf_publish_bytes(struct smart_tree *tree, struct smart_leaf_lock *lock, const struct smart_leaf *leaf,
						 const uint8_t *bytes, unsigned int length, uint64_t desired, uint8_t *before, bool *published)
{
	struct fabric_request batch[3];
	int count = 2;
	smart_status status;

	batch[0] = (struct fabric_request){.verb = FABRIC_WRITE,
									   .remote = leaf->address + leaf->used,
									   .local = (void *) (uintptr_t) bytes,
									   .length = length};
	batch[1] = (struct fabric_request){.verb = FABRIC_CAS,
									   .remote = smart_leaf_meta_address(leaf->address, leaf->units),
									   .compare = leaf->meta,
									   .operand = desired};
	smart_assert(before == NULL || lock->word == 0);
	if (lock->word != 0)
		batch[count++] = (struct fabric_request){.verb = FABRIC_CAS,
												 .remote = lock->word_address,
												 .compare = lock->word,
												 .operand = 0,
												 .fence = true};
	if (before != NULL)
		batch[count++] = (struct fabric_request){.verb = FABRIC_READ,
												 .remote = leaf->address,
												 .local = before,
												 .length = leaf->used};
	if (SMART_FAULT(metawrite))
		batch[1] = (struct fabric_request){.verb = FABRIC_WRITE,
										   .remote = batch[1].remote,
										   .local = &desired,
										   .length = sizeof(desired),
										   .result = leaf->meta};
	status = smart_execute(tree, batch, count);
	lock->word = 0;
	*published = status == SMART_OK && batch[1].result == leaf->meta;
	return status;
}

/* Do all entries still ascend with this one behind them?  Told for suffixes of one length only, where the last is at hand. */
bool
smart_leaf_stays_sorted(const struct smart_leaf *leaf, const uint8_t *suffix)
{
	if (leaf->stride == 0 || leaf->sorted_end != leaf->used)
		return false;
	return leaf->used == leaf->start ||
		   smart_compare_equal_length(leaf->block + leaf->used - leaf->stride, suffix, leaf->stride) < 0;
}

/*
 * C5.  The commit is the CAS on meta; *published false: somebody narrowed or
 * sealed the leaf first, and nothing happened.
 */
smart_status
smart_leaf_publish(struct smart_tree *tree, struct smart_leaf_lock *lock, const struct smart_leaf *leaf,
				   const struct smart_key *key, size_t length, bool *published)
{
	uint8_t *bytes = (uint8_t *) (uintptr_t) leaf->block + leaf->used;
	unsigned int stored;
	uint64_t desired;
	uint64_t seen;
	smart_status status;

	if (!tree->direct)
		return smart_leaf_publish_together(tree, lock, leaf, key, length, published);
	smart_assert(smart_stored_bytes(tree, (unsigned int) length - leaf->depth - leaf->prefix_length) <=
					 smart_leaf_room(leaf) &&
				 leaf->state == SMART_LIVE);
	stored = smart_leaf_put_entry(tree, leaf, bytes, key, length);
	desired = smart_meta_make(leaf->used + stored, SMART_LIVE, leaf->hi,
							  smart_crc32c(smart_meta_crc(leaf->meta), bytes, stored));
	if (smart_leaf_stays_sorted(leaf, bytes))
		desired |= SMART_META_SORTED;
	/* Release: the entry's bytes become visible with meta, to smart_leaf_read's acquire. */
	status = smart_word_cas(tree, smart_leaf_meta_address(leaf->address, leaf->units), leaf->meta, desired, &seen);
	*published = status == SMART_OK && seen == leaf->meta;
	smart_leaf_unlock(tree, lock);
	return status;
}
