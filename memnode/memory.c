/*
 * memory.c
 *	  What backs a region.
 *
 * All of it is allocated before anything is touched: memory that is found to be
 * missing later is a SIGBUS, or worse, a queue pair that stops.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <mntent.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "base/assert.h"
#include "memory.h"

#define ALLOCATE_AT_ONCE ((uint64_t) 64 << 20)
#define SHM_DIRECTORY    "/dev/shm"

static unsigned long long
in_mb(uint64_t bytes)
{
	return bytes >> 20;
}

/* ---- where it is ---- */

/* The first mounted file system of huge pages that can be written, or false. */
static bool
find_hugetlbfs(char *directory, size_t size)
{
	FILE *mounts = setmntent("/proc/mounts", "r");
	const struct mntent *mount;
	bool found = false;

	if (mounts == NULL)
		return false;
	while (!found && (mount = getmntent(mounts)) != NULL)
	{
		found = strcmp(mount->mnt_type, "hugetlbfs") == 0 && access(mount->mnt_dir, W_OK) == 0 &&
				snprintf(directory, size, "%s", mount->mnt_dir) < (int) size;
	}
	endmntent(mounts);
	return found;
}

/* Memory with a name is found again; without one (port 0 is another port each time) it goes with the process. */
static bool
place(struct memnode_memory *memory, const struct memnode_options *options, const char *port)
{
	const char *name = options->name[0] != '\0' ? options->name : port;
	bool lasting = options->name[0] != '\0' || strcmp(options->port, "0") != 0;
	char directory[PATH_MAX / 2] = SHM_DIRECTORY;

	if (options->memory == MEMNODE_MEMORY_PATH)
	{
		strcpy(memory->label, options->path);
		return true;
	}
	if (options->memory == MEMNODE_MEMORY_HUGETLB && !find_hugetlbfs(directory, sizeof(directory)))
		lasting = false;
	if (!lasting)
		return false;
	snprintf(memory->label, sizeof(memory->label), "%s/smart-memnode.%s", directory, name);
	return true;
}

/*
 * Takes the place where the memory lies.  A lock of the file does not do alone: somebody may remove a file in use, and
 * then another process would make one of the same name.  A socket in the abstract namespace goes with its process.
 */
static bool
take_place(struct memnode_memory *memory)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	socklen_t size = (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + sizeof("smart-memnode") - 1);
	char directory[PATH_MAX];
	char file[PATH_MAX];
	char path[PATH_MAX];
	uint8_t digest[EVP_MAX_MD_SIZE];
	unsigned int length;

	smart_assert(memory->lasting && memory->place < 0);
	strcpy(directory, memory->label);
	strcpy(file, memory->label);
	if (realpath(dirname(directory), path) == NULL)
		return false;
	smart_assert(strlen(path) < sizeof(path));
	strncat(path, "/", sizeof(path) - strlen(path) - 1);
	strncat(path, basename(file), sizeof(path) - strlen(path) - 1);
	if (EVP_Digest(path, strlen(path), digest, &length, EVP_sha256(), NULL) != 1)
		return false;
	smart_assert(size + length <= sizeof(address));
	memcpy(address.sun_path + 1, "smart-memnode", sizeof("smart-memnode") - 1);
	memcpy((uint8_t *) &address + size, digest, length);
	memory->place = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return memory->place >= 0 && bind(memory->place, (const struct sockaddr *) &address, size + length) == 0;
}

static void
close_descriptors(const struct memnode_memory *memory)
{
	if (memory->descriptor >= 0)
		close(memory->descriptor);
	if (memory->place >= 0)
		close(memory->place);
}

static bool
refuse_in_use(const struct memnode_memory *memory, char *problem)
{
	if (errno == EWOULDBLOCK || errno == EADDRINUSE)
		return memnode_refuse(
			problem, "memory: %.2048s is in use by another smart-memnode: stop it, or give another --memory or --name",
			memory->label);
	return memnode_refuse(problem, "memory: cannot lock %.2048s: %s", memory->label, strerror(errno));
}

/* What it has opened is closed by the caller, also when it fails. */
static bool
open_descriptor(struct memnode_memory *memory, const struct memnode_options *options, const char *port, char *problem)
{
	bool huge = options->memory == MEMNODE_MEMORY_HUGETLB;

	memory->descriptor = memory->place = -1;
	memory->lasting = place(memory, options, port);
	if (memory->lasting && !take_place(memory))
		return refuse_in_use(memory, problem);
	if (memory->lasting)
		memory->descriptor = open(memory->label, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	else
	{
		strcpy(memory->label, "memory without a name");
		memory->descriptor = memfd_create("smart-memnode", MFD_CLOEXEC | (huge ? MFD_HUGETLB : 0));
	}
	if (memory->descriptor < 0)
		return memnode_refuse(problem, "memory: cannot open %.2048s: %s", memory->label, strerror(errno));
	return flock(memory->descriptor, LOCK_EX | LOCK_NB) == 0 || refuse_in_use(memory, problem);
}

/* ---- what is there ---- */

/* What the bytes at the front say about memory that there is already. */
static bool
accept_header(struct memnode_memory *memory, const struct memnode_header *header, char *problem)
{
	uint64_t size = memnode_region_size(header);

	memory->kind = memnode_region_kind(header, memory->size);
	switch (memory->kind)
	{
		case MEMNODE_REGION_FOREIGN:
			return memnode_refuse(
				problem,
				"memory: %.2048s holds something else than a memory node's region: give another --memory, or remove it",
				memory->label);
		case MEMNODE_REGION_OTHER_VERSION:
			return memnode_refuse(
				problem,
				"memory: %.2048s holds a region of another version of smart-memnode: run that version, or remove it",
				memory->label);
		case MEMNODE_REGION_LARGER:
			return memnode_refuse(problem,
								  "memory: %.2048s holds a region of %lluM, which can grow, but not shrink: start with "
								  "--size=%lluM, or remove it",
								  memory->label, in_mb(size), in_mb(size));
		default:
			smart_assert(memory->kind == MEMNODE_REGION_NONE || memory->kind == MEMNODE_REGION_SAME);
			return true;
	}
}

/* A file of another length than the region is to have. */
static bool
accept_other_length(struct memnode_memory *memory, uint64_t length, char *problem)
{
	struct memnode_header header = {0};

	smart_assert(length != memory->size);
	if (length > 0 && pread(memory->descriptor, &header, sizeof(header), 0) < 0)
		return memnode_refuse(problem, "memory: cannot read %.2048s: %s", memory->label, strerror(errno));
	if (!accept_header(memory, &header, problem))
		return false;
	smart_assert(memory->kind != MEMNODE_REGION_SAME || memnode_region_size(&header) <= memory->size);
	if (memory->kind == MEMNODE_REGION_SAME && memnode_region_size(&header) > length)
		return memnode_refuse(problem, "memory: %.2048s is %lluM long, but its region %lluM: remove it", memory->label,
							  in_mb(length), in_mb(memnode_region_size(&header)));
	memory->zeroed = memory->kind == MEMNODE_REGION_NONE;
	/* Cutting it off first makes it a file of zeros.  A region stays, and can grow into the zeros behind it. */
	if ((memory->zeroed && ftruncate(memory->descriptor, 0) != 0) ||
		(length < memory->size || memory->zeroed ? ftruncate(memory->descriptor, (off_t) memory->size) : 0) != 0)
		return memnode_refuse(problem, "memory: cannot make %.2048s %lluM long: %s", memory->label, in_mb(memory->size),
							  strerror(errno));
	return true;
}

static bool
allocation_failed(const struct memnode_memory *memory, const struct memnode_options *options, int error, char *problem)
{
	struct statvfs room = {0};

	smart_assert(error != 0);
	if (error != ENOSPC && error != ENOMEM && error != EFBIG && error != EDQUOT)
		return memnode_refuse(problem, "memory: cannot allocate %.2048s: %s", memory->label, strerror(error));
	if (options->memory == MEMNODE_MEMORY_HUGETLB)
		return memnode_refuse(
			problem,
			"memory: there are not enough huge pages for %lluM: sysctl vm.nr_hugepages=N (HugePages_Free in "
			"/proc/meminfo), or a smaller --size",
			in_mb(memory->size));
	fstatvfs(memory->descriptor, &room);
	return memnode_refuse(
		problem,
		"memory: there is not enough room for %lluM in %.2048s (%lluM free): make room, or give a smaller --size",
		in_mb(memory->size), memory->label, in_mb((uint64_t) room.f_bavail * room.f_frsize));
}

/* Bytes of memory that the machine could give now; UINT64_MAX: it does not tell. */
static uint64_t
available_memory(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	unsigned long long kilobytes;
	uint64_t available = UINT64_MAX;
	char line[128];

	while (file != NULL && available == UINT64_MAX && fgets(line, sizeof(line), file) != NULL)
	{
		if (sscanf(line, "MemAvailable: %llu kB", &kilobytes) == 1)
			available = (uint64_t) kilobytes << 10;
	}
	if (file != NULL)
		fclose(file);
	return available;
}

static bool
allocate(const struct memnode_memory *memory, const struct memnode_options *options, char *problem)
{
	struct stat file;
	int error;

	/* A device has its memory already. */
	if (fstat(memory->descriptor, &file) != 0 || !S_ISREG(file.st_mode))
		return true;
	/* Shared memory may be promised beyond what there is; taking it would have processes killed. */
	if (options->memory == MEMNODE_MEMORY_SHM && memory->zeroed && memory->size > available_memory())
		return memnode_refuse(problem,
							  "memory: --size is %lluM, but the machine has only %lluM free: give a smaller --size",
							  in_mb(memory->size), in_mb(available_memory()));
	for (uint64_t from = 0; from < memory->size; from += ALLOCATE_AT_ONCE)
	{
		uint64_t step = memory->size - from < ALLOCATE_AT_ONCE ? memory->size - from : ALLOCATE_AT_ONCE;

		smart_assert(step > 0 && from + step <= memory->size);
		do
			error = posix_fallocate(memory->descriptor, (off_t) from, (off_t) step);
		while (error == EINTR);
		if (error != 0)
			return allocation_failed(memory, options, error, problem);
	}
	return true;
}

/* ---- all of it ---- */

static bool
open_locked(struct memnode_memory *memory, const struct memnode_options *options, char *problem)
{
	bool huge = options->memory == MEMNODE_MEMORY_HUGETLB;
	struct stat file;

	smart_assert(memory->descriptor >= 0);
	if (fstat(memory->descriptor, &file) != 0)
		return memnode_refuse(problem, "memory: cannot look at %.2048s: %s", memory->label, strerror(errno));
	if (!S_ISREG(file.st_mode) && !S_ISCHR(file.st_mode))
		return memnode_refuse(problem, "memory: %.2048s is neither a file nor a DAX device", memory->label);
	memory->is_file = S_ISREG(file.st_mode);
	if (S_ISREG(file.st_mode) && (uint64_t) file.st_size != memory->size &&
		!accept_other_length(memory, (uint64_t) file.st_size, problem))
		return false;
	if (!allocate(memory, options, problem))
		return false;
	memory->base =
		mmap(NULL, memory->size, PROT_READ | PROT_WRITE, MAP_SHARED | (huge ? MAP_POPULATE : 0), memory->descriptor, 0);
	if (memory->base == MAP_FAILED)
	{
		if (errno == ENOMEM && huge)
			return allocation_failed(memory, options, errno, problem);
		return memnode_refuse(problem, "memory: cannot map %lluM of %.2048s: %s", in_mb(memory->size), memory->label,
							  strerror(errno));
	}
	/* Advice for shared memory, which the system may refuse without harm. */
	(void) madvise(memory->base, memory->size, MADV_HUGEPAGE);
	if (accept_header(memory, (const struct memnode_header *) memory->base, problem))
		return true;
	munmap(memory->base, memory->size);
	return false;
}

bool
memnode_memory_open(struct memnode_memory *memory, const struct memnode_options *options, const char *port,
					char problem[MEMNODE_PROBLEM_MAX])
{
	memset(memory, 0, sizeof(*memory));
	memory->size = options->size;
	if (!open_descriptor(memory, options, port, problem))
	{
		close_descriptors(memory);
		return false;
	}
	if (open_locked(memory, options, problem))
	{
		smart_assert(memory->kind == MEMNODE_REGION_SAME || memory->kind == MEMNODE_REGION_NONE);
		smart_assert(!memory->zeroed || memory->kind == MEMNODE_REGION_NONE);
		return true;
	}
	/* A part of new memory is of no use to a later process. */
	if (memory->zeroed && ftruncate(memory->descriptor, 0) == 0 && memory->lasting &&
		options->memory != MEMNODE_MEMORY_PATH)
		unlink(memory->label);
	close_descriptors(memory);
	return false;
}

bool
memnode_memory_is_removed(const struct memnode_memory *memory)
{
	struct stat file;

	return memory->lasting && fstat(memory->descriptor, &file) == 0 && S_ISREG(file.st_mode) && file.st_nlink == 0;
}

bool
memnode_memory_sync(const struct memnode_memory *memory)
{
	return msync(memory->base, memory->size, MS_SYNC) == 0;
}

void
memnode_memory_close(struct memnode_memory *memory)
{
	munmap(memory->base, memory->size);
	close_descriptors(memory);
}
