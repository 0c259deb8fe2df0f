/*
 * offload_bench.h
 *	  A tree on real memory nodes and a client of it, for tests of descents by memory
 *	  nodes: services of its own, which hand out blocks of one chunk of each memory node and never
 *	  use them again, and a cache that can be emptied.
 *
 * The entries are all numbers of OFFLOAD_DIGITS digits, most significant first, so
 * that the tree is some nodes high.
 */
#ifndef TEST_OFFLOAD_BENCH_H
#define TEST_OFFLOAD_BENCH_H

#include "compute/cache/cache.h"
#include "support/memnodes.h"
#include "tree/find/offload.h"
#include "tree/tree.h"

#define OFFLOAD_DIGITS     5
#define OFFLOAD_VALUES     4
#define OFFLOAD_ENTRIES    1024
#define OFFLOAD_ENTRY      8 /* bytes */
#define OFFLOAD_TIMEOUT_MS 30000

struct offload_bench
{
	struct smart_services services; /* first */
	struct test_memnodes *nodes;
	unsigned int spread; /* memory nodes that blocks go to, in turn */
	unsigned int next_node;
	uint64_t used; /* bytes of each chunk */
	struct smart_cache *cache;
	struct smart_offload offload;
	struct test_remote remote;
	struct smart_tree *tree;
	unsigned int height;
	unsigned int deep; /* number of an entry that so many blocks lead to, its leaf included */
};

/* A tree whose blocks go to so many memory nodes in turn, by its own id; nothing is offloaded at first.  Aborts when it cannot. */
extern void
offload_bench_open(struct offload_bench *bench, struct test_memnodes *nodes, unsigned int spread, uint64_t id);
extern void offload_bench_close(struct offload_bench *bench);

extern void offload_make_entry(uint8_t *entry, unsigned int number);
extern void offload_forget_cache(struct offload_bench *bench);

/* Is the entry there? */
extern bool offload_look_up(struct offload_bench *bench, const uint8_t *entry);

/* The round trips of a lookup, by a client whose cache is empty if cold; *descents: those made for it. */
extern uint64_t offload_cost(struct offload_bench *bench, unsigned int number, bool cold, uint64_t *descents);

/* Entries from all over the tree, each from an empty cache, and keys next to them that are not there. */
extern void offload_check_all(struct offload_bench *bench, enum smart_offload_mode mode);

/* What was changed a moment ago is seen. */
extern void offload_check_changes(struct offload_bench *bench, enum smart_offload_mode mode);

#endif /* TEST_OFFLOAD_BENCH_H */
