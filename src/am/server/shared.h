/*
 * shared.h
 *	  What the processes of a server share, and where each of them finds it.
 *
 * What lies in shared memory beside the structures of src/compute, the table of peers (peers.h) and the table of
 * rebuilds (rebuild_table.h) is declared here, so that this file needs none of those that use it.  lifecycle.c makes
 * it.
 */
#ifndef SMART_AM_SHARED_H
#define SMART_AM_SHARED_H

#include "datatype/timestamp.h"
#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/s_lock.h"

#include "am/server/errands.h"
#include "compute/cache/cache.h"
#include "compute/client.h"
#include "compute/coordinate/rdwc.h"
#include "rdma/fabric.h"

#define SMART_LAUNCHER_NAME "smart launcher"

/* May the region be used?  Not before startup recovery has made it good (startup.c). */
enum smart_startup_state
{
	SMART_STARTUP_OPEN,
	SMART_STARTUP_CLOSED, /* startup recovery is pending */
	SMART_STARTUP_BUSY    /* a process is at it */
};

/* The members of struct fabric_counters, which all are 8 bytes, one after another. */
#define SMART_FABRIC_TOTALS (sizeof(struct fabric_counters) / sizeof(uint64))

/*
 * What all processes did on the fabric (backend.c adds, server_stat.c shows), cumulative since the last reset; and the counters
 * of RDWC as they were then.
 */
struct smart_fabric_totals
{
	pg_atomic_uint64 total[SMART_FABRIC_TOTALS];
	pg_atomic_uint64 rdwc[SMART_RDWC_COUNTERS]; /* in the order of struct smart_rdwc_counters */
	pg_atomic_uint64 reset_at;                  /* a TimestampTz */
};

/* The counters of the cache as they were at the last reset (server_stat.c). */
struct smart_cache_base
{
	pg_atomic_uint64 counter[SMART_CACHE_COUNTERS]; /* in the order of struct smart_cache_counters */
	pg_atomic_uint64 reset_at;                      /* a TimestampTz */
};

#define SMART_ORPHANS_REQUESTS 32 /* databases; if there are more, all are looked at */
#define SMART_ORPHANS_PREPARED 64 /* transactions; the others are left to the round of all databases */

struct smart_orphans_prepared
{
	TransactionId xid;
	Oid database;
};

/* In which databases orphans are to be collected (launcher_requests.c). */
struct smart_orphans_requests
{
	slock_t lock; /* of all that follows */
	bool all;
	uint64 ever; /* requests since the server's start */
	int count;
	Oid database[SMART_ORPHANS_REQUESTS];
	int nprepared;
	struct smart_orphans_prepared prepared[SMART_ORPHANS_PREPARED];
};

#define SMART_ERRANDS 64 /* indexes; others come again */

enum smart_errand_state
{
	SMART_ERRAND_WAITS,
	SMART_ERRAND_CALLED, /* a worker has been started for it */
	SMART_ERRAND_RUNS
};

struct smart_errand
{
	Oid database;
	Oid index;
	enum smart_errand_state state;
	bool again;       /* RUNS: it was requested meanwhile */
	uint32 requests;  /* until now */
	TimestampTz when; /* WAITS: not before; CALLED: since */
};

/* What is to be done to journals (errands.c). */
struct smart_errands
{
	slock_t lock; /* of all that follows */
	int count;
	struct smart_errand request[SMART_ERRANDS];
};

#define SMART_PASSED 64 /* deltas */

/* How many entries scans have passed by (passed.c); both are hints. */
struct smart_passed
{
	pg_atomic_uint64 delta; /* its tree, or 0 */
	pg_atomic_uint64 entries;
};

#define SMART_SPENT 256 /* deltas */

enum smart_spent_state
{
	SMART_SPENT_IDLE,  /* the turn before has left nothing */
	SMART_SPENT_WAITS, /* for the follower to come to the turn's beginning */
	SMART_SPENT_PINS   /* for readers who may have read it before that */
};

/* The spent tombstones of a delta (journal/spent.c). */
struct smart_spent
{
	slock_t lock; /* of all that follows */
	enum smart_spent_state state;
	uint64 delta;    /* its tree, or 0 */
	uint64 turn;     /* that of now */
	uint64 begin[2]; /* of this turn in the chain: the words of a place (index/trees.h) */
	uint64 least[2]; /* where a follower has to be to be read with the delta; 0: anywhere */
	uint64 pins;     /* the moment since which the state is PINS (index/pin.h) */
	uint64 passed;   /* tombstones that scans have passed by in this turn */
	uint64 others;   /* entries that the last purge has left */
};

/* In shared memory.  Set when shared memory starts; each member says what changes it later, and under which lock. */
struct smart_shared
{
	uint64 server_incarnation;         /* never changes */
	bool made;                         /* there is a region; any client, the directory's lock held */
	bool used;                         /* a backend of this start is or was a client; likewise */
	bool deltas_made;                  /* there is a region of deltas; likewise, its own directory's lock held */
	bool standby;                      /* the start was of a standby, or recovers from a backup; never changes */
	bool promoted;                     /* and that has ended (region_file.h); as made */
	pg_atomic_uint32 startup;          /* enum smart_startup_state; startup.c, by CAS to busy */
	ConditionVariable startup_changed; /* startup was stored */
	ConditionVariable applied;         /* a tree of a standby may be changed by another process (journal/follow.c) */
	ConditionVariable pins_wait;       /* a pin that a bulk delete waits for has ended */
	Latch *launcher_latch;             /* the launcher's: set when there is something to do; NULL: none runs */
	struct smart_fabric_totals fabric;
	struct smart_cache_base cache;
	pg_atomic_uint32 moves_requested; /* 1: trees may have been chosen to be moved (launcher_requests.h) */
	struct smart_orphans_requests orphans;
	struct smart_errands errands[SMART_ERRAND_KINDS];
	struct smart_passed passed[SMART_PASSED];
	struct smart_spent spent[SMART_SPENT];
};

struct smart_peers;

/* Set in the postmaster, inherited by all backends; client is each process's own. */
struct smart_server
{
	bool remote;           /* indexes are on memory nodes, and the region is only their extent map */
	bool in_shared_memory; /* the region is (region_shm.c), and not in a file */
	uint64 run;            /* token of the run file (marks.h) */
	uint64 identity;       /* on memory nodes (identity.h); 0 unless remote */
	struct smart_region region;
	struct smart_compute compute;
	struct smart_region delta_region; /* with memory nodes: of the server's own memory (delta_region.h) */
	struct smart_compute delta_compute;
	struct smart_shared *shared; /* NULL: the library was not preloaded */
	struct smart_peers *peers;   /* NULL unless remote */
	LWLockPadded *space_locks;
	LWLockPadded *leaf_locks;
	char problem[MAXPGPATH + 128]; /* why the region cannot be used, or empty */
	struct smart_client *client;   /* this process, after startup recovery (backend.c); NULL before */
};

extern struct smart_server smart_server;

/* How often this session has waited for memory nodes so far. */
static inline uint64
smart_session_round_trips(void)
{
	const struct smart_client *client = smart_server.client;

	return client == NULL ? 0 : client->fabric->counters.round_trips;
}

/* In the shmem_startup_hook: a structure in shared memory, all of it 0. */
extern void *smart_shared_make(const char *name, Size size);

/* Raises an error with a hint unless the library was preloaded and the region is mapped. */
extern void smart_server_require(void);

/* The same question without an error. */
static inline bool
smart_server_available(void)
{
	return smart_server.shared != NULL && smart_server.problem[0] == '\0';
}

/* Has all been made good that an earlier server left in the region?  There must be shared memory. */
static inline bool
smart_startup_is_done(void)
{
	bool open = pg_atomic_read_u32(&smart_server.shared->startup) == SMART_STARTUP_OPEN;

	/* Pairs with set_state() of startup.c: a process that sees the region open sees it good. */
	pg_read_barrier();
	return open;
}

/* Are indexes on memory nodes that have yet to be recovered after a crash, which may take as long as one of them is away? */
static inline bool
smart_server_recovers(void)
{
	return smart_server.remote && !smart_startup_is_done();
}

/* Random, new at each start of shared memory: tells a temporary tree's backend from a later one of the same number. */
extern uint64 smart_server_incarnation(void);

#endif /* SMART_AM_SHARED_H */
