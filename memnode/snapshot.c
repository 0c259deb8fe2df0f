/*
 * snapshot.c
 *	  Writing and loading snapshots.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "snapshot.h"

#define SNAPSHOT_MAGIC   UINT64_C(0x706e736d656d7301)
#define SNAPSHOT_VERSION 1u
#define PIECE_BYTES      WIRE_CHUNK_BYTES /* written or read at once */

struct snapshot_header
{
	uint64_t magic;
	uint32_t version;
	uint32_t unused0;
	uint64_t size;  /* of the region */
	uint64_t bytes; /* behind this header, checksum included */
	uint64_t unused1[3];
	uint32_t unused2;
	uint32_t crc; /* of what comes before in this header */
};

_Static_assert(sizeof(struct snapshot_header) == 64, "the header has no holes");

/* A file that is being written or read, and the checksum so far. */
struct stretch
{
	int descriptor;
	bool to_file;
	uint32_t crc;
};

/* Moves bytes between memory and file.  False: errno, which is 0 at the end of the file. */
static bool
move(struct stretch *stretch, void *memory, size_t length)
{
	uint8_t *bytes = memory;

	while (length > 0)
	{
		size_t step = length < PIECE_BYTES ? length : PIECE_BYTES;
		ssize_t moved =
			stretch->to_file ? write(stretch->descriptor, bytes, step) : read(stretch->descriptor, bytes, step);

		if (moved < 0 && errno == EINTR)
			continue;
		if (moved <= 0)
		{
			errno = moved == 0 ? 0 : errno;
			return false;
		}
		stretch->crc = smart_crc32c(stretch->crc, bytes, (size_t) moved);
		bytes += moved;
		length -= (size_t) moved;
	}
	return true;
}

static size_t
private_bytes(const struct memnode_region *region)
{
	return (size_t) region->first_chunk * WIRE_CHUNK_BYTES;
}

static bool
is_kept(const struct memnode_region *region, uint32_t chunk)
{
	uint32_t word = region->chunks[chunk];

	smart_assert(chunk < region->chunk_count);
	return word != MEMNODE_CHUNK_ZERO && word != MEMNODE_CHUNK_FREE;
}

static bool
move_chunks(struct stretch *stretch, const struct memnode_region *region)
{
	smart_assert(region->first_chunk < region->chunk_count);
	for (uint32_t chunk = region->first_chunk; chunk < region->chunk_count; chunk++)
	{
		if (is_kept(region, chunk) &&
			!move(stretch, region->base + (uint64_t) chunk * WIRE_CHUNK_BYTES, WIRE_CHUNK_BYTES))
			return false;
	}
	return true;
}

static uint32_t
header_crc(const struct snapshot_header *header)
{
	return ~smart_crc32c(UINT32_MAX, header, offsetof(struct snapshot_header, crc));
}

/* ---- writing ---- */

static bool
write_all(int descriptor, const struct memnode_region *region)
{
	struct stretch stretch = {descriptor, true, UINT32_MAX};
	struct snapshot_header header = {.magic = SNAPSHOT_MAGIC, .version = SNAPSHOT_VERSION, .size = region->size};
	uint32_t crc;

	smart_assert(region->header->magic == MEMNODE_MAGIC);
	header.bytes = private_bytes(region) + sizeof(crc);
	for (uint32_t chunk = region->first_chunk; chunk < region->chunk_count; chunk++)
		header.bytes += is_kept(region, chunk) ? WIRE_CHUNK_BYTES : 0;
	header.crc = header_crc(&header);
	if (!move(&stretch, &header, sizeof(header)) || !move(&stretch, region->base, private_bytes(region)) ||
		!move_chunks(&stretch, region))
		return false;
	crc = stretch.crc;
	return move(&stretch, &crc, sizeof(crc)) && fsync(descriptor) == 0;
}

/* Makes what happened to names in a file's directory last. */
static bool
sync_directory(const char *path)
{
	char copy[PATH_MAX];
	int descriptor;
	bool good;

	smart_assert(strlen(path) < sizeof(copy));
	snprintf(copy, sizeof(copy), "%s", path);
	descriptor = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (descriptor < 0)
		return false;
	good = fsync(descriptor) == 0;
	close(descriptor);
	return good;
}

/* Opens path.new, whose name is put there; below 0: problem[] says why it cannot be. */
static int
open_new(const char *path, char new_path[PATH_MAX], char *problem)
{
	int descriptor;

	smart_assert(path[0] != '\0');
	if (snprintf(new_path, PATH_MAX, "%s.new", path) >= PATH_MAX)
	{
		memnode_refuse(problem, "the path of the snapshot is too long");
		return -1;
	}
	descriptor = open(new_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (descriptor < 0)
		memnode_refuse(problem, "cannot write %.2048s: %s", new_path, strerror(errno));
	return descriptor;
}

bool
memnode_snapshot_possible(const char *path, char problem[MEMNODE_PROBLEM_MAX])
{
	char new_path[PATH_MAX];
	int descriptor = open_new(path, new_path, problem);
	bool good;

	if (descriptor < 0)
		return false;
	close(descriptor);
	good = unlink(new_path) == 0 && sync_directory(path);
	return good || memnode_refuse(problem, "cannot write the directory of %.2048s: %s", path, strerror(errno));
}

bool
memnode_snapshot_write(const struct memnode_region *region, const char *path, char problem[MEMNODE_PROBLEM_MAX])
{
	char new_path[PATH_MAX];
	int descriptor = open_new(path, new_path, problem);
	bool good;

	if (descriptor < 0)
		return false;
	good =
		write_all(descriptor, region) || memnode_refuse(problem, "cannot write %.2048s: %s", new_path, strerror(errno));
	close(descriptor);
	if (good && (rename(new_path, path) != 0 || !sync_directory(path)))
		good = memnode_refuse(problem, "cannot rename %.2048s: %s", new_path, strerror(errno));
	if (!good)
		unlink(new_path);
	return good;
}

/* ---- loading ---- */

static bool
load_all(int descriptor, struct memnode_region *region, char *problem)
{
	struct stretch stretch = {descriptor, false, UINT32_MAX};
	struct snapshot_header header;
	struct memnode_header front;
	struct memnode_region found;
	uint32_t crc;
	uint32_t stored;

	errno = 0;
	if (!move(&stretch, &header, sizeof(header)) || header.magic != SNAPSHOT_MAGIC || header.crc != header_crc(&header))
		return memnode_refuse(problem, "it is no snapshot");
	if (header.version != SNAPSHOT_VERSION)
		return memnode_refuse(problem, "it was written by another version of smart-memnode");
	if (header.size > region->size)
		return memnode_refuse(problem, "its region has %lluM, --size says %lluM",
							  (unsigned long long) header.size >> 20, (unsigned long long) region->size >> 20);
	/* All but the magic number: a part of it is no region. */
	if (!move(&stretch, &front, sizeof(front)))
		return memnode_refuse(problem, "%s", errno != 0 ? strerror(errno) : "it is cut off");
	memcpy(region->base + sizeof(front.magic), (uint8_t *) &front + sizeof(front.magic),
		   sizeof(front) - sizeof(front.magic));
	if (front.magic != MEMNODE_MAGIC || front.version != MEMNODE_VERSION ||
		!memnode_region_view(&found, region->base) || found.size != header.size)
		return memnode_refuse(problem, "it holds no region of this version");
	*region = found;
	smart_assert(private_bytes(region) > sizeof(front));
	if (!move(&stretch, region->base + sizeof(front), private_bytes(region) - sizeof(front)) ||
		!move_chunks(&stretch, region))
		return memnode_refuse(problem, "%s", errno != 0 ? strerror(errno) : "it is cut off");
	crc = stretch.crc;
	if (!move(&stretch, &stored, sizeof(stored)) || stored != crc)
		return memnode_refuse(problem, "its checksum is wrong");
	return true;
}

enum memnode_snapshot
memnode_snapshot_load(struct memnode_region *region, const char *path, char problem[MEMNODE_PROBLEM_MAX])
{
	int descriptor = open(path, O_RDONLY | O_CLOEXEC);
	bool good;

	if (descriptor < 0 && errno == ENOENT)
		return MEMNODE_SNAPSHOT_NONE;
	if (descriptor < 0)
	{
		memnode_refuse(problem, "%s", strerror(errno));
		return MEMNODE_SNAPSHOT_REFUSED;
	}
	__atomic_store_n(&region->header->magic, 0, __ATOMIC_SEQ_CST);
	good = load_all(descriptor, region, problem);
	close(descriptor);
	if (!good)
		return MEMNODE_SNAPSHOT_REFUSED;
	/* The free chunks of this memory may hold anything. */
	for (uint32_t chunk = region->first_chunk; chunk < region->chunk_count; chunk++)
	{
		if (!is_kept(region, chunk))
			region->chunks[chunk] = MEMNODE_CHUNK_FREE;
	}
	region->header->clean = MEMNODE_CLEAN;
	smart_assert(region->header->magic == 0);
	return MEMNODE_SNAPSHOT_LOADED;
}

bool
memnode_snapshot_remove(const char *path, char problem[MEMNODE_PROBLEM_MAX])
{
	if (unlink(path) != 0)
		return errno == ENOENT || memnode_refuse(problem, "cannot remove %.2048s: %s", path, strerror(errno));
	return sync_directory(path) || memnode_refuse(problem, "cannot remove %.2048s for good: %s", path, strerror(errno));
}
