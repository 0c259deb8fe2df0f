/*
 * ycsb_env.h
 *	  The environment of a thread.
 */
#ifndef YCSB_ENV_H
#define YCSB_ENV_H

#include "base/env.h"

struct ycsb_env
{
	struct smart_env env; /* first */
	uint64_t random;
};

extern void ycsb_env_init(struct ycsb_env *env, uint64_t seed);

#endif /* YCSB_ENV_H */
