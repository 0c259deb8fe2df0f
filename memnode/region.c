/*
 * region.c
 *	  The private part of a region: where it lies, and whether it can be trusted.
 */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "region.h"

#define HEADER_BYTES   4096u
#define BYTES_PER_TREE ((uint64_t) 64 << 10) /* of the region: how many tree records it has */
#define TREES_MIN      (4u << 10)
#define TREES_MAX      (1u << 20)
#define GROWTH         4u          /* times the chunks that it is made with there are words for, ... */
#define WORDS_MIN      (64u << 10) /* ... but for 128 GB at least */

static uint32_t
header_crc(const struct memnode_header *header)
{
	return ~smart_crc32c(UINT32_MAX, &header->size, offsetof(struct memnode_header, crc) - sizeof(header->magic));
}

/* Where the parts lie, from what is known of the region. */
static void
lay_out(struct memnode_region *region, uint8_t *base, uint64_t size, uint32_t trees)
{
	uint64_t at = HEADER_BYTES;

	smart_assert(size % WIRE_CHUNK_BYTES == 0 && trees <= TREES_MAX);
	region->base = base;
	region->size = size;
	region->chunk_count = (uint32_t) (size / WIRE_CHUNK_BYTES);
	region->tree_count = trees;
	region->header = (struct memnode_header *) base;
	region->owners = (struct memnode_owner_record *) (base + at);
	at += MEMNODE_OWNERS * sizeof(*region->owners);
	region->trees = (struct memnode_tree_record *) (base + at);
	at += region->tree_count * sizeof(*region->trees);
	region->chunks = (uint32_t *) (base + at);
}

void
memnode_region_plan(struct memnode_region *region, uint8_t *base, uint64_t size)
{
	uint64_t trees = size / BYTES_PER_TREE;
	uint64_t words = GROWTH * (size / WIRE_CHUNK_BYTES);
	uint64_t end;

	smart_assert(size >= MEMNODE_SIZE_MIN && size <= MEMNODE_SIZE_MAX && size % WIRE_CHUNK_BYTES == 0);
	lay_out(region, base, size, trees < TREES_MIN ? TREES_MIN : trees > TREES_MAX ? TREES_MAX : (uint32_t) trees);
	end = (uint64_t) ((uint8_t *) region->chunks - base) + (words < WORDS_MIN ? WORDS_MIN : words) * sizeof(uint32_t);
	region->first_chunk = (uint32_t) ((end + WIRE_CHUNK_BYTES - 1) / WIRE_CHUNK_BYTES);
	smart_assert(region->first_chunk < region->chunk_count);
}

bool
memnode_region_view(struct memnode_region *region, uint8_t *base)
{
	const struct memnode_header *header = (const struct memnode_header *) base;
	uint64_t size = memnode_region_size(header);

	if (header->crc != header_crc(header) || size < MEMNODE_SIZE_MIN || size > MEMNODE_SIZE_MAX ||
		size % WIRE_CHUNK_BYTES != 0 || header->trees > TREES_MAX)
		return false;
	lay_out(region, base, size, header->trees);
	region->first_chunk = header->first_chunk;
	return region->first_chunk < region->chunk_count && memnode_region_size_max(region) >= size;
}

uint64_t
memnode_region_size(const struct memnode_header *header)
{
	uint64_t grown = __atomic_load_n(&header->grown, __ATOMIC_ACQUIRE);

	return grown != 0 ? grown : header->size;
}

uint64_t
memnode_region_size_max(const struct memnode_region *region)
{
	uint64_t begin = (uint64_t) ((uint8_t *) region->chunks - region->base);
	uint64_t end = (uint64_t) region->first_chunk * WIRE_CHUNK_BYTES;
	uint64_t size = end > begin ? (end - begin) / sizeof(uint32_t) * WIRE_CHUNK_BYTES : 0;

	return size > MEMNODE_SIZE_MAX ? MEMNODE_SIZE_MAX : size;
}

void
memnode_region_grow(struct memnode_region *region, uint64_t size, bool zeroed)
{
	uint32_t count = (uint32_t) (size / WIRE_CHUNK_BYTES);

	smart_assert(size > region->size && size <= memnode_region_size_max(region) && size % WIRE_CHUNK_BYTES == 0);
	smart_assert(count > region->chunk_count);
	for (uint32_t chunk = region->chunk_count; chunk < count; chunk++)
		region->chunks[chunk] = zeroed ? MEMNODE_CHUNK_ZERO : MEMNODE_CHUNK_FREE;
	__atomic_store_n(&region->header->grown, size, __ATOMIC_RELEASE);
	region->size = size;
	region->chunk_count = count;
}

bool
memnode_region_boot(uint64_t boot[2])
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	uint8_t digits[32];
	unsigned int count = 0;
	int character;

	if (file == NULL)
		return false;
	while (count < sizeof(digits) && (character = fgetc(file)) != EOF)
	{
		if (character >= '0' && character <= '9')
			digits[count++] = (uint8_t) (character - '0');
		else if (character >= 'a' && character <= 'f')
			digits[count++] = (uint8_t) (character - 'a' + 10);
	}
	fclose(file);
	boot[0] = boot[1] = 0;
	for (unsigned int i = 0; i < count; i++)
		boot[i / 16] = (boot[i / 16] << 4) | digits[i];
	return count == sizeof(digits);
}

void
memnode_region_format(struct memnode_region *region, uint64_t incarnation, const uint64_t boot[2], bool zeroed)
{
	struct memnode_header *header = region->header;
	uint32_t free_word = zeroed ? MEMNODE_CHUNK_ZERO : MEMNODE_CHUNK_FREE;

	smart_assert(incarnation != 0 && region->first_chunk > 0 && region->first_chunk < region->chunk_count);
	__atomic_store_n(&header->magic, 0, __ATOMIC_SEQ_CST);
	memset((uint8_t *) header + sizeof(header->magic), 0, HEADER_BYTES - sizeof(header->magic));
	memset(region->owners, 0, MEMNODE_OWNERS * sizeof(*region->owners));
	memset(region->trees, 0, region->tree_count * sizeof(*region->trees));
	for (uint32_t chunk = 0; chunk < region->chunk_count; chunk++)
		region->chunks[chunk] = chunk < region->first_chunk ? (uint32_t) MEMNODE_CHUNK_PRIVATE : free_word;
	header->size = region->size;
	header->incarnation = incarnation;
	header->version = MEMNODE_VERSION;
	header->chunk_bytes = WIRE_CHUNK_BYTES;
	header->trees = region->tree_count;
	header->first_chunk = region->first_chunk;
	header->crc = header_crc(header);
	header->boot[0] = boot[0];
	header->boot[1] = boot[1];
	smart_assert(header->magic == 0 && memnode_region_size(header) == region->size);
}

void
memnode_region_publish(struct memnode_region *region)
{
	smart_assert(region->size == memnode_region_size(region->header));
	smart_assert(region->header->magic == 0 && region->header->crc == header_crc(region->header));
	/* Release: a process that finds the number, this one or a later one, finds what was stored before. */
	__atomic_store_n(&region->header->magic, MEMNODE_MAGIC, __ATOMIC_RELEASE);
}

enum memnode_region_kind
memnode_region_kind(const struct memnode_header *header, uint64_t size)
{
	if (header->magic == 0)
		return MEMNODE_REGION_NONE;
	if (header->magic != MEMNODE_MAGIC)
		return MEMNODE_REGION_FOREIGN;
	if (header->version != MEMNODE_VERSION || header->chunk_bytes != WIRE_CHUNK_BYTES)
		return MEMNODE_REGION_OTHER_VERSION;
	return memnode_region_size(header) <= size ? MEMNODE_REGION_SAME : MEMNODE_REGION_LARGER;
}

static bool
chunk_word_sound(const struct memnode_region *region, uint32_t chunk)
{
	uint32_t word = region->chunks[chunk];
	uint32_t owner = memnode_chunk_owner(word);

	smart_assert(chunk < region->chunk_count);
	if (chunk < region->first_chunk)
		return word == MEMNODE_CHUNK_PRIVATE;
	if (word == MEMNODE_CHUNK_ZERO || word == MEMNODE_CHUNK_FREE)
		return true;
	if (memnode_chunk_use(word) != MEMNODE_CHUNK_BLOCKS && memnode_chunk_use(word) != MEMNODE_CHUNK_ROOTS)
		return false;
	return owner < MEMNODE_OWNERS && region->owners[owner].state != MEMNODE_OWNER_NONE;
}

static bool
tree_sound(const struct memnode_region *region, const struct memnode_tree_record *tree)
{
	if (tree->used == 0)
		return true;
	return tree->used == 1 && tree->owner < MEMNODE_OWNERS && tree->root < region->size &&
		   tree->root % MEMNODE_ROOT_BYTES == 0 &&
		   region->chunks[tree->root / WIRE_CHUNK_BYTES] == memnode_chunk_word(MEMNODE_CHUNK_ROOTS, tree->owner);
}

const char *
memnode_region_fault(const struct memnode_region *region, const uint64_t boot[2])
{
	const struct memnode_header *header = region->header;

	smart_assert(header->crc == header_crc(header));
	if (header->clean != MEMNODE_CLEAN && (header->boot[0] != boot[0] || header->boot[1] != boot[1]))
		return "the machine stopped while it was in use";
	for (uint32_t owner = 0; owner < MEMNODE_OWNERS; owner++)
	{
		if (region->owners[owner].state > MEMNODE_OWNER_EMPTYING)
			return "its owners cannot be what they are";
	}
	for (uint32_t chunk = 0; chunk < region->chunk_count; chunk++)
	{
		if (!chunk_word_sound(region, chunk))
			return "its chunks cannot be what they are";
	}
	for (uint32_t tree = 0; tree < region->tree_count; tree++)
	{
		if (!tree_sound(region, &region->trees[tree]))
			return "its trees cannot be what they are";
	}
	return NULL;
}

void
memnode_region_claim(struct memnode_region *region, const uint64_t boot[2])
{
	struct memnode_header *header = region->header;

	smart_assert(header->magic == MEMNODE_MAGIC);
	/* Until clean falls it is clean whatever boot says; a mixture of two boots is none. */
	header->boot[0] = boot[0];
	header->boot[1] = boot[1];
	__atomic_store_n(&header->clean, 0, __ATOMIC_RELEASE);
}

void
memnode_region_release(struct memnode_region *region)
{
	smart_assert(region->header->magic == MEMNODE_MAGIC);
	__atomic_store_n(&region->header->clean, MEMNODE_CLEAN, __ATOMIC_RELEASE);
}
