/*
 * apply.h
 *	  Changes of a log come into a tree: each key's last one (src/README, L4).
 */
#ifndef SMART_COMPUTE_PARTITION_APPLY_H
#define SMART_COMPUTE_PARTITION_APPLY_H

#include "compute/partition/log.h"
#include "tree/tree.h"

/* Has the tree the record's key, as far as its owner knows? */
enum smart_apply_tree
{
	SMART_APPLY_UNKNOWN,
	SMART_APPLY_ABSENT,
	SMART_APPLY_THERE
};

struct smart_apply_item
{
	const struct smart_log_record *record;
	uint64_t order; /* of the records of a key; the greatest one counts */
	enum smart_apply_tree tree;
};

/* Puts them into the order of their keys, and of one key the last record first. */
extern void smart_apply_sort(struct smart_apply_item *items, size_t count);

/*
 * Gives the keys of the items the states that their last records say, whatever they had; by nobody but the range's owner, one
 * client at a time.  The items are in their order.  The errors of the tree: some keys may have theirs.
 */
extern smart_status smart_apply(struct smart_tree *tree, struct smart_env *env, bool values,
								const struct smart_apply_item *items, size_t count);

#endif /* SMART_COMPUTE_PARTITION_APPLY_H */
