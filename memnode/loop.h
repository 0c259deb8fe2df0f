/*
 * loop.h
 *	  The daemon's one thread: connections, signals, time limits.
 */
#ifndef MEMNODE_LOOP_H
#define MEMNODE_LOOP_H

#include "listen.h"
#include "node.h"
#include "rdma/tcp/stream.h"
#include "source.h"

struct memnode_loop;

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
