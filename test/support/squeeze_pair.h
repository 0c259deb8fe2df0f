/*
 * squeeze_pair.h
 *	  What must be true of the squeezed forms of two keys (base/squeeze.h).
 */
#ifndef TEST_SQUEEZE_PAIR_H
#define TEST_SQUEEZE_PAIR_H

#include <stddef.h>
#include <stdint.h>

/* A key of at most SMART_SQUEEZE_PLAIN bytes is stored as it is. */
struct squeeze_form
{
	uint8_t *bytes; /* malloc'ed, with no byte more */
	size_t length;
};

/*
 * Stores a key, and sees that its form fits where there is just enough room, is cut where there is less, ends where it ends,
 * also if complemented, and comes back.  Returns NULL, or what is wrong.
 */
extern const char *squeeze_form_make(struct squeeze_form *form, const uint8_t *key, size_t length);

extern void squeeze_form_free(struct squeeze_form *form);

/*
 * Of two keys neither of which is a proper prefix of the other one: both forms are good, and have their order.  Returns NULL,
 * or what is wrong.
 */
extern const char *squeeze_pair_check(const uint8_t *a, size_t a_length, const uint8_t *b, size_t b_length);

#endif /* TEST_SQUEEZE_PAIR_H */
