/*
 * values.h
 *	  Values of a leaf's entries: words behind the entries, the first one's last (V1-V4).
 *
 * All of this is for trees with values, which lie on a remote provider: the leaf is a copy in this client's memory.
 * Where the words lie in a leaf is in leaf.h.
 */
#ifndef SMART_TREE_VALUES_H
#define SMART_TREE_VALUES_H

#include "tree/block/handle.h"

/* Can a key of this tree be so long? */
static inline bool
smart_value_fits_key(const struct smart_tree *tree, size_t key_length)
{
	return tree->options.fixed_length != 0 ? key_length == tree->options.fixed_length
										   : key_length > 0 && key_length <= SMART_KEY_MAX;
}

/* Is the key as long as this tree's may be, with a value behind it that is not too large? */
static inline bool
smart_value_is_behind(const struct smart_tree *tree, const uint8_t *entry, size_t key_length)
{
	uint64_t value;

	if (!smart_value_fits_key(tree, key_length))
		return false;
	memcpy(&value, entry + key_length, sizeof(value));
	return value <= SMART_VALUE_MAX;
}

/* The word of the value behind an entry's key. */
static inline uint64_t
smart_value_behind(const uint8_t *entry, size_t key_length)
{
	uint64_t value;

	memcpy(&value, entry + key_length, sizeof(value));
	return smart_value_word(value);
}

/* The number of the key's entry; -1: it is not there. */
extern int smart_leaf_find(const struct smart_leaf *leaf, const struct smart_key *key);
/* V2: marks a live leaf, which is not locked, from the meta that was read.  *marked false: it has changed otherwise. */
extern smart_status smart_values_mark(struct smart_tree *tree, struct smart_leaf *leaf, bool *marked);
/*
 * V3: freezes the words of all entries whose byte at the leaf's depth is from or above, if the leaf is marked; the copy
 * has their last values then.  *gone: the leaf has been replaced by another client, and was retired.
 */
extern smart_status
smart_values_freeze(struct smart_tree *tree, const struct smart_leaf *leaf, unsigned int from, bool *gone);

#endif /* SMART_TREE_VALUES_H */
