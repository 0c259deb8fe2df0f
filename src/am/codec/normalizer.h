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
#include "base/pieces.h"

#include "fmgr.h"

#ifndef USE_FLOAT8_BYVAL
#error "smart needs a server that passes 8-byte values by value (any 64-bit platform)"
#endif

/* A value's normalized key */
extern uint8 *smart_put_normalized(const struct smart_normalizer *normalizer, Datum value, uint8 *out, uint8 *limit);

/*
 * Finding its end, as base/pieces.h has it
 */

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
	smart_copy_short((uint8 *) smart_begin_varlena(space, length), bytes, length);
	return PointerGetDatum(space);
}

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
