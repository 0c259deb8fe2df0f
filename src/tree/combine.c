/*
 * combine.c
 *	  Appends to a leaf of a remote memory node by several clients of a compute node
 *	  at once (write combining): who holds the leaf's lock appends, with its own
 *	  entry, those that others handed in while they waited for it.
 *
 * All entries go by one WRITE at used, and one CAS of meta publishes them (C5).  An
 * entry is looked for in the leaf, and among those in front of it.  That its key was
 * there may be told only if the CAS came about: it proves that the leaf, as it was
 * read, was the authority for the key after the entry had been handed in.
 *
 * What an entry must be like is what its owner would have had to find (C3, C5): the
 * key shares the bytes before the leaf's depth with the holder's, so that the
 * checksum speaks for it, too; it lies within lo..hi, shares the leaf's prefix, and
 * finds room.
 */
#include "tree/internal.h"

#define TAKEN_MAX 64

/* An append on its way. */
struct append
{
	struct smart_tree *tree;
	const struct smart_key *key;   /* the holder's */
	const struct smart_leaf *read; /* the leaf as it was READ */
	struct smart_leaf leaf;        /* with what has been put behind its entries, in the copy of its block */
	uint32_t crc;
	bool sorted;
	unsigned int count;
	struct smart_handed taken[TAKEN_MAX];
	enum smart_combined planned[TAKEN_MAX]; /* what each owner is told if the CAS comes about */
};

smart_status
smart_leaf_lock_or_combine(struct smart_tree *tree, smart_slot link, const struct smart_key *key, size_t length,
						   enum smart_combined *combined)
{
	struct smart_services *services = tree->services;
	struct smart_handed entry = {.tree = tree->options.id,
								 .bytes = key->bytes,
								 .key_length = key->length,
								 .length = (uint32_t) length};

	*combined = SMART_COMBINED_NOT;
	if (services->lock_or_combine == NULL)
		return services->lock_leaf(services, smart_slot_address(link));
	return services->lock_or_combine(services, smart_slot_address(link), &entry, combined);
}

bool
smart_leaf_is_awaited(const struct smart_tree *tree, smart_slot link)
{
	struct smart_services *services = tree->services;

	return services->is_awaited != NULL && services->is_awaited(services, smart_slot_address(link));
}

static void
begin(struct append *append)
{
	append->leaf = *append->read;
	append->crc = smart_meta_crc(append->read->meta);
	append->sorted = true;
}

/* Puts an entry behind the others, in the copy of the leaf. */
static void
put(struct append *append, const struct smart_key *key, size_t length)
{
	struct smart_leaf *leaf = &append->leaf;
	uint8_t *target = (uint8_t *) (uintptr_t) leaf->block + leaf->used;
	unsigned int stored = smart_leaf_put_entry(append->tree, leaf, target, key, length);

	append->sorted = append->sorted && smart_leaf_stays_sorted(leaf, target);
	append->crc = smart_crc32c(append->crc, target, stored);
	leaf->used += stored;
	if (append->sorted)
		leaf->sorted_end = leaf->used;
}

/* Puts an entry of somebody else there, if it belongs there. */
static enum smart_combined
put_taken(struct append *append, const struct smart_handed *entry)
{
	const struct smart_leaf *leaf = &append->leaf;
	struct smart_key key = {.bytes = entry->bytes, .length = entry->key_length};
	unsigned int consumed = leaf->depth + leaf->prefix_length;

	if (entry->key_length <= consumed || memcmp(entry->bytes, append->key->bytes, leaf->depth) != 0 ||
		!smart_leaf_covers(leaf, &key) || !smart_leaf_prefix_matches(leaf, &key))
		return SMART_COMBINED_NOT;
	if (smart_leaf_contains(leaf, &key))
		return SMART_COMBINED_THERE;
	if (smart_stored_bytes(append->tree, entry->length - consumed) > smart_leaf_room(leaf))
		return SMART_COMBINED_NOT;
	if (SMART_FAULT(overwrite))
		begin(append);
	put(append, &key, entry->length);
	return SMART_COMBINED_ADDED;
}

/* Tells the owners what became of their entries. */
static void
settle(struct append *append, smart_status status, bool published)
{
	struct smart_services *services = append->tree->services;

	for (unsigned int i = 0; i < append->count; i++)
	{
		enum smart_combined outcome = published ? append->planned[i] : SMART_COMBINED_NOT;

		/* A batch that failed may have taken effect. */
		if (status != SMART_OK && append->planned[i] == SMART_COMBINED_ADDED)
			outcome = SMART_COMBINED_UNKNOWN;
		services->settle_handed(services, &append->taken[i], outcome);
	}
}

smart_status
smart_leaf_publish_together(struct smart_tree *tree, struct smart_leaf_lock *lock, const struct smart_leaf *leaf,
							const struct smart_key *key, size_t length, bool *published)
{
	struct smart_services *services = tree->services;
	struct smart_blocked blocked;
	struct append append;
	uint64_t desired;
	uint64_t ticket;
	smart_status status;

	smart_assert(leaf->state == SMART_LIVE && leaf->block == tree->leaf_buffer);
	append.tree = tree;
	append.key = key;
	append.read = leaf;
	append.count = 0;
	begin(&append);
	put(&append, key, length);
	if (services->take_handed != NULL)
		append.count = services->take_handed(services, leaf->address, tree->options.id, append.taken, TAKEN_MAX);
	for (unsigned int i = 0; i < append.count; i++)
		append.planned[i] = put_taken(&append, &append.taken[i]);
	smart_assert(append.leaf.used + SMART_LEAF_REAR_BYTES <= leaf->units * SMART_UNIT);
	desired = smart_meta_make(append.leaf.used, SMART_LIVE, leaf->hi, append.crc);
	if (append.sorted)
		desired |= SMART_META_SORTED;
	blocked = smart_stub_block(tree, leaf->link);
	status = smart_leaf_publish_bytes(tree, lock, leaf, leaf->block + leaf->used, append.leaf.used - leaf->used,
									  desired, NULL, published);
	ticket = smart_stub_unblock(tree, &blocked);
	if (*published)
		smart_stub_keep(tree, leaf, key, desired, ticket);
	settle(&append, status, *published);
	services->unlock_leaf(services, lock->leaf);
	return status;
}
