/*
 * check_journal.c
 *	  Does an index's tree have all that its journal tells of?  And is the run whole?
 *
 * A tree has an entry before the journal has it, so whatever is read here may be looked for in the tree at once.  Nobody
 * removes entries meanwhile (lock.h).  What is not found then may have been removed by a later operation of the chain:
 * it is remembered until that has been met.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "common/hashfn.h"
#include "storage/itemptr.h"
#include "utils/hsearch.h"
#include "utils/rel.h"

#include "am/codec/encode.h"
#include "am/index/relation.h"
#include "am/journal/lock.h"
#include "am/journal/read.h"
#include "am/monitor/check_journal.h"
#include "am/monitor/check_run.h"
#include "base/assert.h"

/* An entry that is not in the tree; two numbers made of its key stand for it. */
struct missing
{
	uint64 key[2];
	ItemPointerData tid;
};

struct journal_check
{
	struct smart_relation *self;
	Relation index;
	HTAB *missing;
	struct smart_reader reader;
};

static void
make_key(const uint8 *key, int key_length, uint64 made[2])
{
	made[0] = hash_bytes_extended(key, key_length, 0);
	made[1] = hash_bytes_extended(key, key_length, UINT64CONST(0x9e3779b97f4a7c15));
}

/* The reader has found an entry. */
static void
look_for_entry(struct journal_check *check)
{
	const struct smart_codec *codec = check->self->codec;
	const uint8 *entry = check->reader.unpacker.entry;
	struct missing *missing;
	uint64 key[2];
	int key_length;
	bool found;

	smart_reader_check(&check->reader, codec, false);
	key_length = smart_codec_key_length(codec, entry, check->reader.unpacker.length);
	smart_check_status(smart_relation_lookup(check->self, entry, key_length, &found), check->index);
	if (found)
		return;
	make_key(entry, key_length, key);
	missing = hash_search(check->missing, key, HASH_ENTER, &found);
	smart_entry_tid(codec, entry + key_length, &missing->tid);
}

/* The reader has found a removal. */
static void
forget_entry(struct journal_check *check)
{
	uint64 key[2];

	smart_reader_check(&check->reader, check->self->codec, true);
	make_key(check->reader.unpacker.entry, check->reader.unpacker.length, key);
	(void) hash_search(check->missing, key, HASH_REMOVE, NULL);
}

/* Reads run and chain. */
static void
read_journal(struct journal_check *check, const struct smart_meta *meta)
{
	enum smart_found found;

	smart_reader_begin_run(&check->reader, check->index, meta, true);
	while ((found = smart_reader_next_entry(&check->reader)) == SMART_FOUND)
		look_for_entry(check);
	if (found == SMART_FOUND_END)
	{
		smart_reader_begin_chain(&check->reader, check->index, meta, &meta->cut, true);
		while ((found = smart_reader_next_operation(&check->reader)) == SMART_FOUND)
		{
			if (check->reader.operation == SMART_OPERATION_ADD)
				look_for_entry(check);
			else
				forget_entry(check);
		}
	}
	/* A compaction that would let go these pages has to wait for this process. */
	if (found != SMART_FOUND_END)
		elog(ERROR, "pages of index \"%s\" were used anew while they were read", RelationGetRelationName(check->index));
}

static void
report_missing(const struct journal_check *check)
{
	HASH_SEQ_STATUS each;
	const struct missing *missing;
	ItemPointerData tid;

	hash_seq_init(&each, check->missing);
	missing = hash_seq_search(&each);
	if (missing == NULL)
		return;
	tid = missing->tid;
	hash_seq_term(&each);
	ereport(ERROR, errcode(ERRCODE_INDEX_CORRUPTED),
			errmsg("the journal of index \"%s\" has %ld entries that the index does not have",
				   RelationGetRelationName(check->index), hash_get_num_entries(check->missing)),
			errdetail("One of them is that of row (%u,%u).", ItemPointerGetBlockNumberNoCheck(&tid),
					  ItemPointerGetOffsetNumberNoCheck(&tid)),
			smart_hint_reindex(check->index));
}

void
smart_check_journal(struct smart_relation *self, Relation index)
{
	HASHCTL control = {.keysize = sizeof(uint64[2]), .entrysize = sizeof(struct missing), .hcxt = CurrentMemoryContext};
	struct journal_check *check;
	struct smart_meta meta;

	if (self->tree == NULL || self->meta.journal == 0 || RecoveryInProgress())
		return;
	check = palloc0(sizeof(*check));
	check->self = self;
	check->index = index;
	check->missing = hash_create("smart missing entries", 256, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	smart_journal_lock(index, SMART_LOCK_REMOVE);
	/* Nor does another tree become this index's from now on; it may have been moved a moment ago. */
	(void) smart_relation_follow(self, index);
	smart_meta_read(index, &meta);
	smart_assert(meta.journal == self->meta.journal);
	/* A tree that was given up a moment ago may have less. */
	if (smart_meta_is_loadable(&meta) && smart_relation_loss(index) == NULL)
	{
		smart_check_run(index, self->codec, &meta);
		read_journal(check, &meta);
	}
	report_missing(check);
	smart_journal_unlock(index, SMART_LOCK_REMOVE);
	hash_destroy(check->missing);
	pfree(check);
}

uint64
smart_check_pages(struct smart_relation *self, Relation index)
{
	struct smart_meta meta;

	smart_journal_lock(index, SMART_LOCK_REMOVE);
	smart_meta_read(index, &meta);
	if (smart_meta_is_loadable(&meta))
		smart_check_run(index, self->codec, &meta);
	smart_journal_unlock(index, SMART_LOCK_REMOVE);
	return meta.run_entries + meta.adds;
}
