/*
 * squeeze_fuzz.c
 *	  Two keys of any bytes (base/squeeze.h): libFuzzer looks for two whose squeezed forms have another order, or do not come
 *	  back.
 *
 * Keys are squeezed behind their first SMART_SQUEEZE_PLAIN bytes.  Of an input the first byte tells how many bytes less than
 * that are put before the rest, as copies of it, so that inputs can be short.  The second one tells whether the keys are of
 * one length, or end as those of bytea do; the third and the fourth how many bytes both begin with, and the fifth and the
 * sixth how many bytes follow in the first key.  What is left follows in the second one.
 *
 * What must be true: squeeze_pair_check().  Besides, any bytes may be searched for the end of a form.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/pieces.h"
#include "base/squeeze.h"
#include "support/must.h"
#include "support/squeeze_pair.h"

#define HEAD 6u
#define KEY  16384u

extern int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct value
{
	uint8_t bytes[KEY];
	size_t length;
};

static void
add(struct value *value, const uint8_t *bytes, size_t length)
{
	must(length <= sizeof(value->bytes) - value->length, "a value is too long");
	memcpy(value->bytes + value->length, bytes, length);
	value->length += length;
}

/* The beginning of both keys: copies of some bytes, or zeros if there are none. */
static void
begin(struct value *value, const uint8_t *bytes, size_t length, size_t wanted)
{
	static const uint8_t zero = 0;

	value->length = 0;
	while (value->length < wanted)
	{
		size_t rest = wanted - value->length;

		if (length == 0)
			add(value, &zero, 1);
		else
			add(value, bytes, length < rest ? length : rest);
	}
}

/* Ends a value as a key of bytea. */
static void
end(struct value *value)
{
	static struct value key;
	uint8_t *limit = key.bytes + sizeof(key.bytes);
	uint8_t *at = smart_put_escaped(key.bytes, limit, value->bytes, value->length);

	at = smart_put_bytes(at, limit, SMART_ESCAPED_END, 2);
	must(at != NULL, "a key is too long");
	key.length = (size_t) (at - key.bytes);
	*value = key;
}

static void
check_any_end(const uint8_t *data, size_t size)
{
	static struct value any;

	for (int flip = 0; flip <= 0xFF; flip += 0xFF)
	{
		uint8_t *exact;
		const uint8_t *found;

		begin(&any, data, size, SMART_SQUEEZE_PLAIN);
		add(&any, data, size);
		exact = malloc(any.length);
		must(exact != NULL, "memory");
		memcpy(exact, any.bytes, any.length);
		found = smart_squeezed_end(exact, exact + any.length, (uint8_t) flip);
		must(found == NULL || (found > exact + SMART_SQUEEZE_PLAIN && found <= exact + any.length),
			 "an end lies outside");
		free(exact);
	}
}

static size_t
least(size_t a, size_t b)
{
	return a < b ? a : b;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct value a;
	static struct value b;
	const uint8_t *rest = data + HEAD;
	const char *fault;
	size_t length;

	if (size < HEAD)
		return 0;
	size -= HEAD;
	check_any_end(rest, size);
	begin(&a, rest, size, SMART_SQUEEZE_PLAIN - data[0]);
	length = least(smart_load_be16(data + 2), size);
	add(&a, rest, length);
	rest += length;
	size -= length;
	b = a;
	length = least(smart_load_be16(data + 4), size);
	add(&a, rest, length);
	add(&b, rest + length, size - length);
	if (data[1] % 2 == 0)
		a.length = b.length = least(a.length, b.length);
	else
	{
		end(&a);
		end(&b);
	}
	fault = squeeze_pair_check(a.bytes, a.length, b.bytes, b.length);
	must(fault == NULL, fault);
	return 0;
}
