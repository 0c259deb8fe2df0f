/*
 * region_shm.c
 *	  The region in POSIX shared memory, which outlives the server and not the machine.
 *
 * The system writes a mapped file back again and again, though nothing needs it on disk: what a power loss takes is
 * loaded from journals.  Shared memory is not written.  But it is memory that is taken away from everything else, and
 * parallel queries need some of it, too.  So the region lies there only if all that it may grow to is half of what there
 * is at most.
 *
 * Nothing removes shared memory with the data directory that it belongs to.  Therefore its name tells the cluster, by
 * system identifier, and the data directory, by device and inode: a copy has shared memory of its own.  The region
 * itself tells where the data directory was at its last start.  Each start of a server removes what nobody can use any
 * more; a region that is not there, for whatever reason, is one that was lost with the machine.
 */
#include "postgres.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/fd.h"

#include "am/recovery/region_shm.h"
#include "base/assert.h"
#include "compute/allocate/region.h"

/* Where shm_open() has its names. */
#define SHM_DIRECTORY "/dev/shm"
#define NAME_PREFIX   "smart-region."
#define NAME_FORMAT   NAME_PREFIX "%016llx.%llx.%llx"
#define NAME_MAX_SIZE 64
#define TMPFS_TYPE    0x01021994

/* What a name tells. */
struct owner
{
	unsigned long long system; /* identifier of the database cluster */
	unsigned long long device; /* of the data directory */
	unsigned long long number;
};

static void __attribute__((format(printf, 1, 2))) report_refusal(const char *format, ...)
{
	char reason[MAXPGPATH + 128];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(reason, sizeof(reason), format, arguments);
	va_end(arguments);
	ereport(LOG, errmsg("smart keeps its indexes in a file and not in shared memory"),
			errdetail_internal("%s", reason));
}

static bool
is_same_directory(const struct owner *a, const struct owner *b)
{
	return a->device == b->device && a->number == b->number;
}

static bool
identify_directory(const char *directory, struct owner *owner)
{
	struct stat file;

	if (stat(directory, &file) != 0)
		return false;
	owner->device = file.st_dev;
	owner->number = file.st_ino;
	return true;
}

static void
path_of(const struct owner *owner, char path[MAXPGPATH])
{
	snprintf(path, MAXPGPATH, SHM_DIRECTORY "/" NAME_FORMAT, owner->system, owner->device, owner->number);
}

/* This server; false: its data directory cannot be looked at. */
static bool
identify_self(struct owner *owner)
{
	owner->system = GetSystemIdentifier();
	return identify_directory(DataDir, owner);
}

bool
smart_region_lock(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return fcntl(fd, F_SETLK, &lock) == 0;
}

/* ---- this server's own ---- */

/* Is there room for a region that may become as long as that?  If not, the log tells so. */
static bool
suffices(uint64 max_size)
{
	struct statfs memory;
	uint64 size;

	if (statfs(SHM_DIRECTORY, &memory) != 0 || memory.f_type != TMPFS_TYPE)
	{
		report_refusal("There is no shared memory in \"%s\".", SHM_DIRECTORY);
		return false;
	}
	size = (uint64) memory.f_blocks * memory.f_bsize;
	if (max_size <= size / 2)
		return true;
	report_refusal("smart.embedded_max_size is " UINT64_FORMAT " MB, more than half of the " UINT64_FORMAT
				   " MB that \"%s\" has.",
				   max_size >> 20, size >> 20, SHM_DIRECTORY);
	return false;
}

/* Everybody may make a file by that name there: one that others could write would be their way into this server. */
static bool
is_private(int fd)
{
	struct stat file;

	return fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && file.st_uid == geteuid() &&
		   (file.st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

int
smart_region_shm_open(uint64 max_size)
{
	struct owner self;
	char path[MAXPGPATH];
	int fd;

	if (!suffices(max_size))
		return -1;
	if (strlen(DataDir) >= SMART_REGION_OWNER_BYTES || !identify_self(&self))
	{
		report_refusal("The path of the data directory is too long, or cannot be looked at.");
		return -1;
	}
	path_of(&self, path);
	fd = BasicOpenFilePerm(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
	if (fd < 0)
	{
		report_refusal("Could not open \"%s\": %s.", path, strerror(errno));
		return -1;
	}
	if (is_private(fd) && smart_region_lock(fd))
	{
		ereport(LOG, errmsg("smart keeps its indexes in shared memory \"%s\"", path));
		return fd;
	}
	report_refusal("\"%s\" is another user's, or in use by another server.", path);
	close(fd);
	return -1;
}

/* ---- what others have left ---- */

/* Can no server use it any more?  Also if that may be so only for a while: the region is loaded then. */
static bool
is_abandoned(int fd, const struct owner *owner)
{
	char directory[SMART_REGION_OWNER_BYTES];
	char control[SMART_REGION_OWNER_BYTES + 32];
	struct owner found;
	struct stat file;
	ssize_t bytes = pread(fd, directory, sizeof(directory), offsetof(struct smart_region_header, owner));

	/* Without indexes it is empty, and does not tell. */
	if (bytes != sizeof(directory))
		return false;
	directory[sizeof(directory) - 1] = '\0';
	snprintf(control, sizeof(control), "%s/global/pg_control", directory);
	if (stat(control, &file) != 0)
		return errno == ENOENT || errno == ENOTDIR;
	return identify_directory(directory, &found) && !is_same_directory(&found, owner);
}

/* Removes it if nobody uses it, and the name does not stand for another one by now. */
static void
remove_unused(int fd, const char *path, const char *detail)
{
	struct stat opened;
	struct stat named;

	if (!smart_region_lock(fd) || fstat(fd, &opened) != 0 || lstat(path, &named) != 0 ||
		opened.st_ino != named.st_ino || opened.st_dev != named.st_dev || unlink(path) != 0)
		return;
	ereport(LOG, errmsg("smart removed shared memory \"%s\"", path), errdetail_internal("%s", detail));
}

/* Looks at what has a name of ours, and is not in use by this server. */
static void
sweep_one(const struct owner *owner, const struct owner *self)
{
	char path[MAXPGPATH];
	int fd;

	path_of(owner, path);
	fd = BasicOpenFile(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return;
	if (!is_private(fd))
		;
	else if (!is_same_directory(owner, self))
	{
		if (is_abandoned(fd, owner))
			remove_unused(fd, path, "Its data directory is not there any more.");
	}
	else if (owner->system == self->system)
		remove_unused(fd, path, "The settings have the indexes elsewhere now.");
	else
		remove_unused(fd, path, "The data directory holds another database cluster now.");
	close(fd);
}

void
smart_region_shm_sweep(bool in_use)
{
	DIR *directory = opendir(SHM_DIRECTORY);
	struct dirent *entry;
	struct owner self;

	if (directory == NULL || !identify_self(&self))
	{
		if (directory != NULL)
			closedir(directory);
		return;
	}
	while ((entry = readdir(directory)) != NULL)
	{
		struct owner owner;
		char name[NAME_MAX_SIZE];

		if (sscanf(entry->d_name, NAME_PREFIX "%llx.%llx.%llx", &owner.system, &owner.device, &owner.number) != 3)
			continue;
		snprintf(name, sizeof(name), NAME_FORMAT, owner.system, owner.device, owner.number);
		/* A lock ends when its process closes the file, through whichever descriptor. */
		if (strcmp(name, entry->d_name) == 0 &&
			!(in_use && owner.system == self.system && is_same_directory(&owner, &self)))
			sweep_one(&owner, &self);
	}
	closedir(directory);
}
