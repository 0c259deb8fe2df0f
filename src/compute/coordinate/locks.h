/*
 * locks.h
 *	  The locks of a compute node: a fixed table of exclusive locks that all of its clients share.
 *
 * A server makes them of LWLocks, the tests of mutexes.  Acquire waits for the holder and cannot fail: every lock is
 * held for a bounded stretch of local work, and a client holds at most one of each group at a time.  Order, outermost
 * first:
 *
 *	  a leaf's lock, the directory's, a partition's, the page allocator's
 */
#ifndef SMART_COMPUTE_LOCKS_H
#define SMART_COMPUTE_LOCKS_H

#define SMART_LOCK_PARTITIONS 64   /* slab lists of a tree: by the tree's id */
#define SMART_LOCK_LEAVES     1024 /* appenders to a leaf: by its address */

#define SMART_LOCK_PARTITION(n) ((unsigned int) (n))
#define SMART_LOCK_PAGES        (SMART_LOCK_PARTITIONS)
#define SMART_LOCK_DIRECTORY    (SMART_LOCK_PARTITIONS + 1)
#define SMART_LOCK_LEAF(n)      (SMART_LOCK_PARTITIONS + 2 + (unsigned int) (n))
#define SMART_LOCK_COUNT        (SMART_LOCK_PARTITIONS + 2 + SMART_LOCK_LEAVES)

struct smart_lock_table
{
	void (*acquire)(struct smart_lock_table *table, unsigned int lock);
	void (*release)(struct smart_lock_table *table, unsigned int lock);
};

#endif /* SMART_COMPUTE_LOCKS_H */
