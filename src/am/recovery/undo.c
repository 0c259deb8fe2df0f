/*
 * undo.c
 *	  Undo records: written by inserts, used once after a crash.
 *
 * The record goes first, the entry second, in memory that outlives this process: a process that is killed in between
 * leaves a record of an entry that is not there, whose removal does nothing.  A record is not taken back either when
 * the entry turns out to be there already: it was put there for the same row, since VACUUM removes an entry before
 * the row's place serves another; and if that row's WAL is lost, the entry has to go, whichever process added it
 * (src/README, U3).
 *
 * The position is the end of the last record that this transaction has put into WAL, which is behind the row's own
 * and before the commit.  So if an entry is removed although its row is there, the row's transaction did not commit.
 * Only the last pass of CREATE INDEX CONCURRENTLY inserts for others; its position is where WAL ends now, and if that
 * is lost, so is the commit that would have made the index valid.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "utils/rel.h"

#include "am/recovery/undo.h"
#include "am/server/shared.h"
#include "base/assert.h"
#include "tree/tree.h"

/*
 * Segments (64 KiB) that there may be before an insert flushes WAL itself instead of making another; and the part of
 * the region that they may take.
 */
#define SEGMENTS_MANY       64
#define SEGMENTS_PER_CLIENT 2
#define REGION_PART         32

static struct smart_undo_segment *segment; /* this backend's, or NULL */
static bool surplus;                       /* it is beyond the limit, and is released when the transaction ends */

/* ---- what is durable in WAL ---- */

/*
 * The end of what has been put into WAL, up to which it can be flushed.  The insert position lies behind the header
 * of the next page when the last record ended with its page; WAL cannot be flushed up to there.
 */
static XLogRecPtr
wal_end(void)
{
	XLogRecPtr position = GetXLogInsertRecPtr();

	if (XLogSegmentOffset(position, wal_segment_size) == SizeOfXLogLongPHD)
		position -= SizeOfXLogLongPHD;
	else if (position % XLOG_BLCKSZ == SizeOfXLogShortPHD)
		position -= SizeOfXLogShortPHD;
	return position;
}

void
smart_wal_flush(void)
{
	XLogRecPtr end = wal_end();

	XLogFlush(end);
	smart_wal_is_durable(end);
}

void
smart_wal_is_durable(XLogRecPtr end)
{
	uint64 *durable = &smart_region_header(&smart_server.region)->durable;
	uint64 known;

	smart_assert(smart_server.shared->made);
	/* Startup recovery compares it with the end of WAL as it was found.  What is not recovered yet depends on no later WAL. */
	if (unlikely(smart_server_recovers()))
		return;
	known = __atomic_load_n(durable, __ATOMIC_RELAXED);
	while (known < end && !__atomic_compare_exchange_n(durable, &known, end, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
}

/* ---- writing records ---- */

/*
 * Claims a segment that has room, or whose records are durable, or makes one; beyond the limit only if other clients own all
 * segments.  SMART_NO_SPACE, SMART_DISK_FULL: the region has no room for one more.
 */
static pg_noinline smart_status
take_segment(void)
{
	struct smart_client *client = smart_server.client;
	const struct smart_region *region = client->compute->region;
	uint64 room = region->max_size / REGION_PART / SMART_SEGMENT_BYTES;
	uint64 wanted = SEGMENTS_MANY + SEGMENTS_PER_CLIENT * client->compute->epoch->claimed;
	unsigned int limit = (unsigned int) Max(Min(wanted, room), 1);
	XLogRecPtr durable = __atomic_load_n(&smart_region_header(region)->durable, __ATOMIC_RELAXED);

	/* The WAL writer may make durable what is in the full one, while this process goes on with others. */
	if (segment != NULL)
		XLogSetAsyncXactLSN(segment->last);
	smart_undo_end();
	smart_assert(segment == NULL && limit > 0);
	while ((segment = smart_undo_claim(region, client->number, durable)) == NULL)
	{
		XLogRecPtr least = smart_undo_least(region);
		smart_status status;

		if (least != InvalidXLogRecPtr && least <= GetFlushRecPtr(NULL))
		{
			/* Before a record is dropped; not for all that is flushed, which may end within a record of WAL. */
			smart_wal_is_durable(least);
			durable = Max(durable, least);
			continue;
		}
		status = smart_undo_claim_new(&client->space, client->number,
									  least == InvalidXLogRecPtr ? SMART_SEGMENT_MAX : limit, &segment);
		if (status == SMART_OK)
			break;
		if (least == InvalidXLogRecPtr)
			return status;
		XLogFlush(least);
	}
	surplus = segment->number >= limit;
	return SMART_OK;
}

void
smart_undo_end(void)
{
	if (segment != NULL)
		smart_undo_release(&smart_server.region, segment);
	segment = NULL;
	surplus = false;
}

void
smart_undo_at_transaction_end(void)
{
	if (unlikely(surplus))
		smart_undo_end();
}

smart_status
smart_undo_write(Relation index, struct smart_undo *undo, bool others)
{
	if (!RelationNeedsWAL(index))
		return SMART_OK;
	undo->position = XactLastRecEnd;
	if (unlikely(others || undo->position == InvalidXLogRecPtr))
		undo->position = wal_end();
	smart_assert(undo->tree != 0 && undo->key_length > 0);
	smart_assert(undo->position != InvalidXLogRecPtr);
	while (unlikely(segment == NULL) || unlikely(!smart_undo_put(segment, undo)))
	{
		smart_status status = take_segment();

		if (status != SMART_OK)
			return status;
	}
	smart_assert(segment->last >= undo->position);
	return SMART_OK;
}

/* ---- after a crash ---- */

/* The tree that records are about, open. */
struct undoing
{
	struct smart_client *client;
	struct smart_tree *tree; /* NULL: none, or it is gone */
	uint64 id;
	uint64 removed;
};

/* Removes the entry of a record. */
static smart_status
undo_one(void *argument, const struct smart_undo_record *record)
{
	struct undoing *undoing = argument;
	struct smart_client *client = undoing->client;
	smart_status status = SMART_OK;
	bool removed = false;

	smart_assert(client->space.removing && (undoing->tree == NULL || undoing->id != 0));
	if (client->env->interrupted(client->env))
		return SMART_INTERRUPTED;
	if (undoing->id != record->tree)
	{
		/*
		 * Without leaf hints and equality prefixes (handle.c), with which all others that change a tree open it: no
		 * other client is at work, and the cache is still empty.
		 */
		struct smart_tree_options options = {.id = record->tree,
											 .leaf_size = record->leaf_size,
											 .fixed_length = record->fixed_length};

		if (undoing->tree != NULL)
			smart_tree_close(undoing->tree);
		undoing->tree = NULL;
		undoing->id = record->tree;
		/* A tree that is not in the directory has nothing to remove. */
		if (smart_space_find_tree(&client->space, record->tree, &options.root))
			status = smart_tree_open(client->fabric, client->env, &client->services, &options, &undoing->tree);
	}
	if (status == SMART_OK && undoing->tree != NULL)
		status = smart_tree_remove(undoing->tree, record->key, record->key_length, &removed);
	undoing->removed += removed;
	return status;
}

smart_status
smart_undo_perform(struct smart_client *client, XLogRecPtr end, uint64 *removed)
{
	struct undoing undoing = {.client = client};
	smart_status status;

	smart_assert(segment == NULL && !smart_startup_is_done());
	smart_assert(end != InvalidXLogRecPtr);
	client->space.removing = true;
	status = smart_undo_each(client->compute->region, end, undo_one, &undoing);
	client->space.removing = false;
	if (undoing.tree != NULL)
		smart_tree_close(undoing.tree);
	if (status != SMART_OK)
		return status;
	smart_undo_clear(client->compute->region);
	*removed = undoing.removed;
	return SMART_OK;
}
