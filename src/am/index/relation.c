/*
 * relation.c
 *	  The open index: its metapage's copy, its codec and its tree.
 *
 * A user has a reference to the tree's handle for the life of a memory context, so that it ends after errors too.
 */
#include "postgres.h"

#include "access/amapi.h"
#include "access/genam.h"
#include "access/relation.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"

#include "am/compat.h"
#include "am/index/backend.h"
#include "am/index/handle.h"
#include "am/index/options.h"
#include "am/index/relation.h"
#include "am/index/trees.h"
#include "am/nodes/locate.h"
#include "am/server/rebuild_table.h"
#include "am/server/report.h"
#include "am/server/settings.h"
#include "am/server/shared.h"
#include "am/server/validity.h"

#define PAGES_TO_GROW    32 /* of a journal, that a small index is expected to gain soon */
#define BUFFERS_PER_PAGE 8  /* shared ones, where indexes that write back are read from their pages */
#define ROOM_PER_BYTE    4 /* of the journal that a tree is loaded from: twice as much as it takes at most, as a rule */

/* ---- PostgreSQL's side of it ---- */

bool
smart_is_our_index(Relation index)
{
	return (index->rd_rel->relkind == RELKIND_INDEX || index->rd_rel->relkind == RELKIND_PARTITIONED_INDEX) &&
		   index->rd_indam->amoptions == smart_am_options;
}

Relation
smart_index_try_open(Oid oid)
{
	Relation index = try_relation_open(oid, AccessShareLock);

	if (index == NULL)
		return NULL;
	if (!smart_is_our_index(index))
		ereport(ERROR, errcode(ERRCODE_WRONG_OBJECT_TYPE),
				errmsg("\"%s\" is not an index of access method \"smart\"", RelationGetRelationName(index)));
	if (index->rd_rel->relkind == RELKIND_PARTITIONED_INDEX)
		ereport(ERROR, errcode(ERRCODE_WRONG_OBJECT_TYPE),
				errmsg("\"%s\" is an index of a partitioned table", RelationGetRelationName(index)),
				errhint("Each partition has an index of its own: pg_partition_tree() shows their names."));
	if (RELATION_IS_OTHER_TEMP(index))
		ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("cannot look at indexes of other sessions' temporary tables"));
	return index;
}

Relation
smart_index_open(Oid oid)
{
	Relation index = smart_index_try_open(oid);

	if (index == NULL)
		ereport(ERROR, errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("there is no index with OID %u", oid));
	if (!index->rd_index->indisvalid)
		ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("index \"%s\" is not valid", RelationGetRelationName(index)),
				errdetail("Its concurrent build runs or has failed."), smart_hint_reindex(index));
	return index;
}

/* ---- the copy in the relcache ---- */

/* What the relcache keeps for us: one chunk in rd_indexcxt, the codec at the end. */
struct relation_cache
{
	struct smart_meta meta;
	bool fits;                           /* the entries were made as codec makes them */
	bool whole;                          /* the tree was found to be the content of the index */
	bool standby;                        /* read in recovery: meta names the tree that this server has loaded */
	uint32 changes;                      /* when meta was read */
	uint64 also;                         /* the tree that the index moves to, once that takes adds, too; or 0 */
	uint64 codec[FLEXIBLE_ARRAY_MEMBER]; /* aligned as a struct smart_codec needs it */
};

static struct smart_codec *
cached_codec(struct relation_cache *cache)
{
	return (struct smart_codec *) cache->codec;
}

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
}

/*
 * While an index is being moved it goes on with its older tree, whatever its metapage says: all processes come to the new one
 * with the same announcement.
 */
static void
stay_until_moved(Relation index, struct relation_cache *cache)
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
read_meta(Relation index, struct relation_cache *cache)
{
	/* What is seen of a move counts if it is of the same number as the metapage (src/README, J11). */
	do
	{
		cache->changes = smart_changes();
		smart_meta_read(index, &cache->meta);
		stay_until_moved(index, cache);
	} while (unlikely(cache->changes != smart_changes()));
	cache->standby = RecoveryInProgress();
	cache->fits = smart_meta_fits(&cache->meta, cached_codec(cache));
	cache->whole = false;
	if (cache->standby)
		name_loaded(index, &cache->meta);
}

/* What the relcache keeps of an index, up to date. */
static struct relation_cache *
get_cache(Relation index)
{
	struct relation_cache *cache = index->rd_amcache;

	if (cache != NULL && !smart_codec_current(cached_codec(cache)))
		smart_meta_forget(index);
	/* Asking may have taken it away, too. */
	cache = index->rd_amcache;
	if (cache == NULL)
	{
		struct smart_codec *codec = smart_codec_make(index, CurrentMemoryContext);
		Size size = offsetof(struct relation_cache, codec) + codec->size;
		struct relation_cache *made = palloc(size);

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
	return cache;
}

const struct smart_codec *
smart_relation_codec(Relation index)
{
	return cached_codec(get_cache(index));
}

/* ---- is the tree the content of the index? ---- */

#define OUT_OF_REACH  "A memory node that holds a part of it is away."
#define LEFT_BEHIND   "Rows were inserted while a memory node that holds a part of it was away."
#define OTHER_ENTRIES "Its entries were made for other operator classes, collations or row types."

/* The same in recovery, of an index that is not empty. */
static const char *
find_standby_loss(const struct relation_cache *cache)
{
	const struct smart_meta *meta = &cache->meta;

	if (meta->journal_state == SMART_JOURNAL_NONE)
		return "It is not logged, and so not replicated to standby servers.";
	if (meta->journal_state == SMART_JOURNAL_STALE)
		return "Its journal is not whole, and has to be written anew on the primary server.";
	if (!cache->fits)
		return OTHER_ENTRIES;
	if (meta->region == 0)
		return "It has not been loaded on this standby server yet.";
	/* No more is asked: who is about to use it looks at its notes (src/am/journal/follow.c). */
	return smart_tree_is_missed(meta->tree) ? OUT_OF_REACH : NULL;
}

/* Why the tree that a metapage names is not the content of its index: a sentence, NULL if it is the content. */
static const char *
find_loss(Relation index, const struct relation_cache *cache)
{
	const struct smart_meta *meta = &cache->meta;
	struct smart_space *space;
	fabric_address root;
	uint64 removal;

	if (meta->tree == 0)
		return NULL;
	if (cache->standby)
		return find_standby_loss(cache);
	if (meta->tree == SMART_TREE_NOWHERE && meta->state == SMART_META_READY)
		return cache->fits ? "It has no tree." : OTHER_ENTRIES;
	if (meta->state == SMART_META_STALE)
		return "Rows were inserted or removed while its content could not be reached.";
	if (meta->database != smart_relation_database(index))
		return "The index was copied from another database, and its content cannot be.";
	if (!smart_meta_tree_is_here(index, meta))
		return "The memory node was made anew after the index had been built, for example because the server had not "
			   "been shut down cleanly, or its settings have the indexes elsewhere now.";
	space = &smart_backend_client()->space;
	if (smart_space_tree_lost(space, meta->tree))
		return "A memory node that held a part of it has lost its memory, or was given up.";
	if (!smart_space_find_tree(space, meta->tree, &root) ||
		!smart_space_get_note(space, meta->tree, SMART_NOTE_REMOVAL, &removal))
		return "The memory node does not have it.";
	if (removal == SMART_GIVEN_UP)
		return "It was given up.";
	if (removal == smart_tree_behind_word())
		return LEFT_BEHIND;
	if (removal != 0 && removal != smart_server_incarnation())
		return "The removal of entries was interrupted.";
	if (!cache->fits)
		return OTHER_ENTRIES;
	/* It may come back; without a journal there is nothing else to be had but an error. */
	if (smart_meta_is_loadable(meta) && smart_tree_is_missed(meta->tree))
		return OUT_OF_REACH;
	return NULL;
}

static bool
is_out_of_reach(const char *loss)
{
	return loss != NULL && strcmp(loss, OUT_OF_REACH) == 0;
}

/* As find_loss(); a whole tree stays so until something changes. */
static const char *
cached_loss(Relation index, struct relation_cache *cache)
{
	const char *loss;

	if (cache->whole && cache->changes == smart_changes())
		return NULL;
	loss = find_loss(index, cache);
	cache->whole = loss == NULL && cache->meta.tree != 0 && cache->changes == smart_changes();
	return loss;
}

static int
hint_lost(Relation index)
{
	const struct relation_cache *cache = index->rd_amcache;
	struct smart_rebuild rebuild;

	if (RecoveryInProgress())
		return errhint("Statements that are planned from now on do without the index until it is loaded.");
	if (smart_rebuild_find(smart_relation_database(index), RelationGetRelid(index), &rebuild) &&
		rebuild.state == SMART_REBUILD_RUNNING)
		return errhint("It is being %s: try again later. pg_stat_progress_create_index shows how far that is.",
					   rebuild.side == 0 ? "loaded" : "rebuilt");
	if (cache != NULL && smart_meta_is_loadable(&cache->meta) && cache->fits)
		return errhint(
			"It is going to be loaded in the background: try again later. The view smart_index_state shows what "
			"became of it.");
	if (smart_validity_rebuilds(index))
		return errhint("It is going to be rebuilt in the background: try again later, or rebuild it with REINDEX. "
					   "The view smart_index_state shows what became of it.");
	return smart_hint_reindex(index);
}

/* Raises the error that an index is lost, and registers it for a rebuild. */
static __attribute__((noreturn)) void
report_loss(Relation index, const char *loss)
{
	if (!RecoveryInProgress() || smart_relation_is_loadable(index))
		smart_validity_notice(index);
	if (is_out_of_reach(loss))
		ereport(ERROR, errcode(ERRCODE_CONNECTION_FAILURE),
				errmsg("the content of index \"%s\" cannot be reached", RelationGetRelationName(index)),
				errdetail_internal("%s", loss), hint_lost(index));
	if (smart_relation_is_to_answer(index))
		ereport(
			ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("index \"%s\" has no tree", RelationGetRelationName(index)),
			errdetail("The pages of its journal answer."),
			errhint(
				"smart_index_pages() shows what they hold. ALTER INDEX ... SET (resident = always) brings a tree back."));
	ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			errmsg("the content of index \"%s\" is lost", RelationGetRelationName(index)),
			errdetail_internal("%s", loss), hint_lost(index));
}

const char *
smart_relation_loss(Relation index)
{
	return cached_loss(index, get_cache(index));
}

const char *
smart_relation_absence(Relation index)
{
	struct relation_cache *cache = get_cache(index);
	const char *loss = cached_loss(index, cache);

	if (is_out_of_reach(loss))
		return loss;
	return loss == NULL && smart_tree_is_missed(cache->meta.tree) ? OUT_OF_REACH : NULL;
}

bool
smart_relation_is_loadable(Relation index)
{
	struct relation_cache *cache = get_cache(index);

	return cached_loss(index, cache) != NULL && smart_meta_is_loadable(&cache->meta) && cache->fits;
}

bool
smart_relation_writes_back(Relation index)
{
	return smart_server.remote && smart_settings.write_back && smart_options_resident(index) == SMART_RESIDENT_AUTO &&
		   smart_meta_wants_journal(index) && !RecoveryInProgress();
}

/* The same, of an index that is lost. */
static bool
can_answer(Relation index, const struct relation_cache *cache)
{
	return (smart_settings.answer_from_pages || smart_options_resident(index) == SMART_RESIDENT_NEVER ||
			smart_relation_writes_back(index)) &&
		   smart_meta_is_loadable(&cache->meta) && cache->fits;
}

/* Has it no tree that can be read now? */
static bool
wants_answer(Relation index, struct relation_cache *cache)
{
	return cached_loss(index, cache) != NULL || unlikely(smart_tree_is_away(cache->meta.tree));
}

bool
smart_relation_can_answer(Relation index)
{
	struct relation_cache *cache;

	if (!smart_server_available())
		return false;
	cache = get_cache(index);
	return wants_answer(index, cache) && can_answer(index, cache);
}

/* The same, of an index that is lost. */
static bool
is_about_to_return(const struct relation_cache *cache)
{
	struct smart_chain_place place;
	uint32 losses;

	return unlikely(smart_tree_is_away(cache->meta.tree)) && !smart_tree_is_missed(cache->meta.tree) &&
		   smart_tree_is_behind(cache->meta.tree, &place, &losses);
}

bool
smart_relation_reads_nodes(Relation index)
{
	struct relation_cache *cache;

	if (!smart_server.remote || !smart_server_available())
		return smart_server.remote;
	cache = get_cache(index);
	return !wants_answer(index, cache) || !can_answer(index, cache) || smart_relation_is_carried(index, &cache->meta);
}

bool
smart_relation_is_about_to_return(Relation index)
{
	return smart_server_available() && is_about_to_return(get_cache(index));
}

bool
smart_relation_could_answer(Relation index)
{
	return smart_server_available() && can_answer(index, get_cache(index));
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
	return smart_tree_has_room(times * (count_pages(meta) + PAGES_TO_GROW) * BLCKSZ);
}

/*
 * An index that gave up its tree for lack of room needs much more room to get one again; otherwise it would give it up again soon.  A
 * standby only rules out attempts to load that cannot succeed.
 */
static bool
lacks_room(const struct relation_cache *cache)
{
	if (cache->meta.tree == SMART_TREE_NOWHERE)
		return !has_room(&cache->meta, ROOM_PER_BYTE);
	return cache->standby && cache->meta.region == 0 && !has_room(&cache->meta, 1);
}

static bool
is_to_answer(Relation index, struct relation_cache *cache)
{
	if (!can_answer(index, cache))
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
static bool
wants_follower(Relation index, const struct relation_cache *cache)
{
	struct smart_tree_info info;

	if (!can_answer(index, cache) || !smart_relation_is_carried(index, &cache->meta) || smart_server_recovers())
		return false;
	if (smart_tree_of_journal(index, &cache->meta, &info) && !smart_tree_is_missed(info.id) &&
		!smart_tree_has_to_move(&info))
		return false;
	return has_room(&cache->meta, 1);
}

bool
smart_relation_wants_follower(Relation index)
{
	return smart_server_available() && wants_follower(index, get_cache(index));
}

bool
smart_relation_may_answer(Relation index)
{
	return smart_options_resident(index) != SMART_RESIDENT_ALWAYS && can_answer(index, get_cache(index));
}

bool
smart_relation_is_to_answer(Relation index)
{
	return smart_server_available() && is_to_answer(index, get_cache(index));
}

bool
smart_relation_mark_stale(Relation index)
{
	uint64 tree = get_cache(index)->meta.tree;

	return tree == 0 || smart_meta_mark_stale(index, tree);
}

/* ---- opening ---- */

static void
release_relation(void *argument)
{
	struct smart_relation *self = argument;

	if (self->handle == NULL)
		return;
	smart_assert(self->handle->references > 0);
	if (self->scan != NULL && self->handle->idle < SMART_IDLE_SCANS)
		self->handle->idle_scans[self->handle->idle++] = self->scan;
	else if (self->scan != NULL)
		smart_scan_close(self->scan);
	smart_handle_unpin(self->handle);
	if (self->also_handle != NULL)
		smart_handle_unpin(self->also_handle);
	self->handle = self->also_handle = NULL;
	self->tree = self->also = NULL;
	self->scan = NULL;
}

static void
attach_tree(struct smart_relation *self, Relation index)
{
	smart_assert(self->handle == NULL && self->meta.tree != 0);
	self->handle = smart_handle_pin(index, self->codec, &self->meta);
	/* Lost a moment ago. */
	if (self->handle == NULL)
		report_loss(index, "The memory node does not have it any more.");
	self->tree = self->handle->tree;
}

/* The tree that the index moves to takes adds, too.  If it has gone, it is the move that has to fail. */
static void
attach_also(struct smart_relation *self, Relation index)
{
	struct smart_meta meta;

	smart_assert(self->also_id != 0 && self->also_handle == NULL && self->handle != NULL);
	smart_meta_fill(index, self->codec, self->also_id, &meta);
	self->also_leaf_size = meta.leaf_size;
	self->also_handle = smart_handle_pin(index, self->codec, &meta);
	if (self->also_handle != NULL)
		self->also = self->also_handle->tree;
}

/* Without a handle; *loss is set as cached_loss() returns it. */
static struct smart_relation *
make_relation(Relation index, const char **loss)
{
	struct relation_cache *cache;
	struct smart_relation *self;
	Size codec_size;

	smart_server_require();
	cache = get_cache(index);
	*loss = cached_loss(index, cache);
	codec_size = cached_codec(cache)->size;
	self = palloc(MAXALIGN(sizeof(struct smart_relation)) + codec_size);
	memset(self, 0, sizeof(*self));
	self->codec = (struct smart_codec *) ((char *) self + MAXALIGN(sizeof(struct smart_relation)));
	memcpy(self->codec, cached_codec(cache), codec_size);
	self->index = RelationGetRelid(index);
	self->meta = cache->meta;
	self->changes = cache->changes;
	self->also_id = cache->also;
	self->standby = cache->standby;
	self->tail = (struct smart_tail){.journal = self->meta.journal,
									 .serial = self->meta.tail_serial,
									 .block = self->meta.tail_block};
	self->release = (MemoryContextCallback){.func = release_relation, .arg = self};
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &self->release);
	return self;
}

/* With its tree, if that is the content of the index; *loss as cached_loss() returns it. */
static struct smart_relation *
open_relation(Relation index, const char **loss)
{
	struct smart_relation *self = make_relation(index, loss);

	if (*loss == NULL && self->meta.tree != 0)
		attach_tree(self, index);
	return self;
}

struct smart_relation *
smart_relation_open(Relation index)
{
	const char *loss;
	struct smart_relation *self = open_relation(index, &loss);

	if (loss != NULL)
		report_loss(index, loss);
	return self;
}

struct smart_relation *
smart_relation_open_any(Relation index, bool *lost)
{
	const char *loss;
	struct smart_relation *self = open_relation(index, &loss);

	*lost = loss != NULL;
	return self;
}

struct smart_relation *
smart_relation_try_open(Relation index)
{
	bool lost;
	struct smart_relation *self = smart_relation_open_any(index, &lost);

	return lost ? NULL : self;
}

struct smart_relation *
smart_relation_open_bare(Relation index)
{
	const char *loss;

	return make_relation(index, &loss);
}

bool
smart_relation_arrive(struct smart_relation *self, Relation index)
{
	struct relation_cache *cache;

	smart_assert(self->tree == NULL && self->view != NULL);
	cache = get_cache(index);
	self->changes = cache->changes;
	if (wants_answer(index, cache))
		return false;
	if (cache->meta.tree == 0 || cache->meta.encoding != self->meta.encoding)
		report_loss(index, "The index has been rebuilt since the statement began.");
	self->meta = cache->meta;
	self->standby = cache->standby;
	self->view = NULL;
	attach_tree(self, index);
	return true;
}

void
smart_relation_lose(struct smart_relation *self, Relation index)
{
	struct relation_cache *cache = get_cache(index);

	smart_assert(self->view == NULL && self->also == NULL && !self->lost);
	if (cache->meta.encoding != self->meta.encoding)
		report_loss(index, "The index has been rebuilt since the statement began.");
	release_relation(self);
	self->meta = cache->meta;
	self->changes = cache->changes;
}

struct smart_relation *
smart_relation_open_to_insert(Relation index, bool asks_view)
{
	Oid database = smart_relation_database(index);
	const char *loss;
	struct smart_relation *self = make_relation(index, &loss);
	uint64 older = self->meta.tree;
	uint64 tree;

	/* A unique index must be asked before it takes anything. */
	if (loss != NULL && index->rd_index->indisunique && !asks_view)
		report_loss(index, loss);
	if (loss == NULL && older != 0)
		attach_tree(self, index);
	if (loss == NULL && unlikely(self->also_id != 0))
		attach_also(self, index);
	if (loss == NULL)
		return self;

	/* What is inserted into a lost index goes into the tree that is being built, or nowhere. */
	smart_assert(self->handle == NULL && older != 0);
	self->lost = true;
	/* It has become missed since the caller looked: its tree is about to have less than its journal. */
	if (is_out_of_reach(loss))
		smart_tree_give_up(index, older);
	tree = smart_rebuild_tree(database, self->index);
	if (tree != 0)
	{
		smart_meta_fill(index, self->codec, tree, &self->meta);
		self->handle = smart_handle_pin(index, self->codec, &self->meta);
	}
	if (self->handle != NULL)
	{
		self->tree = self->handle->tree;
		return self;
	}
	/* A new tree can be lost, too. */
	if (tree != 0)
		(void) smart_rebuild_invalidate(database, self->index, tree);
	self->meta.tree = 0;
	/* Nor is it missing then if it is journaled. */
	if (!smart_meta_is_loadable(&self->meta))
		(void) smart_meta_mark_stale(index, older);
	if (!smart_relation_is_to_answer(index) && !smart_relation_is_about_to_return(index))
		smart_validity_notice(index);
	return self;
}

/* What the relcache keeps of the index; its error if it is lost. */
static struct relation_cache *
get_whole(Relation index)
{
	struct relation_cache *cache = get_cache(index);
	const char *loss = cached_loss(index, cache);

	if (loss != NULL)
		report_loss(index, loss);
	return cache;
}

bool
smart_relation_follow(struct smart_relation *self, Relation index)
{
	struct relation_cache *cache;
	uint64 older = self->meta.tree;

	smart_assert(self->tree != NULL && self->also == NULL && !self->lost);
	if (likely(self->changes == smart_changes()))
		return false;
	cache = get_cache(index);
	if (cached_loss(index, cache) != NULL && can_answer(index, cache))
		return true;
	cache = get_whole(index);
	self->changes = cache->changes;
	if (cache->meta.tree == older)
		return false;
	/* A standby's may not have all yet that the snapshot sees; a rebuild makes entries as collations, say, are now. */
	if (self->standby || cache->meta.tree == 0 || cache->meta.encoding != self->meta.encoding)
		report_loss(index, "The index has been rebuilt since the statement began.");
	release_relation(self);
	self->meta = cache->meta;
	attach_tree(self, index);
	return true;
}

bool
smart_relation_refresh(struct smart_relation *self, Relation index)
{
	struct relation_cache *cache;

	if (self->tree != NULL)
		return true;
	/* On a standby the index was looked at after the snapshot was taken. */
	if (self->standby)
		return false;
	cache = get_whole(index);
	self->meta = cache->meta;
	self->changes = cache->changes;
	if (self->meta.tree != 0)
		attach_tree(self, index);
	return self->tree != NULL;
}

void
smart_relation_make_tree(struct smart_relation *self, Relation index)
{
	volatile bool named = false;
	smart_status status;
	uint64 tree;

	smart_assert(self->tree == NULL);
	smart_meta_read(index, &self->meta);
	if (self->meta.tree == SMART_TREE_NOWHERE)
		return;
	if (self->meta.tree == 0 && smart_meta_is_loadable(&self->meta) && smart_relation_writes_back(index))
	{
		(void) smart_meta_name_tree(index, self->codec, SMART_TREE_NOWHERE, &self->meta);
		if (self->meta.tree == SMART_TREE_NOWHERE)
			return;
	}
	if (self->meta.tree == 0)
	{
		/* Before the metapage is locked: no process waits there for a memory node, nor could it be interrupted. */
		status = smart_tree_make(index, &tree);
		if ((status == SMART_NO_SPACE || status == SMART_DISK_FULL) && smart_relation_may_answer(index))
		{
			(void) smart_meta_name_tree(index, self->codec, SMART_TREE_NOWHERE, &self->meta);
			return;
		}
		smart_raise_if_failed(status, index);
		PG_TRY();
		{
			named = smart_meta_name_tree(index, self->codec, tree, &self->meta);
		}
		PG_CATCH();
		{
			smart_am_tree_drop(tree);
			PG_RE_THROW();
		}
		PG_END_TRY();
		/* Another backend was faster. */
		if (!named)
			smart_am_tree_drop(tree);
		if (self->meta.tree == SMART_TREE_NOWHERE)
			return;
	}
	attach_tree(self, index);
	smart_assert(self->tree != NULL && self->meta.tree != 0);
}

/* ---- operations ---- */

struct smart_scan *
smart_relation_scan(struct smart_relation *self)
{
	smart_assert(self->tree != NULL);
	if (self->scan == NULL && self->handle->idle > 0)
		self->scan = self->handle->idle_scans[--self->handle->idle];
	if (self->scan == NULL)
		smart_raise_if_failed(smart_scan_open(self->tree, &self->scan), NULL);
	return self->scan;
}

/* Does an operation, and again as a whole after a memory node was away (smart.wait_timeout); its status. */
#define AGAIN_IF_AWAY(operation)                          \
	({                                                    \
		uint64 since_ns_ = 0;                             \
		smart_status status_;                             \
                                                          \
		do                                                \
			status_ = (operation);                        \
		while (smart_again_if_away(status_, &since_ns_)); \
		status_;                                          \
	})

smart_status
smart_relation_insert(struct smart_relation *self, const uint8 *entry, int key_length, int length)
{
	bool added;

	smart_assert(self->tree != NULL && key_length > 0 && length >= key_length);
	return AGAIN_IF_AWAY(smart_tree_insert(self->tree, entry, (size_t) key_length, (size_t) length, &added));
}

smart_status
smart_relation_try_insert(struct smart_relation *self, const uint8 *entry, int key_length, int length)
{
	bool added;

	smart_assert(self->tree != NULL && key_length > 0 && length >= key_length);
	return smart_tree_insert(self->tree, entry, (size_t) key_length, (size_t) length, &added);
}

smart_status
smart_relation_try_insert_many(struct smart_relation *self, struct smart_addition *additions, uint32 count)
{
	smart_assert(self->tree != NULL && count > 0);
	return smart_tree_insert_many(self->tree, additions, count);
}

smart_status
smart_relation_next(struct smart_scan *scan, struct smart_batch *batch)
{
	return AGAIN_IF_AWAY(smart_scan_next(scan, batch));
}

smart_status
smart_relation_lookup(struct smart_relation *self, const uint8 *key, int key_length, bool *found)
{
	return AGAIN_IF_AWAY(smart_tree_lookup_uncached(self->tree, key, (size_t) key_length, found));
}

smart_status
smart_relation_verify(struct smart_relation *self, struct smart_verify_report *report, char *message, Size message_size)
{
	return AGAIN_IF_AWAY(smart_tree_verify(self->tree, NULL, NULL, report, message, message_size));
}

/* ---- what other files ask ---- */

/* No error if the tree is not there: planning must not fail over an index that it may not even choose. */
bool
smart_relation_glance(Relation index, struct smart_glance *glance)
{
	struct relation_cache *cache;

	*glance = (struct smart_glance){.unsettled = true};
	if (!smart_server_available())
		return false;
	cache = get_cache(index);
	/* Nobody knows yet what becomes of its tree, if it has one. */
	if (smart_server_recovers() && cache->meta.tree != SMART_TREE_NOWHERE)
		return false;
	glance->ordered = cached_codec(cache)->ordered;
	glance->fixed_length = cache->meta.fixed_length;
	if (cached_loss(index, cache) != NULL)
	{
		glance->paged = can_answer(index, cache);
		glance->unsettled = is_to_answer(index, cache) ? wants_follower(index, cache) : !is_about_to_return(cache);
		glance->bytes = (uint64) cache->meta.run_pages * BLCKSZ;
		return glance->paged;
	}
	glance->unsettled = cache->meta.tree != 0 && is_to_answer(index, cache);
	glance->missed = smart_tree_is_missed(cache->meta.tree);
	if (glance->missed)
		return false;
	if (cache->meta.tree == 0)
		return true;
	glance->bytes = smart_space_tree_bytes(&smart_backend_client()->space, cache->meta.tree);
	return true;
}

uint64
smart_relation_tree(Relation index)
{
	struct relation_cache *cache = get_cache(index);

	if (cache->meta.tree == 0 || cache->meta.tree == SMART_TREE_NOWHERE)
		return cache->meta.tree;
	return smart_meta_tree_is_here(index, &cache->meta) ? cache->meta.tree : 0;
}

uint64
smart_relation_bytes(const struct smart_relation *self)
{
	return self->tree == NULL ? 0 : smart_space_tree_bytes(smart_tree_space(self->meta.tree), self->meta.tree);
}

BlockNumber
smart_relation_pages(const struct smart_relation *self)
{
	uint64 pages = 1 + (smart_relation_bytes(self) + BLCKSZ - 1) / BLCKSZ;

	return (BlockNumber) Min(pages, MaxBlockNumber);
}

/* Does this process make the index's tree?  It has heard of the loss. */
static bool
is_restored_here(Relation index)
{
	struct smart_rebuild rebuild;

	return smart_rebuild_find(smart_relation_database(index), RelationGetRelid(index), &rebuild) &&
		   rebuild.state == SMART_REBUILD_RUNNING && rebuild.runner == MyProcPid;
}

void
smart_report_status(smart_status status, Relation index)
{
	/* A cancel or a shutdown says so itself, whatever became of the index. */
	if (smart_status_is_of_node(status))
	{
		struct relation_cache *cache = index == NULL ? NULL : index->rd_amcache;
		const char *loss;

		CHECK_FOR_INTERRUPTS();
		/* One that is to have no tree has none for another reason: it is a follower that cannot be reached. */
		loss =
			cache == NULL || is_restored_here(index) || is_to_answer(index, cache) ? NULL : cached_loss(index, cache);
		if (loss != NULL)
			report_loss(index, loss);
	}
	smart_raise_status(status, index);
}

struct smart_relation *
smart_relation_open_tree(Relation index, const struct smart_codec *codec, const struct smart_meta *meta)
{
	struct smart_relation *self = palloc0(sizeof(*self));

	self->handle = smart_handle_pin(index, codec, meta);
	if (self->handle == NULL)
		return NULL;
	self->index = RelationGetRelid(index);
	self->meta = *meta;
	self->tree = self->handle->tree;
	self->release = (MemoryContextCallback){.func = release_relation, .arg = self};
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &self->release);
	return self;
}

struct smart_tree *
smart_am_tree_open(Relation index, const struct smart_codec *codec, const struct smart_meta *meta)
{
	struct smart_relation *self = smart_relation_open_tree(index, codec, meta);

	return self == NULL ? NULL : self->tree;
}

uint64
smart_am_tree_create(Relation index, const struct smart_codec *codec, struct smart_tree **tree)
{
	struct smart_meta meta = {0};
	uint64 id;

	/* Why it is made, the loss of another tree say, is not why it could not be. */
	smart_raise_if_failed(smart_tree_make(index, &id), index);
	smart_meta_fill(index, codec, id, &meta);
	smart_assert(meta.tree == id && id != 0);
	*tree = smart_am_tree_open(index, codec, &meta);
	if (*tree == NULL)
		elog(ERROR, "tree " UINT64_FORMAT " is not in the directory", meta.tree);
	return meta.tree;
}
