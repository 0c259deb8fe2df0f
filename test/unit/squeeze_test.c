/*
 * squeeze_test.c
 *	  src/base/squeeze.h: the squeezed forms of keys have the keys' order, and the keys come back.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/pieces.h"
#include "base/squeeze.h"
#include "support/check.h"
#include "support/squeeze_pair.h"

#define PLAIN SMART_SQUEEZE_PLAIN
#define VALUE 6000 /* bytes of a value at most, but for the longest */
#define KEY   (2 * VALUE + 2)
#define PAIRS 150
#define KINDS 5
#define KEYS  60

/* Knuth's MMIX generator: what it gives must be the same everywhere, as checksums depend on it. */
static uint64_t state;

static uint32_t
random_below(uint32_t limit)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t) ((state >> 33) % limit);
}

/* Bytes of a kind: any, words, few, almost all the same, repeated from before. */
static void
fill(uint8_t *bytes, size_t from, size_t to, uint32_t kind)
{
	static const char words[] = "the quick brown fox jumps over a lazy dog ";

	for (size_t i = from; i < to; i++)
	{
		switch (kind)
		{
			case 0:
				bytes[i] = (uint8_t) random_below(256);
				break;
			case 1:
				bytes[i] =
					(uint8_t) words[random_below(8) == 0 ? random_below(sizeof(words) - 1) : i % (sizeof(words) - 1)];
				break;
			case 2:
				bytes[i] = (uint8_t) (random_below(2) * 255);
				break;
			case 3:
				bytes[i] = random_below(300) == 0 ? (uint8_t) random_below(256) : 0;
				break;
			default:
				bytes[i] = i < 100 || random_below(50) == 0 ? (uint8_t) random_below(256) : bytes[i - 1 - i % 97];
				break;
		}
	}
}

/* The normalized key of a value, as bytea has it: no key is a prefix of another one. */
static size_t
normalize(const uint8_t *value, size_t length, uint8_t key[KEY])
{
	uint8_t *end = smart_put_escaped(key, key + KEY, value, length);

	return (size_t) (smart_put_bytes(end, key + KEY, SMART_ESCAPED_END, 2) - key);
}

static void
check_pair(const uint8_t *a, size_t a_length, const uint8_t *b, size_t b_length)
{
	const char *fault = squeeze_pair_check(a, a_length, b, b_length);

	if (fault != NULL)
		printf("%s\n", fault);
	CHECK(fault == NULL);
}

static void
check_values(const uint8_t *a, size_t a_length, const uint8_t *b, size_t b_length)
{
	static uint8_t keys[2][KEY];
	size_t length = normalize(a, a_length, keys[0]);

	check_pair(keys[0], length, keys[1], normalize(b, b_length, keys[1]));
}

/* Values of all kinds and lengths that share a beginning, which ends around the place from which on there is code. */
static void
test_random(void)
{
	static uint8_t a[VALUE];
	static uint8_t b[VALUE];
	static const uint32_t shared[] = {0, 1, 1990, 1998, 1999, 2000, 2001, 2003, 2100, 3500};

	for (uint32_t i = 0; i < PAIRS; i++)
	{
		uint32_t same = shared[random_below(sizeof(shared) / sizeof(shared[0]))];
		uint32_t a_length = same + random_below(VALUE - same);
		uint32_t b_length = random_below(4) == 0 ? a_length : same + random_below(VALUE - same);
		uint32_t kind = random_below(KINDS);

		fill(a, 0, a_length, kind);
		memcpy(b, a, same);
		fill(b, same, b_length, random_below(4) == 0 ? random_below(KINDS) : kind);
		check_values(a, a_length, b, b_length);
	}
}

/* Neighbours: one bit differs, or the last byte, or one value goes on. */
static void
test_near(void)
{
	static uint8_t a[VALUE];
	static uint8_t b[VALUE];

	for (uint32_t i = 0; i < PAIRS; i++)
	{
		uint32_t length = PLAIN - 10 + random_below(1000);
		uint32_t more = random_below(3);

		fill(a, 0, length, i % KINDS);
		memcpy(b, a, length);
		fill(b, length, length + more, i % 2 * 3);
		if (random_below(3) > 0)
			b[random_below(2) == 0 ? length - 1 : random_below(length)] ^= (uint8_t) (1 << random_below(8));
		check_values(a, length, b, length + more);
	}
}

/* Each byte in the first two places of the code, beside the next one; with no end of their own, in keys of one length. */
static void
test_all_bytes(void)
{
	uint8_t a[PLAIN + 6];
	uint8_t b[PLAIN + 6];

	for (uint32_t place = PLAIN; place < PLAIN + 2; place++)
	{
		for (uint32_t byte = 0; byte < 256; byte++)
		{
			fill(a, 0, sizeof(a), byte % KINDS);
			memcpy(b, a, sizeof(b));
			a[place] = (uint8_t) byte;
			b[place] = (uint8_t) (byte + 1);
			check_pair(a, place + 1, b, place + 1);
			check_pair(a, sizeof(a), b, sizeof(b));
		}
	}
}

/* The empty value, each length around that from which on keys are squeezed, and the longest. */
static void
test_lengths(void)
{
	static uint8_t a[SMART_SQUEEZE_MAX];
	static uint8_t b[SMART_SQUEEZE_MAX];

	fill(a, 0, VALUE, 1);
	for (uint32_t length = PLAIN - 4; length < PLAIN + 4; length++)
	{
		check_values(a, 0, a, length);
		check_values(a, length, a, length + 1);
		check_values(a, length, a, VALUE / 2);
	}
	for (uint32_t kind = 0; kind < KINDS; kind += 3)
	{
		fill(a, 0, sizeof(a), kind);
		memcpy(b, a, sizeof(b));
		b[sizeof(b) - 1] ^= 1;
		check_pair(a, sizeof(a), b, sizeof(b));
	}
}

/* Stored keys have to come out the same on all machines and in all versions. */
static void
test_never_changes(void)
{
	static const uint32_t expected[KINDS][2] = {{0x3168C8EE, 240391},
												{0xBE63C620, 152391},
												{0x908B66DB, 142635},
												{0x6F0E2330, 123269},
												{0x9DD9AF0B, 128539}};
	static uint8_t value[VALUE];
	static uint8_t key[KEY];

	for (uint32_t kind = 0; kind < KINDS; kind++)
	{
		uint32_t crc = 0;
		uint32_t bytes = 0;

		state = kind;
		for (uint32_t i = 0; i < KEYS; i++)
		{
			struct squeeze_form form;
			uint32_t length = PLAIN + i * (VALUE - PLAIN) / KEYS;

			fill(value, 0, length, kind);
			CHECK(squeeze_form_make(&form, key, normalize(value, length, key)) == NULL);
			crc = smart_crc32c(crc, form.bytes, form.length);
			bytes += (uint32_t) form.length;
			squeeze_form_free(&form);
		}
		if (crc != expected[kind][0] || bytes != expected[kind][1])
			printf("kind %u: checksum 0x%08X of %u bytes\n", kind, crc, bytes);
		CHECK(crc == expected[kind][0] && bytes == expected[kind][1]);
	}
}

int
main(void)
{
	test_random();
	test_near();
	test_all_bytes();
	test_lengths();
	test_never_changes();
	return check_finish();
}
