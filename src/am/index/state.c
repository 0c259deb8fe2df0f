/*
 * state.c
 *	  What is the tree of an index now?  The metapage's copy in the relcache, and whether the tree that it names is the content of the
 *	  index, can be had, or is left to the pages of the journal.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"

#include "am/compat.h"
#include "am/index/backend.h"
#include "am/index/options.h"
#include "am/index/state.h"
#include "am/index/trees.h"
#include "am/server/rebuild_table.h"
#include "am/server/settings.h"
#include "am/server/shared.h"
#include "am/server/tree_changes.h"
#include "base/assert.h"

#define PAGES_TO_GROW    32 /* of a journal, that a small index is expected to gain soon */
#define BUFFERS_PER_PAGE 8  /* shared ones, where indexes that write back are read from their pages */
#define ROOM_PER_BYTE    4 /* of the journal that a tree is loaded from: twice as much as it takes at most, as a rule */

/* ---- the copy in the relcache ---- */

/* On a standby: puts the tree that this server has loaded in the place of the primary's, if there is one. */
static void
name_loaded(Relation index, struct smart_meta *meta)
{
	struct smart_tree_info info;

	meta->region = 0;
	if (meta->tree == 0 || !smart_server_available() || !smart_tree_of_journal(index, meta, &info))
		return;
	meta->tree = info.id;
	meta->region = smart_meta_region();
	meta->leaf_size = info.owner.leaf_size;
	meta->database = info.owner.database;
	meta->state = SMART_META_READY;
	smart_assert(meta->tree != 0 && meta->region != 0);
}

/*
 * While an index is being moved it goes on with its older tree, whatever its metapage says: all processes come to the new one
 * with the same announcement.
 */
static void
stay_until_moved(Relation index, struct smart_amcache *cache)
{
	struct smart_rebuild move;

	cache->also = 0;
	if (likely(!smart_rebuild_find_move(smart_relation_database(index), RelationGetRelid(index), &move)))
		return;
	if (cache->meta.tree == move.base)
	{
		cache->meta.tree = move.older;
		cache->meta.leaf_size = move.older_leaf_size;
	}
	if (cache->meta.tree == move.older)
		cache->also = move.tree;
}

static void
read_meta(Relation index, struct smart_amcache *cache)
{
	/* What is seen of a move counts if it is of the same number as the metapage (src/README, J11). */
	do
	{
		cache->changes = smart_changes();
		smart_meta_read(index, &cache->meta);
		stay_until_moved(index, cache);
	} while (unlikely(cache->changes != smart_changes()));
	cache->standby = RecoveryInProgress();
	cache->fits = smart_meta_fits(&cache->meta, smart_amcache_codec(cache));
	cache->whole = false;
	if (cache->standby)
		name_loaded(index, &cache->meta);
}

/* What the relcache keeps of an index, up to date. */
struct smart_amcache *
smart_state_amcache(Relation index)
{
	struct smart_amcache *cache = index->rd_amcache;

	/* The metapage is read below if trees have changed. */
	smart_assert(!smart_meta_is_locked());
	if (cache != NULL && !smart_codec_current(smart_amcache_codec(cache)))
		smart_meta_forget(index);
	/* Asking may have taken it away, too. */
	cache = index->rd_amcache;
	if (cache == NULL)
	{
		struct smart_codec *codec = smart_codec_make(index, CurrentMemoryContext);
		Size size = offsetof(struct smart_amcache, codec) + codec->size;
		struct smart_amcache *made = palloc(size);

		/* It stays only if the metapage can be read, so it is made in the caller's memory first. */
		memcpy(made->codec, codec, codec->size);
		pfree(codec);
		read_meta(index, made);
		cache = MemoryContextAlloc(index->rd_indexcxt, size);
		memcpy(cache, made, size);
		pfree(made);
		index->rd_amcache = cache;
	}
	else if (cache->meta.tree == 0 || cache->changes != smart_changes() ||
			 (cache->standby && (!cache->whole || !RecoveryInProgress())))
		read_meta(index, cache); /* any insert may have named a tree since, and a standby is not told of changes */
	smart_assert(index->rd_amcache == cache);
	return cache;
}

const struct smart_codec *
smart_relation_codec(Relation index)
{
	return smart_amcache_codec(smart_state_amcache(index));
}

/* ---- is the tree the content of the index? ---- */

/* The same in recovery, of an index that is not empty. */
static enum smart_loss
find_standby_loss(const struct smart_amcache *cache)
{
	const struct smart_meta *meta = &cache->meta;

	smart_assert(cache->standby && meta->tree != 0);
	if (meta->journal_state == SMART_JOURNAL_NONE)
		return SMART_LOSS_NOT_REPLICATED;
	if (meta->journal_state == SMART_JOURNAL_STALE)
		return SMART_LOSS_JOURNAL_STALE;
	if (!cache->fits)
		return SMART_LOSS_OTHER_ENTRIES;
	if (meta->region == 0)
		return SMART_LOSS_NOT_LOADED;
	/* No more is asked: who is about to use it looks at its notes (src/am/journal/follow.c). */
	return smart_tree_is_missed(meta->tree) ? SMART_LOSS_OUT_OF_REACH : SMART_LOSS_NONE;
}

/* Why the tree that a metapage names is not the content of its index. */
static enum smart_loss
find_loss(Relation index, const struct smart_amcache *cache)
{
	const struct smart_meta *meta = &cache->meta;
	struct smart_space *space;
	fabric_address root;
	uint64 removal;

	if (meta->tree == 0)
		return SMART_LOSS_NONE;
	if (cache->standby)
		return find_standby_loss(cache);
	if (meta->tree == SMART_TREE_NOWHERE && meta->state == SMART_META_READY)
		return cache->fits ? SMART_LOSS_NO_TREE : SMART_LOSS_OTHER_ENTRIES;
	if (meta->state == SMART_META_STALE)
		return SMART_LOSS_STALE;
	if (meta->database != smart_relation_database(index))
		return SMART_LOSS_COPIED;
	if (!smart_meta_tree_is_here(index, meta))
		return SMART_LOSS_ELSEWHERE;
	space = &smart_backend_client()->space;
	if (smart_space_tree_lost(space, meta->tree))
		return SMART_LOSS_NODE_LOST;
	if (!smart_space_find_tree(space, meta->tree, &root) ||
		!smart_space_get_note(space, meta->tree, SMART_NOTE_REMOVAL, &removal))
		return SMART_LOSS_NOT_THERE;
	if (removal == SMART_GIVEN_UP)
		return SMART_LOSS_GIVEN_UP;
	if (removal == smart_tree_behind_word())
		return SMART_LOSS_LEFT_BEHIND;
	if (removal != 0 && removal != smart_server_incarnation())
		return SMART_LOSS_REMOVAL;
	if (!cache->fits)
		return SMART_LOSS_OTHER_ENTRIES;
	/* It may come back; without a journal there is nothing else to be had but an error. */
	if (smart_meta_is_loadable(meta) && smart_tree_is_missed(meta->tree))
		return SMART_LOSS_OUT_OF_REACH;
	return SMART_LOSS_NONE;
}

/* As find_loss(); a whole tree stays so until something changes. */
enum smart_loss
smart_state_loss(Relation index, struct smart_amcache *cache)
{
	enum smart_loss loss;

	if (cache->whole && cache->changes == smart_changes())
		return SMART_LOSS_NONE;
	loss = find_loss(index, cache);
	cache->whole = loss == SMART_LOSS_NONE && cache->meta.tree != 0 && cache->changes == smart_changes();
	return loss;
}

enum smart_loss
smart_relation_loss(Relation index)
{
	return smart_state_loss(index, smart_state_amcache(index));
}

enum smart_loss
smart_relation_absence(Relation index)
{
	struct smart_amcache *cache = smart_state_amcache(index);
	enum smart_loss loss = smart_state_loss(index, cache);

	if (loss == SMART_LOSS_OUT_OF_REACH)
		return loss;
	return loss == SMART_LOSS_NONE && smart_tree_is_missed(cache->meta.tree) ? SMART_LOSS_OUT_OF_REACH
																			 : SMART_LOSS_NONE;
}

bool
smart_relation_is_loadable(Relation index)
{
	struct smart_amcache *cache = smart_state_amcache(index);

	return smart_state_loss(index, cache) != SMART_LOSS_NONE && smart_meta_is_loadable(&cache->meta) && cache->fits;
}

bool
smart_relation_writes_back(Relation index)
{
	return smart_server.remote && smart_settings.write_back && smart_options_resident(index) == SMART_RESIDENT_AUTO &&
		   smart_meta_wants_journal(index) && !RecoveryInProgress();
}

/* The same, of an index that is lost. */
bool
smart_state_can_answer(Relation index, const struct smart_amcache *cache)
{
	return (smart_settings.answer_from_pages || smart_options_resident(index) == SMART_RESIDENT_NEVER ||
			smart_relation_writes_back(index)) &&
		   smart_meta_is_loadable(&cache->meta) && cache->fits;
}

/* Has it no tree that can be read now? */
bool
smart_state_has_no_tree(Relation index, struct smart_amcache *cache)
{
	return smart_state_loss(index, cache) != SMART_LOSS_NONE || unlikely(smart_tree_is_away(cache->meta.tree));
}

bool
smart_relation_can_answer(Relation index)
{
	struct smart_amcache *cache;

	if (!smart_server_available())
		return false;
	cache = smart_state_amcache(index);
	return smart_state_has_no_tree(index, cache) && smart_state_can_answer(index, cache);
}

/* The same, of an index that is lost. */
bool
smart_state_is_about_to_return(const struct smart_amcache *cache)
{
	struct smart_chain_place place;
	uint32 losses;

	return unlikely(smart_tree_is_away(cache->meta.tree)) && !smart_tree_is_missed(cache->meta.tree) &&
		   smart_tree_is_behind(cache->meta.tree, &place, &losses);
}

bool
smart_relation_reads_nodes(Relation index)
{
	struct smart_amcache *cache;

	if (!smart_server.remote || !smart_server_available())
		return smart_server.remote;
	cache = smart_state_amcache(index);
	return !smart_state_has_no_tree(index, cache) || !smart_state_can_answer(index, cache) ||
		   smart_relation_is_carried(index, &cache->meta);
}

bool
smart_relation_is_about_to_return(Relation index)
{
	return smart_server_available() && smart_state_is_about_to_return(smart_state_amcache(index));
}

bool
smart_relation_could_answer(Relation index)
{
	return smart_server_available() && smart_state_can_answer(index, smart_state_amcache(index));
}

static uint64
count_pages(const struct smart_meta *meta)
{
	return meta->run_pages + (meta->tail_serial - meta->cut.serial);
}

/* Is there as much room for a tree as its journal has pages, times this? */
static bool
has_room(const struct smart_meta *meta, uint64 times)
{
	smart_assert(times > 0);
	return smart_tree_has_room(times * (count_pages(meta) + PAGES_TO_GROW) * BLCKSZ);
}

/*
 * An index that gave up its tree for lack of room needs much more room to get one again; otherwise it would give it up again soon.  A
 * standby only rules out attempts to load that cannot succeed.
 */
static bool
lacks_room(const struct smart_amcache *cache)
{
	if (cache->meta.tree == SMART_TREE_NOWHERE)
		return !has_room(&cache->meta, ROOM_PER_BYTE);
	return cache->standby && cache->meta.region == 0 && !has_room(&cache->meta, 1);
}

bool
smart_state_is_to_answer(Relation index, struct smart_amcache *cache)
{
	if (!smart_state_can_answer(index, cache))
		return false;
	if (smart_relation_writes_back(index))
		return true;
	switch (smart_options_resident(index))
	{
		case SMART_RESIDENT_NEVER:
			return true;
		case SMART_RESIDENT_AUTO:
			return lacks_room(cache);
		default:
			return false;
	}
}

bool
smart_relation_is_carried(Relation index, const struct smart_meta *meta)
{
	uint64 above = smart_settings.carry_above_mb < 0 ? (uint64) NBuffers / BUFFERS_PER_PAGE
													 : (uint64) smart_settings.carry_above_mb * (1024 * 1024 / BLCKSZ);

	return smart_relation_writes_back(index) && smart_meta_is_loadable(meta) && meta->tree != 0 &&
		   count_pages(meta) >= above;
}

/* The same, of an index that is lost. */
bool
smart_state_wants_follower(Relation index, const struct smart_amcache *cache)
{
	struct smart_tree_info info;

	if (!smart_state_can_answer(index, cache) || !smart_relation_is_carried(index, &cache->meta) ||
		smart_server_recovers())
		return false;
	if (smart_tree_of_journal(index, &cache->meta, &info) && !smart_tree_is_missed(info.id) &&
		!smart_tree_has_to_move(&info))
		return false;
	return has_room(&cache->meta, 1);
}

bool
smart_relation_wants_follower(Relation index)
{
	return smart_server_available() && smart_state_wants_follower(index, smart_state_amcache(index));
}

bool
smart_relation_may_answer(Relation index)
{
	return smart_options_resident(index) != SMART_RESIDENT_ALWAYS &&
		   smart_state_can_answer(index, smart_state_amcache(index));
}

bool
smart_relation_is_to_answer(Relation index)
{
	return smart_server_available() && smart_state_is_to_answer(index, smart_state_amcache(index));
}

bool
smart_relation_mark_stale(Relation index)
{
	uint64 tree = smart_state_amcache(index)->meta.tree;

	return tree == 0 || smart_meta_mark_stale(index, tree);
}
