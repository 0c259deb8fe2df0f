/*
 * book_parts.h
 *	  What the parts of a book offer to each other and to the space; not for
 *	  others (they use book.h).
 *
 *	  book_map      where remote chunks are, by memory node and place, and back
 *	  book_chunks   a remote chunk's life: in use, leaving or lost, unused
 *	  book_grow     one client at a time gets another chunk
 *	  book_turns    which memory node is asked next
 *	  book_trees    trees whose root slot lies on a memory node
 *	  book_nodes    memory nodes come and get lost
 *	  book_duties   what nodes have yet to be told
 */
#ifndef SMART_COMPUTE_BOOK_PARTS_H
#define SMART_COMPUTE_BOOK_PARTS_H

#include "compute/book.h"
#include "compute/pages.h"
#include "compute/supply.h"
#include "compute/trees.h"

/* Wholly free chunks that a book keeps: who frees and allocates by turns does not ask a memory node each time. */
#define SMART_EMPTY_CHUNKS 4u

/* Places of a memory node's region: its numbers of chunks. */
#define SMART_PLACES        (1u << (FABRIC_NODE_SHIFT - 21))
#define SMART_PLACES_A_PAGE (SMART_PAGE_BYTES / (unsigned int) sizeof(uint32_t))

/*
 * A memory node; the array of them fills the pages from nodes_page on.  All of it
 * is changed under the page allocator's lock, but dropping, which is the directory's;
 * map is loaded without one.
 */
struct smart_book_node
{
	uint64_t incarnation;
	uint32_t state;    /* enum smart_node_state */
	uint32_t map;      /* page of the map: by place / SMART_PLACES_A_PAGE, pages of chunk numbers by place; or 0 */
	uint32_t chunks;   /* remote, leaving and lost ones */
	uint32_t trees;    /* records whose node this is */
	uint32_t leaving;  /* list of chunks to be given back: chunk number + 1, or 0 */
	uint32_t dropping; /* list of records of trees to be dropped, or 0 */
	uint64_t pages_used;
	uint32_t resting; /* no pages are taken of its chunks: they are in no list */
	uint32_t unused0;
	uint64_t address; /* smart_book_set_address */
	uint64_t leased;  /* smart_book_set_lease */
};

#define SMART_NODES_ORDER 2u

_Static_assert(sizeof(struct smart_book_node) == 64, "a line for each memory node");
_Static_assert(FABRIC_NODES_MAX * sizeof(struct smart_book_node) == SMART_PAGE_BYTES << SMART_NODES_ORDER,
			   "memory nodes fill a run of pages");
_Static_assert(SMART_CHUNK_BYTES == 1u << 21, "a place counts chunks");
_Static_assert(SMART_PLACES / SMART_PLACES_A_PAGE <= SMART_PLACES_A_PAGE, "one page leads to all places");

/* ---- book_map ---- */

/* The memory node of this number; NULL as long as there never was any. */
extern struct smart_book_node *smart_book_node_at(const struct smart_region *book, unsigned int node);

/* The chunk at a place, or 0; lock-free. */
extern uint32_t smart_book_chunk_at(const struct smart_region *book, unsigned int node, uint32_t place);
/* Was ever a chunk in the part of SMART_PLACES_A_PAGE places that has this one? */
extern bool smart_book_maps_near(const struct smart_region *book, unsigned int node, uint32_t place);

/* Lock-free, too: 0 if the address is in no chunk of the book. */
extern uint32_t smart_book_page_of(const struct smart_region *book, fabric_address address);

/* Sees to it that any one place of the node can be mapped; by who grows.  Errors of smart_pages_take_home. */
extern smart_status smart_book_prepare_map(struct smart_space *space, unsigned int node);

/* chunk 0: none.  Under the page allocator's lock. */
extern void smart_book_map_chunk(struct smart_region *book, unsigned int node, uint32_t place, uint32_t chunk);

/* ---- book_chunks; all but clear under the page allocator's lock ---- */

/*
 * Takes up a chunk that a memory node, of this incarnation when it was asked, has given; there is a head for it,
 * and its place can be mapped.  SMART_UNREACHABLE: the node was lost meanwhile; SMART_CORRUPT: a place that cannot
 * be, or is taken.
 */
extern smart_status
smart_book_add_chunk(struct smart_region *book, unsigned int node, uint64_t incarnation, uint32_t place);

/* Pages are about to be taken from a chunk, or were given back to it. */
extern void smart_book_count_taken(struct smart_region *book, struct smart_chunk *chunk, uint32_t pages);
extern void smart_book_pages_given(struct smart_region *book, uint32_t chunk, uint32_t pages);

/* A chunk's memory node is lost. */
extern void smart_book_lose_chunk(struct smart_region *book, uint32_t chunk);

/* Makes a wholly free chunk of the lists a duty. */
extern void smart_book_leave(struct smart_region *book, uint32_t chunk);

/* A leaving chunk whose node has not heard of it is in use again.  False: there is none. */
extern bool smart_book_take_back(struct smart_region *book);

/* A leaving chunk is the book's no more. */
extern void smart_book_chunk_left(struct smart_region *book, uint32_t chunk);

/* Makes a run zeros by WRITEs.  No lock held. */
extern smart_status smart_book_clear(struct smart_space *space, uint32_t page, unsigned int order);

/* ---- book_turns ---- */

typedef smart_status (*smart_book_question)(struct smart_space *space, unsigned int node, void *argument);

/*
 * Puts a question to the active memory nodes, beginning with the one whose *turn (in the header) it is, until one
 * answers SMART_OK; nodes that are full or fail are passed over.  SMART_NO_SPACE: all are full;
 * SMART_INTERRUPTED, SMART_NO_MEMORY at once; SMART_TIMEOUT after the deadline; else the failure of a node,
 * SMART_UNREACHABLE if there is none.
 */
extern smart_status smart_book_ask(struct smart_space *space, uint32_t *turn, uint64_t deadline_ns,
								   smart_book_question question, void *argument);

/* Says why the call fails, where no memory node or link does it. */
extern void smart_book_explain(struct smart_space *space, const char *problem);

/* ---- book_grow ---- */

/*
 * Sees to it that a run of this order can be had, unless others are faster in using it up: takes a chunk from a
 * memory node, or waits for the client that does.  SMART_NO_SPACE, SMART_DISK_FULL, SMART_UNREACHABLE,
 * SMART_INTERRUPTED, SMART_TIMEOUT, SMART_NO_MEMORY, SMART_CORRUPT.
 */
extern smart_status smart_book_grow(struct smart_space *space, unsigned int order, uint64_t deadline_ns);

/* ---- book_trees ---- */

extern smart_status smart_book_create_tree(struct smart_space *space, const struct smart_tree_owner *owner,
										   uint64_t *id, fabric_address *root);

/* The record of a tree that is out of its bucket and has no slabs: free, or a duty.  Under the directory's lock. */
extern void smart_book_tree_dropped(struct smart_space *space, uint32_t number, uint64_t id);

/* The record of a tree that its memory node has no root slot of (any more) becomes free.  Under the directory's lock. */
extern void smart_book_forget_tree(struct smart_space *space, uint32_t number);

/* ---- book_nodes ---- */

/* Frees the number of a lost memory node that nothing refers to.  Under the page allocator's lock. */
extern void smart_book_release_node(struct smart_region *book, unsigned int node);

/* ---- book_verify ---- */

/*
 * As smart_space_verify, for what only a book has.  block_pages: in slabs; *home_pages: of the book's own that
 * these parts use.
 */
extern smart_status smart_book_verify(const struct smart_region *book, uint64_t block_pages, uint64_t *home_pages,
									  char *message, size_t message_size);

#endif /* SMART_COMPUTE_BOOK_PARTS_H */
