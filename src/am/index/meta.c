/*
 * meta.c
 *	  The metapage: block 0 of the main fork, and all that an init fork has.
 */
#include "postgres.h"

#include "access/generic_xlog.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "miscadmin.h"
#include "port/pg_crc32c.h"
#include "catalog/pg_class.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "am/codec/encode.h"
#include "am/compat.h"
#include "am/index/backend.h"
#include "am/index/meta.h"
#include "am/index/options.h"
#include "am/index/recent.h"
#include "base/assert.h"

static uint32
meta_crc(const struct smart_meta *meta)
{
	pg_crc32c crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, meta, offsetof(struct smart_meta, crc));
	FIN_CRC32C(crc);
	return crc;
}

/* Adds a number to a fingerprint (FNV-1a, a byte at a time). */
static uint64
mix(uint64 fingerprint, uint32 number)
{
	for (int i = 0; i < 4; i++)
		fingerprint = (fingerprint ^ ((number >> (8 * i)) & 0xff)) * UINT64CONST(0x100000001b3);
	return fingerprint;
}

/*
 * A number that changes with the way in which rows become entries.  It does not look at types: ALTER TABLE keeps an
 * index over a change of type that leaves the normalized keys alone.
 */
static uint64
codec_fingerprint(const struct smart_codec *codec)
{
	uint64 fingerprint = UINT64CONST(0xcbf29ce484222325);

	smart_assert(codec->nkeys > 0 && codec->nkeys <= codec->ncolumns);
	fingerprint = mix(fingerprint, (uint32) codec->nkeys);
	fingerprint = mix(fingerprint, (uint32) codec->ncolumns);
	fingerprint = mix(fingerprint, (uint32) codec->fixed_length);
	fingerprint = mix(fingerprint, codec->compact_tids);
	for (int i = 0; i < codec->ncolumns; i++)
	{
		const struct smart_column *column = &codec->columns[i];

		fingerprint = mix(fingerprint, (uint32) (int32) column->attlen);
		if (i >= codec->nkeys)
			continue;
		fingerprint = mix(fingerprint, (uint32) column->normalizer.width);
		fingerprint = mix(fingerprint, (uint32) column->normalizer.residue_width);
		fingerprint = mix(fingerprint, column->normalizer.unordered);
		fingerprint = mix(fingerprint, column->normalizer.version);
		/* Indexes that were made before long keys were squeezed have them as they are. */
		if (column->normalizer.squeezable)
			fingerprint = mix(fingerprint, true);
		fingerprint = mix(fingerprint, column->null_byte);
		fingerprint = mix(fingerprint, column->flip);
	}
	return fingerprint;
}

uint64
smart_meta_region(void)
{
	return smart_region_header(smart_backend_client()->compute->region)->incarnation;
}

uint64
smart_meta_delta_region(void)
{
	return smart_region_header(smart_delta_client()->compute->region)->incarnation;
}

void
smart_meta_fill(Relation index, const struct smart_codec *codec, uint64 tree, struct smart_meta *meta)
{
	smart_assert(codec->fixed_length >= 0);
	meta->tree = tree;
	/* Which region that is nobody asks of an index that has no tree; it may not have been recovered yet. */
	meta->region = tree == 0 || tree == SMART_TREE_NOWHERE ? 0 : smart_meta_region();
	meta->encoding = codec_fingerprint(codec);
	meta->state = tree == 0 ? SMART_META_EMPTY : SMART_META_READY;
	meta->leaf_size = (uint32) smart_options_leaf_size(index);
	meta->fixed_length = (uint32) codec->fixed_length;
	meta->database = smart_relation_database(index);
	smart_assert(tree == 0 || tree == SMART_TREE_NOWHERE || meta->region != 0);
}

bool
smart_meta_tree_is_here(Relation index, const struct smart_meta *meta)
{
	smart_assert(meta->tree != 0);
	return meta->region == smart_meta_region() && meta->database == smart_relation_database(index);
}

void
smart_meta_put(Page page, struct smart_meta *meta)
{
	smart_assert((meta->tree == 0) == (meta->state == SMART_META_EMPTY));
	smart_assert((meta->journal == 0) == (meta->journal_state == SMART_JOURNAL_NONE));
	smart_assert((meta->run == 0) == (meta->run_pages == 0) && meta->run <= meta->last_run);
	smart_assert((meta->tail_serial == 0) == (meta->tail_block == InvalidBlockNumber));
	smart_assert(meta->previous_serial <= meta->cut.serial && meta->cut.serial <= meta->tail_serial);
	meta->crc = meta_crc(meta);
	memcpy(PageGetContents(page), meta, sizeof(struct smart_meta));

	/* What lies behind pd_lower is left out of WAL. */
	((PageHeader) page)->pd_lower = PageGetContents(page) + sizeof(struct smart_meta) - (char *) page;
}

int
smart_hint_reindex(Relation index)
{
	return errhint("Rebuild it with REINDEX INDEX %s.",
				   quote_qualified_identifier(get_namespace_name(RelationGetNamespace(index)),
											  RelationGetRelationName(index)));
}

static void
report_corrupt(Relation index, const char *detail)
{
	ereport(ERROR, errcode(ERRCODE_INDEX_CORRUPTED),
			errmsg("index \"%s\" has no valid metapage", RelationGetRelationName(index)),
			errdetail_internal("%s", detail), smart_hint_reindex(index));
}

static bool
has_meta(Page page)
{
	return !PageIsNew(page) && ((PageHeader) page)->pd_lower ==
								   (LocationIndex) (PageGetContents(page) + sizeof(struct smart_meta) - (char *) page);
}

bool
smart_meta_named_tree(Page page, uint64 *tree, uint64 *journal)
{
	struct smart_meta meta;

	if (!has_meta(page))
		return false;
	memcpy(&meta, PageGetContents(page), sizeof(meta));
	if (meta.magic != SMART_META_MAGIC || meta.version != SMART_META_VERSION || meta.crc != meta_crc(&meta))
		return false;
	*tree = meta.tree;
	*journal = meta.journal;
	return true;
}

/* Copies the metapage's content from a page and checks it. */
static void
take_meta(Relation index, Page page, struct smart_meta *meta)
{
	if (!has_meta(page))
		report_corrupt(index, "Block 0 is not a metapage.");
	memcpy(meta, PageGetContents(page), sizeof(struct smart_meta));
	if (meta->magic != SMART_META_MAGIC)
		report_corrupt(index, "The magic number is wrong.");
	if (meta->version != SMART_META_VERSION)
		ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("index \"%s\" has format version %u, this version of smart reads version %u",
					   RelationGetRelationName(index), meta->version, SMART_META_VERSION),
				smart_hint_reindex(index));
	if (meta->crc != meta_crc(meta))
		report_corrupt(index, "The checksum is wrong.");
	if (meta->tree == 0 ? meta->state != SMART_META_EMPTY
						: meta->state != SMART_META_READY && meta->state != SMART_META_STALE)
		report_corrupt(index, "Its state does not fit its tree.");
	if (meta->journal_state > SMART_JOURNAL_STALE ||
		(meta->journal == 0) != (meta->journal_state == SMART_JOURNAL_NONE))
		report_corrupt(index, "Its state does not fit its journal.");
}

void
smart_meta_read(Relation index, struct smart_meta *meta)
{
	if (RelationGetNumberOfBlocks(index) == 0)
		report_corrupt(index, "The index has no blocks.");
	smart_meta_read_again(index, meta);
}

void
smart_meta_read_again(Relation index, struct smart_meta *meta)
{
	Buffer buffer;
	struct smart_meta found;
	PGAlignedBlock copy;

	buffer = ReadBuffer(index, SMART_META_BLOCK);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	memcpy(copy.data, BufferGetPage(buffer), MAXALIGN(SizeOfPageHeaderData) + sizeof(struct smart_meta));
	UnlockReleaseBuffer(buffer);

	/* Nothing is held any more: VACUUM turns these errors into warnings. */
	take_meta(index, copy.data, &found);
	*meta = found;
}

struct smart_run_name
smart_meta_run_name(const smart_file *file, const struct smart_meta *meta)
{
	return (struct smart_run_name){.file = *file, .journal = meta->journal, .run = meta->run, .made = meta->run_made};
}

void
smart_meta_refresh(Relation index, struct smart_meta *meta)
{
	Buffer buffer = smart_read_recent(index, SMART_META_BLOCK);
	Page page;
	bool same;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buffer);
	same = has_meta(page) && memcmp(PageGetContents(page), meta, sizeof(*meta)) == 0;
	UnlockReleaseBuffer(buffer);
	if (!same)
		smart_meta_read_again(index, meta);
}

bool
smart_meta_fits(const struct smart_meta *meta, const struct smart_codec *codec)
{
	return meta->encoding == codec_fingerprint(codec);
}

bool
smart_meta_wants_journal(Relation index)
{
	return index->rd_rel->relpersistence == RELPERSISTENCE_PERMANENT && smart_options_logged(index);
}

void
smart_meta_create(Relation index, ForkNumber fork, const struct smart_codec *codec, uint64 tree,
				  const struct smart_run *run)
{
	struct smart_meta meta = {
		.magic = SMART_META_MAGIC,
		.version = SMART_META_VERSION,
		.journal_state = run->journal == 0 ? SMART_JOURNAL_NONE : SMART_JOURNAL_WHOLE,
		.journal = run->journal,
		.run = run->id,
		.last_run = run->id,
		.run_entries = run->entries,
		.run_kept = run->id,
		.run_pages = run->pages,
		.run_root = run->pages > 0 ? run->root : InvalidBlockNumber,
		.run_fences = run->fences,
		.run_made = run->pages > 0 ? run->made : 0,
		.cut.block = InvalidBlockNumber,
		.tail_block = InvalidBlockNumber,
	};
	Buffer buffer;
	Page page;

	smart_assert(fork == MAIN_FORKNUM || (fork == INIT_FORKNUM && tree == 0 && run->journal == 0));
	/* There was no run before, of which it could have kept pages. */
	smart_assert(run->kept == 0 && run->borders == 0 && (run->id == 0) == (run->pages == 0));
	smart_meta_fill(index, codec, tree, &meta);
	/* The writer of a run leaves block 0 to be filled in. */
	buffer = run->pages > 0 ? ReadBufferExtended(index, fork, SMART_META_BLOCK, RBM_ZERO_AND_LOCK, NULL)
							: ReadBufferExtended(index, fork, P_NEW, RBM_ZERO_AND_LOCK, NULL);
	if (BufferGetBlockNumber(buffer) != SMART_META_BLOCK)
		elog(ERROR, "index \"%s\" already has blocks", RelationGetRelationName(index));
	page = BufferGetPage(buffer);

	START_CRIT_SECTION();
	PageInit(page, BLCKSZ, 0);
	smart_meta_put(page, &meta);
	MarkBufferDirty(buffer);
	/* An init fork is logged although its relation is not: recovery copies it to the main fork. */
	if (RelationNeedsWAL(index) || fork == INIT_FORKNUM)
		log_newpage_buffer(buffer, true);
	END_CRIT_SECTION();

	UnlockReleaseBuffer(buffer);
	smart_meta_forget(index);
}

void
smart_meta_forget(Relation index)
{
	if (index->rd_amcache != NULL)
		pfree(index->rd_amcache);
	index->rd_amcache = NULL;
}

static Buffer locked_last = InvalidBuffer; /* by smart_meta_lock(), and perhaps released since */

bool
smart_meta_is_locked(void)
{
	/* If it was released the buffer may have another page by now. */
	return BufferIsValid(locked_last) && !BufferIsLocal(locked_last) &&
		   LWLockHeldByMe(BufferDescriptorGetContentLock(GetBufferDescriptor(locked_last - 1))) &&
		   BufferGetBlockNumber(locked_last) == SMART_META_BLOCK;
}

Buffer
smart_meta_lock(Relation index, struct smart_meta *meta)
{
	Buffer buffer = ReadBuffer(index, SMART_META_BLOCK);

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	locked_last = buffer;
	take_meta(index, BufferGetPage(buffer), meta);
	return buffer;
}

XLogRecPtr
smart_meta_change(Relation index, Buffer buffer, struct smart_meta *meta)
{
	GenericXLogState *xlog = GenericXLogStart(index);
	XLogRecPtr end;

	smart_assert(BufferGetBlockNumber(buffer) == SMART_META_BLOCK);
	/* The copy of a database keeps what its template's metapages say of their trees, until it has trees of its own. */
	smart_assert(meta->database == smart_relation_database(index) ||
				 meta->database == ((struct smart_meta *) PageGetContents(BufferGetPage(buffer)))->database);
	smart_meta_put(GenericXLogRegisterBuffer(xlog, buffer, 0), meta);
	end = GenericXLogFinish(xlog);
	UnlockReleaseBuffer(buffer);
	smart_meta_forget(index);
	return end;
}

bool
smart_meta_name_tree(Relation index, const struct smart_codec *codec, uint64 tree, struct smart_meta *meta)
{
	Buffer buffer = smart_meta_lock(index, meta);
	bool named = meta->tree == 0;

	smart_assert(tree != 0);
	if (named)
	{
		smart_meta_fill(index, codec, tree, meta);
		(void) smart_meta_change(index, buffer, meta);
	}
	else
		UnlockReleaseBuffer(buffer);
	smart_assert(meta->tree != 0);
	return named;
}

bool
smart_meta_mark_stale(Relation index, uint64 tree)
{
	struct smart_meta meta;
	Buffer buffer = smart_meta_lock(index, &meta);

	smart_assert(tree != 0);
	if (meta.tree == tree && (meta.state == SMART_META_READY || meta.journal_state == SMART_JOURNAL_WHOLE))
	{
		meta.state = SMART_META_STALE;
		smart_meta_lose_journal(&meta);
		(void) smart_meta_change(index, buffer, &meta);
	}
	else
		UnlockReleaseBuffer(buffer);
	return meta.tree == tree;
}

/* The metapage, which is locked, names another tree from now on; WAL is flushed. */
static void
name_another(Relation index, const struct smart_codec *codec, uint64 tree, Buffer buffer, struct smart_meta *meta)
{
	XLogRecPtr end;

	smart_assert(tree != 0 && tree != meta->tree);
	smart_meta_fill(index, codec, tree, meta);
	end = smart_meta_change(index, buffer, meta);
	if (RelationNeedsWAL(index))
		XLogFlush(end);
}

bool
smart_meta_replace_tree(Relation index, const struct smart_codec *codec, uint64 tree, bool if_loadable)
{
	struct smart_meta meta;
	Buffer buffer = smart_meta_lock(index, &meta);

	if (if_loadable && !smart_meta_is_loadable(&meta))
	{
		UnlockReleaseBuffer(buffer);
		return false;
	}
	name_another(index, codec, tree, buffer, &meta);
	return true;
}

bool
smart_meta_move_tree(Relation index, const struct smart_codec *codec, uint64 from, uint64 to, const uint32 *losses)
{
	struct smart_meta meta;
	Buffer buffer = smart_meta_lock(index, &meta);

	if (meta.tree != from || meta.state != SMART_META_READY ||
		(losses != NULL && (!smart_meta_is_loadable(&meta) || meta.losses != *losses)))
	{
		UnlockReleaseBuffer(buffer);
		return false;
	}
	name_another(index, codec, to, buffer, &meta);
	return true;
}
