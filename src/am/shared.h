/*
 * shared.h
 *	  What the processes of a server share, and where each of them finds it; for
 *	  the files that set it up (shared.c, region_file.c, lifecycle.c) and for
 *	  backend.c.
 *
 * Include postgres.h first.
 */
#ifndef SMART_AM_SHARED_H
#define SMART_AM_SHARED_H

#include "storage/lwlock.h"

#include "am/fabric_stat.h"
#include "am/gate.h"
#include "am/peers.h"
#include "am/rdwc_stat.h"
#include "am/server.h"
#include "am/sweep_worker.h"

/* In shared memory.  Set when shared memory starts, but for made and used. */
struct smart_shared
{
	uint64 server_incarnation;
	bool made; /* there is a region; set under the directory's lock */
	bool used; /* a backend of this start is or was a client; likewise */
	struct smart_gate gate;
	struct smart_rdwc_base rdwc;
	ConditionVariable interlock_wait;
	struct smart_fabric_totals fabric;
	Latch *worker_latch; /* of the background worker: set it when there is something to do; NULL: none runs */
	struct smart_sweep_wishes sweep;
};

/* Set in the postmaster, inherited by all backends. */
struct smart_server
{
	bool remote; /* blocks are on memory nodes */
	uint64 run;  /* token of the run file (runmark.h) */
	struct smart_region region;
	struct smart_compute compute;
	struct smart_shared *shared; /* NULL: the library was not preloaded */
	struct smart_peers *peers;   /* NULL unless remote */
	LWLockPadded *space_locks;
	LWLockPadded *leaf_locks;
	char problem[MAXPGPATH + 128]; /* why the region cannot be used, or empty */
};

extern struct smart_server smart_server;

/* Asks the server for memory and locks (shmem_request_hook). */
extern void smart_shared_request(void);

/* Makes them; epoch: what the reclamation epoch begins with (smart_epoch_init). */
extern void smart_shared_make(uint64 epoch);

#endif /* SMART_AM_SHARED_H */
