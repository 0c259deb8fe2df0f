/*
 * tree_changes.h
 *	  How often the tree of any index was lost, given up or replaced: what the processes of a server tell each other about it.
 */
#ifndef SMART_AM_TREE_CHANGES_H
#define SMART_AM_TREE_CHANGES_H

/* Asks the server for memory (shmem_request_hook), and makes the counter (shmem_startup_hook). */
extern void smart_changes_request(void);
extern void smart_changes_make(void);

/*
 * How often the tree of any index was lost, given up or replaced.  A session that has seen the same number since it
 * checked an index need not check again.  0 without shared memory.
 */
extern uint32 smart_changes(void);

/* Counts one more; called after all that others have to see is stored.  Returns the new number. */
extern uint32 smart_changes_announce(void);

/*
 * Who gives up a tree stores that, and announces it afterwards.  In between others may have seen it, with the number of before: they
 * check for duplicates without the tree, while somebody who has the tree, and the same number, looks for them there.  So it is
 * foretold before it is stored, until it is announced; and who goes on without a tree that others may have announces a change
 * himself if any is foretold.  src/README, J1.
 */
extern void smart_changes_foretell(void);
extern bool smart_changes_are_foretold(void);

/* Sleeps until the next change, but not longer than so many milliseconds.  Interruptible. */
extern void smart_changes_wait(long timeout_ms);

#endif /* SMART_AM_TREE_CHANGES_H */
