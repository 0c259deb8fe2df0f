/*
 * datetime.c
 *	  Normalized keys of date, time, timestamp, timestamptz, interval and timetz.
 *
 * The first four are signed integers, days or microseconds, with the sign bit flipped; the infinities are the least and
 * the greatest one.  Conditions across the types follow the operators: a date is its midnight, and between a type with
 * a time zone and one without it is the local value that is converted by the session's zone.
 *
 * Intervals compare by their length, with months of 30 days: days, and the microseconds that are left, from 0 to less
 * than a day's.  What of the days came as months and what as hours, the residue tells.  A time with a zone compares by
 * its instant in UTC, then by the zone.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "datatype/timestamp.h"
#include "pgtime.h"
#include "utils/date.h"
#include "utils/timestamp.h"

#include "am/codec/normalizer.h"

/* How far around an instant changes of the clocks are looked for */
#define ZONE_WINDOW_S ((pg_time_t) 30 * SECS_PER_DAY)
#define EPOCH_SHIFT_S ((int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * SECS_PER_DAY)

#define DAYS_BIAS   (INT64_C(1) << 39) /* as long an interval as there can be has fewer days */
#define BE40_BYTES  5
#define TIMETZ_SIZE (offsetof(TimeTzADT, zone) + sizeof(int32))

/* Timestamps end long before dates do: what lies beyond them is below infinity and above every finite one */
static enum smart_argument_place
saturated(Timestamp converted, int overflow, Datum *value)
{
	if (overflow > 0)
		converted = DT_NOEND;
	else if (overflow < 0)
		converted = MIN_TIMESTAMP;
	*value = TimestampGetDatum(converted);
	return overflow == 0 ? SMART_ARGUMENT_AT : SMART_ARGUMENT_BELOW;
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
 * other, since the server's conversion looks at one of them only).  Nearer to a change the result is a range.
 */
static enum smart_argument_place
local_range(TimestampTz instant, int64 *low, int64 *high)
{
	struct zone_clock clock;
	int64 slack_s = 0;

	*low = *high = instant;
	if (TIMESTAMP_NOT_FINITE(instant))
		return SMART_ARGUMENT_AT;
	if (!zone_look(instant, &clock))
		return SMART_ARGUMENT_UNKNOWN;
	if (clock.changes > 0 && clock.nearest_s <= 2 * clock.change_s + (clock.changes > 1 ? 3 * SECS_PER_DAY : 1))
		slack_s = 2 * clock.change_s + 1;
	*low += (clock.offset_s - slack_s) * USECS_PER_SEC;
	*high += (clock.offset_s + slack_s) * USECS_PER_SEC;
	smart_assert(slack_s >= 0 && *low <= *high);
	return slack_s == 0 ? SMART_ARGUMENT_AT : SMART_ARGUMENT_UNSURE;
}

static enum smart_argument_place
date_place(const struct smart_normalizer *normalizer, Datum argument, Oid argtype, Datum *value, Datum *high)
{
	int64 low = DatumGetTimestamp(argument);
	int64 last = low;
	DateADT date;
	enum smart_argument_place place = SMART_ARGUMENT_AT;

	if (argtype == TIMESTAMPTZOID)
		place = local_range(low, &low, &last);
	else if (argtype != TIMESTAMPOID)
		elog(ERROR, "type %u cannot be compared with a date", argtype);

	/* To the operators the dates from the end of timestamps on are later than any finite one, in every zone */
	if (!TIMESTAMP_NOT_FINITE(low) && low >= END_TIMESTAMP)
	{
		low = END_TIMESTAMP;
		place = place == SMART_ARGUMENT_AT ? SMART_ARGUMENT_BELOW : place;
	}
	date = date_at_or_after(low);
	*value = DateADTGetDatum(date);
	*high = DateADTGetDatum(date_at_or_after(last));
	smart_assert(date <= DatumGetDateADT(*high));
	if (place == SMART_ARGUMENT_AT && !TIMESTAMP_NOT_FINITE(low) && low != date * USECS_PER_DAY)
		place = SMART_ARGUMENT_BELOW;
	return place;
}

/* A local time outside of the range of timestamps: above all of them but infinity, or below all but -infinity */
static enum smart_argument_place
clipped(int64 local, Datum *value)
{
	bool fits = TIMESTAMP_NOT_FINITE(local) || IS_VALID_TIMESTAMP(local);

	return saturated(local, fits ? 0 : local < MIN_TIMESTAMP ? -1 : 1, value);
}

static enum smart_argument_place
timestamp_place(const struct smart_normalizer *normalizer, Datum argument, Oid argtype, Datum *value, Datum *high)
{
	int64 low;
	int64 last;
	int overflow = 0;
	enum smart_argument_place place;
	enum smart_argument_place low_place;

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
	return place == SMART_ARGUMENT_AT ? low_place : place;
}

static enum smart_argument_place
timestamptz_place(const struct smart_normalizer *normalizer, Datum argument, Oid argtype, Datum *value, Datum *high)
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

/* ---- interval and timetz ---- */

static uint8 *
put_be40(uint8 *out, uint64 word)
{
	smart_assert(word >> 40 == 0);
	*out = (uint8) (word >> 32);
	return smart_put_be32(out + 1, (uint32) word);
}

static uint64
get_be40(const uint8 *bytes)
{
	return (uint64) bytes[0] << 32 | smart_load_be32(bytes + 1);
}

static uint8 *
interval_encode(const struct smart_normalizer *normalizer, Datum value, uint8 *out, uint8 *limit)
{
	const Interval *interval = DatumGetIntervalP(value);
	int64 days = interval->time / USECS_PER_DAY;
	int64 rest = interval->time % USECS_PER_DAY;

	/* Division cuts towards zero */
	if (rest < 0)
	{
		days--;
		rest += USECS_PER_DAY;
	}
	days += (int64) interval->month * DAYS_PER_MONTH + interval->day;
	smart_assert(days > -DAYS_BIAS && days < DAYS_BIAS);
	smart_assert(normalizer->width == 2 * BE40_BYTES && normalizer->width <= limit - out);
	return put_be40(put_be40(out, (uint64) (days + DAYS_BIAS)), (uint64) rest);
}

static void
interval_residue(const struct smart_normalizer *normalizer, Datum value, uint8 *residue)
{
	const Interval *interval = DatumGetIntervalP(value);

	smart_assert(normalizer->residue_width == sizeof(interval->month) + sizeof(interval->day));
	smart_put_be32(smart_put_be32(residue, (uint32) interval->month), (uint32) interval->day);
}

static Datum
interval_decode(const struct smart_normalizer *normalizer, const uint8 *bytes, int length, const uint8 *residue,
				char *space)
{
	int64 days = (int64) get_be40(bytes) - DAYS_BIAS;
	uint64 rest = get_be40(bytes + BE40_BYTES);
	Interval interval;

	smart_assert(length == normalizer->width && rest < USECS_PER_DAY);
	interval.month = (int32) smart_load_be32(residue);
	interval.day = (int32) smart_load_be32(residue + 4);
	days -= (int64) interval.month * DAYS_PER_MONTH + interval.day;
	/* Without a sign, since the days alone may be less than the least time */
	interval.time = (TimeOffset) ((uint64) days * USECS_PER_DAY + rest);
	memcpy(space, &interval, sizeof(interval));
	return PointerGetDatum(space);
}

static uint8 *
timetz_encode(const struct smart_normalizer *normalizer, Datum value, uint8 *out, uint8 *limit)
{
	const TimeTzADT *time = DatumGetTimeTzADTP(value);
	int64 instant = time->time + time->zone * USECS_PER_SEC;

	smart_assert(normalizer->width == sizeof(instant) + sizeof(time->zone) && normalizer->width <= limit - out);
	return smart_put_int32(smart_put_int64(out, instant), time->zone);
}

static Datum
timetz_decode(const struct smart_normalizer *normalizer, const uint8 *bytes, int length, const uint8 *residue,
			  char *space)
{
	TimeTzADT time;

	smart_assert(length == normalizer->width);
	time.zone = smart_load_int32(bytes + 8);
	time.time = smart_load_int64(bytes) - time.zone * USECS_PER_SEC;
	memcpy(space, &time, TIMETZ_SIZE);
	return PointerGetDatum(space);
}

SMART_NORMALIZER(date, NULL, .width = 4, .encode = smart_int4_encode, .decode = smart_int4_decode, .place = date_place);
SMART_NORMALIZER(time, NULL, .width = 8, .encode = smart_int8_encode, .decode = smart_int8_decode);
SMART_NORMALIZER(timestamp, NULL, .width = 8, .encode = smart_int8_encode, .decode = smart_int8_decode,
				 .place = timestamp_place);
SMART_NORMALIZER(timestamptz, NULL, .width = 8, .encode = smart_int8_encode, .decode = smart_int8_decode,
				 .place = timestamptz_place);
SMART_NORMALIZER(interval, NULL, .width = 2 * BE40_BYTES, .residue_width = 8, .encode = interval_encode,
				 .decode = interval_decode, .residue = interval_residue);
SMART_NORMALIZER(timetz, NULL, .width = 12, .encode = timetz_encode, .decode = timetz_decode);
