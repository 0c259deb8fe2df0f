/*
 * options.h
 *	  What the command line of ycsb asks for.
 */
#ifndef YCSB_OPTIONS_H
#define YCSB_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "compute/partition/log.h"
#include "rdma/sim/model.h"
#include "tree/find/offload.h"
#include "keys.h"

enum ycsb_provider
{
	YCSB_SIM,
	YCSB_LOCAL,
	YCSB_TCP,
	YCSB_VERBS,
	YCSB_PROVIDERS
};

enum ycsb_workload
{
	YCSB_LOAD,
	YCSB_A,
	YCSB_B,
	YCSB_C,
	YCSB_D,
	YCSB_E,
	YCSB_F,
	YCSB_BESIDE,
	YCSB_UPDATES,
	YCSB_WORKLOADS
};

enum ycsb_indexes
{
	YCSB_TREE, /* this project's */
	YCSB_PEER_SMART,
	YCSB_PEER_ART,
	YCSB_PEER_ART_LOCKED,
	YCSB_PEER_DART,
	YCSB_PEER_DART_UNSKIPPED,
	YCSB_PEER_SHERMAN,
	YCSB_PEER_SHERMAN_OPTIMISTIC,
	YCSB_PEER_SHERMAN_PARTITIONED,
	YCSB_PEER_SMART_PARTITIONED,
	YCSB_PEER_DEX,
	YCSB_PEER_DEX_ONESIDED,
	YCSB_PEER_DEX_EAGER,
	YCSB_PEER_CANRT,
	YCSB_PEER_WORT,
	YCSB_PEER_CHIME,
	YCSB_INDEXES
};

#define YCSB_CLIENTS_MAX   4096 /* in all */
#define YCSB_NODES_MAX     64
#define YCSB_DEX_NODES_MAX 60 /* its root has an entry for each of them */

#define YCSB_LOG_BYTES_MIN 16384

struct ycsb_options
{
	enum ycsb_provider provider;
	enum ycsb_indexes index;
	const char *nodes;       /* tcp and verbs: "host:port,…"; NULL: none */
	const char *secret_file; /* of the memory nodes' key; NULL: none */
	bool wanted[YCSB_WORKLOADS];
	uint64_t keys;       /* records that are loaded */
	uint64_t operations; /* of each workload but the load */
	uint64_t warmup;     /* operations ahead of them that are not counted */
	enum ycsb_keys key_type;
	bool zipf;
	uint64_t cache_bytes; /* of each compute node, 0: none */
	unsigned int clients; /* of each compute node */
	unsigned int compute_nodes;
	unsigned int memory_nodes;
	bool shared;
	unsigned int partitions; /* ranges that compute nodes own; 0: one tree, which is all compute nodes' */
	uint32_t log_bytes;      /* of each owner's log; 0: none */
	unsigned int log_copies;
	unsigned int log_flights;        /* WRITEs of a log at a time */
	bool move;                       /* the last compute node's ranges are given away, and come back */
	bool rdwc;                       /* the clients of a compute node share READs and appends */
	enum smart_offload_mode offload; /* tcp and verbs: the side that walks where the cache does not know the way */
	uint64_t scan_min;               /* entries of a scan of workload E */
	uint64_t scan_max;
	uint32_t value_bytes; /* of peers' entries, but SMART's */
	uint32_t leaf_size;
	uint32_t fill; /* percent of a leaf, of records that are loaded from a sorted run */
	bool promises; /* appends to our tree promise what they write */
	bool values;   /* of our tree's entries, to be changed in place, instead of payloads */
	uint64_t seed;
	const char *csv; /* NULL: none */
	const char *svg;
	bool timed;  /* a curve, over numbers of clients */
	bool check;  /* the tree, at the end */
	bool sorted; /* records are loaded from a sorted run */

	/* The simulated cluster. */
	struct sim_model model;
	unsigned int copies; /* of each block; the second one takes time, and nothing else */
	bool colocated;      /* memory nodes and the first compute nodes are the same machines */
};

extern const char *const ycsb_provider_names[YCSB_PROVIDERS];
extern const char *const ycsb_index_names[YCSB_INDEXES];
extern const char *const ycsb_key_names[YCSB_KEY_TYPES];
extern const char *const ycsb_workload_names[YCSB_WORKLOADS];

/* What holds unless the command line says otherwise. */
extern void ycsb_options_default(struct ycsb_options *options);

/* Reads the command line; tells what is wrong with it and ends the program, also after --help. */
extern void ycsb_options_parse(struct ycsb_options *options, int argc, char **argv);

#endif /* YCSB_OPTIONS_H */
