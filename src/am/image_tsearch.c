/*
 * image_tsearch.c - images of tsvector and tsquery
 *
 * Both compare by their sizes first, and by what they say only then.  A tsvector:
 *
 *	size, number of lexemes			four bytes each
 *	00 or 01						each lexeme: with or without positions
 *	its bytes 00
 *	number of positions, positions	if it has any; more and greater ones come first
 *
 * A tsquery compares as a tree, an operator before its operands, the first of which is the right one:
 *
 *	number of nodes, size			four bytes each
 *	kind of node					an operator comes first
 *	which one, operands, distance	an operator; the distance if it has one
 *	CRC, bytes 00					an operand
 *
 * Numbers whose order is the other way round are complemented.  Neither an operand's weights nor that it stands for all
 * words that begin with it is compared: queries that differ in nothing else are equal, and have the same image.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "tsearch/ts_type.h"

#include "am/image.h"

#define MARK_POSITIONS    0x00
#define MARK_NO_POSITIONS 0x01

#define INT32_SIGN UINT32_C(0x80000000)

SMART_IMAGE_FUNCTION(smart_image_tsvector);
SMART_IMAGE_FUNCTION(smart_image_tsquery);

static uint8 *
put_16(uint8 *out, uint8 *limit, uint16 word)
{
	uint8 bytes[2];

	smart_put_be16(bytes, word);
	return smart_put_bytes(out, limit, bytes, sizeof(bytes));
}

static uint8 *
put_32(uint8 *out, uint8 *limit, uint32 word)
{
	uint8 bytes[4];

	smart_put_be32(bytes, word);
	return smart_put_bytes(out, limit, bytes, sizeof(bytes));
}

/* Writes bytes, none of which is 00, and a 00 */
static uint8 *
put_word(uint8 *out, uint8 *limit, const char *bytes, Size length)
{
	out = smart_put_bytes(out, limit, bytes, length);
	return out == NULL ? NULL : smart_put_byte(out, limit, 0);
}

static const uint8 *
word_end(const uint8 *p, const uint8 *limit, uint8 flip)
{
	const uint8 *last = memchr(p, flip, limit - p);

	return last == NULL ? NULL : last + 1;
}

/* Reads four bytes: their end, or NULL */
static const uint8 *
get_32(const uint8 *p, const uint8 *limit, uint8 flip, uint32 *word)
{
	if (limit - p < 4)
		return NULL;
	*word = smart_get_be32(p) ^ (flip == 0 ? 0 : PG_UINT32_MAX);
	return p + 4;
}

/* ---- tsvector ---- */

static uint8 *
put_positions(TSVector vector, WordEntry *lexeme, uint8 *out, uint8 *limit)
{
	WordEntryPos *positions = POSDATAPTR(vector, lexeme);
	int count = POSDATALEN(vector, lexeme);

	out = put_16(out, limit, (uint16) ~count);
	for (int i = 0; i < count && out != NULL; i++)
		out = put_16(out, limit, (uint16) ~(WEP_GETPOS(positions[i]) << 2 | WEP_GETWEIGHT(positions[i])));
	return out;
}

static uint8 *
tsvector_encode(const struct smart_image *image, Datum value, uint8 *out, uint8 *limit)
{
	TSVector vector = DatumGetTSVector(value);
	WordEntry *lexemes = ARRPTR(vector);

	out = put_32(out, limit, VARSIZE(vector));
	if (out != NULL)
		out = put_32(out, limit, (uint32) vector->size);
	for (int i = 0; i < vector->size && out != NULL; i++)
	{
		out = smart_put_byte(out, limit, lexemes[i].haspos ? MARK_POSITIONS : MARK_NO_POSITIONS);
		if (out != NULL)
			out = put_word(out, limit, STRPTR(vector) + lexemes[i].pos, lexemes[i].len);
		if (out != NULL && lexemes[i].haspos)
			out = put_positions(vector, &lexemes[i], out, limit);
	}
	if (PointerGetDatum(vector) != value)
		pfree(vector);
	return out;
}

/* The end of a lexeme, or NULL */
static const uint8 *
lexeme_end(const uint8 *p, const uint8 *limit, uint8 flip)
{
	uint8 mark;
	Size size;

	if (p >= limit)
		return NULL;
	mark = *p++ ^ flip;
	p = word_end(p, limit, flip);
	if (p == NULL || mark == MARK_NO_POSITIONS)
		return p;
	if (limit - p < 2)
		return NULL;
	size = sizeof(uint16) + sizeof(uint16) * (uint16) (smart_get_be16(p) ^ (flip == 0 ? PG_UINT16_MAX : 0));
	return size <= (Size) (limit - p) ? p + size : NULL;
}

static const uint8 *
tsvector_end(const struct smart_image *image, const uint8 *bytes, const uint8 *limit, uint8 flip)
{
	const uint8 *p = limit - bytes < 4 ? NULL : bytes + 4;
	uint32 count = 0;

	if (p != NULL)
		p = get_32(p, limit, flip, &count);
	for (uint32 i = 0; i < count && p != NULL; i++)
		p = lexeme_end(p, limit, flip);
	return p;
}

/* ---- tsquery ---- */

static uint8 *
put_operand(TSQuery query, const QueryOperand *operand, uint8 *out, uint8 *limit)
{
	out = smart_put_byte(out, limit, (uint8) ~operand->type);
	if (out != NULL)
		out = put_32(out, limit, ~((uint32) operand->valcrc ^ INT32_SIGN));
	return out == NULL ? NULL : put_word(out, limit, GETOPERAND(query) + operand->distance, operand->length);
}

/* Writes a node and what is below it */
static uint8 *
put_node(TSQuery query, const QueryItem *item, uint8 *out, uint8 *limit)
{
	const QueryOperator *node = &item->qoperator;

	check_stack_depth();
	if (item->type == QI_VAL)
		return put_operand(query, &item->qoperand, out, limit);
	out = smart_put_byte(out, limit, (uint8) ~node->type);
	if (out != NULL)
		out = smart_put_byte(out, limit, (uint8) ~node->oper);
	if (out != NULL)
		out = put_node(query, item + 1, out, limit);
	if (out != NULL && node->oper != OP_NOT)
		out = put_node(query, item + node->left, out, limit);
	if (out != NULL && node->oper == OP_PHRASE)
		out = put_16(out, limit, (uint16) ~node->distance);
	return out;
}

static uint8 *
tsquery_encode(const struct smart_image *image, Datum value, uint8 *out, uint8 *limit)
{
	TSQuery query = DatumGetTSQuery(value);

	out = put_32(out, limit, (uint32) query->size);
	if (out != NULL)
		out = put_32(out, limit, VARSIZE(query));
	if (out != NULL && query->size > 0)
		out = put_node(query, GETQUERY(query), out, limit);
	if (PointerGetDatum(query) != value)
		pfree(query);
	return out;
}

/* The end of a node and what is below it, or NULL.  Each level has two bytes of its own, so a key holds 2048 at most. */
static const uint8 *
node_end(const uint8 *p, const uint8 *limit, uint8 flip)
{
	uint8 which;

	if (p == NULL || limit - p < 2)
		return NULL;
	flip = ~flip;
	if ((*p++ ^ flip) == QI_VAL)
		return limit - p < 4 ? NULL : word_end(p + 4, limit, ~flip);
	which = *p++ ^ flip;
	p = node_end(p, limit, ~flip);
	if (which != OP_NOT)
		p = node_end(p, limit, ~flip);
	if (p == NULL || which != OP_PHRASE)
		return p;
	return limit - p < 2 ? NULL : p + 2;
}

static const uint8 *
tsquery_end(const struct smart_image *image, const uint8 *bytes, const uint8 *limit, uint8 flip)
{
	uint32 count = 0;
	const uint8 *p = get_32(bytes, limit, flip, &count);

	if (p == NULL || limit - p < 4)
		return NULL;
	return count == 0 ? p + 4 : node_end(p + 4, limit, flip);
}

Datum
smart_image_tsvector(PG_FUNCTION_ARGS)
{
	static const struct smart_image form = {.forgets = true, .encode = tsvector_encode, .end = tsvector_end};

	return smart_image_set(fcinfo, &form);
}

Datum
smart_image_tsquery(PG_FUNCTION_ARGS)
{
	static const struct smart_image form = {.forgets = true, .encode = tsquery_encode, .end = tsquery_end};

	return smart_image_set(fcinfo, &form);
}
