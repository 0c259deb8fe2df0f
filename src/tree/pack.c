/*
 * pack.c
 *	  Entries one after another, as a journal's pages hold them.
 */
#include <stddef.h>
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "tree/pack.h"

/* ---- entries ---- */

static uint8_t *
put_number(uint8_t *at, uint32_t number)
{
	while (number >= 128)
	{
		*at++ = (uint8_t) (number | 128);
		number >>= 7;
	}
	*at++ = (uint8_t) number;
	return at;
}

/* A number below 2^14, at most two bytes; false: there is none. */
static bool
get_number(struct smart_unpacker *unpacker, int *number)
{
	const uint8_t *at = unpacker->at;

	if (at >= unpacker->end)
		return false;
	*number = *at & 127;
	if (*at++ >= 128)
	{
		if (at >= unpacker->end || *at >= 128)
			return false;
		*number |= *at++ << 7;
	}
	unpacker->at = at;
	return true;
}

void
smart_packer_begin(struct smart_packer *packer, uint8_t *at, uint8_t *end)
{
	packer->at = at;
	packer->end = end;
	packer->length = 0;
	smart_assert(at <= end);
}

bool
smart_packer_add(struct smart_packer *packer, const uint8_t *entry, int length)
{
	uint32_t shared = (uint32_t) smart_common_prefix(packer->before, (size_t) packer->length, entry, (size_t) length);
	uint32_t rest = (uint32_t) length - shared;

	smart_assert(length > 0 && length <= SMART_ENTRY_MAX);
	if (packer->end - packer->at < (shared < 128 ? 1 : 2) + (rest < 128 ? 1 : 2) + (int64_t) rest)
		return false;
	packer->at = put_number(packer->at, shared);
	packer->at = put_number(packer->at, rest);
	smart_copy_short(packer->at, entry + shared, rest);
	packer->at += rest;
	smart_copy_short(packer->before + shared, entry + shared, rest);
	packer->length = length;
	smart_assert(packer->at <= packer->end);
	return true;
}

void
smart_unpacker_begin(struct smart_unpacker *unpacker, const uint8_t *at, const uint8_t *end)
{
	unpacker->at = at;
	unpacker->end = end;
	unpacker->length = 0;
	smart_assert(at <= end);
}

bool
smart_unpacker_next(struct smart_unpacker *unpacker)
{
	const uint8_t *begin = unpacker->at;
	int shared;
	int rest;

	if (begin == unpacker->end)
		return false;
	if (!get_number(unpacker, &shared) || !get_number(unpacker, &rest) || shared > unpacker->length ||
		shared + rest == 0 || shared + rest > SMART_ENTRY_MAX || rest > unpacker->end - unpacker->at)
	{
		unpacker->at = begin;
		return false;
	}
	smart_copy_short(unpacker->entry + shared, unpacker->at, (size_t) rest);
	unpacker->at += rest;
	unpacker->length = shared + rest;
	return true;
}

uint32_t
smart_content_crc(const uint8_t *bytes, size_t length)
{
	return ~smart_crc32c(UINT32_MAX, bytes, length);
}

/* ---- batches ---- */

/* The serial and the place are in it, so that a batch is not taken for one of another page or another life of this one. */
static uint32_t
batch_crc(const uint8_t *batch, const struct smart_batch_head *head, uint64_t serial, uint32_t place)
{
	uint32_t crc = smart_crc32c(UINT32_MAX, &serial, sizeof(serial));

	crc = smart_crc32c(crc, &place, sizeof(place));
	crc = smart_crc32c(crc, head, offsetof(struct smart_batch_head, crc));
	return ~smart_crc32c(crc, batch + sizeof(*head), head->length - sizeof(*head));
}

void
smart_batch_finish(uint8_t *batch, int length, enum smart_operation operation, uint64_t serial, uint32_t place)
{
	struct smart_batch_head head = {.length = (uint16_t) length, .operation = (uint8_t) operation};

	smart_assert(length > (int) sizeof(head) && length <= UINT16_MAX);
	smart_assert(operation == SMART_OPERATION_ADD || operation == SMART_OPERATION_REMOVE);
	head.crc = batch_crc(batch, &head, serial, place);
	memcpy(batch, &head, sizeof(head));
}

bool
smart_batch_begin(const uint8_t *page, uint32_t place, uint32_t end, uint64_t serial, struct smart_unpacker *unpacker,
				  enum smart_operation *operation, uint32_t *next)
{
	struct smart_batch_head head;

	if (place > end || end - place <= sizeof(head))
		return false;
	memcpy(&head, page + place, sizeof(head));
	if (head.length <= sizeof(head) || head.length > end - place ||
		(head.operation != SMART_OPERATION_ADD && head.operation != SMART_OPERATION_REMOVE) ||
		head.crc != batch_crc(page + place, &head, serial, place))
		return false;
	smart_unpacker_begin(unpacker, page + place + sizeof(head), page + place + head.length);
	*operation = (enum smart_operation) head.operation;
	*next = place + head.length;
	return true;
}
