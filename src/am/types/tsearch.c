/*
 * tsearch.c
 *	  Normalized keys of tsvector and tsquery.
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
 * words that begin with it is compared: queries that differ in nothing else are equal, and have the same key.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "tsearch/ts_type.h"

#include "am/codec/normalizer.h"
#include "base/assert.h"

#define MARK_POSITIONS    0x00
#define MARK_NO_POSITIONS 0x01

/* ---- tsvector ---- */

static uint8 *
tsvector_encode(const struct smart_normalizer *normalizer, Datum value, uint8 *out, uint8 *limit)
{
	TSVector vector = DatumGetTSVector(value);

	out = smart_put_word32(out, limit, VARSIZE(vector));
	out = smart_put_word32(out, limit, (uint32) vector->size);
	for (int i = 0; i < vector->size && out != NULL; i++)
	{
		WordEntry *lexeme = &ARRPTR(vector)[i];
		WordEntryPos *positions = POSDATAPTR(vector, lexeme);
		int count = lexeme->haspos ? POSDATALEN(vector, lexeme) : 0;

		out = smart_put_byte(out, limit, lexeme->haspos ? MARK_POSITIONS : MARK_NO_POSITIONS);
		out = smart_put_string(out, limit, STRPTR(vector) + lexeme->pos, lexeme->len);
		if (lexeme->haspos)
			out = smart_put_word16(out, limit, (uint16) ~count);
		for (int k = 0; k < count; k++)
			out = smart_put_word16(out, limit, (uint16) ~(WEP_GETPOS(positions[k]) << 2 | WEP_GETWEIGHT(positions[k])));
	}
	smart_free_copy(vector, value);
	return out;
}

static const uint8 *
tsvector_end(const struct smart_normalizer *normalizer, const uint8 *bytes, const uint8 *limit, uint8 flip)
{
	uint32 count = 0;
	const uint8 *p = smart_get_word32(smart_skip(bytes, limit, 4), limit, flip, &count);

	for (uint32 i = 0; i < count && p != NULL; i++)
	{
		uint8 mark = MARK_NO_POSITIONS;
		const uint8 *positions;

		p = smart_get_byte(p, limit, flip, &mark);
		p = positions = smart_string_end(p, limit, flip);
		if (mark == MARK_NO_POSITIONS)
			continue;
		p = smart_skip(p, limit, sizeof(uint16));
		/* The number is complemented, unless the column is descending. */
		if (p != NULL)
			p = smart_skip(p, limit,
						   sizeof(uint16) * (uint16) (smart_load_be16(positions) ^ (flip == 0 ? PG_UINT16_MAX : 0)));
	}
	smart_assert(p == NULL || (p > bytes && p <= limit));
	return p;
}

/* ---- tsquery ---- */

/* Writes a node and what is below it */
static uint8 *
put_node(TSQuery query, const QueryItem *item, uint8 *out, uint8 *limit)
{
	const QueryOperator *node = &item->qoperator;
	const QueryOperand *operand = &item->qoperand;

	check_stack_depth();
	smart_assert(out <= limit);
	out = smart_put_byte(out, limit, (uint8) ~item->type);
	if (item->type == QI_VAL)
	{
		out = smart_put_number(out, limit, ~operand->valcrc);
		return smart_put_string(out, limit, GETOPERAND(query) + operand->distance, operand->length);
	}
	out = smart_put_byte(out, limit, (uint8) ~node->oper);
	if (out != NULL)
		out = put_node(query, item + 1, out, limit);
	if (out != NULL && node->oper != OP_NOT)
		out = put_node(query, item + node->left, out, limit);
	if (node->oper == OP_PHRASE)
		out = smart_put_word16(out, limit, (uint16) ~node->distance);
	return out;
}

static uint8 *
tsquery_encode(const struct smart_normalizer *normalizer, Datum value, uint8 *out, uint8 *limit)
{
	TSQuery query = DatumGetTSQuery(value);

	out = smart_put_word32(out, limit, (uint32) query->size);
	out = smart_put_word32(out, limit, VARSIZE(query));
	if (out != NULL && query->size > 0)
		out = put_node(query, GETQUERY(query), out, limit);
	smart_free_copy(query, value);
	return out;
}

/* The end of a node and what is below it, or NULL.  Each level has two bytes of its own, so a key holds 2048 at most. */
static const uint8 *
node_end(const uint8 *p, const uint8 *limit, uint8 flip)
{
	uint8 type = 0;
	uint8 which = 0;

	smart_assert(flip == 0 || flip == 0xFF);
	p = smart_get_byte(p, limit, ~flip, &type);
	if (type == QI_VAL)
		return smart_string_end(smart_skip(p, limit, 4), limit, flip);
	p = smart_get_byte(p, limit, ~flip, &which);
	if (p == NULL)
		return NULL;
	p = node_end(p, limit, flip);
	if (which != OP_NOT)
		p = node_end(p, limit, flip);
	return which == OP_PHRASE ? smart_skip(p, limit, 2) : p;
}

static const uint8 *
tsquery_end(const struct smart_normalizer *normalizer, const uint8 *bytes, const uint8 *limit, uint8 flip)
{
	uint32 count = 0;
	const uint8 *p = smart_skip(smart_get_word32(bytes, limit, flip, &count), limit, 4);

	return count == 0 ? p : node_end(p, limit, flip);
}

SMART_NORMALIZER(tsvector, NULL, .forgets = true, .encode = tsvector_encode, .end = tsvector_end);
SMART_NORMALIZER(tsquery, NULL, .forgets = true, .encode = tsquery_encode, .end = tsquery_end);
