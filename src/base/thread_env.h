/*
 * thread_env.h
 *	  The environment (base/env.h) of a thread of a program that is no server.
 */
#ifndef SMART_BASE_THREAD_ENV_H
#define SMART_BASE_THREAD_ENV_H

#include "base/env.h"

/*
 * The C library's memory, the system's clock, a log on stderr.  A thread is never interrupted, and random is NULL: a
 * program that draws numbers copies this and adds a function with a state of its own.
 */
extern const struct smart_env smart_thread_env;

#endif /* SMART_BASE_THREAD_ENV_H */
