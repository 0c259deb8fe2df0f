/*
 * squeeze_pair.c
 *	  What must be true of the squeezed forms of two keys.
 *
 * All buffers have the length of what is in them, so that a sanitizer sees a byte that is read or written beyond.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/squeeze.h"
#include "support/must.h"
#include "support/squeeze_pair.h"

/* The worst case: each bit takes 12 bits, and each byte of that is 00. */
#define FORM_MAX(length) (SMART_SQUEEZE_PLAIN + ((length) -SMART_SQUEEZE_PLAIN) * 24 + 16)

static void *
take(size_t size)
{
	void *space = malloc(size);

	must(space != NULL, "memory");
	return space;
}

static void *
copy_of(const uint8_t *bytes, size_t length)
{
	return memcpy(take(length), bytes, length);
}

static struct smart_squeezer *
squeezer(void)
{
	static struct smart_squeezer *made = NULL;

	if (made == NULL)
		made = take(smart_squeezer_bytes());
	return made;
}

/* With less room than a form needs there is its beginning. */
static const char *
check_cut(const struct squeeze_form *form, const uint8_t *key, size_t length, size_t room)
{
	uint8_t *out = take(room);
	bool cut = smart_squeeze(squeezer(), key, length, out, out + room) == NULL;
	bool begins = memcmp(out, form->bytes, room) == 0;

	free(out);
	return !cut ? "a form fits where there is less room" : !begins ? "a form that is cut is not the beginning" : NULL;
}

/* Where the form ends: with other bytes behind it, with none, and with too few.  flip as in smart_squeezed_end(). */
static const char *
check_end(const struct squeeze_form *form, uint8_t flip)
{
	size_t length = form->length;
	uint8_t *bytes = take(length + 3);
	bool good;

	for (size_t i = 0; i < length; i++)
		bytes[i] = form->bytes[i] ^ flip;
	memset(bytes + length, flip, 3);
	good = smart_squeezed_end(bytes, bytes + length + 3, flip) == bytes + length &&
		   smart_squeezed_end(bytes, bytes + length, flip) == bytes + length &&
		   smart_squeezed_end(bytes, bytes + length - 1, flip) == NULL;
	free(bytes);
	return good ? NULL : "a form ends elsewhere";
}

static const char *
check_back(const struct squeeze_form *form, const uint8_t *key, size_t length)
{
	uint8_t *back;
	bool same;

	if (smart_unsqueezed_length(form->bytes, form->length) != length)
		return "the length of the key is another one";
	back = take(length);
	smart_unsqueeze(squeezer(), form->bytes, form->length, back);
	same = memcmp(back, key, length) == 0;
	free(back);
	return same ? NULL : "another key comes back";
}

const char *
squeeze_form_make(struct squeeze_form *form, const uint8_t *key, size_t length)
{
	const char *fault;
	uint8_t *room;
	uint8_t *end;

	*form = (struct squeeze_form){.length = length};
	if (length <= SMART_SQUEEZE_PLAIN)
	{
		form->bytes = copy_of(key, length);
		return NULL;
	}
	room = take(FORM_MAX(length));
	end = smart_squeeze(squeezer(), key, length, room, room + FORM_MAX(length));
	must(end != NULL, "a form is longer than it can be");
	form->length = (size_t) (end - room);
	form->bytes = copy_of(room, form->length);
	memset(room, 0x5a, form->length);
	end = smart_squeeze(squeezer(), key, length, room, room + form->length);
	fault = end != room + form->length || memcmp(room, form->bytes, form->length) != 0
				? "a form does not fit where there is just enough room"
				: NULL;
	free(room);
	if (fault == NULL)
		fault = check_cut(form, key, length, form->length - 1);
	if (fault == NULL)
		fault = check_cut(form, key, length, form->length / 2);
	if (fault == NULL)
		fault = check_end(form, 0);
	if (fault == NULL)
		fault = check_end(form, 0xFF);
	return fault == NULL ? check_back(form, key, length) : fault;
}

void
squeeze_form_free(struct squeeze_form *form)
{
	free(form->bytes);
	form->bytes = NULL;
}

static int
sign(int order)
{
	return (order > 0) - (order < 0);
}

static const char *
check_order(const struct squeeze_form *a, const struct squeeze_form *b, int expected)
{
	size_t shared = smart_common_prefix(a->bytes, a->length, b->bytes, b->length);

	if (sign(smart_compare_bytes(a->bytes, a->length, b->bytes, b->length)) != expected)
		return "forms have another order than keys";
	if (expected != 0 && (shared == a->length || shared == b->length))
		return "a form is a prefix of another one";
	return NULL;
}

const char *
squeeze_pair_check(const uint8_t *a, size_t a_length, const uint8_t *b, size_t b_length)
{
	struct squeeze_form left;
	struct squeeze_form right;
	const char *fault = squeeze_form_make(&left, a, a_length);
	const char *other = squeeze_form_make(&right, b, b_length);

	if (fault == NULL)
		fault = other;
	if (fault == NULL)
		fault = check_order(&left, &right, sign(smart_compare_bytes(a, a_length, b, b_length)));
	squeeze_form_free(&left);
	squeeze_form_free(&right);
	return fault;
}
