/*
 * promise.h
 *	  Entries that meta counts before they are WRITTEN (src/README, C5a).
 */
#ifndef SMART_TREE_PROMISE_H
#define SMART_TREE_PROMISE_H

#include "tree/block/handle.h"
#include "tree/block/leaf.h"

/* Do appends of this client promise, instead of taking the leaf's lock? */
static inline bool
smart_promises(const struct smart_tree *tree)
{
	return tree->options.retractions != 0 && tree->options.shared && !tree->direct && !tree->options.value &&
		   tree->options.fixed_length != 0;
}

/* Before a promise: the client has to know what the count of retractions was. */
extern smart_status smart_promise_prepare(struct smart_tree *tree);
/*
 * The entries that this client has promised by meta are WRITTEN.  *kept: they are in the leaf for good; false: they were
 * taken back.
 */
extern smart_status
smart_promise_confirm(struct smart_tree *tree, const struct smart_leaf *leaf, uint64_t promised, bool *kept);
/* The leaf is good, and live or sealed.  *settled: what it has was there for good; false: it has changed since. */
extern smart_status smart_promise_settle(struct smart_tree *tree, const struct smart_leaf *leaf, bool *settled);
/* The same, for a client that has found the key there. */
extern smart_status
smart_promise_vouch(struct smart_tree *tree, const struct smart_leaf *leaf, const struct smart_key *key, bool *settled);
/*
 * The leaf, which has an open promise, as it is without: locked, since what was promised may still be WRITTEN, and nobody
 * else may append there.
 */
extern void
smart_promise_leave_out(const struct smart_tree *tree, const struct smart_key *key, struct smart_leaf *leaf);
/*
 * Takes back a promise that its client does not keep.  The leaf was found strictly, and READ, as it is again.
 * *good: it has what it says, and is locked if the promise was taken back; false: it has changed.
 */
extern smart_status
smart_promise_retract(struct smart_tree *tree, const struct smart_key *key, struct smart_leaf *leaf, bool *good);

#endif /* SMART_TREE_PROMISE_H */
