/*
 * normalizer.h
 *	  What the normalizers of the built-in types share.
 */
#ifndef SMART_AM_NORMALIZER_H
#define SMART_AM_NORMALIZER_H

#include "am/codec/encode.h"
#include "am/compat.h"
#include "base/assert.h"
#include "base/bytes.h"

#include "fmgr.h"

#ifndef USE_FLOAT8_BYVAL
#error "smart needs a server that passes 8-byte values by value (any 64-bit platform)"
#endif

/*
 * Writing a normalized key piece by piece
 *
 * Each takes the end of what is there, or NULL if something was left out before; writes what fits up to limit; and
 * returns the new end, or NULL if something was left out now or before.
 */
static inline uint8 *
smart_put_bytes(uint8 *out, uint8 *limit, const void *bytes, Size length)
{
	Size room;

	if (unlikely(out == NULL))
		return NULL;
	smart_assert(out <= limit);
	room = limit - out;
	memcpy(out, bytes, Min(length, room));
	return length <= room ? out + length : NULL;
}

static inline uint8 *
smart_put_byte(uint8 *out, uint8 *limit, uint8 byte)
{
	if (unlikely(out == NULL || out == limit))
		return NULL;
	*out = byte;
	return out + 1;
}

static inline uint8 *
smart_put_word16(uint8 *out, uint8 *limit, uint16 word)
{
	uint8 bytes[2];

	smart_put_be16(bytes, word);
	return smart_put_bytes(out, limit, bytes, sizeof(bytes));
}

static inline uint8 *
smart_put_word32(uint8 *out, uint8 *limit, uint32 word)
{
	uint8 bytes[4];

	smart_put_be32(bytes, word);
	return smart_put_bytes(out, limit, bytes, sizeof(bytes));
}

/* The sign bit is flipped, as smart_load_int32() has it */
static inline uint8 *
smart_put_number(uint8 *out, uint8 *limit, int32 number)
{
	return smart_put_word32(out, limit, (uint32) number ^ UINT32_C(0x80000000));
}

/* Bytes, none of which is 00, and a 00 */
static inline uint8 *
smart_put_string(uint8 *out, uint8 *limit, const char *bytes, Size length)
{
	smart_assert(memchr(bytes, 0, length) == NULL);
	return smart_put_byte(smart_put_bytes(out, limit, bytes, length), limit, 0);
}

/* Bytes in which 00 becomes 00 FF, so that SMART_ESCAPED_END can end them */
extern uint8 *smart_put_escaped(uint8 *out, uint8 *limit, const uint8 *bytes, Size length);

#define SMART_ESCAPED_END "\0\0"

/* A value's normalized key */
extern uint8 *smart_put_normalized(const struct smart_normalizer *normalizer, Datum value, uint8 *out, uint8 *limit);

/*
 * Finding its end
 *
 * Each takes where a piece begins, or NULL if what is before it does not end, and returns where the piece ends, or NULL
 * if that is not before limit.  Where flip is 0xFF all bytes are complemented, else it is 0.
 */
static inline const uint8 *
smart_skip(const uint8 *p, const uint8 *limit, Size length)
{
	return p != NULL && length <= (Size) (limit - p) ? p + length : NULL;
}

static inline const uint8 *
smart_get_byte(const uint8 *p, const uint8 *limit, uint8 flip, uint8 *byte)
{
	if (p == NULL || p >= limit)
		return NULL;
	*byte = *p ^ flip;
	return p + 1;
}

static inline const uint8 *
smart_get_word32(const uint8 *p, const uint8 *limit, uint8 flip, uint32 *word)
{
	const uint8 *end = smart_skip(p, limit, sizeof(*word));

	if (end != NULL)
		*word = smart_load_be32(p) ^ (flip == 0 ? 0 : PG_UINT32_MAX);
	return end;
}

/* Of what smart_put_string() wrote */
static inline const uint8 *
smart_string_end(const uint8 *p, const uint8 *limit, uint8 flip)
{
	const uint8 *last = p == NULL ? NULL : memchr(p, flip, limit - p);

	return last == NULL ? NULL : last + 1;
}

/* Of escaped bytes and SMART_ESCAPED_END; an end function that does not look at its normalizer */
extern const uint8 *
smart_escaped_end(const struct smart_normalizer *normalizer, const uint8 *bytes, const uint8 *limit, uint8 flip);

/* Of a normalized key of any kind */
extern const uint8 *
smart_normalizer_end(const struct smart_normalizer *normalizer, const uint8 *bytes, const uint8 *limit, uint8 flip);

/*
 * Values
 */

/* Frees what PG_DETOAST_DATUM or a like of it made of a value, unless it is the value itself */
static inline void
smart_free_copy(void *plain, Datum value)
{
	if (unlikely(PointerGetDatum(plain) != value))
		pfree(plain);
}

/* Writes the header of a varlena of length bytes, a short one if it can be; returns where its data goes */
static inline char *
smart_begin_varlena(char *space, Size length)
{
	if (length + VARHDRSZ_SHORT <= VARATT_SHORT_MAX)
		SET_VARSIZE_SHORT(space, length + VARHDRSZ_SHORT);
	else
		SET_VARSIZE(space, length + VARHDRSZ);
	return VARDATA_ANY(space);
}

static inline Datum
smart_make_varlena(char *space, const void *bytes, Size length)
{
	memcpy(smart_begin_varlena(space, length), bytes, length);
	return PointerGetDatum(space);
}

/* Writes what was escaped from bytes to end, if out is not NULL; returns how many bytes that are */
extern int smart_get_escaped(const uint8 *bytes, const uint8 *end, char *out);

/* Callbacks of int4 and int8, and of all types that are such numbers inside (integer.c) */
extern uint8 *smart_int4_encode(const struct smart_normalizer *normalizer, Datum value, uint8 *out, uint8 *limit);
extern uint8 *smart_int8_encode(const struct smart_normalizer *normalizer, Datum value, uint8 *out, uint8 *limit);
extern Datum smart_int4_decode(const struct smart_normalizer *normalizer, const uint8 *bytes, int length,
							   const uint8 *residue, char *space);
extern Datum smart_int8_decode(const struct smart_normalizer *normalizer, const uint8 *bytes, int length,
							   const uint8 *residue, char *space);

/*
 * Operator classes
 */

/*
 * SMART_NORMALIZER(name, finish, .field = ..., ...) defines the support function 11 smart_normalize_name.  It sets the
 * fields under "out" to those given, all others to zero, and has finish, if that is not NULL, set what depends on the
 * fields under "in".
 */
#define SMART_NORMALIZER(name, finish, ...)                               \
	extern PGDLLEXPORT Datum smart_normalize_##name(PG_FUNCTION_ARGS);    \
	Datum smart_normalize_##name(PG_FUNCTION_ARGS)                        \
	{                                                                     \
		static const struct smart_normalizer form = {__VA_ARGS__};        \
                                                                          \
		return smart_normalizer_set(PG_GETARG_POINTER(0), &form, finish); \
	}                                                                     \
	PG_FUNCTION_INFO_V1(smart_normalize_##name)

extern Datum smart_normalizer_set(void *normalizer, const struct smart_normalizer *form,
								  void (*finish)(struct smart_normalizer *normalizer));

/*
 * Makes a normalizer whose fields under "in" are set by one of two functions of its operator class: support function
 * 12, or, if bytes is InvalidOid, 11.  INVALID_OBJECT_DEFINITION if what comes out does not describe a normalized key.
 */
extern void smart_normalizer_make(struct smart_normalizer *normalizer, Oid bytes, Oid describe);

/*
 * Puts the normalizer of a part of whole's values before those that whole->part has already, which become its next.
 * compare: the function that orders parts; one of the access method's operator classes must have it as its support
 * function 1.  whole is unordered if the part is, forgets if the part does or has a residue, is refused if it is, and
 * is of its version.
 * UNDEFINED_OBJECT if no class has that function.
 */
extern void smart_normalizer_add_part(struct smart_normalizer *whole, Oid type, Oid collation, Oid compare);

/* A copy of size bytes that lives as long as the backend; equal ones are the same copy */
extern const void *smart_normalizer_keep(const void *bytes, Size size);

/* The enums on whose order the normalized key depends, itself or a part of it: a list of their types, palloc'ed */
extern List *smart_normalizer_enums(const struct smart_normalizer *normalizer);

/* Can the type, or a part's type, be altered so that the normalizer is out of date?  And is it up to date now? */
extern bool smart_normalizer_alterable(const struct smart_normalizer *normalizer);
extern bool smart_normalizer_current(const struct smart_normalizer *normalizer);

/* Strategies 6, 7 and 10 (pattern.c): the fixed prefix of a pattern */
struct smart_prefix
{
	uint8 *bytes; /* palloc'd */
	int length;
	bool whole; /* the pattern is nothing but these bytes */
	bool open;  /* every string that begins with them matches */
};

extern void smart_pattern_prefix(int strategy, struct varlena *pattern, Oid collation, struct smart_prefix *prefix);

#endif /* SMART_AM_NORMALIZER_H */
