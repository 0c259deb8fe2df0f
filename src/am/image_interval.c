/*
 * image_interval.c - images of interval and timetz
 *
 * Intervals compare by their length, with months of 30 days: days, and the microseconds that are left, from 0 to less
 * than a day's.  What of the days came as months and what as hours, the residue tells.  A time with a zone compares by
 * its instant in UTC, then by the zone.
 */
#include "postgres.h"

#include "datatype/timestamp.h"
#include "utils/date.h"
#include "utils/timestamp.h"

#include "am/image.h"

#define SIGN32      UINT32_C(0x80000000)
#define SIGN64      UINT64_C(0x8000000000000000)
#define DAYS_BIAS   (INT64_C(1) << 39) /* as long an interval as there can be has fewer days */
#define BE40_BYTES  5
#define TIMETZ_SIZE (offsetof(TimeTzADT, zone) + sizeof(int32))

SMART_IMAGE_FUNCTION(smart_image_interval);
SMART_IMAGE_FUNCTION(smart_image_timetz);

static uint8 *
put_be40(uint8 *out, uint64 word)
{
	*out = (uint8) (word >> 32);
	return smart_put_be32(out + 1, (uint32) word);
}

static uint64
get_be40(const uint8 *bytes)
{
	return (uint64) bytes[0] << 32 | smart_get_be32(bytes + 1);
}

static uint8 *
interval_encode(const struct smart_image *image, Datum value, uint8 *out, uint8 *limit)
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
	Assert(days > -DAYS_BIAS && days < DAYS_BIAS);
	return put_be40(put_be40(out, (uint64) (days + DAYS_BIAS)), (uint64) rest);
}

static void
interval_residue(const struct smart_image *image, Datum value, uint8 *residue)
{
	const Interval *interval = DatumGetIntervalP(value);

	smart_put_be32(smart_put_be32(residue, (uint32) interval->month), (uint32) interval->day);
}

static Datum
interval_decode(const struct smart_image *image, const uint8 *bytes, int length, const uint8 *residue, char *space)
{
	int64 days = (int64) get_be40(bytes) - DAYS_BIAS;
	uint64 rest = get_be40(bytes + BE40_BYTES);
	Interval interval;

	interval.month = (int32) smart_get_be32(residue);
	interval.day = (int32) smart_get_be32(residue + 4);
	days -= (int64) interval.month * DAYS_PER_MONTH + interval.day;
	/* Without a sign, since the days alone may be less than the least time */
	interval.time = (TimeOffset) ((uint64) days * USECS_PER_DAY + rest);
	memcpy(space, &interval, sizeof(interval));
	return PointerGetDatum(space);
}

static uint8 *
timetz_encode(const struct smart_image *image, Datum value, uint8 *out, uint8 *limit)
{
	const TimeTzADT *time = DatumGetTimeTzADTP(value);
	int64 instant = time->time + time->zone * USECS_PER_SEC;

	out = smart_put_be64(out, (uint64) instant ^ SIGN64);
	return smart_put_be32(out, (uint32) time->zone ^ SIGN32);
}

static Datum
timetz_decode(const struct smart_image *image, const uint8 *bytes, int length, const uint8 *residue, char *space)
{
	TimeTzADT time;

	time.zone = (int32) (smart_get_be32(bytes + 8) ^ SIGN32);
	time.time = (int64) (smart_get_be64(bytes) ^ SIGN64) - time.zone * USECS_PER_SEC;
	memcpy(space, &time, TIMETZ_SIZE);
	return PointerGetDatum(space);
}

Datum
smart_image_interval(PG_FUNCTION_ARGS)
{
	static const struct smart_image form = {.width = 2 * BE40_BYTES,
											.residue_width = 8,
											.encode = interval_encode,
											.decode = interval_decode,
											.residue = interval_residue};

	return smart_image_set(fcinfo, &form);
}

Datum
smart_image_timetz(PG_FUNCTION_ARGS)
{
	static const struct smart_image form = {.width = 12, .encode = timetz_encode, .decode = timetz_decode};

	return smart_image_set(fcinfo, &form);
}
