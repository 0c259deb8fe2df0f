/*
 * world.h
 *	  One simulated history: its plan, its memory nodes, its clients.
 *
 * There is one world at a time, and everything in it follows from its seed.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <setjmp.h>

#include "compute/cache/cache.h"
#include "compute/coordinate/rdwc.h"
#include "rdma/sim/coroutine.h"
#include "sim/dice.h"
#include "sim/history.h"
#include "support/sim_fabric.h"
#include "tree/block/access.h"
#include "tree/block/node.h"
#include "tree/find/find.h"
#include "tree/find/offload.h"
#include "tree/structure/change.h"
#include "tree/structure/strict.h"

#define CLIENTS_MAX    8 /* of one generation */
#define KEYS           64
#define KEY_BYTES_MAX  96
#define HOT_MAX        8
#define COMPUTE_MAX    CLIENTS_MAX
#define LOCKS_MAX      4
#define HEADS_MAX      128
#define CACHE_ENTRIES  16
#define CACHE_BYTES    (26 * 1024)  /* of the server's cache, at its smallest */
#define NODE_BYTES     (512 * 1024) /* of a memory node */
#define PLACES_MAX     4            /* of a compute node's RDWC */
#define RDWC_BYTES     (32 * 1024)
#define OWNERS_UNITS   3 /* of the table of ranges, where there is one */
#define LOG_RING_BYTES 512
#define LOG_LIVES_MAX  5                       /* generations that have logs */
#define LOGS_UNITS     (3 * LOG_LIVES_MAX * 9) /* of each memory node, where there are logs */
#define CHANGES_BYTES  8192
#define UNITS          (NODE_BYTES / SMART_UNIT)
#define SOLO           CLIENTS_MAX /* the client that sets up and looks at the end */
#define NEVER          UINT64_MAX
#define STEPS_MAX      60000 /* of a history's clients: no progress beyond; more where blocks are long (steps_max) */

/* ---- what a history is like; all chosen from the seed (plan.c) ---- */

enum death_kind
{
	DEATH_NONE,
	DEATH_ONE, /* a compute node with all its clients */
	DEATH_ALL  /* every client; then new ones come */
};

enum descents_kind
{
	DESCENTS_NONE,
	DESCENTS_HINTS, /* memory nodes make them, and the client READs the leaf itself */
	DESCENTS_EXACT
};

enum poison_kind
{
	POISON_NONE, /* a block is used again as it was left */
	POISON_ZERO,
	POISON_RANDOM
};

struct plan
{
	bool shared;
	bool direct;
	unsigned int memory_nodes;
	unsigned int clients;
	unsigned int compute_nodes;
	unsigned int locks; /* local locks of a compute node */
	unsigned int leaf_size;
	unsigned int tiny_nodes;
	unsigned int payload; /* bytes behind the key */
	bool values;          /* that can be changed in place; remote */
	bool fixed;
	unsigned int hot;               /* keys that clients use */
	unsigned int setup;             /* operations before the clients start */
	unsigned int operations;        /* of a client, at most */
	unsigned int weight[8];         /* by enum operation_kind */
	unsigned int switch_one_in;     /* steps between switches, on average */
	unsigned int stall_one_in;      /* CASes that are followed by a stall */
	unsigned int stall_read_one_in; /* READs of blocks that are followed by one */
	unsigned int stalls;            /* stalls at any step */
	enum death_kind death;
	uint64_t death_at;
	unsigned int lives; /* generations of clients; all but the last die */
	bool recovers;      /* blocks that the dead have left are found by marking */
	enum poison_kind poison;
	unsigned int cache_skip_one_in; /* of stores and drops that the cache ignores */
	unsigned int cache_miss_one_in;
	bool lasting_moments;      /* all clients are told the same one, and cached nodes are kept with it */
	bool cache_shared;         /* by the clients of a compute node */
	bool cache_real;           /* the server's, instead of the plain one */
	bool prime;                /* clients fill their caches first */
	bool results;              /* there are some; exclusive and remote */
	bool hints;                /* of leaves, too */
	bool copies;               /* of leaves; exclusive and remote, with values */
	unsigned int point_digits; /* that a point has, of three */
	bool owners;               /* compute nodes own the tree by turns; exclusive and remote */
	bool log;                  /* and have logs */
	unsigned int log_copies;
	unsigned int log_flights;
	unsigned int apply_one_in; /* turns that end with applying; 0: none */
	bool promises;             /* appends promise what they are going to write; shared and remote */
	bool many;                 /* inserts go together; exclusive and remote */
	bool rdwc;                 /* the clients of a compute node share READs and appends */
	unsigned int places;
	enum descents_kind descents;
	bool long_keys;            /* a leaf's entries share more than half of it */
	bool wide_nodes;           /* large ones are direct-mapped, and parts of them are READ (B6) */
	unsigned int first_window; /* of smart_tree_options */
	bool keep_scans;           /* a client's next scan uses what the last one has opened, as in the server */
	unsigned int patience;     /* with a lock that is held, in looks; 0: the tree's own */
	unsigned int no_space_one_in;
	bool full;                /* nothing is left but what clients retire, and room more blocks */
	unsigned int room;        /* counted down; */
	unsigned int standbys;    /* so are these, blocks of which no other leaf is made */
	unsigned int lost_one_in; /* batches whose completion gets lost */
	unsigned int interrupt_one_in;
};

enum bias
{
	BIAS_NONE,
	BIAS_MERGE,   /* removals and maintenance, helpers delayed */
	BIAS_FILL,    /* ranges that fill and empty again */
	BIAS_POOL,    /* stale addresses meet blocks of every kind */
	BIAS_REPEAT,  /* inserts that go where the last one went */
	BIAS_SHARE,   /* clients of one compute node at the same leaves */
	BIAS_CRASH,   /* the server dies time and again */
	BIAS_FULL,    /* removals where there is no room */
	BIAS_VALUE,   /* updates of values, and leaves that are rewritten meanwhile */
	BIAS_MANY,    /* inserts of many keys at a time, by several clients */
	BIAS_PROMISE, /* inserts that sleep between their promise and its entry, and readers that sleep meanwhile */
	BIAS_COUNT
};

/* What the command line asks for. */
struct settings
{
	enum bias bias;
	int shared; /* -1: as the seed says */
	int direct;
	int real_cache;
	int rdwc;
	int descents;
	int values;
	int owners;
	int log;
	bool any_length; /* keys of several lengths */
	bool trace;
	bool watch; /* check every CAS as it happens */
};

/* ---- keys ---- */

struct keyset
{
	uint8_t bytes[KEYS][KEY_BYTES_MAX]; /* ascending; key, then payload */
	unsigned int key_length[KEYS];
	unsigned int length[KEYS];
	unsigned int hot[HOT_MAX];
	unsigned int point_length; /* one key has a point, or four have */
};

/* ---- clients ---- */

enum client_state
{
	CLIENT_ABSENT,
	CLIENT_READY,
	CLIENT_BLOCKED, /* waits for a local lock */
	CLIENT_DONE,
	CLIENT_DEAD
};

struct cache_entry
{
	smart_slot slot; /* address and kind; 0: unused */
	uint64_t moment;
	uint64_t words[SMART_NODE_WORDS_MAX];
};

struct cache
{
	bool has_root;
	smart_slot root;
	struct cache_entry entries[CACHE_ENTRIES];
	uint8_t real[CACHE_BYTES] __attribute__((aligned(128))); /* a struct smart_cache */
};

struct local_lock
{
	int holder; /* client number, -1: free */
};

struct compute_node
{
	struct local_lock locks[LOCKS_MAX];
	struct smart_leaf_locks leaf_locks; /* RDWC: instead of those */
	uint8_t rdwc[RDWC_BYTES] __attribute__((aligned(128)));
};

struct client
{
	int number;
	enum client_state state;
	struct coroutine coroutine;
	struct sim_fabric fabric;
	struct sim_control control;
	struct smart_env env;
	struct smart_services services;
	struct smart_rdwc_member member;
	struct smart_offload offload;
	struct smart_tree *tree;
	struct smart_scan *kept_scan; /* NULL: none */
	struct compute_node *compute;
	struct cache *cache;
	struct cache own_cache;
	uint64_t pin;       /* when the epoch was entered; NEVER: outside */
	uint64_t moment;    /* the last one that it was told */
	uint64_t moment_at; /* and when that was first */
	uint64_t reached;   /* when the epoch was entered, or it learned something since, from a request or the cache */
	fabric_address heads[HEADS_MAX]; /* the last nodes of which it has READ the header since */
	unsigned int heads_count;
	uint64_t stalled_until;
	uint64_t appends; /* that came about */
	uint32_t tenure;  /* of its turn */
	struct local_lock *waits_for;
};

struct block
{
	smart_class class; /* 0: never used */
	uint8_t state;     /* enum block_state of store.c */
	int8_t sealer;     /* the client that sealed the leaf, or first froze a slot of the node; -1: none */
	bool linked;       /* in this life */
	bool marked;       /* by the recovery that goes on */
	uint16_t start;    /* unit of the block's first byte */
	uint64_t born;     /* when this life began */
};

struct retired
{
	fabric_address address;
	smart_class class;
	uint64_t at;
};

#define RETIRED_MAX 8192

struct world
{
	uint64_t seed;
	struct settings settings;
	struct dice dice;
	struct plan plan;
	struct keyset keys;

	/* schedule.c */
	uint64_t now;        /* steps taken; the clock */
	uint64_t next_event; /* step at which the scheduler looks again */
	uint64_t step_limit;
	uint64_t stall_at;
	int running; /* client number; SOLO while no client runs */
	struct coroutine main;
	jmp_buf alone; /* where to go when a client that is alone is stuck */
	struct client clients[CLIENTS_MAX + 1];
	struct compute_node compute[COMPUTE_MAX + 1];
	uint8_t results[COMPUTE_MAX + 1][CACHE_BYTES]
		__attribute__((aligned(128))); /* struct smart_cache, see results_of */

	/* owners.c */
	uint8_t partition[COMPUTE_MAX][1024] __attribute__((aligned(64)));        /* struct smart_partition */
	uint32_t first_owner;                                                     /* the number of the first compute node */
	const struct compute_node *wanted_by;                                     /* who asks for the range; NULL: nobody */
	uint8_t changes[COMPUTE_MAX][CHANGES_BYTES] __attribute__((aligned(64))); /* struct smart_changes */
	uint64_t logs_at[SIM_NODES_MAX];                                          /* offset of the first log's place */

	/* store.c */
	struct sim_memory memory;
	unsigned int next_unit[SIM_NODES_MAX];
	struct block blocks[SIM_NODES_MAX][UNITS];
	struct retired retired[RETIRED_MAX];
	unsigned int retired_count;
	uint64_t allocated; /* blocks that are neither free nor retired */
	uint64_t moment;    /* rises whenever a block is used again, and now and then */
	uint64_t moment_since;
	uint64_t value; /* the last one that a client came with; no two are the same */

	bool mishap;    /* clients died, and blocks may have been lost with them */
	bool died;      /* clients did */
	bool retracted; /* a promise was */

	/* the first violation; message is empty as long as there is none */
	char message[400];
	bool asserted; /* and it is an assertion that failed */
};

extern struct world world;

/* Remembers the first violation of the history. */
extern void world_violation(const char *format, ...) __attribute__((format(printf, 1, 2)));
extern void world_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));

extern bool world_keeps_count(void);

static inline bool
world_failed(void)
{
	return world.message[0] != '\0';
}

/* plan.c */
extern void plan_make(struct plan *plan);
extern void keys_make(struct keyset *keys);
extern size_t keys_point(void *argument, const uint8_t *bytes, size_t length);
extern int keys_find(const struct keyset *keys, const uint8_t *entry, size_t length);

/* arena.c: memory of the simulated processes */
extern void arena_reset(void);
extern void *arena_allocate(size_t bytes);
extern void arena_release(void *memory);

/* schedule.c */
extern void schedule_reset(void);
extern void schedule_run(void (*body)(struct client *client));
extern void schedule_yield(void *client);
extern void schedule_maybe_stall(struct client *client, unsigned int one_in);
extern void schedule_pause(struct client *client, unsigned int attempt);
extern void schedule_wait(struct client *client, struct local_lock *lock);
extern void schedule_give_up(void) __attribute__((noreturn));
extern void schedule_wake(struct local_lock *lock);

/* store.c, services.c */
extern void store_reset(void);
extern smart_status store_allocate(smart_class class, fabric_address *address);
extern smart_status store_allocate_spared(smart_class class, fabric_address *address);
extern smart_status store_allocate_standby(smart_class class, fabric_address *address);
extern bool store_is_unseen(uint64_t since);
extern void store_reuse(smart_class class, fabric_address address);
extern void store_retire(smart_class class, fabric_address address);
extern struct block *store_block(fabric_address address, fabric_address *start);
extern uint64_t store_word(fabric_address address);
extern void store_check_locks(void);
/* A recovery: each block of the tree is marked once (false: it cannot be, and the history is wrong), the others are free. */
extern void store_begin_marks(void);
extern bool store_mark(smart_class class, fabric_address address);
extern void store_end_marks(void);
extern fabric_address store_root(void);
extern void services_init(struct client *client);
extern void cache_open(struct cache *cache);
extern void results_open(void);

/* rdwc.c: the server's own table of read delegation and write combining */
extern void rdwc_open(struct compute_node *compute);
extern void rdwc_services(struct client *client);
extern unsigned int rdwc_locks_held(const struct client *client);
extern uint64_t rdwc_unknown(const struct client *client);
extern void rdwc_add_up(void);

/* owners.c: turns, where compute nodes own the tree by turns; else nothing happens */
extern void owners_reset(struct client *solo);
extern void owners_open(struct client *solo);
extern void owners_begin(struct client *client);
extern void owners_end(struct client *client);
extern void owners_finish(struct client *solo);

/* Within a turn, where compute nodes have logs: the calls of the tree by way of it, and applying.  False: not all could be. */
extern smart_status owners_call(struct client *client, enum event_kind kind, const uint8_t *entry, size_t key_length,
								size_t length, uint64_t *value, bool *result);
extern bool owners_apply(struct client *client);
extern bool owners_word(fabric_address address);

/* recovery.c */
extern void recovery_run(struct client *client);

/* descents.c */
extern smart_status descents_walk(void *client, const struct fabric_descent *descent, struct fabric_path *path);

/* watch.c */
extern void watch_request(void *client, const struct fabric_request *request);

/* client.c */
extern void client_open(struct client *client, int number, struct compute_node *compute, bool keep_cache);
extern void client_body(struct client *client);
extern void client_setup(struct client *client);
extern void client_finish(struct client *client);

#endif /* SIM_WORLD_H */
