/*
 * trees.h
 *	  Tree records, and the slabs that hang on them.
 */
#ifndef SMART_COMPUTE_TREES_H
#define SMART_COMPUTE_TREES_H

#include "base/bytes.h"
#include "compute/allocate/pages.h"

enum smart_record_state
{
	SMART_RECORD_PLAIN,    /* a tree if it has an id, else free */
	SMART_RECORD_MAKING,   /* a memory node is asked for the root slot; in its bucket, but no tree yet */
	SMART_RECORD_LOST,     /* a tree of which a part was on a memory node that is lost */
	SMART_RECORD_DROPPING, /* without id and slabs: a memory node has yet to be told */
};

/*
 * A tree's record.  Records never move and their pages are never used for anything else, so a stale record number
 * finds a record, if of another tree.
 *
 *	  offset  bytes  changed
 *	       0     64  id: stored under the partition's and the directory's lock; the
 *	                 rest under the directory's
 *	      64     64  the root slot: CAS, by the tree (in an extent map: unused)
 *	     128     64  pages, slabs: stored under the partition's lock, loaded by
 *	                 anyone; notes: stored and loaded by the tree's user
 *	     192    552  lists of slabs: under the partition's lock
 *	     744     24  state: stored under the directory's lock, from plain to lost also under
 *	                 the partition's; home, moves_at: under the page allocator's, too; the rest
 *	                 under the directory's.  Only extent maps use it.
 */
struct smart_record
{
	uint64_t id; /* 0: the record is free */
	struct smart_tree_owner owner;
	uint32_t next;               /* in its bucket, or in the list of free or dropping records */
	uint32_t page;               /* first record of a page: first record of the page made before it */
	fabric_address root_address; /* of the root slot on a memory node; 0: it is the one here */

	smart_slot root;
	uint64_t unused1[7];

	uint64_t pages;
	uint64_t slabs;
	uint64_t note[SMART_TREE_NOTES];

	uint32_t queue_head; /* slabs with retired blocks, stamps ascending */
	uint32_t queue_tail;
	uint32_t full;                   /* slabs without a free block */
	uint32_t partial[SMART_CLASSES]; /* slabs with one, by class */
	uint64_t dropped;                /* dropping: the id that it had */
	uint32_t state;                  /* enum smart_record_state */
	uint32_t node;                   /* the memory node that has the root slot */
	uint32_t home;                   /* the memory node that pages come from + 1, or 0: placement.h */
	uint32_t moves_at;               /* with so many pages a large tree takes them from another node */
};

/* What differs with where a space's blocks lie: in its own region, or on memory nodes. */
struct smart_storage
{
	/* The page that an address lies in, or 0: it is in no page that can be handed out.  Lock-free. */
	uint32_t (*page_of)(const struct smart_space *space, fabric_address address);

	/* Makes a run of pages zeros.  No lock held.  Errors of the fabric. */
	smart_status (*clear)(struct smart_space *space, uint32_t page, unsigned int order);

	/*
	 * There was no run of this order for a tree, by its record: sees to it that there is one, unless others are faster
	 * in using it up.  No lock held.  *deadline_ns: 0 in an allocation's first call, which sets it.  SMART_NO_SPACE,
	 * SMART_DISK_FULL, SMART_UNREACHABLE, SMART_INTERRUPTED, SMART_TIMEOUT, SMART_NO_MEMORY, SMART_CORRUPT.
	 */
	smart_status (*grow)(struct smart_space *space, uint32_t record, unsigned int order, uint64_t *deadline_ns);

	/* As smart_space_create_tree. */
	smart_status (*create_tree)(struct smart_space *space, const struct smart_tree_owner *owner, uint64_t *id,
								fabric_address *root);

	/* A tree's record is out of its bucket, and has neither slabs nor its id any more.  Under the directory's lock. */
	void (*tree_dropped)(struct smart_space *space, uint32_t record, uint64_t id);

	/* Sets size, max_size, used and own.  Under the page allocator's lock. */
	void (*usage)(const struct smart_region *region, struct smart_space_usage *usage);
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
_Static_assert(offsetof(struct smart_record, pages) == 128, "so have the counts");
_Static_assert(offsetof(struct smart_record, queue_head) == 192, "and the lists begin behind them");
_Static_assert(offsetof(struct smart_record, dropped) == 744, "what an extent map adds");
_Static_assert(SMART_PAGE_BYTES >> SMART_RECORD_SHIFT == 1u << SMART_RECORD_PAGE_SHIFT, "16 units to a page");

static inline struct smart_record *
smart_record_at(const struct smart_region *region, uint32_t number)
{
	smart_assert(number != 0);
	return (struct smart_record *) (region->base + ((uint64_t) number << SMART_RECORD_SHIFT));
}

/* Stored with release when a tree is made: a client that sees the id sees its root slot (smart_record_make). */
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

/* Stored with release: a client that sees that a tree is no longer being made sees where its root is. */
static inline void
smart_record_set_state(struct smart_record *record, enum smart_record_state state)
{
	__atomic_store_n(&record->state, (uint32_t) state, __ATOMIC_RELEASE);
}

/* As smart_storage.page_of. */
static inline uint32_t
smart_page_of(const struct smart_space *space, fabric_address address)
{
	return space->storage->page_of(space, address);
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

/* Puts the record of a tree with this id into its bucket. */
extern void smart_record_link(struct smart_space *space, uint32_t number, uint64_t id);

/* Takes the record with this id out of its bucket; its number, or 0. */
extern uint32_t smart_record_unlink(struct smart_space *space, uint64_t id);

/* Makes a record that is in no list free. */
extern void smart_record_free(struct smart_space *space, uint32_t number);

/* Is there a record with this id in its bucket? */
extern bool smart_record_exists(const struct smart_space *space, uint64_t id);

/* The record behind this one in the order of pages, newest first; 0: the first one, and behind the last. */
extern uint32_t smart_record_next(const struct smart_region *region, uint32_t number);

#endif /* SMART_COMPUTE_TREES_H */
