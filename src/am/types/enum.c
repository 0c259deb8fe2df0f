/*
 * enum.c
 *	  Normalized keys of enums.
 *
 * Enums compare by the sort order that the catalog gives each of their values, which is the normalized key; the value
 * itself is the residue.  A value that is added later gets a sort order between others, and they keep theirs, unless no
 * number is left between two of them: what is done then, enum_order.c tells.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_enum.h"
#include "utils/syscache.h"

#include "am/codec/normalizer.h"

/* As a float4 of SQL, whose sort orders never are NaN, and never have a zero with a sign */
static uint8 *
enum_encode(const struct smart_normalizer *normalizer, Datum value, uint8 *out, uint8 *limit)
{
	HeapTuple row = SearchSysCache1(ENUMOID, value);
	float4 order;

	smart_assert(normalizer->width == sizeof(order) && normalizer->width <= limit - out);
	if (!HeapTupleIsValid(row))
		ereport(ERROR, errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				errmsg("invalid internal value for enum: %u", DatumGetObjectId(value)));
	order = ((Form_pg_enum) GETSTRUCT(row))->enumsortorder;
	ReleaseSysCache(row);
	return smart_put_float32(out, order);
}

static void
enum_residue(const struct smart_normalizer *normalizer, Datum value, uint8 *residue)
{
	smart_assert(normalizer->residue_width == sizeof(Oid));
	smart_put_be32(residue, DatumGetObjectId(value));
}

static Datum
enum_decode(const struct smart_normalizer *normalizer, const uint8 *bytes, int length, const uint8 *residue,
			char *space)
{
	smart_assert(length == normalizer->width && residue != NULL);
	return ObjectIdGetDatum(smart_load_be32(residue));
}

SMART_NORMALIZER(enum, NULL, .width = 4, .by_catalog = true, .residue_width = 4, .encode = enum_encode,
				 .decode = enum_decode, .residue = enum_residue);
