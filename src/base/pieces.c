/*
 * pieces.c
 *	  Bytes that may have 00 among them, and end with 00 00.
 */
#include "base/pieces.h"

uint8_t *
smart_put_escaped(uint8_t *out, uint8_t *limit, const uint8_t *bytes, size_t length)
{
	const uint8_t *end = bytes + length;

	while (bytes < end && out != NULL)
	{
		const uint8_t *zero = memchr(bytes, 0, (size_t) (end - bytes));

		out = smart_put_bytes(out, limit, bytes, (size_t) ((zero == NULL ? end : zero) - bytes));
		if (zero == NULL)
			break;
		out = smart_put_bytes(out, limit, "\0\xFF", 2);
		bytes = zero + 1;
	}
	smart_assert(out == NULL || out <= limit);
	return out;
}

const uint8_t *
smart_find_escaped_end(const uint8_t *bytes, const uint8_t *limit, uint8_t flip)
{
	const uint8_t *p = bytes;

	smart_assert(flip == 0 || flip == 0xFF);
	while ((p = memchr(p, flip, (size_t) (limit - p))) != NULL && p + 1 < limit)
	{
		if (p[1] == flip)
			return p + 2;
		p += 2;
	}
	return NULL;
}

/* Each 00 stands for itself and has a byte behind it that goes. */
int
smart_get_escaped(const uint8_t *bytes, const uint8_t *end, char *out)
{
	int length = 0;

	smart_assert(bytes <= end);
	while (bytes < end)
	{
		const uint8_t *zero = memchr(bytes, 0, (size_t) (end - bytes));
		int plain = (int) ((zero == NULL ? end : zero + 1) - bytes);

		if (out != NULL)
			memcpy(out + length, bytes, (size_t) plain);
		length += plain;
		bytes += zero == NULL ? plain : plain + 1;
	}
	return length;
}
