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

#include "am/acceptance.h"
#include "am/am.h"
#include "am/server.h"
#include "am/handle.h"
#include "am/locate.h"
#include "am/meta.h"
#include "am/rebuild_table.h"
#include "am/report.h"
#include "base/assert.h"

/* What the relcache keeps for us: one chunk in rd_indexcxt, the codec at the end. */
struct relation_cache
{
	struct smart_meta meta;
	bool fits;                           /* the entries were made as codec makes them */
	bool whole;                          /* the tree was found to be the content of the index */
	uint32 changes;                      /* before meta was read */
	uint64 codec[FLEXIBLE_ARRAY_MEMBER]; /* aligned as a struct smart_codec needs it */
};

static struct smart_codec *
cached_codec(struct relation_cache *cache)
{
	return (struct smart_codec *) cache->codec;
}

/* ---- the copy in the relcache ---- */

static void
read_meta(Relation index, struct relation_cache *cache)
{
	cache->changes = smart_changes();
	smart_meta_read(index, &cache->meta);
	cache->fits = smart_meta_fits(&cache->meta, cached_codec(cache));
	cache->whole = false;
}

static struct relation_cache *
load_cache(Relation index)
{
	struct smart_codec *codec = smart_codec_make(index, CurrentMemoryContext);
	struct relation_cache *cache;

	/* It stays only if the metapage can be read. */
	cache = MemoryContextAlloc(index->rd_indexcxt, offsetof(struct relation_cache, codec) + codec->size);
	memcpy(cache->codec, codec, codec->size);
	pfree(codec);
	PG_TRY();
	{
		read_meta(index, cache);
	}
	PG_CATCH();
	{
		pfree(cache);
		PG_RE_THROW();
	}
	PG_END_TRY();
	index->rd_amcache = cache;
	return cache;
}

/* The metapage; one that names no tree is looked at again, since any insert may change that. */
static struct relation_cache *
get_cache(Relation index)
{
	struct relation_cache *cache = index->rd_amcache;

	if (cache != NULL && !smart_codec_current(cached_codec(cache)))
		smart_relation_forget(index);
	/* Asking may have taken it away, too. */
	cache = index->rd_amcache;
	if (cache == NULL)
		return load_cache(index);
	if (cache->meta.tree == 0 || cache->changes != smart_changes())
		read_meta(index, cache);
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

/* As smart_acceptance_loss(); a whole tree stays so until something changes. */
static const char *
cached_loss(Relation index, struct relation_cache *cache)
{
	const char *loss;

	if (cache->whole && cache->changes == smart_changes())
		return NULL;
	loss = smart_acceptance_loss(index, &cache->meta, cache->fits);
	cache->whole = loss == NULL && cache->meta.tree != 0 && cache->changes == smart_changes();
	return loss;
}

const char *
smart_relation_loss(Relation index)
{
	return cached_loss(index, get_cache(index));
}

void
smart_relation_check_lost(Relation index)
{
	struct relation_cache *cache = index == NULL ? NULL : index->rd_amcache;
	const char *loss = cache == NULL ? NULL : cached_loss(index, cache);

	if (loss != NULL)
		smart_acceptance_report(index, loss);
}

void
smart_relation_mark_stale(Relation index)
{
	uint64 tree = get_cache(index)->meta.tree;

	if (tree != 0)
		smart_meta_mark_stale(index, tree);
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
	self->handle = smart_handle_pin(index, self->codec, &self->meta);
	/* Lost a moment ago. */
	if (self->handle == NULL)
		smart_acceptance_report(index, "The memory node does not have it any more");
	self->tree = self->handle->tree;
}

/* Without a handle; *loss is set as smart_acceptance_loss() returns it. */
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
	self->release = (MemoryContextCallback){.func = release_relation, .arg = self};
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &self->release);
	return self;
}

struct smart_relation *
smart_relation_open(Relation index)
{
	const char *loss;
	struct smart_relation *self = make_relation(index, &loss);

	if (loss != NULL)
		smart_acceptance_report(index, loss);
	if (self->meta.tree != 0)
		attach_tree(self, index);
	return self;
}

/* What is inserted into a lost index goes into the tree that is being built, or nowhere. */
static void
follow_rebuild(struct smart_relation *self, Relation index)
{
	uint64 tree = smart_rebuild_tree(smart_relation_database(index), self->index);
	uint64 older = self->meta.tree;

	self->lost = true;
	if (tree != 0)
	{
		smart_meta_fill(index, self->codec, tree, &self->meta);
		self->handle = smart_handle_pin(index, self->codec, &self->meta);
	}
	if (self->handle != NULL)
	{
		self->tree = self->handle->tree;
		return;
	}
	/* A new tree can be lost, too. */
	if (tree != 0)
		(void) smart_rebuild_spoil(smart_relation_database(index), self->index, tree);
	self->meta.tree = 0;
	smart_meta_mark_stale(index, older);
	smart_acceptance_notice(index);
}

struct smart_relation *
smart_relation_open_to_insert(Relation index)
{
	const char *loss;
	struct smart_relation *self = make_relation(index, &loss);

	/* A unique index must be asked before it takes anything. */
	if (loss != NULL && index->rd_index->indisunique)
		smart_acceptance_report(index, loss);
	if (loss != NULL)
		follow_rebuild(self, index);
	else if (self->meta.tree != 0)
		attach_tree(self, index);
	return self;
}

void
smart_relation_check_whole(struct smart_relation *self, Relation index)
{
	struct relation_cache *cache;
	const char *loss;

	if (likely(self->changes == smart_changes()))
		return;
	cache = get_cache(index);
	loss = cached_loss(index, cache);
	if (loss == NULL && cache->meta.tree != self->meta.tree)
		loss = "The index has been rebuilt since the statement began";
	if (loss != NULL)
		smart_acceptance_report(index, loss);
	self->changes = cache->changes;
}

bool
smart_relation_refresh(struct smart_relation *self, Relation index)
{
	if (self->tree == NULL)
	{
		struct relation_cache *cache = get_cache(index);
		const char *loss = cached_loss(index, cache);

		if (loss != NULL)
			smart_acceptance_report(index, loss);
		self->meta = cache->meta;
		self->changes = cache->changes;
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

smart_status
smart_relation_insert(struct smart_relation *self, const uint8 *entry, int key_length, int length)
{
	uint64 since_ns = 0;
	smart_status status;
	bool added;

	do
		status = smart_tree_insert(self->tree, entry, (size_t) key_length, (size_t) length, &added);
	while (smart_again_if_away(status, &since_ns));
	return status;
}

smart_status
smart_relation_next(struct smart_scan *scan, struct smart_batch *batch)
{
	uint64 since_ns = 0;
	smart_status status;

	do
		status = smart_scan_next(scan, batch);
	while (smart_again_if_away(status, &since_ns));
	return status;
}

smart_status
smart_relation_lookup(struct smart_relation *self, const uint8 *key, int key_length, bool *found)
{
	uint64 since_ns = 0;
	smart_status status;

	do
		status = smart_tree_lookup(self->tree, key, (size_t) key_length, found);
	while (smart_again_if_away(status, &since_ns));
	return status;
}

smart_status
smart_relation_verify(struct smart_relation *self, struct smart_verify_report *report, char *message, Size message_size)
{
	uint64 since_ns = 0;
	smart_status status;

	do
		status = smart_tree_verify(self->tree, NULL, NULL, report, message, message_size);
	while (smart_again_if_away(status, &since_ns));
	return status;
}

/*
 * For the planner, which must not fail over an index that it may not even
 * choose: no error if the tree is not there.
 */
bool
smart_relation_glance(Relation index, struct smart_glance *glance)
{
	struct relation_cache *cache;

	if (!smart_server_available() || smart_server_recovers())
		return false;
	cache = get_cache(index);
	glance->ordered = cached_codec(cache)->ordered;
	glance->fixed_length = cache->meta.fixed_length;
	glance->bytes = 0;
	if (cached_loss(index, cache) != NULL)
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
	pin->handle = smart_handle_pin(index, codec, &meta);
	if (pin->handle == NULL)
		elog(ERROR, "tree " UINT64_FORMAT " is not in the directory", meta.tree);
	pin->release = (MemoryContextCallback){.func = release_pin, .arg = pin};
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &pin->release);
	*tree = pin->handle->tree;
	return meta.tree;
}
