/*
 * long_key.h
 *	  Keys of columns that are longer than most: how they are stored in an entry, and come back.
 */
#ifndef SMART_CODEC_LONG_KEY_H
#define SMART_CODEC_LONG_KEY_H

#include "am/codec/encode.h"
#include "base/squeeze.h"

/* Is what was written from out on (end: NULL if there was no room) to be squeezed instead? */
static inline bool
smart_key_is_long(const struct smart_normalizer *normalizer, const uint8 *out, const uint8 *end, const uint8 *limit)
{
	return unlikely(normalizer->squeezable && limit - out > SMART_SQUEEZE_PLAIN &&
					(end == NULL || end - out > SMART_SQUEEZE_PLAIN));
}

/* Is a key of so many bytes a squeezed one? */
static inline bool
smart_key_is_squeezed(const struct smart_normalizer *normalizer, int length)
{
	return unlikely(length > SMART_SQUEEZE_PLAIN) && normalizer->squeezable;
}

/*
 * Writes the squeezed key of a value for which smart_key_is_long(), at most up to limit; *end is behind it.  False: that
 * is the beginning of what is longer than any entry's.  What an entry has there compares with it as with all of it.
 */
extern bool
smart_put_long_key(const struct smart_normalizer *normalizer, Datum value, uint8 *out, uint8 *limit, uint8 **end);

/* As the end function of a normalizer whose width is 0; the key may be squeezed. */
extern const uint8 *
smart_key_end(const struct smart_normalizer *normalizer, const uint8 *bytes, const uint8 *limit, uint8 flip);

/*
 * The value of a squeezed key of length bytes (complemented if flip is 0xFF), as it is in an IndexTuple: compressed if
 * that makes it shorter and its column's storage allows it.  It is palloc'ed.
 */
extern struct varlena *
smart_get_long_value(const struct smart_column *column, const uint8 *bytes, int length, const uint8 *residue);

/* How many bytes that is, by the value. */
extern Size smart_long_value_size(const struct smart_column *column, Datum value);

#endif /* SMART_CODEC_LONG_KEY_H */
