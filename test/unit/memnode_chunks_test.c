/*
 * memnode_chunks_test.c
 *	  The memory node's chunks: taken, given, listed, filled with zeros, and what an owner may reach.
 */
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/memnode_peer.h"

#define SIZE ((uint64_t) 32 << 20)
#define ONE  3u
#define TWO  900u

static struct memnode_region region;
static struct memnode_chunks chunks;

static uint8_t *
chunk_bytes(uint32_t chunk)
{
	return region.base + (uint64_t) chunk * WIRE_CHUNK_BYTES;
}

static bool
holds_zeros(uint32_t chunk)
{
	const uint8_t *bytes = chunk_bytes(chunk);

	return bytes[0] == 0 && memcmp(bytes, bytes + 1, WIRE_CHUNK_BYTES - 1) == 0;
}

static void
test_take_all(void)
{
	uint32_t capacity = memnode_chunks_capacity(&chunks);
	uint32_t numbers[64];
	bool cleared;

	CHECK(capacity == region.chunk_count - region.first_chunk && capacity > 8 && capacity < 64);
	for (uint32_t i = 0; i < capacity; i++)
	{
		numbers[i] = memnode_chunks_take(&chunks, i % 2 == 0 ? ONE : TWO, MEMNODE_CHUNK_BLOCKS, &cleared);
		CHECK(numbers[i] == region.first_chunk + i && !cleared);
		memset(chunk_bytes(numbers[i]), 0xa5, WIRE_CHUNK_BYTES);
	}
	CHECK(memnode_chunks_take(&chunks, ONE, MEMNODE_CHUNK_BLOCKS, &cleared) == 0);
	CHECK(memnode_chunks_allocated(&chunks) == capacity);
	CHECK(chunks.own[ONE] == (capacity + 1) / 2 && chunks.own[TWO] == capacity / 2);

	/* Only the owner gives, and once. */
	CHECK(!memnode_chunks_give(&chunks, TWO, MEMNODE_CHUNK_BLOCKS, numbers[2]));
	CHECK(!memnode_chunks_give(&chunks, ONE, MEMNODE_CHUNK_ROOTS, numbers[2]));
	CHECK(memnode_chunks_give(&chunks, ONE, MEMNODE_CHUNK_BLOCKS, numbers[2]));
	CHECK(!memnode_chunks_give(&chunks, ONE, MEMNODE_CHUNK_BLOCKS, numbers[2]));
	CHECK(!memnode_chunks_give(&chunks, ONE, MEMNODE_CHUNK_BLOCKS, 0));
	CHECK(!memnode_chunks_give(&chunks, ONE, MEMNODE_CHUNK_BLOCKS, region.chunk_count));
	CHECK(!memnode_chunks_give(&chunks, ONE, MEMNODE_CHUNK_BLOCKS, UINT32_MAX));

	/* It comes back with zeros. */
	CHECK(!holds_zeros(numbers[2]));
	CHECK(memnode_chunks_take(&chunks, TWO, MEMNODE_CHUNK_BLOCKS, &cleared) == numbers[2] && cleared);
	CHECK(holds_zeros(numbers[2]));
	memnode_chunks_give_all(&chunks, TWO);
	CHECK(chunks.own[TWO] == 0 && memnode_chunks_allocated(&chunks) == (capacity + 1) / 2 - 1);
}

static void
test_list(void)
{
	uint32_t numbers[64];
	uint32_t count = memnode_chunks_list(&chunks, ONE, 0, 64, numbers);

	CHECK(count == chunks.own[ONE]);
	for (uint32_t i = 1; i < count; i++)
		CHECK(numbers[i] > numbers[i - 1]);
	CHECK(memnode_chunks_list(&chunks, ONE, numbers[1] + 1, 2, numbers + 32) == 2 && numbers[32] == numbers[2]);
	CHECK(memnode_chunks_list(&chunks, ONE, UINT32_MAX, 64, numbers) == 0);
	CHECK(memnode_chunks_list(&chunks, TWO, 0, 64, numbers) == 0);
}

static void
test_cover(void)
{
	uint64_t at;
	uint32_t first;
	uint32_t second;
	bool cleared;

	memnode_chunks_give_all(&chunks, ONE);
	first = memnode_chunks_take(&chunks, ONE, MEMNODE_CHUNK_BLOCKS, &cleared);
	second = memnode_chunks_take(&chunks, ONE, MEMNODE_CHUNK_ROOTS, &cleared);
	CHECK(second == first + 1);
	CHECK(memnode_chunks_take(&chunks, TWO, MEMNODE_CHUNK_BLOCKS, &cleared) == second + 1);
	at = (uint64_t) first * WIRE_CHUNK_BYTES;
	CHECK(memnode_chunks_cover(&chunks, ONE, at, 2 * WIRE_CHUNK_BYTES));
	CHECK(memnode_chunks_cover(&chunks, ONE, at + WIRE_CHUNK_BYTES - 4, 8));
	CHECK(!memnode_chunks_cover(&chunks, ONE, at - 1, 2));
	CHECK(!memnode_chunks_cover(&chunks, ONE, at - 1, 1));
	CHECK(!memnode_chunks_cover(&chunks, ONE, at + 2 * WIRE_CHUNK_BYTES - 1, 2));
	CHECK(!memnode_chunks_cover(&chunks, TWO, at, 1));
	CHECK(!memnode_chunks_cover(&chunks, ONE, 0, 1));
	CHECK(!memnode_chunks_cover(&chunks, ONE, region.size, 1));
	CHECK(!memnode_chunks_cover(&chunks, ONE, region.size - 1, 2));
	CHECK(!memnode_chunks_cover(&chunks, ONE, UINT64_MAX, 8));
	CHECK(!memnode_chunks_cover(&chunks, ONE, at, UINT64_MAX));
}

/* The words alone tell the next process everything. */
static void
test_open_again(void)
{
	struct memnode_chunks again;

	memnode_chunks_open(&again, &region);
	CHECK(again.zero == chunks.zero && again.free == chunks.free);
	CHECK(memcmp(again.own, chunks.own, sizeof(again.own)) == 0);
	CHECK(memcmp(again.roots, chunks.roots, sizeof(again.roots)) == 0);
}

int
main(void)
{
	memnode_peer_region(&region, SIZE);
	memnode_chunks_open(&chunks, &region);
	test_take_all();
	test_list();
	test_cover();
	test_open_again();
	memnode_peer_unmap(&region);
	return check_finish();
}
