/*
 * squeeze.c
 *	  Long normalized keys, made shorter without a change of their order.
 *
 * nbtree compresses a long value before it stores it, and compares values.  Entries are compared as they are stored, and
 * codes of the usual kinds have no order.  Arithmetic coding has one: a key is a number between 0 and 1, which its bits
 * narrow down one by one.  Each bit gets as much of the interval as the model thinks that it is likely, with the lower
 * part for 0.  Where two keys differ first, the model has seen the same bits of both, so both divide the same interval,
 * and the lesser key goes on in its lower part.
 *
 *	squeezed  = first bytes  code  END  length
 *
 * - The first SMART_SQUEEZE_PLAIN bytes are those of the key.  So short keys are not changed at all, and a long one that
 *   differs from another one there compares by that.
 * - The code is of the other bytes.  In it 00 becomes 00 FF; 00 00 is END.  The codes of two keys differ before either
 *   ends, as the last four bytes of each lie in an interval of its own.
 * - The length is that of the key, as four bytes.  Keys that are the same up to here are equal, so it decides nothing.
 *
 * The model predicts a bit by the one, two and three bytes before it, and by what followed the last time that the four
 * bytes before it were met.  The predictions are weighted by how well each has done (PAQ; Mahoney 2005).  It counts with
 * integers only, since stored keys have to come out the same on all machines: no constant here may ever be changed.
 */
#include <stdbool.h>
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/pieces.h"
#include "base/squeeze.h"

#define PLAIN         SMART_SQUEEZE_PLAIN
#define LENGTH_BYTES  4
#define FLUSH_BYTES   4
#define TABLE_BITS    15 /* of the place of a context's counter */
#define MATCH_BITS    12
#define MATCH_BYTES   4
#define MATCH_COUNTS  32
#define INPUTS        4
#define WEIGHT_ONE    65536
#define LEARNING_RATE 10
#define HALF          2048 /* of a probability of 12 bits */
#define PROBABILITIES 4096

/* How likely a bit is 1, and how often it was seen: twelve bits and four. */
typedef uint16_t counter;

struct smart_squeezer
{
	const uint8_t *key;
	uint32_t position; /* of the byte that comes next */
	uint32_t partial;  /* a 1, and the bits of it that are known */
	uint32_t context[INPUTS - 1];

	uint32_t match; /* where what may be the same goes on; 0: nowhere */
	uint32_t match_length;

	counter *chosen[INPUTS];
	int32_t input[INPUTS];
	int32_t weight[MATCH_COUNTS][INPUTS];
	int32_t *weights;
	uint32_t probability; /* that the next bit is 1, of 4096 */

	int16_t stretch[PROBABILITIES];
	counter matches[MATCH_COUNTS];
	uint32_t met[1 << MATCH_BITS];
	counter counters[INPUTS - 1][1 << TABLE_BITS];
};

/* An interval, and the bytes that say where it lies. */
struct coder
{
	uint32_t low;
	uint32_t high;
	uint8_t *out; /* NULL: there was no room */
	uint8_t *limit;
	const uint8_t *in; /* of a decoder */
	const uint8_t *in_end;
	uint32_t code;
};

/* ---- the model ---- */

/* 4096 / (1 + exp(-x / 256)), by its values at each 128 */
static int32_t
squash(int32_t x)
{
	static const int16_t values[] = {1,    2,    4,    6,    10,   17,   27,   45,   74,   120,  194,
									 311,  488,  747,  1102, 1546, 2048, 2550, 2994, 3349, 3608, 3785,
									 3902, 3976, 4022, 4051, 4069, 4079, 4086, 4090, 4092, 4094, 4095};
	int32_t place;
	int32_t rest;

	if (x > 2047)
		return 4095;
	if (x < -2047)
		return 1;
	place = (x + 2048) / 128;
	rest = (x + 2048) % 128;
	smart_assert(place >= 0 && place + 1 < (int32_t) (sizeof(values) / sizeof(values[0])));
	return (values[place] * (128 - rest) + values[place + 1] * rest + 64) / 128;
}

/* Its inverse, as a table */
static void
make_stretch(int16_t stretch[PROBABILITIES])
{
	uint32_t done = 0;

	for (int32_t x = -2047; x <= 2047; x++)
	{
		for (uint32_t reached = (uint32_t) squash(x); done <= reached; done++)
			stretch[done] = (int16_t) x;
	}
	smart_assert(done <= PROBABILITIES);
	while (done < PROBABILITIES)
		stretch[done++] = 2047;
}

/* Moves a counter towards the bit that has come: fast at first, then slowly */
static void
count(counter *one, bool bit)
{
	static const uint16_t rates[16] = {32768, 21845, 16384, 13107, 10922, 9362, 8192, 7281,
									   6553,  5957,  5461,  5041,  4681,  4369, 4096, 3855};
	int32_t probability = *one >> 4;
	uint32_t seen = *one & 15;

	probability += ((bit ? 4095 : 0) - probability) * (int32_t) rates[seen] / 65536;
	smart_assert(probability >= 0 && probability < PROBABILITIES);
	*one = (counter) ((uint32_t) probability << 4 | (seen < 15 ? seen + 1 : 15));
}

static uint32_t
match_place(const uint8_t *key, uint32_t position)
{
	smart_assert(position >= MATCH_BYTES);
	return smart_load_be32(key + position - MATCH_BYTES) * UINT32_C(2654435761) >> (32 - MATCH_BITS);
}

/* Finds where the last bytes were met before, behind the end of a byte. */
static void
find_match(struct smart_squeezer *model)
{
	uint32_t *met = &model->met[match_place(model->key, model->position)];

	if (model->match > 0 && model->key[model->match] == model->key[model->position - 1])
	{
		model->match++;
		model->match_length++;
	}
	else
		model->match_length = 0;
	if (model->match_length == 0)
	{
		model->match = *met;
		while (model->match > model->match_length && model->match_length < MATCH_COUNTS - 1 &&
			   model->key[model->match - model->match_length - 1] ==
				   model->key[model->position - model->match_length - 1])
			model->match_length++;
	}
	*met = model->position;
	smart_assert(model->match < model->position && model->match_length <= model->match);
}

/* The contexts of the byte that comes next */
static void
begin_byte(struct smart_squeezer *model)
{
	const uint8_t *before = model->key + model->position;
	uint32_t known = 0;

	for (int i = 0; i < INPUTS - 1; i++)
	{
		known = known << 8 | before[-1 - i];
		model->context[i] = (known + (uint32_t) (i + 1) * UINT32_C(0x9E3779B1)) * UINT32_C(0x85EBCA6B);
	}
	model->partial = 1;
}

/* The bit that the match says; -1: it says nothing */
static int
matched_bit(const struct smart_squeezer *model, int bit)
{
	uint32_t byte;

	smart_assert(bit >= 0 && bit < 8);
	if (model->match_length == 0)
		return -1;
	byte = model->key[model->match] | 0x100;
	return byte >> (8 - bit) == model->partial ? (int) (byte >> (7 - bit) & 1) : -1;
}

/* Predicts bit number bit of the byte, from its highest, 0, on */
static void
predict(struct smart_squeezer *model, int bit)
{
	int said = matched_bit(model, bit);
	uint32_t length = said < 0 ? 0 : model->match_length < MATCH_COUNTS ? model->match_length : MATCH_COUNTS - 1;
	int64_t sum = 0;

	for (int i = 0; i < INPUTS - 1; i++)
	{
		uint32_t place = (model->context[i] ^ model->partial * UINT32_C(0xC2B2AE35)) * UINT32_C(0x27D4EB2F);

		model->chosen[i] = &model->counters[i][place >> (32 - TABLE_BITS)];
		model->input[i] = model->stretch[*model->chosen[i] >> 4];
	}
	model->chosen[INPUTS - 1] = said < 0 ? NULL : &model->matches[length];
	model->input[INPUTS - 1] = said < 0 ? 0 : model->stretch[*model->chosen[INPUTS - 1] >> 4] * (said == 1 ? 1 : -1);
	model->weights = model->weight[length];
	for (int i = 0; i < INPUTS; i++)
		sum += (int64_t) model->input[i] * model->weights[i];
	sum /= WEIGHT_ONE;
	sum = sum > 2047 ? 2047 : sum < -2047 ? -2047 : sum;
	model->probability = (uint32_t) squash((int32_t) sum);
	smart_assert(model->probability > 0 && model->probability < 4096);
}

/* Learns from the bit that has come */
static void
learn(struct smart_squeezer *model, int bit, bool value)
{
	int said = matched_bit(model, bit);
	int32_t error = ((value ? 4095 : 0) - (int32_t) model->probability) * LEARNING_RATE;

	smart_assert(model->partial >> bit == 1);
	for (int i = 0; i < INPUTS; i++)
		model->weights[i] += model->input[i] * error / 16384;
	for (int i = 0; i < INPUTS - 1; i++)
		count(model->chosen[i], value);
	if (said >= 0)
		count(model->chosen[INPUTS - 1], said == (int) value);
	model->partial = model->partial << 1 | value;
}

/* Begins behind the first bytes, in which matches may lie. */
static void
begin_model(struct smart_squeezer *model, const uint8_t *key)
{
	memset(model, 0, sizeof(*model));
	model->key = key;
	make_stretch(model->stretch);
	for (int i = 0; i < INPUTS - 1; i++)
	{
		for (int j = 0; j < 1 << TABLE_BITS; j++)
			model->counters[i][j] = HALF << 4;
	}
	for (int i = 0; i < MATCH_COUNTS; i++)
	{
		model->matches[i] = HALF << 4;
		for (int j = 0; j < INPUTS; j++)
			model->weight[i][j] = WEIGHT_ONE / 3;
	}
	for (model->position = MATCH_BYTES; model->position < PLAIN; model->position++)
		model->met[match_place(key, model->position)] = model->position;
	find_match(model);
	begin_byte(model);
}

/* The byte at position is known; the key has that many. */
static void
end_byte(struct smart_squeezer *model)
{
	smart_assert(model->partial >> 8 == 1);
	model->position++;
	find_match(model);
	begin_byte(model);
}

/* ---- the interval ---- */

static void
put_code(struct coder *coder, uint8_t byte)
{
	coder->out = smart_put_byte(coder->out, coder->limit, byte);
	if (byte == 0)
		coder->out = smart_put_byte(coder->out, coder->limit, 0xFF);
}

static uint8_t
get_code(struct coder *coder)
{
	uint8_t byte;

	smart_assert(coder->in < coder->in_end);
	byte = *coder->in++;
	if (byte == 0)
		coder->in++;
	return byte;
}

/* Where the part of 1 begins, less one: neither part is empty */
static uint32_t
divide(const struct coder *coder, uint32_t probability)
{
	uint32_t middle = coder->low + (uint32_t) ((uint64_t) (coder->high - coder->low) * (4096 - probability) / 4096);

	smart_assert(middle >= coder->low && middle < coder->high);
	return middle;
}

static void
narrow(struct coder *coder, uint32_t middle, bool value)
{
	if (value)
		coder->low = middle + 1;
	else
		coder->high = middle;
	smart_assert(coder->low <= coder->high);
}

/* ---- keys ---- */

size_t
smart_squeezer_bytes(void)
{
	return sizeof(struct smart_squeezer);
}

uint8_t *
smart_squeeze(struct smart_squeezer *model, const uint8_t *key, size_t length, uint8_t *out, uint8_t *limit)
{
	struct coder coder = {.high = UINT32_MAX, .limit = limit};

	smart_assert(length > PLAIN && length <= SMART_SQUEEZE_MAX);
	coder.out = smart_put_bytes(out, limit, key, PLAIN);
	if (coder.out == NULL)
		return NULL;
	begin_model(model, key);
	while (model->position < length && coder.out != NULL)
	{
		for (int bit = 0; bit < 8; bit++)
		{
			bool value = key[model->position] >> (7 - bit) & 1;

			predict(model, bit);
			narrow(&coder, divide(&coder, model->probability), value);
			learn(model, bit, value);
			for (; (coder.low ^ coder.high) >> 24 == 0; coder.low <<= 8, coder.high = coder.high << 8 | 0xFF)
				put_code(&coder, (uint8_t) (coder.low >> 24));
		}
		end_byte(model);
	}
	for (int i = 0; i < FLUSH_BYTES; i++, coder.low <<= 8)
		put_code(&coder, (uint8_t) (coder.low >> 24));
	coder.out = smart_put_bytes(coder.out, limit, SMART_ESCAPED_END, 2);
	return smart_put_word32(coder.out, limit, (uint32_t) length);
}

const uint8_t *
smart_squeezed_end(const uint8_t *bytes, const uint8_t *limit, uint8_t flip)
{
	const uint8_t *end = smart_skip(bytes, limit, PLAIN);

	if (end != NULL)
		end = smart_find_escaped_end(end, limit, flip);
	return smart_skip(end, limit, LENGTH_BYTES);
}

size_t
smart_unsqueezed_length(const uint8_t *bytes, size_t length)
{
	smart_assert(length > PLAIN + LENGTH_BYTES);
	return smart_load_be32(bytes + length - LENGTH_BYTES);
}

void
smart_unsqueeze(struct smart_squeezer *model, const uint8_t *bytes, size_t length, uint8_t *key)
{
	size_t key_length = smart_unsqueezed_length(bytes, length);
	struct coder coder = {.high = UINT32_MAX, .in = bytes + PLAIN, .in_end = bytes + length - LENGTH_BYTES - 2};

	smart_assert(key_length > PLAIN && key_length <= SMART_SQUEEZE_MAX);
	memcpy(key, bytes, PLAIN);
	begin_model(model, key);
	for (int i = 0; i < FLUSH_BYTES; i++)
		coder.code = coder.code << 8 | get_code(&coder);
	while (model->position < key_length)
	{
		for (int bit = 0; bit < 8; bit++)
		{
			uint32_t middle;
			bool value;

			predict(model, bit);
			middle = divide(&coder, model->probability);
			value = coder.code > middle;
			narrow(&coder, middle, value);
			learn(model, bit, value);
			for (; (coder.low ^ coder.high) >> 24 == 0; coder.low <<= 8, coder.high = coder.high << 8 | 0xFF)
				coder.code = coder.code << 8 | get_code(&coder);
		}
		key[model->position] = (uint8_t) model->partial;
		end_byte(model);
	}
}
