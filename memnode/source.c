/*
 * source.c
 *	  What the daemon's loop waits for besides clients.
 */
#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>

#include "base/assert.h"
#include "base/clock.h"
#include "source.h"

#define REST_NS UINT64_C(1000000000)

bool
memnode_accept_must_rest(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

bool
memnode_source_watch(struct memnode_source *source, int epoll)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};

	smart_assert(!source->called && source->rests_until_ns == 0);
	smart_assert(source->serve != NULL && source->descriptor >= 0);
	return epoll_ctl(epoll, EPOLL_CTL_ADD, source->descriptor, &event) == 0;
}

bool
memnode_sources_call(struct memnode_source *sources, unsigned int count, const void *what)
{
	for (unsigned int i = 0; i < count; i++)
	{
		if (what != &sources[i])
			continue;
		sources[i].called = true;
		return true;
	}
	return false;
}

bool
memnode_sources_wait(const struct memnode_source *sources, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
	{
		if (sources[i].next != MEMNODE_NEXT_EVENT)
			return true;
	}
	return false;
}

/* until_ns: no event of it comes until then; 0: they do. */
static void
let_rest(struct memnode_source *source, int epoll, uint64_t until_ns)
{
	struct epoll_event event = {.events = until_ns == 0 ? EPOLLIN : 0, .data.ptr = source};

	smart_assert((until_ns == 0) == (source->rests_until_ns != 0));
	source->rests_until_ns = until_ns;
	epoll_ctl(epoll, EPOLL_CTL_MOD, source->descriptor, &event);
}

static void
serve(struct memnode_source *source, int epoll)
{
	uint64_t now = smart_clock_ns();

	if (source->rests_until_ns > now)
		return;
	if (source->rests_until_ns != 0)
		let_rest(source, epoll, 0);
	source->next = source->serve(source->argument);
	if (source->next == MEMNODE_NEXT_REST)
		let_rest(source, epoll, now + REST_NS);
	/* Whoever rests is called again without an event. */
	smart_assert(source->rests_until_ns == 0 || source->next != MEMNODE_NEXT_EVENT);
}

void
memnode_sources_serve(struct memnode_source *sources, unsigned int count, int epoll)
{
	for (unsigned int i = 0; i < count; i++)
	{
		if (sources[i].called || sources[i].next != MEMNODE_NEXT_EVENT)
			serve(&sources[i], epoll);
		sources[i].called = false;
	}
}
