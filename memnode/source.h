/*
 * source.h
 *	  Something else than clients that the daemon's loop waits for: whoever asks
 *	  how it is.
 */
#ifndef MEMNODE_SOURCE_H
#define MEMNODE_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

/* What a source wants next. */
enum memnode_next
{
	MEMNODE_NEXT_EVENT,
	MEMNODE_NEXT_MOMENT, /* to be called again soon, also without an event */
	MEMNODE_NEXT_REST    /* not to be called for a second, whatever happens: there are no descriptors left */
};

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

/* Lets the loop's epoll set wait for it; its address comes back with the event. */
extern bool memnode_source_watch(struct memnode_source *source, int epoll);

/* Is what came back with an event one of them?  Then it will be called in this round. */
extern bool memnode_sources_call(struct memnode_source *sources, unsigned int count, const void *what);

/* Does one of them need no event to be called? */
extern bool memnode_sources_wait(const struct memnode_source *sources, unsigned int count);

/* Calls those that have an event, and those that need none. */
extern void memnode_sources_serve(struct memnode_source *sources, unsigned int count, int epoll);

#endif /* MEMNODE_SOURCE_H */
