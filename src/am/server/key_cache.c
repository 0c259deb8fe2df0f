/*
 * key_cache.c
 *	  What runs have under single keys (src/README, J17).
 *
 * A key's hash tells the unit of memory where it may be, and nowhere else.  A unit has a version and records, those that
 * were asked for of late first:
 *
 *	record  = run  length  columns  rests       the run's number, 0 behind the last one; then the bytes that follow
 *	rests   = rest                              MANY is not set in length: one entry, or none
 *	          length rest  length rest ...      it is
 *
 * A new record comes into the middle of a unit, and moves towards its beginning now and then when it is asked for again, so
 * that keys which are asked for once push out each other.  Some come to the beginning at once: so records that nobody asks
 * for any more, as those of former runs, move back, and have to go one day.
 */
#include "postgres.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "am/server/key_cache.h"
#include "am/server/key_memory.h"
#include "am/server/shared.h"
#include "base/assert.h"

#define HEAD        5 /* bytes of a record in front of its columns */
#define MANY        0x80
#define MOVED_EVERY 4    /* of the times that a record is asked for which is not the first */
#define FIRST_EVERY 8    /* of the new records */
#define RUNS        1024 /* whose numbers are known */
#define RUNS_WAYS   8    /* places where a run's may be */
#define TRANCHE     "smart_key_cache"
#define WORDS       (SMART_KEY_UNIT / sizeof(uint64))
#define RECORDS     ((int) ((WORDS - 1) * sizeof(uint64))) /* bytes */

StaticAssertDecl(HEAD + SMART_CACHED_BYTES <= RECORDS && SMART_CACHED_BYTES < MANY, "a key has room in a unit");

/* Loaded without a lock, and stored by who has made the version odd, and holds the memory's lock, shared. */
struct unit
{
	uint64 version; /* odd: the records are being changed */
	uint64 word[WORDS - 1];
};

StaticAssertDecl(sizeof(struct unit) == SMART_KEY_UNIT, "a unit of the memory");

/* The records of a unit, in a process's own memory. */
struct records
{
	union
	{
		uint64 word[WORDS - 1];
		uint8 byte[RECORDS];
	};
};

struct known_run
{
	struct smart_run_name name;
	uint32 number; /* 0: none is known here */
};

/* With the lock of runs, exclusive. */
struct runs
{
	uint32 last; /* number */
	uint32 turn; /* of who makes room next */
	struct known_run run[RUNS];
};

static struct runs *shared;
static LWLock *lock_of_runs;

void
smart_key_cache_request(void)
{
	RequestAddinShmemSpace(sizeof(struct runs));
	RequestNamedLWLockTranche(TRANCHE, 1);
}

void
smart_key_cache_make(void)
{
	shared = smart_shared_make("smart numbers of runs", sizeof(*shared));
	lock_of_runs = &GetNamedLWLockTranche(TRANCHE)->lock;
}

/* ---- runs ---- */

static bool
is_same(const struct smart_run_name *a, const struct smart_run_name *b)
{
	return a->run == b->run && a->journal == b->journal && a->made == b->made &&
		   memcmp(&a->file, &b->file, sizeof(a->file)) == 0;
}

/* Where the run's number is, or a new one is to be. */
static struct known_run *
place_of(const struct smart_run_name *name)
{
	const uint64 words[2] = {name->journal, name->run};
	struct known_run *first =
		&shared->run[XXH3_64bits_withSeed(words, sizeof(words), XXH3_64bits(&name->file, sizeof(name->file))) %
					 (RUNS / RUNS_WAYS) * RUNS_WAYS];
	struct known_run *place = &first[shared->turn % RUNS_WAYS];

	smart_assert(LWLockHeldByMeInMode(lock_of_runs, LW_EXCLUSIVE));
	smart_assert(first >= shared->run && first + RUNS_WAYS <= shared->run + RUNS);
	for (int i = 0; i < RUNS_WAYS; i++)
	{
		if (first[i].number != 0 && is_same(&first[i].name, name))
			return &first[i];
		if (first[i].number == 0)
			place = &first[i];
	}
	return place;
}

uint32
smart_key_cache_number(const struct smart_run_name *name)
{
	struct known_run *place;
	bool known;
	uint32 number;

	if (smart_key_memory_units() == 0 || name->run == 0)
		return 0;
	LWLockAcquire(lock_of_runs, LW_EXCLUSIVE);
	place = place_of(name);
	known = place->number != 0 && is_same(&place->name, name);
	/* When all numbers have been given, new runs have none. */
	if (!known && shared->last < PG_UINT32_MAX)
	{
		*place = (struct known_run){.name = *name, .number = ++shared->last};
		shared->turn++;
		known = true;
	}
	smart_assert(!known || (place->number != 0 && place->number <= shared->last));
	number = known ? place->number : 0;
	LWLockRelease(lock_of_runs);
	return number;
}

/* ---- records ---- */

static inline uint32
run_of(const uint8 *record)
{
	uint32 run;

	memcpy(&run, record, sizeof(run));
	return run;
}

static inline int
bytes_of(const uint8 *record)
{
	return HEAD + (record[HEAD - 1] & ~MANY);
}

static inline bool
is_record(const struct records *records, int at)
{
	return at <= RECORDS - HEAD && run_of(records->byte + at) != 0;
}

/* Where the record of these columns is, or -1; *middle: of the record in the middle of those before it. */
static int
find_record(const struct records *records, uint32 run, const uint8 *columns, int length, int *middle)
{
	int begin[RECORDS / HEAD];
	int count = 0;

	for (int at = 0; is_record(records, at); at += bytes_of(records->byte + at))
	{
		const uint8 *record = records->byte + at;

		smart_assert(at + bytes_of(record) <= RECORDS);
		smart_assert(count < (int) lengthof(begin));
		begin[count++] = at;
		/* No columns are a prefix of others. */
		if (run_of(record) != run || bytes_of(record) < HEAD + length || memcmp(record + HEAD, columns, length) != 0)
			continue;
		*middle = begin[(count - 1) / 2];
		return at;
	}
	return -1;
}

static int
end_of_records(const struct records *records)
{
	int end = 0;

	while (is_record(records, end))
		end += bytes_of(records->byte + end);
	smart_assert(end <= RECORDS);
	return end;
}

/* Takes away the record there. */
static void
take_out(struct records *records, int at)
{
	int end = end_of_records(records);
	int bytes = bytes_of(records->byte + at);

	smart_assert(at >= 0 && at + bytes <= end);
	memmove(records->byte + at, records->byte + at + bytes, end - at - bytes);
	memset(records->byte + end - bytes, 0, bytes);
}

/* Puts in a record there; the last ones make room. */
static void
put_in(struct records *records, int at, const uint8 *record)
{
	int bytes = bytes_of(record);
	int end = at;

	smart_assert(at >= 0 && bytes > HEAD && at + bytes <= RECORDS);
	while (is_record(records, end) && end + bytes_of(records->byte + end) + bytes <= RECORDS)
		end += bytes_of(records->byte + end);
	smart_assert(end + bytes <= RECORDS);
	memmove(records->byte + at + bytes, records->byte + at, end - at);
	memcpy(records->byte + at, record, bytes);
	memset(records->byte + end + bytes, 0, RECORDS - end - bytes);
}

/* Where a new record of so many bytes is put: behind half of what there is, as far as it has room, or first. */
static int
place_of_new(const struct records *records, int bytes)
{
	static uint32 kept = 0;
	int half = end_of_records(records) / 2;
	int at = 0;

	smart_assert(bytes > HEAD && bytes <= RECORDS);
	if (++kept % FIRST_EVERY == 0)
		return 0;
	while (is_record(records, at) && at + bytes_of(records->byte + at) <= Min(half, RECORDS - bytes))
		at += bytes_of(records->byte + at);
	smart_assert(at + bytes <= RECORDS);
	return at;
}

/* ---- units ---- */

static struct unit *
unit_of(const struct smart_key_piece *piece, uint32 run, const uint8 *columns, int length)
{
	uint64 hash = XXH3_64bits_withSeed(columns, (size_t) length, run);

	smart_assert(piece->count > 0 && piece->first + piece->count <= smart_key_memory_units());
	return smart_key_memory_unit(piece->first + ((hash >> 32) * piece->count >> 32));
}

static void
load(const struct unit *unit, struct records *records)
{
	for (size_t i = 0; i < lengthof(unit->word); i++)
		records->word[i] = __atomic_load_n(&unit->word[i], __ATOMIC_RELAXED);
}

/* Makes the version odd, if it is this one. */
static bool
begin_change(struct unit *unit, uint64 version)
{
	smart_assert(LWLockHeldByMeInMode(smart_key_memory_lock(), LW_SHARED));
	if (version % 2 != 0 ||
		!__atomic_compare_exchange_n(&unit->version, &version, version + 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return false;
	/* Who sees what is stored from now on sees the odd version, or a later one. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	return true;
}

static void
end_change(struct unit *unit, const struct records *records)
{
	smart_assert(unit->version % 2 != 0);
	for (size_t i = 0; i < lengthof(unit->word); i++)
		__atomic_store_n(&unit->word[i], records->word[i], __ATOMIC_RELAXED);
	__atomic_store_n(&unit->version, unit->version + 1, __ATOMIC_RELEASE);
}

/* ---- keys ---- */

bool
smart_cached_key_add(struct smart_cached_key *key, int columns_length, const uint8 *rest, int length)
{
	smart_assert(columns_length >= 0 && length > 0);
	smart_assert(key->count >= 0 && key->count <= SMART_CACHED_ENTRIES && key->bytes >= key->count);
	/* Where there are several, each has its length in front. */
	if (key->count == SMART_CACHED_ENTRIES ||
		columns_length + key->bytes + length + key->count + 1 > SMART_CACHED_BYTES)
		return false;
	key->length[key->count++] = (uint8) length;
	memcpy(key->byte + key->bytes, rest, length);
	key->bytes += length;
	smart_assert(key->bytes <= SMART_CACHED_BYTES);
	return true;
}

bool
smart_cached_key_has(const struct smart_cached_key *key, const uint8 *rest, int length)
{
	const uint8 *own = key->byte;

	smart_assert(key->count >= 0 && key->count <= SMART_CACHED_ENTRIES);
	for (int i = 0; i < key->count; own += key->length[i++])
	{
		if (key->length[i] == length && memcmp(own, rest, length) == 0)
			return true;
	}
	return false;
}

/* What a record says behind its columns.  False: it is no such record. */
static bool
read_key(const uint8 *record, int columns_length, struct smart_cached_key *key)
{
	const uint8 *rest = record + HEAD + columns_length;
	const uint8 *end = record + bytes_of(record);

	smart_assert(rest <= end);
	key->count = key->bytes = 0;
	if ((record[HEAD - 1] & MANY) == 0)
		return rest == end || smart_cached_key_add(key, columns_length, rest, (int) (end - rest));
	while (rest < end)
	{
		int length = *rest++;

		if (length == 0 || length > end - rest || !smart_cached_key_add(key, columns_length, rest, length))
			return false;
		rest += length;
	}
	return true;
}

static void
write_key(uint8 *record, uint32 run, const uint8 *columns, int columns_length, const struct smart_cached_key *key)
{
	const uint8 *rest = key->byte;
	uint8 *to = record + HEAD;

	memcpy(record, &run, sizeof(run));
	memcpy(to, columns, columns_length);
	to += columns_length;
	for (int i = 0; i < key->count; i++)
	{
		if (key->count > 1)
			*to++ = key->length[i];
		memcpy(to, rest, key->length[i]);
		to += key->length[i];
		rest += key->length[i];
	}
	smart_assert(to - record <= HEAD + SMART_CACHED_BYTES);
	record[HEAD - 1] = (uint8) (to - record - HEAD) | (key->count > 1 ? MANY : 0);
}

/* ---- asking, and keeping ---- */

/* The record is asked for: it moves half of the way to the beginning, now and then, if nobody has changed the unit. */
static void
move_ahead(struct unit *unit, uint64 version, uint64 left, struct records *records, int at, int to)
{
	static uint32 asked = 0;
	uint8 record[RECORDS];

	smart_assert(to >= 0 && to <= at);
	if (to == at || ++asked % MOVED_EVERY != 0 || !LWLockConditionalAcquire(smart_key_memory_lock(), LW_SHARED))
		return;
	if (smart_key_memory_is_left(left) && begin_change(unit, version))
	{
		memcpy(record, records->byte + at, bytes_of(records->byte + at));
		take_out(records, at);
		put_in(records, to, record);
		end_change(unit, records);
	}
	LWLockRelease(smart_key_memory_lock());
}

void
smart_key_cache_prefetch(uint32 run, const uint8 *columns, int length)
{
	struct smart_key_piece piece;
	uint64 left;
	const struct unit *unit;

	smart_assert(run != 0 && length > 0 && length <= SMART_CACHED_BYTES);
	if (!smart_key_memory_look(&piece, &left) || piece.count == 0)
		return;
	unit = unit_of(&piece, run, columns, length);
	__builtin_prefetch(unit);
	__builtin_prefetch(&unit->word[WORDS / 2]);
}

bool
smart_key_cache_find(uint32 run, const uint8 *columns, int length, struct smart_cached_key *key)
{
	struct smart_key_piece piece;
	struct records records;
	struct unit *unit;
	uint64 version;
	uint64 left;
	int middle;
	int at;

	smart_assert(run != 0 && length > 0 && length <= SMART_CACHED_BYTES);
	if (!smart_key_memory_look(&piece, &left) || piece.count == 0)
		return false;
	unit = unit_of(&piece, run, columns, length);
	/* Acquire, partner of end_change(). */
	version = __atomic_load_n(&unit->version, __ATOMIC_ACQUIRE);
	load(unit, &records);
	/*
	 * The loads come before the second looks; the partner is the fence of begin_change().  First the unit's, then the
	 * memory's: that may have gone to a filter, and be cleared, so that the version is what it was.
	 */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (version % 2 != 0 || __atomic_load_n(&unit->version, __ATOMIC_RELAXED) != version ||
		!smart_key_memory_is_left(left))
		return false;
	at = find_record(&records, run, columns, length, &middle);
	if (at < 0 || !read_key(records.byte + at, length, key))
		return false;
	move_ahead(unit, version, left, &records, at, middle);
	return true;
}

void
smart_key_cache_keep(uint32 run, const uint8 *columns, int length, const struct smart_cached_key *key)
{
	struct smart_key_piece piece;
	struct records records;
	struct unit *unit;
	uint8 record[HEAD + SMART_CACHED_BYTES];
	uint64 left;
	int middle;
	int at;

	smart_assert(run != 0 && length > 0 && length <= SMART_CACHED_BYTES);
	write_key(record, run, columns, length, key);
	/* With the lock no filter gets the memory meanwhile. */
	if (!LWLockConditionalAcquire(smart_key_memory_lock(), LW_SHARED))
		return;
	if (smart_key_memory_look(&piece, &left) && piece.count > 0)
	{
		unit = unit_of(&piece, run, columns, length);
		if (begin_change(unit, __atomic_load_n(&unit->version, __ATOMIC_RELAXED)))
		{
			load(unit, &records);
			at = find_record(&records, run, columns, length, &middle);
			if (at >= 0)
				take_out(&records, at);
			put_in(&records, place_of_new(&records, bytes_of(record)), record);
			end_change(unit, &records);
		}
	}
	LWLockRelease(smart_key_memory_lock());
}
