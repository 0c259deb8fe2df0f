/*
 * append.h
 *	  C5: entries appended to a leaf whose lock is held.
 */
#ifndef SMART_TREE_APPEND_H
#define SMART_TREE_APPEND_H

#include "tree/block/lock.h"
#include "tree/tree.h"

/* The entries behind one that is inserted, in order: they go along if they belong into its leaf. */
struct smart_company
{
	struct smart_addition *next;
	unsigned int count;
};

/*
 * Takes the local lock of a leaf for an insert: *combined is ADDED or THERE if another client
 * did it (nothing is locked then); or UNKNOWN, if it may have done it.
 */
extern smart_status smart_leaf_lock_or_combine(struct smart_tree *tree, smart_slot link, const struct smart_key *key,
											   size_t length, enum smart_combined *combined);
/*
 * Publishes the key's entry of length bytes, on a remote provider with those that others have handed in, and unlocks.
 * The leaf is locked, live, covers the key and has room.  *published false: another client narrowed or sealed the leaf
 * first, and nothing happened.  company: on a direct provider those at its beginning that go along are settled, too.
 */
extern smart_status
smart_leaf_publish(struct smart_tree *tree, struct smart_leaf_lock *lock, const struct smart_leaf *leaf,
				   const struct smart_key *key, size_t length, const struct smart_company *company, bool *published);

/*
 * The same in shared mode by a promise (C5a), where smart_promises() says so: the leaf's local lock is held, and it is
 * not locked in its meta.  *published false: the leaf has changed, or the promise was taken back.
 */
extern smart_status smart_leaf_promise(struct smart_tree *tree, const struct smart_leaf *leaf,
									   const struct smart_key *key, size_t length, bool *published);

/* A leaf that entries are put to the end of, in the copy of its block that was READ; an append publishes them together. */
struct smart_grown
{
	struct smart_leaf leaf; /* with those that have been put there */
	uint32_t crc;
	bool sorted;
};

extern void smart_grown_begin(struct smart_grown *grown, const struct smart_leaf *read);
/* Does an entry of length bytes, which shares the leaf's prefix, find room? */
extern bool smart_grown_fits(const struct smart_tree *tree, const struct smart_grown *grown, size_t length);
/* value: the word of its value, in a tree with values. */
extern void smart_grown_put(const struct smart_tree *tree, struct smart_grown *grown, const struct smart_key *key,
							size_t length, uint64_t value);
/* The meta that publishes what has been put there. */
extern uint64_t smart_grown_meta(const struct smart_grown *grown);

/* What came of an append by a leaf hint, or a leaf's copy. */
enum smart_appended
{
	SMART_APPENDED_NOT,  /* nothing was done: there is no hint, or it was too old */
	SMART_APPENDED_FULL, /* the same: by its hint the leaf has no room, or is not for this key */
	SMART_APPENDED_ADDED,
	SMART_APPENDED_TWICE /* the key was there, and by a hint the leaf has it once more */
};

/*
 * Appends the key's entry of length bytes to the leaf that place leads to, if there is
 * a hint that says that this can be done.  The leaf's local lock is held, so that it
 * stays what the hint says, but for merges.
 */
extern smart_status
smart_append_by_leaf_hint(struct smart_tree *tree, const struct smart_place *place, const struct smart_key *key,
						  size_t length, enum smart_appended *appended);

/*
 * The same by the leaf's copy (A5), with those that others have handed in.  The lock is let go when the append is posted:
 * SMART_APPENDED_NOT without the lock says that another client has changed the leaf.
 */
extern smart_status smart_append_by_copy(struct smart_tree *tree, const struct smart_place *place,
										 const struct smart_key *key, size_t length, enum smart_appended *appended);

#endif /* SMART_TREE_APPEND_H */
