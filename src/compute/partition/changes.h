/*
 * changes.h
 *	  What a range owner's log has that the trees of its ranges lack, and operations that look at both (src/README, Log).
 *
 * A compute node has one log (log.h) and one table of changes, in memory that its clients share.  An insert, an update
 * or a removal is answered for when the log has it.  The trees get what has come together of a range later, each key once:
 * smart_changes_apply.  Whatever changes a range's tree goes through here, and what looks at the tree by itself, such as
 * a scan, applies the changes first.
 */
#ifndef SMART_COMPUTE_PARTITION_CHANGES_H
#define SMART_COMPUTE_PARTITION_CHANGES_H

#include "compute/partition/log.h"
#include "tree/tree.h"

struct smart_changes_options
{
	struct smart_log_place place;
	unsigned int flights; /* WRITEs of the log at a time, at most */
	unsigned int ranges;
	unsigned int buckets; /* of a range's hash table, a power of two */
	bool values;          /* the trees' entries have some */
};

struct smart_changes;

/* Bytes of the shared memory, and an empty log there and at its place.  The errors of a batch. */
extern size_t smart_changes_size(const struct smart_changes_options *options);
extern smart_status
smart_changes_open(struct smart_changes *changes, struct fabric *fabric, const struct smart_changes_options *options);

/* A client's turn in a range (partition.h), with its handle on that range's tree. */
struct smart_turn
{
	struct smart_changes *changes;
	struct smart_tree *tree;
	struct fabric *fabric;
	struct smart_env *env;
	unsigned int range;
	uint32_t tenure;
	uint32_t timeout_ms; /* for what others are about */
};

/*
 * As the tree's (tree.h), within a turn.  What they answer is durable.  get: in trees without values *value is not set.
 * Those that change something: SMART_NO_SPACE: the log is full, and nothing has happened; relieve it, out of the turn,
 * and try again.  SMART_INTERRUPTED, SMART_TIMEOUT and the errors of a batch: it may have happened.  Progress: a client
 * waits for its log's WRITEs, and for another client's if that has taken the record along.
 */
extern smart_status
smart_logged_get(struct smart_turn *turn, const uint8_t *key, size_t key_length, uint64_t *value, bool *found);
extern smart_status
smart_logged_insert(struct smart_turn *turn, const uint8_t *entry, size_t key_length, size_t length, bool *added);
extern smart_status
smart_logged_update(struct smart_turn *turn, const uint8_t *key, size_t key_length, uint64_t value, bool *found);
extern smart_status smart_logged_remove(struct smart_turn *turn, const uint8_t *key, size_t key_length, bool *removed);

#define SMART_CHANGES_ALL SIZE_MAX

/*
 * most: SMART_CHANGES_ALL: all changes of the range that were durable when this was called are in its tree when it returns.
 * Else the changes of so many keys at most: the first piece of a round, which has what was durable when it began, or the
 * next one.  Their log is free when the round has ended.  *count: how many keys this call has put there.  One client at a
 * time; others wait.  The errors of the tree, SMART_INTERRUPTED, SMART_TIMEOUT: some may be.
 */
extern smart_status smart_changes_apply(struct smart_turn *turn, size_t most, unsigned int *count);

/* Space of the log that is not needed any more serves again.  The errors of a batch. */
extern smart_status smart_changes_release(struct smart_changes *changes, struct fabric *fabric, struct smart_env *env);

/*
 * Is a range to be applied?  *range: the one with the oldest change, of those that no client is about to apply, if
 * seven eighths of the log lie behind that change; or if its round has begun; or if its turn has come: ranges take turns, as
 * many as have changes in the course of seven eighths of the log, once it has been half full, and one client is told of each
 * turn.  full: the caller was refused; a younger change counts, too, if no range has an older one.  False with full: another
 * client is about the oldest, or smart_changes_release is all it takes.  Wait-free.
 */
extern bool smart_changes_due(struct smart_changes *changes, bool full, unsigned int *range);

/*
 * What a log whose owner changes it no more has of the turn's range, of a tenure, comes into the range's tree, before the
 * first turn of its next owner (L3).  The errors of the tree and of a batch: to be done again.
 */
extern smart_status smart_changes_settle(struct smart_turn *turn, const struct smart_log_place *place, uint32_t tenure);

#endif /* SMART_COMPUTE_PARTITION_CHANGES_H */
