/*
 * hstore.c
 *	  Normalized keys of hstore, a type of the extension of that name.
 *
 * Values compare by all their keys and values, one behind the other as they are stored; then by the number of pairs;
 * and then by where each key and each value ends, and whether it is a NULL:
 *
 *	strings 00			which no string has inside
 *	count				of the pairs, two bytes
 *	end ... end			of each key and value: its offset twice, and 1 if it is a NULL; two bytes
 *
 * Two bytes are enough, as the strings are too long for a key before they are too long for that.
 */
#include "postgres.h"

#include "fmgr.h"

#include "am/codec/normalizer.h"
#include "tree/layout.h" /* SMART_KEY_MAX */

/* As the extension stores it since PostgreSQL 9.0 */
#define IS_NEW     UINT32_C(0x80000000) /* in size */
#define COUNT      UINT32_C(0x0fffffff)
#define IS_NULL    UINT32_C(0x40000000) /* in an end */
#define END_OFFSET UINT32_C(0x3fffffff)

struct pairs
{
	int32 header;
	uint32 size;
	uint32 ends[FLEXIBLE_ARRAY_MEMBER]; /* of a key and its value, of the next key, ...; then the strings */
};

StaticAssertDecl(2 * SMART_KEY_MAX + 1 <= PG_UINT16_MAX, "the end of a string that fits into a key has two bytes");

static void
report_old(void)
{
	ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			errmsg("a value of type hstore is stored as PostgreSQL 8.4 did, which an index cannot have"),
			errhint("Update the rows of the table: that stores them anew."));
}

static uint8 *
put_ends(const struct pairs *pairs, uint32 count, uint8 *out, uint8 *limit)
{
	out = smart_put_word16(out, limit, (uint16) count);
	for (uint32 i = 0; i < 2 * count && out != NULL; i++)
	{
		uint32 offset = pairs->ends[i] & END_OFFSET;

		smart_assert(offset <= SMART_KEY_MAX);
		out = smart_put_word16(out, limit, (uint16) (2 * offset + ((pairs->ends[i] & IS_NULL) != 0)));
	}
	return out;
}

static uint8 *
hstore_encode(const struct smart_normalizer *normalizer, Datum value, uint8 *out, uint8 *limit)
{
	struct pairs *pairs = (struct pairs *) PG_DETOAST_DATUM(value);
	uint32 count = pairs->size & COUNT;

	if ((pairs->size & IS_NEW) == 0 && VARSIZE(pairs) > offsetof(struct pairs, ends))
		report_old();
	if (count > 0)
		out = smart_put_bytes(out, limit, &pairs->ends[2 * count], pairs->ends[2 * count - 1] & END_OFFSET);
	out = smart_put_byte(out, limit, 0);
	if (out != NULL)
		out = put_ends(pairs, count, out, limit);
	smart_free_copy(pairs, value);
	return out;
}

static const uint8 *
hstore_end(const struct smart_normalizer *normalizer, const uint8 *bytes, const uint8 *limit, uint8 flip)
{
	const uint8 *count = smart_string_end(bytes, limit, flip);
	const uint8 *ends = count == NULL ? NULL : smart_skip(count, limit, sizeof(uint16));

	if (ends == NULL)
		return NULL;
	return smart_skip(ends, limit,
					  2 * sizeof(uint16) * (uint16) (smart_load_be16(count) ^ (flip == 0 ? 0 : PG_UINT16_MAX)));
}

SMART_NORMALIZER(hstore, NULL, .forgets = true, .encode = hstore_encode, .end = hstore_end);
