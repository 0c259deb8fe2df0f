/*
 * cube.c
 *	  Normalized keys of cube, a type of the extension of that name.
 *
 * The number of dimensions, the lower coordinate of each, and the upper one of each.  They tell equality alone, since
 * what the type has is no order: it compares the dimensions that both cubes have before the others, so that with
 * cubes of one and of two dimensions there are three each of which is below the next one, in a circle.
 */
#include "postgres.h"

#include <math.h>

#include "fmgr.h"

#include "am/codec/normalizer.h"

/* As the extension stores it since PostgreSQL 9.4 */
#define IS_POINT   UINT32_C(0x80000000) /* in size: there is one coordinate for each dimension */
#define DIMENSIONS UINT32_C(0x7fffffff)

struct cube
{
	int32 header;
	uint32 size;
	float8 coordinates[FLEXIBLE_ARRAY_MEMBER]; /* of a corner, and of the opposite one */
};

/* There is one zero, and a NaN would be equal to all numbers */
static uint8 *
put_coordinate(uint8 *out, uint8 *limit, float8 coordinate)
{
	uint8 bytes[sizeof(float8)];

	if (isnan(coordinate))
		ereport(ERROR, errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				errmsg("a cube with a coordinate that is not a number cannot be in an index"));
	(void) smart_put_float64(bytes, coordinate == 0 ? 0 : coordinate);
	return smart_put_bytes(out, limit, bytes, sizeof(bytes));
}

static uint8 *
cube_encode(const struct smart_normalizer *normalizer, Datum value, uint8 *out, uint8 *limit)
{
	struct cube *cube = (struct cube *) PG_DETOAST_DATUM(value);
	uint32 count = cube->size & DIMENSIONS;
	const float8 *corner = cube->coordinates;
	const float8 *opposite = (cube->size & IS_POINT) != 0 ? corner : corner + count;

	smart_assert((const char *) (opposite + count) <= (char *) cube + VARSIZE(cube));
	out = smart_put_word32(out, limit, count);
	for (uint32 i = 0; i < count; i++)
		out = put_coordinate(out, limit, Min(corner[i], opposite[i]));
	for (uint32 i = 0; i < count; i++)
		out = put_coordinate(out, limit, Max(corner[i], opposite[i]));
	smart_free_copy(cube, value);
	return out;
}

static const uint8 *
cube_end(const struct smart_normalizer *normalizer, const uint8 *bytes, const uint8 *limit, uint8 flip)
{
	uint32 count = 0;
	const uint8 *coordinates = smart_get_word32(bytes, limit, flip, &count);

	return smart_skip(coordinates, limit, 2 * sizeof(float8) * (Size) count);
}

SMART_NORMALIZER(cube, NULL, .forgets = true, .unordered = true, .encode = cube_encode, .end = cube_end);
