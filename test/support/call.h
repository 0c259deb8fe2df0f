/*
 * call.h
 *	  A call of a fabric in a thread of its own, for tests that do something meanwhile.
 */
#ifndef TEST_CALL_H
#define TEST_CALL_H

#include <pthread.h>

#include "rdma/fabric.h"

struct call
{
	struct fabric *fabric;
	struct fabric_request *requests;
	int count;
	smart_status status;
	pthread_t thread;
};

extern void call_start(struct call *call, struct fabric *fabric, struct fabric_request *requests, int count);

/* Waits for its end. */
extern smart_status call_finish(struct call *call);

#endif /* TEST_CALL_H */
