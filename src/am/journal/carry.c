/*
 * carry.c
 *	  The follower of an index that writes back.
 *
 * It is a standby's tree (follow.c), but of a primary: the chain that it follows is still being written.  So WAL is flushed before
 * an operation is carried out there (apply.c): the follower outlives a crash, and must have nothing that the chain then lacks.
 */
#include "postgres.h"

#include "storage/ipc.h"
#include "utils/rel.h"

#include "am/codec/encode.h"
#include "am/index/backend.h"
#include "am/index/trees.h"
#include "am/journal/apply.h"
#include "am/journal/carry.h"
#include "am/journal/follow.h"
#include "am/journal/page.h"
#include "am/journal/purge.h"
#include "am/journal/staging.h"
#include "am/server/shared.h"
#include "am/server/validity.h"
#include "base/assert.h"

/*
 * Has the tree all that this metapage's run has?  Serial and place are two words, which may be read while they are changed; then the
 * block is that of another page.
 */
static bool
has_run(const struct smart_tree_info *info, const struct smart_meta *meta)
{
	const struct smart_chain_place *cut = &meta->cut;
	const struct smart_chain_place place = {.serial = info->note[SMART_NOTE_SERIAL],
											.block = (BlockNumber) (info->note[SMART_NOTE_PLACE] >> 32),
											.offset = (uint32) info->note[SMART_NOTE_PLACE]};

	/* Of a chain that was not there yet it lacks nothing before its first operation. */
	if (place.serial == 0)
		return cut->serial == 0 || (cut->serial == 1 && cut->offset == SMART_PAGE_BEGIN);
	return smart_place_has_come_to(&place, cut);
}

/* The metapage as it would name the follower; false: there is none. */
static bool
find(Relation index, const struct smart_meta *meta, struct smart_tree_info *info, struct smart_meta *own)
{
	if (!smart_relation_is_carried(index, meta) || !smart_tree_of_journal(index, meta, info))
		return false;
	*own = *meta;
	own->tree = info->id;
	own->region = smart_meta_region();
	own->leaf_size = info->owner.leaf_size;
	own->database = info->owner.database;
	smart_assert(own->tree != 0 && own->tree != SMART_TREE_NOWHERE);
	return true;
}

uint64
smart_carry_tree(Relation index)
{
	struct smart_tree_info info;
	struct smart_meta meta;
	struct smart_meta own;

	smart_meta_read(index, &meta);
	return find(index, &meta, &info, &own) ? own.tree : 0;
}

struct smart_relation *
smart_carry_open(Relation index, const struct smart_codec *codec, const struct smart_meta *meta)
{
	struct smart_tree_info info;
	struct smart_meta own;

	if (!find(index, meta, &info, &own) || smart_tree_is_away(own.tree) || !has_run(&info, meta))
		return NULL;
	return smart_relation_open_tree(index, codec, &own);
}

bool
smart_carry_is_usable(const struct smart_relation *follower, const struct smart_meta *meta)
{
	uint64 tree = follower->meta.tree;
	struct smart_tree_info info;

	smart_assert(tree != 0 && tree != SMART_TREE_NOWHERE);
	return smart_space_tree_info(smart_tree_space(tree), tree, &info) && !info.lost &&
		   info.note[SMART_NOTE_REMOVAL] == 0 && info.note[SMART_NOTE_LOSSES] == meta->losses && has_run(&info, meta) &&
		   !smart_tree_is_away(tree);
}

static bool
has_all(Relation index, const struct smart_meta *meta, uint64 tree)
{
	struct smart_chain_place place;
	struct smart_chain_place end;

	smart_assert(tree != 0 && smart_meta_is_loadable(meta));
	return smart_follow_place(tree, &place) && smart_follow_is_at_end(index, meta, &place, &end);
}

bool
smart_carry_has_all(Relation index, const struct smart_relation *follower)
{
	struct smart_meta meta;

	smart_meta_read_again(index, &meta);
	return smart_meta_is_loadable(&meta) && meta.journal == follower->meta.journal &&
		   smart_carry_is_usable(follower, &meta) && has_all(index, &meta, follower->meta.tree);
}

/* ---- carrying ---- */

static void
unlock_after_error(int code, Datum tree)
{
	smart_follow_unlock((uint64) tree);
}

static enum smart_carried
carry(Relation index, const struct smart_meta *meta, const struct smart_meta *own, const struct smart_way *way)
{
	struct smart_codec *codec = smart_codec_make(index, CurrentMemoryContext);
	struct smart_relation *self = smart_relation_open_tree(index, codec, own);
	volatile bool done = false;

	smart_assert(own->tree != 0 && own->journal == meta->journal);
	if (self == NULL)
		return SMART_CARRIED_NONE;
	self->codec = codec;
	smart_follow_lock(own->tree);
	PG_ENSURE_ERROR_CLEANUP(unlock_after_error, (Datum) own->tree);
	{
		done = smart_follow_apply(index, self, SMART_TARGET_SPARE, way);
	}
	PG_END_ENSURE_ERROR_CLEANUP(unlock_after_error, (Datum) own->tree);
	smart_follow_unlock(own->tree);
	if (!done)
		return SMART_CARRIED_NONE;
	if (way != NULL && way->is_awaited(way->argument))
	{
		elog(DEBUG1, "carrying index \"%s\" gives way to others", RelationGetRelationName(index));
		return SMART_CARRIED_LATER;
	}
	return smart_purge(index, meta, own->tree) ? SMART_CARRIED_HURRY : SMART_CARRIED_SOME;
}

enum smart_carried
smart_carry(Relation index, const struct smart_way *way)
{
	struct smart_tree_info info;
	struct smart_meta meta;
	struct smart_meta own;

	smart_meta_read(index, &meta);
	if (find(index, &meta, &info, &own))
	{
		if (has_all(index, &meta, own.tree))
			return smart_purge(index, &meta, own.tree) ? SMART_CARRIED_HURRY : SMART_CARRIED_ALL;
		return smart_tree_is_away(own.tree) ? SMART_CARRIED_LATER : carry(index, &meta, &own, way);
	}
	if (!smart_relation_is_carried(index, &meta))
		return SMART_CARRIED_NONE;
	if (!smart_server_recovers())
		smart_validity_notice(index);
	return SMART_CARRIED_LATER;
}

bool
smart_carry_all(Relation index)
{
	struct smart_tail tail = {0};
	enum smart_carried carried;

	if (!smart_relation_writes_back(index))
		return false;
	smart_staging_write_out(index, &tail, true);
	carried = smart_carry(index, NULL);
	return carried == SMART_CARRIED_SOME || carried == SMART_CARRIED_HURRY || carried == SMART_CARRIED_ALL;
}
