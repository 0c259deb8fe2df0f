/*
 * bulk.h
 *	  A bulk delete under way.
 */
#ifndef SMART_TREE_BULK_H
#define SMART_TREE_BULK_H

#include "tree/block/cursor.h"
#include "tree/write/remove.h"
#include "tree/write/sweep.h"

struct smart_readahead;

/* A bulk delete, the removal of many, or the weeding of one leaf. */
struct smart_bulk
{
	struct smart_tree *tree;
	const struct smart_victims *victims;
	bool dead_only; /* the cursor is a key that is to go, and entries that stay are not counted */
	struct smart_cursor cursor;
	struct smart_sweep *sweep;     /* NULL: the tree cannot be swept */
	struct smart_readahead *ahead; /* remote; NULL on a direct provider */
	struct smart_round *round;     /* leaves that are to lose entries with others; NULL: each loses them at once */
	struct smart_blocked_points *blocked; /* NULL: there are no cached results */
	uint8_t *entry;                       /* the whole bytes of the entry that is asked about */
	unsigned int depth;                   /* up to which entry holds the cursor's bytes */
	uint64_t visited;
	uint64_t removed;
};

/*
 * smart_drop callback, of a leaf below the cursor, with depth UINT_MAX before the leaf's first entry: is it to go?  If so,
 * whoever wants to be told of it has been, and what is cached of it is blocked.
 */
extern bool
smart_bulk_leave_out(void *argument, const struct smart_leaf *leaf, const uint8_t *suffix, unsigned int length);

/* ---- many leaves together (bulk_round.c) ---- */

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
 * Removes what is to go from the leaves of the keys, as far as there is room for leaves and their locks are free.  The bulk's
 * cursor goes anywhere.  Within no operation.  Afterwards each key's leaf has no dead entries any more, or has to be seen to
 * by itself, or with the next round.
 */
extern smart_status smart_round_execute(struct smart_round *round, struct smart_bulk *bulk);
/* The next key, from *number on, whose leaf has to be seen to by itself; false: there is none. */
extern bool
smart_round_next_alone(const struct smart_round *round, unsigned int *number, struct smart_key *key, int *limit);
/* Keeps the keys for the next round, and forgets all others. */
extern void smart_round_keep_open(struct smart_round *round);

#endif /* SMART_TREE_BULK_H */
