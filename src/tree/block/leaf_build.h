/*
 * leaf_build.h
 *	  Lists of entries, and leaves that are made from them.
 */
#ifndef SMART_TREE_LEAF_BUILD_H
#define SMART_TREE_LEAF_BUILD_H

#include "tree/block/leaf.h"

/* One entry from position base of its list on: head ‖ tail. */
struct smart_ref
{
	const uint8_t *head;
	const uint8_t *tail;
	uint16_t head_length;
	uint16_t tail_length;
	uint32_t value; /* with values: how far behind tail its word lies; 0: what lies there is no word yet */
	uint64_t rank;  /* the tail's first eight bytes, as a number: orders most entries of one leaf */
};

static inline unsigned int
smart_ref_byte(const struct smart_ref *ref, unsigned int position)
{
	smart_assert(position < (unsigned int) ref->head_length + ref->tail_length);
	return position < ref->head_length ? ref->head[position] : ref->tail[position - ref->head_length];
}

static inline unsigned int
smart_ref_length(const struct smart_ref *ref)
{
	return (unsigned int) ref->head_length + ref->tail_length;
}

struct smart_list
{
	unsigned int base;
	uint32_t count;
	uint32_t capacity;
	struct smart_ref *refs;
};

/*
 * Appends the leaf's entries whose byte at its depth lies in lo..hi, in
 * order, each key's once (I7).  The list's base becomes the leaf's depth; a list that collects from
 * several leaves collects from neighbours of one depth, in ascending order.
 */
extern smart_status smart_list_collect(struct smart_tree *tree, struct smart_list *list, const struct smart_leaf *leaf,
									   unsigned int lo, unsigned int hi);
/* Puts one more entry into a list, key, of which length bytes are stored. */
extern smart_status
smart_list_add(struct smart_tree *tree, struct smart_list *list, const struct smart_key *key, size_t length);
/* Takes it out again. */
extern void smart_list_take_out(struct smart_list *list, const struct smart_key *key, size_t length);
/*
 * The same as smart_list_add, if a leaf of the list's entries has room for it (smart_leaf_fits); else the list is as it was.
 */
extern smart_status smart_list_try_add(struct smart_tree *tree, struct smart_list *list, const struct smart_key *key,
									   size_t length, bool *added);
/* Makes room for so many references in all. */
extern smart_status smart_list_reserve(struct smart_tree *tree, struct smart_list *list, uint32_t count);
/* Copies an entry without its first skip bytes; returns how many it copied. */
extern unsigned int smart_ref_put(uint8_t *target, const struct smart_ref *ref, unsigned int skip);
/* How many leading bytes two entries share. */
extern unsigned int smart_ref_common(const struct smart_ref *a, const struct smart_ref *b);
/* Bytes of a leaf, rear included, with entries [from..to) cut by skip bytes in front. */
extern size_t smart_leaf_bytes_for(const struct smart_tree *tree, const struct smart_list *list, uint32_t from,
								   uint32_t to, unsigned int skip);
/*
 * The length in bytes up to which a leaf grows if its entries share prefix bytes behind its depth: the leaf size, plus what
 * they share beyond half of it.  Without that, a few entries would need a chain of nodes, which is ten times as long.
 */
extern size_t smart_leaf_most(const struct smart_tree *tree, unsigned int prefix);
/* Does a leaf of entries [from..to), cut by skip bytes in front, stay within that length?  One entry always fits. */
extern bool smart_leaf_fits(const struct smart_tree *tree, const struct smart_list *list, uint32_t from, uint32_t to,
							unsigned int skip);
/*
 * Makes a leaf (new) for bytes lo..hi at depth with entries [from..to) of the
 * list and about reserve bytes of room, as far as a leaf grows.  key shares its
 * first depth bytes with all entries.  *link leads to it under lo.
 */
extern smart_status smart_leaf_build(struct smart_tree *tree, const struct smart_key *key, unsigned int depth,
									 unsigned int lo, unsigned int hi, const struct smart_list *list, uint32_t from,
									 uint32_t to, size_t reserve, smart_slot *link);
/* The same in a block of this client's own that room leads to, and is long enough, in this state. */
extern smart_status smart_leaf_build_in(struct smart_tree *tree, const struct smart_key *key, unsigned int depth,
										unsigned int lo, unsigned int hi, const struct smart_list *list, uint32_t from,
										uint32_t to, smart_slot room, enum smart_block_state state, smart_slot *link);
/* How many units smart_leaf_build takes, for entries that are cut by skip bytes in front. */
extern unsigned int smart_leaf_units_for(const struct smart_tree *tree, const struct smart_list *list, uint32_t from,
										 uint32_t to, unsigned int skip, size_t reserve);
/* The same for one entry: key, of which length bytes are stored. */
extern smart_status
smart_leaf_build_one(struct smart_tree *tree, const struct smart_key *key, size_t length, unsigned int depth,
					 unsigned int lo, unsigned int hi, size_t reserve, smart_slot *link);

#endif /* SMART_TREE_LEAF_BUILD_H */
