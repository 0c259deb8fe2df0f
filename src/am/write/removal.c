/*
 * removal.c
 *	  Removing entries from a tree and its journal.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "am/codec/encode.h"
#include "am/compat.h"
#include "am/index/backend.h"
#include "am/index/relation.h"
#include "am/index/trees.h"
#include "am/journal/chain.h"
#include "am/journal/sorted_keys.h"
#include "am/journal/staging.h"
#include "am/recovery/undo.h"
#include "am/server/errands.h"
#include "am/server/settings.h"
#include "am/server/shared.h"
#include "am/server/validity.h"
#include "am/write/dead_tids.h"
#include "am/write/removal.h"
#include "base/assert.h"

/*
 * So many at a time, each time with a flush of WAL and no interrupt until all are gone: for some 50 ms, or, with memory
 * nodes, as long as so many round trips take.
 */
#define FULL_COUNT        50000
#define FULL_BYTES        (4 * 1024 * 1024)
#define REMOTE_FULL_COUNT 10000

#define ROOM_FIRST 256
#define AGAIN_MS   100 /* between two attempts to reach a memory node */

void
smart_removal_begin(struct smart_removal *removal, struct smart_relation *relation, Relation index)
{
	*removal = (struct smart_removal){.relation = relation, .index = index, .context = CurrentMemoryContext};
	smart_assert((relation->tree != NULL && !relation->lost) || relation->view != NULL);
}

/* Memory of size bytes with what old has in its first used ones, which is freed then; NULL: there is none. */
static void *
grow(const struct smart_removal *removal, void *old, Size used, Size size)
{
	smart_assert(old == NULL || used <= size);
	void *grown = MemoryContextAllocExtended(removal->context, size, MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);

	if (grown == NULL || old == NULL)
		return grown;
	memcpy(grown, old, used);
	pfree(old);
	return grown;
}

/* Makes room for one more key; false: there is no memory. */
static bool
reserve(struct smart_removal *removal, Size used, Size length)
{
	if (removal->start == NULL || removal->count == removal->room)
	{
		uint32 room = Max(2 * removal->room, ROOM_FIRST);
		uint32 *start = grow(removal, removal->start, ((Size) removal->count + 1) * sizeof(uint32),
							 ((Size) room + 1) * sizeof(uint32));

		if (start == NULL)
			return false;
		removal->start = start;
		removal->room = room;
	}
	if (used + length > removal->size)
	{
		Size size = Max(2 * removal->size, used + Max(length, SMART_KEY_MAX));
		uint8 *bytes = grow(removal, removal->bytes, used, size);

		if (bytes == NULL)
			return false;
		removal->bytes = bytes;
		removal->size = size;
	}
	smart_assert(removal->count < removal->room && used + length <= removal->size);
	return true;
}

void
smart_removal_add(struct smart_removal *removal, const uint8 *key, int key_length)
{
	uint32 begin = removal->count == 0 ? 0 : removal->start[removal->count];

	smart_assert(key_length > 0 && key_length <= SMART_KEY_MAX);
	if (!reserve(removal, begin, (Size) key_length))
	{
		removal->out_of_memory = true;
		return;
	}
	memcpy(removal->bytes + begin, key, (Size) key_length);
	removal->start[removal->count++] = begin;
	removal->start[removal->count] = begin + (uint32) key_length;
	smart_assert(removal->start[removal->count] <= removal->size);
}

void
smart_removal_end(struct smart_removal *removal)
{
	smart_assert(removal->count <= removal->room);
	if (removal->bytes != NULL)
		pfree(removal->bytes);
	if (removal->start != NULL)
		pfree(removal->start);
	removal->bytes = NULL;
	removal->start = NULL;
	removal->count = 0;
}

bool
smart_removal_is_full(const struct smart_removal *removal)
{
	uint32 most = smart_server.remote ? REMOTE_FULL_COUNT : FULL_COUNT;

	return removal->count >= most || (removal->count > 0 && removal->start[removal->count] >= FULL_BYTES);
}

/* ---- the tree ---- */

/* The keys in order, beside which the walk over the tree goes. */
struct victims
{
	struct smart_sorted_keys keys;
	const struct smart_codec *codec;
	const struct smart_dead_tids *dead;
};

/* smart_next_key_fn */
static bool
next_victim(void *argument, const uint8_t *from, size_t from_length, const uint8_t **key, size_t *key_length)
{
	struct victims *victims = argument;

	return smart_sorted_keys_next(&victims->keys, from, from_length, key, key_length);
}

/* smart_dead_fn: is it one of the keys? */
static bool
is_victim(void *argument, const uint8_t *entry, size_t length)
{
	struct victims *victims = argument;
	int key_length = smart_codec_key_length(victims->codec, entry, (int) length);

	return smart_sorted_keys_find(&victims->keys, entry, (size_t) key_length) != NULL;
}

/* smart_dead_fn: is it an entry of a dead row? */
static bool
is_of_dead_row(void *argument, const uint8_t *bytes, size_t length)
{
	const struct victims *victims = argument;

	return smart_removal_is_dead(victims->codec, victims->dead, bytes, length);
}

/* Removes the keys from the tree, a leaf at a time; also after a memory node has been away for a moment. */
static smart_status
remove_from_tree(struct smart_removal *removal, struct victims *victims)
{
	struct smart_space *space = &smart_backend_client()->space;
	TimestampTz end = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), smart_settings.fabric_timeout_ms);
	const struct smart_sorted_key *last = &victims->keys.keys[victims->keys.count - 1];
	const struct smart_victims those = {
		.dead = victims->dead == NULL ? is_victim : is_of_dead_row,
		.tail = victims->dead == NULL ? 0 : smart_removal_tail(victims->codec),
		.last = last->bytes,
		.last_length = last->length,
		.argument = victims,
	};
	bool was_removing = space->removing;
	smart_status status;

	smart_assert(victims->keys.count > 0 && removal->relation->tree != NULL);
	space->removing = true;
	for (;;)
	{
		uint64_t removed = 0;

		status = smart_tree_remove_many(removal->relation->tree, &those, next_victim, &removed);
		removal->removed += removed;
		if (status != SMART_UNREACHABLE || !smart_server.remote || GetCurrentTimestamp() >= end ||
			smart_tree_is_missed(removal->relation->meta.tree))
			break;
		pg_usleep(AGAIN_MS * 1000L);
	}
	space->removing = was_removing;
	smart_assert(status != SMART_INTERRUPTED);
	return status;
}

/* What the walk needs. */
static void
begin_walk(const struct smart_removal *removal, struct victims *victims)
{
	struct smart_sorted_key *keys = MemoryContextAlloc(removal->context, removal->count * sizeof(*keys));

	smart_assert(removal->count > 0 && !removal->out_of_memory);
	for (uint32 i = 0; i < removal->count; i++)
		keys[i] = (struct smart_sorted_key){.bytes = removal->bytes + removal->start[i],
											.length = removal->start[i + 1] - removal->start[i]};
	*victims = (struct victims){.keys = {.keys = keys, .count = removal->count},
								.codec = removal->relation->codec,
								.dead = removal->dead};
	smart_sorted_keys_sort(&victims->keys);
}

/* Packs the keys in the order in which they came. */
static void
pack(const struct smart_removal *removal, struct smart_batches *batches)
{
	smart_assert(removal->count > 0 && !removal->out_of_memory);
	smart_batches_begin(batches, removal->context);
	for (uint32 i = 0; i < removal->count; i++)
	{
		if (!smart_batches_add(batches, removal->bytes + removal->start[i],
							   (int) (removal->start[i + 1] - removal->start[i])))
			ereport(ERROR, errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory"),
					errdetail("Failed to pack removals for the journal."));
	}
}

/* ---- the order ---- */

bool
smart_removal_may_begin(const struct smart_relation *relation)
{
	uint64 note;

	return smart_space_get_note(&smart_backend_client()->space, relation->meta.tree, SMART_NOTE_REMOVAL, &note) &&
		   (note == 0 || note == smart_server_incarnation());
}

void
smart_removal_note(const struct smart_relation *relation, bool begins)
{
	/* A tree that another process gives up meanwhile stays given up. */
	uint64 mine = smart_server_incarnation();

	(void) smart_space_swap_note(&smart_backend_client()->space, relation->meta.tree, SMART_NOTE_REMOVAL,
								 begins ? 0 : mine, begins ? mine : 0);
}

void
smart_removal_give_up(const struct smart_relation *relation, Relation index)
{
	smart_tree_give_up(index, relation->meta.tree);
	smart_validity_notice(index);
}

/* Is anything to be removed? */
static bool
has_keys(const struct smart_removal *removal)
{
	if (removal->out_of_memory)
		ereport(ERROR, errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory"),
				errdetail("Failed to collect the keys of entries that are to be removed."));
	return removal->count > 0;
}

void
smart_removal_journal(struct smart_removal *removal)
{
	struct smart_batches batches;
	struct smart_meta meta;
	volatile uint32 done;

	if (!has_keys(removal))
		return;
	pack(removal, &batches);
	/* No add is to follow its own removal. */
	smart_staging_write_out(removal->index, &removal->relation->tail, true);
	smart_chain_remove(removal->index, &removal->relation->tail, &batches, &done);
	removal->removed += removal->count;
	removal->count = 0;
	smart_meta_read_again(removal->index, &meta);
	if (smart_relation_is_carried(removal->index, &meta))
		smart_errand_request(SMART_ERRAND_CARRY, smart_relation_database(removal->index),
							 RelationGetRelid(removal->index));
	smart_batches_end(&batches);
}

bool
smart_removal_perform(struct smart_removal *removal)
{
	struct smart_batches batches;
	volatile uint32 done = 0;
	volatile smart_status status = SMART_OK;
	struct victims victims;

	if (!has_keys(removal))
		return true;
	smart_assert(removal->relation->meta.journal_state != SMART_JOURNAL_NONE);
	/* What may fail comes first. */
	begin_walk(removal, &victims);
	pack(removal, &batches);
	HOLD_INTERRUPTS();
	smart_removal_note(removal->relation, true);
	PG_TRY();
	{
		smart_staging_write_out(removal->index, &removal->relation->tail, true);
		smart_chain_remove(removal->index, &removal->relation->tail, &batches, &done);
		smart_wal_flush();
		status = remove_from_tree(removal, &victims);
	}
	PG_CATCH();
	{
		/* An error has ended the hold.  Nothing has happened if nothing is in the journal. */
		HOLD_INTERRUPTS();
		if (done == 0)
			smart_removal_note(removal->relation, false);
		else
			smart_removal_give_up(removal->relation, removal->index);
		RESUME_INTERRUPTS();
		PG_RE_THROW();
	}
	PG_END_TRY();
	if (status == SMART_OK)
		smart_removal_note(removal->relation, false);
	else
		smart_removal_give_up(removal->relation, removal->index);
	RESUME_INTERRUPTS();
	removal->count = 0;
	smart_batches_end(&batches);
	pfree(victims.keys.keys);
	return status == SMART_OK;
}
