/*
 * env.h
 *	  The environment: what differs between a PostgreSQL backend, a program of
 *	  its own and the simulator.
 *
 * One env belongs to one client (one process or thread); its functions are
 * called by that client only.
 */
#ifndef SMART_BASE_ENV_H
#define SMART_BASE_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum smart_log_level
{
	SMART_LOG_DEBUG,
	SMART_LOG_INFO,
	SMART_LOG_WARNING
};

struct smart_env
{
	/* Memory of this process; NULL when there is none left. */
	void *(*allocate)(struct smart_env *env, size_t bytes);
	void (*release)(struct smart_env *env, void *memory);

	/* A monotonic clock (virtual in the simulator), and 64 random bits. */
	uint64_t (*now_ns)(struct smart_env *env);
	uint64_t (*random)(struct smart_env *env);

	/* One line for the operator, without a newline. */
	void (*log)(struct smart_env *env, enum smart_log_level level, const char *line);

	/* Has this client been asked to stop what it does (query cancel, shutdown)? */
	bool (*interrupted)(struct smart_env *env);

	/*
	 * Let others run.  attempt counts from 0 within one wait: an implementation
	 * spins first and sleeps later.
	 */
	void (*pause)(struct smart_env *env, unsigned int attempt);

	/*
	 * Sleeps until a descriptor can be read or, if to_write, read or written, at most
	 * timeout_ms; true if it can, or has failed.  May return false early, at a signal: the
	 * caller looks at its own limit and at interrupted().  NULL where there are no
	 * descriptors (the simulator).
	 */
	bool (*wait_descriptor)(struct smart_env *env, int descriptor, bool to_write, uint32_t timeout_ms);
};

/* When a wait of so long that begins now is over, by the environment's clock. */
static inline uint64_t
smart_deadline_ns(struct smart_env *env, uint32_t timeout_ms)
{
	return env->now_ns(env) + (uint64_t) timeout_ms * 1000000;
}

#endif /* SMART_BASE_ENV_H */
