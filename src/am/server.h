/*
 * server.h
 *	  What a PostgreSQL server is to the access method: a compute node, whose
 *	  backends are its clients.
 *
 * Include postgres.h first.
 */
#ifndef SMART_AM_SERVER_H
#define SMART_AM_SERVER_H

#include "compute/client.h"
#include "storage/condition_variable.h"

/*
 * Defines the settings and, if the library is being preloaded, asks for shared memory, for a
 * background worker if there are memory nodes, and sets the hooks that map the
 * region.  Once, from _PG_init.
 */
extern void smart_server_init(void);

/* Raises an error with a hint unless the library was preloaded and the region is mapped. */
extern void smart_server_require(void);

/* The same question without an error. */
extern bool smart_server_available(void);

/* Are indexes on memory nodes that have yet to be recovered after a crash, which may take as long as one of them is away? */
extern bool smart_server_recovers(void);

/* Are indexes on memory nodes, and the region only their book?  As the server was started. */
extern bool smart_server_is_remote(void);

/*
 * This backend as a client of the compute node: made at the first call, closed
 * when the backend exits.  Raises an error where smart_server_require() does, or
 * when memory or client lines have run out; never NULL.  Does not wait for the network.
 */
extern struct smart_client *smart_backend_client(void);

/* The same before it has passed the gate (gate.h), for who gets ready what recovery needs. */
extern struct smart_client *smart_backend_client_at_gate(void);

/* As smart_backend_client(), NULL if there is none yet. */
extern struct smart_client *smart_backend_client_if_any(void);

/* Does this session share READs and appends with others from now on? */
extern void smart_backend_set_rdwc(bool takes_part);

/* The longest wait for a memory node from now on, in milliseconds. */
extern void smart_backend_set_timeout(uint32 timeout_ms);

/* Which searches are left to memory nodes from now on. */
extern void smart_backend_set_offload(enum smart_offload_mode mode);

/* The region's incarnation: trees of any other are gone. */
extern uint64 smart_region_incarnation(void);

/* Random, new at each start of shared memory: tells a temporary tree's backend from a later one of the same number. */
extern uint64 smart_server_incarnation(void);

/* What bulk delete sleeps on, and the wake-up that smart_interlock_leave() asks for. */
extern ConditionVariable *smart_interlock_wait(void);

/* The process that a client number of this server belongs to, 0 if none. */
extern int smart_client_pid(unsigned int client);

#endif /* SMART_AM_SERVER_H */
