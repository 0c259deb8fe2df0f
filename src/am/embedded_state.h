/*
 * embedded_state.h
 *	  What embedded.c sets up and backend.c uses; nobody else's business.
 */
#ifndef SMART_AM_EMBEDDED_STATE_H
#define SMART_AM_EMBEDDED_STATE_H

#include "storage/lwlock.h"

#include "am/embedded.h"

/* In shared memory.  Set when shared memory starts, but for made and used. */
struct smart_embedded_shared
{
	uint64 server_start;
	bool made; /* there is a region; set under the directory's lock */
	bool used; /* a backend of this start is or was a client; likewise */
	ConditionVariable interlock_wait;
};

struct smart_embedded
{
	struct smart_region region;
	struct smart_compute compute;
	struct smart_embedded_shared *shared; /* NULL: the library was not preloaded */
	LWLockPadded *space_locks;
	LWLockPadded *leaf_locks;
	char problem[MAXPGPATH + 128]; /* why the region cannot be used, or empty */
};

extern struct smart_embedded smart_embedded;

#endif /* SMART_AM_EMBEDDED_STATE_H */
