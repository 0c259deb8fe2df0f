/*
 * region.h
 *	  A memory node's region as a file (or memfd) that is mapped once, whole, and
 *	  grows behind the mapping.
 *
 * The mapping covers the greatest size that the region may reach; pages behind
 * the file's end become valid when the file grows.  Room is allocated in the
 * file before the size in the header is raised, and nobody touches what lies
 * behind that size, so that a full disk is an error and not a SIGBUS.
 */
#ifndef SMART_COMPUTE_REGION_H
#define SMART_COMPUTE_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define SMART_PAGE_BYTES  4096u
#define SMART_CHUNK_BYTES (2u << 20)
#define SMART_CHUNK_PAGES (SMART_CHUNK_BYTES / SMART_PAGE_BYTES)

#define SMART_REGION_MAGIC   UINT64_C(0x6e6f6972746d7302)
#define SMART_REGION_VERSION 1u

#define SMART_REGION_STEP_MIN ((uint64_t) 16 << 20)
#define SMART_REGION_STEP_MAX ((uint64_t) 256 << 20)
#define SMART_REGION_SIZE_MAX ((uint64_t) 1 << 40)

#define SMART_TREE_BUCKETS 4096u
#define SMART_PAGE_ORDERS  5 /* slabs of 1, 2, 4, 8 and 16 pages */

/*
 * The first page of the region.
 *
 *	  offset  bytes  changed
 *	       0     64  when the region is made; under crc
 *	      64     64  size: raised under the page allocator's lock
 *	     128     64  page allocator's, under its lock
 *	     192     64  directory's, under its lock
 *	     256         free
 *
 * Numbers of pages and chunks count from the region's start; 0 is no chunk
 * list's member (chunk 0 is kept by number + 1) and no slab's page.
 */
struct smart_region_header
{
	uint64_t magic;
	uint32_t version;
	uint32_t crc;         /* of these 64 bytes, with 0 here */
	uint64_t incarnation; /* random; new whenever the region starts empty */
	uint32_t page_bytes;
	uint32_t chunk_bytes;
	uint64_t unused0[4];

	uint64_t size; /* bytes that the file has and that may be touched */
	uint64_t unused1[7];

	uint32_t chunks;                        /* formatted so far */
	uint32_t chunk_list[SMART_PAGE_ORDERS]; /* by the longest free run: chunk number + 1, or 0 */
	uint32_t pages_used;                    /* handed out */
	uint32_t unused2;
	uint64_t epoch_saved; /* the epoch at the last clean end */
	uint64_t clean_token; /* names the last clean end; 0 while in use */
	uint64_t unused3[2];

	uint64_t last_tree;    /* trees made so far; the ids come from it */
	uint32_t buckets_page; /* hash table of the directory */
	uint32_t record_pages; /* newest page of tree records, linked by their first record's slot */
	uint32_t free_record;  /* list of free tree records */
	uint32_t trees;        /* live ones */
	uint64_t unused4[5];
};

/* A process's view of a region.  Set up once per server, inherited by fork. */
struct smart_region
{
	uint8_t *base;
	uint64_t max_size;  /* bytes mapped, a multiple of SMART_CHUNK_BYTES */
	uint64_t file_size; /* the file's length before it was mapped: mapping stretches files on hugetlbfs */
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

/*
 * Maps max_size bytes (rounded down to chunks, capped at 1 TiB) of the file and
 * sets *region up; nothing is touched.  SMART_NO_MEMORY: errno says why.
 */
extern smart_status smart_region_map(struct smart_region *region, int fd, uint64_t max_size);
extern void smart_region_unmap(struct smart_region *region);

/* Empties the file and makes a region of it.  Errors of grow; SMART_NO_SPACE if max_size is below one step. */
extern smart_status smart_region_format(struct smart_region *region, uint64_t incarnation);

/*
 * Is what the file holds a region of this format, whole, within max_size?
 * SMART_CORRUPT if not (message tells why), SMART_NO_SPACE if it is longer
 * than max_size.  To be called before the file is changed; touches nothing behind the end that it had when it was mapped.
 */
extern smart_status smart_region_check(const struct smart_region *region, const char **message);

/*
 * Raises the size by a step that doubles the region, within limits, or by what
 * is left; under the page allocator's lock.  SMART_NO_SPACE at max_size.
 */
extern smart_status smart_region_extend(struct smart_region *region);

/* The size, for who holds no lock; what lies below stays valid. */
static inline uint64_t
smart_region_size(const struct smart_region *region)
{
	return __atomic_load_n(&smart_region_header(region)->size, __ATOMIC_ACQUIRE);
}

_Static_assert(offsetof(struct smart_region_header, size) == 64, "fixed fields fill the first line");
_Static_assert(offsetof(struct smart_region_header, chunks) == 128, "size has a line of its own");
_Static_assert(offsetof(struct smart_region_header, last_tree) == 192, "page allocator's line");
_Static_assert(sizeof(struct smart_region_header) == 256, "the header ends with the directory's line");

#endif /* SMART_COMPUTE_REGION_H */
