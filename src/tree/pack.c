/*
 * pack.c
 *	  Entries one after another, as a journal's pages hold them.
 */
#include <stddef.h>
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/scatter.h"
#include "tree/pack.h"

#define MANY 15 /* of what a head says of a number: it follows, less so much */
#define TAIL ((int) sizeof(uint64_t))

#define SHORT 64 /* bytes of an entry that are quickly copied */

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
get_number(const uint8_t **from, const uint8_t *end, int *number)
{
	const uint8_t *at = *from;

	if (at >= end)
		return false;
	*number = *at & 127;
	if (*at++ >= 128)
	{
		if (at >= end || *at >= 128)
			return false;
		*number |= *at++ << 7;
	}
	*from = at;
	return true;
}

/* How many bytes at the end of an entry are compared with those at the end of the one before, which is so long. */
static int
tail_length(int before, int shared, int rest)
{
	if (rest < 2 || before < TAIL || shared + rest < TAIL)
		return 0;
	return rest < TAIL ? rest : TAIL;
}

/* All bits of the last bytes of a word, of which there is at least one. */
static uint64_t
last_bytes(int count)
{
	smart_assert(count > 0 && count <= TAIL);
	return ~UINT64_C(0) << (8 * (TAIL - count));
}

static uint64_t
get_word(const uint8_t *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return word;
}

/* The mask of a word: bit i says whether the byte that lies i bytes behind its address is not 0. */
static uint32_t
mask_of(uint64_t word)
{
	uint64_t flags = (((word & UINT64_C(0x7f7f7f7f7f7f7f7f)) + UINT64_C(0x7f7f7f7f7f7f7f7f)) | word) >> 7;

	/* Each flag comes to its place among the highest eight bits; no two partial products meet, so nothing is carried. */
	return (uint32_t) (((flags & UINT64_C(0x0101010101010101)) * UINT64_C(0x0102040810204080)) >> 56);
}

void
smart_packer_begin(struct smart_packer *packer, uint8_t *at, uint8_t *end)
{
	packer->at = at;
	packer->end = end;
	packer->length = 0;
	smart_assert(at <= end);
}

/* The head and the numbers of an entry; no more than 5 bytes. */
static uint8_t *
put_head(uint8_t *at, uint32_t shared, uint32_t rest)
{
	*at++ = (uint8_t) ((shared < MANY ? shared : MANY) << 4 | (rest < MANY ? rest : MANY));
	if (shared >= MANY)
		at = put_number(at, shared - MANY);
	if (rest >= MANY)
		at = put_number(at, rest - MANY);
	return at;
}

bool
smart_packer_add(struct smart_packer *packer, const uint8_t *entry, int length)
{
	int shared = (int) smart_common_prefix(packer->before, (size_t) packer->length, entry, (size_t) length);
	int rest = length - shared;
	int tail = tail_length(packer->length, shared, rest);
	uint8_t head[16];
	uint8_t *head_end = put_head(head, (uint32_t) shared, (uint32_t) rest);
	uint32_t mask = 0;
	int64_t room;
	int from;

	smart_assert(length > 0 && length <= SMART_ENTRY_MAX);
	if (tail > 0)
	{
		mask = mask_of((get_word(packer->before + packer->length - TAIL) ^ get_word(entry + length - TAIL)) &
					   last_bytes(tail));
		*head_end++ = (uint8_t) mask;
	}
	room = packer->end - packer->at - (head_end - head) - (rest - tail);
	if (room < TAIL && room < __builtin_popcount(mask))
		return false;
	smart_copy_short(packer->at, head, (size_t) (head_end - head));
	packer->at += head_end - head;
	smart_copy_short(packer->at, entry + shared, (size_t) (rest - tail));
	packer->at += rest - tail;
	for (; mask != 0; mask &= mask - 1)
		*packer->at++ = entry[length - TAIL + __builtin_ctz(mask)];
	/* What is read back by words is better not written by bytes, so short ones are copied as a whole. */
	from = length <= SHORT ? 0 : shared;
	smart_copy_short(packer->before + from, entry + from, (size_t) (length - from));
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
	unpacker->shared = 0;
	smart_assert(at <= end);
}

/* What a packed entry says of itself, in front of its bytes. */
struct shape
{
	int shared;
	int rest;
	int tail; /* of the rest: bytes that the mask is about */
	uint32_t mask;
};

/* The head and the numbers of an entry that follows one of so many bytes; false: there is no such entry. */
static inline bool
get_head(const uint8_t **at, const uint8_t *end, int before, struct shape *shape)
{
	int more;

	smart_assert(*at < end);
	shape->shared = **at >> 4;
	shape->rest = *(*at)++ & MANY;
	if (shape->shared == MANY)
	{
		if (!get_number(at, end, &more))
			return false;
		shape->shared += more;
	}
	if (shape->rest == MANY)
	{
		if (!get_number(at, end, &more))
			return false;
		shape->rest += more;
	}
	return shape->shared <= before && shape->shared + shape->rest > 0 && shape->shared + shape->rest <= SMART_ENTRY_MAX;
}

/* All in front of its bytes; false: there is no such entry, or its bytes are not all there. */
static inline bool
get_shape(const uint8_t **at, const uint8_t *end, int before, struct shape *shape)
{
	int64_t left;

	if (*at == end || !get_head(at, end, before, shape))
		return false;
	shape->tail = tail_length(before, shape->shared, shape->rest);
	shape->mask = 0;
	if (shape->tail > 0)
	{
		if (*at == end)
			return false;
		shape->mask = *(*at)++;
		if ((shape->mask & ((1u << (TAIL - shape->tail)) - 1)) != 0)
			return false;
	}
	left = end - *at - (shape->rest - shape->tail);
	return left >= TAIL || left >= __builtin_popcount(shape->mask);
}

/* Any entry; false: there is none.  Out of line, so that what is called for each entry saves few registers. */
static __attribute__((noinline)) bool
take_any(struct smart_unpacker *unpacker)
{
	const uint8_t *at = unpacker->at;
	uint8_t *entry = unpacker->entry;
	struct shape shape;
	int plain;

	if (!get_shape(&at, unpacker->end, unpacker->length, &shape))
		return false;
	plain = shape.rest - shape.tail;
	if (shape.tail > 0)
	{
		uint64_t word = get_word(entry + unpacker->length - TAIL) & last_bytes(shape.tail);
		uint8_t *end = entry + shape.shared + shape.rest - TAIL;

		smart_copy_short(entry + shape.shared, at, (size_t) plain);
		at += plain;
		if (shape.tail < TAIL)
			word |= get_word(end) & ~last_bytes(shape.tail);
		/* In a register: the next entry reads it as a word. */
		word =
			unpacker->end - at >= TAIL ? smart_scatter(word, at, shape.mask) : smart_scatter_each(word, at, shape.mask);
		at += smart_scatter_count(shape.mask);
		memcpy(end, &word, sizeof(word));
	}
	else
	{
		smart_copy_short(entry + shape.shared, at, (size_t) plain);
		at += plain;
	}
	unpacker->at = at;
	smart_assert(at <= unpacker->end && shape.shared + shape.rest <= SMART_ENTRY_MAX);
	unpacker->length = shape.shared + shape.rest;
	unpacker->shared = shape.shared;
	return true;
}

/*
 * Takes an entry as long as the one before, whose numbers are in its head, far from the end: most entries with fixed lengths
 * are like that.  False: it is another one, or none, and nothing was taken.
 */
static inline bool
take_alike(struct smart_unpacker *unpacker)
{
	const uint8_t *at = unpacker->at;
	int length = unpacker->length;
	int shared;
	int rest;
	uint32_t mask;
	uint8_t *tail;
	uint64_t word;

	if (unpacker->end - at < 2 + MANY + TAIL || length < TAIL)
		return false;
	shared = at[0] >> 4;
	rest = at[0] & MANY;
	mask = at[1];
	if (shared + rest != length || shared == MANY || rest == MANY || rest < 2)
		return false;
	at += 2;
	tail = unpacker->entry + length - TAIL;
	word = get_word(tail);
	if (rest > TAIL)
	{
		/* A whole word: what it writes too much is written again below. */
		memcpy(unpacker->entry + shared, at, sizeof(uint64_t));
		at += rest - TAIL;
	}
	else if ((mask & ((1u << (TAIL - rest)) - 1)) != 0)
		return false;
	word = smart_scatter(word, at, mask);
	memcpy(tail, &word, sizeof(word));
	unpacker->at = at + smart_scatter_count(mask);
	smart_assert(unpacker->at <= unpacker->end);
	unpacker->shared = shared;
	return true;
}

bool
smart_unpacker_next(struct smart_unpacker *unpacker)
{
	return take_alike(unpacker) || take_any(unpacker);
}

uint32_t
smart_unpacker_count(const struct smart_unpacker *unpacker)
{
	const uint8_t *at = unpacker->at;
	int length = unpacker->length;
	struct shape shape;
	uint32_t count;

	for (count = 0; get_shape(&at, unpacker->end, length, &shape); count++)
	{
		at += shape.rest - shape.tail + __builtin_popcount(shape.mask);
		length = shape.shared + shape.rest;
	}
	return count;
}

/* ---- batches ---- */

/* The serial and the place are in it, so that a batch is not taken for one of another page or another life of this one. */
static uint32_t
batch_crc(const uint8_t *batch, const struct smart_batch_head *head, uint64_t serial, uint32_t place)
{
	uint32_t crc = smart_crc32c(UINT32_MAX, &serial, sizeof(serial));

	smart_assert(head->length > sizeof(*head));
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
	smart_assert(*next <= end);
	return true;
}
