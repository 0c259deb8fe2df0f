/*
 * region.c
 *	  A region or an extent map in a file: mapping, growth, header.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "compute/allocate/extents.h"
#include "compute/allocate/region.h"

#define TMPFS_TYPE 0x01021994

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

/* So short that a process which gets signals all the time comes forward, too. */
#define ALLOCATE_AT_ONCE ((uint64_t) 16 << 20)

static uint32_t
header_crc(const struct smart_region_header *header)
{
	uint8_t line[64];

	memcpy(line, header, sizeof(line));
	memset(line + offsetof(struct smart_region_header, crc), 0, sizeof(header->crc));
	return ~smart_crc32c(UINT32_MAX, line, sizeof(line));
}

/*
 * Puts huge pages into a part of shared memory, as far as the system has some.  Allocating gives none there, unless the
 * file system is mounted so; and the system makes a huge page only of one that has a page already.
 */
static void
allocate_huge(const struct smart_region *region, uint64_t from, uint64_t to)
{
	smart_assert(from % SMART_CHUNK_BYTES == 0 && to % SMART_CHUNK_BYTES == 0);
	if (ftruncate(region->fd, (off_t) to) != 0)
		return;
	for (; from < to; from += SMART_CHUNK_BYTES)
		if (fallocate(region->fd, 0, (off_t) from, SMART_PAGE_BYTES) != 0 ||
			madvise(region->base + from, SMART_CHUNK_BYTES, MADV_COLLAPSE) != 0)
			return;
}

static int
allocate_range(const struct smart_region *region, uint64_t from, uint64_t to)
{
	while (from < to)
	{
		uint64_t step = to - from < ALLOCATE_AT_ONCE ? to - from : ALLOCATE_AT_ONCE;
		int error;

		if (region->shared_memory)
			allocate_huge(region, from, from + step);
		error = posix_fallocate(region->fd, (off_t) from, (off_t) step);
		if (error == EINTR)
			continue;
		/* Huge pages and DAX of old kernels: their files have their pages when they have their length. */
		if (!region->extents && (error == EOPNOTSUPP || error == EINVAL || error == ENODEV))
			error = ftruncate(region->fd, (off_t) (from + step)) == 0 ? 0 : errno;
		if (error != 0)
			return error;
		from += step;
	}
	return 0;
}

static smart_status
grow_file(struct smart_region *region, uint64_t old_size, uint64_t new_size)
{
	int error = allocate_range(region, old_size, new_size);

	if (error == 0)
		return SMART_OK;
	region->grow_errno = error;
	/* What a failed step has allocated goes back.  An extent map's heads lie behind its home chunks: it gets a hole. */
	if (region->extents ? fallocate(region->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t) old_size,
									(off_t) (new_size - old_size)) != 0
						: ftruncate(region->fd, (off_t) old_size) != 0)
		region->grow_errno = errno;
	switch (error)
	{
		case ENOSPC:
		case EDQUOT:
		case EFBIG:
		case ENOMEM:
			return SMART_DISK_FULL;
		default:
			return SMART_UNREACHABLE;
	}
}

/* Address space for the region at a multiple of huge pages, without memory. */
static uint8_t *
reserve(uint64_t size)
{
	uint8_t *all = mmap(NULL, size + SMART_CHUNK_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint64_t skip;

	if (all == MAP_FAILED)
		return NULL;
	skip = -(uintptr_t) all & (SMART_CHUNK_BYTES - 1);
	if (skip > 0)
		munmap(all, skip);
	if (skip < SMART_CHUNK_BYTES)
		munmap(all + skip + size, SMART_CHUNK_BYTES - skip);
	return all + skip;
}

static smart_status
map_file(struct smart_region *region, int fd, uint64_t bytes)
{
	struct stat file;
	int error;

	memset(region, 0, sizeof(*region));
	if (fstat(fd, &file) != 0 || (region->base = reserve(bytes)) == NULL)
		return SMART_NO_MEMORY;
	if (mmap(region->base, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, 0) == MAP_FAILED)
	{
		error = errno;
		munmap(region->base, bytes);
		region->base = NULL;
		errno = error;
		return SMART_NO_MEMORY;
	}
	region->mapped = bytes;
	region->file_size = (uint64_t) file.st_size;
	region->fd = fd;
	region->grow = grow_file;
	return SMART_OK;
}

smart_status
smart_region_map(struct smart_region *region, int fd, uint64_t max_size)
{
	struct statfs file_system;
	smart_status status;

	if (max_size > SMART_REGION_SIZE_MAX)
		max_size = SMART_REGION_SIZE_MAX;
	max_size -= max_size % SMART_CHUNK_BYTES;
	smart_assert(max_size > 0);
	status = map_file(region, fd, max_size);
	if (status != SMART_OK)
		return status;
	region->max_size = max_size;
	region->remote = UINT32_MAX;
	region->shared_memory = fstatfs(fd, &file_system) == 0 && file_system.f_type == TMPFS_TYPE;
	/* Only shared memory knows huge pages by advice; it may be refused without harm. */
	if (region->shared_memory)
		(void) madvise(region->base, max_size, MADV_HUGEPAGE);
	return SMART_OK;
}

smart_status
smart_extent_map(struct smart_region *region, int fd)
{
	uint64_t heads = (uint64_t) SMART_REMOTE_CHUNKS_MAX * SMART_HEAD_BYTES;
	smart_status status = map_file(region, fd, SMART_HEADS_OFFSET + heads);

	if (status != SMART_OK)
		return status;
	region->extents = true;
	region->remote = region->blocks = SMART_HOME_CHUNKS;
	region->max_size = SMART_HEADS_OFFSET;
	return SMART_OK;
}

void
smart_region_unmap(struct smart_region *region)
{
	smart_assert(region->base != NULL);
	munmap(region->base, region->mapped);
	region->base = NULL;
}

/* Grows from size by as much of step as the device has, whole chunks at least. */
static smart_status
grow_by(struct smart_region *region, uint64_t size, uint64_t step, uint64_t *new_size)
{
	smart_status status = SMART_NO_SPACE;

	if (step > region->max_size - size)
		step = region->max_size - size;
	for (; step >= SMART_CHUNK_BYTES; step = step / 2 - step / 2 % SMART_CHUNK_BYTES)
	{
		*new_size = size + step;
		status = region->grow(region, size, size + step);
		if (status != SMART_DISK_FULL)
			break;
	}
	return status;
}

smart_status
smart_region_format(struct smart_region *region, uint64_t incarnation)
{
	struct smart_region_header *header = smart_region_header(region);
	uint64_t size;
	smart_status status;

	smart_assert(incarnation != 0);
	if (ftruncate(region->fd, 0) != 0)
	{
		region->grow_errno = errno;
		return SMART_UNREACHABLE;
	}
	status = grow_by(region, 0, SMART_REGION_STEP_MIN, &size);
	if (status != SMART_OK)
		return status;
	memset(header, 0, sizeof(*header));
	header->magic = SMART_REGION_MAGIC;
	header->version = SMART_REGION_VERSION;
	header->incarnation = incarnation;
	header->page_bytes = SMART_PAGE_BYTES;
	header->chunk_bytes = SMART_CHUNK_BYTES;
	header->kind = region->extents ? SMART_REGION_BOOK : SMART_REGION_EMBEDDED;
	header->crc = header_crc(header);
	/* Release: a client that sees the size sees the rest.  Partner: smart_region_size. */
	__atomic_store_n(&header->size, size, __ATOMIC_RELEASE);
	return SMART_OK;
}

static const char *
header_fault(const struct smart_region_header *header, bool extents, uint64_t file_size)
{
	if (header->magic != SMART_REGION_MAGIC)
		return "it is not a region";
	if (header->version != SMART_REGION_VERSION)
		return "it has another format version";
	if (header->crc != header_crc(header))
		return "its header's checksum is wrong";
	if (header->page_bytes != SMART_PAGE_BYTES || header->chunk_bytes != SMART_CHUNK_BYTES)
		return "its pages or chunks have another size";
	if (header->kind != (extents ? SMART_REGION_BOOK : SMART_REGION_EMBEDDED))
		return extents ? "it holds the blocks of indexes itself" : "the blocks of its indexes are on memory nodes";
	if (header->size == 0 || header->size % SMART_CHUNK_BYTES != 0 || header->size > file_size)
		return "its size is wrong";
	if ((uint64_t) header->home.chunks * SMART_CHUNK_BYTES > header->size)
		return "it has more chunks than bytes";
	if (!extents && (header->heads != 0 || header->nodes_page != 0))
		return "it knows of memory nodes, though it holds the blocks itself";
	if (header->remote_chunks > header->heads || header->heads > SMART_REMOTE_CHUNKS_MAX ||
		(header->heads > 0 && SMART_HEADS_OFFSET + (uint64_t) header->heads * SMART_HEAD_BYTES > file_size))
		return "it knows of more chunks than it has room for";
	return NULL;
}

smart_status
smart_region_check(const struct smart_region *region, const char **message)
{
	const struct smart_region_header *header = smart_region_header(region);

	if (region->file_size < SMART_CHUNK_BYTES)
	{
		*message = "it is shorter than a region";
		return SMART_CORRUPT;
	}
	*message = header_fault(header, region->extents, region->file_size);
	if (*message != NULL)
		return SMART_CORRUPT;
	if (header->size > region->max_size)
	{
		*message = "it is longer than its greatest size";
		return SMART_NO_SPACE;
	}
	return SMART_OK;
}

smart_status
smart_region_extend(struct smart_region *region)
{
	struct smart_region_header *header = smart_region_header(region);
	uint64_t size = header->size;
	uint64_t step = size;
	uint64_t step_max = region->shared_memory ? SMART_REGION_STEP_SHARED : SMART_REGION_STEP_MAX;
	uint64_t new_size;
	smart_status status;

	smart_assert(size % SMART_CHUNK_BYTES == 0 && size <= region->max_size);
	if (size + SMART_CHUNK_BYTES > region->max_size)
		return SMART_NO_SPACE;
	if (step < SMART_REGION_STEP_MIN)
		step = SMART_REGION_STEP_MIN;
	if (step > step_max)
		step = step_max;
	status = grow_by(region, size, step, &new_size);
	if (status != SMART_OK)
		return status;
	smart_assert(new_size > size && new_size <= region->max_size && new_size % SMART_CHUNK_BYTES == 0);
	/* Release: the file has the room before any client may use it.  Partner: smart_region_size. */
	__atomic_store_n(&header->size, new_size, __ATOMIC_RELEASE);
	return SMART_OK;
}

smart_status
smart_region_extend_heads(struct smart_region *region)
{
	struct smart_region_header *header = smart_region_header(region);
	uint64_t from = SMART_HEADS_OFFSET + (uint64_t) header->heads * SMART_HEAD_BYTES;
	smart_status status;

	smart_assert(region->extents && header->heads <= SMART_REMOTE_CHUNKS_MAX);
	if (header->heads + SMART_HEADS_A_STEP > SMART_REMOTE_CHUNKS_MAX)
		return SMART_NO_SPACE;
	status = region->grow(region, from, from + (uint64_t) SMART_HEADS_A_STEP * SMART_HEAD_BYTES);
	if (status == SMART_OK)
		header->heads += SMART_HEADS_A_STEP;
	smart_assert(header->remote_chunks <= header->heads);
	return status;
}
