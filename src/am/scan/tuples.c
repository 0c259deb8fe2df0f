/*
 * tuples.c
 *	  The index tuples that an index-only scan returns.
 */
#include "postgres.h"

#include "access/tupmacs.h"

#include "am/codec/encode.h"
#include "am/codec/long_key.h"
#include "am/scan/position.h"
#include "am/scan/tuples.h"
#include "base/assert.h"

#define VERBATIM_ROOM 256 /* bytes: a tuple with a short value, and what is copied behind it */

/* Copies up to most entries from a position on, of which there are so many, as far as they fit; returns how many. */
static int
copy_entries(struct smart_tuples *tuples, const struct smart_position *position, int most, int step)
{
	const struct smart_batch *batch = &position->batch;
	int index = position->index;
	uint32 used = 0;
	int count;

	smart_assert(index >= 0 && (uint32) index < batch->count);
	for (count = 0; count < most; count++)
	{
		const struct smart_item *item = &batch->items[index + count * step];

		/* The first one fits always. */
		if (used + batch->prefix_length + item->length > SMART_ENTRY_MAX)
			break;
		smart_batch_copy(tuples->entries + used, batch->prefix, batch->prefix_length);
		used += batch->prefix_length;
		smart_batch_copy(tuples->entries + used, batch->bytes + item->offset, item->length);
		used += item->length;
		tuples->entry_end[count] = used;
	}
	smart_assert(count > 0 && used <= SMART_ENTRY_MAX);
	return count;
}

/*
 * Forms the tuples of the first count of the entries that were copied, in this shape, as far as there is space; returns
 * how many.  A NULL ends it, unless the shape is any.
 */
static pg_attribute_always_inline int
form_shape(struct smart_tuples *tuples, enum smart_tuple_shape shape, int count, int place, int step)
{
	const struct smart_codec *codec = tuples->codec;
	const struct smart_column *column = &codec->columns[0];
	const struct smart_normalizer *normalizer = &column->normalizer;
	const uint8 *entry = tuples->entries;
	char *space = tuples->space;
	int done;

	for (done = 0; done < count; done++)
	{
		const uint8 *end =
			shape == SMART_TUPLE_WORD ? entry + codec->fixed_length : tuples->entries + tuples->entry_end[done];
		IndexTuple tuple = (IndexTuple) space;

		if (shape != SMART_TUPLE_ANY && unlikely(entry[0] != SMART_NOT_NULL))
			break;
		/* Whatever the TID's length is, since squeezed keys are longer than others by more than that may differ. */
		if (shape == SMART_TUPLE_VARLENA &&
			smart_key_is_squeezed(normalizer, (int) (end - entry) - SMART_TID_LONGEST - 1))
			break;
		if (shape != SMART_TUPLE_WORD && space - tuples->space > SMART_TUPLES_SPACE)
			break;
		if (shape == SMART_TUPLE_WORD)
		{
			Datum value = normalizer->decode(normalizer, entry + 1, normalizer->width, NULL, NULL);

			store_att_byval(space + column->tuple_offset, value, column->attlen);
			tuple->t_info = (unsigned short) codec->tuple_size;
			smart_entry_tid(codec, entry + codec->fixed_key_length, &tuple->t_tid);
			space += codec->tuple_size;
		}
		else if (shape == SMART_TUPLE_VARLENA)
		{
			int columns_length = smart_entry_columns_length(codec, entry, (int) (end - entry));
			char *value = space + MAXALIGN(sizeof(IndexTupleData));
			Size size;

			smart_assert(columns_length > 0 && columns_length <= SMART_COLUMNS_MAX);
			(void) normalizer->decode(normalizer, entry + 1, columns_length - 1, NULL, value);
			size = MAXALIGN(value + VARSIZE_ANY(value) - space);
			smart_assert(size <= INDEX_SIZE_MASK);
			tuple->t_info = (unsigned short) size | INDEX_VAR_MASK;
			smart_entry_tid(codec, end, &tuple->t_tid);
			space += size;
		}
		else
		{
			(void) smart_codec_form_tuple(codec, entry, (int) (end - entry), space);
			space += MAXALIGN(IndexTupleSize(tuple));
		}
		tuples->tuple[place] = tuple;
		place += step;
		entry = end;
	}
	smart_assert((Size) (space - tuples->space) <= SMART_TUPLES_SPACE + codec->space);
	return done;
}

/* Forms the tuples of count entries that were copied, at least one; returns how many. */
static int
form_copies(struct smart_tuples *tuples, int count, int place, int step)
{
	int done = 0;

	smart_assert(count > 0);
	if (tuples->shape == SMART_TUPLE_WORD)
		done = form_shape(tuples, SMART_TUPLE_WORD, count, place, step);
	else if (tuples->shape == SMART_TUPLE_VARLENA || tuples->shape == SMART_TUPLE_VERBATIM)
		done = form_shape(tuples, SMART_TUPLE_VARLENA, count, place, step);
	return done > 0 ? done : form_shape(tuples, SMART_TUPLE_ANY, count, place, step);
}

/*
 * Forms the tuples of up to most entries from a position on, whose values are in the batch as they are, with short headers; ends at
 * one that takes another shape.  Returns how many.
 */
static int
form_verbatim(struct smart_tuples *tuples, const struct smart_position *position, int most, int place, int step)
{
	const struct smart_codec *codec = tuples->codec;
	const struct smart_batch *batch = &position->batch;
	const uint8 *prefix = batch->prefix;
	uint32 shared = batch->prefix_length;
	const struct smart_item *item = &batch->items[position->index];
	char *space = tuples->space;
	int done = 0;

	smart_assert(tuples->shape == SMART_TUPLE_VERBATIM && most > 1);
	if (shared == 0 || shared > VARATT_SHORT_MAX || unlikely(prefix[0] != SMART_NOT_NULL))
		return 0;
	for (; done < most; done++, item += step, place += step)
	{
		const uint8 *suffix = batch->bytes + item->offset;
		IndexTuple tuple = (IndexTuple) space;
		char *value = space + MAXALIGN(sizeof(IndexTupleData));
		char *data = value + VARHDRSZ_SHORT;
		uint32 tid_width;
		uint32 length;

		if (item->length < SMART_TID_SHORTEST || space - tuples->space > SMART_TUPLES_SPACE - VERBATIM_ROOM)
			break;
		tid_width = (uint32) smart_entry_tid_width(codec, suffix[item->length - 1]);
		/* SMART_NOT_NULL comes before the value, and the 00 behind it. */
		length = shared + item->length - tid_width - 2;
		if (unlikely(item->length < tid_width || length >= VARATT_SHORT_MAX))
			break;
		/* The next tuple overwrites what is too much. */
		smart_batch_copy((uint8 *) data, prefix + 1, shared - 1);
		smart_batch_copy((uint8 *) data + shared - 1, suffix, item->length);
		SET_VARSIZE_SHORT(value, length + VARHDRSZ_SHORT);
		smart_entry_tid(codec, suffix + item->length, &tuple->t_tid);
		tuple->t_info = (unsigned short) MAXALIGN(data + length - space) | INDEX_VAR_MASK;
		tuples->tuple[place] = tuple;
		space += MAXALIGN(data + length - space);
	}
	return done;
}

/*
 * Forms the tuples of up to most entries from a position on, at least one.  First all are copied and then all are formed,
 * so that none is read back right after it was written: that would wait for the store.
 */
static void
form_tuples(struct smart_tuples *tuples, const struct smart_position *position, int most, bool backward)
{
	int index = position->index;
	int place = backward ? SMART_TUPLES_AHEAD - 1 : 0;
	int step = backward ? -1 : 1;
	int done = 0;

	if (tuples->space == NULL)
		tuples->space = MemoryContextAlloc(tuples->context, SMART_TUPLES_SPACE + tuples->codec->space);
	most = Min(most, Min(backward ? index + 1 : (int) position->batch.count - index, SMART_TUPLES_AHEAD));
	if (tuples->shape == SMART_TUPLE_VERBATIM && most > 1)
		done = form_verbatim(tuples, position, most, place, step);
	if (done == 0)
		done = form_copies(tuples, copy_entries(tuples, position, most, step), place, step);
	tuples->batch = position->batches;
	tuples->base = index - place;
	tuples->low = backward ? index - (done - 1) : index;
	tuples->high = backward ? index : index + (done - 1);
	smart_assert(tuples->low <= index && index <= tuples->high);
}

void
smart_tuples_init(struct smart_tuples *tuples, const struct smart_codec *codec)
{
	const struct smart_column *column = &codec->columns[0];

	tuples->codec = codec;
	tuples->context = CurrentMemoryContext;
	tuples->batch = 0;
	tuples->same = false;
	tuples->low = 0;
	tuples->space = NULL;
	tuples->shape = SMART_TUPLE_ANY;
	if (codec->ncolumns != 1 || column->flip != 0 || codec->residue_width != 0 || !column->returnable)
		return;
	/* All of a batch must fit: words are not counted while they are formed. */
	if (codec->flat && column->byval && codec->fixed_length > 0)
	{
		tuples->shape = SMART_TUPLE_WORD;
		smart_assert((Size) SMART_TUPLES_AHEAD * codec->tuple_size <= SMART_TUPLES_SPACE);
	}
	else if (column->attlen == -1 && column->normalizer.width == 0)
		tuples->shape = column->normalizer.verbatim ? SMART_TUPLE_VERBATIM : SMART_TUPLE_VARLENA;
}

void
smart_tuples_form(struct smart_tuples *tuples, const struct smart_position *position, bool backward)
{
	const struct smart_batch *batch = &position->batch;
	int index = position->index;

	if (tuples->batch != position->batches)
	{
		/* The first of a batch is formed alone, since it may well be the only one that is wanted. */
		form_tuples(tuples, position, 1, backward);

		/* Do all entries of the batch share all that a tuple is formed of?  The first of them tells. */
		tuples->same = tuples->codec->payload_width == 0 &&
					   batch->prefix_length >= (uint32) smart_entry_columns_length(tuples->codec, tuples->entries,
																				   (int) tuples->entry_end[0]);
	}
	else if (!tuples->same && (index < tuples->low || index > tuples->high))
		form_tuples(tuples, position, position->ranges->filtered ? 1 : SMART_TUPLES_AHEAD, backward);
}
