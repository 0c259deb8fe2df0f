/*
 * image_datetime.c - images of date, time, timestamp and timestamptz
 *
 * All are signed integers with the sign bit flipped; the infinities are the least and the greatest one.  Conditions
 * across the types follow the operators: a date is its midnight, and between a type with a time zone and one without it
 * is the local value that is converted by the session's zone.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "datatype/timestamp.h"
#include "pgtime.h"
#include "utils/date.h"
#include "utils/timestamp.h"

#include "am/image.h"

/* How far around an instant changes of the clocks are looked for */
#define ZONE_WINDOW_S ((pg_time_t) 30 * SECS_PER_DAY)
#define EPOCH_SHIFT_S ((int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * SECS_PER_DAY)

SMART_IMAGE_FUNCTION(smart_image_date);
SMART_IMAGE_FUNCTION(smart_image_time);
SMART_IMAGE_FUNCTION(smart_image_timestamp);
SMART_IMAGE_FUNCTION(smart_image_timestamptz);

static uint8 *
date_encode(const struct smart_image *image, Datum value, uint8 *out, uint8 *limit)
{
	return smart_put_be32(out, (uint32) DatumGetDateADT(value) ^ UINT32_C(0x80000000));
}

static Datum
date_decode(const struct smart_image *image, const uint8 *bytes, int length, const uint8 *residue, char *space)
{
	return DateADTGetDatum((DateADT) (smart_get_be32(bytes) ^ UINT32_C(0x80000000)));
}

/* time, timestamp and timestamptz: microseconds */
static uint8 *
instant_encode(const struct smart_image *image, Datum value, uint8 *out, uint8 *limit)
{
	return smart_put_be64(out, (uint64) DatumGetInt64(value) ^ UINT64_C(0x8000000000000000));
}

static Datum
instant_decode(const struct smart_image *image, const uint8 *bytes, int length, const uint8 *residue, char *space)
{
	return Int64GetDatum((int64) (smart_get_be64(bytes) ^ UINT64_C(0x8000000000000000)));
}

/* Timestamps end long before dates do: what lies beyond them is below infinity and above every finite one */
static enum smart_place
saturated(Timestamp converted, int overflow, Datum *value)
{
	if (overflow > 0)
		converted = DT_NOEND;
	else if (overflow < 0)
		converted = MIN_TIMESTAMP;
	*value = TimestampGetDatum(converted);
	return overflow == 0 ? SMART_PLACE_AT : SMART_PLACE_BELOW;
}

/* The first date whose midnight is not before a local timestamp (which may lie a few days outside of their range) */
static DateADT
date_at_or_after(int64 local)
{
	int64 day = local / USECS_PER_DAY;

	if (TIMESTAMP_IS_NOBEGIN(local))
		return DATEVAL_NOBEGIN;
	if (TIMESTAMP_IS_NOEND(local))
		return DATEVAL_NOEND;
	/* Division cuts towards zero */
	return (DateADT) (local % USECS_PER_DAY > 0 ? day + 1 : day);
}

/* The clocks of the session's zone around an instant */
struct zone_clock
{
	int64 offset_s;  /* in force at the instant */
	int64 change_s;  /* by how much the clocks change in the window, all changes together */
	int64 nearest_s; /* to the next change, before or after the instant */
	int changes;
};

/* Returns false if the zone cannot tell, or is none that any place on earth has */
static bool
zone_look(TimestampTz instant, struct zone_clock *clock)
{
	pg_time_t now = (pg_time_t) (instant / USECS_PER_SEC + EPOCH_SHIFT_S);
	pg_time_t from = now - ZONE_WINDOW_S;
	pg_time_t boundary;
	long int before;
	long int after;
	int before_dst;
	int after_dst;
	int found;

	*clock = (struct zone_clock){.nearest_s = ZONE_WINDOW_S};
	while ((found = pg_next_dst_boundary(&from, &before, &before_dst, &boundary, &after, &after_dst,
										 session_timezone)) > 0 &&
		   boundary <= now + ZONE_WINDOW_S)
	{
		if (from <= now && boundary > now)
			clock->offset_s = before;
		clock->change_s += llabs((long long) after - before);
		clock->nearest_s = Min(clock->nearest_s, llabs((long long) boundary - now));
		clock->changes++;
		from = boundary;
	}
	if (found >= 0 && from <= now)
		clock->offset_s = before;
	return found >= 0 && llabs(clock->offset_s) <= SECS_PER_DAY && clock->change_s <= SECS_PER_DAY;
}

/*
 * The local timestamps that an instant may be compared with: from *low to *high.
 *
 * The operators convert the other way, from local to instant.  That is a shift by the zone's offset, but for the hours
 * about a change of the clocks, where it does not even preserve order: the local hour that a change leaves out comes
 * to the same instants as the one after it.  A local time is misplaced by no more than the clocks change, and so the
 * operators agree with the plain shift at twice that distance (three days where changes follow closely upon each
 * other, since the server's conversion looks at one of them only).  Nearer to a change the answer is a range.
 */
static enum smart_place
local_range(TimestampTz instant, int64 *low, int64 *high)
{
	struct zone_clock clock;
	int64 slack_s = 0;

	*low = *high = instant;
	if (TIMESTAMP_NOT_FINITE(instant))
		return SMART_PLACE_AT;
	if (!zone_look(instant, &clock))
		return SMART_PLACE_UNKNOWN;
	if (clock.changes > 0 && clock.nearest_s <= 2 * clock.change_s + (clock.changes > 1 ? 3 * SECS_PER_DAY : 1))
		slack_s = 2 * clock.change_s + 1;
	*low += (clock.offset_s - slack_s) * USECS_PER_SEC;
	*high += (clock.offset_s + slack_s) * USECS_PER_SEC;
	return slack_s == 0 ? SMART_PLACE_AT : SMART_PLACE_UNSURE;
}

static enum smart_place
date_place(const struct smart_image *image, Datum argument, Oid argtype, Datum *value, Datum *high)
{
	int64 low = DatumGetTimestamp(argument);
	int64 last = low;
	DateADT date;
	enum smart_place place = SMART_PLACE_AT;

	if (argtype == TIMESTAMPTZOID)
		place = local_range(low, &low, &last);
	else if (argtype != TIMESTAMPOID)
		elog(ERROR, "type %u cannot be compared with a date", argtype);

	/* To the operators the dates from the end of timestamps on are later than any finite one, in every zone */
	if (!TIMESTAMP_NOT_FINITE(low) && low >= END_TIMESTAMP)
	{
		low = END_TIMESTAMP;
		place = place == SMART_PLACE_AT ? SMART_PLACE_BELOW : place;
	}
	date = date_at_or_after(low);
	*value = DateADTGetDatum(date);
	*high = DateADTGetDatum(date_at_or_after(last));
	if (place == SMART_PLACE_AT && !TIMESTAMP_NOT_FINITE(low) && low != date * USECS_PER_DAY)
		place = SMART_PLACE_BELOW;
	return place;
}

/* A local time outside of the range of timestamps: above all of them but infinity, or below all but -infinity */
static enum smart_place
clipped(int64 local, Datum *value)
{
	Timestamp inside = local;

	if (!TIMESTAMP_NOT_FINITE(local) && !IS_VALID_TIMESTAMP(local))
		inside = local < MIN_TIMESTAMP ? MIN_TIMESTAMP : DT_NOEND;
	*value = TimestampGetDatum(inside);
	return inside == local ? SMART_PLACE_AT : SMART_PLACE_BELOW;
}

static enum smart_place
timestamp_place(const struct smart_image *image, Datum argument, Oid argtype, Datum *value, Datum *high)
{
	int64 low;
	int64 last;
	int overflow = 0;
	enum smart_place place;
	enum smart_place low_place;

	if (argtype == DATEOID)
	{
		low = date2timestamp_opt_overflow(DatumGetDateADT(argument), &overflow);
		return saturated(low, overflow, value);
	}
	if (argtype != TIMESTAMPTZOID)
		elog(ERROR, "type %u cannot be compared with a timestamp", argtype);
	place = local_range(DatumGetTimestampTz(argument), &low, &last);
	low_place = clipped(low, value);
	(void) clipped(last, high);
	return place == SMART_PLACE_AT ? low_place : place;
}

static enum smart_place
timestamptz_place(const struct smart_image *image, Datum argument, Oid argtype, Datum *value, Datum *high)
{
	TimestampTz instant;
	int overflow = 0;

	if (argtype == DATEOID)
		instant = date2timestamptz_opt_overflow(DatumGetDateADT(argument), &overflow);
	else if (argtype == TIMESTAMPOID)
		instant = timestamp2timestamptz_opt_overflow(DatumGetTimestamp(argument), &overflow);
	else
		elog(ERROR, "type %u cannot be compared with a timestamp", argtype);
	return saturated(instant, overflow, value);
}

Datum
smart_image_date(PG_FUNCTION_ARGS)
{
	static const struct smart_image form = {.width = 4,
											.encode = date_encode,
											.decode = date_decode,
											.place = date_place};

	return smart_image_set(fcinfo, &form);
}

Datum
smart_image_time(PG_FUNCTION_ARGS)
{
	static const struct smart_image form = {.width = 8, .encode = instant_encode, .decode = instant_decode};

	return smart_image_set(fcinfo, &form);
}

Datum
smart_image_timestamp(PG_FUNCTION_ARGS)
{
	static const struct smart_image form = {.width = 8,
											.encode = instant_encode,
											.decode = instant_decode,
											.place = timestamp_place};

	return smart_image_set(fcinfo, &form);
}

Datum
smart_image_timestamptz(PG_FUNCTION_ARGS)
{
	static const struct smart_image form = {.width = 8,
											.encode = instant_encode,
											.decode = instant_decode,
											.place = timestamptz_place};

	return smart_image_set(fcinfo, &form);
}
