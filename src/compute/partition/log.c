/*
 * log.c
 *	  The log of a compute node (src/README, L1, L2, L5): frames, group commit, space, reading it again.
 *
 * In remote memory:
 *
 *	  head word    position of the first frame that counts; the rest of its line is not used
 *	  ring         frames; none goes over the ring's end: the next one then begins where the ring does
 *
 * A frame says where it stands and whose it is, so that no older content of its place is taken for it; a checksum covers
 * all of it.  Frames are WRITTEN side by side, in any order, by whichever of the clients that wait comes by; a frame is
 * durable when it and all in front of it have been WRITTEN.  So what can be read again, up to the first frame that is
 * not there, has all that is durable.
 *
 * Shared fields change under the local lock; durable and head are also looked at without it.  A frame that could not be
 * WRITTEN waits for the next client: its bytes never change, so it may be WRITTEN twice.
 */
#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "compute/partition/local_lock.h"
#include "compute/partition/log.h"
#include "tree/fault.h"

#define CRC_SEED   0x5a17106u
#define READ_BYTES 65536u /* of the ring, with one request */

struct frame_head
{
	uint64_t position;
	uint32_t owner;
	uint32_t length; /* with this head */
	uint32_t crc;    /* of what is in front of it, and behind it */
	uint32_t unused[3];
};

_Static_assert(sizeof(struct frame_head) == 32 && offsetof(struct frame_head, crc) == 16,
			   "a frame's head is two places of records");

enum flight_state
{
	FLIGHT_WAITS, /* for a client that WRITES it */
	FLIGHT_GOES,
	FLIGHT_DONE
};

struct flight
{
	uint64_t start;
	uint64_t end;
	enum flight_state state;
};

struct smart_log
{
	struct smart_log_place place;
	uint32_t lock;
	uint32_t flights; /* at most */
	uint32_t first;   /* of those that there are, which are in order */
	uint32_t count;
	bool releasing;
	uint64_t free; /* up to here the head may go */
	uint64_t head;
	uint64_t durable;
	uint64_t open; /* the frame that records go into; its head follows when it is closed */
	uint64_t tail;
	struct flight flight[SMART_LOG_FLIGHTS_MAX];
	uint8_t ring[] __attribute__((aligned(64)));
};

size_t
smart_log_size(uint32_t ring_bytes)
{
	return sizeof(struct smart_log) + ring_bytes;
}

/* One request for each copy. */
static smart_status
write_copies(const struct smart_log_place *place, struct fabric *fabric, uint64_t offset, const void *bytes,
			 uint32_t length)
{
	struct fabric_request requests[SMART_LOG_COPIES_MAX];

	smart_assert(place->copies >= 1 && place->copies <= SMART_LOG_COPIES_MAX && length > 0);
	for (unsigned int i = 0; i < place->copies; i++)
		requests[i] = (struct fabric_request){.verb = FABRIC_WRITE,
											  .remote = place->address[i] + offset,
											  .local = (void *) (uintptr_t) bytes,
											  .length = length};
	return fabric_execute(fabric, requests, (int) place->copies);
}

smart_status
smart_log_open(struct smart_log *log, struct fabric *fabric, const struct smart_log_place *place, unsigned int flights)
{
	smart_assert(place->copies >= 1 && place->copies <= SMART_LOG_COPIES_MAX);
	smart_assert(place->bytes >= SMART_LOG_BYTES_MIN && place->bytes % 64 == 0);
	smart_assert(flights >= 1 && flights <= SMART_LOG_FLIGHTS_MAX);
	memset(log, 0, sizeof(*log));
	log->place = *place;
	log->flights = flights;
	return write_copies(place, fabric, 0, &log->head, sizeof(log->head));
}

static uint32_t
frame_crc(const struct frame_head *head)
{
	uint32_t crc = smart_crc32c(CRC_SEED, head, offsetof(struct frame_head, crc));

	smart_assert(head->length > sizeof(*head));
	return smart_crc32c(crc, head->unused, head->length - offsetof(struct frame_head, unused));
}

/* ---- appending ---- */

static inline uint64_t
round_up(uint64_t position, uint64_t unit)
{
	return (position + unit - 1) / unit * unit;
}

static inline struct flight *
flight_at(struct smart_log *log, uint32_t number)
{
	smart_assert(number < log->count && log->count <= log->flights);
	return &log->flight[(log->first + number) % log->flights];
}

/* The open frame waits to be WRITTEN; false: too many do. */
static bool
close_frame(struct smart_log *log)
{
	struct frame_head *head = (struct frame_head *) (void *) (log->ring + log->open % log->place.bytes);

	if (log->count == log->flights)
		return false;
	smart_assert(log->tail > log->open + sizeof(*head));
	*head = (struct frame_head){.position = log->open,
								.owner = log->place.owner,
								.length = (uint32_t) (log->tail - log->open)};
	head->crc = frame_crc(head);
	*flight_at(log, log->count++) = (struct flight){.start = log->open, .end = log->tail, .state = FLIGHT_WAITS};
	log->open = log->tail;
	return true;
}

/* Where a record of so many bytes goes; false: nowhere. */
static bool
make_room(struct smart_log *log, uint64_t need, uint64_t *open, uint64_t *start)
{
	uint64_t ring = log->place.bytes;

	smart_assert(log->open <= log->tail && log->tail <= log->head + ring);
	*open = log->open;
	*start = log->tail == log->open ? log->open + sizeof(struct frame_head) : log->tail;
	if (*start % ring + need > ring || *start / ring != *open / ring)
	{
		*open = round_up(log->tail, ring);
		*start = *open + sizeof(struct frame_head);
	}
	return *start + need <= log->head + ring && (*open == log->open || log->tail == log->open || close_frame(log));
}

bool
smart_log_append(struct smart_log *log, struct smart_env *env, const struct smart_log_record *record,
				 const uint8_t *entry, uint64_t *start, uint64_t *end, uint64_t *frame)
{
	uint64_t need = round_up(sizeof(*record) + record->length, SMART_LOG_ALIGN);
	uint8_t *bytes;
	bool fits;

	smart_assert(need + sizeof(struct frame_head) <= log->place.bytes);
	smart_local_lock(&log->lock, env);
	fits = make_room(log, need, frame, start);
	if (fits)
	{
		smart_assert(*frame < *start && *start % log->place.bytes + need <= log->place.bytes);
		bytes = log->ring + *start % log->place.bytes;
		memcpy(bytes, record, sizeof(*record));
		memcpy(bytes + sizeof(*record), entry, record->length);
		memset(bytes + sizeof(*record) + record->length, 0, need - sizeof(*record) - record->length);
		log->open = *frame;
		log->tail = *end = *start + need;
	}
	smart_local_unlock(&log->lock);
	return fits;
}

/* ---- group commit ---- */

/* The first frame that waits, which this client WRITES then; NULL: there is none. */
static struct flight *
take_flight(struct smart_log *log)
{
	smart_assert(__atomic_load_n(&log->lock, __ATOMIC_RELAXED) != 0);
	if (log->tail > log->open)
		close_frame(log);
	for (uint32_t i = 0; i < log->count; i++)
	{
		struct flight *flight = flight_at(log, i);

		if (flight->state == FLIGHT_WAITS)
		{
			flight->state = FLIGHT_GOES;
			return flight;
		}
	}
	return NULL;
}

/* Durable is what has been WRITTEN up to the first frame that has not. */
static void
land(struct smart_log *log, struct flight *flight, bool written)
{
	smart_assert(flight->state == FLIGHT_GOES);
	flight->state = written ? FLIGHT_DONE : FLIGHT_WAITS;
	while (log->count > 0 && flight_at(log, 0)->state == FLIGHT_DONE)
	{
		/* Release: the record is there before it counts.  Partner: smart_log_durable. */
		__atomic_store_n(&log->durable, flight_at(log, 0)->end, __ATOMIC_RELEASE);
		log->first = (log->first + 1) % log->flights;
		log->count--;
	}
}

smart_status
smart_log_commit(struct smart_log *log, struct fabric *fabric, struct smart_env *env, uint64_t end, uint32_t timeout_ms)
{
	uint64_t deadline_ns = smart_deadline_ns(env, timeout_ms);
	unsigned int attempt = 0;

	smart_assert(end <= smart_log_tail(log) || SMART_FAULT(halfround));
	while (smart_log_durable(log) < end && !SMART_FAULT(unlogged))
	{
		struct flight *flight;
		smart_status status = SMART_OK;

		smart_local_lock(&log->lock, env);
		flight = take_flight(log);
		smart_local_unlock(&log->lock);
		if (flight == NULL)
		{
			if (env->interrupted(env))
				return SMART_INTERRUPTED;
			if (env->now_ns(env) >= deadline_ns)
				return SMART_TIMEOUT;
			env->pause(env, attempt++);
			continue;
		}
		/* A frame that goes is nobody else's, and its place is in use. */
		status = write_copies(&log->place, fabric, SMART_LOG_HEAD_BYTES + flight->start % log->place.bytes,
							  log->ring + flight->start % log->place.bytes, (uint32_t) (flight->end - flight->start));
		smart_local_lock(&log->lock, env);
		land(log, flight, status == SMART_OK);
		smart_local_unlock(&log->lock);
		if (status != SMART_OK)
			return status;
		attempt = 0;
	}
	return SMART_OK;
}

uint64_t
smart_log_durable(const struct smart_log *log)
{
	/* Acquire.  Partner: land. */
	return SMART_FAULT(unlogged) ? __atomic_load_n(&log->tail, __ATOMIC_ACQUIRE)
								 : __atomic_load_n(&log->durable, __ATOMIC_ACQUIRE);
}

/* ---- space ---- */

uint64_t
smart_log_tail(const struct smart_log *log)
{
	return __atomic_load_n(&log->tail, __ATOMIC_RELAXED);
}

uint64_t
smart_log_used(const struct smart_log *log)
{
	return __atomic_load_n(&log->tail, __ATOMIC_RELAXED) - __atomic_load_n(&log->head, __ATOMIC_RELAXED);
}

uint32_t
smart_log_bytes(const struct smart_log *log)
{
	return log->place.bytes;
}

const struct smart_log_record *
smart_log_at(const struct smart_log *log, uint64_t position)
{
	smart_assert(position % SMART_LOG_ALIGN == 0);
	return (const struct smart_log_record *) (const void *) (log->ring + position % log->place.bytes);
}

smart_status
smart_log_release(struct smart_log *log, struct fabric *fabric, struct smart_env *env, uint64_t position)
{
	smart_status status = SMART_OK;
	uint64_t head;
	bool mine;

	smart_assert(position <= smart_log_tail(log));
	smart_local_lock(&log->lock, env);
	log->free = position > log->free ? position : log->free;
	head = log->free;
	mine = !log->releasing && head > log->head;
	log->releasing = log->releasing || mine;
	smart_local_unlock(&log->lock);
	while (mine)
	{
		/* L5: who reads the log again must not begin where newer frames are. */
		if (!SMART_FAULT(earlyspace))
			status = write_copies(&log->place, fabric, 0, &head, sizeof(head));
		smart_local_lock(&log->lock, env);
		if (status == SMART_OK)
			log->head = head;
		mine = status == SMART_OK && log->free > head;
		head = log->free;
		log->releasing = mine;
		smart_local_unlock(&log->lock);
	}
	return status;
}

/* ---- reading it again ---- */

static smart_status
read_copy(const struct smart_log_place *place, unsigned int copy, struct fabric *fabric, uint64_t *head, uint8_t *image)
{
	struct fabric_request request = {.verb = FABRIC_READ,
									 .remote = place->address[copy],
									 .local = head,
									 .length = sizeof(*head)};
	smart_status status = fabric_execute(fabric, &request, 1);

	smart_assert(copy < place->copies);
	for (uint32_t offset = 0; offset < place->bytes && status == SMART_OK; offset += READ_BYTES)
	{
		uint32_t left = place->bytes - offset;

		request = (struct fabric_request){.verb = FABRIC_READ,
										  .remote = place->address[copy] + SMART_LOG_HEAD_BYTES + offset,
										  .local = image + offset,
										  .length = left < READ_BYTES ? left : READ_BYTES};
		status = fabric_execute(fabric, &request, 1);
	}
	return status;
}

/* NULL: there is no such frame. */
static const struct frame_head *
frame_at(const struct smart_log_place *place, const uint8_t *image, uint64_t position)
{
	uint64_t offset = position % place->bytes;
	const struct frame_head *head = (const struct frame_head *) (const void *) (image + offset);

	if (offset + sizeof(*head) > place->bytes || head->position != position || head->owner != place->owner ||
		head->length <= sizeof(*head) || head->length > place->bytes - offset || frame_crc(head) != head->crc)
		return NULL;
	return head;
}

static smart_status
visit_frame(const struct frame_head *head, smart_log_visit_fn visit, void *argument)
{
	const uint8_t *bytes = (const uint8_t *) head;
	smart_status status = SMART_OK;

	for (uint64_t offset = sizeof(*head); offset < head->length && status == SMART_OK;)
	{
		const struct smart_log_record *record = (const struct smart_log_record *) (const void *) (bytes + offset);

		offset += round_up(sizeof(*record) + record->length, SMART_LOG_ALIGN);
		status = offset > head->length ? SMART_CORRUPT : visit(argument, record);
	}
	return status;
}

smart_status
smart_log_read(const struct smart_log_place *place, struct fabric *fabric, struct smart_env *env, uint8_t **image,
			   smart_log_visit_fn visit, void *argument)
{
	const struct frame_head *frame;
	uint64_t position = 0;
	smart_status status = SMART_UNREACHABLE;

	*image = env->allocate(env, place->bytes);
	if (*image == NULL)
		return SMART_NO_MEMORY;
	for (unsigned int copy = 0; copy < place->copies && status == SMART_UNREACHABLE; copy++)
		status = read_copy(place, copy, fabric, &position, *image);
	while (status == SMART_OK)
	{
		frame = frame_at(place, *image, position);
		if (frame == NULL)
		{
			/* Where there was no room in front of the ring's end, the next frame is behind it. */
			position = round_up(position, place->bytes);
			frame = frame_at(place, *image, position);
		}
		if (frame == NULL)
			break;
		status = visit_frame(frame, visit, argument);
		position += frame->length;
	}
	return status;
}
