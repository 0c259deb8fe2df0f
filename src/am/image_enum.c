/*
 * image_enum.c - images of enums
 *
 * Enums compare by the sort order that the catalog gives each of their values, which is the image; the value itself is
 * the residue.  A value that is added later gets a sort order between others, and they keep theirs, unless no number
 * is left between two of them: what is done then, enum_order.c tells.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_enum.h"
#include "utils/syscache.h"

#include "am/image.h"

#define FLOAT4_SIGN UINT32_C(0x80000000)

SMART_IMAGE_FUNCTION(smart_image_enum);

static float4
sort_order(Oid value)
{
	HeapTuple row = SearchSysCache1(ENUMOID, ObjectIdGetDatum(value));
	float4 order;

	if (!HeapTupleIsValid(row))
		ereport(ERROR, errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				errmsg("invalid internal value for enum: %u", value));
	order = ((Form_pg_enum) GETSTRUCT(row))->enumsortorder;
	ReleaseSysCache(row);
	return order;
}

/* As a float4 of SQL, whose sort orders never are NaN, and never have a zero with a sign */
static uint8 *
enum_encode(const struct smart_image *image, Datum value, uint8 *out, uint8 *limit)
{
	float4 order = sort_order(DatumGetObjectId(value));
	uint32 bits;

	memcpy(&bits, &order, sizeof(bits));
	return smart_put_be32(out, bits & FLOAT4_SIGN ? ~bits : bits | FLOAT4_SIGN);
}

static void
enum_residue(const struct smart_image *image, Datum value, uint8 *residue)
{
	smart_put_be32(residue, DatumGetObjectId(value));
}

static Datum
enum_decode(const struct smart_image *image, const uint8 *bytes, int length, const uint8 *residue, char *space)
{
	return ObjectIdGetDatum(smart_get_be32(residue));
}

bool
smart_image_is_enum(const struct smart_image *image)
{
	return image->encode == enum_encode;
}

Datum
smart_image_enum(PG_FUNCTION_ARGS)
{
	static const struct smart_image form = {.width = 4,
											.residue_width = 4,
											.encode = enum_encode,
											.decode = enum_decode,
											.residue = enum_residue};

	return smart_image_set(fcinfo, &form);
}
