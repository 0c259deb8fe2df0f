/*
 * trees.h
 *	  Tree records, and the slabs that hang on them.
 */
#ifndef SMART_COMPUTE_TREES_H
#define SMART_COMPUTE_TREES_H

#include "base/bytes.h"
#include "compute/pages.h"

enum smart_record_state
{
	SMART_RECORD_PLAIN,    /* a tree if it has an id, else free */
	SMART_RECORD_MAKING,   /* a memory node is asked for the root slot; in its bucket, but no tree yet */
	SMART_RECORD_LOST,     /* a tree of which a part was on a memory node that is lost */
	SMART_RECORD_DROPPING, /* without id and slabs: a memory node has yet to be told */
};

/*
 * A tree's record.  Records never move and their pages are never used for
 * anything else, so a stale record number finds a record, if of another tree.
 *
 *	  offset  bytes  changed
 *	       0     64  id: stored under the partition's and the directory's lock; the
 *	                 rest under the directory's
 *	      64     64  the root slot: CAS, by the tree (in a book: unused)
 *	     128     64  pages, slabs: stored under the partition's lock, loaded by
 *	                 anyone; counters: added to by anyone
 *	     192    552  lists of slabs: under the partition's lock
 *	     744     24  state: stored under the directory's lock, from plain to lost also under
 *	                 the partition's; the rest under the directory's.  Only books use it.
 */
struct smart_record
{
	uint64_t id; /* 0: the record is free */
	struct smart_tree_owner owner;
	uint32_t next;               /* in its bucket, or in the list of free or dropping records */
	uint32_t page;               /* first record of a page: first record of the page made before it */
	fabric_address root_address; /* in a book */

	smart_slot root;
	uint64_t unused1[7];

	uint64_t pages;
	uint64_t slabs;
	int64_t counter[SMART_TREE_COUNTERS];
	uint64_t unused2[2];

	uint32_t queue_head; /* slabs with retired blocks, stamps ascending */
	uint32_t queue_tail;
	uint32_t full;                   /* slabs without a free block */
	uint32_t partial[SMART_CLASSES]; /* slabs with one, by class */
	uint64_t dropped;                /* dropping: the id that it had */
	uint32_t state;                  /* enum smart_record_state */
	uint32_t node;                   /* the memory node that has the root slot */
	uint32_t unused3[2];
};

/* A record's number is its offset in the region in units of 256 bytes, 16 to a page. */
#define SMART_RECORD_SHIFT           8
#define SMART_RECORD_STEP            3u
#define SMART_RECORDS_A_PAGE         5u
#define SMART_RECORD_PAGE_SHIFT      4
#define SMART_PAGE_OF_RECORD(number) ((number) >> SMART_RECORD_PAGE_SHIFT)

_Static_assert(sizeof(struct smart_record) == SMART_RECORD_STEP << SMART_RECORD_SHIFT, "a record is some units");
_Static_assert(sizeof(struct smart_record) * SMART_RECORDS_A_PAGE <= SMART_PAGE_BYTES, "five records fill a page");
_Static_assert(offsetof(struct smart_record, root) == 64, "the root slot has a cache line of its own");
_Static_assert(offsetof(struct smart_record, pages) == 128, "so have the counters");
_Static_assert(offsetof(struct smart_record, queue_head) == 192, "and the lists begin behind them");
_Static_assert(offsetof(struct smart_record, dropped) == 744, "what a book adds");
_Static_assert(SMART_PAGE_BYTES >> SMART_RECORD_SHIFT == 1u << SMART_RECORD_PAGE_SHIFT, "16 units to a page");

static inline struct smart_record *
smart_record_at(const struct smart_region *region, uint32_t number)
{
	smart_assert(number != 0);
	return (struct smart_record *) (region->base + ((uint64_t) number << SMART_RECORD_SHIFT));
}

/* Stored with release when a tree is made: who sees the id sees its root slot.  Partner: smart_space_create_tree. */
static inline uint64_t
smart_record_id(const struct smart_record *record)
{
	return __atomic_load_n(&record->id, __ATOMIC_ACQUIRE);
}

static inline enum smart_record_state
smart_record_state(const struct smart_record *record)
{
	return (enum smart_record_state) __atomic_load_n(&record->state, __ATOMIC_ACQUIRE);
}

/* Stored with release: who sees that a tree is no longer being made sees where its root is. */
static inline void
smart_record_set_state(struct smart_record *record, enum smart_record_state state)
{
	__atomic_store_n(&record->state, (uint32_t) state, __ATOMIC_RELEASE);
}

/* The lock word of a leaf of this space, which is no book. */
static inline uint64_t
smart_leaf_lock_word(const struct smart_space *space, fabric_address leaf, smart_class class)
{
	return smart_load_acquire(
		(const uint64_t *) (space->region->base + fabric_offset(smart_leaf_lock_address(leaf, class))));
}

static inline unsigned int
smart_partition_lock(uint64_t tree)
{
	return SMART_LOCK_PARTITION(tree % SMART_LOCK_PARTITIONS);
}

/* The number of a tree's record, or 0.  Takes the directory's lock unless this client asked lately. */
extern uint32_t smart_record_find(struct smart_space *space, uint64_t tree);

/* Where the root slot of a record's tree is.  No lock. */
extern fabric_address smart_record_root(const struct smart_space *space, uint32_t number);

/* ---- records; all under the directory's lock ---- */

/*
 * A record with a new id, in its bucket, for a tree whose root slot node (embedded: 0) has or shall have.  Plain and
 * whole, unless state is making.  Errors of smart_pages_take_home.
 */
extern smart_status smart_record_make(struct smart_space *space, const struct smart_tree_owner *owner,
									  enum smart_record_state state, unsigned int node, uint32_t *number);

/* Puts a record with an id into its bucket. */
extern void smart_record_link(struct smart_space *space, uint32_t number);

/* Takes the record with this id out of its bucket; its number, or 0. */
extern uint32_t smart_record_unlink(struct smart_space *space, uint64_t id);

/* Makes a record that is in no list free. */
extern void smart_record_free(struct smart_space *space, uint32_t number);

/* Is there a record with this id in its bucket? */
extern bool smart_record_exists(const struct smart_space *space, uint64_t id);

/* The record behind this one in the order of pages, newest first; 0: the first one, and behind the last. */
extern uint32_t smart_record_next(const struct smart_region *region, uint32_t number);

/* ---- slabs; all under the lock of the tree's partition ---- */

/* How many blocks of a class a slab has, on 1 << *order pages. */
extern unsigned int smart_slab_geometry(smart_class class, unsigned int *order);

/* No lock held: the pages for a slab, zeros.  Errors of smart_pages_take and, in a book, of the fabric. */
extern smart_status smart_slab_prepare(struct smart_space *space, smart_class class, uint32_t *page);

/*
 * Makes a slab of such pages, at the head of its class's list.  False: their memory node was lost meanwhile, and the
 * pages have been given back.
 */
extern bool smart_slab_link(struct smart_space *space, uint32_t record, smart_class class, uint32_t page);

/* The parts of that: the slab's descriptor with all blocks free, and its tree's lists and counts. */
extern void smart_slab_form(const struct smart_region *region, uint32_t record, smart_class class, uint32_t page);
extern void smart_slab_enlist(const struct smart_region *region, uint32_t page);

/* Takes a free block of the first slab of the class, which exists. */
extern fabric_address smart_slab_take_block(struct smart_space *space, uint32_t record, smart_class class);

/* Marks a block retired at epoch; false if it is not a block in use of this tree and class. */
extern bool smart_slab_retire_block(struct smart_space *space, uint32_t record, smart_class class, fabric_address block,
									uint64_t epoch);

/*
 * Frees the retired blocks of the oldest slabs in the queue, as far as the
 * epoch allows, of limit slabs at most.  Slabs that become empty go back to the page
 * allocator.  Returns the pages given back.
 */
extern uint64_t smart_slab_reclaim(struct smart_space *space, uint32_t record, unsigned int limit);

/* Adds the pages of all slabs of a tree to those of their memory nodes. */
extern void smart_slab_count_nodes(const struct smart_space *space, uint32_t record, uint64_t pages[FABRIC_NODES_MAX]);

/* Gives back all slabs of a tree, whatever is in them. */
extern void smart_slab_drop_all(struct smart_space *space, uint32_t record);

#endif /* SMART_COMPUTE_TREES_H */
