/*
 * text.c
 *	  A text that grows at its end.
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "text.h"

#define FIRST_BYTES 4096

/* Makes room for length bytes and a zero byte. */
static bool
reserve(struct memnode_text *text, size_t length)
{
	size_t capacity = text->capacity > 0 ? text->capacity : FIRST_BYTES;
	char *bytes;

	smart_assert(text->capacity == 0 || text->length < text->capacity);
	while (capacity <= text->length + length)
		capacity *= 2;
	if (capacity == text->capacity)
		return true;
	bytes = realloc(text->bytes, capacity);
	if (bytes == NULL)
		return false;
	text->bytes = bytes;
	text->capacity = capacity;
	smart_assert(text->capacity > text->length + length);
	return true;
}

void
memnode_text_add(struct memnode_text *text, const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	if (text->failed || length < 0 || !reserve(text, (size_t) length))
	{
		text->failed = true;
		return;
	}
	va_start(arguments, format);
	vsnprintf(text->bytes + text->length, text->capacity - text->length, format, arguments);
	va_end(arguments);
	text->length += (size_t) length;
	smart_assert(text->length < text->capacity && text->bytes[text->length] == '\0');
}

/* Bytes of the character that begins here; 0: it is none of UTF-8, or one that XML has not. */
static unsigned int
character_length(const unsigned char *at)
{
	unsigned int length = at[0] < 0x80 ? 1 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
	uint32_t code = at[0] & (length == 1 ? 0x7fu : 0xffu >> (length + 1));

	if ((at[0] & 0xc0) == 0x80 || at[0] > 0xf4)
		return 0;
	for (unsigned int i = 1; i < length; i++)
	{
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (at[i] & 0x3fu);
	}
	/* Control characters, then forms that are too long, surrogates, and what is no character. */
	if (length == 1)
		return code >= 0x20 && code != 0x7f;
	if (length == 2)
		return code >= 0xa0 ? 2 : 0;
	if (length == 3)
		return code >= 0x800 && (code < 0xd800 || code > 0xdfff) && code < 0xfffe ? 3 : 0;
	return code >= 0x10000 && code <= 0x10ffff ? 4 : 0;
}

void
memnode_text_add_escaped(struct memnode_text *text, const char *string)
{
	const unsigned char *at = (const unsigned char *) string;

	while (*at != '\0')
	{
		unsigned int length = character_length(at);

		if (length == 0)
			memnode_text_add(text, "\xef\xbf\xbd");
		else if (strchr("<>&\"'", *at) != NULL)
			memnode_text_add(text, "&#%u;", *at);
		else
			memnode_text_add(text, "%.*s", (int) length, (const char *) at);
		at += length > 0 ? length : 1;
	}
}
