/*
 * region.h
 *	  A memory node's region as a file (or memfd) that is mapped once, whole, and grows behind the mapping; or an extent
 *	  map (extents.h), which is such a file for blocks that lie elsewhere.
 *
 * The mapping covers the greatest size that the region may reach; pages behind the file's end become valid when the
 * file grows.  Room is allocated in the file before the size in the header is raised, and no client touches what lies
 * behind that size, so that a full disk is an error and not a SIGBUS.
 */
#ifndef SMART_COMPUTE_REGION_H
#define SMART_COMPUTE_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/status.h"

#define SMART_PAGE_BYTES  4096u
#define SMART_CHUNK_BYTES (2u << 20)
#define SMART_CHUNK_PAGES (SMART_CHUNK_BYTES / SMART_PAGE_BYTES)

#define SMART_REGION_MAGIC   UINT64_C(0x6e6f6972746d7302)
#define SMART_REGION_VERSION 3u

#define SMART_REGION_STEP_MIN ((uint64_t) 16 << 20)
#define SMART_REGION_STEP_MAX ((uint64_t) 256 << 20)
/* Shared memory is scarcer, and taking huge pages takes a while: all who want a page wait for it. */
#define SMART_REGION_STEP_SHARED ((uint64_t) 64 << 20)
#define SMART_REGION_SIZE_MAX    ((uint64_t) 1 << 40)

#define SMART_REGION_OWNER_BYTES 512

#define SMART_TREE_BUCKETS 4096u
#define SMART_PAGE_ORDERS  5 /* slabs of 1, 2, 4, 8 and 16 pages */

/* An extent map: chunks that are in its file whole, and then the heads of remote ones. */
#define SMART_HOME_CHUNKS       2048u
#define SMART_REMOTE_CHUNKS_MAX ((1u << 23) - SMART_HOME_CHUNKS) /* page numbers have 32 bits */
#define SMART_HEAD_BYTES        (28u << 10)
#define SMART_HEADS_OFFSET      ((uint64_t) SMART_HOME_CHUNKS * SMART_CHUNK_BYTES)
#define SMART_HEADS_A_STEP      64u

enum smart_region_kind
{
	SMART_REGION_EMBEDDED = 0, /* whole */
	SMART_REGION_BOOK = 1
};

/* Chunks that hold pages of one kind, by their longest free run.  Remote ones are in lists of their memory nodes. */
struct smart_page_lists
{
	uint32_t chunks;                  /* in the lists or without a free page */
	uint32_t list[SMART_PAGE_ORDERS]; /* chunk number + 1, or 0 */
	uint32_t used;                    /* pages handed out */
	uint32_t barred;                  /* free pages of memory nodes that rest or are closed: of no use now */
};

/*
 * The first page of the region.
 *
 *	  offset  bytes  changed
 *	       0     64  when the region is made; under crc
 *	      64     64  size: raised under the page allocator's lock
 *	     128     64  page allocator's, under its lock
 *	     192     64  directory's, under its lock
 *	     256     64  an extent map's remote chunks: under the page allocator's lock
 *	     320     64  an extent map's growth: stored under that lock, loaded by clients that wait for it
 *	     384     64  where an extent map's memory nodes are: stored once, under the directory's lock
 *	     448    576  the server's own, which looks after it
 *
 * Numbers of pages and chunks count from the region's start; 0 is no chunk list's member (chunk 0 is kept by number +
 * 1) and no slab's page.  In an extent map the chunks from SMART_HOME_CHUNKS on are remote.
 */
struct smart_region_header
{
	uint64_t magic;
	uint32_t version;
	uint32_t crc;         /* of these 64 bytes, with 0 here */
	uint64_t incarnation; /* random; new whenever the region starts empty */
	uint32_t page_bytes;
	uint32_t chunk_bytes;
	uint32_t kind; /* enum smart_region_kind */
	uint32_t unused0[7];

	uint64_t size; /* bytes that the file has and that may be touched */
	uint64_t unused1[7];

	struct smart_page_lists home; /* chunks of this region: formatted so far */
	uint64_t epoch_saved;         /* the epoch at the last clean end */
	uint64_t clean_token;         /* names the last clean end; 0 while in use */
	uint64_t unused2[2];

	uint64_t last_tree;    /* trees made so far; the ids come from it */
	uint32_t buckets_page; /* hash table of the directory */
	uint32_t record_pages; /* newest page of tree records, linked by their first record's slot */
	uint32_t free_record;  /* list of free tree records */
	uint32_t trees;        /* live ones */
	uint32_t kept_page;    /* the persistent segments' page numbers (segment.h), or 0 */
	uint32_t unused3[9];

	struct smart_page_lists blocks; /* remote chunks */
	uint32_t remote_chunks;         /* numbers given out so far, from SMART_HOME_CHUNKS on */
	uint32_t heads;                 /* remote chunks that the file has room for */
	uint32_t unused_chunk;          /* list of numbers that serve again, or 0 */
	uint32_t empty_chunks;          /* wholly free ones in the lists */
	uint32_t map_reserve;           /* a page for the map of addresses that is there when it is needed, or 0 */
	uint32_t unused4;
	uint64_t pendings; /* numbered so far */

	uint64_t growths;       /* ended so far */
	uint32_t growing;       /* a client asks a node for a chunk … */
	uint32_t growing_node;  /* … this node */
	uint32_t growth_status; /* of the last growth that ended */
	uint32_t growth_home;   /* the node that it was wanted from first */
	uint64_t told_ns;       /* when the last chunk was about to be given back: its node may have to hear of it yet */
	uint64_t unused5[4];

	uint32_t nodes_page; /* first of the pages with the memory nodes, or 0 */
	uint32_t unused6[15];

	uint64_t run;       /* the server's run that uses it, by the token in its run file; 0: none */
	uint64_t started;   /* when that server was started, by the time stamp of a file; 0: not known yet */
	uint64_t durable;   /* WAL that was durable when something was removed, or an undo record was dropped */
	uint64_t unsettled; /* an earlier end of the server has yet to be made good: 1; 0: none */
	uint64_t undo_from; /* unsettled: the end of WAL that this end has left; 0: not known yet */
	uint64_t undo_hint; /* the segment of undo records that was released last */
	uint64_t unused7[2];

	char owner[SMART_REGION_OWNER_BYTES]; /* path of its data directory, from the last start; region_shm.c reads it */
};

/* A process's view of a region.  Set up once per server, inherited by fork. */
struct smart_region
{
	uint8_t *base;
	uint64_t max_size;  /* that size may reach, a multiple of SMART_CHUNK_BYTES */
	uint64_t mapped;    /* bytes; an extent map's heads lie behind max_size */
	bool extents;       /* blocks lie on memory nodes; fixed, as the next two */
	uint32_t remote;    /* chunks from this number on are remote: UINT32_MAX if this is no extent map */
	uint32_t blocks;    /* blocks lie in chunks from this number on: 0 if this is no extent map */
	uint64_t file_size; /* the file's length before it was mapped: mapping stretches files on hugetlbfs */
	bool shared_memory; /* a file of tmpfs */
	int fd;
	int grow_errno; /* why grow failed */

	/*
	 * Makes [old_size, new_size) of the file's own.  SMART_DISK_FULL,
	 * SMART_UNREACHABLE for any other failure (errno in grow_errno).
	 */
	smart_status (*grow)(struct smart_region *region, uint64_t old_size, uint64_t new_size);
};

static inline struct smart_region_header *
smart_region_header(const struct smart_region *region)
{
	return (struct smart_region_header *) region->base;
}

/* A page of the region's own part. */
static inline void *
smart_page_memory(const struct smart_region *region, uint32_t page)
{
	smart_assert((uint64_t) page * SMART_PAGE_BYTES < region->max_size);
	return region->base + (uint64_t) page * SMART_PAGE_BYTES;
}

/*
 * Maps max_size bytes (rounded down to chunks, capped at 1 TiB) of the file and
 * sets *region up; nothing is touched.  SMART_NO_MEMORY: errno says why.
 */
extern smart_status smart_region_map(struct smart_region *region, int fd, uint64_t max_size);
extern void smart_region_unmap(struct smart_region *region);

/* Empties the file and makes a region or an extent map of it.  Errors of grow; SMART_NO_SPACE: max_size is below a step. */
extern smart_status smart_region_format(struct smart_region *region, uint64_t incarnation);

/*
 * Is what the file holds a region (or an extent map, if it was mapped as one) of this format, whole, within max_size?
 * SMART_CORRUPT if not (message tells why), SMART_NO_SPACE if it is longer than max_size.  To be called before the
 * file is changed; touches nothing behind the end that it had when it was mapped.
 */
extern smart_status smart_region_check(const struct smart_region *region, const char **message);

/*
 * Raises the size by a step that doubles the region, within limits, or by what
 * is left; under the page allocator's lock.  SMART_NO_SPACE at max_size.
 */
extern smart_status smart_region_extend(struct smart_region *region);

/* Room for SMART_HEADS_A_STEP more heads of an extent map, under the same lock.  SMART_NO_SPACE: it can have no more. */
extern smart_status smart_region_extend_heads(struct smart_region *region);

/* The size, for a client that holds no lock; what lies below stays valid. */
static inline uint64_t
smart_region_size(const struct smart_region *region)
{
	return __atomic_load_n(&smart_region_header(region)->size, __ATOMIC_ACQUIRE);
}

_Static_assert(offsetof(struct smart_region_header, size) == 64, "fixed fields fill the first line");
_Static_assert(offsetof(struct smart_region_header, home) == 128, "size has a line of its own");
_Static_assert(offsetof(struct smart_region_header, last_tree) == 192, "page allocator's line");
_Static_assert(offsetof(struct smart_region_header, blocks) == 256, "the directory's line");
_Static_assert(offsetof(struct smart_region_header, growths) == 320, "remote chunks' line");
_Static_assert(offsetof(struct smart_region_header, nodes_page) == 384, "growth's line");
_Static_assert(offsetof(struct smart_region_header, run) == 448, "the server's line");
_Static_assert(sizeof(struct smart_region_header) == 1024, "nothing is left between");

#endif /* SMART_COMPUTE_REGION_H */
