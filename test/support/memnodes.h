/*
 * memnodes.h
 *	  Real memory nodes on this host, for tests: daemons on ports that the kernel
 *	  chooses, with a lease and a chunk each, and what a compute node shares about them.
 *
 *		struct test_memnodes *nodes = test_memnodes_open(2, true);
 *		struct test_remote mine;
 *		test_remote_open(nodes, &mine, 1, 5000);
 *		... mine.fabric, fabric_make_address(0, nodes->offset) ...
 *		test_remote_close(&mine);
 *		test_memnodes_close(nodes);
 *
 * A test that cannot go on aborts.
 */
#ifndef TEST_MEMNODES_H
#define TEST_MEMNODES_H

#include <sys/types.h>

#include "rdma/remote/remote.h"
#include "support/env_thread.h"

#define TEST_MEMNODES_MAX 4

struct test_memnode
{
	pid_t pid; /* 0: it does not run */
	char port[SESSION_PORT_MAX];
	char via[SESSION_PORT_MAX]; /* where clients find it: port, unless a test says otherwise */
	uint64_t incarnation;       /* of its memory */
	struct session *control;    /* has the lease */
};

struct test_memnodes
{
	struct fabric_nodes shared; /* first */
	uint32_t generation[FABRIC_NODES_MAX];
	struct env_thread thread; /* of the control sessions */
	struct stream_secret secret;
	enum wire_transport transport; /* of verbs */
	uint64_t incarnation;          /* of the compute node */
	char directory[32];
	unsigned int count;
	uint64_t offset; /* a chunk of each node's, at the same place on all */
	struct test_memnode node[TEST_MEMNODES_MAX];
};

extern struct test_memnodes *test_memnodes_open(unsigned int count, bool with_secret);
/* With verbs over RDMA; this host needs a device. */
extern struct test_memnodes *test_memnodes_open_rdma(unsigned int count, bool with_secret);
extern void test_memnodes_close(struct test_memnodes *nodes);

/* kill -9, and a start with the memory that is left, or with an empty one. */
extern void test_memnode_kill(struct test_memnodes *nodes, unsigned int node);
extern void test_memnode_start(struct test_memnodes *nodes, unsigned int node, bool empty);

/* Stops the process where it is, and lets it go on. */
extern void test_memnode_freeze(struct test_memnodes *nodes, unsigned int node);
extern void test_memnode_thaw(struct test_memnodes *nodes, unsigned int node);

/* Options of a session with a node, for verbs or for control. */
extern struct session_options test_session_options(struct test_memnodes *nodes, struct smart_env *env, bool verbs);

/* A client of the compute node. */
struct test_remote
{
	struct env_thread thread;
	struct fabric *fabric;
};

extern void
test_remote_open(struct test_memnodes *nodes, struct test_remote *remote, uint32_t client, uint32_t timeout_ms);
extern void test_remote_close(struct test_remote *remote);

/*
 * Checks all of conformance.h by clients of these nodes, with so many additions by each
 * thread; what is refused as outside of the region must not cost a connection.  The
 * clients have the numbers from 1 to TEST_CONFORMANCE_CLIENTS.
 */
#define TEST_CONFORMANCE_CLIENTS 8

extern void test_memnodes_conformance(struct test_memnodes *nodes, unsigned int additions, uint32_t timeout_ms);

#endif /* TEST_MEMNODES_H */
