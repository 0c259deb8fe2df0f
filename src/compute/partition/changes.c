/*
 * changes.c
 *	  Changes that are in a log and not in the trees: the table of them, and operations by it (src/README, L1-L5).
 *
 * Each range has a hash table whose chains go through the records in the log's image, the newest one first.  A record is
 * in its chain from when it is appended until it has been applied, or until one of its key that came later is durable.
 * So a chain has at most one durable record of a key, and those that are on their way.
 *
 * The lock of a range covers its chains and goes ahead of the log's.  Under both nothing is waited for.
 */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "compute/partition/apply.h"
#include "compute/partition/changes.h"
#include "compute/partition/local_lock.h"
#include "tree/fault.h"

/* So much of a log may lie behind a range's oldest change before that is due: the later, the more keys go into a leaf. */
#define KEPT_PARTS 7
#define KEPT_OF    8

#define NO_CHANGE  UINT64_MAX
#define LINK_THERE UINT64_C(1) /* the tree may have the key, whatever the record says */

struct range_changes
{
	uint32_t lock;
	bool applying;
	uint64_t first;   /* where the frame of the oldest record begins; NO_CHANGE */
	uint64_t applied; /* how often changes have gone to the tree */
	uint64_t round;   /* what begins in front of this is being applied, a piece at a time; 0: nothing is */
	uint64_t known;   /* 1 + the tenure in which its tree was looked at; 0: it was not */
	bool bare;        /* and then was bare, and nothing has been applied since (L6) */
};

struct smart_changes
{
	uint32_t ranges;
	uint32_t buckets;
	bool values;
	uint64_t chains_at; /* in bytes, as the next two */
	uint64_t links_at;
	uint64_t log_at;
	uint64_t begun; /* the log's tail when a range was last told to be due */
	struct range_changes range[];
};

static inline void *
part_of(const struct smart_changes *changes, uint64_t at)
{
	return (uint8_t *) (uintptr_t) changes + at;
}

static inline struct smart_log *
log_of(const struct smart_changes *changes)
{
	return part_of(changes, changes->log_at);
}

static inline struct range_changes *
range_of(const struct smart_turn *turn)
{
	smart_assert(turn->range < turn->changes->ranges);
	return &turn->changes->range[turn->range];
}

/* The first record's position + 1; 0: none.  A record's link is that of the next one, doubled, and LINK_THERE. */
static inline uint64_t *
chain_of(const struct smart_changes *changes, unsigned int range, uint32_t bucket)
{
	smart_assert(range < changes->ranges && bucket < changes->buckets);
	return (uint64_t *) part_of(changes, changes->chains_at) + (uint64_t) range * changes->buckets + bucket;
}

static inline uint64_t *
link_of(const struct smart_changes *changes, uint64_t position)
{
	smart_assert(position % SMART_LOG_ALIGN == 0);
	return (uint64_t *) part_of(changes, changes->links_at) +
		   position % smart_log_bytes(log_of(changes)) / SMART_LOG_ALIGN;
}

static inline uint64_t
next_of(const struct smart_changes *changes, uint64_t position)
{
	return *link_of(changes, position) >> 1;
}

static inline bool
is_there(const struct smart_changes *changes, uint64_t position)
{
	return (*link_of(changes, position) & LINK_THERE) != 0;
}

static uint32_t
bucket_of(const struct smart_changes *changes, const uint8_t *key, size_t length)
{
	return smart_crc32c(0, key, length) & (changes->buckets - 1);
}

static size_t
layout(const struct smart_changes_options *options, struct smart_changes *changes)
{
	smart_assert(options->place.bytes % SMART_LOG_ALIGN == 0);
	*changes =
		(struct smart_changes){.ranges = options->ranges, .buckets = options->buckets, .values = options->values};
	changes->chains_at = sizeof(*changes) + options->ranges * sizeof(struct range_changes);
	changes->links_at = changes->chains_at + (uint64_t) options->ranges * options->buckets * sizeof(uint64_t);
	changes->log_at = changes->links_at + options->place.bytes / SMART_LOG_ALIGN * sizeof(uint64_t);
	changes->log_at = (changes->log_at + 63) / 64 * 64;
	return changes->log_at + smart_log_size(options->place.bytes);
}

size_t
smart_changes_size(const struct smart_changes_options *options)
{
	struct smart_changes changes;

	return layout(options, &changes);
}

smart_status
smart_changes_open(struct smart_changes *changes, struct fabric *fabric, const struct smart_changes_options *options)
{
	smart_assert(options->buckets > 0 && (options->buckets & (options->buckets - 1)) == 0);
	layout(options, changes);
	for (unsigned int i = 0; i < options->ranges; i++)
		changes->range[i] = (struct range_changes){.first = NO_CHANGE};
	memset(part_of(changes, changes->chains_at), 0, changes->log_at - changes->chains_at);
	return smart_log_open(log_of(changes), fabric, &options->place, options->flights);
}

/* ---- chains; all of this under the range's lock ---- */

struct sought
{
	const struct smart_changes *changes;
	uint64_t *chain;
	const uint8_t *key;
	size_t length;
};

static inline struct sought
seek(const struct smart_turn *turn, const uint8_t *key, size_t length)
{
	return (struct sought){.changes = turn->changes,
						   .chain = chain_of(turn->changes, turn->range, bucket_of(turn->changes, key, length)),
						   .key = key,
						   .length = length};
}

static inline bool
matches(const struct sought *sought, uint64_t position)
{
	const struct smart_log_record *record = smart_log_at(log_of(sought->changes), position);

	return record->key_length == sought->length && memcmp(smart_log_entry(record), sought->key, sought->length) == 0;
}

/* The key's newest record that begins in front of a position; false: none. */
static bool
find_newest(const struct sought *sought, uint64_t before, uint64_t *position)
{
	for (uint64_t next = *sought->chain; next != 0; next = next_of(sought->changes, next - 1))
	{
		if (next - 1 < before && matches(sought, next - 1))
		{
			*position = next - 1;
			return true;
		}
	}
	return false;
}

/* Takes the key's records that begin in front of a position out of the chain, but for the newest so many of them. */
static void
unlink_older(const struct sought *sought, uint64_t before, unsigned int stay)
{
	const struct smart_changes *changes = sought->changes;
	uint64_t last = 0; /* position + 1 of the record that stays in front of this one */
	uint64_t next;

	for (uint64_t this = *sought->chain; this != 0; this = next)
	{
		next = next_of(changes, this - 1);
		if (this - 1 >= before || !matches(sought, this - 1) || (stay > 0 && stay-- > 0))
			last = this;
		else if (last == 0)
			*sought->chain = next;
		else
			*link_of(changes, last - 1) = next << 1 | (uint64_t) is_there(changes, last - 1);
	}
}

/* Behind those that were appended before.  Older ones of the key are not asked for any more if one is durable. */
static void
link_record(const struct sought *sought, struct range_changes *range, uint64_t position, uint64_t frame, bool there)
{
	smart_assert(frame < position && __atomic_load_n(&range->lock, __ATOMIC_RELAXED) != 0);
	unlink_older(sought, smart_log_durable(log_of(sought->changes)), 1);
	*link_of(sought->changes, position) = *sought->chain << 1 | (uint64_t) there;
	*sought->chain = position + 1;
	if (range->first == NO_CHANGE)
		range->first = frame;
}

static inline bool
is_put(const struct smart_changes *changes, uint64_t position)
{
	return smart_log_at(log_of(changes), position)->kind == SMART_LOG_PUT;
}

/* ---- operations ---- */

/* Has the range's tree been looked at in this tenure?  The range is locked. */
static inline bool
is_known(const struct smart_turn *turn)
{
	smart_assert(__atomic_load_n(&range_of(turn)->lock, __ATOMIC_RELAXED) != 0);
	return range_of(turn)->known == UINT64_C(1) + turn->tenure;
}

/* And did it have nothing, and has nothing since (L6)? */
static inline bool
is_bare(const struct smart_turn *turn)
{
	return range_of(turn)->bare && is_known(turn);
}

/* Finds out whether the range's tree is bare.  when: so many changes had been applied before. */
static smart_status
look_at_root(struct smart_turn *turn, uint64_t when)
{
	struct range_changes *range = range_of(turn);
	bool bare;
	smart_status status = smart_tree_is_bare(turn->tree, &bare);

	if (status != SMART_OK)
		return status;
	smart_local_lock(&range->lock, turn->env);
	/* What is being applied is in the table until that has ended. */
	if (range->applied == when)
	{
		range->known = UINT64_C(1) + turn->tenure;
		range->bare = bare;
	}
	smart_local_unlock(&range->lock);
	return SMART_OK;
}

static smart_status
look_into_tree(struct smart_turn *turn, const uint8_t *key, size_t length, uint64_t *value, bool *found)
{
	return turn->changes->values ? smart_tree_get(turn->tree, key, length, value, found)
								 : smart_tree_lookup(turn->tree, key, length, found);
}

smart_status
smart_logged_get(struct smart_turn *turn, const uint8_t *key, size_t key_length, uint64_t *value, bool *found)
{
	struct range_changes *range = range_of(turn);
	struct sought sought = seek(turn, key, key_length);
	uint64_t position;
	bool changed;
	bool bare;

	smart_local_lock(&range->lock, turn->env);
	bare = is_bare(turn);
	/* L2: what is not durable yet has not happened. */
	changed = find_newest(&sought, smart_log_durable(log_of(turn->changes)), &position);
	if (changed)
	{
		*found = is_put(turn->changes, position);
		if (*found && turn->changes->values)
			memcpy(value, smart_log_entry(smart_log_at(log_of(turn->changes), position)) + key_length, sizeof(*value));
	}
	smart_local_unlock(&range->lock);
	if (!changed && bare)
		*found = false;
	return changed || bare ? SMART_OK : look_into_tree(turn, key, key_length, value, found);
}

/* What a change finds: the key's newest record, or what the tree says. */
struct state
{
	bool logged;
	uint64_t position;
	bool there;    /* the key is */
	bool in_tree;  /* it is in the tree */
	bool asked;    /* the tree was, */
	uint64_t when; /* and so many changes had been applied */
};

/* Returns with the range locked, if nothing fails, and with what is true then. */
static smart_status
lock_and_look(struct smart_turn *turn, const struct sought *sought, struct state *state)
{
	struct range_changes *range = range_of(turn);
	uint64_t value;
	bool known;
	smart_status status;

	*state = (struct state){.asked = false};
	for (;;)
	{
		smart_local_lock(&range->lock, turn->env);
		state->logged = find_newest(sought, UINT64_MAX, &state->position);
		if (state->logged)
		{
			state->there = is_put(turn->changes, state->position);
			state->in_tree = is_there(turn->changes, state->position);
			return SMART_OK;
		}
		/* What the tree said holds if no change has gone there since. */
		if (state->asked && state->when == range->applied)
			return SMART_OK;
		if (is_bare(turn))
		{
			state->there = state->in_tree = false;
			return SMART_OK;
		}
		state->when = range->applied;
		known = is_known(turn);
		smart_local_unlock(&range->lock);
		status = known ? look_into_tree(turn, sought->key, sought->length, &value, &state->there)
					   : look_at_root(turn, state->when);
		if (status != SMART_OK)
			return status;
		state->in_tree = state->there;
		state->asked = known;
	}
}

static uint64_t
end_of(const struct smart_changes *changes, uint64_t position)
{
	return position + sizeof(struct smart_log_record) + smart_log_at(log_of(changes), position)->length;
}

/* A change of a key that has to be there, or has not to be; *changed: so it was. */
static smart_status
change(struct smart_turn *turn, enum smart_log_kind kind, bool wants, const uint8_t *entry, size_t key_length,
	   size_t length, bool *changed)
{
	const struct smart_log_record record = {.range = turn->range,
											.tenure = turn->tenure,
											.key_length = (uint16_t) key_length,
											.length = (uint16_t) length,
											.kind = (uint8_t) kind};
	struct range_changes *range = range_of(turn);
	struct smart_log *log = log_of(turn->changes);
	struct sought sought = seek(turn, entry, key_length);
	struct state state;
	uint64_t start = 0;
	uint64_t end = 0;
	uint64_t frame;
	bool fits = true;
	smart_status status;

	smart_assert(kind == SMART_LOG_PUT || kind == SMART_LOG_REMOVE);
	if (key_length == 0 || length > SMART_ENTRY_MAX)
		return SMART_TOO_LONG;
	status = lock_and_look(turn, &sought, &state);
	if (status != SMART_OK)
		return status;
	*changed = state.there == wants;
	if (*changed)
		fits = smart_log_append(log, turn->env, &record, entry, &start, &end, &frame);
	else if (state.logged)
		end = end_of(turn->changes, state.position);
	if (*changed && fits)
		link_record(&sought, range, start, frame, state.in_tree);
	smart_local_unlock(&range->lock);
	return fits ? smart_log_commit(log, turn->fabric, turn->env, end, turn->timeout_ms) : SMART_NO_SPACE;
}

smart_status
smart_logged_insert(struct smart_turn *turn, const uint8_t *entry, size_t key_length, size_t length, bool *added)
{
	return change(turn, SMART_LOG_PUT, false, entry, key_length, length, added);
}

smart_status
smart_logged_update(struct smart_turn *turn, const uint8_t *key, size_t key_length, uint64_t value, bool *found)
{
	uint8_t entry[SMART_ENTRY_MAX];

	smart_assert(turn->changes->values);
	if (key_length + sizeof(value) > sizeof(entry))
		return SMART_TOO_LONG;
	memcpy(entry, key, key_length);
	memcpy(entry + key_length, &value, sizeof(value));
	return change(turn, SMART_LOG_PUT, true, entry, key_length, key_length + sizeof(value), found);
}

smart_status
smart_logged_remove(struct smart_turn *turn, const uint8_t *key, size_t key_length, bool *removed)
{
	return change(turn, SMART_LOG_REMOVE, true, key, key_length, key_length, removed);
}

/* ---- applying ---- */

/* The newest record of each key that begins in front of a position: how many, or, with items, they themselves. */
static size_t
collect(const struct smart_turn *turn, uint64_t before, struct smart_apply_item *items)
{
	const struct smart_changes *changes = turn->changes;
	size_t count = 0;

	smart_assert(__atomic_load_n(&range_of(turn)->lock, __ATOMIC_RELAXED) != 0);
	for (uint32_t bucket = 0; bucket < changes->buckets; bucket++)
	{
		for (uint64_t next = *chain_of(changes, turn->range, bucket); next != 0; next = next_of(changes, next - 1))
		{
			const struct smart_log_record *record = smart_log_at(log_of(changes), next - 1);
			struct sought sought = seek(turn, smart_log_entry(record), record->key_length);
			uint64_t newest;

			if (next - 1 >= before || !find_newest(&sought, before, &newest) || newest != next - 1)
				continue;
			if (items != NULL)
				items[count] = (struct smart_apply_item){.record = record,
														 .order = next - 1,
														 .tree = is_there(changes, next - 1) ? SMART_APPLY_THERE
																							 : SMART_APPLY_ABSENT};
			count++;
		}
	}
	return count;
}

/* The key's records learn what the tree has now. */
static void
tell_there(const struct sought *sought, bool there)
{
	for (uint64_t next = *sought->chain; next != 0; next = next_of(sought->changes, next - 1))
	{
		if (matches(sought, next - 1))
			*link_of(sought->changes, next - 1) = next_of(sought->changes, next - 1) << 1 | (uint64_t) there;
	}
}

/*
 * What has been applied leaves the chains.  After an error nobody knows: all stay, and the tree may have any of the keys.
 * more: these are not all keys that have records in front of the position.
 */
static void
finish_applying(const struct smart_turn *turn, uint64_t before, bool more, const struct smart_apply_item *items,
				size_t count, bool applied)
{
	struct range_changes *range = range_of(turn);
	const struct smart_changes *changes = turn->changes;

	smart_assert(range->applying && __atomic_load_n(&range->lock, __ATOMIC_RELAXED) != 0);
	for (size_t i = 0; i < count; i++)
	{
		const struct smart_log_record *record = items[i].record;
		struct sought sought = seek(turn, smart_log_entry(record), record->key_length);

		if (applied)
			unlink_older(&sought, before, 0);
		tell_there(&sought, !applied || record->kind == SMART_LOG_PUT);
	}
	range->applied++;
	range->bare = range->bare && (count == 0 || SMART_FAULT(stillbare));
	if (!applied)
		return;
	/* L5: while keys have older records, the log keeps what it has from the oldest on. */
	__atomic_store_n(&range->round, more ? before : 0, __ATOMIC_RELAXED);
	if (more && !SMART_FAULT(halfround))
		return;
	range->first = NO_CHANGE;
	/* The others begin behind that, and so do their frames. */
	for (uint32_t bucket = 0; bucket < changes->buckets && range->first == NO_CHANGE; bucket++)
	{
		if (*chain_of(changes, turn->range, bucket) != 0)
			range->first = before;
	}
}

/* One client at a time: waits for another one that is about it. */
static smart_status
begin_applying(struct smart_turn *turn)
{
	struct range_changes *range = range_of(turn);
	uint64_t deadline_ns = smart_deadline_ns(turn->env, turn->timeout_ms);

	for (unsigned int attempt = 0;; attempt++)
	{
		bool mine;

		smart_local_lock(&range->lock, turn->env);
		mine = !range->applying;
		range->applying = true;
		smart_local_unlock(&range->lock);
		if (mine)
			return SMART_OK;
		if (turn->env->interrupted(turn->env))
			return SMART_INTERRUPTED;
		if (turn->env->now_ns(turn->env) >= deadline_ns)
			return SMART_TIMEOUT;
		turn->env->pause(turn->env, attempt);
	}
}

/* What is durable; a piece of a round that has begun ends where that does, lest the oldest records stay for ever. */
static uint64_t
end_of_round(const struct smart_turn *turn, size_t most)
{
	const struct range_changes *range = range_of(turn);

	smart_assert(__atomic_load_n(&range->lock, __ATOMIC_RELAXED) != 0);
	return most != SMART_CHANGES_ALL && range->round != 0 ? range->round : smart_log_durable(log_of(turn->changes));
}

static smart_status
apply_durable(struct smart_turn *turn, size_t most, unsigned int *count)
{
	struct range_changes *range = range_of(turn);
	struct smart_apply_item *items = NULL;
	uint64_t before;
	size_t found;
	size_t piece;
	smart_status status;

	smart_local_lock(&range->lock, turn->env);
	before = end_of_round(turn, most);
	found = range->first == NO_CHANGE ? 0 : collect(turn, before, NULL);
	/* Of the keys that were left later records have become durable. */
	if (found == 0 && range->round != 0)
		finish_applying(turn, before, false, NULL, 0, true);
	smart_local_unlock(&range->lock);
	*count = 0;
	if (found == 0)
		return SMART_OK;
	items = turn->env->allocate(turn->env, found * sizeof(*items));
	if (items == NULL)
		return SMART_NO_MEMORY;
	smart_local_lock(&range->lock, turn->env);
	/* As many as before, or fewer: of a key that is durable by now older ones have left. */
	found = collect(turn, before, items);
	smart_local_unlock(&range->lock);
	piece = found < most ? found : most;
	smart_apply_sort(items, found);
	status = smart_apply(turn->tree, turn->env, turn->changes->values, items, piece);
	smart_local_lock(&range->lock, turn->env);
	finish_applying(turn, before, piece < found, items, piece, status == SMART_OK);
	smart_local_unlock(&range->lock);
	*count = (unsigned int) piece;
	turn->env->release(turn->env, items);
	return status;
}

smart_status
smart_changes_apply(struct smart_turn *turn, size_t most, unsigned int *count)
{
	struct range_changes *range = range_of(turn);
	smart_status status = begin_applying(turn);

	if (status != SMART_OK)
		return status;
	status = apply_durable(turn, most, count);
	smart_local_lock(&range->lock, turn->env);
	range->applying = false;
	smart_local_unlock(&range->lock);
	return status;
}

smart_status
smart_changes_release(struct smart_changes *changes, struct fabric *fabric, struct smart_env *env)
{
	/* Before the ranges are looked at: what is durable by now has come into its chain under its range's lock. */
	uint64_t position = smart_log_durable(log_of(changes));

	for (unsigned int i = 0; i < changes->ranges; i++)
	{
		struct range_changes *range = &changes->range[i];

		smart_local_lock(&range->lock, env);
		if (range->first < position)
			position = range->first;
		smart_local_unlock(&range->lock);
	}
	return smart_log_release(log_of(changes), fabric, env, position);
}

/* The oldest changes of the ranges that have any. */
struct oldest
{
	unsigned int ranges;
	uint64_t position; /* NO_CHANGE: there are none */
	uint64_t idle;     /* of those that no client is about to apply; likewise */
	unsigned int range;
	bool begun; /* that range's round has */
};

static struct oldest
find_oldest(const struct smart_changes *changes)
{
	struct oldest oldest = {.position = NO_CHANGE, .idle = NO_CHANGE};

	for (unsigned int i = 0; i < changes->ranges; i++)
	{
		const struct range_changes *looked_at = &changes->range[i];
		uint64_t first = __atomic_load_n(&looked_at->first, __ATOMIC_RELAXED);

		oldest.ranges += first != NO_CHANGE;
		oldest.position = first < oldest.position ? first : oldest.position;
		if (first < oldest.idle && !__atomic_load_n(&looked_at->applying, __ATOMIC_RELAXED))
		{
			oldest.idle = first;
			oldest.range = i;
			oldest.begun = __atomic_load_n(&looked_at->round, __ATOMIC_RELAXED) != 0;
		}
	}
	smart_assert(oldest.position <= oldest.idle && oldest.range < changes->ranges);
	return oldest;
}

bool
smart_changes_due(struct smart_changes *changes, bool full, unsigned int *range)
{
	uint64_t tail = smart_log_tail(log_of(changes));
	uint64_t kept = smart_log_bytes(log_of(changes)) / KEPT_OF * KEPT_PARTS;
	uint64_t begun = __atomic_load_n(&changes->begun, __ATOMIC_RELAXED);
	struct oldest oldest = find_oldest(changes);

	*range = oldest.range;
	if (oldest.idle == NO_CHANGE)
		return false;
	smart_assert(oldest.ranges > 0);
	/* In a full log nothing helps but the very oldest: who applies that one may be about it. */
	if (oldest.begun || oldest.idle + kept < tail || (full && oldest.idle == oldest.position))
		return true;
	/*
	 * Its turn has come, so that they do not become due together; one client is told.  A log that has not been half full yet
	 * may never have to be applied.
	 */
	return tail >= kept / 2 && begun + kept / oldest.ranges <= tail &&
		   __atomic_compare_exchange_n(&changes->begun, &begun, tail, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* ---- after the death of an owner ---- */

struct replay
{
	const struct smart_turn *turn;
	uint32_t tenure;
	size_t count;
	struct smart_apply_item *items;
};

static smart_status
take_record(void *argument, const struct smart_log_record *record)
{
	struct replay *replay = argument;

	if (record->range != replay->turn->range || record->tenure != replay->tenure)
		return SMART_OK;
	replay->items[replay->count] =
		(struct smart_apply_item){.record = record, .order = replay->count, .tree = SMART_APPLY_UNKNOWN};
	replay->count++;
	return SMART_OK;
}

smart_status
smart_changes_settle(struct smart_turn *turn, const struct smart_log_place *place, uint32_t tenure)
{
	struct smart_env *env = turn->env;
	struct replay replay = {.turn = turn, .tenure = tenure};
	uint8_t *image = NULL;
	smart_status status;

	replay.items = env->allocate(env, place->bytes / sizeof(struct smart_log_record) * sizeof(struct smart_apply_item));
	if (replay.items == NULL)
		return SMART_NO_MEMORY;
	status = smart_log_read(place, turn->fabric, env, &image, take_record, &replay);
	if (status == SMART_OK)
	{
		smart_apply_sort(replay.items, replay.count);
		status = smart_apply(turn->tree, env, turn->changes->values, replay.items, replay.count);
	}
	if (image != NULL)
		env->release(env, image);
	env->release(env, replay.items);
	return status;
}
