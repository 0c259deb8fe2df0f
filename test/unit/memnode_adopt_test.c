/*
 * memnode_adopt_test.c
 *	  What a memory node leaves behind when it is killed at any instruction, and
 *	  what the next one makes of it; snapshots.
 *
 * A child process takes, gives, makes, drops and leases on a shared region, one
 * instruction at a time (ptrace).  Whenever an instruction has changed the private
 * part, the parent opens a copy of it as the next process would.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memnode/log.h"
#include "memnode/memory.h"
#include "memnode/node.h"
#include "memnode/snapshot.h"
#include "support/check.h"
#include "support/memnode_peer.h"

#define SIZE ((uint64_t) 32 << 20)
#define OWN  UINT64_C(4711)

static char directory[] = "/tmp/memnode_adopt.XXXXXX";
static uint64_t boot[2];

/* ---- killed at any instruction ---- */

/* What the child does to the region; between two marks the region has to be as before or as after. */
static void
work(struct memnode *node)
{
	struct memnode_client *client = memnode_client_open(node, "child");
	uint32_t chunks[8];
	uint32_t count;
	uint64_t root;
	uint8_t bytes[16];
	uint32_t length;

	memnode_peer_hello(client, OWN, 1, false, 0, 0);
	memnode_peer_lease(client, 5, WIRE_TCP);
	memnode_peer_take(client, 2, chunks, &count);
	memnode_peer_make_tree(client, 1, &root);
	memnode_peer_make_tree(client, 2, &root);
	memnode_peer_call(client, WIRE_TREE_DROP, bytes, wire_put_u64(bytes, 1), bytes, &length);
	memnode_peer_call(client, WIRE_CHUNKS_GIVE, bytes, wire_put_chunks(bytes, chunks, 1), bytes, &length);
	memnode_peer_lease(client, 6, WIRE_TCP);
	memnode_peer_make_tree(client, 3, &root);
	memnode_peer_call(client, WIRE_TREE_DROP, bytes, wire_put_u64(bytes, 3), bytes, &length);
}

/* Is what the next process would find sound, and never more than was ever there at a time? */
static bool
adoptable(const struct memnode_region *copy)
{
	static struct memnode node;
	const struct memnode_owner_record *owner = &copy->owners[0];
	bool good;

	if (memnode_region_fault(copy, boot) != NULL || memnode_open(&node, copy, WIRE_TCP) != SMART_OK)
		return false;
	good = node.trees.count <= 2 && node.chunks.own[0] <= 2 && node.chunks.roots[0] == (node.trees.count > 0 ? 1 : 0);
	/* An extent map is a whole one: chunks of the first are never shown as the second's. */
	if (owner->state == MEMNODE_OWNER_KNOWN && owner->extents == 6)
		good = good && node.chunks.own[0] == 0 && memnode_trees_find(&node.trees, 0, 2) == NULL;
	good = good && owner->state != MEMNODE_OWNER_EMPTYING;
	memnode_close(&node);
	return good;
}

/* What the child changes of the private part, which is looked at after every instruction. */
struct glimpse
{
	struct memnode_header header;
	struct memnode_owner_record owners[2];
	uint32_t chunks[SIZE / WIRE_CHUNK_BYTES];
	struct memnode_tree_record trees[4];
};

static void
look(struct glimpse *glimpse, const struct memnode_region *region)
{
	glimpse->header = *region->header;
	memcpy(glimpse->owners, region->owners, sizeof(glimpse->owners));
	memcpy(glimpse->chunks, region->chunks, sizeof(glimpse->chunks));
	memcpy(glimpse->trees, region->trees, sizeof(glimpse->trees));
}

static void
put_down(const struct glimpse *glimpse, struct memnode_region *region)
{
	*region->header = glimpse->header;
	memcpy(region->owners, glimpse->owners, sizeof(glimpse->owners));
	memcpy(region->chunks, glimpse->chunks, sizeof(glimpse->chunks));
	memcpy(region->trees, glimpse->trees, sizeof(glimpse->trees));
}

/* Steps the child to its end.  Returns how many instructions changed the private part. */
static unsigned int
step_through(pid_t child, const struct memnode_region *region, struct memnode_region *copy)
{
	struct glimpse before;
	struct glimpse now;
	unsigned int changes = 0;
	unsigned int bad = 0;
	int status;

	memset(&before, 0, sizeof(before));
	memset(&now, 0, sizeof(now));
	look(&before, region);
	while (waitpid(child, &status, 0) == child && WIFSTOPPED(status))
	{
		look(&now, region);
		if (memcmp(&before, &now, sizeof(now)) != 0)
		{
			before = now;
			put_down(&now, copy);
			changes++;
			bad += !adoptable(copy);
		}
		ptrace(PTRACE_SINGLESTEP, child, NULL, NULL);
	}
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK(bad == 0);
	put_down(&now, copy);
	CHECK(memcmp(copy->base, region->base, (size_t) region->first_chunk * WIRE_CHUNK_BYTES) == 0);
	return changes;
}

static void
test_killed_anywhere(void)
{
	struct memnode_region region;
	struct memnode_region copy;
	unsigned int changes;
	struct memnode *node;
	pid_t child;

	memnode_peer_region(&region, SIZE);
	memnode_peer_region(&copy, SIZE);
	node = memnode_peer_node(&region);
	child = fork();
	if (child == 0)
	{
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		work(node);
		_exit(0);
	}
	changes = step_through(child, &region, &copy);
	/* Each of the requests changes some words, each by an instruction of its own. */
	CHECK(changes >= 20);
	memnode_close(node);
	free(node);
	memnode_peer_unmap(&region);
	memnode_peer_unmap(&copy);
}

/* ---- adopted or not ---- */

static void
path_in(char path[PATH_MAX], const char *name)
{
	snprintf(path, PATH_MAX, "%s/%s", directory, name);
}

static bool
exists(const char *path)
{
	return access(path, F_OK) == 0;
}

static bool
open_file(struct memnode_memory *memory, const char *name, uint64_t size, char problem[MEMNODE_PROBLEM_MAX])
{
	struct memnode_options options = {.size = size, .memory = MEMNODE_MEMORY_PATH};

	path_in(options.path, name);
	return memnode_memory_open(memory, &options, "0", problem);
}

/* Opens a node of this size on the file, puts a chunk and a tree into it if it is empty, and says its incarnation. */
static uint64_t
visit_sized(const char *name, uint64_t size, const char *snapshot, bool stop_clean, uint32_t *trees)
{
	static struct memnode node;
	struct memnode_memory memory;
	char problem[MEMNODE_PROBLEM_MAX] = "";
	struct memnode_client *client;
	uint64_t incarnation;
	uint32_t chunk;
	uint32_t count;
	uint64_t root;

	CHECK(open_file(&memory, name, size, problem));
	CHECK(memnode_adopt(&node, &memory, snapshot, WIRE_TCP, problem));
	CHECK(node.region.size == size && node.region.chunk_count == size / WIRE_CHUNK_BYTES);
	incarnation = node.region.header->incarnation;
	*trees = node.trees.count;
	client = memnode_client_open(&node, "visitor");
	memnode_peer_hello(client, OWN, 1, true, 0, 0);
	if (node.trees.count == 0)
	{
		CHECK(memnode_peer_lease(client, 5, WIRE_TCP) == WIRE_OK);
		CHECK(memnode_peer_take(client, 1, &chunk, &count) == WIRE_OK);
		memset(memory.base + (uint64_t) chunk * WIRE_CHUNK_BYTES, 0x77, WIRE_CHUNK_BYTES);
		CHECK(memnode_peer_make_tree(client, 1, &root) == WIRE_OK);
	}
	else
	{
		CHECK(memnode_chunks_list(&node.chunks, 0, 0, 1, &chunk) == 1);
		CHECK(memory.base[(uint64_t) chunk * WIRE_CHUNK_BYTES] == 0x77 &&
			  memory.base[(uint64_t) (chunk + 1) * WIRE_CHUNK_BYTES - 1] == 0x77);
	}
	memnode_client_free(client);
	if (stop_clean)
	{
		if (snapshot[0] != '\0')
			CHECK(memnode_snapshot_write(&node.region, snapshot, problem));
		memnode_region_release(&node.region);
	}
	memnode_close(&node);
	memnode_memory_close(&memory);
	return incarnation;
}

static uint64_t
visit(const char *name, const char *snapshot, bool stop_clean, uint32_t *trees)
{
	return visit_sized(name, SIZE, snapshot, stop_clean, trees);
}

/* The header's boot becomes another one, as if the machine had been started since. */
static void
pretend_reboot(const char *name)
{
	char path[PATH_MAX];
	uint64_t other = 1;
	int descriptor;

	path_in(path, name);
	descriptor = open(path, O_RDWR);
	CHECK(pwrite(descriptor, &other, sizeof(other), offsetof(struct memnode_header, boot)) == sizeof(other));
	close(descriptor);
}

static void
test_adoption(void)
{
	uint32_t trees;
	uint64_t first = visit("region", "", false, &trees);

	CHECK(trees == 0);
	/* Killed: the same boot. */
	CHECK(visit("region", "", true, &trees) == first && trees == 1);
	/* Stopped clean: any boot. */
	pretend_reboot("region");
	CHECK(visit("region", "", false, &trees) == first && trees == 1);
	/* In use when the machine stopped: worthless. */
	pretend_reboot("region");
	CHECK(visit("region", "", false, &trees) != first && trees == 0);
}

static void
test_not_ours(void)
{
	struct memnode_memory memory;
	struct memnode_memory second;
	char problem[MEMNODE_PROBLEM_MAX] = "";
	char path[PATH_MAX];
	FILE *file;

	CHECK(open_file(&memory, "region", SIZE, problem));
	CHECK(!open_file(&second, "region", SIZE, problem) && strstr(problem, "in use") != NULL);
	memnode_memory_close(&memory);
	CHECK(!open_file(&memory, "region", SIZE / 2, problem) && strstr(problem, "--size=32M") != NULL);

	path_in(path, "letter");
	file = fopen(path, "w");
	fputs("Dear reader, this is a letter, and no region.", file);
	fclose(file);
	CHECK(!open_file(&memory, "letter", SIZE, problem) && strstr(problem, "something else") != NULL);
	CHECK(truncate(path, (off_t) SIZE) == 0);
	CHECK(!open_file(&memory, "letter", SIZE, problem) && strstr(problem, "something else") != NULL);
	unlink(path);
	CHECK(!open_file(&memory, "no/such/file", SIZE, problem) && strstr(problem, "No such file") != NULL);
}

/* A region grows with its memory and keeps what it holds; it does not shrink. */
static void
test_growth(void)
{
	struct memnode_memory memory;
	char problem[MEMNODE_PROBLEM_MAX] = "";
	char path[PATH_MAX];
	char snapshot[PATH_MAX];
	uint32_t trees;
	uint64_t first = visit("grown", "", true, &trees);

	path_in(path, "grown");
	path_in(snapshot, "grown.snapshot");
	/* Killed when the file has grown, and the region has not. */
	CHECK(truncate(path, (off_t) (4 * SIZE)) == 0);
	CHECK(visit("grown", "", false, &trees) == first && trees == 1);
	CHECK(visit_sized("grown", 2 * SIZE, "", false, &trees) == first && trees == 1);
	CHECK(visit_sized("grown", 4 * SIZE, snapshot, true, &trees) == first && trees == 1);
	CHECK(!open_file(&memory, "grown", 2 * SIZE, problem) && strstr(problem, "--size=128M") != NULL);
	CHECK(truncate(path, (off_t) (2 * SIZE)) == 0);
	CHECK(!open_file(&memory, "grown", 4 * SIZE, problem) && strstr(problem, "64M long") != NULL);
	/* From a snapshot, too. */
	CHECK(unlink(path) == 0);
	CHECK(visit_sized("grown", 8 * SIZE, snapshot, true, &trees) == first && trees == 1 && exists(snapshot));
	CHECK(unlink(path) == 0 && unlink(snapshot) == 0);
}

/* New chunks are as free as the others, and hold zeros where they are said to. */
static void
test_grown_chunks(void)
{
	static struct memnode node;
	struct memnode_memory memory;
	char problem[MEMNODE_PROBLEM_MAX] = "";
	char path[PATH_MAX];
	uint32_t trees;

	path_in(path, "grown");
	(void) visit("grown", "", true, &trees);
	CHECK(open_file(&memory, "grown", 2 * SIZE, problem) && memnode_adopt(&node, &memory, "", WIRE_TCP, problem));
	for (uint32_t chunk = SIZE / WIRE_CHUNK_BYTES; chunk < node.region.chunk_count; chunk++)
		CHECK(node.region.chunks[chunk] == MEMNODE_CHUNK_ZERO && memory.base[(uint64_t) chunk * WIRE_CHUNK_BYTES] == 0);
	CHECK(memnode_chunks_capacity(&node.chunks) == node.region.chunk_count - node.region.first_chunk);
	memnode_close(&node);
	memnode_memory_close(&memory);
	CHECK(unlink(path) == 0);
}

/* ---- snapshots ---- */

static void
test_snapshot(void)
{
	char snapshot[PATH_MAX];
	char kept[PATH_MAX];
	char region[PATH_MAX];
	uint32_t trees;
	uint64_t first;

	path_in(snapshot, "snapshot");
	path_in(kept, "kept");
	path_in(region, "memory");
	first = visit("memory", snapshot, true, &trees);
	CHECK(trees == 0 && exists(snapshot));

	/* The region is there: it is newer than the snapshot, which goes. */
	CHECK(visit("memory", snapshot, false, &trees) == first && trees == 1 && !exists(snapshot));

	/* The region is gone: the snapshot is loaded, once. */
	CHECK(visit("memory", snapshot, true, &trees) == first && trees == 1 && exists(snapshot));
	CHECK(link(snapshot, kept) == 0);
	CHECK(unlink(region) == 0);
	CHECK(visit("memory", snapshot, false, &trees) == first && trees == 1 && !exists(snapshot));
	CHECK(unlink(region) == 0);
	CHECK(visit("memory", snapshot, false, &trees) != first && trees == 0);
	CHECK(unlink(region) == 0);
}

/* A snapshot that is damaged anywhere, or cut off, is not loaded, and what is left in memory is no region. */
static void
test_damaged_snapshot(void)
{
	static const off_t places[] = {0, 30, 60, 64, 70, 200, 100000, 3000000};
	char problem[MEMNODE_PROBLEM_MAX];
	struct memnode_region region;
	struct stat file;
	char kept[PATH_MAX];
	uint8_t byte;
	int descriptor;

	path_in(kept, "kept");
	memnode_peer_region(&region, SIZE);
	CHECK(memnode_snapshot_load(&region, kept, problem) == MEMNODE_SNAPSHOT_LOADED);
	memnode_region_publish(&region);
	CHECK(memnode_region_fault(&region, boot) == NULL);
	descriptor = open(kept, O_RDWR);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
	{
		CHECK(pread(descriptor, &byte, 1, places[i]) == 1);
		byte ^= 0x10;
		CHECK(pwrite(descriptor, &byte, 1, places[i]) == 1);
		CHECK(memnode_snapshot_load(&region, kept, problem) == MEMNODE_SNAPSHOT_REFUSED);
		CHECK(memnode_region_kind(region.header, SIZE) == MEMNODE_REGION_NONE);
		byte ^= 0x10;
		CHECK(pwrite(descriptor, &byte, 1, places[i]) == 1);
	}
	CHECK(memnode_snapshot_load(&region, kept, problem) == MEMNODE_SNAPSHOT_LOADED);
	CHECK(fstat(descriptor, &file) == 0 && ftruncate(descriptor, file.st_size - 1) == 0);
	CHECK(memnode_snapshot_load(&region, kept, problem) == MEMNODE_SNAPSHOT_REFUSED);
	close(descriptor);
	unlink(kept);
	memnode_peer_unmap(&region);
}

int
main(void)
{
	char command[PATH_MAX];

	memnode_log_set_level(SMART_LOG_WARNING + 1);
	CHECK(mkdtemp(directory) != NULL && memnode_region_boot(boot));
	test_killed_anywhere();
	test_adoption();
	test_not_ours();
	test_growth();
	test_grown_chunks();
	test_snapshot();
	test_damaged_snapshot();
	path_in(command, "region");
	unlink(command);
	CHECK(rmdir(directory) == 0);
	return check_finish();
}
