/*
 * undo.c
 *	  Undo records: written by inserts, used once after a crash.
 *
 * The record goes first, the entry second, in memory that outlives this process: a
 * process that is killed in between leaves a record of an entry that is not
 * there, whose removal does nothing.  Nor is a record taken back when
 * the entry turns out to be there already.  It was put there for the same row,
 * since VACUUM removes an entry before the row's place serves another; and if that
 * row's WAL is lost, the entry has to go, whoever added it (src/README, U3).
 *
 * The position is the end of the last record that this transaction has put into
 * WAL, which is behind the row's own and before the commit.  So if an entry is
 * removed although its row is there, the row's transaction did not commit.  Only
 * the last pass of CREATE INDEX CONCURRENTLY inserts for others; its position is
 * where WAL ends now, and if that is lost, so is the commit that would have made
 * the index valid.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "utils/rel.h"

#include "am/report.h"
#include "am/server.h"
#include "am/undo.h"
#include "am/wal.h"
#include "compute/undo.h"

/*
 * Segments (64 KiB) that there may be before an insert flushes WAL itself instead of making another; and the part
 * of the region that they may take.
 */
#define SEGMENTS_MANY       64
#define SEGMENTS_PER_CLIENT 2
#define REGION_PART         32

static struct smart_undo_segment *segment; /* this backend's, or NULL */

static unsigned int
segments_limit(const struct smart_compute *compute)
{
	uint64 room = compute->region->max_size / REGION_PART / SMART_KEPT_BYTES;
	uint64 wanted = SEGMENTS_MANY + SEGMENTS_PER_CLIENT * compute->epoch->claimed;

	return (unsigned int) Max(Min(wanted, room), 1);
}

/* Claims a segment whose records are durable. */
static pg_noinline void
take_segment(void)
{
	struct smart_client *client = smart_backend_client();
	const struct smart_region *region = client->compute->region;

	/* The WAL writer may make durable what is in the full one, while this process goes on with others. */
	if (segment != NULL)
		XLogSetAsyncXactLSN(segment->last);
	smart_undo_end();
	for (;;)
	{
		XLogRecPtr least = smart_undo_least(region);
		bool flushed = least != InvalidXLogRecPtr && least <= GetFlushRecPtr(NULL);
		smart_status status;

		/* Before a record is dropped. Not all that is flushed: that may end within a record of WAL, which a crash loses. */
		if (flushed)
			smart_wal_is_durable(least);
		segment = smart_undo_claim(region, client->number, flushed ? least : InvalidXLogRecPtr);
		if (segment != NULL)
			return;
		/* Somebody else was faster. */
		if (flushed)
			continue;
		status = smart_undo_claim_new(&client->space, client->number, segments_limit(client->compute), &segment);
		if (status == SMART_OK)
			return;
		if (least == InvalidXLogRecPtr)
			smart_report_status(status, NULL);
		XLogFlush(least);
	}
}

void
smart_undo_end(void)
{
	if (segment != NULL)
		smart_undo_release(segment);
	segment = NULL;
}

void
smart_undo_note(const struct smart_relation *self, Relation index, const uint8 *entry, int key_length, bool others)
{
	struct smart_undo undo = {.position = XactLastRecEnd,
							  .tree = self->meta.tree,
							  .leaf_size = (uint16) self->meta.leaf_size,
							  .fixed_length = (uint16) self->meta.fixed_length,
							  .key_length = (uint16) key_length,
							  .key = entry};

	if (!RelationNeedsWAL(index))
		return;
	if (unlikely(others || undo.position == InvalidXLogRecPtr))
		undo.position = smart_wal_end();
	while (unlikely(segment == NULL) || unlikely(!smart_undo_put(segment, &undo)))
		take_segment();
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

static void
close_tree(struct undoing *undoing)
{
	if (undoing->tree != NULL)
		smart_tree_close(undoing->tree);
	undoing->tree = NULL;
	undoing->id = 0;
}

/* A tree that is not in the directory has nothing to remove. */
static smart_status
open_tree(struct undoing *undoing, const struct smart_undo_record *record)
{
	struct smart_client *client = undoing->client;
	struct smart_tree_options options = {.id = record->tree,
										 .leaf_size = record->leaf_size,
										 .fixed_length = record->fixed_length};

	close_tree(undoing);
	undoing->id = record->tree;
	if (!smart_space_find_tree(&client->space, record->tree, &options.root))
		return SMART_OK;
	return smart_tree_open(client->fabric, client->env, &client->services, &options, &undoing->tree);
}

static smart_status
undo_one(void *argument, const struct smart_undo_record *record)
{
	struct undoing *undoing = argument;
	smart_status status = SMART_OK;
	bool removed = false;

	if (undoing->client->env->interrupted(undoing->client->env))
		return SMART_INTERRUPTED;
	if (undoing->id != record->tree)
		status = open_tree(undoing, record);
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

	client->space.removing = true;
	status = smart_undo_each(client->compute->region, end, undo_one, &undoing);
	client->space.removing = false;
	close_tree(&undoing);
	if (status != SMART_OK)
		return status;
	smart_undo_clear(client->compute->region);
	*removed = undoing.removed;
	return SMART_OK;
}
