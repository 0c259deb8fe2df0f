/*
 * bound.c - conditions on a column to ranges of its encodings
 *
 * A condition is first brought to the column's type, which may change its strategy (int2 <= 100000 is int2 < the value
 * behind the greatest one); then it is encoded; in a descending column it is turned round at last.
 */
#include "postgres.h"

#include "access/stratnum.h"

#include "am/encode.h"
#include "am/image.h"
#include "base/assert.h"

/* Every value: what is said when nothing better can be said */
static void
any_value(struct smart_bound *bound, bool recheck, uint8 *out)
{
	*out = SMART_NOT_NULL;
	bound->kind = SMART_BOUND_PREFIX;
	bound->recheck = recheck;
	bound->length = 1;
}

/* Strategies 1 to 5 against a value of the column's type that equals the argument */
static enum smart_bound_kind
plain_kind(int strategy)
{
	static const enum smart_bound_kind kinds[] = {
		[BTLessStrategyNumber] = SMART_BOUND_LESS,       [BTLessEqualStrategyNumber] = SMART_BOUND_LESS_EQUAL,
		[BTEqualStrategyNumber] = SMART_BOUND_EQUAL,     [BTGreaterEqualStrategyNumber] = SMART_BOUND_GREATER_EQUAL,
		[BTGreaterStrategyNumber] = SMART_BOUND_GREATER,
	};

	smart_assert(strategy >= BTLessStrategyNumber && strategy <= BTGreaterStrategyNumber);
	return kinds[strategy];
}

/*
 * Chooses kind and value for a condition whose argument lies at place.  Strategies below btree's "=" look downwards,
 * those above it upwards.
 */
static void
settle_place(enum smart_place place, int strategy, Datum *value, Datum high, struct smart_bound *bound)
{
	bool downwards = strategy < BTEqualStrategyNumber;

	switch (place)
	{
		case SMART_PLACE_AT:
		case SMART_PLACE_UNKNOWN:
			bound->kind = plain_kind(strategy);
			break;
		case SMART_PLACE_BELOW:
			bound->kind = downwards ? SMART_BOUND_LESS : SMART_BOUND_GREATER_EQUAL;
			break;
		case SMART_PLACE_ABOVE:
			bound->kind = downwards ? SMART_BOUND_LESS_EQUAL : SMART_BOUND_GREATER;
			break;
		case SMART_PLACE_UNSURE:
			/* "=" would need both ends; the lower one is right, and the operator sorts out the rest */
			bound->kind = downwards ? SMART_BOUND_LESS_EQUAL : SMART_BOUND_GREATER_EQUAL;
			bound->recheck = true;
			if (downwards)
				*value = high;
			break;
	}
	if (strategy == BTEqualStrategyNumber && (place == SMART_PLACE_BELOW || place == SMART_PLACE_ABOVE))
		bound->kind = SMART_BOUND_NEVER;
}

/* What is left of a condition whose image was cut: it is longer than that of any entry */
static void
settle_cut(struct smart_bound *bound)
{
	if (bound->kind == SMART_BOUND_EQUAL)
		bound->kind = SMART_BOUND_NEVER;
	else if (bound->kind == SMART_BOUND_LESS_EQUAL)
		bound->kind = SMART_BOUND_LESS;
	else if (bound->kind == SMART_BOUND_GREATER)
		bound->kind = SMART_BOUND_GREATER_EQUAL;
}

/* Descending: complement the image and look the other way */
static void
turn_round(struct smart_bound *bound, uint8 *out)
{
	static const enum smart_bound_kind turned[] = {
		[SMART_BOUND_NEVER] = SMART_BOUND_NEVER,
		[SMART_BOUND_EQUAL] = SMART_BOUND_EQUAL,
		[SMART_BOUND_PREFIX] = SMART_BOUND_PREFIX,
		[SMART_BOUND_LESS] = SMART_BOUND_GREATER,
		[SMART_BOUND_LESS_EQUAL] = SMART_BOUND_GREATER_EQUAL,
		[SMART_BOUND_GREATER_EQUAL] = SMART_BOUND_LESS_EQUAL,
		[SMART_BOUND_GREATER] = SMART_BOUND_LESS,
	};

	for (int i = 1; i < bound->length; i++)
		out[i] ^= 0xFF;
	bound->kind = turned[bound->kind];
}

/* Writes null byte and image; even one of fixed width may have to be cut, where the columns before take all the room */
static void
put_value(const struct smart_image *image, Datum value, uint8 *out, int room, struct smart_bound *bound)
{
	uint8 *end;

	*out = SMART_NOT_NULL;
	end = smart_put_image(image, value, out + 1, out + room);
	bound->length = end == NULL ? room : end - out;
	if (end == NULL)
		settle_cut(bound);
}

static void
pattern_bound(const struct smart_image *image, int strategy, Datum pattern, uint8 *out, int room,
			  struct smart_bound *bound)
{
	bool exact;
	uint8 *end;

	if (image->pattern == NULL)
		elog(ERROR, "strategy %d is not supported for type %u", strategy, image->type);
	*out = SMART_NOT_NULL;
	end = image->pattern(image, strategy, pattern, out + 1, out + room, &exact, &bound->recheck);
	bound->length = end - out;
	bound->kind = exact ? SMART_BOUND_EQUAL : SMART_BOUND_PREFIX;
}

static void
compare_bound(const struct smart_image *image, int strategy, Datum argument, Oid argtype, uint8 *out, int room,
			  struct smart_bound *bound)
{
	enum smart_place place = SMART_PLACE_AT;
	Datum value = argument;
	Datum high = argument;

	if (OidIsValid(argtype) && argtype != image->type)
	{
		if (image->place == NULL)
			elog(ERROR, "type %u cannot be compared with type %u", argtype, image->type);
		place = image->place(image, argument, argtype, &value, &high);
	}
	settle_place(place, strategy, &value, high, bound);
	if (bound->kind == SMART_BOUND_NEVER)
		return;
	if (place == SMART_PLACE_UNKNOWN || (image->unordered && bound->kind != SMART_BOUND_EQUAL))
		any_value(bound, true, out);
	else
		put_value(image, value, out, room, bound);
}

void
smart_codec_bound(const struct smart_codec *codec, int column, int strategy, Datum argument, Oid argtype, uint8 *out,
				  int room, struct smart_bound *bound)
{
	const struct smart_column *place = &codec->columns[column];

	smart_assert(column >= 0 && column < codec->nkeys && room > 0);
	*bound = (struct smart_bound){.kind = SMART_BOUND_NEVER};
	if (strategy > BTGreaterStrategyNumber)
		pattern_bound(&place->image, strategy, argument, out, room, bound);
	else
		compare_bound(&place->image, strategy, argument, argtype, out, room, bound);
	if (place->flip)
		turn_round(bound, out);
	smart_assert(bound->length <= room && (bound->length > 0 || bound->kind == SMART_BOUND_NEVER));
}

void
smart_codec_null_bound(const struct smart_codec *codec, int column, bool isnull, uint8 *out, int room,
					   struct smart_bound *bound)
{
	int width = codec->columns[column].image.width;

	smart_assert(column >= 0 && column < codec->nkeys && room > 0);
	if (!isnull)
	{
		any_value(bound, false, out);
		return;
	}
	*bound = (struct smart_bound){.kind = SMART_BOUND_EQUAL, .length = Min(1 + width, room)};
	*out = codec->columns[column].null_byte;
	memset(out + 1, 0, bound->length - 1);
}
