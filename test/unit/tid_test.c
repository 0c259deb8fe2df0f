/*
 * tid_test.c
 *	  src/base/tid.h: known bytes; round trip, order, length and prefixes of
 *	  TIDs around every limit of the forms, each against each.
 */
#include <string.h>

#include "base/bytes.h"
#include "base/tid.h"
#include "support/check.h"
#include "support/env_thread.h"

#define RANDOM_TIDS 600
#define TIDS_MAX    1024
#define CANARY      0x5a

struct tid
{
	uint32_t block;
	uint16_t offset;
	unsigned int length;
	uint8_t bytes[16];
};

static struct tid tids[TIDS_MAX];
static unsigned int count;
static uint64_t seed = 88172645463325252u;

/* What the table at the head of tid.h says, without its arithmetic. */
static unsigned int
expected_length(uint32_t block, uint16_t offset)
{
	if (offset > 2047)
		return 7;
	if (block <= 131071)
		return 4;
	return block <= 33554431 ? 5 : 6;
}

/* Writes a TID, reads it back from its end, and keeps it for the pairs. */
static void
add(uint32_t block, uint16_t offset)
{
	struct tid *tid = &tids[count++];
	uint32_t block_back;
	uint16_t offset_back;

	memset(tid->bytes, CANARY, sizeof(tid->bytes));
	tid->block = block;
	tid->offset = offset;
	tid->length = (unsigned int) (smart_tid_put_compact(tid->bytes, block, offset) - tid->bytes);
	CHECK(tid->length == expected_length(block, offset));
	CHECK(tid->bytes[tid->length] == CANARY);
	CHECK(smart_tid_length_by_first(tid->bytes[0]) == tid->length);
	CHECK(smart_tid_length_by_last(tid->bytes[tid->length - 1]) == tid->length);
	smart_tid_get_compact(tid->bytes + tid->length, &block_back, &offset_back);
	CHECK(block_back == block && offset_back == offset);

	/* Whatever lies before a TID has no part in it. */
	memmove(tid->bytes + 8, tid->bytes, 8);
	memset(tid->bytes, 0xff, 8);
	smart_tid_get_compact(tid->bytes + 8 + tid->length, &block_back, &offset_back);
	CHECK(block_back == block && offset_back == offset);
	smart_tid_from_compact(smart_load_be64(tid->bytes + tid->length), &block_back, &offset_back);
	CHECK(block_back == block && offset_back == offset);
	memmove(tid->bytes, tid->bytes + 8, 8);
}

static void
test_limits(void)
{
	static const uint32_t blocks[] = {0,
									  1,
									  255,
									  256,
									  65535,
									  65536,
									  (1u << 17) - 1,
									  1u << 17,
									  (1u << 17) + 1,
									  (1u << 25) - 1,
									  1u << 25,
									  (1u << 25) + 1,
									  UINT32_MAX - 1,
									  UINT32_MAX};
	static const uint16_t offsets[] = {0, 1, 2, 255, 256, 291, 2046, 2047, 2048, 2049, 65534, 65535};

	for (unsigned int b = 0; b < sizeof(blocks) / sizeof(blocks[0]); b++)
	{
		for (unsigned int o = 0; o < sizeof(offsets) / sizeof(offsets[0]); o++)
			add(blocks[b], offsets[o]);
	}
}

/* Blocks of any magnitude; one offset in four is of the fourth form. */
static void
test_any(void)
{
	for (unsigned int i = 0; i < RANDOM_TIDS; i++)
	{
		uint64_t word = test_random(&seed);
		uint32_t block = (uint32_t) (word >> 32) >> (word & 31);

		add(block, (uint16_t) ((word >> 8) & ((word >> 5 & 3) == 0 ? 65535 : 2047)));
	}
}

/* The order that a pair should have: offsets from 2048 on come last. */
static int
expected_order(const struct tid *a, const struct tid *b)
{
	if ((a->offset > 2047) != (b->offset > 2047))
		return a->offset > 2047 ? 1 : -1;
	if (a->block != b->block)
		return a->block < b->block ? -1 : 1;
	return (a->offset > b->offset) - (a->offset < b->offset);
}

/* The first bytes that both have decide, so that none is a prefix of another one. */
static void
test_pairs(void)
{
	for (unsigned int i = 0; i < count; i++)
	{
		for (unsigned int j = 0; j < count; j++)
		{
			unsigned int shorter = tids[i].length < tids[j].length ? tids[i].length : tids[j].length;
			int order = memcmp(tids[i].bytes, tids[j].bytes, shorter);

			CHECK((order > 0) - (order < 0) == expected_order(&tids[i], &tids[j]));
		}
	}
}

static void
test_known(void)
{
	static const struct tid known[] = {
		{0, 1, 4, {0x00, 0x00, 0x00, 0x04}},
		{131071, 2047, 4, {0x3f, 0xff, 0xff, 0xfc}},
		{131072, 0, 5, {0x40, 0x40, 0x00, 0x00, 0x01}},
		{33554432, 3, 6, {0x80, 0x40, 0x00, 0x00, 0x00, 0x0e}},
		{1, 2048, 7, {0xc0, 0x00, 0x00, 0x00, 0x04, 0x20, 0x03}},
	};
	static const uint8_t plain[] = {0x01, 0x02, 0x03, 0x04, 0x05, 0x06};
	uint8_t bytes[8];
	uint32_t block;
	uint16_t offset;

	for (unsigned int i = 0; i < sizeof(known) / sizeof(known[0]); i++)
	{
		CHECK(smart_tid_put_compact(bytes, known[i].block, known[i].offset) == bytes + known[i].length);
		CHECK(memcmp(bytes, known[i].bytes, known[i].length) == 0);
	}
	CHECK(smart_tid_put_plain(bytes, 0x01020304, 0x0506) == bytes + sizeof(plain));
	CHECK(memcmp(bytes, plain, sizeof(plain)) == 0);
	smart_tid_get_plain(bytes + sizeof(plain), &block, &offset);
	CHECK(block == 0x01020304 && offset == 0x0506);
	smart_tid_from_plain(UINT64_C(0xffff010203040506), &block, &offset);
	CHECK(block == 0x01020304 && offset == 0x0506);
}

int
main(void)
{
	test_known();
	test_limits();
	test_any();
	test_pairs();
	return check_finish();
}
