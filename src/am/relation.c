/*
 * relation.c
 *	  The open index: its metapage's copy, its codec and its tree.
 *
 * Users hold a pin on the tree's handle for the life of a memory context, so
 * that it is let go after errors too.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "utils/memutils.h"

#include "am/am.h"
#include "am/server.h"
#include "am/handle.h"
#include "am/meta.h"
#include "am/report.h"
#include "base/assert.h"

/* What the relcache keeps for us: one chunk in rd_indexcxt, the codec at the end. */
struct relation_cache
{
	struct smart_meta meta;
	uint64 codec[FLEXIBLE_ARRAY_MEMBER]; /* aligned as a struct smart_codec needs it */
};

static struct smart_codec *
cached_codec(struct relation_cache *cache)
{
	return (struct smart_codec *) cache->codec;
}

/* ---- the copy in the relcache ---- */

static struct relation_cache *
load_cache(Relation index)
{
	struct smart_codec *codec;
	struct relation_cache *cache;
	struct smart_meta meta;

	codec = smart_codec_make(index, CurrentMemoryContext);
	smart_meta_read(index, &meta);
	smart_meta_check_encoding(index, &meta, codec);
	cache = MemoryContextAlloc(index->rd_indexcxt, offsetof(struct relation_cache, codec) + codec->size);
	cache->meta = meta;
	memcpy(cache->codec, codec, codec->size);
	pfree(codec);
	index->rd_amcache = cache;
	return cache;
}

/* The checked metapage; one that names no tree is looked at again, since any insert may change that. */
static struct relation_cache *
get_cache(Relation index)
{
	struct relation_cache *cache = index->rd_amcache;

	if (cache == NULL)
		return load_cache(index);
	if (cache->meta.tree == 0)
		smart_meta_read(index, &cache->meta);
	return cache;
}

const struct smart_codec *
smart_relation_codec(Relation index)
{
	return cached_codec(get_cache(index));
}

void
smart_relation_forget(Relation index)
{
	if (index->rd_amcache != NULL)
		pfree(index->rd_amcache);
	index->rd_amcache = NULL;
}

/* ---- opening ---- */

/* Why the tree is not there, as a detail of the error. */
static int
why_no_tree(Relation index, const struct smart_meta *meta)
{
	if (meta->database != smart_relation_database(index))
		return errdetail("The index was copied from another database, and its content cannot be.");
	if (meta->region == smart_region_incarnation() && smart_space_tree_lost(&smart_backend_client()->space, meta->tree))
		return errdetail("A memory node that held a part of it has lost its memory.");
	return errdetail("The memory node was made anew after the index had been built, for example because the server had "
					 "not been shut down cleanly, or its settings have the indexes elsewhere now.");
}

static void
report_no_tree(Relation index, const struct smart_meta *meta)
{
	if (RecoveryInProgress())
		ereport(
			ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("the content of index \"%s\" is not on this server's memory node", RelationGetRelationName(index)),
			 errdetail("Smart indexes are not replicated to standby servers."),
			 errhint("Turn off enable_indexscan, enable_indexonlyscan and enable_bitmapscan for this query; rebuild "
					 "the index with REINDEX after a promotion.")));
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("the content of index \"%s\" is not on this server's memory node", RelationGetRelationName(index)),
			 why_no_tree(index, meta), smart_hint_reindex(index)));
}

void
smart_relation_check_lost(Relation index)
{
	struct relation_cache *cache = index == NULL ? NULL : index->rd_amcache;

	if (cache != NULL && cache->meta.tree != 0 &&
		smart_space_tree_lost(&smart_backend_client()->space, cache->meta.tree))
		report_no_tree(index, &cache->meta);
}

static void
release_relation(void *argument)
{
	struct smart_relation *self = argument;

	if (self->handle == NULL)
		return;
	if (self->scan != NULL && self->handle->idle_scan == NULL)
		self->handle->idle_scan = self->scan;
	else if (self->scan != NULL)
		smart_scan_close(self->scan);
	smart_handle_unpin(self->handle);
	self->handle = NULL;
}

static void
attach_tree(struct smart_relation *self, Relation index)
{
	smart_assert(self->handle == NULL && self->meta.tree != 0);
	self->handle = smart_handle_pin(index, &self->meta);
	if (self->handle == NULL)
		report_no_tree(index, &self->meta);
	self->tree = self->handle->tree;
}

struct smart_relation *
smart_relation_open(Relation index)
{
	struct relation_cache *cache;
	struct smart_relation *self;
	Size codec_size;

	smart_server_require();
	cache = get_cache(index);
	codec_size = cached_codec(cache)->size;
	self = palloc(MAXALIGN(sizeof(struct smart_relation)) + codec_size);
	self->codec = (struct smart_codec *) ((char *) self + MAXALIGN(sizeof(struct smart_relation)));
	memcpy(self->codec, cached_codec(cache), codec_size);
	self->index = RelationGetRelid(index);
	self->meta = cache->meta;
	self->tree = NULL;
	self->handle = NULL;
	self->scan = NULL;
	self->release = (MemoryContextCallback){.func = release_relation, .arg = self};
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &self->release);
	if (self->meta.tree != 0)
		attach_tree(self, index);
	return self;
}

bool
smart_relation_refresh(struct smart_relation *self, Relation index)
{
	if (self->tree == NULL)
	{
		self->meta = get_cache(index)->meta;
		if (self->meta.tree != 0)
			attach_tree(self, index);
	}
	return self->tree != NULL;
}

void
smart_relation_make_tree(struct smart_relation *self, Relation index)
{
	smart_assert(self->tree == NULL);
	smart_meta_make_tree(index, self->codec, &self->meta);
	attach_tree(self, index);
	smart_assert(self->tree != NULL);
}

struct smart_scan *
smart_relation_scan(struct smart_relation *self)
{
	smart_assert(self->tree != NULL);
	if (self->scan == NULL)
	{
		self->scan = self->handle->idle_scan;
		self->handle->idle_scan = NULL;
		if (self->scan == NULL)
			smart_check_status(smart_scan_open(self->tree, &self->scan), NULL);
	}
	return self->scan;
}

/*
 * For the planner, which must not fail over an index that it may not even
 * choose: no error if the tree is not there.
 */
bool
smart_relation_glance(Relation index, struct smart_glance *glance)
{
	struct relation_cache *cache;
	fabric_address root;

	if (!smart_server_available())
		return false;
	cache = get_cache(index);
	glance->ordered = cached_codec(cache)->ordered;
	glance->fixed_length = cache->meta.fixed_length;
	glance->bytes = 0;
	if (cache->meta.tree == 0)
		return true;
	if (!smart_meta_tree_is_here(index, &cache->meta) ||
		!smart_space_find_tree(&smart_backend_client()->space, cache->meta.tree, &root))
		return false;
	glance->bytes = smart_space_tree_bytes(&smart_backend_client()->space, cache->meta.tree);
	return true;
}

uint64
smart_relation_tree(Relation index)
{
	struct relation_cache *cache = get_cache(index);

	return cache->meta.tree == 0 || !smart_meta_tree_is_here(index, &cache->meta) ? 0 : cache->meta.tree;
}

/* A pin that goes with a memory context. */
struct context_pin
{
	struct smart_handle *handle;
	MemoryContextCallback release;
};

static void
release_pin(void *argument)
{
	smart_handle_unpin(((struct context_pin *) argument)->handle);
}

uint64
smart_am_tree_create(Relation index, const struct smart_codec *codec, struct smart_tree **tree)
{
	struct context_pin *pin = palloc(sizeof(struct context_pin));
	struct smart_meta meta;

	smart_meta_fill(index, codec, smart_tree_make(index), &meta);
	pin->handle = smart_handle_pin(index, &meta);
	if (pin->handle == NULL)
		elog(ERROR, "tree " UINT64_FORMAT " is not in the directory", meta.tree);
	pin->release = (MemoryContextCallback){.func = release_pin, .arg = pin};
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &pin->release);
	*tree = pin->handle->tree;
	return meta.tree;
}
