/*
 * bound.c
 *	  Conditions on a column to ranges of its encodings.
 *
 * A condition is first brought to the column's type, which may change its strategy (int2 <= 100000 is int2 < the value
 * behind the greatest one); then it is encoded; in a descending column it is turned round at last.
 */
#include "postgres.h"

#include "access/stratnum.h"

#include "am/codec/encode.h"
#include "am/codec/long_key.h"
#include "am/codec/normalizer.h"
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

/* Descending: complement the normalized key and look the other way */
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

	smart_assert((Size) bound->kind < lengthof(turned) && bound->length >= 0);
	for (int i = 1; i < bound->length; i++)
		out[i] ^= 0xFF;
	bound->kind = turned[bound->kind];
}

/* The bound of one of btree's strategies */
static void
compare_bound(const struct smart_normalizer *normalizer, int strategy, Datum argument, Oid argtype, uint8 *out,
			  int room, struct smart_bound *bound)
{
	/*
	 * By where the argument lies, for <, <=, =, >=, >.  Of an unsure one "=" would need both ends: the lower one is
	 * right, and the operator sorts out the rest.
	 */
#define ROW(less, less_equal, equal, greater_equal, greater)                                                         \
	{                                                                                                                \
		[BTLessStrategyNumber] = SMART_BOUND_##less, [BTLessEqualStrategyNumber] = SMART_BOUND_##less_equal,         \
		[BTEqualStrategyNumber] = SMART_BOUND_##equal, [BTGreaterEqualStrategyNumber] = SMART_BOUND_##greater_equal, \
		[BTGreaterStrategyNumber] = SMART_BOUND_##greater                                                            \
	}
	static const enum smart_bound_kind kinds[][BTMaxStrategyNumber + 1] = {
		[SMART_ARGUMENT_AT] = ROW(LESS, LESS_EQUAL, EQUAL, GREATER_EQUAL, GREATER),
		[SMART_ARGUMENT_BELOW] = ROW(LESS, LESS, NEVER, GREATER_EQUAL, GREATER_EQUAL),
		[SMART_ARGUMENT_ABOVE] = ROW(LESS_EQUAL, LESS_EQUAL, NEVER, GREATER, GREATER),
		[SMART_ARGUMENT_UNSURE] = ROW(LESS_EQUAL, LESS_EQUAL, GREATER_EQUAL, GREATER_EQUAL, GREATER_EQUAL),
		[SMART_ARGUMENT_UNKNOWN] = ROW(LESS, LESS_EQUAL, EQUAL, GREATER_EQUAL, GREATER),
	};
#undef ROW
	enum smart_argument_place place = SMART_ARGUMENT_AT;
	Datum value = argument;
	Datum high = argument;

	smart_assert(strategy >= BTLessStrategyNumber && strategy <= BTGreaterStrategyNumber);
	if (OidIsValid(argtype) && argtype != normalizer->type)
	{
		if (normalizer->place == NULL)
			elog(ERROR, "type %u cannot be compared with type %u", argtype, normalizer->type);
		place = normalizer->place(normalizer, argument, argtype, &value, &high);
	}
	smart_assert((Size) place < lengthof(kinds));
	bound->kind = kinds[place][strategy];
	bound->recheck = place == SMART_ARGUMENT_UNSURE;
	if (bound->recheck && strategy < BTEqualStrategyNumber)
		value = high;
	if (bound->kind == SMART_BOUND_NEVER)
		return;
	if (place == SMART_ARGUMENT_UNKNOWN || (normalizer->unordered && bound->kind != SMART_BOUND_EQUAL))
		any_value(bound, true, out);
	else
	{
		/* A normalized key of fixed width may have to be cut, too, where the columns before take all the room. */
		uint8 *end = smart_put_normalized(normalizer, value, out + 1, out + room);

		bool cut = end == NULL;

		if (smart_key_is_long(normalizer, out + 1, end, out + room))
			cut = !smart_put_long_key(normalizer, value, out + 1, out + room, &end);
		*out = SMART_NOT_NULL;
		bound->length = end == NULL ? room : end - out;
		/* What is cut is longer than the normalized key of any entry. */
		if (cut && bound->kind == SMART_BOUND_EQUAL)
			bound->kind = SMART_BOUND_NEVER;
		else if (cut && bound->kind == SMART_BOUND_LESS_EQUAL)
			bound->kind = SMART_BOUND_LESS;
		else if (cut && bound->kind == SMART_BOUND_GREATER)
			bound->kind = SMART_BOUND_GREATER_EQUAL;
	}
}

void
smart_codec_bound(const struct smart_codec *codec, int column, int strategy, Datum argument, Oid argtype, uint8 *out,
				  int room, struct smart_bound *bound)
{
	const struct smart_column *place = &codec->columns[column];

	smart_assert(column >= 0 && column < codec->nkeys && room > 0);
	*bound = (struct smart_bound){.kind = SMART_BOUND_NEVER};
	if (strategy > BTGreaterStrategyNumber)
	{
		bool exact;
		uint8 *end;

		if (place->normalizer.pattern == NULL)
			elog(ERROR, "strategy %d is not supported for type %u", strategy, place->normalizer.type);
		*out = SMART_NOT_NULL;
		end = place->normalizer.pattern(&place->normalizer, strategy, argument, out + 1, out + room, &exact,
										&bound->recheck);
		/* Of a long key its first bytes are there as they are. */
		if (smart_key_is_squeezed(&place->normalizer, end - out - 1))
		{
			end = out + 1 + SMART_SQUEEZE_PLAIN;
			exact = false;
			bound->recheck = true;
		}
		bound->length = end - out;
		bound->kind = exact ? SMART_BOUND_EQUAL : SMART_BOUND_PREFIX;
	}
	else
		compare_bound(&place->normalizer, strategy, argument, argtype, out, room, bound);
	if (place->flip)
		turn_round(bound, out);
	smart_assert(bound->length <= room && (bound->length > 0 || bound->kind == SMART_BOUND_NEVER));
}

void
smart_codec_null_bound(const struct smart_codec *codec, int column, bool isnull, uint8 *out, int room,
					   struct smart_bound *bound)
{
	int width = codec->columns[column].normalizer.width;

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
