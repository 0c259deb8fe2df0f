/*
 * chain.c
 *	  The chain of log pages: appending operations to its tail.
 *
 * An append changes two places of one page, which it knows: pd_lower, and the bytes behind the content; so does a new tail
 * with the heads of pages.  So they make the record of PostgreSQL's generic resource manager themselves, without the
 * comparison of whole pages by which GenericXLogFinish() would find what was changed.  What redoes it is PostgreSQL's own:
 * for each block a list of offset, length and bytes (test/tap/journal_record.pl asks each version of the server).
 *
 * Pages are locked in the order: a free page, the tail, the metapage.
 */
#include "postgres.h"

#include "access/rmgr.h"
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "am/compat.h"
#include "am/journal/chain.h"
#include "am/journal/free.h"
#include "am/server/errands.h"
#include "am/server/tree_changes.h"
#include "base/assert.h"

#define STEPS_MAX   8 /* from page to page before the metapage is asked where the tail is */
#define KNOWN_TAILS 64

/* ---- how many operations a page has ---- */

/* Of the page to which this process appended last, as long as nobody else has: else they are counted on the page. */
static struct
{
	uint64 journal;
	uint64 serial;
	LocationIndex end; /* pd_lower when they were counted */
	uint32 adds;
	uint32 removals;
} counted;

/* So many were appended to a page whose content ended there, and ends here now. */
static void
count_appended(const struct smart_tail *tail, LocationIndex from, LocationIndex to, enum smart_operation operation,
			   uint32 count)
{
	smart_assert(from >= SMART_PAGE_BEGIN && from < to && to <= BLCKSZ);
	smart_assert(count > 0 && (operation == SMART_OPERATION_ADD || operation == SMART_OPERATION_REMOVE));
	if (counted.journal != tail->journal || counted.serial != tail->serial || counted.end != from)
	{
		counted.adds = counted.removals = 0;
		/* What stands before it is not known. */
		counted.journal = from == SMART_PAGE_BEGIN ? tail->journal : 0;
		counted.serial = tail->serial;
	}
	counted.end = to;
	if (operation == SMART_OPERATION_ADD)
		counted.adds += count;
	else
		counted.removals += count;
}

/* Adds the operations of a page, which is getting a next one, to what the metapage says of all such pages. */
static void
count_page(Page page, struct smart_meta *meta)
{
	const struct smart_page_head *head = smart_page_head(page);

	if (counted.journal == head->journal && counted.serial == head->number &&
		counted.end == ((PageHeader) page)->pd_lower)
	{
		meta->adds += counted.adds;
		meta->removals += counted.removals;
	}
	else
		smart_log_page_count(page, &meta->adds, &meta->removals);
}

/* ---- one record ---- */

#define CONTENTS MAXALIGN(SizeOfPageHeaderData) /* where the metapage, and the head of a page, begin */

/* A change of a page, as in a generic record; the bytes follow. */
struct change
{
	OffsetNumber offset;
	OffsetNumber length;
};

/* What precedes the bytes of a batch in its record: the change of pd_lower, and the head of the other one. */
struct append
{
	struct change first;
	LocationIndex lower;
	struct change second;
};

StaticAssertDecl(sizeof(struct append) == 10, "there is nothing between the parts of a record");

/* Appends a batch to the tail, which is locked and has room. */
static void
write_batch(Relation index, Buffer buffer, const uint8 *batch, int length)
{
	Page page = BufferGetPage(buffer);
	LocationIndex lower = ((PageHeader) page)->pd_lower;
	const struct append append = {
		.first = {.offset = offsetof(PageHeaderData, pd_lower), .length = sizeof(LocationIndex)},
		.lower = (LocationIndex) (lower + length),
		.second = {.offset = lower, .length = (OffsetNumber) length},
	};

	smart_assert(lower >= SMART_PAGE_BEGIN && lower + length <= BLCKSZ && length > 0);
	smart_assert(smart_page_head(page)->next == InvalidBlockNumber);
	START_CRIT_SECTION();
	memcpy((char *) page + lower, batch, (Size) length);
	((PageHeader) page)->pd_lower = append.lower;
	MarkBufferDirty(buffer);
	if (RelationNeedsWAL(index))
	{
		XLogRecPtr end;

		XLogBeginInsert();
		XLogRegisterBuffer(0, buffer, REGBUF_STANDARD);
		XLogRegisterBufData(0, (char *) &append, sizeof(append));
		XLogRegisterBufData(0, (char *) page + lower, (uint32) length);
		end = XLogInsert(RM_GENERIC_ID, 0);
		PageSetLSN(page, end);
	}
	END_CRIT_SECTION();
}

/* ---- where the tail is ---- */

/*
 * The tails that this process saw last, so that a statement need not begin where the chain was when the index was opened.
 * A journal's id is in each page, so that whatever became of the block since, no other page is taken for it.
 */
static struct smart_tail known[KNOWN_TAILS];

static struct smart_tail *
known_tail(uint64 journal)
{
	return &known[journal % KNOWN_TAILS];
}

/* Goes to the tail that this process knows, if that is further on. */
static void
recall(struct smart_tail *tail)
{
	const struct smart_tail *last = known_tail(tail->journal);

	if (last->journal == tail->journal && last->serial > tail->serial)
		*tail = *last;
}

static void
take_tail(struct smart_tail *tail, const struct smart_meta *meta)
{
	*tail = (struct smart_tail){.journal = meta->journal,
								.serial = meta->tail_serial,
								.block = meta->tail_block,
								.buffer = InvalidBuffer};
}

static void
ask_metapage(Relation index, struct smart_tail *tail)
{
	struct smart_meta meta;

	smart_meta_read(index, &meta);
	take_tail(tail, &meta);
	smart_assert(tail->journal != 0);
}

/*
 * Locks the page that is known as the tail; InvalidBuffer, and nothing is locked: it is not a page of the chain.  held: a
 * free page that this process has locked, or InvalidBuffer; where the tail is damaged it may be that page.
 */
static Buffer
lock_page(Relation index, const struct smart_tail *tail, Buffer held)
{
	Buffer buffer = tail->buffer;

	smart_assert(tail->journal != 0 && tail->serial != 0);
	if (BufferIsValid(held) && BufferGetBlockNumber(held) == tail->block)
		return InvalidBuffer;

	/* Where it was found it mostly still is: then there is such a block, and its buffer need not be looked up. */
	if (!BufferIsValid(buffer) || !ReadRecentBuffer(smart_relation_locator(index), MAIN_FORKNUM, tail->block, buffer))
	{
		if (tail->block >= RelationGetNumberOfBlocks(index))
			return InvalidBuffer;
		/* A page whose checksum is wrong is as good as none: the chain goes on elsewhere, and is stale. */
		buffer = ReadBufferExtended(index, MAIN_FORKNUM, tail->block, RBM_ZERO_ON_ERROR, NULL);
	}
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	if (smart_page_is(BufferGetPage(buffer), SMART_PAGE_LOG, tail->journal, tail->serial))
		return buffer;
	UnlockReleaseBuffer(buffer);
	return InvalidBuffer;
}

/* ---- a new tail ---- */

/* The pages that are changed when the chain gets one more, all locked. */
struct link
{
	Buffer fresh;
	Buffer old; /* InvalidBuffer: there is none */
	Buffer meta_buffer;
	struct smart_meta meta;
};

/* A change of a page that has been made already.  Both are needed until the record is inserted. */
static void
register_change(uint8 number, Buffer buffer, const struct change *change)
{
	smart_assert(change->length > 0 && change->offset + change->length <= BLCKSZ);
	XLogRegisterBuffer(number, buffer, REGBUF_STANDARD);
	XLogRegisterBufData(number, (char *) change, sizeof(*change));
	XLogRegisterBufData(number, BufferGetPage(buffer) + change->offset, change->length);
}

static void
log_link(const struct link *link)
{
	const struct change meta = {.offset = CONTENTS, .length = sizeof(struct smart_meta)};
	const struct change head = {.offset = CONTENTS, .length = sizeof(struct smart_page_head)};
	XLogRecPtr end;

	smart_assert(CritSectionCount > 0);
	XLogBeginInsert();
	XLogRegisterBuffer(0, link->fresh, REGBUF_FORCE_IMAGE | REGBUF_STANDARD);
	register_change(1, link->meta_buffer, &meta);
	if (BufferIsValid(link->old))
		register_change(2, link->old, &head);
	end = XLogInsert(RM_GENERIC_ID, 0);
	PageSetLSN(BufferGetPage(link->fresh), end);
	PageSetLSN(BufferGetPage(link->meta_buffer), end);
	if (BufferIsValid(link->old))
		PageSetLSN(BufferGetPage(link->old), end);
}

/* Makes the fresh page the tail, by one record; the chain begins with it if there is no old one. */
static void
link_page(Relation index, struct link *link)
{
	struct smart_meta *meta = &link->meta;
	struct smart_chain_place begin = {.serial = meta->tail_serial + 1,
									  .block = BufferGetBlockNumber(link->fresh),
									  .offset = SMART_PAGE_BEGIN};

	smart_assert(begin.block != SMART_META_BLOCK);
	smart_assert(link->fresh != link->old && link->fresh != link->meta_buffer && link->old != link->meta_buffer);
	if (BufferIsValid(link->old))
		count_page(BufferGetPage(link->old), meta);
	START_CRIT_SECTION();
	smart_page_init(BufferGetPage(link->fresh), SMART_PAGE_LOG, meta->journal, begin.serial, 0);
	MarkBufferDirty(link->fresh);
	if (BufferIsValid(link->old))
	{
		Page old = BufferGetPage(link->old);

		smart_assert(smart_page_head(old)->number == meta->tail_serial);
		smart_page_head(old)->next = begin.block;
		smart_page_head(old)->position = ((PageHeader) old)->pd_lower;
		MarkBufferDirty(link->old);
	}
	else
		meta->cut = begin;
	meta->tail_serial = begin.serial;
	meta->tail_block = begin.block;
	smart_meta_put(BufferGetPage(link->meta_buffer), meta);
	MarkBufferDirty(link->meta_buffer);
	if (RelationNeedsWAL(index))
		log_link(link);
	END_CRIT_SECTION();
}

/*
 * Makes a new tail behind the one that is known, or the first page of the chain, and returns it locked.  InvalidBuffer:
 * another process has been faster.  The known tail moves there in any case.  lost: the page that the metapage names as
 * the tail is none, so what it held is lost.  *spare: a free page that the caller has taken, or InvalidBuffer; what is
 * left of it afterwards is the caller's.
 */
static Buffer
add_page(Relation index, struct smart_tail *tail, bool lost, Buffer *spare)
{
	struct link link = {.fresh = *spare, .old = InvalidBuffer};
	bool linked;

	smart_assert(tail->serial != 0 || !lost);
	if (!BufferIsValid(link.fresh))
	{
		smart_meta_read(index, &link.meta);
		link.fresh = smart_page_take(index, &link.meta);
	}
	if (tail->serial != 0 && !lost)
		link.old = lock_page(index, tail, link.fresh);
	link.meta_buffer = smart_meta_lock(index, &link.meta);
	lost = lost && link.meta.tail_serial == tail->serial;
	linked = lost || link.meta.tail_serial == 0 || (BufferIsValid(link.old) && link.meta.tail_serial == tail->serial);
	if (lost)
		smart_meta_lose_journal(&link.meta);
	if (linked)
		link_page(index, &link);
	take_tail(tail, &link.meta);
	smart_assert(!linked || (tail->serial > 0 && tail->block == BufferGetBlockNumber(link.fresh)));
	UnlockReleaseBuffer(link.meta_buffer);
	if (BufferIsValid(link.old))
		UnlockReleaseBuffer(link.old);
	*spare = linked ? InvalidBuffer : link.fresh;
	/* No worker sees a file that this transaction has made. */
	if (linked && (smart_meta_wants_compaction(&link.meta) || smart_meta_wants_release(&link.meta)) &&
		index->rd_createSubid == InvalidSubTransactionId &&
		smart_relation_new_file_subid(index) == InvalidSubTransactionId)
		smart_errand_request(SMART_ERRAND_COMPACT, smart_relation_database(index), RelationGetRelid(index));
	if (lost)
		ereport(LOG, errcode(ERRCODE_INDEX_CORRUPTED),
				errmsg("the last page of the journal of index \"%s\" is damaged", RelationGetRelationName(index)),
				errdetail("The index itself is not concerned; its journal is going to be written anew."));
	return linked ? link.fresh : InvalidBuffer;
}

/* ---- the tail, locked ---- */

/*
 * Finds and locks the tail: the page that has no next one.  A page and the metapage are told of the next one by the same
 * record, so that the metapage names a later page than any that was passed; else there is damage, and no way to go on.
 * *spare: as of add_page(); NULL: none may be taken, so that InvalidBuffer is returned where one is needed.
 */
static Buffer
find_tail(Relation index, struct smart_tail *tail, Buffer *spare)
{
	uint64 passed = 0;  /* serial of the last page that has a next one */
	bool asked = false; /* tail is what the metapage says */

	for (int steps = 1;; steps++)
	{
		Buffer buffer;
		BlockNumber next;

		CHECK_FOR_INTERRUPTS();
		if (tail->journal == 0 || (!asked && steps % STEPS_MAX == 0))
		{
			ask_metapage(index, tail);
			asked = true;
		}
		buffer = tail->serial > passed ? lock_page(index, tail, spare != NULL ? *spare : InvalidBuffer) : InvalidBuffer;
		if (!BufferIsValid(buffer))
		{
			if (asked)
			{
				if (spare != NULL)
					buffer = add_page(index, tail, tail->serial != 0, spare);
				if (BufferIsValid(buffer) || spare == NULL)
					return buffer;
				passed = 0;
			}
			else
				ask_metapage(index, tail);
			asked = true;
			continue;
		}
		next = smart_page_head(BufferGetPage(buffer))->next;
		tail->buffer = buffer;
		if (next == InvalidBlockNumber)
			return buffer;
		UnlockReleaseBuffer(buffer);
		passed = tail->serial++;
		tail->block = next;
		tail->buffer = InvalidBuffer;
		asked = false;
	}
}

/* Locks the tail when it has room for so many bytes, and sets tail; *spare: as of find_tail(). */
static Buffer
lock_tail(Relation index, struct smart_tail *tail, Size bytes, Buffer *spare)
{
	smart_assert(bytes <= SMART_PAGE_ROOM && !RecoveryInProgress());
	smart_assert(CritSectionCount == 0);
	recall(tail);
	for (;;)
	{
		Buffer buffer = find_tail(index, tail, spare);

		smart_assert(tail->journal != 0);
		smart_assert(!BufferIsValid(buffer) || (tail->serial > 0 && tail->block == BufferGetBlockNumber(buffer)));
		*known_tail(tail->journal) = *tail;
		if (!BufferIsValid(buffer) || PageGetExactFreeSpace(BufferGetPage(buffer)) >= bytes)
			return buffer;
		UnlockReleaseBuffer(buffer);
		if (spare == NULL)
			return InvalidBuffer;
		buffer = add_page(index, tail, false, spare);
		if (BufferIsValid(buffer))
			return buffer;
	}
}

/* ---- operations ---- */

/* Finishes a batch of count operations, which the locked tail has room for, and appends it. */
static void
append_batch(Relation index, const struct smart_tail *tail, Buffer buffer, uint8 *batch, int length,
			 enum smart_operation operation, uint32 count)
{
	LocationIndex lower = ((PageHeader) BufferGetPage(buffer))->pd_lower;

	smart_assert(length > (int) sizeof(struct smart_batch_head) && lower + length <= BLCKSZ);
	smart_assert(tail->block == BufferGetBlockNumber(buffer));
	smart_batch_finish(batch, length, operation, tail->serial, lower);
	write_batch(index, buffer, batch, length);
	count_appended(tail, lower, (LocationIndex) (lower + length), operation, count);
}

/* Appends as many of the entries from first on as the locked tail has room for, by one record; returns the next one. */
static uint32
append_some(Relation index, const struct smart_tail *tail, Buffer buffer, const struct smart_entries *entries,
			uint32 first)
{
	uint8 batch[BLCKSZ];
	struct smart_packer packer;
	LocationIndex lower = ((PageHeader) BufferGetPage(buffer))->pd_lower;
	uint32 i = first;

	smart_assert(first < entries->count);
	smart_packer_begin(&packer, batch + sizeof(struct smart_batch_head), batch + BLCKSZ - lower);
	while (i < entries->count && smart_packer_add(&packer, entries->bytes + entries->start[i],
												  (int) (entries->start[i + 1] - entries->start[i])))
		i++;
	smart_assert(i > first && i <= entries->count);
	append_batch(index, tail, buffer, batch, (int) (packer.at - batch), SMART_OPERATION_ADD, i - first);
	return i;
}

/* Bytes of a batch with this one entry. */
static Size
batch_bytes(const struct smart_entries *entries, uint32 i)
{
	smart_assert(i < entries->count && entries->start[i] < entries->start[i + 1]);
	smart_assert(entries->start[i + 1] - entries->start[i] <= SMART_ENTRY_MAX);
	return sizeof(struct smart_batch_head) + SMART_PACKED_MAX(entries->start[i + 1] - entries->start[i]);
}

/* A page that was taken, and not used since others were faster. */
static void
give_back(Relation index, Buffer spare)
{
	if (BufferIsValid(spare))
		smart_page_give_back(index, spare);
}

bool
smart_chain_add(Relation index, struct smart_tail *tail, uint32 changes, const uint8 *entry, int length)
{
	const uint32 start[] = {0, (uint32) length};
	const struct smart_entries entries = {.bytes = entry, .start = start, .count = 1};
	Buffer spare = InvalidBuffer;
	Buffer buffer = lock_tail(index, tail, batch_bytes(&entries, 0), &spare);
	bool current = smart_changes() == changes;

	smart_assert(BufferIsValid(buffer));
	if (current)
		(void) append_some(index, tail, buffer, &entries, 0);
	UnlockReleaseBuffer(buffer);
	give_back(index, spare);
	return current;
}

uint32
smart_chain_add_all(Relation index, struct smart_tail *tail, Buffer *spare, const struct smart_entries *entries)
{
	uint32 i = 0;

	while (i < entries->count)
	{
		Buffer buffer = lock_tail(index, tail, batch_bytes(entries, i), BufferIsValid(*spare) ? spare : NULL);

		if (!BufferIsValid(buffer))
			break;
		i = append_some(index, tail, buffer, entries, i);
		UnlockReleaseBuffer(buffer);
	}
	smart_assert(i <= entries->count);
	return i;
}

void
smart_chain_remove_batch(Relation index, struct smart_tail *tail, struct smart_reserve *reserve,
						 const struct smart_packed *packed)
{
	Buffer spare = smart_reserve_lock(index, reserve);
	Buffer buffer = lock_tail(index, tail, packed->length, &spare);

	smart_assert(packed->count > 0);
	smart_assert(BufferIsValid(buffer));
	append_batch(index, tail, buffer, packed->bytes, packed->length, SMART_OPERATION_REMOVE, packed->count);
	UnlockReleaseBuffer(buffer);
	smart_reserve_unlock(index, reserve, spare);
}

Size
smart_chain_room(Relation index, struct smart_tail *tail)
{
	Buffer buffer = lock_tail(index, tail, 0, NULL);
	Size room = 0;

	if (BufferIsValid(buffer))
	{
		room = PageGetExactFreeSpace(BufferGetPage(buffer));
		UnlockReleaseBuffer(buffer);
	}
	smart_assert(room <= SMART_PAGE_ROOM);
	return room;
}

/* Pages that batches take besides the tail, as full as that is now. */
static uint32
count_pages(Relation index, struct smart_tail *tail, const struct smart_batches *batches)
{
	Size room = smart_chain_room(index, tail);
	uint32 pages = 0;

	for (uint32 i = 0; i < batches->count; i++)
	{
		smart_assert(batches->packed[i].length <= SMART_PAGE_ROOM);
		if (batches->packed[i].length > room)
		{
			room = SMART_PAGE_ROOM;
			pages++;
		}
		room -= batches->packed[i].length;
	}
	smart_assert(pages <= batches->count);
	return pages;
}

void
smart_chain_remove(Relation index, struct smart_tail *tail, const struct smart_batches *batches, volatile uint32 *done)
{
	struct smart_reserve reserve;

	*done = 0;
	/* A disk that is full is found so before anything is in the journal. */
	smart_reserve_begin(index, &reserve, count_pages(index, tail, batches));
	for (; *done < batches->count; ++*done)
		smart_chain_remove_batch(index, tail, &reserve, &batches->packed[*done]);
	smart_reserve_end(index, &reserve);
	smart_assert(*done == batches->count);
}

void
smart_chain_end(Relation index, struct smart_tail *tail, struct smart_chain_place *end)
{
	Buffer spare = InvalidBuffer;
	Buffer buffer = lock_tail(index, tail, 0, &spare);

	smart_assert(BufferIsValid(buffer));
	*end = (struct smart_chain_place){.serial = tail->serial,
									  .block = BufferGetBlockNumber(buffer),
									  .offset = ((PageHeader) BufferGetPage(buffer))->pd_lower};
	UnlockReleaseBuffer(buffer);
	give_back(index, spare);
	smart_assert(end->serial > 0 && end->block == tail->block);
	smart_assert(end->offset >= SMART_PAGE_BEGIN && end->offset <= BLCKSZ);
}
