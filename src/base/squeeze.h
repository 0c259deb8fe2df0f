/*
 * squeeze.h
 *	  Long normalized keys, made shorter without a change of their order.
 */
#ifndef SMART_BASE_SQUEEZE_H
#define SMART_BASE_SQUEEZE_H

#include <stddef.h>
#include <stdint.h>

/* Normalized keys of no more bytes are stored as they are, and so are the first bytes of all others. */
#define SMART_SQUEEZE_PLAIN 2000

/* Longer normalized keys are not stored, whatever becomes of them. */
#define SMART_SQUEEZE_MAX (256 * 1024)

/* What a call works in: so many bytes, aligned for any type.  Nothing stays in it from one call to another. */
struct smart_squeezer;

extern size_t smart_squeezer_bytes(void);

/*
 * Writes the squeezed form of a normalized key of length bytes, more than SMART_SQUEEZE_PLAIN, at out, and returns its
 * end.  If it does not fit, fills out up to limit with its beginning and returns NULL.
 *
 * Among normalized keys none of which is a prefix of another one the squeezed forms have the order of the keys, and none
 * of them is a prefix of another one, or of a key that is not squeezed.
 */
extern uint8_t *
smart_squeeze(struct smart_squeezer *squeezer, const uint8_t *key, size_t length, uint8_t *out, uint8_t *limit);

/* Where a squeezed form ends that begins at bytes; NULL if not before limit.  flip: 0xFF if it is complemented, else 0. */
extern const uint8_t *smart_squeezed_end(const uint8_t *bytes, const uint8_t *limit, uint8_t flip);

/* How many bytes the normalized key of a squeezed form has. */
extern size_t smart_unsqueezed_length(const uint8_t *bytes, size_t length);

/* Writes the normalized key of a squeezed form of length bytes, which is not complemented. */
extern void smart_unsqueeze(struct smart_squeezer *squeezer, const uint8_t *bytes, size_t length, uint8_t *key);

#endif /* SMART_BASE_SQUEEZE_H */
