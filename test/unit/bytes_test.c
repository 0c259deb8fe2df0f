/*
 * bytes_test.c
 *	  src/base/bytes.h: strings of every short length, at every alignment, against plain loops.
 */
#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"
#include "support/check.h"

#define LENGTHS    70 /* some words, and what is left behind them */
#define ALIGNMENTS 8
#define CANARY     0x5a

/* All bytes are copied, and none before or behind them is touched. */
static void
test_copy(void)
{
	uint8_t source[LENGTHS + ALIGNMENTS];
	uint8_t target[1 + LENGTHS + ALIGNMENTS + 1];

	for (size_t i = 0; i < sizeof(source); i++)
		source[i] = (uint8_t) (i + 100);
	for (size_t length = 0; length <= LENGTHS; length++)
		for (size_t at = 0; at < ALIGNMENTS; at++)
		{
			uint8_t *begin = target + 1 + (ALIGNMENTS - 1 - at);
			bool good;

			memset(target, CANARY, sizeof(target));
			smart_copy_short(begin, source + at, length);
			good = memcmp(begin, source + at, length) == 0;
			for (const uint8_t *byte = target; byte < target + sizeof(target); byte++)
				good &= (byte >= begin && byte < begin + length) || *byte == CANARY;
			CHECK(good);
		}
}

/* Strings that differ at each place, by the highest and the lowest bit, or where one of them ends. */
static void
test_common_prefix(void)
{
	uint8_t a[LENGTHS + ALIGNMENTS];
	uint8_t b[LENGTHS];

	memset(a, CANARY, sizeof(a));
	for (size_t at = 0; at < ALIGNMENTS; at++)
		for (size_t length = 0; length <= LENGTHS; length++)
		{
			bool good = true;

			memset(b, CANARY, sizeof(b));
			for (size_t other = 0; other <= LENGTHS; other++)
				good &= smart_common_prefix(a + at, length, b, other) == (length < other ? length : other);
			for (size_t place = 0; place < length; place++)
			{
				b[place] ^= 0x80;
				good &= smart_common_prefix(a + at, length, b, LENGTHS) == place;
				b[place] ^= 0x81;
				good &= smart_common_prefix(b, length, a + at, LENGTHS) == place;
				b[place] = CANARY;
			}
			CHECK(good);
		}
}

int
main(void)
{
	test_copy();
	test_common_prefix();
	return check_finish();
}
