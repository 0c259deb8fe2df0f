/*
 * extent_map.h
 *	  The memory nodes that an extent map knows, and the map from a memory node and a place there to the chunk.
 */
#ifndef SMART_COMPUTE_EXTENT_MAP_H
#define SMART_COMPUTE_EXTENT_MAP_H

#include "compute/allocate/extents.h"

/* Places of a memory node's region: its numbers of chunks. */
#define SMART_PLACES        (1u << (FABRIC_NODE_SHIFT - 21))
#define SMART_PLACES_A_PAGE (SMART_PAGE_BYTES / (unsigned int) sizeof(uint32_t))

/*
 * A memory node; the array of them fills the pages from nodes_page on.  All members are changed under the page
 * allocator's lock, except dropping, which is under the directory's; map and state are loaded without a lock, too.
 */
struct smart_extents_node
{
	uint64_t incarnation;
	uint32_t state;    /* enum smart_node_state */
	uint32_t map;      /* page of the map: by place / SMART_PLACES_A_PAGE, pages of chunk numbers by place; or 0 */
	uint32_t chunks;   /* remote, leaving and lost ones */
	uint32_t trees;    /* records whose node this is */
	uint32_t leaving;  /* list of chunks to be given back: chunk number + 1, or 0 */
	uint32_t dropping; /* list of records of trees to be dropped, or 0 */
	uint64_t pages_used;
	uint32_t pages_free;              /* of its chunks in use */
	uint32_t list[SMART_PAGE_ORDERS]; /* of its chunks in use, by their longest free run: chunk number + 1, or 0 */
	uint32_t resting;  /* no pages are taken of its chunks: they are in no list; smart_extents_rest_node */
	uint32_t closed;   /* nor are they, and it is asked for nothing: smart_space_close_node */
	uint32_t capacity; /* chunks that it has, as it said last; 0: not known */
	uint32_t room;     /* chunks that it could still give, if that is known */
	uint64_t address;  /* smart_extents_set_address */
	uint64_t leased;   /* smart_extents_set_lease */
	uint64_t note;     /* smart_extents_set_note */
	int64_t credit[2]; /* by enum smart_node_choice (placement.c) */
	uint64_t unused0;
};

/* What a memory node is chosen for. */
enum smart_node_choice
{
	SMART_NODE_HOME,  /* another tree */
	SMART_NODE_SPREAD /* more pages of a large tree */
};

#define SMART_NODES_ORDER 3u

_Static_assert(sizeof(struct smart_extents_node) == 128, "two lines for each memory node");
_Static_assert(FABRIC_NODES_MAX * sizeof(struct smart_extents_node) == SMART_PAGE_BYTES << SMART_NODES_ORDER,
			   "memory nodes fill a run of pages");
_Static_assert(SMART_CHUNK_BYTES == 1u << 21, "a place counts chunks");
_Static_assert(SMART_PLACES / SMART_PLACES_A_PAGE <= SMART_PLACES_A_PAGE, "one page leads to all places");

/* The memory node of this number; NULL as long as there never was any, and in a region that is no extent map. */
extern struct smart_extents_node *smart_extents_node_at(const struct smart_region *extents, unsigned int node);

/* Is there a memory node of this number, which is not lost? */
extern bool smart_extents_node_is_active(const struct smart_region *extents, unsigned int node);

/* Is it one that chunks and trees may be put on: active, and not closed? */
extern bool smart_extents_node_is_open(const struct smart_region *extents, unsigned int node);

/* May no pages be taken of the chunks that it has? */
static inline bool
smart_extents_node_is_barred(const struct smart_extents_node *entry)
{
	return entry->resting != 0 || entry->closed != 0;
}

/* Its chunks in use have so many free pages more, or less.  Under the page allocator's lock. */
extern void smart_extents_count_free(struct smart_region *extents, unsigned int node, int32_t pages);

/* Frees the number of a lost memory node that nothing refers to.  Under the page allocator's lock. */
extern void smart_extents_release_node(struct smart_region *extents, unsigned int node);

/* The chunk at a place, or 0; lock-free. */
extern uint32_t smart_extents_chunk_at(const struct smart_region *extents, unsigned int node, uint32_t place);
/* Was ever a chunk in the part of SMART_PLACES_A_PAGE places that has this one? */
extern bool smart_extents_maps_near(const struct smart_region *extents, unsigned int node, uint32_t place);

/* As smart_storage.page_of: the page that an address lies in, 0 if it is in no chunk of the extent map.  Lock-free. */
extern uint32_t smart_extents_page_of(const struct smart_space *space, fabric_address address);

/* chunk 0: none.  Under the page allocator's lock; the node's map is there, and a page for its next part. */
extern void smart_extent_map_add(struct smart_region *extents, unsigned int node, uint32_t place, uint32_t chunk);

#endif /* SMART_COMPUTE_EXTENT_MAP_H */
