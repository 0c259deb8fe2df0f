/*
 * image.h - what the image functions of the built-in types share
 */
#ifndef SMART_IMAGE_H
#define SMART_IMAGE_H

#include "am/compat.h"
#include "am/encode.h"

#include "fmgr.h"
#include "port/pg_bswap.h"

#ifndef USE_FLOAT8_BYVAL
#error "smart needs a server that passes 8-byte values by value (any 64-bit platform)"
#endif

/* Fixed-width words, big-endian so that memcmp compares them as unsigned numbers */
static inline uint8 *
smart_put_be16(uint8 *out, uint16 word)
{
	word = pg_hton16(word);
	memcpy(out, &word, sizeof(word));
	return out + sizeof(word);
}

static inline uint8 *
smart_put_be32(uint8 *out, uint32 word)
{
	word = pg_hton32(word);
	memcpy(out, &word, sizeof(word));
	return out + sizeof(word);
}

static inline uint8 *
smart_put_be64(uint8 *out, uint64 word)
{
	word = pg_hton64(word);
	memcpy(out, &word, sizeof(word));
	return out + sizeof(word);
}

static inline uint16
smart_get_be16(const uint8 *bytes)
{
	uint16 word;

	memcpy(&word, bytes, sizeof(word));
	return pg_ntoh16(word);
}

static inline uint32
smart_get_be32(const uint8 *bytes)
{
	uint32 word;

	memcpy(&word, bytes, sizeof(word));
	return pg_ntoh32(word);
}

static inline uint64
smart_get_be64(const uint8 *bytes)
{
	uint64 word;

	memcpy(&word, bytes, sizeof(word));
	return pg_ntoh64(word);
}

/* Writes what fits of length bytes up to limit: the new end, or NULL if something was left out */
static inline uint8 *
smart_put_bytes(uint8 *out, uint8 *limit, const void *bytes, Size length)
{
	Size room = limit - out;

	memcpy(out, bytes, Min(length, room));
	return length <= room ? out + length : NULL;
}

/* Makes a varlena of length bytes at space, with a short header if it can have one */
static inline Datum
smart_make_varlena(char *space, const void *bytes, Size length)
{
	if (length + VARHDRSZ_SHORT <= VARATT_SHORT_MAX)
		SET_VARSIZE_SHORT(space, length + VARHDRSZ_SHORT);
	else
		SET_VARSIZE(space, length + VARHDRSZ);
	memcpy(VARDATA_ANY(space), bytes, length);
	return PointerGetDatum(space);
}

/* Sets the fields under "out" from a template, which has zeros in those under "in" */
static inline Datum
smart_image_set(FunctionCallInfo fcinfo, const struct smart_image *form)
{
	struct smart_image *image = (struct smart_image *) PG_GETARG_POINTER(0);
	struct smart_image in = *image;

	*image = *form;
	image->index_name = in.index_name;
	image->type = in.type;
	image->collation = in.collation;
	image->typmod = in.typmod;
	return PointerGetDatum(image);
}

/* Declares and begins an image function; hidden visibility is the default of the module */
#define SMART_IMAGE_FUNCTION(name)                   \
	extern PGDLLEXPORT Datum name(PG_FUNCTION_ARGS); \
	PG_FUNCTION_INFO_V1(name)

/* Strategies 6 and 7 (image_pattern.c): the fixed prefix of a pattern */
struct smart_prefix
{
	uint8 *bytes; /* palloc'd */
	int length;
	bool whole; /* the pattern is nothing but these bytes */
	bool open;  /* every string that begins with them matches */
};

extern void smart_pattern_prefix(int strategy, struct varlena *pattern, struct smart_prefix *prefix);

#endif /* SMART_IMAGE_H */
