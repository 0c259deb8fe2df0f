/*
 * batch.c
 *	  Batches over the RDMA link.
 *
 * A batch goes in rounds, of as many work requests as the queue pair and the
 * buffer take; nearly always it is one.  The work requests of a round are a chain that is
 * posted with one doorbell, and only the last one is signalled: a reliable
 * connection completes them in order, so that one completion stands for all, and
 * frees the whole queue.
 *
 * Order.  The memory node executes a queue pair's requests in order, except that
 * a READ or an atomic may still be under way when a later one takes effect,
 * unless that has a fence.  A round is over before the next begins.
 *
 * Progress: blocked by the memory node, until the deadline; a queue pair whose
 * peer is gone fails before that (common.h).
 *
 * Linux's soft device (rxe, seen with 6.1) can stop for good in two ways.  When
 * its timer repeats an atomic whose answer is just coming, it can count one too
 * many as under way, and then waits at every fence for ever.  So it gets no
 * fences: a round ends ahead of a request that has one, if there is anything that
 * this has to wait for.  And it decides to wait, for a fence or for answers, in the
 * moment in which what it waits for is over, and nothing wakes it but the next
 * doorbell.  So a client that has waited for long sends a nudge behind the round, a WRITE of
 * no bytes, which needs neither an address nor a completion, and again after four
 * times as long.  It stays in the queue until a later round completes, hence the
 * spare places there.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "rdma/tcp/session.h"
#include "rdma/verbs/link.h"
#include "rdma/wait.h"

#define SPIN_NS  50000              /* a round trip is some microseconds: look this long before sleeping */
#define SLICE_MS 50                 /* how often a sleeper looks whether the session still stands */
#define NUDGE_NS UINT64_C(50000000) /* a completion that takes longer gets a nudge */
#define NUDGE_ID UINT64_MAX

static void
complain(struct verbs_link *verbs, const struct fabric_request *request, const char *about)
{
	static const char *const name[FABRIC_VERBS] = {"READ", "WRITE", "CAS", "FAA"};

	smart_assert(request->verb < FABRIC_VERBS);
	snprintf(verbs->link.problem, sizeof(verbs->link.problem),
			 "memory node %.100s: RDMA %s of %u bytes at offset %llu: %s", verbs->place, name[request->verb],
			 fabric_bytes(request), (unsigned long long) fabric_offset(request->remote), about);
}

/* ---- sending a round ---- */

static void
work_fill(struct verbs_link *verbs, const struct verbs_piece *piece, bool inlined)
{
	struct fabric_request *request = piece->request;
	bool fence = request->fence && piece->start == 0 && !verbs->device.soft;
	struct ibv_send_wr *work = &verbs->work[verbs->pieces];
	struct ibv_sge *bytes = &verbs->bytes[verbs->pieces];
	uint64_t remote = verbs->theirs.base + fabric_offset(request->remote) + piece->start;
	const void *local = inlined ? (uint8_t *) request->local + piece->start : verbs->buffer + piece->place;

	smart_assert(verbs->pieces < verbs->queue && piece->length > 0);
	*bytes = (struct ibv_sge){(uintptr_t) local, piece->length, verbs->registered->lkey};
	*work = (struct ibv_send_wr){
		.wr_id = verbs->pieces,
		.sg_list = bytes,
		.num_sge = 1,
		.send_flags = (fence ? IBV_SEND_FENCE : 0) | (inlined ? IBV_SEND_INLINE : 0),
	};
	if (request->verb == FABRIC_READ || request->verb == FABRIC_WRITE)
	{
		work->opcode = request->verb == FABRIC_READ ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
		work->wr.rdma.remote_addr = remote;
		work->wr.rdma.rkey = verbs->theirs.rkey;
	}
	else
	{
		work->opcode = request->verb == FABRIC_CAS ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD;
		work->wr.atomic.remote_addr = remote;
		work->wr.atomic.rkey = verbs->theirs.rkey;
		work->wr.atomic.compare_add = request->verb == FABRIC_CAS ? request->compare : request->operand;
		work->wr.atomic.swap = request->operand;
	}
}

/* Adds what is left of a request, or the part of it that the buffer takes, to the round; false: no room for it. */
static bool
round_add(struct verbs_link *verbs, struct fabric_request *request)
{
	struct verbs_piece *piece = &verbs->piece[verbs->pieces];
	uint32_t left = fabric_bytes(request) - verbs->done;
	bool inlined = request->verb == FABRIC_WRITE && left <= verbs->inline_max;
	uint32_t length = left < VERBS_BUFFER_BYTES ? left : VERBS_BUFFER_BYTES;

	if (verbs->pieces == verbs->queue || (!inlined && length > VERBS_BUFFER_BYTES - verbs->used))
		return false;
	/* The soft device gets no fences: the round ends ahead of a request that has one, if that has to wait. */
	if (request->fence && verbs->done == 0 && verbs->fetches && verbs->device.soft)
		return false;
	smart_assert(verbs->used + (inlined ? 0 : length) <= VERBS_BUFFER_BYTES && left > 0);
	*piece = (struct verbs_piece){request, verbs->done, length, verbs->used};
	if (!inlined)
		verbs->used += (length + 7) & ~7u;
	if (!inlined && request->verb == FABRIC_WRITE)
		memcpy(verbs->buffer + piece->place, (uint8_t *) request->local + piece->start, length);
	work_fill(verbs, piece, inlined);
	if (verbs->pieces > 0)
		verbs->work[verbs->pieces - 1].next = &verbs->work[verbs->pieces];
	verbs->pieces++;
	smart_assert(verbs->pieces <= verbs->queue);
	verbs->fetches |= request->verb != FABRIC_WRITE;
	verbs->done = length == left ? 0 : verbs->done + length;
	verbs->next += length == left;
	return true;
}

/* Posts the next round, if anything is left of the batch. */
static smart_status
round_post(struct verbs_link *verbs)
{
	struct ibv_send_wr *refused;
	int error;

	smart_assert(verbs->next <= verbs->count);
	verbs->pieces = 0;
	verbs->used = 0;
	verbs->fetches = false;
	while (verbs->next < verbs->count)
	{
		struct fabric_request *request = &verbs->requests[verbs->next];

		if (fabric_node(request->remote) != verbs->link.node)
			verbs->next++;
		else if (!round_add(verbs, request))
			break;
	}
	smart_assert(verbs->pieces > 0 || verbs->next == verbs->count);
	if (verbs->pieces == 0)
		return SMART_OK;
	verbs->nudges = 0;
	verbs->work[verbs->pieces - 1].send_flags |= IBV_SEND_SIGNALED;
	error = ibv_post_send(verbs->pair, verbs->work, &refused);
	return error == 0 ? SMART_OK : verbs_failed("posting verbs", error, verbs->link.problem);
}

smart_status
verbs_post(struct fabric_link *link, struct fabric_request *requests, int count)
{
	struct verbs_link *verbs = (struct verbs_link *) link;

	smart_assert(verbs->pieces == 0 && verbs->done == 0 && count > 0);
	link->problem[0] = '\0';
	for (int i = 0; i < count; i++)
	{
		uint64_t offset = fabric_offset(requests[i].remote);
		bool atomic = fabric_is_atomic(&requests[i]);

		if (fabric_node(requests[i].remote) != link->node)
			continue;
		smart_assert(fabric_bytes(&requests[i]) > 0 && (atomic || requests[i].local != NULL));
		/* The memory node's card checks too, but fails the connection. */
		if (offset + fabric_bytes(&requests[i]) <= verbs->theirs.limit && (!atomic || (offset & 7) == 0))
			continue;
		complain(verbs, &requests[i], "not in its region, or not aligned");
		return SMART_CORRUPT;
	}
	verbs->requests = requests;
	verbs->count = count;
	verbs->next = 0;
	return round_post(verbs);
}

/* ---- its completion ---- */

/* Has the round completed? */
static smart_status
round_poll(struct verbs_link *verbs, bool *over)
{
	struct ibv_wc completion;
	int found = ibv_poll_cq(verbs->completions, 1, &completion);

	if (found < 0)
		return verbs_failed("asking for completions", EIO, verbs->link.problem);
	if (found > 0 && completion.status != IBV_WC_SUCCESS)
	{
		/* A nudge fails with what it was sent behind, or with the round after that. */
		uint64_t piece = completion.wr_id == NUDGE_ID ? 0 : completion.wr_id;

		smart_assert(piece < verbs->pieces);
		complain(verbs, verbs->piece[piece].request, ibv_wc_status_str(completion.status));
		/* The key is good as long as the queue pair lives, so it is the address that is not. */
		verbs->link.broken = completion.status == IBV_WC_REM_ACCESS_ERR;
		return verbs->link.broken ? SMART_CORRUPT : SMART_UNREACHABLE;
	}
	smart_assert(found == 0 || completion.wr_id == verbs->pieces - 1);
	*over = found > 0;
	return SMART_OK;
}

/* Sleeps until a completion may have come, the session is lost, or some time has passed. */
static smart_status
round_sleep(struct verbs_link *verbs, uint64_t left_ns)
{
	struct fabric_link *link = &verbs->link;
	uint32_t slice_ms = left_ns < SLICE_MS * UINT64_C(1000000) ? (uint32_t) (left_ns / 1000000) + 1 : SLICE_MS;
	struct ibv_cq *completions;
	void *context;

	if (link->env->wait_descriptor(link->env, verbs->channel->fd, false, slice_ms))
	{
		if (ibv_get_cq_event(verbs->channel, &completions, &context) == 0)
			ibv_ack_cq_events(completions, 1);
		return SMART_OK;
	}
	if (link->session == NULL || !session_is_lost(link->session))
		return SMART_OK;
	snprintf(link->problem, sizeof(link->problem), "memory node %.100s: it has closed the connection", verbs->place);
	return SMART_UNREACHABLE;
}

/* Rings the doorbell again, if it is time for that. */
static smart_status
round_nudge(struct verbs_link *verbs, uint64_t waited_ns)
{
	struct ibv_send_wr nudge = {
		.wr_id = NUDGE_ID,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = {.remote_addr = verbs->theirs.base, .rkey = verbs->theirs.rkey},
	};
	struct ibv_send_wr *refused;
	int error;

	smart_assert(verbs->nudges <= VERBS_NUDGES_MAX);
	if (verbs->nudges == VERBS_NUDGES_MAX || waited_ns < NUDGE_NS << (2 * verbs->nudges))
		return SMART_OK;
	smart_assert(verbs->pieces > 0);
	verbs->nudges++;
	error = ibv_post_send(verbs->pair, &nudge, &refused);
	return error == 0 ? SMART_OK : verbs_failed("posting verbs", error, verbs->link.problem);
}

static smart_status
round_wait(struct verbs_link *verbs, uint64_t deadline_ns)
{
	struct smart_env *env = verbs->link.env;
	uint64_t begin_ns = env->now_ns(env);
	bool armed = false;
	bool over = false;
	smart_status status;

	smart_assert(verbs->pieces > 0);
	while ((status = round_poll(verbs, &over)) == SMART_OK && !over)
	{
		uint64_t now_ns = env->now_ns(env);

		if (now_ns < begin_ns + SPIN_NS && now_ns < deadline_ns)
			continue;
		status = wait_status(env, verbs->link.grace);
		if (status != SMART_OK)
			return status;
		if (now_ns >= deadline_ns)
			return SMART_TIMEOUT;
		/* Arm the channel, look again: what completed in between rings no more.  An event takes the arm away. */
		if (!armed)
		{
			int error = ibv_req_notify_cq(verbs->completions, 0);

			if (error != 0)
				return verbs_failed("asking to be woken", error, verbs->link.problem);
			armed = true;
			continue;
		}
		status = round_sleep(verbs, deadline_ns - now_ns);
		if (status == SMART_OK)
			status = round_nudge(verbs, env->now_ns(env) - begin_ns);
		if (status != SMART_OK)
			return status;
		armed = false;
	}
	return status;
}

smart_status
verbs_finish(struct fabric_link *link, uint64_t deadline_ns)
{
	struct verbs_link *verbs = (struct verbs_link *) link;

	while (verbs->pieces > 0)
	{
		smart_status status = round_wait(verbs, deadline_ns);

		if (status != SMART_OK)
			return status;
		/* Hand out what the round brought. */
		for (uint32_t i = 0; i < verbs->pieces; i++)
		{
			const struct verbs_piece *piece = &verbs->piece[i];
			struct fabric_request *request = piece->request;

			if (request->verb == FABRIC_READ)
				memcpy((uint8_t *) request->local + piece->start, verbs->buffer + piece->place, piece->length);
			else if (request->verb != FABRIC_WRITE)
				memcpy(&request->result, verbs->buffer + piece->place, sizeof(request->result));
		}
		status = round_post(verbs);
		if (status != SMART_OK)
			return status;
	}
	return SMART_OK;
}
