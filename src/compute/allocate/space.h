/*
 * space.h
 *	  The memory of a region: pages, slabs of blocks, and the directory of trees.
 *
 *	  page       4 KiB; each chunk of 2 MiB keeps a map of its pages
 *	  slab       1..16 neighbouring pages of one tree and one class, for as long as the slab lives (I6: type-stable
 *	             memory)
 *	  block      a leaf or a node, of the slab's class
 *	  record     a tree's entry in the directory: its owner, its root slot, its slabs
 *
 * All of it lies in the region, so a region that is closed cleanly is whole again when it is mapped the next time, and
 * nothing is lost with a client.  Functions take the locks that they need (locks.h); callers hold none of these but a
 * leaf's.
 */
#ifndef SMART_COMPUTE_SPACE_H
#define SMART_COMPUTE_SPACE_H

#include "base/status.h"
#include "compute/allocate/region.h"
#include "compute/coordinate/epoch.h"
#include "compute/coordinate/locks.h"
#include "tree/layout.h"

#define SMART_OWN_NODE     0      /* the memory node in addresses of blocks that lie in the region itself */
#define SMART_SPACE_RECENT 32     /* trees that a client finds without the directory */
#define SMART_SMALL_PAGES  16384u /* 64 MiB: a tree is small up to so many pages, unless somebody says otherwise */

/* The owner of a tree.  The space does not look at it. */
struct smart_tree_owner
{
	uint32_t tablespace;
	uint32_t database;
	uint32_t relation;    /* relfilenode */
	int32_t backend;      /* temporary trees: the backend's number; else -1 */
	uint64_t creator;     /* full transaction id */
	uint64_t incarnation; /* of the server's start, or of what else the tree does not outlive */
	uint32_t flags;
	uint32_t leaf_size; /* for users that have no other place to keep it */
};

/* Words that a tree's user keeps with it, 0 in a new tree.  They live as long as the tree, also through a crash. */
#define SMART_TREE_NOTES 6

struct smart_tree_info
{
	uint64_t id;
	struct smart_tree_owner owner;
	uint64_t note[SMART_TREE_NOTES];
	fabric_address root;
	uint64_t slabs;
	uint64_t pages; /* in slabs */
	uint64_t bytes; /* slabs and record */
	bool lost;      /* part of it was on a memory node whose memory is gone */
};

struct smart_storage;
struct smart_supply;

/* What an allocation is for; each leaves the last pages to those that come behind it (pages.h). */
enum smart_space_purpose
{
	SMART_SPACE_ANY,
	SMART_SPACE_MEND,   /* to finish what another client has begun, in the way of a removal */
	SMART_SPACE_STANDBY /* a removal's standby (src/tree/structure/standby.c) */
};

/* A client's handle. */
struct smart_space
{
	struct smart_region *region;
	struct smart_epoch_shared *epoch;
	struct smart_lock_table *locks;
	const struct smart_storage *storage; /* where blocks lie (trees.h) */
	struct smart_supply *supply;         /* NULL: embedded; else region is an extent map (extents.h) */
	uint32_t reserved_pages;             /* embedded: that blocks leave to clients that use the reserve */
	bool uses_reserve;
	bool removing;                    /* this client removes entries: it will give back more than it takes */
	enum smart_space_purpose purpose; /* of the allocation in hand */
	uint32_t small_pages;             /* a tree of fewer pages lies on one memory node (placement.h) */
	unsigned int retired;             /* since the client last tried to advance the epoch */
	struct
	{
		uint64_t id;
		uint32_t record;
	} recent[SMART_SPACE_RECENT];
};

/*
 * Opens a client's handle.  supply: NULL if the blocks lie in the region itself; else region is an extent map, whose
 * blocks lie where supply->fabric reaches them.
 */
extern void smart_space_open(struct smart_space *space, struct smart_region *region, struct smart_epoch_shared *epoch,
							 struct smart_lock_table *locks, struct smart_supply *supply);

/* ---- blocks ---- */

/*
 * As smart_services.allocate.  SMART_CORRUPT if there is no such tree, SMART_UNREACHABLE if it is lost.  With an
 * extent map it may wait for a memory node, within supply->timeout_ms (SMART_TIMEOUT).
 */
extern smart_status
smart_space_allocate(struct smart_space *space, uint64_t tree, smart_class class, fabric_address *block);

/* As smart_services.allocate_spared. */
extern smart_status smart_space_allocate_spared(struct smart_space *space, uint64_t tree, smart_class class,
												enum smart_space_purpose purpose, fabric_address *block);

/* As smart_services.retire. */
extern void smart_space_retire(struct smart_space *space, uint64_t tree, smart_class class, fabric_address block);

/*
 * Returns slabs without a live block to the page allocator as far as the epoch allows,
 * trying to advance it.  Worth calling after bulk delete.  Returns the pages given back.
 */
extern uint64_t smart_space_reclaim(struct smart_space *space, uint64_t tree);

/* ---- the directory ---- */

/*
 * A new tree with an empty root slot.  Its id is not 0 and was never used before, in this or an earlier incarnation.
 * SMART_NO_SPACE, SMART_DISK_FULL; with an extent map also SMART_UNREACHABLE, SMART_TIMEOUT, SMART_INTERRUPTED,
 * SMART_NO_MEMORY.
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

/*
 * Everything about one tree, false if there is no such tree; and all trees, one
 * per call in no order, for a *cursor that begins as 0 (false: no more).  Trees
 * may come and go between the calls.
 */
extern bool smart_space_tree_info(struct smart_space *space, uint64_t id, struct smart_tree_info *info);
extern bool smart_space_next_tree(struct smart_space *space, uint64_t *cursor, struct smart_tree_info *info);

/*
 * Stores a note of a tree (which: below SMART_TREE_NOTES), and loads one; each store is whole, and in order with the
 * process's other stores.  False if there is no such tree.  No lock where this client asked before.
 */
extern bool smart_space_put_note(struct smart_space *space, uint64_t id, unsigned int which, uint64_t note);
extern bool smart_space_get_note(struct smart_space *space, uint64_t id, unsigned int which, uint64_t *note);

/* Stores a note of all trees of a database, which other clients may drop meanwhile. */
extern void smart_space_put_notes(struct smart_space *space, uint32_t database, unsigned int which, uint64_t note);

/* Stores a note if it is this one now; false: it is not, or there is no such tree. */
extern bool
smart_space_swap_note(struct smart_space *space, uint64_t id, unsigned int which, uint64_t now, uint64_t note);

/* Bytes that a tree holds (slabs and record), 0 if there is none.  No lock: for the planner. */
extern uint64_t smart_space_tree_bytes(struct smart_space *space, uint64_t id);

/*
 * How many pages of the tree's slabs are on each memory node; the root slot's node is that of the info's root.  False
 * if there is no such tree.  Passes all slabs of the tree under its partition's lock.
 */
extern bool smart_space_tree_nodes(struct smart_space *space, uint64_t id, uint64_t pages[FABRIC_NODES_MAX]);

/* ---- memory nodes that shall be taken away ---- */

/*
 * Closes a memory node of an extent map, or opens it again; one that is not there, or is lost: nothing happens.  A
 * closed node gives no chunk, no pages of the chunks that it has and no root, but trees go on with the slabs that they
 * have there.  What becomes free there leaves at once, as does what was free.  The mark outlives restarts, startup
 * recovery, and the node's absence.  A client may have taken pages there just before, and make a slab of them yet: the
 * node's counts (smart_extents_node_info) say when nothing is left.
 */
extern void smart_space_close_node(struct smart_space *space, unsigned int node, bool closed);

/* False also if there is no such node. */
extern bool smart_space_node_is_closed(const struct smart_space *space, unsigned int node);

/*
 * A closed node of which the extent map has neither chunk nor tree, pending frees included, leaves it, and its number
 * is free.  False: something is left, it is not closed, or a client still waits for its reply.
 */
extern bool smart_space_forget_node(struct smart_space *space, unsigned int node);

/* ---- the whole ---- */

struct smart_space_usage
{
	uint64_t size;     /* bytes of the region now; of an extent map: of the chunks that it has on all memory nodes */
	uint64_t max_size; /* that size may reach, if the memory nodes have as much */
	uint64_t used;     /* bytes handed out and the space's own (of an extent map: in slabs) */
	uint64_t own;      /* bytes of the extent map's own file that are allocated; 0 if it is none */
	uint64_t trees;
	uint64_t incarnation;
};

extern void smart_space_usage(const struct smart_space *space, struct smart_space_usage *usage);

#endif /* SMART_COMPUTE_SPACE_H */
