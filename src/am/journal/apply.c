/*
 * apply.c
 *	  Bringing a tree up to date with the chain of its journal.
 *
 * The chain is read in pieces.  Of each entry only the last operation of the piece is carried out.  So an operation
 * that is carried out once more, since the process before was cancelled in its piece, brings no entry back for a moment
 * that a later operation of the piece removes: its TID may serve another row by now.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "am/codec/encode.h"
#include "am/index/relation.h"
#include "am/journal/apply.h"
#include "am/journal/delta_entry.h"
#include "am/journal/piece.h"
#include "am/journal/read.h"
#include "am/recovery/undo.h"
#include "base/assert.h"
#include "base/bytes.h"

#define PIECE_OPERATIONS 8192 /* or some more: up to the end of a batch, which has less than BLCKSZ */
#define PIECE_BYTES      (1024 * 1024)

static bool
is_delta(enum smart_target target)
{
	return target == SMART_TARGET_DELTA || target == SMART_TARGET_DELTA_1 || target == SMART_TARGET_LEAN_DELTA;
}

/* What is left in a delta of an entry that has come and gone since its run was written. */
static int
mark_of_spent(enum smart_target target)
{
	smart_assert(is_delta(target));
	if (target == SMART_TARGET_LEAN_DELTA)
		return SMART_DELTA_NOTHING;
	return SMART_DELTA_SPENT + (target == SMART_TARGET_DELTA_1);
}

/* False: the target has no room. */
static bool
carry_out(Relation index, struct smart_tree *tree, enum smart_target target, struct smart_piece *piece,
		  struct smart_reader *run)
{
	smart_status status;

	/*
	 * A follower outlives a crash, and must have nothing that the chain lacks then.  Where a standby was promoted a moment ago, who
	 * applies may have begun before.
	 */
	if (!is_delta(target) && !RecoveryInProgress())
		smart_wal_flush();
	status = is_delta(target) ? smart_piece_carry_out_in_delta(piece, tree, run, mark_of_spent(target))
							  : smart_piece_carry_out(piece, tree);
	if ((status == SMART_NO_SPACE || status == SMART_DISK_FULL) && target != SMART_TARGET_TREE)
		return false;
	smart_check_status(status, index);
	return true;
}

/* Where the chain begins that a tree has nothing of, since there was none.  False: it has been cut. */
static bool
find_begin(const struct smart_meta *meta, struct smart_chain_place *place)
{
	smart_assert(place->serial == 0);
	if (meta->tail_serial == 0)
		return true;
	/* Serials begin with 1. */
	if (meta->cut.serial != 1)
		return false;
	*place = (struct smart_chain_place){.serial = 1, .block = meta->cut.block, .offset = SMART_PAGE_BEGIN};
	return true;
}

bool
smart_journal_apply(Relation index, const struct smart_codec *codec, const struct smart_meta *meta,
					struct smart_tree *tree, enum smart_target target, struct smart_chain_place *place,
					bool (*after_piece)(void *, const struct smart_chain_place *), void *argument)
{
	/* The next call has it again: where each insert into a unique index applies its own entry, this is called for each. */
	static struct smart_reader *reader = NULL;
	static struct smart_reader *run = NULL;
	struct smart_piece *piece = smart_piece_begin(codec);
	const struct smart_meta *chain = meta;
	enum smart_found found = SMART_FOUND;
	struct smart_meta now;
	bool room = true;

	smart_assert(target <= SMART_TARGET_LEAN_DELTA);
	smart_assert(meta != NULL || !is_delta(target));
	if (reader == NULL)
	{
		reader = MemoryContextAlloc(TopMemoryContext, sizeof(*reader));
		run = MemoryContextAlloc(TopMemoryContext, sizeof(*run));
	}
	if (meta == NULL || place->serial == 0)
	{
		smart_meta_read_again(index, &now);
		chain = &now;
	}
	if (place->serial == 0 && !find_begin(chain, place))
		return false;
	smart_reader_begin_chain(reader, index, chain, place, false);
	/* The delta's own run, which need not be that of now. */
	if (is_delta(target))
		smart_reader_begin_run(run, index, meta, false);
	while (found == SMART_FOUND && room)
	{
		smart_piece_clear(piece);
		while ((piece->count < PIECE_OPERATIONS && piece->bytes < PIECE_BYTES) || !smart_reader_at_batch_end(reader))
		{
			found = smart_reader_next_operation(reader);
			if (found != SMART_FOUND)
				break;
			smart_reader_check(reader, codec, reader->operation == SMART_OPERATION_REMOVE);
			smart_piece_add(piece, reader);
		}
		if (found == SMART_FOUND_BEHIND)
			break;
		room = carry_out(index, tree, target, piece, run);
		if (!room)
			break;
		*place = smart_reader_place(reader);
		if (after_piece != NULL && piece->count > 0 && !after_piece(argument, place))
			found = SMART_FOUND_END;
	}
	smart_piece_end(piece);
	smart_assert(found != SMART_FOUND || !room);
	return found == SMART_FOUND_END && room;
}
