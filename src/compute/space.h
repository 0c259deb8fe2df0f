/*
 * space.h
 *	  The memory of a region: pages, slabs of blocks, and the directory of trees.
 *
 *	  page       4 KiB; chunks of 2 MiB keep a map of theirs
 *	  slab       1..16 neighbouring pages of one tree and one class, for as long as
 *	             the slab lives (I6: type-stable memory)
 *	  block      a leaf or a node, of the slab's class
 *	  record     a tree's entry in the directory: who owns it, its root slot, its slabs
 *
 * All of it lies in the region, so that a region that is closed cleanly is
 * whole again when it is mapped the next time, and nothing is lost with a
 * client.  Functions take the locks that they need (locks.h); callers hold none of
 * these but a leaf's.
 */
#ifndef SMART_COMPUTE_SPACE_H
#define SMART_COMPUTE_SPACE_H

#include "base/status.h"
#include "compute/epoch.h"
#include "compute/locks.h"
#include "compute/region.h"
#include "tree/layout.h"

#define SMART_TREE_COUNTERS 4
#define SMART_SPACE_RECENT  32 /* trees that a client finds without the directory */

/* Whom a tree belongs to.  The space does not look at it. */
struct smart_tree_owner
{
	uint32_t tablespace;
	uint32_t database;
	uint32_t relation;    /* relfilenode */
	int32_t backend;      /* temporary trees: the backend's number; else -1 */
	uint64_t creator;     /* full transaction id */
	uint64_t incarnation; /* temporary trees: of the server's start */
	uint32_t flags;
	uint32_t unused;
};

struct smart_tree_info
{
	uint64_t id;
	struct smart_tree_owner owner;
	fabric_address root;
	uint64_t slabs;
	uint64_t pages;                       /* in slabs */
	uint64_t bytes;                       /* slabs and record */
	int64_t counter[SMART_TREE_COUNTERS]; /* approximate, the owner's */
	bool lost;                            /* part of it was on a memory node whose memory is gone */
};

struct smart_supply;

/* A client's handle. */
struct smart_space
{
	struct smart_region *region;
	struct smart_epoch_shared *epoch;
	struct smart_lock_table *locks;
	unsigned int node;           /* memory node number in addresses; embedded only */
	struct smart_supply *supply; /* NULL: embedded; else region is a book (book.h) */
	bool removing;               /* this client may take the last pages (SMART_SPARE_PAGES): it will give back more */
	unsigned int retired;        /* since the client last tried to advance the epoch */
	struct
	{
		uint64_t id;
		uint32_t record;
	} recent[SMART_SPACE_RECENT];
};

extern void smart_space_open(struct smart_space *space, struct smart_region *region, unsigned int node,
							 struct smart_epoch_shared *epoch, struct smart_lock_table *locks);

/* The same for a book, whose blocks lie where supply->fabric reaches them. */
extern void
smart_space_open_book(struct smart_space *space, struct smart_region *book, struct smart_epoch_shared *epoch,
					  struct smart_lock_table *locks, struct smart_supply *supply);

/* ---- blocks ---- */

/*
 * As smart_services.allocate.  SMART_CORRUPT if there is no such tree, SMART_UNREACHABLE if it is lost.  With
 * a book it may wait for a memory node, within supply->timeout_ms (SMART_TIMEOUT).
 */
extern smart_status
smart_space_allocate(struct smart_space *space, uint64_t tree, smart_class class, fabric_address *block);

/* As smart_services.retire. */
extern void smart_space_retire(struct smart_space *space, uint64_t tree, smart_class class, fabric_address block);

/*
 * Returns slabs without a live block to the page allocator as far as the epoch allows,
 * trying to advance it.  Worth calling after bulk delete.  Returns the pages given back.
 */
extern uint64_t smart_space_reclaim(struct smart_space *space, uint64_t tree);

/* ---- the directory ---- */

/*
 * A new tree with an empty root slot.  Its id is not 0 and was never used
 * before, in this or an earlier incarnation.  SMART_NO_SPACE, SMART_DISK_FULL; with a
 * book also SMART_UNREACHABLE, SMART_TIMEOUT, SMART_INTERRUPTED, SMART_NO_MEMORY.
 */
extern smart_status smart_space_create_tree(struct smart_space *space, const struct smart_tree_owner *owner,
											uint64_t *id, fabric_address *root);

/* False if there is no such tree, or it is lost.  Cheap: no lock where this client asked before. */
extern bool smart_space_find_tree(struct smart_space *space, uint64_t id, fabric_address *root);

/* Is it a tree of which a part was on a memory node whose memory is gone?  It can only be dropped. */
extern bool smart_space_tree_lost(struct smart_space *space, uint64_t id);

/*
 * Frees a tree at once, whatever blocks it has: no client may use it any more.
 * False if there is no such tree.  Never waits for a memory node.
 */
extern bool smart_space_drop_tree(struct smart_space *space, uint64_t id);

/* Changes whom a tree belongs to.  False if there is no such tree. */
extern bool smart_space_set_owner(struct smart_space *space, uint64_t id, const struct smart_tree_owner *owner);

/*
 * Everything about one tree, false if there is no such tree; and all trees, one
 * per call in no order, for a *cursor that begins as 0 (false: no more).  Trees
 * may come and go between the calls.
 */
extern bool smart_space_tree_info(struct smart_space *space, uint64_t id, struct smart_tree_info *info);
extern bool smart_space_next_tree(struct smart_space *space, uint64_t *cursor, struct smart_tree_info *info);

/* Bytes that a tree holds (slabs and record), 0 if there is none.  No lock: for the planner. */
extern uint64_t smart_space_tree_bytes(struct smart_space *space, uint64_t id);

/*
 * How many pages of the tree's slabs are on each memory node; the root slot's node is that of the info's root.  False
 * if there is no such tree.  Passes all slabs of the tree under its partition's lock.
 */
extern bool smart_space_tree_nodes(struct smart_space *space, uint64_t id, uint64_t pages[FABRIC_NODES_MAX]);

/* Adds to one of the tree's counters, or reads it; a tree that is gone has zeros.  No lock. */
extern void smart_space_add_counter(struct smart_space *space, uint64_t id, unsigned int counter, int64_t add);
extern int64_t smart_space_counter(struct smart_space *space, uint64_t id, unsigned int counter);

/* ---- the whole ---- */

struct smart_space_usage
{
	uint64_t size;     /* bytes of the region now; of a book: of the chunks that it has on all memory nodes */
	uint64_t max_size; /* that size may reach, if the memory nodes have as much */
	uint64_t used;     /* bytes handed out and the space's own (of a book: in slabs) */
	uint64_t own;      /* bytes of the book's own file that are allocated; 0 if it is none */
	uint64_t trees;
	uint64_t incarnation;
};

extern void smart_space_usage(const struct smart_space *space, struct smart_space_usage *usage);

/*
 * Checks everything that the space keeps about itself, with no client at work:
 * lists, maps, counts.  SMART_CORRUPT and a sentence in message.
 */
extern smart_status smart_space_verify(struct smart_space *space, char *message, size_t message_size);

#endif /* SMART_COMPUTE_SPACE_H */
