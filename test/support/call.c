/*
 * call.c
 *	  A call of a fabric in a thread of its own.
 */
#include <stdio.h>
#include <stdlib.h>

#include "support/call.h"

static void *
run(void *argument)
{
	struct call *call = argument;

	call->status = fabric_execute(call->fabric, call->requests, call->count);
	return NULL;
}

void
call_start(struct call *call, struct fabric *fabric, struct fabric_request *requests, int count)
{
	*call = (struct call){.fabric = fabric, .requests = requests, .count = count};
	if (pthread_create(&call->thread, NULL, run, call) == 0)
		return;
	perror("pthread_create");
	abort();
}

smart_status
call_finish(struct call *call)
{
	pthread_join(call->thread, NULL);
	return call->status;
}
