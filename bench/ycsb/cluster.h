/*
 * cluster.h
 *	  Where the tree of a benchmark lives: memory nodes, compute nodes and their
 *	  clients, simulated (sim.c) or real (real.c).
 */
#ifndef YCSB_CLUSTER_H
#define YCSB_CLUSTER_H

#include "compute/cache/cache.h"
#include "compute/coordinate/rdwc.h"
#include "compute/partition/changes.h"
#include "tree/tree.h"
#include "measure.h"
#include "options.h"
#include "team.h"

struct ycsb_cluster;
struct ycsb_client;

/*
 * How the driver works on an index.  An entry is a key, whose last byte or whose length tells that it is
 * no other key's prefix, and a payload.
 */
struct ycsb_index
{
	/* Ahead of a client's operations, and after them; or NULL. */
	smart_status (*begin)(struct ycsb_client *client);
	void (*end)(struct ycsb_client *client);

	/* One client, alone: the first so many records, into an empty index, out of time. */
	smart_status (*load)(struct ycsb_client *client, const struct ycsb_options *options);

	smart_status (*lookup)(struct ycsb_client *client, const uint8_t *key, size_t length, bool *found);
	smart_status (*insert)(struct ycsb_client *client, const uint8_t *entry, size_t key_length, size_t length,
						   bool *added);

	/* The key is there, and gets another payload. */
	smart_status (*update)(struct ycsb_client *client, const uint8_t *entry, size_t key_length, size_t length);

	/* *seen: entries from key on, at most so many as are wanted. */
	smart_status (*scan)(struct ycsb_client *client, const uint8_t *key, size_t length, uint64_t wanted,
						 uint64_t *seen);

	/* Does an update leave a moment in which the key is absent? */
	bool update_is_removal;
};

/* A client and its handle on the index. */
struct ycsb_client
{
	const struct ycsb_index *index;
	struct ycsb_cluster *cluster;
	unsigned int number;
	struct smart_env *env;
	struct fabric *fabric;
	struct smart_tree *tree; /* of this project's index; else NULL */
	struct smart_scan *scan; /* likewise, while it works */
	struct smart_turn *turn; /* likewise, of owners with logs, from enter to leave */
};

typedef void (*ycsb_body)(struct ycsb_client *client, void *argument);

/* Ranges that have changed hands while clients worked. */
struct ycsb_moves
{
	unsigned int count;
	uint64_t longest_ns; /* from when a range was about to be given until it could be used again */
};

struct ycsb_cluster
{
	unsigned int clients; /* numbered in turn over the compute nodes */
	struct ycsb_client **client;

	/*
	 * Runs body in the first so many clients at the same time; returns when all have ended.  False: some never would,
	 * which is told on stderr, and no other run can follow.
	 */
	bool (*run)(struct ycsb_cluster *cluster, unsigned int clients, ycsb_body body, void *argument);

	/* The local work of an operation, where time is virtual; NULL: it takes the time that it takes. */
	void (*work)(struct ycsb_client *client);

	/*
	 * Of a partitioned tree; else NULL.  enter: a turn with the owner of the key's range begins, and the client's handle is
	 * on that range's tree, until leave.  next_range: the first key of the range behind that one; false: there is none.
	 * turn_to: the handle goes over to the tree of a range, without a turn; false: there are not so many.
	 */
	smart_status (*enter)(struct ycsb_client *client, const uint8_t *key, size_t length);
	void (*leave)(struct ycsb_client *client);
	bool (*next_range)(struct ycsb_client *client, const uint8_t **key, size_t *length);
	bool (*turn_to)(struct ycsb_client *client, unsigned int range);

	/*
	 * Of one whose owners have logs; else NULL.  look: some looks at memory that the owner's clients share.  relieve: in
	 * no turn: applies what has waited too long in the log of the owner of the last range; full: it was full.
	 * apply_all: the trees have what the logs have; nobody works.
	 */
	void (*look)(struct ycsb_client *client, unsigned int looks);
	smart_status (*relieve)(struct ycsb_client *client, bool full);
	smart_status (*apply_all)(struct ycsb_client *client);
	const struct ycsb_moves *moves;

	/* Of all caches, added up; 0 where there is none. */
	void (*cache_use)(struct ycsb_cluster *cluster, struct ycsb_cache_use *use);

	void (*close)(struct ycsb_cluster *cluster);
};

/* This project's index; with values that are updated in place. */
extern const struct ycsb_index ycsb_tree_index;
extern const struct ycsb_index ycsb_values_index;

/* The same in ranges. */
extern const struct ycsb_index ycsb_partitioned_index;
extern const struct ycsb_index ycsb_partitioned_values_index;

/* Within a turn with an owner that has a log (logged.c); the entry's payload becomes its value. */
extern const struct ycsb_index ycsb_logged_index;
extern const struct ycsb_index ycsb_logged_values_index;
extern size_t ycsb_make_value(uint8_t *entry, size_t key_length, size_t length, uint64_t *value);

/* An empty tree on a cluster with all its clients.  NULL: what failed is told on stderr. */
extern struct ycsb_cluster *ycsb_sim_open(const struct ycsb_options *options);

/*
 * Likewise; compute nodes other than the first are processes, which go on in here.  shared has room for
 * ycsb_real_bytes(), and whatever the bodies of its runs use in common lies there.
 */
extern struct ycsb_cluster *ycsb_real_open(const struct ycsb_options *options, struct ycsb_shared *shared);
extern size_t ycsb_real_bytes(const struct ycsb_options *options);

/* The options of the tree's handle, but for id and root. */
extern struct smart_tree_options ycsb_tree_options(const struct ycsb_options *options);

/* Zeros or not; to be freed. */
extern void *ycsb_allocate_table(size_t bytes);

/* The cache and the RDWC table of a compute node, where the options want them.  False: no memory; free what there is. */
extern bool ycsb_open_tables(const struct ycsb_options *options, unsigned int clients, uint64_t seed,
							 struct smart_cache **cache, struct smart_rdwc **rdwc);

/* Tells on stderr; false. */
extern bool ycsb_complain(const char *what, smart_status status);

/* The environment of a thread. */
struct ycsb_env
{
	struct smart_env env; /* first */
	uint64_t random;      /* the state of its random numbers */
};

extern void ycsb_env_init(struct ycsb_env *env, uint64_t seed);

#endif /* YCSB_CLUSTER_H */
