/*
 * squeeze.h
 *	  Long normalized keys, made shorter without a change of their order.
 */
#ifndef SMART_CODEC_SQUEEZE_H
#define SMART_CODEC_SQUEEZE_H

/* Normalized keys of no more bytes are stored as they are, and so are the first bytes of all others. */
#define SMART_SQUEEZE_PLAIN 2000

/* Longer normalized keys are not stored, whatever becomes of them. */
#define SMART_SQUEEZE_MAX (256 * 1024)

/*
 * Writes the squeezed form of a normalized key of length bytes, more than SMART_SQUEEZE_PLAIN, at out, and returns its
 * end.  If it does not fit, fills out up to limit with its beginning and returns NULL.
 *
 * Among normalized keys none of which is a prefix of another one the squeezed forms have the order of the keys, and none
 * of them is a prefix of another one, or of a key that is not squeezed.
 */
extern uint8 *smart_squeeze(const uint8 *key, size_t length, uint8 *out, uint8 *limit);

/* Where a squeezed form ends that begins at bytes; NULL if not before limit.  flip: 0xFF if it is complemented, else 0. */
extern const uint8 *smart_squeezed_end(const uint8 *bytes, const uint8 *limit, uint8 flip);

/* How many bytes the normalized key of a squeezed form has. */
extern size_t smart_unsqueezed_length(const uint8 *bytes, size_t length);

/* Writes the normalized key of a squeezed form of length bytes, which is not complemented. */
extern void smart_unsqueeze(const uint8 *bytes, size_t length, uint8 *key);

#endif /* SMART_CODEC_SQUEEZE_H */
