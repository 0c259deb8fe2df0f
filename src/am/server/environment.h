/*
 * environment.h
 *	  A server process as the environment of the code below (base/env.h).
 */
#ifndef SMART_AM_ENVIRONMENT_H
#define SMART_AM_ENVIRONMENT_H

#include "base/env.h"

/* The one of this process; init once, before its first use. */
extern struct smart_env smart_environment;
extern void smart_environment_init(void);

/* A random number that is not 0; in any process, at any time. */
extern uint64_t smart_random_token(void);

#endif /* SMART_AM_ENVIRONMENT_H */
