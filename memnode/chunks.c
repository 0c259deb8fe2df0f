/*
 * chunks.c
 *	  The chunks of a region.
 *
 * A chunk's word changes by one store, so a process that is killed leaves it
 * free or owned.  It is stored after the chunk was filled with zeros.
 */
#include <string.h>

#include "base/assert.h"
#include "chunks.h"

static void
set_word(struct memnode_chunks *chunks, uint32_t chunk, uint32_t word)
{
	smart_assert(chunk >= chunks->region->first_chunk && chunk < chunks->region->chunk_count);
	/* Release: for the process that adopts the region after this one. */
	__atomic_store_n(&chunks->region->chunks[chunk], word, __ATOMIC_RELEASE);
}

static uint32_t *
counter_of(struct memnode_chunks *chunks, uint32_t owner, enum memnode_chunk_use use)
{
	smart_assert(owner < MEMNODE_OWNERS && (use == MEMNODE_CHUNK_BLOCKS || use == MEMNODE_CHUNK_ROOTS));
	return use == MEMNODE_CHUNK_BLOCKS ? &chunks->own[owner] : &chunks->roots[owner];
}

void
memnode_chunks_open(struct memnode_chunks *chunks, struct memnode_region *region)
{
	smart_assert(region->first_chunk < region->chunk_count);
	memset(chunks, 0, sizeof(*chunks));
	chunks->region = region;
	chunks->zero_start = chunks->free_start = region->first_chunk;
	for (uint32_t chunk = region->first_chunk; chunk < region->chunk_count; chunk++)
	{
		uint32_t word = region->chunks[chunk];

		if (word == MEMNODE_CHUNK_ZERO)
			chunks->zero++;
		else if (word == MEMNODE_CHUNK_FREE)
			chunks->free++;
		else
			(*counter_of(chunks, memnode_chunk_owner(word), memnode_chunk_use(word)))++;
	}
	smart_assert(chunks->zero + chunks->free <= memnode_chunks_capacity(chunks));
}

uint32_t
memnode_chunks_capacity(const struct memnode_chunks *chunks)
{
	return chunks->region->chunk_count - chunks->region->first_chunk;
}

uint32_t
memnode_chunks_allocated(const struct memnode_chunks *chunks)
{
	smart_assert(chunks->zero + chunks->free <= memnode_chunks_capacity(chunks));
	return memnode_chunks_capacity(chunks) - chunks->zero - chunks->free;
}

/* The first chunk with this word; there is one at *start or above. */
static uint32_t
find_word(const struct memnode_chunks *chunks, uint32_t word, uint32_t *start)
{
	uint32_t chunk = *start;

	smart_assert(chunk >= chunks->region->first_chunk && chunk < chunks->region->chunk_count);
	while (chunks->region->chunks[chunk] != word)
		chunk++;
	smart_assert(chunk < chunks->region->chunk_count);
	*start = chunk + 1;
	return chunk;
}

uint32_t
memnode_chunks_take(struct memnode_chunks *chunks, uint32_t owner, enum memnode_chunk_use use, bool *cleared)
{
	uint32_t chunk;

	smart_assert(owner < MEMNODE_OWNERS);
	if (chunks->zero == 0 && chunks->free == 0)
		return 0;
	*cleared = chunks->zero == 0;
	if (*cleared)
	{
		chunk = find_word(chunks, MEMNODE_CHUNK_FREE, &chunks->free_start);
		memset(chunks->region->base + (uint64_t) chunk * WIRE_CHUNK_BYTES, 0, WIRE_CHUNK_BYTES);
		chunks->free--;
	}
	else
	{
		chunk = find_word(chunks, MEMNODE_CHUNK_ZERO, &chunks->zero_start);
		chunks->zero--;
	}
	set_word(chunks, chunk, memnode_chunk_word(use, owner));
	(*counter_of(chunks, owner, use))++;
	smart_assert(*counter_of(chunks, owner, use) <= memnode_chunks_allocated(chunks));
	return chunk;
}

bool
memnode_chunks_give(struct memnode_chunks *chunks, uint32_t owner, enum memnode_chunk_use use, uint32_t chunk)
{
	smart_assert(owner < MEMNODE_OWNERS);
	if (chunk < chunks->region->first_chunk || chunk >= chunks->region->chunk_count ||
		chunks->region->chunks[chunk] != memnode_chunk_word(use, owner))
		return false;
	smart_assert(*counter_of(chunks, owner, use) > 0 && memnode_chunks_allocated(chunks) > 0);
	set_word(chunks, chunk, MEMNODE_CHUNK_FREE);
	(*counter_of(chunks, owner, use))--;
	chunks->free++;
	if (chunk < chunks->free_start)
		chunks->free_start = chunk;
	smart_assert(chunks->zero + chunks->free <= memnode_chunks_capacity(chunks));
	return true;
}

void
memnode_chunks_give_all(struct memnode_chunks *chunks, uint32_t owner)
{
	smart_assert(owner < MEMNODE_OWNERS);
	for (uint32_t chunk = chunks->region->first_chunk; chunk < chunks->region->chunk_count; chunk++)
	{
		if (!memnode_chunks_give(chunks, owner, MEMNODE_CHUNK_BLOCKS, chunk))
			memnode_chunks_give(chunks, owner, MEMNODE_CHUNK_ROOTS, chunk);
	}
	smart_assert(chunks->own[owner] == 0 && chunks->roots[owner] == 0);
}

uint32_t
memnode_chunks_list(const struct memnode_chunks *chunks, uint32_t owner, uint32_t from, uint32_t limit,
					uint32_t *numbers)
{
	uint32_t word = memnode_chunk_word(MEMNODE_CHUNK_BLOCKS, owner);
	uint32_t count = 0;

	smart_assert(owner < MEMNODE_OWNERS && limit > 0);
	if (from < chunks->region->first_chunk)
		from = chunks->region->first_chunk;
	for (uint32_t chunk = from; chunk < chunks->region->chunk_count && count < limit; chunk++)
	{
		if (chunks->region->chunks[chunk] == word)
			numbers[count++] = chunk;
	}
	smart_assert(count <= limit);
	return count;
}

bool
memnode_chunks_inside(const struct memnode_chunks *chunks, uint64_t offset, uint64_t length)
{
	return offset < chunks->region->size && length <= chunks->region->size - offset;
}

bool
memnode_chunks_cover(const struct memnode_chunks *chunks, uint32_t owner, uint64_t offset, uint64_t length)
{
	uint32_t blocks = memnode_chunk_word(MEMNODE_CHUNK_BLOCKS, owner);
	uint32_t roots = memnode_chunk_word(MEMNODE_CHUNK_ROOTS, owner);
	uint64_t last;

	smart_assert(length > 0 && owner < MEMNODE_OWNERS);
	if (!memnode_chunks_inside(chunks, offset, length))
		return false;
	last = (offset + length - 1) / WIRE_CHUNK_BYTES;
	for (uint64_t chunk = offset / WIRE_CHUNK_BYTES; chunk <= last; chunk++)
	{
		if (chunks->region->chunks[chunk] != blocks && chunks->region->chunks[chunk] != roots)
			return false;
	}
	return true;
}
