/*
 * embedded.h
 *	  The embedded memory node: a region file of the server's own, shared by its
 *	  backends.
 *
 * Include postgres.h first.
 */
#ifndef SMART_AM_EMBEDDED_H
#define SMART_AM_EMBEDDED_H

#include "compute/client.h"
#include "storage/condition_variable.h"

/*
 * Defines the settings smart.embedded_path and smart.embedded_max_size, and, if
 * the library is being preloaded, asks for shared memory and sets the hooks that
 * map the region.  Once, from _PG_init.
 */
extern void smart_embedded_init(void);

/* Raises an error with a hint unless the library was preloaded and the region is mapped. */
extern void smart_embedded_require(void);

/* The same question without an error. */
extern bool smart_embedded_available(void);

/*
 * This backend as a client of the region: made at the first call, closed when
 * the backend exits.  Raises an error where smart_embedded_require() does, or
 * when memory or client lines have run out; never NULL.
 */
extern struct smart_client *smart_backend_client(void);

/* The region's incarnation: trees of any other are gone. */
extern uint64_t smart_embedded_incarnation(void);

/* Random, new at each start of shared memory: tells a temporary tree's backend from a later one of the same number. */
extern uint64_t smart_embedded_server_start(void);

/* What bulk delete sleeps on, and the wake-up that smart_interlock_leave() asks for. */
extern ConditionVariable *smart_embedded_interlock_wait(void);

/* The process that a client number of this server belongs to, 0 if none. */
extern int smart_embedded_client_pid(unsigned int client);

#endif /* SMART_AM_EMBEDDED_H */
