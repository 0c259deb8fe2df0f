/*
 * relation.c
 *	  The open index: its codec and its tree.
 *
 * A user has a reference to the tree's handle for the life of a memory context, so that it ends after errors too.
 */
#include "postgres.h"

#include "access/amapi.h"
#include "access/relation.h"
#include "catalog/pg_class.h"
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
#include "am/server/shared.h"
#include "am/server/tree_changes.h"
#include "am/server/validity.h"

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

/* ---- opening ---- */

static void
release_relation(void *argument)
{
	struct smart_relation *self = argument;

	smart_assert(self->handle != NULL || (self->also_handle == NULL && self->scan == NULL));
	if (self->handle == NULL)
		return;
	smart_assert(self->handle->references > 0);
	smart_assert(self->handle->idle <= SMART_IDLE_SCANS);
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
		smart_report_loss(index, SMART_LOSS_GONE);
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

/* Without a handle; *loss is set as smart_state_loss() returns it. */
static struct smart_relation *
make_relation(Relation index, enum smart_loss *loss)
{
	struct smart_amcache *cache;
	struct smart_relation *self;
	Size codec_size;

	smart_server_require();
	cache = smart_state_amcache(index);
	*loss = smart_state_loss(index, cache);
	codec_size = smart_amcache_codec(cache)->size;
	self = palloc(MAXALIGN(sizeof(struct smart_relation)) + codec_size);
	memset(self, 0, sizeof(*self));
	self->codec = (struct smart_codec *) ((char *) self + MAXALIGN(sizeof(struct smart_relation)));
	memcpy(self->codec, smart_amcache_codec(cache), codec_size);
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

/* With its tree, if that is the content of the index; *loss as smart_state_loss() returns it. */
static struct smart_relation *
open_relation(Relation index, enum smart_loss *loss)
{
	struct smart_relation *self = make_relation(index, loss);

	if (*loss == SMART_LOSS_NONE && self->meta.tree != 0)
		attach_tree(self, index);
	smart_assert((self->tree != NULL) == (*loss == SMART_LOSS_NONE && self->meta.tree != 0));
	return self;
}

struct smart_relation *
smart_relation_open(Relation index)
{
	enum smart_loss loss;
	struct smart_relation *self = open_relation(index, &loss);

	if (loss != SMART_LOSS_NONE)
		smart_report_loss(index, loss);
	return self;
}

struct smart_relation *
smart_relation_open_any(Relation index, bool *lost)
{
	enum smart_loss loss;
	struct smart_relation *self = open_relation(index, &loss);

	*lost = loss != SMART_LOSS_NONE;
	smart_assert(!*lost || self->tree == NULL);
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
	enum smart_loss loss;

	return make_relation(index, &loss);
}

bool
smart_relation_arrive(struct smart_relation *self, Relation index)
{
	struct smart_amcache *cache;

	smart_assert(self->tree == NULL && self->view != NULL);
	cache = smart_state_amcache(index);
	self->changes = cache->changes;
	if (smart_state_has_no_tree(index, cache))
		return false;
	if (cache->meta.tree == 0 || cache->meta.encoding != self->meta.encoding)
		smart_report_loss(index, SMART_LOSS_REBUILT);
	self->meta = cache->meta;
	self->standby = cache->standby;
	self->view = NULL;
	attach_tree(self, index);
	return true;
}

void
smart_relation_lose(struct smart_relation *self, Relation index)
{
	struct smart_amcache *cache = smart_state_amcache(index);

	smart_assert(self->view == NULL && self->also == NULL && !self->lost);
	if (cache->meta.encoding != self->meta.encoding)
		smart_report_loss(index, SMART_LOSS_REBUILT);
	release_relation(self);
	smart_assert(self->tree == NULL && self->handle == NULL && self->scan == NULL);
	self->meta = cache->meta;
	self->changes = cache->changes;
}

struct smart_relation *
smart_relation_open_to_insert(Relation index, bool asks_view)
{
	Oid database = smart_relation_database(index);
	enum smart_loss loss;
	struct smart_relation *self = make_relation(index, &loss);
	uint64 older = self->meta.tree;
	uint64 tree;

	/* A unique index must be asked before it takes anything. */
	if (loss != SMART_LOSS_NONE && index->rd_index->indisunique && !asks_view)
		smart_report_loss(index, loss);
	if (loss == SMART_LOSS_NONE && older != 0)
		attach_tree(self, index);
	if (loss == SMART_LOSS_NONE && unlikely(self->also_id != 0))
		attach_also(self, index);
	if (loss == SMART_LOSS_NONE)
		return self;

	/* What is inserted into a lost index goes into the tree that is being built, or nowhere. */
	smart_assert(self->handle == NULL && older != 0);
	self->lost = true;
	/* It has become missed since the caller looked: its tree is about to have less than its journal. */
	if (loss == SMART_LOSS_OUT_OF_REACH)
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
static struct smart_amcache *
get_whole(Relation index)
{
	struct smart_amcache *cache = smart_state_amcache(index);
	enum smart_loss loss = smart_state_loss(index, cache);

	if (loss != SMART_LOSS_NONE)
		smart_report_loss(index, loss);
	return cache;
}

bool
smart_relation_follow(struct smart_relation *self, Relation index)
{
	struct smart_amcache *cache;
	uint64 older = self->meta.tree;

	smart_assert(self->tree != NULL && self->also == NULL && !self->lost);
	if (likely(self->changes == smart_changes()))
		return false;
	cache = smart_state_amcache(index);
	if (smart_state_loss(index, cache) != SMART_LOSS_NONE && smart_state_can_answer(index, cache))
		return true;
	cache = get_whole(index);
	self->changes = cache->changes;
	if (cache->meta.tree == older)
		return false;
	/* A standby's may not have all yet that the snapshot sees; a rebuild makes entries as collations, say, are now. */
	if (self->standby || cache->meta.tree == 0 || cache->meta.encoding != self->meta.encoding)
		smart_report_loss(index, SMART_LOSS_REBUILT);
	release_relation(self);
	self->meta = cache->meta;
	attach_tree(self, index);
	smart_assert(self->meta.tree != older && self->scan == NULL);
	return true;
}

bool
smart_relation_refresh(struct smart_relation *self, Relation index)
{
	struct smart_amcache *cache;

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
	smart_assert(self->tree != NULL && self->handle->tree == self->tree);
	smart_assert(self->handle->idle <= SMART_IDLE_SCANS);
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
smart_relation_points(struct smart_scan *scan, const struct smart_point *points, uint32 count)
{
	smart_assert(count > 0 && count <= SMART_POINTS_MAX);
	return AGAIN_IF_AWAY(smart_scan_points(scan, points, count, false));
}

smart_status
smart_relation_lookup(struct smart_relation *self, const uint8 *key, int key_length, bool *found)
{
	smart_assert(self->tree != NULL && key_length > 0);
	return AGAIN_IF_AWAY(smart_tree_lookup_uncached(self->tree, key, (size_t) key_length, found));
}

smart_status
smart_relation_verify(struct smart_relation *self, struct smart_verify_report *report, char *message, Size message_size)
{
	smart_assert(self->tree != NULL && message_size > 0);
	return AGAIN_IF_AWAY(smart_tree_verify(self->tree, NULL, NULL, report, message, message_size));
}

/* ---- what other files ask ---- */

/* No error if the tree is not there: planning must not fail over an index that it may not even choose. */
bool
smart_relation_glance(Relation index, struct smart_glance *glance)
{
	struct smart_amcache *cache;

	*glance = (struct smart_glance){.unsettled = true};
	if (!smart_server_available())
		return false;
	cache = smart_state_amcache(index);
	/* Nobody knows yet what becomes of its tree, if it has one. */
	if (smart_server_recovers() && cache->meta.tree != SMART_TREE_NOWHERE)
		return false;
	glance->ordered = smart_amcache_codec(cache)->ordered;
	glance->fixed_length = cache->meta.fixed_length;
	if (smart_state_loss(index, cache) != SMART_LOSS_NONE)
	{
		glance->paged = smart_state_can_answer(index, cache);
		glance->unsettled = smart_state_is_to_answer(index, cache) ? smart_state_wants_follower(index, cache)
																   : !smart_state_is_about_to_return(cache);
		glance->bytes = (uint64) cache->meta.run_pages * BLCKSZ;
		return glance->paged;
	}
	glance->unsettled = cache->meta.tree != 0 && smart_state_is_to_answer(index, cache);
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
	struct smart_amcache *cache = smart_state_amcache(index);

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

struct smart_relation *
smart_relation_open_tree(Relation index, const struct smart_codec *codec, const struct smart_meta *meta)
{
	struct smart_relation *self = palloc0(sizeof(*self));

	smart_assert(meta->tree != 0);
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
