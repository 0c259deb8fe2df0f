/*
 * target.c
 *	  The memory node's side of RDMA.
 *
 * One device serves all clients, since the atomics of two devices are not atomic
 * to each other.  The region is registered once, under one key; what a client
 * may reach of it is a matter of the clients' good behaviour, as in their tree.
 *
 * Queue pairs are made here and then left alone: they answer by themselves, and
 * nothing ever completes on this side.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "rdma/verbs/common.h"
#include "rdma/verbs/target.h"

/* No IBV_ACCESS_RELAXED_ORDERING: an entry is in memory before the word that publishes it. */
#define REMOTE_ACCESS (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

struct verbs_target
{
	struct verbs_device device;
	struct ibv_cq *completions; /* stays empty; a queue pair has to have one */
	struct ibv_mr *memory;
	uint64_t base;
	uint64_t limit;
};

struct verbs_target_pair
{
	struct ibv_qp *pair;
};

bool
verbs_target_available(void)
{
	struct verbs_choice any = {.gid_index = -1};
	struct verbs_device device;
	char problem[FABRIC_PROBLEM_MAX];

	if (verbs_device_open(&any, &device, problem) != SMART_OK)
		return false;
	verbs_device_close(&device);
	return true;
}

smart_status
verbs_target_open(const struct verbs_target_options *options, struct verbs_target **target,
				  char problem[FABRIC_PROBLEM_MAX])
{
	struct verbs_choice choice = {options->device, options->port, options->gid_index};
	struct verbs_target *opened = calloc(1, sizeof(*opened));
	char what[64];
	smart_status status;

	smart_assert(options->from < options->limit);
	if (opened == NULL)
	{
		snprintf(problem, FABRIC_PROBLEM_MAX, "out of memory");
		return SMART_NO_MEMORY;
	}
	status = verbs_device_open(&choice, &opened->device, problem);
	if (status != SMART_OK)
	{
		free(opened);
		return status;
	}
	opened->base = (uint64_t) (uintptr_t) options->base;
	opened->limit = options->limit;
	opened->completions = ibv_create_cq(opened->device.context, 1, NULL, NULL, 0);
	if (opened->completions == NULL)
		status = verbs_failed("making a completion queue", errno, problem);
	else
	{
		opened->memory = ibv_reg_mr(opened->device.domain, options->base + options->from,
									options->limit - options->from, IBV_ACCESS_LOCAL_WRITE | REMOTE_ACCESS);
		if (opened->memory == NULL)
		{
			snprintf(what, sizeof(what), "registering %llu MiB of memory",
					 (unsigned long long) ((options->limit - options->from) >> 20));
			status = verbs_failed(what, errno, problem);
		}
	}
	if (status != SMART_OK)
	{
		verbs_target_close(opened);
		return status;
	}
	smart_assert(opened->completions != NULL && opened->memory != NULL);
	*target = opened;
	return SMART_OK;
}

void
verbs_target_close(struct verbs_target *target)
{
	if (target->memory != NULL)
		ibv_dereg_mr(target->memory);
	if (target->completions != NULL)
		ibv_destroy_cq(target->completions);
	verbs_device_close(&target->device);
	free(target);
}

smart_status
verbs_target_connect(struct verbs_target *target, const struct wire_queue_pair *client, struct wire_queue_pair *answer,
					 struct verbs_target_pair **pair, char problem[FABRIC_PROBLEM_MAX])
{
	struct ibv_qp_init_attr attributes = {
		.send_cq = target->completions,
		.recv_cq = target->completions,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	struct verbs_target_pair *made = calloc(1, sizeof(*made));
	struct wire_queue_pair mine;
	smart_status status;

	if (made == NULL)
	{
		snprintf(problem, FABRIC_PROBLEM_MAX, "out of memory");
		return SMART_NO_MEMORY;
	}
	made->pair = ibv_create_qp(target->device.domain, &attributes);
	if (made->pair == NULL)
	{
		status = verbs_failed("making a queue pair", errno, problem);
		free(made);
		return status;
	}
	verbs_pair_describe(&target->device, made->pair, &mine);
	mine.base = target->base;
	mine.limit = target->limit;
	mine.rkey = target->memory->rkey;
	status = verbs_pair_connect(&target->device, made->pair, REMOTE_ACCESS, &mine, client, problem);
	if (status != SMART_OK)
	{
		verbs_target_disconnect(made);
		return status;
	}
	*answer = mine;
	*pair = made;
	return SMART_OK;
}

void
verbs_target_disconnect(struct verbs_target_pair *pair)
{
	ibv_destroy_qp(pair->pair);
	free(pair);
}
