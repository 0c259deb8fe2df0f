/*
 * key_filter.c
 *	  Filters of the keys that runs of unique indexes hold (src/README, J16).
 *
 * All filters share one piece of memory (key_memory.h), in which each has neighbouring units.  A new one takes room from those that
 * were asked longest ago.  Nobody waits for a reader: he looks at the filter's version before and after he has looked at its bits.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/timestamp.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "am/server/key_filter.h"
#include "am/server/key_memory.h"
#include "am/server/shared.h"
#include "am/server/shared_file.h"
#include "base/assert.h"

#define WORDS          8 /* of 32 bits in a block: a key sets one bit of each */
#define UNIT_BITS      (SMART_KEY_UNIT * 8)
#define BITS_PER_KEY   10
#define BITS_MIN       6       /* with fewer, more than one absent key in ten seems to be there */
#define KEYS_MIN       4096    /* a smaller run is mostly in shared buffers, on a few pages */
#define ROOM_TO_GROW   1.25    /* so many times the keys that there are */
#define LARGEST_SHARE  0.75    /* of the memory, that one filter may have */
#define TOLD_USE_EVERY 1000000 /* microseconds */

struct block
{
	uint32 word[WORDS];
};

#define UNIT_BLOCKS (SMART_KEY_UNIT / sizeof(struct block))

/* Everything is changed with the lock held but used_at and the bits; and loaded without it as the version tells. */
struct filter
{
	uint64 version; /* odd: it is being changed */
	uint64 run;     /* whose keys it has; 0: none that could be asked for */
	uint64 journal;
	TimestampTz made;
	struct smart_shared_file file;
	int holder;                   /* PID of the process that adds keys, or 0: then nobody else adds, nor takes it */
	struct smart_key_piece piece; /* of the memory; nothing: there is no filter here */
	uint64 keys;                  /* added to it: those that have set a bit; by the holder alone */
	TimestampTz used_at;
};

struct filters
{
	int places; /* that have ever had a filter: the others need not be looked at */
	struct filter filter[SMART_KEY_FILTERS];
};

static struct filters *shared;

struct smart_key_filter
{
	struct filter *filter; /* NULL: it has ended */
	MemoryContextCallback release;
};

/* ---- shared memory ---- */

void
smart_key_filter_request(void)
{
	RequestAddinShmemSpace(sizeof(struct filters));
}

void
smart_key_filter_make(void)
{
	shared = smart_shared_make("smart key filters", sizeof(*shared));
}

/* ---- asking ---- */

uint64
smart_key_filter_hash(const uint8 *columns, int length)
{
	return XXH3_64bits(columns, (size_t) length);
}

/* The upper half of the hash chooses the block. */
static inline struct block *
block_of(const struct smart_key_piece *piece, uint64 hash)
{
	struct block *blocks = smart_key_memory_unit(piece->first);

	smart_assert(piece->count > 0 && piece->count * UNIT_BLOCKS <= PG_UINT32_MAX);
	return &blocks[(hash >> 32) * (piece->count * UNIT_BLOCKS) >> 32];
}

/* And the lower half a bit of each of its words, by odd factors. */
static inline uint32
bit_of(uint64 hash, int word)
{
	static const uint32 factor[WORDS] = {0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d,
										 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31};

	return 1u << ((uint32) hash * factor[word] >> 27);
}

static bool
has_bits(const struct block *block, uint64 hash)
{
	uint32 lacks = 0;

	for (int i = 0; i < WORDS; i++)
		lacks |= bit_of(hash, i) & ~__atomic_load_n(&block->word[i], __ATOMIC_RELAXED);
	return lacks == 0;
}

/* Does the filter have this name?  Without the lock: as long as the version does not change. */
static bool
is_named(const struct filter *filter, const struct smart_run_name *name)
{
	return __atomic_load_n(&filter->run, __ATOMIC_RELAXED) == name->run &&
		   __atomic_load_n(&filter->journal, __ATOMIC_RELAXED) == name->journal &&
		   __atomic_load_n(&filter->made, __ATOMIC_RELAXED) == name->made &&
		   smart_shared_file_is(&filter->file, &name->file);
}

/* Where the filter of this name may be; NULL: there is none. */
static struct filter *
find(const struct smart_run_name *name)
{
	static int last = 0; /* a session mostly asks the same one */
	int places;

	if (name->run == 0 || shared == NULL)
		return NULL;
	places = __atomic_load_n(&shared->places, __ATOMIC_RELAXED);
	smart_assert(places >= 0 && places <= SMART_KEY_FILTERS);
	for (int i = 0; i < places; i++)
	{
		int place = (last + i) % places;

		if (is_named(&shared->filter[place], name))
		{
			last = place;
			return &shared->filter[place];
		}
	}
	return NULL;
}

static void
note_use(struct filter *filter)
{
	TimestampTz now = GetCurrentStatementStartTimestamp();

	if (now > __atomic_load_n(&filter->used_at, __ATOMIC_RELAXED) + TOLD_USE_EVERY)
		__atomic_store_n(&filter->used_at, now, __ATOMIC_RELAXED);
}

bool
smart_key_filter_lacks(const struct smart_run_name *name, uint64 hash)
{
	struct filter *filter = find(name);
	struct smart_key_piece piece;
	uint64 version;
	bool lacks;

	if (filter == NULL)
		return false;
	/* Acquire, partner of end_change(): what is loaded next is no older than the version. */
	version = __atomic_load_n(&filter->version, __ATOMIC_ACQUIRE);
	if (version % 2 != 0 || !is_named(filter, name))
		return false;
	piece.first = __atomic_load_n(&filter->piece.first, __ATOMIC_RELAXED);
	piece.count = __atomic_load_n(&filter->piece.count, __ATOMIC_RELAXED);
	if (piece.count == 0 || piece.first + piece.count > smart_key_memory_units())
		return false;
	lacks = !has_bits(block_of(&piece, hash), hash);
	/* The loads come before the second look; the partner is the fence of begin_change(). */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (__atomic_load_n(&filter->version, __ATOMIC_RELAXED) != version)
		return false;
	note_use(filter);
	return lacks;
}

uint64
smart_key_filter_bytes(const struct smart_run_name *name)
{
	const struct filter *filter = find(name);

	return filter == NULL ? 0 : __atomic_load_n(&filter->piece.count, __ATOMIC_RELAXED) * SMART_KEY_UNIT;
}

/* ---- changing a filter's name and place: the lock is held ---- */

static void
begin_change(struct filter *filter)
{
	smart_assert(LWLockHeldByMeInMode(smart_key_memory_lock(), LW_EXCLUSIVE) && filter->version % 2 == 0);
	__atomic_store_n(&filter->version, filter->version + 1, __ATOMIC_RELAXED);
	/* Who sees what is stored from now on, the bits of whoever gets the memory next, too, sees the odd version, or a later one. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

static void
end_change(struct filter *filter)
{
	smart_assert(LWLockHeldByMeInMode(smart_key_memory_lock(), LW_EXCLUSIVE) && filter->version % 2 != 0);
	__atomic_store_n(&filter->version, filter->version + 1, __ATOMIC_RELEASE);
}

static void
set_name(struct filter *filter, const struct smart_run_name *name)
{
	smart_assert(filter->holder == MyProcPid && filter->piece.count > 0);
	begin_change(filter);
	smart_shared_file_set(&filter->file, &name->file);
	__atomic_store_n(&filter->journal, name->journal, __ATOMIC_RELAXED);
	__atomic_store_n(&filter->made, name->made, __ATOMIC_RELAXED);
	__atomic_store_n(&filter->run, name->run, __ATOMIC_RELAXED);
	end_change(filter);
}

static void
throw_away(struct filter *filter)
{
	smart_assert(filter->holder == 0 || filter->holder == MyProcPid);
	begin_change(filter);
	__atomic_store_n(&filter->run, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&filter->piece.count, 0, __ATOMIC_RELAXED);
	filter->holder = 0;
	end_change(filter);
}

static inline bool
is_there(const struct filter *filter)
{
	return filter->piece.count > 0;
}

static inline uint64
end_of(const struct smart_key_piece *piece)
{
	return piece->first + piece->count;
}

/* What no filter has from this unit on, which is the first one, or right behind a filter. */
static struct smart_key_piece
free_from(uint64 first)
{
	uint64 end = smart_key_memory_units();

	smart_assert(LWLockHeldByMe(smart_key_memory_lock()) && first <= end);
	for (int i = 0; i < SMART_KEY_FILTERS; i++)
	{
		const struct filter *filter = &shared->filter[i];

		if (is_there(filter) && end_of(&filter->piece) > first)
			end = Min(end, Max(first, filter->piece.first));
	}
	smart_assert(end >= first && end <= smart_key_memory_units());
	return (struct smart_key_piece){.first = first, .count = end - first};
}

/* The first piece of so many units that no filter has. */
static bool
find_units(uint64 units, struct smart_key_piece *piece)
{
	smart_assert(units > 0);
	for (int i = -1; i < SMART_KEY_FILTERS; i++)
	{
		*piece = free_from(i < 0 ? 0 : end_of(&shared->filter[i].piece));
		if (piece->count >= units)
		{
			piece->count = units;
			return true;
		}
	}
	return false;
}

/* The cache has the largest piece that no filter has: before somebody writes to a new filter, and when one has gone. */
static void
leave_rest(void)
{
	struct smart_key_piece largest = free_from(0);

	for (int i = 0; i < SMART_KEY_FILTERS; i++)
	{
		struct smart_key_piece piece = free_from(end_of(&shared->filter[i].piece));

		if (piece.count > largest.count)
			largest = piece;
	}
	smart_key_memory_leave(&largest);
}

/* The filter that was used longest ago, of those that nobody adds to; NULL: there is none. */
static struct filter *
find_oldest(void)
{
	struct filter *oldest = NULL;

	smart_assert(LWLockHeldByMeInMode(smart_key_memory_lock(), LW_EXCLUSIVE));
	for (int i = 0; i < SMART_KEY_FILTERS; i++)
	{
		struct filter *filter = &shared->filter[i];

		if (is_there(filter) && filter->holder == 0 &&
			(oldest == NULL || __atomic_load_n(&filter->used_at, __ATOMIC_RELAXED) < oldest->used_at))
			oldest = filter;
	}
	return oldest;
}

static struct filter *
find_place(void)
{
	for (int i = 0; i < SMART_KEY_FILTERS; i++)
	{
		if (!is_there(&shared->filter[i]))
			return &shared->filter[i];
	}
	return NULL;
}

/* Makes room, and takes it; NULL: others add to filters that are in the way. */
static struct filter *
take(const smart_file *file, uint64 units)
{
	struct smart_key_piece piece;
	struct filter *filter;

	smart_assert(units > 0 && units <= smart_key_memory_units());
	while ((filter = find_place()) == NULL || !find_units(units, &piece))
	{
		struct filter *oldest = find_oldest();

		if (oldest == NULL)
			return NULL;
		throw_away(oldest);
	}
	smart_assert(filter->holder == 0 && piece.count == units && end_of(&piece) <= smart_key_memory_units());
	__atomic_store_n(&shared->places, Max(shared->places, (int) (filter - shared->filter) + 1), __ATOMIC_RELAXED);
	begin_change(filter);
	smart_shared_file_set(&filter->file, file);
	__atomic_store_n(&filter->piece.first, piece.first, __ATOMIC_RELAXED);
	__atomic_store_n(&filter->piece.count, piece.count, __ATOMIC_RELAXED);
	filter->holder = MyProcPid;
	filter->keys = 0;
	filter->used_at = GetCurrentTimestamp();
	end_change(filter);
	return filter;
}

/* A file has one run: filters of others are of no use any more. */
static void
throw_away_of_file(const smart_file *file)
{
	smart_assert(LWLockHeldByMeInMode(smart_key_memory_lock(), LW_EXCLUSIVE));
	for (int i = 0; i < SMART_KEY_FILTERS; i++)
	{
		struct filter *filter = &shared->filter[i];

		if (is_there(filter) && filter->holder == 0 && smart_shared_file_is(&filter->file, file))
			throw_away(filter);
	}
}

int
smart_key_filter_files(smart_file files[SMART_KEY_FILTERS])
{
	int count = 0;

	LWLockAcquire(smart_key_memory_lock(), LW_SHARED);
	for (int i = 0; i < SMART_KEY_FILTERS; i++)
	{
		if (is_there(&shared->filter[i]))
			smart_shared_file_get(&shared->filter[i].file, &files[count++]);
	}
	LWLockRelease(smart_key_memory_lock());
	return count;
}

void
smart_key_filter_forget(const smart_file *files, int count)
{
	smart_assert(count >= 0 && count <= SMART_KEY_FILTERS);
	if (smart_key_memory_units() == 0)
		return;
	LWLockAcquire(smart_key_memory_lock(), LW_EXCLUSIVE);
	for (int i = 0; i < count; i++)
		throw_away_of_file(&files[i]);
	leave_rest();
	LWLockRelease(smart_key_memory_lock());
}

/* ---- who writes a run ---- */

/* As many units as a filter of so many keys is to have; 0: there is not enough memory, or it is not worth one. */
static uint64
units_for(double keys)
{
	double most = (double) smart_key_memory_units() * LARGEST_SHARE;

	if (keys < KEYS_MIN || keys * BITS_MIN / UNIT_BITS > most)
		return 0;
	return (uint64) Min(keys * ROOM_TO_GROW * BITS_PER_KEY / UNIT_BITS + 1, most);
}

static bool
has_room(const struct filter *filter, double more)
{
	return ((double) filter->keys + more) * BITS_MIN <= (double) filter->piece.count * UNIT_BITS;
}

/* Nobody else looks at the bits yet.  Relaxed stores, since somebody may who does not know yet that they are not his filter's. */
static void
clear(const struct filter *filter)
{
	struct block *blocks = smart_key_memory_unit(filter->piece.first);

	smart_assert(filter->holder == MyProcPid && end_of(&filter->piece) <= smart_key_memory_units());
	for (uint64 i = 0; i < filter->piece.count * UNIT_BLOCKS; i++)
	{
		for (int word = 0; word < WORDS; word++)
			__atomic_store_n(&blocks[i].word[word], 0, __ATOMIC_RELAXED);
	}
}

/* The run came to nothing. */
static void
give_up(void *argument)
{
	struct smart_key_filter *self = argument;

	if (self->filter != NULL)
		smart_key_filter_end(self, NULL);
}

struct smart_key_filter *
smart_key_filter_begin(const struct smart_run_name *before, double keys, double more, bool *continued)
{
	struct smart_key_filter *self;
	struct filter *filter;
	uint64 units;

	if (smart_key_memory_units() == 0)
		return NULL;
	self = palloc0(sizeof(*self));
	self->release = (MemoryContextCallback){.func = give_up, .arg = self};
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &self->release);
	LWLockAcquire(smart_key_memory_lock(), LW_EXCLUSIVE);
	filter = find(before);
	*continued = filter != NULL && filter->holder == 0 && has_room(filter, more);
	if (*continued)
		filter->holder = MyProcPid;
	else
	{
		throw_away_of_file(&before->file);
		units = units_for(keys);
		filter = units == 0 ? NULL : take(&before->file, units);
		leave_rest();
	}
	smart_assert(filter == NULL || (filter->holder == MyProcPid && is_there(filter)));
	self->filter = filter;
	LWLockRelease(smart_key_memory_lock());
	if (filter == NULL)
		return NULL;
	if (!*continued)
		clear(filter);
	return self;
}

static inline struct block *
block_to_change(const struct smart_key_filter *self, uint64 hash)
{
	return block_of(&self->filter->piece, hash);
}

void
smart_key_filter_prefetch(const struct smart_key_filter *self, uint64 hash)
{
	__builtin_prefetch(block_to_change(self, hash), 1);
}

void
smart_key_filter_add(struct smart_key_filter *self, uint64 hash)
{
	struct filter *filter = self->filter;
	struct block *block = block_to_change(self, hash);

	smart_assert(filter->holder == MyProcPid);
	if (has_bits(block, hash))
		return;
	/* Others read them, and nobody else adds. */
	for (int i = 0; i < WORDS; i++)
		__atomic_store_n(&block->word[i], block->word[i] | bit_of(hash, i), __ATOMIC_RELAXED);
	filter->keys++;
}

void
smart_key_filter_end(struct smart_key_filter *self, const struct smart_run_name *name)
{
	struct filter *filter = self->filter;

	smart_assert(filter != NULL && filter->holder == MyProcPid);
	self->filter = NULL;
	LWLockAcquire(smart_key_memory_lock(), LW_EXCLUSIVE);
	if (name != NULL)
		set_name(filter, name);
	else if (filter->run == 0)
	{
		throw_away(filter);
		leave_rest();
	}
	filter->holder = 0;
	LWLockRelease(smart_key_memory_lock());
}
