/*
 * chain_range.c
 *	  What a long chain says of one range of keys.
 *
 * Where many want to read, it is better that one of two processors makes the delta: so one process at a time reads the chain,
 * and looks first whether there is a delta by now.
 */
#include "postgres.h"

#include "utils/rel.h"

#include "am/compat.h"
#include "am/journal/chain_range.h"
#include "am/journal/delta.h"
#include "am/journal/lock.h"
#include "am/server/errands.h"
#include "base/assert.h"
#include "base/bytes.h"

#define PAGES_LONG     64   /* of the chain: a delta of fewer is made in the time that a worker needs to start */
#define READS_MAX      16   /* of a chain, while nobody makes the delta: they take about as long as making it does */
#define OPERATIONS_MAX 4096 /* of one range, or part of one */
#define BYTES_MAX      (256 * 1024)
#define CUTS_MAX       64 /* of one range: what it would take else is better spent on the delta */

bool
smart_chain_range_pays(const struct smart_meta *meta)
{
	return meta->tail_serial - meta->cut.serial > PAGES_LONG;
}

/* Does any process make the delta at this moment? */
static bool
is_being_made(Relation index)
{
	if (!smart_journal_try_lock(index, SMART_LOCK_DELTA))
		return true;
	smart_journal_unlock(index, SMART_LOCK_DELTA);
	return false;
}

/* Asks for a worker that makes the delta.  False: none may come. */
static bool
request_delta(Relation index)
{
	Oid database = smart_relation_database(index);
	uint32 requests;

	/* No worker sees a file that this transaction has made. */
	if (index->rd_createSubid != InvalidSubTransactionId ||
		smart_relation_new_file_subid(index) != InvalidSubTransactionId)
		return false;
	smart_errand_request(SMART_ERRAND_DELTA, database, RelationGetRelid(index));
	requests = smart_errand_requests(SMART_ERRAND_DELTA, database, RelationGetRelid(index));
	return (requests > 0 && requests <= READS_MAX) || is_being_made(index);
}

/* The range that is being read. */
struct range
{
	struct smart_chain_keys keys;
	bool backward;
	bool streams;                    /* if there is too much, none of it is wanted here */
	struct smart_chain_bound *bound; /* NULL: no part is wanted */
	int cuts;
};

/* There is too much: what is farther from where the scan begins goes.  False: no part is wanted. */
static bool
cut(struct range *range, struct smart_piece *piece)
{
	const struct smart_chain_keys *keys = &range->keys;
	const struct smart_piece_operation *edge;
	Size bytes = 0;
	uint32 kept;

	if (range->bound == NULL || ++range->cuts > CUTS_MAX)
		return false;
	smart_piece_keep_last(piece);
	smart_assert(piece->count > 0);
	for (uint32 i = 0; i < piece->count; i++)
		bytes += (Size) piece->operations[i].length;
	/* Of an entry there may have been many operations. */
	kept = piece->count > OPERATIONS_MAX / 2 || bytes > BYTES_MAX / 2 ? (piece->count + 1) / 2 : piece->count;
	smart_assert(kept > 0 && kept <= piece->count);
	edge = &piece->operations[range->backward ? piece->count - kept : Min(kept, piece->count - 1)];
	if (kept < piece->count)
	{
		smart_assert(edge->key_length > 0 && edge->key_length <= SMART_KEY_MAX);
		range->bound->length = (uint32) edge->key_length;
		memcpy(range->bound->bytes, edge->entry, (Size) edge->key_length);
		range->keys = range->backward
						  ? smart_chain_keys(range->bound->bytes, range->bound->length, keys->to, keys->to_length)
						  : smart_chain_keys(keys->from, keys->from_length, range->bound->bytes, range->bound->length);
	}
	smart_piece_keep_part(piece, range->backward ? piece->count - kept : 0, kept);
	smart_assert(piece->count == kept);
	return true;
}

/* The caller has the lock.  SMART_CHAIN_RANGE_LARGE: there is too much. */
static enum smart_chain_range
read_range(struct smart_reader *reader, const struct smart_codec *codec, struct range *range, struct smart_piece *piece)
{
	enum smart_found found;
	uint64 operations = 0;

	smart_assert(piece->count == 0);
	while ((found = smart_reader_next_operation(reader)) == SMART_FOUND)
	{
		operations++;
		if (likely(!smart_chain_keys_have(&range->keys, reader)))
			continue;
		smart_reader_check(reader, codec, reader->operation == SMART_OPERATION_REMOVE);
		smart_piece_add(piece, reader);
		if (likely(piece->count <= OPERATIONS_MAX && piece->bytes <= BYTES_MAX))
			continue;
		if (range->streams)
			return SMART_CHAIN_RANGE_LARGE;
		if (!cut(range, piece))
			return SMART_CHAIN_RANGE_DELTA;
	}
	if (found == SMART_FOUND_BEHIND)
		return SMART_CHAIN_RANGE_BEHIND;
	smart_assert(piece->count <= OPERATIONS_MAX);
	smart_piece_keep_last(piece);
	elog(DEBUG1, "chain of index \"%s\": " UINT64_FORMAT " operations, on %u entries of the range that is read",
		 RelationGetRelationName(reader->index), operations, piece->count);
	return range->bound != NULL && range->bound->length > 0 ? SMART_CHAIN_RANGE_PART : SMART_CHAIN_RANGE;
}

/* The same of a range of which there is too much for a piece: all of it is put in order, and read as the scan comes to it. */
static enum smart_chain_range
sort_range(Relation index, const struct smart_codec *codec, const struct smart_meta *meta,
		   const struct smart_chain_keys *keys, struct smart_sorted_chain **sorted)
{
	struct smart_chain_place end;

	smart_assert(sorted != NULL);
	if (smart_sorted_chain_begin(index, codec, meta, &smart_look_for_interrupts, keys, sorted, &end) == SMART_FOUND_END)
		return SMART_CHAIN_RANGE_LARGE;
	*sorted = NULL;
	return SMART_CHAIN_RANGE_BEHIND;
}

enum smart_chain_range
smart_chain_range_read(Relation index, const struct smart_codec *codec, const struct smart_meta *meta,
					   const struct smart_chain_keys *keys, bool backward, struct smart_piece *piece,
					   struct smart_chain_bound *bound, struct smart_sorted_chain **sorted)
{
	struct range range = {.keys = *keys, .backward = backward, .streams = sorted != NULL && !backward, .bound = bound};
	enum smart_chain_range result = SMART_CHAIN_RANGE_DELTA;

	smart_piece_clear(piece);
	if (bound != NULL)
		bound->length = 0;
	if (!request_delta(index))
		return SMART_CHAIN_RANGE_DELTA;
	smart_journal_lock(index, SMART_LOCK_CHAIN);
	if (!smart_delta_is_there(index, meta))
	{
		struct smart_reader *reader = palloc(sizeof(*reader));

		smart_reader_begin_chain(reader, index, meta, &meta->cut, true);
		result = read_range(reader, codec, &range, piece);
		pfree(reader);
		if (result == SMART_CHAIN_RANGE_LARGE)
			result = sort_range(index, codec, meta, keys, sorted);
	}
	smart_journal_unlock(index, SMART_LOCK_CHAIN);
	smart_assert(result != SMART_CHAIN_RANGE_PART || (bound != NULL && bound->length > 0));
	smart_assert(result != SMART_CHAIN_RANGE_LARGE || (sorted != NULL && *sorted != NULL));
	return result;
}
