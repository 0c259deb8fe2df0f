/*
 * recover_kill_test.c
 *	  Processes on one region that are killed at any moment, in the middle of the
 *	  allocator too; then the region is mapped anew, recovered, and others go on.
 *
 * After each recovery every acknowledged change is there, one that was not may be; every tree is right; and
 * the slabs have just the blocks that the trees have.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compute/allocate/segment.h"
#include "compute/allocate/slab.h"
#include "compute/allocate/trees.h"
#include "compute/recovery/recover.h"
#include "support/check.h"
#include "support/env_thread.h"
#include "support/node.h"
#include "tree/tree.h"

#define MB       (UINT64_C(1) << 20)
#define CHILDREN 4
#define LINES    (CHILDREN + 1)
#define TREES    2
#define KEYS     1500 /* of a child, in each tree */
#define ROUNDS   40
#define NO_KEY   UINT32_MAX

/* What a child has done, as far as it has been told. */
struct log
{
	uint8_t present[TREES][KEYS];
	uint32_t busy_tree; /* the change that was under way: found or not, either is right */
	uint32_t busy_key;  /* NO_KEY: none */
	uint32_t changes;
	uint32_t wrong; /* results that cannot be */
};

struct shared
{
	uint32_t lock[SMART_LOCK_COUNT];
	uint64_t tree[TREES];
	struct log log[CHILDREN];
};

static struct shared *shared;
static struct smart_region region;
static struct smart_compute compute;
static uint64_t state = 1;
static unsigned int locks_to_live; /* a child kills itself at so many; 0: it does not */

/* ---- a compute node in shared memory ---- */

static void
maybe_die(void)
{
	if (locks_to_live > 0 && --locks_to_live == 0)
		(void) raise(SIGKILL);
}

static void
acquire(struct smart_lock_table *table, unsigned int lock)
{
	uint32_t expected = 0;

	while (!__atomic_compare_exchange_n(&shared->lock[lock], &expected, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
	{
		expected = 0;
		sched_yield();
	}
	maybe_die();
}

static void
release(struct smart_lock_table *table, unsigned int lock)
{
	maybe_die();
	__atomic_store_n(&shared->lock[lock], 0, __ATOMIC_RELEASE);
}

static struct smart_lock_table lock_table = {acquire, release};

static void *
share(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		abort();
	return memory;
}

static struct smart_client *
open_client(struct env_thread *thread, uint64_t seed)
{
	struct smart_client *client = NULL;

	env_thread_init(thread, seed);
	if (smart_client_open(&compute, &thread->env, (uint64_t) getpid(), &client) != SMART_OK)
		abort();
	return client;
}

static struct smart_tree *
open_tree(struct smart_client *client, uint64_t id)
{
	struct smart_tree_options options = {.id = id, .leaf_size = 128, .fixed_length = 8};
	struct smart_tree *tree = NULL;

	if (!smart_space_find_tree(&client->space, id, &options.root) ||
		smart_tree_open(client->fabric, client->env, &client->services, &options, &tree) != SMART_OK)
		abort();
	return tree;
}

/* Keys of all children lie among each other, in the order of their numbers or mixed, by tree. */
static void
make_key(unsigned int tree, uint32_t number, uint8_t bytes[8])
{
	uint64_t key = tree == 0 ? number : (number + 1) * UINT64_C(0x9e3779b97f4a7c15);

	key = __builtin_bswap64(key);
	memcpy(bytes, &key, 8);
}

/* ---- children ---- */

static void
change(struct log *log, unsigned int child, unsigned int which, struct smart_tree *tree)
{
	uint32_t key = (uint32_t) (test_random(&state) % KEYS);
	bool insert = test_random(&state) % 5 < 3;
	bool done = false;
	uint8_t bytes[8];
	smart_status status;

	make_key(which, key * CHILDREN + child, bytes);
	log->busy_tree = which;
	__atomic_store_n(&log->busy_key, key, __ATOMIC_SEQ_CST);
	status = insert ? smart_tree_insert(tree, bytes, 8, 8, &done) : smart_tree_remove(tree, bytes, 8, &done);
	if (status != SMART_OK || done != (insert != (bool) log->present[which][key]))
		log->wrong++;
	log->present[which][key] = insert;
	__atomic_store_n(&log->busy_key, NO_KEY, __ATOMIC_SEQ_CST);
	log->changes++;
}

/* A tree of one's own: inserted into or loaded, and dropped or left where no index names it. */
static void
make_tree(struct smart_client *client)
{
	static const struct smart_tree_owner no_owner = {.backend = -1};
	unsigned int entries = (unsigned int) (test_random(&state) % 400);
	bool loads = test_random(&state) % 2 == 0;
	struct smart_load *load = NULL;
	struct smart_tree *tree;
	fabric_address root;
	uint8_t bytes[8];
	uint64_t id;
	bool added;

	if (smart_space_create_tree(&client->space, &no_owner, &id, &root) != SMART_OK)
		return;
	tree = open_tree(client, id);
	if (loads && smart_load_begin(tree, 80, &load) != SMART_OK)
		abort();
	for (unsigned int i = 0; i < entries; i++)
	{
		make_key(0, i, bytes);
		if (loads)
			(void) smart_load_add(load, bytes, 8);
		else
			(void) smart_tree_insert(tree, bytes, 8, 8, &added);
	}
	if (loads)
		(void) smart_load_finish(load);
	smart_tree_close(tree);
	if (test_random(&state) % 4 != 0)
		(void) smart_space_drop_tree(&client->space, id);
}

static void
child_main(unsigned int child, uint64_t seed)
{
	struct env_thread thread;
	struct smart_client *client = open_client(&thread, seed);
	struct smart_tree *tree[TREES];

	state = seed;
	for (unsigned int i = 0; i < TREES; i++)
		tree[i] = open_tree(client, shared->tree[i]);
	locks_to_live = test_random(&state) % 2 == 0 ? (unsigned int) (test_random(&state) % 3000) + 1 : 0;
	for (;;)
	{
		uint64_t dice = test_random(&state) % 1000;

		if (dice < 10)
			make_tree(client);
		else if (dice < 13)
			(void) smart_space_reclaim(&client->space, shared->tree[dice % TREES]);
		else if (dice < 14)
			(void) smart_space_segment(&client->space, (unsigned int) (test_random(&state) % 16));
		else
			change(&shared->log[child], child, dice % TREES, tree[dice % TREES]);
	}
}

static pid_t
start(void (*body)(unsigned int child, uint64_t seed), unsigned int child)
{
	uint64_t seed = test_random(&state);
	pid_t pid = fork();

	if (pid < 0)
		abort();
	if (pid == 0)
	{
		body(child, seed);
		_exit(0);
	}
	return pid;
}

static void
nap(uint64_t below_us)
{
	usleep((useconds_t) (test_random(&state) % below_us));
}

/* They run for some milliseconds, and die one soon after the other. */
static void
run_children(void)
{
	pid_t pid[CHILDREN];

	for (unsigned int i = 0; i < CHILDREN; i++)
		pid[i] = start(child_main, i);
	nap(30000);
	for (unsigned int i = 0; i < CHILDREN; i++)
	{
		nap(300);
		(void) kill(pid[i], SIGKILL);
	}
	for (unsigned int i = 0; i < CHILDREN; i++)
		CHECK(waitpid(pid[i], NULL, 0) == pid[i]);
}

/* ---- recovery ---- */

/* As a server that starts: nothing is left but the file. */
static void
start_anew(void)
{
	const char *message = "";
	int fd = region.fd;

	smart_region_unmap(&region);
	CHECK(smart_region_map(&region, fd, 64 * MB) == SMART_OK);
	CHECK(smart_region_check(&region, &message) == SMART_OK);
	memset(shared->lock, 0, sizeof(shared->lock));
	smart_epoch_init(compute.epoch, LINES, 0);
	smart_pins_init(compute.pins, LINES);
}

static void
recover_main(unsigned int child, uint64_t seed)
{
	struct env_thread thread;
	struct smart_client *client = open_client(&thread, seed);
	struct smart_recovery recovery = {.message = ""};

	(void) smart_space_recover(&client->space, client->fabric, client->env, &recovery);
}

/* A recovery that is killed. */
static void
recover_in_vain(void)
{
	pid_t pid = start(recover_main, 0);

	nap(1500);
	(void) kill(pid, SIGKILL);
	CHECK(waitpid(pid, NULL, 0) == pid);
	start_anew();
}

static uint64_t
blocks_of(struct smart_client *client, uint64_t id)
{
	struct smart_tree *tree = open_tree(client, id);
	struct smart_verify_report report = {.leaves = 0};
	char message[200] = "";
	uint64_t blocks;

	if (!CHECK(smart_tree_verify(tree, NULL, NULL, &report, message, sizeof(message)) == SMART_OK))
		fprintf(stderr, "%s\n", message);
	blocks = report.leaves;
	for (unsigned int kind = 1; kind <= SMART_NODE_KINDS; kind++)
		blocks += report.nodes[kind];
	smart_tree_close(tree);
	return blocks;
}

static uint64_t
blocks_in_use(void)
{
	uint64_t blocks = 0;

	for (uint32_t page = 0; page < smart_region_header(&region)->home.chunks * SMART_CHUNK_PAGES; page++)
	{
		const struct smart_slab *slab;

		if (page % SMART_CHUNK_PAGES < SMART_CHUNK_FIRST_PAGE)
			continue;
		slab = smart_slab_at(&region, page);
		if (slab->record != 0)
			blocks += slab->blocks - (unsigned int) __builtin_popcountll(slab->free | slab->retired);
	}
	return blocks;
}

static void
check_key(struct smart_tree *tree, unsigned int child, unsigned int which, uint32_t key)
{
	struct log *log = &shared->log[child];
	uint8_t bytes[8];
	bool found = false;

	make_key(which, key * CHILDREN + child, bytes);
	CHECK(smart_tree_lookup(tree, bytes, 8, &found) == SMART_OK);
	if (log->busy_key == key && log->busy_tree == which)
		log->present[which][key] = found;
	else
		CHECK(found == (bool) log->present[which][key]);
}

static void
check_content(struct smart_client *client)
{
	for (unsigned int which = 0; which < TREES; which++)
	{
		struct smart_tree *tree = open_tree(client, shared->tree[which]);

		for (unsigned int child = 0; child < CHILDREN; child++)
			for (uint32_t key = 0; key < KEYS; key++)
				check_key(tree, child, which, key);
		smart_tree_close(tree);
	}
	for (unsigned int child = 0; child < CHILDREN; child++)
	{
		CHECK(shared->log[child].wrong == 0);
		shared->log[child].busy_key = NO_KEY;
	}
}

/* Drops the trees that no index names. */
static void
drop_unnamed(struct smart_client *client)
{
	struct smart_tree_info info;
	uint64_t cursor = 0;

	while (smart_space_next_tree(&client->space, &cursor, &info))
		if (info.id != shared->tree[0] && info.id != shared->tree[1])
			CHECK(smart_space_drop_tree(&client->space, info.id));
}

static void
verify_space(struct smart_client *client)
{
	char message[200] = "";

	if (!CHECK(smart_space_verify(&client->space, message, sizeof(message)) == SMART_OK))
		fprintf(stderr, "%s\n", message);
}

static void
recover_and_check(void)
{
	struct env_thread thread;
	struct smart_client *client = open_client(&thread, 1);
	struct smart_recovery recovery = {.message = ""};
	struct smart_tree_info info;
	uint64_t cursor = 0;
	uint64_t blocks = 0;

	if (!CHECK(smart_space_recover(&client->space, client->fabric, client->env, &recovery) == SMART_OK))
		fprintf(stderr, "%s\n", recovery.message);
	verify_space(client);
	while (smart_space_next_tree(&client->space, &cursor, &info))
		blocks += blocks_of(client, info.id);
	CHECK(blocks == recovery.nodes + recovery.leaves && blocks == blocks_in_use());
	check_content(client);
	drop_unnamed(client);
	verify_space(client);
	smart_client_close(client);
	CHECK(thread.allocations == 0);
}

/* ---- the whole ---- */

static void
set_up(void)
{
	static const struct smart_tree_owner no_owner = {.backend = -1};
	int fd = memfd_create("region", MFD_CLOEXEC);
	struct env_thread thread;
	struct smart_client *client;
	fabric_address root;

	shared = share(sizeof(*shared));
	compute.region = &region;
	compute.locks = &lock_table;
	compute.epoch = share(smart_epoch_size(LINES));
	compute.pins = share(smart_pins_size(LINES));
	CHECK(fd >= 0 && smart_region_map(&region, fd, 64 * MB) == SMART_OK);
	CHECK(smart_region_format(&region, UINT64_C(0x5eed5eed5eed5eed)) == SMART_OK);
	start_anew();
	client = open_client(&thread, 1);
	for (unsigned int i = 0; i < TREES; i++)
		CHECK(smart_space_create_tree(&client->space, &no_owner, &shared->tree[i], &root) == SMART_OK);
	smart_client_close(client);
	for (unsigned int i = 0; i < CHILDREN; i++)
		shared->log[i].busy_key = NO_KEY;
}

int
main(void)
{
	uint64_t changes = 0;

	set_up();
	for (unsigned int round = 0; round < ROUNDS; round++)
	{
		run_children();
		start_anew();
		if (round % 4 == 0)
			recover_in_vain();
		recover_and_check();
	}
	for (unsigned int i = 0; i < CHILDREN; i++)
		changes += shared->log[i].changes;
	CHECK(changes > ROUNDS);
	return check_finish();
}
