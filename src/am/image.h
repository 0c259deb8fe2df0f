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

/* The same of one byte */
static inline uint8 *
smart_put_byte(uint8 *out, uint8 *limit, uint8 byte)
{
	return smart_put_bytes(out, limit, &byte, 1);
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

/* Writes what fits of bytes with 00 escaped, as an image of bytea has it (image_bytes.c): the new end, or NULL */
extern uint8 *smart_put_escaped(uint8 *out, uint8 *limit, const uint8 *bytes, Size length);

/* The end of escaped bytes that 00 00 ends, or NULL; an image's end function that does not look at the image */
extern const uint8 *
smart_escaped_end(const struct smart_image *image, const uint8 *bytes, const uint8 *limit, uint8 flip);

/* Sets the fields under "out" from a template, which has zeros in those under "in" */
static inline Datum
smart_image_set(FunctionCallInfo fcinfo, const struct smart_image *form)
{
	struct smart_image *image = (struct smart_image *) PG_GETARG_POINTER(0);
	struct smart_image in = *image;

	*image = *form;
	image->index_name = in.index_name;
	image->method = in.method;
	image->type = in.type;
	image->value_type = in.value_type;
	image->collation = in.collation;
	image->typmod = in.typmod;
	return PointerGetDatum(image);
}

/* Declares and begins an image function; hidden visibility is the default of the module */
#define SMART_IMAGE_FUNCTION(name)                   \
	extern PGDLLEXPORT Datum name(PG_FUNCTION_ARGS); \
	PG_FUNCTION_INFO_V1(name)

/*
 * Values that are made of values of other types (image.c)
 */

/* INVALID_OBJECT_DEFINITION unless the fields under "out" describe an image */
extern void smart_image_check(const struct smart_image *image);

/* Makes the image that a class with support function 12 has; function: that function */
extern void smart_image_by_function(struct smart_image *image, Oid function);

/*
 * The image of a part of whole's values.  compare: the function that orders parts; one of the access method's operator
 * classes must have it as its support function 1.  next: of the part behind it, or NULL.  UNDEFINED_OBJECT if no class
 * has that function.
 */
extern const struct smart_image *smart_image_of_part(const struct smart_image *whole, Oid type, Oid collation,
													 Oid compare, const struct smart_image *next);

/* A copy of size bytes that lives as long as the backend; equal ones are the same copy */
extern const void *smart_image_keep(const void *bytes, Size size);

/* Is it the image of an enum?  Then it depends on the order of that type's values (enum_order.c). */
extern bool smart_image_is_enum(const struct smart_image *image);

/* The enums on whose order the image depends, itself or a part of it: a list of their types, palloc'ed */
extern List *smart_image_enums(const struct smart_image *image);

/* Can the type, or a part's type, be altered so that the image is out of date?  Is it not, now? */
extern bool smart_image_alterable(const struct smart_image *image);
extern bool smart_image_current(const struct smart_image *image);

/* As the callback encode, but an image of fixed width need not fit either */
extern uint8 *smart_put_image(const struct smart_image *image, Datum value, uint8 *out, uint8 *limit);

/* Where an image of any kind ends, or NULL if that is not before limit */
extern const uint8 *
smart_image_end(const struct smart_image *image, const uint8 *bytes, const uint8 *limit, uint8 flip);

/* Strategies 6, 7 and 10 (image_pattern.c): the fixed prefix of a pattern */
struct smart_prefix
{
	uint8 *bytes; /* palloc'd */
	int length;
	bool whole; /* the pattern is nothing but these bytes */
	bool open;  /* every string that begins with them matches */
};

extern void smart_pattern_prefix(int strategy, struct varlena *pattern, Oid collation, struct smart_prefix *prefix);

#endif /* SMART_IMAGE_H */
