/*
 * verbs.c
 *	  The RDMA link: a reliable connection's queue pair, made and unmade.
 *
 * Every link has a device context of its own, so that nothing of a link that
 * failed, or of a device that did, is left to the next one.
 *
 * Memory of a client cannot be registered as it comes (stack, heap, buffers of
 * others), so READs and atomics bring their bytes to a buffer of the link.  It is
 * mapped by itself: a client that forks must not share its pages with anything else.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "rdma/tcp/session.h"
#include "rdma/verbs/link.h"
#include "rdma/verbs/verbs.h"

static char chosen_name[VERBS_DEVICE_MAX];
static struct verbs_choice chosen = {.gid_index = -1};

void
verbs_set_device(const char *device, int port, int gid_index)
{
	snprintf(chosen_name, sizeof(chosen_name), "%s", device != NULL ? device : "");
	chosen = (struct verbs_choice){chosen_name[0] != '\0' ? chosen_name : NULL, port, gid_index};
}

/* Destroys the queue pair first: after that the device touches nothing of ours. */
static void
verbs_close(struct fabric_link *link)
{
	struct verbs_link *verbs = (struct verbs_link *) link;

	if (verbs->pair != NULL)
		ibv_destroy_qp(verbs->pair);
	if (verbs->registered != NULL)
		ibv_dereg_mr(verbs->registered);
	if (verbs->buffer != NULL)
		munmap(verbs->buffer, VERBS_BUFFER_BYTES);
	if (verbs->completions != NULL)
		ibv_destroy_cq(verbs->completions);
	if (verbs->channel != NULL)
		ibv_destroy_comp_channel(verbs->channel);
	if (verbs->device.context != NULL)
		verbs_device_close(&verbs->device);
	link->env->release(link->env, verbs);
}

static const struct fabric_link_kind verbs_kind = {
	.post = verbs_post,
	.finish = verbs_finish,
	.close = verbs_close,
};

/* Devices do not tell how much can be inline, but refuse what is too much. */
static smart_status
make_pair(struct verbs_link *verbs, char problem[SESSION_PROBLEM_MAX])
{
	smart_assert(verbs->pair == NULL && verbs->queue >= 1 && verbs->queue <= VERBS_QUEUE_MAX);
	for (uint32_t inline_max = VERBS_INLINE_MAX;; inline_max /= 2)
	{
		struct ibv_qp_init_attr attributes = {
			.send_cq = verbs->completions,
			.recv_cq = verbs->completions,
			.cap =
				{
					.max_send_wr = verbs->queue + VERBS_SPARE,
					.max_recv_wr = 1,
					.max_send_sge = 1,
					.max_recv_sge = 1,
					.max_inline_data = inline_max,
				},
			.qp_type = IBV_QPT_RC,
		};

		verbs->pair = ibv_create_qp(verbs->device.domain, &attributes);
		if (verbs->pair != NULL)
		{
			verbs->inline_max = attributes.cap.max_inline_data;
			return SMART_OK;
		}
		if (inline_max == 0)
			return verbs_failed("making a queue pair", errno, problem);
	}
}

static smart_status
make_parts(struct verbs_link *verbs, char problem[SESSION_PROBLEM_MAX])
{
	struct ibv_context *context;
	uint32_t most;
	int error = 0;
	smart_status status;
	void *memory;

	/* A client may start other programs; a kernel since 5.12 needs no help with that. */
	if (ibv_is_fork_initialized() == IBV_FORK_DISABLED)
		error = ibv_fork_init();
	if (error != 0)
		return verbs_failed("making fork safe", error, problem);
	status = verbs_device_open(&chosen, &verbs->device, problem);
	if (status != SMART_OK)
		return status;
	context = verbs->device.context;

	/* What the device takes, without the spare places; every device takes more than those. */
	most = verbs->device.queue_max;
	verbs->queue = most >= VERBS_QUEUE_MAX + VERBS_SPARE ? VERBS_QUEUE_MAX
				   : most > VERBS_SPARE                  ? most - VERBS_SPARE
														 : 1;

	memory = mmap(NULL, VERBS_BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return verbs_failed("mapping a buffer", errno, problem);
	verbs->buffer = memory;
	verbs->registered = ibv_reg_mr(verbs->device.domain, memory, VERBS_BUFFER_BYTES, IBV_ACCESS_LOCAL_WRITE);
	if (verbs->registered == NULL)
		return verbs_failed("registering a buffer", errno, problem);

	/* The channel is not waited for in a read: that is the environment's business. */
	verbs->channel = ibv_create_comp_channel(context);
	if (verbs->channel == NULL || fcntl(verbs->channel->fd, F_SETFL, O_NONBLOCK) != 0)
		return verbs_failed("making a completion channel", errno, problem);
	/* When a queue pair fails, all of its work requests complete, also those that are not signalled. */
	verbs->completions = ibv_create_cq(context, (int) (verbs->queue + VERBS_SPARE) + 1, NULL, verbs->channel, 0);
	if (verbs->completions == NULL)
		return verbs_failed("making a completion queue", errno, problem);
	return make_pair(verbs, problem);
}

smart_status
verbs_link_prepare(struct smart_env *env, unsigned int node, struct wire_queue_pair *mine, struct fabric_link **link,
				   char problem[SESSION_PROBLEM_MAX])
{
	struct verbs_link *verbs = env->allocate(env, sizeof(*verbs));
	smart_status status;

	smart_assert(env->wait_descriptor != NULL);
	if (verbs == NULL)
	{
		snprintf(problem, SESSION_PROBLEM_MAX, "out of memory");
		return SMART_NO_MEMORY;
	}
	memset(verbs, 0, sizeof(*verbs));
	verbs->link.kind = &verbs_kind;
	verbs->link.env = env;
	verbs->link.node = node;
	snprintf(verbs->place, sizeof(verbs->place), "%u", node);
	status = make_parts(verbs, problem);
	if (status != SMART_OK)
	{
		verbs_close(&verbs->link);
		return status;
	}
	smart_assert(verbs->pair != NULL && verbs->registered != NULL && verbs->queue >= 1 &&
				 verbs->queue <= VERBS_QUEUE_MAX);
	verbs_pair_describe(&verbs->device, verbs->pair, &verbs->mine);
	*mine = verbs->mine;
	*link = &verbs->link;
	return SMART_OK;
}

smart_status
verbs_link_connect(struct fabric_link *link, const struct wire_queue_pair *theirs)
{
	struct verbs_link *verbs = (struct verbs_link *) link;

	if (theirs->limit > FABRIC_OFFSET_MASK + 1 || theirs->base > UINT64_MAX - theirs->limit)
	{
		snprintf(link->problem, sizeof(link->problem), "RDMA: the memory node's region cannot be where it says");
		return SMART_UNREACHABLE;
	}
	verbs->theirs = *theirs;
	/* The memory node asks for nothing here, so it may do nothing. */
	return verbs_pair_connect(&verbs->device, verbs->pair, 0, &verbs->mine, theirs, link->problem);
}

smart_status
verbs_link_open(struct session *session, struct smart_env *env, unsigned int node, uint64_t deadline_ns,
				struct fabric_link **link, char problem[SESSION_PROBLEM_MAX])
{
	struct wire_queue_pair mine;
	struct wire_queue_pair theirs;
	uint8_t payload[sizeof(mine)];
	const uint8_t *answer;
	uint32_t length;
	struct fabric_link *made;
	smart_status status = verbs_link_prepare(env, node, &mine, &made, problem);

	if (status != SMART_OK)
		return status;
	/* CONNECT over the session: our queue pair there, the memory node's back. */
	length = wire_put_queue_pair(payload, &mine);
	status = session_call(session, WIRE_CONNECT, payload, length, deadline_ns, &answer, &length);
	if (status != SMART_OK)
		snprintf(problem, SESSION_PROBLEM_MAX, "%s", session_problem(session));
	else if (!wire_get_queue_pair(answer, length, &theirs))
	{
		snprintf(problem, SESSION_PROBLEM_MAX, "RDMA: the memory node's reply is no queue pair");
		status = SMART_UNREACHABLE;
	}
	else
	{
		status = verbs_link_connect(made, &theirs);
		if (status != SMART_OK)
			snprintf(problem, SESSION_PROBLEM_MAX, "%s", made->problem);
	}
	if (status != SMART_OK)
	{
		made->kind->close(made);
		return status;
	}
	made->session = session;
	snprintf(((struct verbs_link *) made)->place, SESSION_HOST_MAX + SESSION_PORT_MAX, "%s", session_place(session));
	*link = made;
	return SMART_OK;
}
