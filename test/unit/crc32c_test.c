/*
 * crc32c_test.c
 *	  src/base/crc32c.h: by the CPU's instruction and by ISA-L, against the polynomial, bit by bit.
 */
#include <stdint.h>

#include "base/crc32c.h"
#include "support/check.h"

#define BYTES      (SMART_CRC_SHORT + 300)
#define ALIGNMENTS 9

static uint32_t
by_bits(uint32_t crc, const uint8_t *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
	{
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ ((crc & 1) != 0 ? UINT32_C(0x82f63b78) : 0);
	}
	return crc;
}

/* The value that RFC 3720 gives for 32 zeros, and the one that all catalogues give for nine digits. */
static void
test_known(void)
{
	const uint8_t zeros[32] = {0};

	CHECK((smart_crc32c(UINT32_MAX, zeros, sizeof(zeros)) ^ UINT32_MAX) == UINT32_C(0x8a9136aa));
	CHECK((smart_crc32c(UINT32_MAX, "123456789", 9) ^ UINT32_MAX) == UINT32_C(0xe3069283));
}

/* Lengths on either side of where ISA-L takes over, at every alignment; and a string in two pieces. */
static void
test_lengths(void)
{
	uint8_t bytes[BYTES + ALIGNMENTS];
	uint32_t seed = 1;

	for (size_t i = 0; i < sizeof(bytes); i++)
	{
		seed = seed * 1664525 + 1013904223;
		bytes[i] = (uint8_t) (seed >> 24);
	}
	for (size_t length = 0; length <= BYTES; length += length < 100 || length > SMART_CRC_SHORT - 10 ? 1 : 37)
	{
		bool good = true;

		for (size_t at = 0; at < ALIGNMENTS; at++)
		{
			uint32_t expected = by_bits(seed, bytes + at, length);

			good &= smart_crc32c(seed, bytes + at, length) == expected;
			good &= smart_crc32c(smart_crc32c(seed, bytes + at, length / 3), bytes + at + length / 3,
								 length - length / 3) == expected;
		}
		CHECK(good);
	}
}

int
main(void)
{
	test_known();
	test_lengths();
	return check_finish();
}
