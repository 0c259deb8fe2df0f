/*
 * undo.c
 *	  Segments of undo records: which client has them, and what is in them.
 *
 * Segments are made one after the other, so the first number without a segment ends every pass.
 */
#include "base/assert.h"
#include "compute/recovery/undo.h"

static struct smart_undo_segment *
segment_at(const struct smart_region *region, unsigned int number)
{
	return number < SMART_SEGMENT_MAX ? smart_segment(region, number) : NULL;
}

static bool
claim(struct smart_undo_segment *segment, unsigned int number, unsigned int client)
{
	uint64_t none = 0;

	if (__atomic_load_n(&segment->owner, __ATOMIC_RELAXED) != 0 ||
		!__atomic_compare_exchange_n(&segment->owner, &none, (uint64_t) client + 1, false, __ATOMIC_SEQ_CST,
									 __ATOMIC_RELAXED))
		return false;
	segment->number = number;
	return true;
}

static void
give_up(struct smart_undo_segment *segment)
{
	smart_assert(segment->owner != 0);
	/* Release: the client that claims it sees what is in it. */
	__atomic_store_n(&segment->owner, 0, __ATOMIC_RELEASE);
}

void
smart_undo_release(const struct smart_region *region, struct smart_undo_segment *segment)
{
	smart_assert(segment_at(region, (unsigned int) segment->number) == segment);
	__atomic_store_n(&smart_region_header(region)->undo_hint, segment->number, __ATOMIC_RELAXED);
	give_up(segment);
}

/* Makes a segment empty that the caller has claimed and whose records are needed no more. */
static void
empty(struct smart_undo_segment *segment)
{
	__atomic_store_n(&segment->used, 0, __ATOMIC_RELEASE);
	segment->last = 0;
}

/* Claims a segment if it can serve. */
static bool
claim_to_write(struct smart_undo_segment *segment, unsigned int number, unsigned int client, uint64_t durable)
{
	if (!claim(segment, number, client))
		return false;
	if (segment->last <= durable)
		empty(segment);
	else if (segment->used > sizeof(segment->records) / 2)
	{
		give_up(segment);
		return false;
	}
	return true;
}

struct smart_undo_segment *
smart_undo_claim(const struct smart_region *region, unsigned int client, uint64_t durable)
{
	unsigned int released = (unsigned int) __atomic_load_n(&smart_region_header(region)->undo_hint, __ATOMIC_RELAXED);
	struct smart_undo_segment *segment = segment_at(region, released);

	if (segment != NULL && claim_to_write(segment, released, client, durable))
		return segment;
	for (unsigned int number = 0; (segment = segment_at(region, number)) != NULL; number++)
	{
		if (claim_to_write(segment, number, client, durable))
			return segment;
	}
	return NULL;
}

smart_status
smart_undo_claim_new(struct smart_space *space, unsigned int client, unsigned int limit,
					 struct smart_undo_segment **segment)
{
	for (unsigned int number = 0; number < limit && number < SMART_SEGMENT_MAX; number++)
	{
		struct smart_undo_segment *made;
		smart_status status;

		if (segment_at(space->region, number) != NULL)
			continue;
		status = smart_space_segment(space, number);
		if (status != SMART_OK)
			return status;
		/* Another client may have made it at the same time, and have it. */
		made = segment_at(space->region, number);
		if (claim(made, number, client))
		{
			if (made->used == 0)
			{
				*segment = made;
				return SMART_OK;
			}
			give_up(made);
		}
	}
	return SMART_NO_SPACE;
}

uint64_t
smart_undo_least(const struct smart_region *region)
{
	struct smart_undo_segment *segment;
	uint64_t least = 0;

	for (unsigned int number = 0; (segment = segment_at(region, number)) != NULL; number++)
	{
		uint64_t last;

		if (__atomic_load_n(&segment->owner, __ATOMIC_ACQUIRE) != 0)
			continue;
		last = __atomic_load_n(&segment->last, __ATOMIC_RELAXED);
		if (last != 0 && (least == 0 || last < least))
			least = last;
	}
	return least;
}

static bool
is_record(const struct smart_undo_record *record, uint64_t room)
{
	return room >= sizeof(*record) && record->bytes % 8 == 0 && record->bytes <= room && record->tree != 0 &&
		   record->key_length > 0 && record->key_length <= SMART_KEY_MAX &&
		   offsetof(struct smart_undo_record, key) + record->key_length <= record->bytes;
}

static smart_status
each_of_segment(const struct smart_undo_segment *segment, uint64_t beyond, smart_undo_fn visit, void *argument)
{
	smart_status status = SMART_OK;
	uint64_t at = 0;

	if (segment->used > sizeof(segment->records) || segment->used % 8 != 0)
		return SMART_CORRUPT;
	while (status == SMART_OK && at < segment->used)
	{
		const struct smart_undo_record *record = (const struct smart_undo_record *) (segment->records + at);

		if (!is_record(record, segment->used - at))
			return SMART_CORRUPT;
		if (record->position > beyond)
			status = visit(argument, record);
		at += record->bytes;
	}
	return status;
}

smart_status
smart_undo_each(const struct smart_region *region, uint64_t beyond, smart_undo_fn visit, void *argument)
{
	const struct smart_undo_segment *segment;
	smart_status status = SMART_OK;

	for (unsigned int number = 0; status == SMART_OK && (segment = segment_at(region, number)) != NULL; number++)
		status = each_of_segment(segment, beyond, visit, argument);
	return status;
}

void
smart_undo_clear(const struct smart_region *region)
{
	struct smart_undo_segment *segment;

	for (unsigned int number = 0; (segment = segment_at(region, number)) != NULL; number++)
	{
		empty(segment);
		segment->owner = 0;
	}
}
