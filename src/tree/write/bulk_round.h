/*
 * bulk_round.h
 *	  Leaves of many keys that lose entries together.
 */
#ifndef SMART_TREE_BULK_ROUND_H
#define SMART_TREE_BULK_ROUND_H

#include "tree/write/remove.h"

/* What is to go from the leaves. */
struct smart_round_drop
{
	void (*begin)(void *argument, const struct smart_key *key); /* the leaf of this key comes next */
	bool (*dead)(void *argument, const struct smart_leaf *leaf, const uint8_t *suffix, unsigned int length);
	void *argument;
	struct smart_blocked_points *blocked; /* of what dead() takes for dead; NULL: it blocks none */
	uint64_t removed;                     /* counts entries */
};

/* Keys of leaves that are to lose entries together. */
struct smart_round;

/* Released with env->release.  NULL: the tree's leaves are rewritten one by one, also where memory is short. */
extern struct smart_round *smart_round_open(struct smart_tree *tree);
extern bool smart_round_is_empty(const struct smart_round *round);
/* Has it a key for each leaf that it has room for? */
extern bool smart_round_is_full(const struct smart_round *round);
/*
 * Copies a key, which is above those that are there; false: there is no room.  limit: -1; or its leaf has to cover the bytes
 * from the key's last one, at the leaf's depth, up to this one.
 */
extern bool smart_round_add(struct smart_round *round, const uint8_t *bytes, size_t length, int limit);
/*
 * Removes what is to go from the leaves of the keys, as far as there is room for leaves and their locks are free.
 * Within no operation.  Afterwards each key's leaf has no dead entries any more, or has to be seen to
 * by itself, or with the next round.
 */
extern smart_status smart_round_execute(struct smart_round *round, struct smart_round_drop *drop);
/* The next key, from *number on, whose leaf has to be seen to by itself; false: there is none. */
extern bool
smart_round_next_alone(const struct smart_round *round, unsigned int *number, struct smart_key *key, int *limit);
/* Keeps the keys for the next round, and forgets all others. */
extern void smart_round_keep_open(struct smart_round *round);

#endif /* SMART_TREE_BULK_ROUND_H */
