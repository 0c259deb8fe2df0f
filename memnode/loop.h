/*
 * loop.h
 *	  The daemon's one thread: connections, signals, time limits.
 */
#ifndef MEMNODE_LOOP_H
#define MEMNODE_LOOP_H

#include "listen.h"
#include "node.h"
#include "rdma/tcp/stream.h"

struct memnode_loop;

/* What a source wants next. */
enum memnode_next
{
	MEMNODE_NEXT_EVENT,
	MEMNODE_NEXT_MOMENT, /* to be called again soon, also without an event */
	MEMNODE_NEXT_REST    /* not to be called for a second, whatever happens: there are no descriptors left */
};

/* Something else than clients that the loop waits for. */
struct memnode_source
{
	int descriptor;
	/* The descriptor can be read, or a moment has passed.  Must not wait. */
	enum memnode_next (*serve)(void *argument);
	void *argument;
	bool called; /* it is to be called in this round */
	enum memnode_next next;
	uint64_t rests_until_ns; /* 0: it does not rest */
};

/* An accept() has failed: does the listening socket stay readable all the same? */
extern bool memnode_accept_must_rest(int error);

struct memnode_loop_options
{
	struct memnode *node;
	const struct memnode_listeners *listeners;
	const struct stream_keys *keys; /* of the connections to come */
	struct memnode_source *sources;
	unsigned int source_count;
	void (*reload)(void *argument); /* at SIGHUP */
	void (*look)(void *argument);   /* every few seconds */
	void *argument;
};

/*
 * The options are the caller's and may change between turns of the loop.  SIGTERM,
 * SIGINT and SIGHUP are blocked from now on and taken by the loop.  NULL: problem[] says why.
 */
extern struct memnode_loop *
memnode_loop_open(const struct memnode_loop_options *options, char problem[MEMNODE_PROBLEM_MAX]);

/* Serves until SIGTERM or SIGINT comes. */
extern void memnode_loop_run(struct memnode_loop *loop);

/* Closes all connections. */
extern void memnode_loop_close(struct memnode_loop *loop);

#endif /* MEMNODE_LOOP_H */
