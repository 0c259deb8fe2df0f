/*
 * node.c
 *	  Opening and closing a memory node, and which region it starts with.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/thread_env.h"
#include "client.h"
#include "log.h"
#include "memory.h"
#include "node.h"
#include "owners.h"
#include "rdma/local.h"
#include "snapshot.h"

static uint64_t
region_size(void *argument)
{
	return ((struct memnode *) argument)->region.size;
}

smart_status
memnode_open(struct memnode *node, const struct memnode_region *region, uint32_t transports)
{
	struct fabric_local_region local = {region->base, region_size, node};
	smart_status status;

	smart_assert((transports & ~(uint32_t) (WIRE_TCP | WIRE_RDMA)) == 0);
	memset(node, 0, sizeof(*node));
	node->region = *region;
	node->transports = transports;
	node->started_ns = smart_clock_ns();
	node->env = smart_thread_env;
	memnode_chunks_open(&node->chunks, &node->region);
	status = memnode_trees_open(&node->trees, &node->region, &node->chunks);
	if (status != SMART_OK)
		return status;
	status = fabric_local_open(&node->env, &local, 1, &node->fabric);
	if (status != SMART_OK)
	{
		memnode_trees_close(&node->trees);
		return status;
	}
	memnode_owners_recover(node);
	smart_assert(node->clients == NULL && node->fabric->direct);
	return SMART_OK;
}

void
memnode_close(struct memnode *node)
{
	while (node->clients != NULL)
		memnode_client_end(node->clients, "the node stops");
	smart_assert(node->client_count == 0);
	node->fabric->provider->close(node->fabric);
	memnode_trees_close(&node->trees);
}

/*
 * Adopting.  The region in memory is as new as can be: it was in use until the last process ended, however that ended,
 * unless the machine has stopped since.
 */

static const char *
phrase_of(smart_status status)
{
	smart_assert(status == SMART_CORRUPT || status == SMART_NO_MEMORY);
	return status == SMART_CORRUPT ? "its trees contradict each other" : "this process has no memory left";
}

/* What a node is opened with. */
struct start
{
	const struct memnode_memory *memory;
	uint64_t boot[2];
	uint32_t transports;
};

static bool
can_grow(const struct memnode_region *region, const struct start *start, char *problem)
{
	uint64_t most = memnode_region_size_max(region);

	return start->memory->size <= most ||
		   memnode_refuse(problem, "the region can grow to %lluM at most: give a smaller --size, or remove it",
						  (unsigned long long) most >> 20);
}

/* Goes on with a region that can grow to the memory's size, if it is sound; *fault says why not. */
static bool
continue_region(struct memnode *node, struct memnode_region *region, const struct start *start, bool zeroed,
				const char **fault)
{
	smart_status status;

	*fault = memnode_region_fault(region, start->boot);
	if (*fault != NULL)
		return false;
	if (region->size < start->memory->size)
	{
		memnode_log(SMART_LOG_INFO, "the region grows from %lluM to %lluM", (unsigned long long) region->size >> 20,
					(unsigned long long) start->memory->size >> 20);
		memnode_region_grow(region, start->memory->size, zeroed);
	}
	smart_assert(region->size == start->memory->size);
	status = memnode_open(node, region, start->transports);
	if (status != SMART_OK)
		*fault = phrase_of(status);
	return status == SMART_OK;
}

/* Goes on with the region in memory, if there is one.  *open: so it did; false: it must not be lost, problem[] says more. */
static bool
go_on(struct memnode *node, const struct start *start, bool *open, char *problem)
{
	const struct memnode_memory *memory = start->memory;
	struct memnode_region region;
	const char *fault = "its header is damaged";

	*open = false;
	if (memory->kind != MEMNODE_REGION_SAME)
		return true;
	if (memnode_region_view(&region, memory->base))
	{
		if (!can_grow(&region, start, problem))
			return false;
		*open = continue_region(node, &region, start, memory->is_file, &fault);
	}
	smart_assert(!*open || node->region.base == memory->base);
	if (*open)
		memnode_log(SMART_LOG_INFO, "goes on with the region in %s: %u chunks, %u trees", memory->label,
					memnode_chunks_allocated(&node->chunks), node->trees.count);
	else
		memnode_log(SMART_LOG_WARNING, "cannot go on with the region in %s: %s", memory->label, fault);
	return true;
}

static bool
load_snapshot(struct memnode *node, const struct start *start, const char *path, bool *loaded, char *problem)
{
	struct memnode_region region;
	char why[MEMNODE_PROBLEM_MAX];
	const char *fault;
	enum memnode_snapshot result;
	struct stat about = {.st_mtime = 0};
	uint64_t began_ns = smart_clock_ns();

	memnode_region_plan(&region, start->memory->base, start->memory->size);
	(void) stat(path, &about);
	result = memnode_snapshot_load(&region, path, why);
	*loaded = result == MEMNODE_SNAPSHOT_LOADED;
	if (result == MEMNODE_SNAPSHOT_REFUSED || (*loaded && !can_grow(&region, start, why)))
		return memnode_refuse(problem, "snapshot: cannot load %.2048s: %.2048s; remove it to start empty", path, why);
	if (!*loaded)
		return true;
	if (!continue_region(node, &region, start, false, &fault))
		return memnode_refuse(problem, "snapshot: cannot load %.2048s: %s; remove it to start empty", path, fault);
	memnode_region_publish(&node->region);
	node->snapshot_time = about.st_mtime;
	node->snapshot_load_ns = smart_clock_ns() - began_ns;
	memnode_log(SMART_LOG_INFO, "loaded the snapshot %s", path);
	return true;
}

static bool
start_empty(struct memnode *node, const struct start *start, char *problem)
{
	struct memnode_region region;
	uint64_t incarnation = 0;
	smart_status status;

	while (incarnation == 0)
	{
		if (getrandom(&incarnation, sizeof(incarnation), 0) != (ssize_t) sizeof(incarnation))
			return memnode_refuse(problem, "no random numbers: %s", strerror(errno));
	}
	memnode_region_plan(&region, start->memory->base, start->memory->size);
	memnode_region_format(&region, incarnation, start->boot, start->memory->zeroed);
	status = memnode_open(node, &region, start->transports);
	if (status != SMART_OK)
		return memnode_refuse(problem, "%s", phrase_of(status));
	memnode_region_publish(&node->region);
	memnode_log(SMART_LOG_INFO, "started with an empty region");
	return true;
}

bool
memnode_adopt(struct memnode *node, const struct memnode_memory *memory, const char *snapshot, uint32_t transports,
			  char problem[MEMNODE_PROBLEM_MAX])
{
	struct start start = {.memory = memory, .transports = transports};
	bool open;

	if (!memnode_region_boot(start.boot))
		return memnode_refuse(problem, "cannot read /proc/sys/kernel/random/boot_id: %s", strerror(errno));
	if (!go_on(node, &start, &open, problem) ||
		(!open && snapshot[0] != '\0' && !load_snapshot(node, &start, snapshot, &open, problem)) ||
		(!open && !start_empty(node, &start, problem)))
		return false;
	smart_assert(node->region.header->magic == MEMNODE_MAGIC);
	smart_assert(memnode_region_fault(&node->region, start.boot) == NULL);
	memnode_region_claim(&node->region, start.boot);
	if (snapshot[0] == '\0' || memnode_snapshot_remove(snapshot, problem))
		return true;
	memnode_close(node);
	return false;
}
