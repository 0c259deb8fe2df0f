/*
 * backend.c
 *	  A backend as a client of the embedded memory node: its environment, made at
 *	  the first use, gone when the backend exits.
 */
#include "postgres.h"

#include <time.h>

#include "common/pg_prng.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/s_lock.h"

#include "am/embedded.h"
#include "am/embedded_state.h"
#include "am/report.h"

static struct smart_client *client;

/* ---- environment ---- */

/* malloc, since palloc would jump through the tree when there is no memory. */
static void *
backend_allocate(struct smart_env *env, size_t bytes)
{
	return malloc(bytes);
}

static void
backend_release(struct smart_env *env, void *memory)
{
	free(memory);
}

static uint64_t
backend_now_ns(struct smart_env *env)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

static uint64_t
backend_random(struct smart_env *env)
{
	return pg_prng_uint64(&pg_global_prng_state);
}

static void
backend_log(struct smart_env *env, enum smart_log_level level, const char *line)
{
	int elevel = level == SMART_LOG_WARNING ? WARNING : level == SMART_LOG_INFO ? LOG : DEBUG1;

	ereport(elevel, (errmsg_internal("smart: %s", line)));
}

/* Only if the error could be raised as soon as the tree has unwound. */
static bool
backend_interrupted(struct smart_env *env)
{
	if (likely(!InterruptPending) || InterruptHoldoffCount != 0 || CritSectionCount != 0)
		return false;
	return ProcDiePending || (QueryCancelPending && QueryCancelHoldoffCount == 0);
}

static void
backend_pause(struct smart_env *env, unsigned int attempt)
{
	if (attempt < 100)
		SPIN_DELAY();
	else
		pg_usleep(attempt < 1000 ? 10 : 1000);
}

static struct smart_env backend_env = {
	.allocate = backend_allocate,
	.release = backend_release,
	.now_ns = backend_now_ns,
	.random = backend_random,
	.log = backend_log,
	.interrupted = backend_interrupted,
	.pause = backend_pause,
};

/* ---- the client ---- */

bool
smart_embedded_available(void)
{
	return smart_embedded.shared != NULL && smart_embedded.problem[0] == '\0';
}

void
smart_embedded_require(void)
{
	if (likely(smart_embedded_available()))
		return;
	if (smart_embedded.shared == NULL)
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("smart must be loaded when the server starts"),
						errhint("Add 'smart' to shared_preload_libraries and restart the server.")));
	ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("smart has no region to keep indexes in"),
					errdetail_internal("%s", smart_embedded.problem),
					errhint("Check smart.embedded_path and smart.embedded_max_size, and restart the server.")));
}

static void
backend_exit(int code, Datum argument)
{
	bool wake = smart_interlock_leave_all(smart_embedded.compute.interlock, client->number);

	smart_client_close(client);
	client = NULL;
	if (wake)
		ConditionVariableBroadcast(&smart_embedded.shared->interlock_wait);
}

/* The region of a server that had none, or not this one, is made by its first user. */
static smart_status
use_region(void)
{
	struct smart_lock_table *locks = smart_embedded.compute.locks;
	smart_status status = SMART_OK;

	locks->acquire(locks, SMART_LOCK_DIRECTORY);
	if (!smart_embedded.shared->made)
	{
		uint64 incarnation;

		do
			incarnation = pg_prng_uint64(&pg_global_prng_state);
		while (incarnation == 0);
		status = smart_region_format(&smart_embedded.region, incarnation);
	}
	if (status == SMART_OK)
		smart_embedded.shared->made = smart_embedded.shared->used = true;
	locks->release(locks, SMART_LOCK_DIRECTORY);
	return status;
}

struct smart_client *
smart_backend_client(void)
{
	if (likely(client != NULL))
		return client;
	smart_embedded_require();
	smart_check_status(use_region(), NULL);
	smart_check_status(smart_client_open(&smart_embedded.compute, &backend_env, MyProcPid, &client), NULL);
	/* Behind before_shmem_exit, which aborts a transaction that is still open and needs the client for that. */
	on_shmem_exit(backend_exit, 0);
	return client;
}

uint64_t
smart_embedded_incarnation(void)
{
	return smart_region_header(smart_backend_client()->compute->region)->incarnation;
}

uint64_t
smart_embedded_server_start(void)
{
	smart_embedded_require();
	return smart_embedded.shared->server_start;
}

ConditionVariable *
smart_embedded_interlock_wait(void)
{
	smart_embedded_require();
	return &smart_embedded.shared->interlock_wait;
}

int
smart_embedded_client_pid(unsigned int number)
{
	smart_embedded_require();
	return number < smart_embedded.compute.epoch->clients
			   ? (int) smart_epoch_owner(smart_embedded.compute.epoch, number)
			   : 0;
}
