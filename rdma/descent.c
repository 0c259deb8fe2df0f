/*
 * descent.c
 *	  Descents by memory nodes: counting them, and their messages.
 */
#include <string.h>

#include "base/assert.h"
#include "rdma/descent.h"
#include "rdma/wire.h"

#define HEAD_BYTES (FABRIC_DESCENT_BYTES_MAX - FABRIC_DESCENT_KEY_MAX)

smart_status
fabric_descend(struct fabric *fabric, unsigned int node, const struct fabric_descent *descent, struct fabric_path *path)
{
	struct fabric_counters *counters = &fabric->counters;
	smart_status status;

	smart_assert(node < FABRIC_NODES_MAX && descent->key_length <= FABRIC_DESCENT_KEY_MAX);
	path->count = 0;
	if (fabric->provider->descend == NULL)
		return SMART_UNREACHABLE;
	counters->doorbells++;
	counters->round_trips++;
	counters->descents++;
	fabric_land(fabric);
	status = fabric->provider->descend(fabric, node, descent, path);
	if (status != SMART_OK)
		path->count = 0;
	else if (path->end == FABRIC_PATH_BUSY)
		counters->descents_busy++;
	else if (path->end == FABRIC_PATH_STOPPED)
		counters->descents_stopped++;
	smart_assert(path->count <= FABRIC_PATH_BLOCKS_MAX);
	return status;
}

/* ---- requests ---- */

uint32_t
fabric_descent_put(uint8_t *bytes, const struct fabric_descent *descent)
{
	uint32_t lengths = descent->arrived | ((uint32_t) descent->key_length << 16);

	smart_assert(descent->key_length >= 1 && descent->key_length <= FABRIC_DESCENT_KEY_MAX);
	bytes += wire_put_u64(bytes, descent->link);
	bytes += wire_put_u64(bytes, descent->root);
	bytes += wire_put_u32(bytes, lengths);
	bytes += wire_put_u32(bytes, descent->pad);
	bytes += wire_put_u64(bytes, 0);
	memcpy(bytes, descent->key, descent->key_length);
	return HEAD_BYTES + descent->key_length;
}

bool
fabric_descent_get(const uint8_t *bytes, uint32_t length, struct fabric_descent *descent)
{
	uint32_t lengths;
	uint32_t pad;
	uint64_t unused;

	if (length <= HEAD_BYTES || length > FABRIC_DESCENT_BYTES_MAX)
		return false;
	(void) wire_get_u64(bytes, 8, &descent->link);
	(void) wire_get_u64(bytes + 8, 8, &descent->root);
	(void) wire_get_u32(bytes + 16, 4, &lengths);
	(void) wire_get_u32(bytes + 20, 4, &pad);
	(void) wire_get_u64(bytes + 24, 8, &unused);
	descent->arrived = (uint16_t) lengths;
	descent->key_length = (uint16_t) (lengths >> 16);
	descent->pad = (uint8_t) pad;
	descent->key = bytes + HEAD_BYTES;
	return descent->key_length == length - HEAD_BYTES && pad <= UINT8_MAX && unused == 0 &&
		   descent->root % sizeof(uint64_t) == 0;
}

/* ---- answers ---- */

uint32_t
fabric_path_begin(uint8_t *answer)
{
	memset(answer, 0, FABRIC_PATH_HEAD_BYTES);
	return FABRIC_PATH_HEAD_BYTES;
}

uint8_t *
fabric_path_add(uint8_t *answer, uint32_t *bytes, uint64_t link, uint32_t length)
{
	uint8_t *block = answer + *bytes;
	uint32_t count;

	smart_assert(*bytes >= FABRIC_PATH_HEAD_BYTES && *bytes <= FABRIC_PATH_BYTES_MAX);
	smart_assert(length >= sizeof(uint64_t) && length % sizeof(uint64_t) == 0);
	(void) wire_get_u32(answer + 4, 4, &count);
	if (count == FABRIC_PATH_BLOCKS_MAX || length > FABRIC_PATH_BYTES_MAX ||
		*bytes + FABRIC_BLOCK_HEAD_BYTES + length > FABRIC_PATH_BYTES_MAX)
		return NULL;
	wire_put_u32(answer + 4, count + 1);
	wire_put_u64(block, link);
	wire_put_u64(block + 8, length);
	*bytes += FABRIC_BLOCK_HEAD_BYTES + length;
	smart_assert(*bytes <= FABRIC_PATH_BYTES_MAX);
	return block + FABRIC_BLOCK_HEAD_BYTES;
}

void
fabric_path_end(uint8_t *answer, enum fabric_path_end end, bool exact)
{
	smart_assert(end > 0 && end < FABRIC_PATH_ENDS && answer[0] == 0 && answer[1] == 0);
	answer[0] = (uint8_t) end;
	answer[1] = exact;
}

/* The block at *bytes, which moves behind it. */
static bool
get_block(const uint8_t *answer, uint32_t length, uint32_t *bytes, struct fabric_path_block *block)
{
	uint32_t left = length - *bytes;
	uint64_t own;

	smart_assert(*bytes <= length);
	if (left < FABRIC_BLOCK_HEAD_BYTES)
		return false;
	(void) wire_get_u64(answer + *bytes, 8, &block->link);
	(void) wire_get_u64(answer + *bytes + 8, 8, &own);
	if (own < sizeof(uint64_t) || own % sizeof(uint64_t) != 0 || own > left - FABRIC_BLOCK_HEAD_BYTES)
		return false;
	block->bytes = answer + *bytes + FABRIC_BLOCK_HEAD_BYTES;
	block->length = (uint32_t) own;
	*bytes += FABRIC_BLOCK_HEAD_BYTES + block->length;
	smart_assert(*bytes <= length);
	return true;
}

bool
fabric_path_get(const uint8_t *answer, uint32_t length, struct fabric_path *path)
{
	const uint8_t *copy = (const uint8_t *) path->answer;
	uint32_t bytes = FABRIC_PATH_HEAD_BYTES;
	uint32_t end;
	uint32_t count;
	bool exact;

	path->count = 0;
	if (length < FABRIC_PATH_HEAD_BYTES || length > FABRIC_PATH_BYTES_MAX)
		return false;
	memcpy(path->answer, answer, length);
	(void) wire_get_u32(copy, 4, &end);
	(void) wire_get_u32(copy + 4, 4, &count);
	exact = (end >> 8) == 1;
	end -= exact ? 1u << 8 : 0;
	if (end == 0 || end >= FABRIC_PATH_ENDS || count > FABRIC_PATH_BLOCKS_MAX || (end == FABRIC_PATH_BUSY && count > 0))
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (!get_block(copy, length, &bytes, &path->block[i]))
			return false;
	if (bytes != length)
		return false;
	path->end = (enum fabric_path_end) end;
	path->exact = exact;
	path->count = count;
	return true;
}
