/*
 * tuples.c
 *	  The index tuples that an index-only scan returns.
 */
#include "postgres.h"

#include "access/tupmacs.h"

#include "am/tuples.h"
#include "base/assert.h"

/*
 * Copies a string that is mostly short, and perhaps some bytes behind it: the
 * buffers of a batch end that much later.
 */
static inline void
copy_string(uint8 *out, const uint8 *bytes, uint32 length)
{
	if (likely(length <= SMART_SHORT_COPY))
		memcpy(out, bytes, SMART_SHORT_COPY);
	else
		memcpy(out, bytes, length);
}

/*
 * Copies up to most entries from a position on, in the scan's direction, as far
 * as they fit; returns how many.
 */
static int
copy_entries(struct smart_tuples *tuples, const struct smart_position *position, int most, bool backward)
{
	const struct smart_batch *batch = &position->batch;
	int index = position->index;
	int available = backward ? index + 1 : (int) batch->count - index;
	uint32 used = 0;
	int count;

	most = Min(most, Min(available, SMART_TUPLES_AHEAD));
	for (count = 0; count < most; count++)
	{
		const struct smart_item *item = &batch->items[backward ? index - count : index + count];

		/* The first one fits always. */
		if (used + batch->prefix_length + item->length > SMART_ENTRY_MAX)
			break;
		copy_string(tuples->entries + used, batch->prefix, batch->prefix_length);
		used += batch->prefix_length;
		copy_string(tuples->entries + used, batch->bytes + item->offset, item->length);
		used += item->length;
		tuples->entry_end[count] = used;
	}
	smart_assert(count > 0);
	return count;
}

/* Which way is there to form the tuples of this index? */
static enum smart_tuple_shape
shape_of(const struct smart_codec *codec)
{
	const struct smart_column *column = &codec->columns[0];

	if (codec->ncolumns != 1 || column->flip != 0 || codec->residue_width != 0 || !column->returnable)
		return SMART_TUPLE_ANY;
	if (codec->flat && column->byval && codec->fixed_length > 0)
		return SMART_TUPLE_WORD;
	return column->attlen == -1 && column->image.width == 0 ? SMART_TUPLE_VARLENA : SMART_TUPLE_ANY;
}

/*
 * Forms the first count of the entries that were copied, of shape
 * SMART_TUPLE_WORD; returns how many there are before the first NULL.
 */
static int
form_words(struct smart_tuples *tuples, int count, int place, int step)
{
	const struct smart_codec *codec = tuples->codec;
	const struct smart_column *column = &codec->columns[0];
	const uint8 *entry = tuples->entries;
	char *space = tuples->space;
	int done;

	smart_assert((Size) count * codec->tuple_size <= SMART_TUPLES_SPACE);
	for (done = 0; done < count && likely(entry[0] == SMART_NOT_NULL); done++)
	{
		IndexTuple tuple = (IndexTuple) space;
		Datum value = column->image.decode(&column->image, entry + 1, column->image.width, NULL, NULL);

		store_att_byval(space + column->tuple_offset, value, column->attlen);
		tuple->t_info = (unsigned short) codec->tuple_size;
		smart_entry_tid(codec, entry + codec->fixed_key_length, &tuple->t_tid);
		tuples->tuple[place] = tuple;
		place += step;
		entry += codec->fixed_length;
		space += codec->tuple_size;
	}
	return done;
}

/* The same for SMART_TUPLE_VARLENA, as far as there is space. */
static int
form_varlenas(struct smart_tuples *tuples, int count, int place, int step)
{
	const struct smart_codec *codec = tuples->codec;
	const struct smart_image *image = &codec->columns[0].image;
	const uint8 *entry = tuples->entries;
	char *space = tuples->space;
	int done;

	for (done = 0; done < count && likely(entry[0] == SMART_NOT_NULL); done++)
	{
		const uint8 *end = tuples->entries + tuples->entry_end[done];
		int columns_length = smart_entry_columns_length(codec, entry, (int) (end - entry));
		IndexTuple tuple = (IndexTuple) space;
		char *value = space + MAXALIGN(sizeof(IndexTupleData));
		Size size;

		if (space - tuples->space > SMART_TUPLES_SPACE)
			break;
		(void) image->decode(image, entry + 1, columns_length - 1, NULL, value);
		size = MAXALIGN(value + VARSIZE_ANY(value) - space);
		smart_assert(size <= INDEX_SIZE_MASK);
		tuple->t_info = (unsigned short) size | INDEX_VAR_MASK;
		smart_entry_tid(codec, end, &tuple->t_tid);
		tuples->tuple[place] = tuple;
		place += step;
		entry = end;
		space += size;
	}
	return done;
}

/* The same for any index; a NULL ends nothing. */
static int
form_any(struct smart_tuples *tuples, int count, int place, int step)
{
	const uint8 *entry = tuples->entries;
	char *space = tuples->space;
	int done;

	for (done = 0; done < count && space - tuples->space <= SMART_TUPLES_SPACE; done++)
	{
		const uint8 *end = tuples->entries + tuples->entry_end[done];
		IndexTuple tuple = smart_codec_form_tuple(tuples->codec, entry, (int) (end - entry), space);

		tuples->tuple[place] = tuple;
		place += step;
		space += MAXALIGN(IndexTupleSize(tuple));
		entry = end;
	}
	return done;
}

/*
 * Forms the tuples of up to most entries from a position on, at least one.
 * First all are copied and then all are formed, and none is read back right
 * after it was written: that would wait for the store.
 */
static void
form_tuples(struct smart_tuples *tuples, const struct smart_position *position, int most, bool backward)
{
	int index = position->index;
	int place = backward ? SMART_TUPLES_AHEAD - 1 : 0;
	int step = backward ? -1 : 1;
	int count = copy_entries(tuples, position, most, backward);
	int done = 0;

	if (tuples->space == NULL)
		tuples->space = MemoryContextAlloc(tuples->context, SMART_TUPLES_SPACE + tuples->codec->space);
	if (tuples->shape == SMART_TUPLE_WORD)
		done = form_words(tuples, count, place, step);
	else if (tuples->shape == SMART_TUPLE_VARLENA)
		done = form_varlenas(tuples, count, place, step);
	if (done == 0)
		done = form_any(tuples, count, place, step);
	tuples->batch = position->batches;
	tuples->base = index - place;
	tuples->low = backward ? index - (done - 1) : index;
	tuples->high = backward ? index : index + (done - 1);
	smart_assert(tuples->low <= index && index <= tuples->high);
}

/* Do the entries of a batch share all that a tuple is formed of?  The first of those copied tells for all. */
static bool
all_the_same(const struct smart_tuples *tuples, const struct smart_batch *batch)
{
	int length = (int) tuples->entry_end[0];

	return tuples->codec->payload_width == 0 &&
		   batch->prefix_length >= (uint32) smart_entry_columns_length(tuples->codec, tuples->entries, length);
}

void
smart_tuples_init(struct smart_tuples *tuples, const struct smart_codec *codec)
{
	tuples->codec = codec;
	tuples->context = CurrentMemoryContext;
	tuples->shape = shape_of(codec);
	tuples->batch = 0;
	tuples->same = false;
	tuples->low = 0;
	tuples->space = NULL;
}

void
smart_tuples_form(struct smart_tuples *tuples, const struct smart_position *position, bool backward)
{
	int index = position->index;

	/* The first of a batch is formed alone, since it may well be the only one that is wanted. */
	if (tuples->batch != position->batches)
	{
		form_tuples(tuples, position, 1, backward);
		tuples->same = all_the_same(tuples, &position->batch);
	}
	else if (!tuples->same && (index < tuples->low || index > tuples->high))
		form_tuples(tuples, position, position->ranges->filtered ? 1 : SMART_TUPLES_AHEAD, backward);
}
