/*
 * text.c
 *	  A text that grows at its end.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "text.h"

#define FIRST_BYTES 4096

/* Makes room for length bytes and a zero byte. */
static bool
reserve(struct memnode_text *text, size_t length)
{
	size_t capacity = text->capacity > 0 ? text->capacity : FIRST_BYTES;
	char *bytes;

	while (capacity <= text->length + length)
		capacity *= 2;
	if (capacity == text->capacity)
		return true;
	bytes = realloc(text->bytes, capacity);
	if (bytes == NULL)
		return false;
	text->bytes = bytes;
	text->capacity = capacity;
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
