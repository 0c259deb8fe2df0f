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

#endif /* SMART_AM_ENVIRONMENT_H */
