/*
 * staging.c
 *	  Staging areas: adds of one backend that are in the tree, but not in the chain yet.
 *
 * Each backend has one area in shared memory, under a lock of its own, so that others can write out what it holds of an
 * index.  Who writes out has the area locked until the record is in WAL.  Meanwhile he waits for no heavyweight lock, pin
 * or I/O but those of the chain's pages: a page that is needed is taken before, in a second attempt.  An area holds no
 * more than fits on one page, so one is enough unless others are faster.
 *
 * A unique check looks for adds of one key, under that key's lock, and there is mostly none.  So each area has a filter of the
 * hashes of keys that stand in it; it may have more, until the area is empty, and never lacks one.  Who adds notes the hash under
 * the key's lock, and the filter is emptied when what the area had is in the chain, or has gone.
 *
 * Adds of a subtransaction that is rolled back are taken out again.  Numbers of subtransactions ascend, so they are those
 * with its number and greater ones, of what began within it.  They need not stand last: an add that has waited (pending.h)
 * comes with the number of the subtransaction that inserted its row.  Nothing is done when a subtransaction begins.
 *
 * From the moment in which the transaction's adds are written out for its commit, adds go into the chain at once: other
 * callbacks at that moment may insert, too.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "port/pg_bitutils.h"
#include "storage/ipc.h"
#include "storage/lmgr.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "tcop/utility.h"
#include "utils/rel.h"

#include "am/compat.h"
#include "am/index/relation.h"
#include "am/journal/chain.h"
#include "am/journal/due.h"
#include "am/journal/free.h"
#include "am/journal/pending.h"
#include "am/journal/staging.h"
#include "am/server/errands.h"
#include "am/server/tree_changes.h"
#include "base/assert.h"
#include "base/bytes.h"

#define WRITTEN_BETWEEN 16 /* areas, between two looks at the length of a chain */

#define TRANCHE      "smart_staging"
#define INDEXES_MAX  16
#define FILTER_WORDS 64
#define AREA_BYTES \
	(SMART_PAGE_ROOM - 512) /* what it holds becomes one batch for each index, a little longer or shorter */

/* An index that this transaction has staged adds of. */
struct staged_index
{
	Oid index;
	smart_file file;
	uint64 journal;
	uint32 count;              /* of adds in the area */
	SubTransactionId lock_end; /* with which the lock of the index goes, if it is rolled back; 0: it is gone */
};

/* In front of each staged entry. */
struct staged
{
	uint32 subtransaction;
	uint16 index; /* in indexes */
	uint16 length;
};

struct area
{
	uint32 nindexes;
	uint32 count;                /* of adds */
	uint32 used;                 /* of bytes */
	uint32 last;                 /* greatest subtransaction of an entry, 0 without one */
	bool filtered;               /* the filter is not empty */
	uint64 filter[FILTER_WORDS]; /* read without the lock; a bit for each hash */
	struct staged_index indexes[INDEXES_MAX];
	uint8 bytes[AREA_BYTES];
};

static struct area *areas; /* one for each backend */
static uint64 *busy;       /* a bit for each area that is not empty */
static LWLockPadded *locks;
static int own = -1;               /* this backend's area, once it has been used */
static bool write_through = false; /* the transaction is about to end */
static ProcessUtility_hook_type previous_utility_hook;

/* ---- areas ---- */

static Size
busy_bytes(void)
{
	return mul_size((Size) MaxBackends / 64 + 1, sizeof(uint64));
}

void
smart_staging_request(void)
{
	RequestAddinShmemSpace(mul_size((Size) MaxBackends, sizeof(struct area)));
	RequestAddinShmemSpace(busy_bytes());
	RequestNamedLWLockTranche(TRANCHE, MaxBackends);
}

void
smart_staging_make(void)
{
	Size size = mul_size((Size) MaxBackends, sizeof(struct area));
	bool found;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	areas = ShmemInitStruct("smart staging areas", size, &found);
	memset(areas, 0, size);
	busy = ShmemInitStruct("smart staging areas in use", busy_bytes(), &found);
	memset(busy, 0, busy_bytes());
	locks = GetNamedLWLockTranche(TRANCHE);
	LWLockRelease(AddinShmemInitLock);
}

static inline uint64
busy_bit(int number)
{
	smart_assert(number >= 0);
	return UINT64CONST(1) << (number % 64);
}

/* The area, which is locked, gets its first add; or it is empty, and the chain has what it had.  Partner: next_busy(). */
static void
set_busy(int number, bool is_busy)
{
	smart_assert(number < MaxBackends);
	smart_assert(LWLockHeldByMeInMode(&locks[number].lock, LW_EXCLUSIVE));
	if (is_busy)
		__atomic_fetch_or(&busy[number / 64], busy_bit(number), __ATOMIC_RELEASE);
	else
		__atomic_fetch_and(&busy[number / 64], ~busy_bit(number), __ATOMIC_RELEASE);
}

/* The first area from one on that is not empty, or MaxBackends: read without locks. */
static int
next_busy(int number)
{
	smart_assert(number >= 0 && number <= MaxBackends);
	for (int i = number / 64; i <= (MaxBackends - 1) / 64; i++)
	{
		uint64 bits = __atomic_load_n(&busy[i], __ATOMIC_ACQUIRE);

		if (i == number / 64)
			bits &= ~(busy_bit(number) - 1);
		if (bits != 0)
			return i * 64 + pg_rightmost_one_pos64(bits);
	}
	return MaxBackends;
}

/* Where the index stands in an area, or -1.  The area is locked, or this backend's own. */
static int
find_index(const struct area *area, Relation index, uint64 journal)
{
	smart_assert(area->nindexes <= INDEXES_MAX);
	for (uint32 i = 0; i < area->nindexes; i++)
	{
		const struct staged_index *staged = &area->indexes[i];

		if (staged->journal == journal &&
			memcmp(&staged->file, &smart_relation_locator(index), sizeof(smart_file)) == 0)
			return (int) i;
	}
	return -1;
}

static inline struct staged
staged_at(const struct area *area, uint32 at)
{
	struct staged staged;

	smart_assert(at + sizeof(staged) <= area->used);
	memcpy(&staged, area->bytes + at, sizeof(staged));
	smart_assert(staged.index < area->nindexes && at + sizeof(staged) + staged.length <= area->used);
	return staged;
}

/* ---- filters ---- */

static inline uint64 *
filter_word(struct area *area, uint32 hash)
{
	return &area->filter[hash / 64 % FILTER_WORDS];
}

static inline uint64
filter_bit(uint32 hash)
{
	return UINT64CONST(1) << (hash % 64);
}

/* May the area have an add of a key with this hash?  The caller has locked the key.  Partners: note_hash(), note_empty(). */
static inline bool
may_have(struct area *area, uint32 hash)
{
	return (__atomic_load_n(filter_word(area, hash), __ATOMIC_ACQUIRE) & filter_bit(hash)) != 0;
}

/* The area, which is locked, gets an add of such a key, which the caller has locked, too. */
static void
note_hash(struct area *area, uint32 hash)
{
	uint64 *word = filter_word(area, hash);

	smart_assert(area->used > 0);
	smart_assert(LWLockHeldByMeInMode(&locks[area - areas].lock, LW_EXCLUSIVE));
	__atomic_store_n(word, *word | filter_bit(hash), __ATOMIC_RELEASE);
	area->filtered = true;
}

/* The area, which is locked, has become empty. */
static void
note_empty(struct area *area)
{
	smart_assert(area->count == 0 && area->used == 0);
	for (uint32 i = 0; area->filtered && i < FILTER_WORDS; i++)
		__atomic_store_n(&area->filter[i], 0, __ATOMIC_RELEASE);
	area->filtered = false;
	set_busy((int) (area - areas), false);
}

/* Takes out the first entries of this index, at most so many, or, with index -1, those of this and later subtransactions. */
static void
take_out(struct area *area, int index, uint32 most, SubTransactionId subtransaction)
{
	uint32 kept = 0;
	uint32 next;

	smart_assert(index < (int) area->nindexes && area->used <= AREA_BYTES);
	smart_assert(index >= 0 || subtransaction != InvalidSubTransactionId);
	smart_assert(LWLockHeldByMeInMode(&locks[area - areas].lock, LW_EXCLUSIVE));
	area->last = 0;
	/* Mostly one index is concerned, and all of it goes. */
	if (index >= 0 && area->indexes[index].count == area->count && most >= area->count)
	{
		area->indexes[index].count = area->count = area->used = 0;
		note_empty(area);
		return;
	}
	for (uint32 at = 0; at < area->used; at = next)
	{
		struct staged staged = staged_at(area, at);

		next = at + sizeof(staged) + staged.length;
		if (index < 0 ? staged.subtransaction >= subtransaction : staged.index == index && most > 0)
		{
			smart_assert(area->indexes[staged.index].count > 0);
			area->indexes[staged.index].count--;
			area->count--;
			most -= most > 0;
			continue;
		}
		memmove(area->bytes + kept, area->bytes + at, next - at);
		kept += next - at;
		area->last = Max(area->last, staged.subtransaction);
	}
	area->used = kept;
	if (kept == 0)
		note_empty(area);
	smart_assert(index < 0 || most == 0 || area->indexes[index].count == 0);
	smart_assert((area->used == 0) == (area->count == 0));
}

/* ---- writing out ---- */

/* What an area has of one index, in order. */
struct gathered
{
	uint32 count;
	uint32 start[AREA_BYTES / (sizeof(struct staged) + 1) + 1];
	uint8 bytes[AREA_BYTES];
};

static void
gather(const struct area *area, int index, struct gathered *gathered)
{
	uint32 end = 0;

	smart_assert(index >= 0 && (uint32) index < area->nindexes);
	gathered->count = 0;
	for (uint32 at = 0; at < area->used;)
	{
		struct staged staged = staged_at(area, at);

		at += sizeof(staged);
		if (staged.index == index)
		{
			smart_copy_short(gathered->bytes + end, area->bytes + at, staged.length);
			gathered->start[gathered->count++] = end;
			end += staged.length;
		}
		at += staged.length;
	}
	gathered->start[gathered->count] = end;
	smart_assert(gathered->count == area->indexes[index].count && end <= area->used);
}

/*
 * Writes out what one area has of an index, as far as that needs no page but the spare one; returns whether something is
 * left.
 */
static bool
write_some(Relation index, struct smart_tail *tail, uint64 journal, int number, Buffer *spare)
{
	static struct gathered gathered;
	struct area *area = &areas[number];
	bool left = false;
	int place;

	smart_assert(number >= 0 && number < MaxBackends);
	LWLockAcquire(&locks[number].lock, LW_EXCLUSIVE);
	place = find_index(area, index, journal);
	if (place >= 0 && area->indexes[place].count > 0)
	{
		struct smart_entries entries = {.bytes = gathered.bytes, .start = gathered.start};

		gather(area, place, &gathered);
		entries.count = gathered.count;
		take_out(area, place, smart_chain_add_all(index, tail, spare, &entries), 0);
		left = area->indexes[place].count > 0;
	}
	LWLockRelease(&locks[number].lock);
	return left;
}

/*
 * An index whose pages answer has the chain in memory, so that this must not become too long, even if nobody asks the index.  What
 * it has is to be carried to memory nodes.
 */
static void
look_at_chain(Relation index)
{
	static uint32 written = 0;
	bool looks = ++written % WRITTEN_BETWEEN == 0;
	struct smart_meta meta;

	if (likely(!looks && !smart_relation_writes_back(index)))
		return;
	smart_meta_read_again(index, &meta);
	if (smart_relation_is_carried(index, &meta))
		smart_errand_request(SMART_ERRAND_CARRY, smart_relation_database(index), RelationGetRelid(index));
	if (looks && smart_compaction_is_due(index, &meta))
		smart_errand_request(SMART_ERRAND_COMPACT, smart_relation_database(index), RelationGetRelid(index));
}

/* Has the area, which is locked, an add of this key to the index? */
static bool
has_key(const struct area *area, int index, const struct smart_staged_key *key)
{
	uint32 next;

	smart_assert(index >= 0 && (uint32) index < area->nindexes);
	for (uint32 at = 0; at < area->used; at = next)
	{
		struct staged staged = staged_at(area, at);

		next = at + sizeof(staged) + staged.length;
		if (staged.index == index && staged.length >= key->length &&
			memcmp(area->bytes + at + sizeof(staged), key->bytes, key->length) == 0)
			return true;
	}
	return false;
}

/* Writes out what an area has of an index. */
static void
write_out_area(Relation index, struct smart_tail *tail, uint64 journal, int number)
{
	Buffer spare = InvalidBuffer;
	struct smart_meta meta;

	while (write_some(index, tail, journal, number, &spare))
	{
		smart_meta_read_again(index, &meta);
		spare = smart_page_take(index, &meta);
	}
	if (BufferIsValid(spare))
		smart_page_give_back(index, spare);
	look_at_chain(index);
}

/* Most areas have nothing of an index.  key: only if the area has adds of this key; NULL: of any. */
static void
look_into_area(Relation index, struct smart_tail *tail, uint64 journal, int number, const struct smart_staged_key *key)
{
	const struct area *area = &areas[number];
	bool found;
	int place;

	smart_assert(number >= 0 && number < MaxBackends);
	LWLockAcquire(&locks[number].lock, LW_SHARED);
	place = find_index(area, index, journal);
	found = place >= 0 && area->indexes[place].count > 0 && (key == NULL || has_key(area, place, key));
	LWLockRelease(&locks[number].lock);
	if (found)
		write_out_area(index, tail, journal, number);
}

void
smart_staging_write_out(Relation index, struct smart_tail *tail, bool settled)
{
	struct smart_meta meta;

	smart_meta_read_again(index, &meta);
	for (int i = 0; meta.journal != 0 && i < MaxBackends; i++)
	{
		/* An add is staged before its row's end can be seen by others, and so is what says that the area is not empty. */
		if (settled)
			i = next_busy(i);
		if (i < MaxBackends)
			look_into_area(index, tail, meta.journal, i, NULL);
	}
}

void
smart_staging_write_out_key(Relation index, struct smart_tail *tail, const struct smart_staged_key *key)
{
	struct smart_meta meta = {0};

	for (int i = next_busy(0); i < MaxBackends; i = next_busy(i + 1))
	{
		if (likely(!may_have(&areas[i], key->hash)))
			continue;
		if (meta.journal == 0)
			smart_meta_read_again(index, &meta);
		if (meta.journal == 0)
			break;
		look_into_area(index, tail, meta.journal, i, key);
	}
}

/*
 * Opens the index that has the file at this place of the own area, or returns NULL if there is none any more.  Mostly that is the
 * one that the adds were staged for.  But an extension may have exchanged the files of two indexes in the catalog since, without
 * a utility command, as pg_repack does.
 */
static Relation
open_staged(const struct area *area, int place)
{
	const struct staged_index *staged = &area->indexes[place];
	/* It is locked, if it is there (take_index()). */
	Relation index = RelationIdGetRelation(staged->index);
	Oid other;

	smart_assert(own >= 0 && area == &areas[own]);
	smart_assert(place >= 0 && (uint32) place < area->nindexes);
	if (likely(index != NULL && find_index(area, index, staged->journal) == place))
		return index;
	if (index != NULL)
		relation_close(index, NoLock);
	other = smart_relation_with_file(&staged->file);
	index = OidIsValid(other) ? try_relation_open(other, RowExclusiveLock) : NULL;
	if (index == NULL || find_index(area, index, staged->journal) == place)
		return index;
	relation_close(index, NoLock);
	return NULL;
}

/* An index that has gone, or has another file now, needs nothing. */
void
smart_staging_write_out_own(void)
{
	struct area *area;

	if (own < 0 || areas[own].used == 0)
		return;
	area = &areas[own];
	for (uint32 i = 0; i < area->nindexes; i++)
	{
		/* Where the chain's tail was last is known by the journal. */
		struct smart_tail tail = {.journal = area->indexes[i].journal};
		Relation index;

		if (area->indexes[i].count == 0)
			continue;
		index = open_staged(area, (int) i);
		if (index != NULL)
		{
			write_out_area(index, &tail, area->indexes[i].journal, own);
			relation_close(index, NoLock);
			continue;
		}
		LWLockAcquire(&locks[own].lock, LW_EXCLUSIVE);
		take_out(area, (int) i, UINT32_MAX, 0);
		LWLockRelease(&locks[own].lock);
	}
	smart_assert(area->used == 0);
}

/* ---- this backend's area ---- */

static void
forget_all(void)
{
	if (own < 0)
		return;
	LWLockAcquire(&locks[own].lock, LW_EXCLUSIVE);
	areas[own].nindexes = 0;
	if (areas[own].used > 0)
	{
		areas[own].used = areas[own].count = areas[own].last = 0;
		note_empty(&areas[own]);
	}
	LWLockRelease(&locks[own].lock);
}

static void
at_transaction_end(XactEvent event, void *argument)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			smart_staging_write_out_own();
			write_through = true;
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PREPARE:
		case XACT_EVENT_ABORT:
			smart_assert(event == XACT_EVENT_ABORT || own < 0 || areas[own].used == 0);
			forget_all();
			write_through = false;
			break;
		default:
			break;
	}
}

/* A lock that was taken in a subtransaction goes with that, or goes over to the one around it. */
static void
pass_locks(struct area *area, SubTransactionId mine, SubTransactionId parent)
{
	for (uint32 i = 0; i < area->nindexes; i++)
	{
		if (area->indexes[i].lock_end == mine)
			area->indexes[i].lock_end = parent;
	}
}

static void
at_subtransaction_end(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *argument)
{
	bool aborts = event == SUBXACT_EVENT_ABORT_SUB;

	if (own < 0 || (!aborts && event != SUBXACT_EVENT_COMMIT_SUB))
		return;
	/* Nobody else looks at that. */
	pass_locks(&areas[own], mine, aborts ? InvalidSubTransactionId : parent);
	if (!aborts || areas[own].last < mine)
		return;
	LWLockAcquire(&locks[own].lock, LW_EXCLUSIVE);
	take_out(&areas[own], -1, 0, mine);
	LWLockRelease(&locks[own].lock);
}

static void
begin_use(void)
{
	RegisterXactCallback(at_transaction_end, NULL);
	RegisterSubXactCallback(at_subtransaction_end, NULL);
	own = smart_my_backend_index();
	smart_assert(own >= 0 && own < MaxBackends && areas[own].used == 0);
}

/* The index's place in this backend's area; a new one holds the index until the transaction ends. */
static int
take_index(Relation index, uint64 journal)
{
	struct area *area = &areas[own];
	int place = find_index(area, index, journal);

	if (likely(place >= 0 && area->indexes[place].lock_end != InvalidSubTransactionId))
		return place;
	LockRelationOid(RelationGetRelid(index), RowExclusiveLock);
	if (place >= 0)
	{
		area->indexes[place].lock_end = GetCurrentSubTransactionId();
		return place;
	}
	if (area->nindexes == INDEXES_MAX)
	{
		smart_staging_write_out_own();
		forget_all();
	}
	smart_assert(area->nindexes < INDEXES_MAX);
	LWLockAcquire(&locks[own].lock, LW_EXCLUSIVE);
	place = (int) area->nindexes;
	area->indexes[place] = (struct staged_index){.index = RelationGetRelid(index),
												 .file = smart_relation_locator(index),
												 .journal = journal,
												 .lock_end = GetCurrentSubTransactionId()};
	area->nindexes++;
	LWLockRelease(&locks[own].lock);
	return place;
}

/* Must an add go into the chain at once, since it is late, or too long? */
static inline bool
bypasses_area(int length)
{
	return unlikely(write_through) || unlikely(sizeof(struct staged) + (Size) length > AREA_BYTES / 2);
}

/* Has this backend's area room for an add? */
static inline bool
has_room(const struct area *area, int length)
{
	return area->used + sizeof(struct staged) + (Size) length <= AREA_BYTES;
}

/* Puts an add into this backend's area, which is locked, and has room for it. */
static inline void
put_add(struct area *area, struct staged staged, const uint8 *entry)
{
	smart_assert(has_room(area, staged.length) && staged.index < area->nindexes);
	smart_assert(staged.length > 0 && LWLockHeldByMeInMode(&locks[own].lock, LW_EXCLUSIVE));
	if (area->used == 0)
		set_busy(own, true);
	memcpy(area->bytes + area->used, &staged, sizeof(staged));
	smart_copy_short(area->bytes + area->used + sizeof(staged), entry, staged.length);
	area->used += (uint32) sizeof(staged) + staged.length;
	area->last = Max(area->last, staged.subtransaction);
	area->indexes[staged.index].count++;
	area->count++;
}

/* This backend's area, where the index has a place, and there is room for an add. */
static struct area *
prepare_area(Relation index, uint64 journal, int length, int *place)
{
	*place = take_index(index, journal);
	/* Nobody else adds to it. */
	if (unlikely(!has_room(&areas[own], length)))
		smart_staging_write_out_own();
	smart_assert(has_room(&areas[own], length) && (uint32) *place < areas[own].nindexes);
	return &areas[own];
}

bool
smart_staging_add(Relation index, struct smart_tail *tail, uint32 changes, const uint8 *entry, int length,
				  SubTransactionId subtransaction, uint32 hash)
{
	struct staged staged = {.subtransaction = subtransaction, .length = (uint16) length};
	struct area *area;
	int place;
	bool current;

	smart_assert(length > 0 && length <= UINT16_MAX);
	smart_assert(subtransaction != InvalidSubTransactionId);
	if (unlikely(own < 0))
		begin_use();
	if (bypasses_area(length))
		return smart_chain_add(index, tail, changes, entry, length);
	area = prepare_area(index, tail->journal, length, &place);
	staged.index = (uint16) place;
	LWLockAcquire(&locks[own].lock, LW_EXCLUSIVE);
	current = smart_changes() == changes;
	if (likely(current))
	{
		put_add(area, staged, entry);
		if (hash != 0)
			note_hash(area, hash);
	}
	LWLockRelease(&locks[own].lock);
	return current;
}

/* The same with the first of many, as far as there is room; returns how many, 0 as above. */
static uint32
stage_some(Relation index, const struct smart_tail *tail, uint32 changes, const struct smart_pending_add **adds,
		   uint32 count)
{
	int place;
	struct area *area = prepare_area(index, tail->journal, adds[0]->length, &place);
	uint32 added = 0;

	LWLockAcquire(&locks[own].lock, LW_EXCLUSIVE);
	for (bool current = smart_changes() == changes;
		 current && added < count && !bypasses_area(adds[added]->length) && has_room(area, adds[added]->length);
		 added++)
	{
		const struct staged staged = {.subtransaction = adds[added]->subtransaction,
									  .index = (uint16) place,
									  .length = adds[added]->length};

		put_add(area, staged, adds[added]->entry);
	}
	LWLockRelease(&locks[own].lock);
	return added;
}

uint32
smart_staging_add_many(Relation index, struct smart_tail *tail, uint32 changes, const struct smart_pending_add **adds,
					   uint32 count)
{
	uint32 done = 0;
	uint32 added = 1;

	if (unlikely(own < 0))
		begin_use();
	for (; done < count && added > 0; done += added)
	{
		if (bypasses_area(adds[done]->length))
			added = smart_chain_add(index, tail, changes, adds[done]->entry, adds[done]->length);
		else
			added = stage_some(index, tail, changes, adds + done, count - done);
	}
	smart_assert(done <= count && (done == count || added == 0));
	return done;
}

void
smart_staging_discard(Relation index)
{
	struct area *area = own < 0 ? NULL : &areas[own];

	for (uint32 i = 0; area != NULL && i < area->nindexes; i++)
	{
		if (area->indexes[i].index != RelationGetRelid(index))
			continue;
		LWLockAcquire(&locks[own].lock, LW_EXCLUSIVE);
		take_out(area, (int) i, UINT32_MAX, 0);
		LWLockRelease(&locks[own].lock);
	}
}

/* ---- utility commands ---- */

/* Does a command leave all relations as they are?  Commands that run others are asked about those, too. */
static bool
is_harmless(const Node *command)
{
	switch (nodeTag(command))
	{
		case T_TransactionStmt:
			/* COMMIT and PREPARE TRANSACTION write out by themselves, and the rest must not raise an error. */
		case T_DeclareCursorStmt:
		case T_FetchStmt:
		case T_ClosePortalStmt:
		case T_PrepareStmt:
		case T_ExecuteStmt:
		case T_DeallocateStmt:
		case T_ExplainStmt:
		case T_CopyStmt:
		case T_CallStmt:
		case T_DoStmt:
		case T_VariableSetStmt:
		case T_VariableShowStmt:
		case T_ListenStmt:
		case T_NotifyStmt:
		case T_UnlistenStmt:
		case T_LockStmt:
		case T_ConstraintsSetStmt:
			return true;
		default:
			return false;
	}
}

static void
before_utility(PlannedStmt *statement, const char *query, bool read_only, ProcessUtilityContext context,
			   ParamListInfo parameters, QueryEnvironment *environment, DestReceiver *receiver,
			   QueryCompletion *completion)
{
	if (own >= 0 && areas[own].used > 0 && !is_harmless(statement->utilityStmt))
		smart_staging_write_out_own();
	if (previous_utility_hook)
		previous_utility_hook(statement, query, read_only, context, parameters, environment, receiver, completion);
	else
		standard_ProcessUtility(statement, query, read_only, context, parameters, environment, receiver, completion);
}

void
smart_staging_init(void)
{
	previous_utility_hook = ProcessUtility_hook;
	ProcessUtility_hook = before_utility;
}
