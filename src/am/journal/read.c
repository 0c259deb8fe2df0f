/*
 * read.c
 *	  Reading a journal: its pages, and the operations of its chain.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/rel.h"

#include "am/compat.h"
#include "am/journal/read_page.h"
#include "base/assert.h"

#define AHEAD   32 /* blocks behind the one that is read: pages mostly follow each other */
#define AT_ONCE 2  /* of them, asked for when a page is read: some lie anywhere */

void
smart_reader_begin(struct smart_reader *reader, Relation index, uint64 journal, uint64 number, BlockNumber block,
				   bool bulk)
{
	memset(reader, 0, offsetof(struct smart_reader, unpacker));
	reader->index = index;
	reader->strategy = bulk ? GetAccessStrategy(BAS_BULKREAD) : NULL;
	reader->ahead = bulk;
	reader->journal = journal;
	reader->number = number;
	reader->block = block;
	reader->asked = InvalidBlockNumber;
	reader->listed = InvalidBlockNumber;
	smart_assert((number == 0) == (block == InvalidBlockNumber));
}

void
smart_reader_report(const struct smart_reader *reader, const char *what)
{
	ereport(ERROR, errcode(ERRCODE_INDEX_CORRUPTED),
			errmsg("the journal of index \"%s\" is damaged", RelationGetRelationName(reader->index)),
			errdetail_internal("Block %u %s.", reader->block, what), smart_hint_reindex(reader->index));
}

/*
 * The page is not what was expected: has it been used again?  Only if the metapage has gone on so far that it may have
 * been: then this reader is too old, and else the page is damaged.
 */
static enum smart_found
explain_page(const struct smart_reader *reader, enum smart_page_kind kind)
{
	struct smart_meta meta;

	smart_meta_read(reader->index, &meta);
	if (meta.journal != reader->journal)
		return SMART_FOUND_BEHIND;
	if (kind == SMART_PAGE_LOG ? reader->number < meta.previous_serial
							   : meta.run != reader->number && meta.previous_run != reader->number)
		return SMART_FOUND_BEHIND;
	smart_reader_report(reader, "is not the page that should follow");
}

/* Asks for some of the blocks behind this one, but for those that were asked for already. */
static void
ask_ahead(struct smart_reader *reader)
{
	if (reader->asked == InvalidBlockNumber || reader->asked < reader->block || reader->asked > reader->block + AHEAD)
		reader->asked = reader->block;
	for (int i = 0; i < AT_ONCE && reader->asked < reader->block + AHEAD && reader->asked + 1 < reader->blocks; i++)
		(void) PrefetchBuffer(reader->index, MAIN_FORKNUM, ++reader->asked);
	smart_assert(reader->asked >= reader->block && reader->asked - reader->block <= AHEAD);
}

static bool
is_expected(const struct smart_reader *reader, Page page, enum smart_page_kind kind)
{
	return kind == SMART_PAGE_RUN ? smart_page_is_of_runs(page, reader->journal, reader->least, reader->number)
								  : smart_page_is(page, kind, reader->journal, reader->number);
}

enum smart_found
smart_reader_lock_page(struct smart_reader *reader, enum smart_page_kind kind, Buffer *buffer, bool *from_disk)
{
	int64 reads = pgBufferUsage.shared_blks_read;

	smart_assert(kind == SMART_PAGE_RUN || kind == SMART_PAGE_FENCE || kind == SMART_PAGE_LOG);
	CHECK_FOR_INTERRUPTS();
	/* Files only grow. */
	if (reader->block >= reader->blocks || reader->strategy != NULL)
		reader->blocks = RelationGetNumberOfBlocks(reader->index);
	if (reader->block >= reader->blocks)
		smart_reader_report(reader, "is missing");
	if (reader->ahead && kind != SMART_PAGE_FENCE)
		ask_ahead(reader);
	*buffer = ReadBufferExtended(reader->index, MAIN_FORKNUM, reader->block, RBM_NORMAL, reader->strategy);
	*from_disk = pgBufferUsage.shared_blks_read != reads;
	LockBuffer(*buffer, BUFFER_LOCK_SHARE);
	if (is_expected(reader, BufferGetPage(*buffer), kind))
		return SMART_FOUND;
	UnlockReleaseBuffer(*buffer);
	return explain_page(reader, kind);
}

enum smart_found
smart_reader_load_page(struct smart_reader *reader, enum smart_page_kind kind)
{
	Buffer buffer;
	bool from_disk;
	enum smart_found found = smart_reader_lock_page(reader, kind, &buffer, &from_disk);
	uint32 end = BLCKSZ;
	Page page;

	if (found != SMART_FOUND)
		return found;
	page = BufferGetPage(buffer);
	reader->from = 0;
	if (kind == SMART_PAGE_LOG)
	{
		reader->from = reader->offset;
		end = Min(((PageHeader) page)->pd_lower, BLCKSZ);
		memcpy(reader->page.data, page, SMART_PAGE_BEGIN);
	}
	if (reader->from < end)
		memcpy(reader->page.data + reader->from, (const char *) page + reader->from, end - reader->from);
	UnlockReleaseBuffer(buffer);
	reader->loaded = true;
	reader->only_group = false;
	return SMART_FOUND;
}

void
smart_reader_check(const struct smart_reader *reader, const struct smart_codec *codec, bool key_only)
{
	const struct smart_unpacker *from = &reader->unpacker;
	int key_length = from->length;
	bool sound;

	if (codec->fixed_length > 0)
	{
		sound = from->length == (key_only ? codec->fixed_key_length : codec->fixed_length);
		key_length = codec->fixed_key_length;
	}
	else
	{
		sound = from->length > Max(codec->payload_width, 2) || key_only;
		if (sound && !key_only)
			key_length = smart_codec_key_length(codec, from->entry, from->length);
		sound = sound && key_length > 0 && key_length <= SMART_KEY_MAX;
	}
	/* There is a TID at the end of each key, and something before it. */
	sound = sound && key_length > smart_entry_tid_width(codec, from->entry[key_length - 1]);
	if (!sound)
		smart_reader_report(reader, "holds what is no entry of this index");
}

/* ---- the chain ---- */

void
smart_reader_begin_chain(struct smart_reader *reader, Relation index, const struct smart_meta *meta,
						 const struct smart_chain_place *place, bool bulk)
{
	smart_reader_begin(reader, index, meta->journal, place->serial,
					   place->serial == 0 ? InvalidBlockNumber : place->block, bulk);
	reader->offset = place->offset;
	reader->reaches = meta->tail_serial;
	/* It was there when the chain came to this place. */
	reader->blocks = place->serial == 0 ? 0 : place->block + 1;
}

void
smart_reader_move(struct smart_reader *reader, const struct smart_chain_place *place)
{
	smart_assert(reader->reaches > 0 && place->serial > 0);
	smart_assert(place->offset >= SMART_PAGE_BEGIN);
	reader->loaded = reader->loaded && reader->number == place->serial && reader->block == place->block &&
					 reader->from <= place->offset;
	reader->number = place->serial;
	reader->block = place->block;
	reader->offset = place->offset;
	reader->in_batch = false;
}

/* The page that was read is done.  The last one of the chain is looked at again the next time. */
static enum smart_found
end_page(struct smart_reader *reader)
{
	const struct smart_page_head *head = smart_page_head(reader->page.data);
	uint32 end = ((PageHeader) reader->page.data)->pd_lower;

	smart_assert(reader->loaded && reader->offset == end);
	reader->loaded = false;
	if (head->next == InvalidBlockNumber)
	{
		/* The metapage was read before this page, and names the next one since the same moment as this page. */
		if (reader->number < reader->reaches)
			smart_reader_report(reader, "has no next page, but the chain goes on");
		return SMART_FOUND_END;
	}
	if (head->position != end)
		smart_reader_report(reader, "does not end where it did when it got a next page");
	reader->block = head->next;
	reader->number++;
	reader->offset = SMART_PAGE_BEGIN;
	return SMART_FOUND;
}

enum smart_found
smart_reader_next_operation(struct smart_reader *reader)
{
	enum smart_found found;

	smart_assert(reader->expected_pages == 0 && !reader->begun && !reader->sought);
	if (reader->block == InvalidBlockNumber)
		return SMART_FOUND_END;
	for (;;)
	{
		if (reader->in_batch)
		{
			if (smart_unpacker_next(&reader->unpacker))
				return SMART_FOUND;
			if (reader->unpacker.at != reader->unpacker.end)
				smart_reader_report(reader, "holds what is no operation");
			reader->in_batch = false;
		}
		if (!reader->loaded)
		{
			found = smart_reader_load_page(reader, SMART_PAGE_LOG);
			if (found != SMART_FOUND)
				return found;
			reader->pages++;
		}
		smart_assert(reader->from <= reader->offset);
		if (reader->offset < ((PageHeader) reader->page.data)->pd_lower)
		{
			if (!smart_batch_open(reader->page.data, reader->offset, &reader->unpacker, &reader->operation,
								  &reader->offset))
				smart_reader_report(reader, "holds what is no batch of operations");
			smart_assert(reader->offset <= ((PageHeader) reader->page.data)->pd_lower);
			reader->in_batch = true;
			continue;
		}
		if (reader->offset > ((PageHeader) reader->page.data)->pd_lower)
			smart_reader_report(reader, "ends before where it was read already");
		found = end_page(reader);
		if (found != SMART_FOUND)
			return found;
	}
}

bool
smart_reader_at_batch_end(const struct smart_reader *reader)
{
	return !reader->in_batch || reader->unpacker.at == reader->unpacker.end;
}

struct smart_chain_place
smart_reader_place(const struct smart_reader *reader)
{
	smart_assert(smart_reader_at_batch_end(reader));
	return (struct smart_chain_place){.serial = reader->number, .block = reader->block, .offset = reader->offset};
}
