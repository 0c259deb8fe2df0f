/*
 * sorted_chain.c
 *	  The operations of a chain in the order of their entries, of each entry the last one.
 *
 * Much of a chain is in order as it is: VACUUM removes entries as the tree has them, and rows are often inserted so.  A first
 * reading finds these stretches (tree/lanes.h) and notes where each begins; in the end each lane is read where it lies.
 * Only what is loose is copied and sorted by entry and number in the chain.  The lanes and the sorter are merged.
 *
 * What goes into a lane is known when its stretch has ended.  Until then the stretch is kept, as long as it is too short for a lane;
 * so short ones, which may be all there is, are read once.  A long one that finds no lane is read a second time.
 */
#include "postgres.h"

#include "commands/progress.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/rel.h"

#include "am/journal/sorted_chain.h"
#include "am/server/environment.h"
#include "am/server/progress.h"
#include "am/sort/sorter.h"
#include "base/assert.h"
#include "base/bytes.h"
#include "tree/lanes.h"

#define LOOK_EVERY 4096 /* operations */
#define SHORTEST   256  /* operations of a stretch that is read where it lies: much less than a batch is not worth it */
#define KEPT_BYTES (64 * 1024) /* of the current stretch */
#define SOURCES    (SMART_LANES + 1)

/*
 * Behind the key of a sorted operation: its rank, big-endian; the payload; the key's length, unless that is fixed.  The rank is twice its
 * number, and one more if it is a removal.  With as few bytes an entry of an int4 is sorted as two words, and not as three.
 */
#define RANK_BYTES   5
#define NUMBER_MAX   (UINT64CONST(1) << (8 * RANK_BYTES - 1)) /* operations, in more than a terabyte */
#define LENGTH_BYTES 2

/* Operations of the chain that follow each other. */
struct piece
{
	struct smart_chain_place place; /* of the batch with the first one */
	uint32 skip;                    /* operations of that batch before it */
	uint64 number;                  /* of the first one in the chain */
	uint64 count;
};

struct pieces
{
	struct piece *list;
	uint32 count;
	uint32 capacity;
};

/* The current stretch, as the sorter takes its operations: the length of each, and its bytes. */
struct kept
{
	uint32 count; /* operations */
	uint32 bytes;
	uint8 *items; /* KEPT_BYTES */
};

/* What comes in order: a lane, or what was sorted.  Its next operation: */
struct source
{
	const uint8 *key; /* NULL: there is none */
	const uint8 *payload;
	int key_length;
	int payload_length;
	uint64 number; /* in the chain */
	enum smart_operation operation;

	struct smart_reader *reader; /* of a lane; NULL: what was sorted */
	const struct pieces *pieces; /* of the lane */
	uint32 next;                 /* piece */
	uint64 left;                 /* operations of the piece before that */
};

/* With their bytes. */
struct own_keys
{
	struct smart_chain_keys keys;
	uint8 from[SMART_KEY_MAX + 1];
	uint8 to[SMART_KEY_MAX + 1];
};

struct smart_sorted_chain
{
	Relation index;
	const struct smart_codec *codec;
	const struct smart_meta *meta;
	const struct smart_look *look;
	struct smart_chain_keys *keys; /* NULL: all */
	uint64 operations;             /* on these; so are all that are counted */
	uint64 loose_operations;
	struct pieces lanes[SMART_LANES];
	struct pieces loose; /* what is read a second time */
	struct kept kept;
	int lane_count;
	struct smart_reader *reader; /* of the first readings */
	struct smart_sorter *sorter; /* of what is loose; NULL: nothing is */
	struct source sources[SOURCES];
	struct source *order[SOURCES]; /* those that have operations: the one with the next entry's first, and so on */
	int count;                     /* of these */
};

static void
serve_interrupts(void *argument)
{
	CHECK_FOR_INTERRUPTS();
}

const struct smart_look smart_look_for_interrupts = {.around = serve_interrupts};

/* ---- reading a piece ---- */

/* Called for each operation that was read; looks around now and then. */
static void
look_around(const struct smart_sorted_chain *chain, uint64 number)
{
	if (number % LOOK_EVERY == 0)
		chain->look->around(chain->look->argument);
}

static int
key_length_of(const struct smart_sorted_chain *chain, const struct smart_reader *reader)
{
	const struct smart_unpacker *from = &reader->unpacker;

	return reader->operation == SMART_OPERATION_REMOVE
			   ? from->length
			   : smart_codec_key_length(chain->codec, from->entry, from->length);
}

/* Goes in front of a piece's first operation. */
static enum smart_found
begin_piece(struct smart_reader *reader, const struct piece *piece)
{
	enum smart_found found = SMART_FOUND;

	smart_assert(piece->count > 0);
	smart_reader_move(reader, &piece->place);
	for (uint32 i = 0; i < piece->skip && found == SMART_FOUND; i++)
		found = smart_reader_next_operation(reader);
	return found;
}

/* Is the operation that a reader has found on a key that is wanted? */
static inline bool
is_wanted(const struct smart_sorted_chain *chain, const struct smart_reader *reader)
{
	return chain->keys == NULL || smart_chain_keys_have(chain->keys, reader);
}

/* What was read once is still there, or was used anew. */
static enum smart_found
next_again(const struct smart_sorted_chain *chain, struct smart_reader *reader)
{
	enum smart_found found;

	do
		found = smart_reader_next_operation(reader);
	while (found == SMART_FOUND && !is_wanted(chain, reader));
	if (found == SMART_FOUND_END)
		elog(ERROR, "the journal of index \"%s\" has become shorter", RelationGetRelationName(reader->index));
	return found;
}

/* ---- what is loose ---- */

static uint8 *
put_rank(const struct smart_sorted_chain *chain, uint8 *at, uint64 number, enum smart_operation operation)
{
	uint64 rank = number << 1 | (operation == SMART_OPERATION_REMOVE);

	if (unlikely(number >= NUMBER_MAX))
		ereport(ERROR, errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				errmsg("the journal of index \"%s\" is too long to be sorted", RelationGetRelationName(chain->index)),
				smart_hint_reindex(chain->index));
	*at++ = (uint8) (rank >> 32);
	return smart_put_be32(at, (uint32) rank);
}

static uint64
get_rank(const uint8 *at)
{
	return (uint64) at[0] << 32 | smart_load_be32(at + 1);
}

/* Writes the reader's operation as the sorter takes it; returns the bytes. */
static int
make_item(const struct smart_sorted_chain *chain, uint64 number, int key_length, uint8 *item)
{
	const struct smart_reader *reader = chain->reader;
	const struct smart_unpacker *from = &reader->unpacker;
	int fixed_length = chain->codec->fixed_length;
	uint8 *at = item + key_length;

	smart_assert(key_length > 0 && key_length <= from->length);
	smart_assert(fixed_length == 0 || from->length <= fixed_length);
	smart_copy_short(item, from->entry, (Size) key_length);
	at = put_rank(chain, at, number, reader->operation);
	smart_copy_short(at, from->entry + key_length, (Size) (from->length - key_length));
	at += from->length - key_length;
	if (fixed_length == 0)
		at = smart_put_be16(at, (uint16) key_length);
	else
	{
		memset(at, 0, (Size) (fixed_length - from->length));
		at += fixed_length - from->length;
	}
	smart_assert(at - item <= SMART_SORTER_MAX);
	return (int) (at - item);
}

static void
begin_sorter(struct smart_sorted_chain *chain)
{
	int fixed_length = chain->codec->fixed_length;
	int length = fixed_length > 0 ? fixed_length + RANK_BYTES : 0;
	/* Without what the tail has; memory that is not needed is not touched. */
	Size operations = (Size) (chain->meta->adds + chain->meta->removals) + LOOK_EVERY;

	chain->sorter = smart_sorter_begin(length, (Size) maintenance_work_mem * 1024,
									   operations * (Size) (length > 0 ? MAXALIGN(length) : 64), &smart_environment);
}

/* Gives an operation to the sorter. */
static void
sort_item(struct smart_sorted_chain *chain, const uint8 *item, int length)
{
	if (unlikely(chain->sorter == NULL))
		begin_sorter(chain);
	smart_sorter_add(chain->sorter, item, length);
}

/* Keeps the reader's operation, which is of the current stretch, unless that has become long. */
static inline void
keep(struct smart_sorted_chain *chain, uint64 number, int key_length)
{
	struct kept *kept = &chain->kept;
	uint8 *item = kept->items + kept->bytes;
	uint16 length;

	smart_assert(kept->bytes <= KEPT_BYTES);
	if (kept->count >= SHORTEST || KEPT_BYTES - kept->bytes < sizeof(length) + SMART_SORTER_MAX)
		return;
	length = (uint16) make_item(chain, number, key_length, item + sizeof(length));
	memcpy(item, &length, sizeof(length));
	kept->bytes += (uint32) (sizeof(length) + length);
	kept->count++;
	smart_assert(kept->count <= SHORTEST && kept->bytes <= KEPT_BYTES);
}

/* The current stretch is loose, and all of it was kept. */
static void
sort_kept(struct smart_sorted_chain *chain)
{
	const uint8 *item = chain->kept.items;

	for (uint32 i = 0; i < chain->kept.count; i++)
	{
		uint16 length;

		memcpy(&length, item, sizeof(length));
		sort_item(chain, item + sizeof(length), length);
		item += sizeof(length) + length;
	}
	smart_assert(item == chain->kept.items + chain->kept.bytes);
}

/* ---- the first reading ---- */

static void
add_piece(struct pieces *pieces, const struct piece *piece)
{
	struct piece *last = pieces->count > 0 ? &pieces->list[pieces->count - 1] : NULL;

	smart_assert(piece->count > 0 && (last == NULL || last->number + last->count <= piece->number));
	if (last != NULL && last->number + last->count == piece->number)
	{
		last->count += piece->count;
		return;
	}
	if (pieces->count == pieces->capacity)
	{
		pieces->capacity = Max(16, 2 * pieces->capacity);
		pieces->list = pieces->list == NULL ? palloc(pieces->capacity * sizeof(*pieces->list))
											: repalloc_huge(pieces->list, pieces->capacity * sizeof(*pieces->list));
	}
	pieces->list[pieces->count++] = *piece;
}

/* A stretch has ended, which began as this piece. */
static void
end_stretch(struct smart_sorted_chain *chain, struct piece *piece, const struct smart_stretch *ended)
{
	if (ended->count == 0)
		return;
	smart_assert(piece->number == ended->begin);
	smart_assert(ended->begin + ended->count == chain->operations);
	smart_assert(chain->kept.count <= ended->count);
	piece->count = ended->count;
	if (ended->lane == SMART_LANES_LOOSE)
	{
		if (ended->count == chain->kept.count)
			sort_kept(chain);
		else
			add_piece(&chain->loose, piece);
		chain->loose_operations += ended->count;
		return;
	}
	smart_assert(ended->lane >= 0 && ended->lane < SMART_LANES);
	chain->lane_count = Max(chain->lane_count, ended->lane + 1);
	add_piece(&chain->lanes[ended->lane], piece);
}

/* Finds the stretches of the chain. */
static enum smart_found
find_stretches(struct smart_sorted_chain *chain, struct smart_chain_place *end)
{
	struct smart_lanes *lanes = palloc(sizeof(*lanes));
	struct smart_reader *reader = chain->reader;
	struct smart_stretch ended;
	struct piece piece = {0};                          /* the current stretch */
	struct smart_chain_place batch = chain->meta->cut; /* that the reader is in, with so many operations until now */
	uint32 in_batch = 0;
	enum smart_found found;
	int key_length;

	smart_lanes_begin(lanes, SHORTEST);
	for (;;)
	{
		if (smart_reader_at_batch_end(reader))
		{
			batch = smart_reader_place(reader);
			in_batch = 0;
		}
		found = smart_reader_next_operation(reader);
		if (found != SMART_FOUND)
			break;
		in_batch++;
		if (!is_wanted(chain, reader))
			continue;
		look_around(chain, chain->operations);
		/* What is read again is the same, as its checksum tells. */
		smart_reader_check(reader, chain->codec, reader->operation == SMART_OPERATION_REMOVE);
		key_length = key_length_of(chain, reader);
		smart_assert(key_length > 0 && key_length <= SMART_KEY_MAX);
		if (smart_lanes_add(lanes, reader->unpacker.entry, key_length, &ended))
		{
			end_stretch(chain, &piece, &ended);
			chain->kept.count = chain->kept.bytes = 0;
			piece = (struct piece){.place = batch, .skip = in_batch - 1, .number = chain->operations};
		}
		keep(chain, chain->operations, key_length);
		chain->operations++;
	}
	smart_lanes_finish(lanes, &ended);
	end_stretch(chain, &piece, &ended);
	pfree(lanes);
	if (found == SMART_FOUND_END)
		*end = smart_reader_place(reader);
	return found;
}

/* ---- the second reading ---- */

/* The second reading: of long stretches that have found no lane. */
static enum smart_found
sort_loose(struct smart_sorted_chain *chain)
{
	enum smart_found found = SMART_FOUND;
	uint8 item[SMART_SORTER_MAX];

	for (uint32 i = 0; i < chain->loose.count && found == SMART_FOUND; i++)
	{
		const struct piece *piece = &chain->loose.list[i];

		found = begin_piece(chain->reader, piece);
		for (uint64 j = 0; j < piece->count && found == SMART_FOUND; j++)
		{
			found = next_again(chain, chain->reader);
			if (found != SMART_FOUND)
				break;
			look_around(chain, piece->number + j);
			sort_item(chain, item, make_item(chain, piece->number + j, key_length_of(chain, chain->reader), item));
		}
	}
	if (found != SMART_FOUND || chain->sorter == NULL)
		return found;
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, SMART_PHASE_SORT);
	smart_sorter_perform(chain->sorter);
	return SMART_FOUND;
}

/* ---- sources ---- */

static void
next_sorted(struct smart_sorted_chain *chain, struct source *source)
{
	int tail = chain->codec->fixed_length > 0 ? 0 : LENGTH_BYTES;
	int length;
	uint64 rank;
	const uint8 *item = smart_sorter_next(chain->sorter, &length);

	source->key = item;
	if (item == NULL)
		return;
	source->key_length =
		tail == 0 ? chain->codec->fixed_key_length : (int) smart_get_be16(item + length - LENGTH_BYTES);
	rank = get_rank(item + source->key_length);
	source->number = rank >> 1;
	source->operation = (rank & 1) != 0 ? SMART_OPERATION_REMOVE : SMART_OPERATION_ADD;
	source->payload = item + source->key_length + RANK_BYTES;
	source->payload_length = length - source->key_length - RANK_BYTES - tail;
	smart_assert(source->payload_length >= 0);
	smart_assert(source->key_length > 0 && source->number < chain->operations);
}

static enum smart_found
next_of_lane(struct smart_sorted_chain *chain, struct source *source)
{
	struct smart_reader *reader = source->reader;
	enum smart_found found = SMART_FOUND;

	smart_assert(source->next <= source->pieces->count);
	source->key = NULL;
	if (source->left == 0)
	{
		const struct piece *piece = &source->pieces->list[source->next];

		if (source->next == source->pieces->count)
			return SMART_FOUND;
		found = begin_piece(reader, piece);
		source->next++;
		source->left = piece->count;
		source->number = piece->number;
	}
	else
		source->number++;
	if (found == SMART_FOUND)
		found = next_again(chain, reader);
	if (found != SMART_FOUND)
		return found;
	smart_assert(source->left > 0 && source->number < chain->operations);
	look_around(chain, source->number);
	source->left--;
	source->key = reader->unpacker.entry;
	source->key_length = key_length_of(chain, reader);
	source->payload = source->key + source->key_length;
	source->payload_length = reader->unpacker.length - source->key_length;
	source->operation = reader->operation;
	return SMART_FOUND;
}

static enum smart_found
advance(struct smart_sorted_chain *chain, struct source *source)
{
	if (source->reader != NULL)
		return next_of_lane(chain, source);
	next_sorted(chain, source);
	return SMART_FOUND;
}

/* Does one come before the other: with a lower entry, or with an earlier operation on the same? */
static bool
is_before(const struct source *left, const struct source *right)
{
	int order = smart_compare_bytes(left->key, (Size) left->key_length, right->key, (Size) right->key_length);

	smart_assert(left->number != right->number);
	return order < 0 || (order == 0 && left->number < right->number);
}

/* The one that stood first has another operation now. */
static void
put_in_order(struct smart_sorted_chain *chain)
{
	struct source *moved = chain->order[0];
	int i = 0;

	smart_assert(chain->count > 0 && chain->count <= SOURCES);
	if (moved->key == NULL)
	{
		chain->count--;
		memmove(chain->order, chain->order + 1, (Size) chain->count * sizeof(*chain->order));
		return;
	}
	for (; i + 1 < chain->count && is_before(chain->order[i + 1], moved); i++)
		chain->order[i] = chain->order[i + 1];
	chain->order[i] = moved;
}

/* Puts a source that has operations in front of the others, and then in order. */
static enum smart_found
add_source(struct smart_sorted_chain *chain, struct source *source)
{
	enum smart_found found = advance(chain, source);

	if (found != SMART_FOUND || source->key == NULL)
		return found;
	smart_assert(chain->count < SOURCES);
	memmove(chain->order + 1, chain->order, (Size) chain->count * sizeof(*chain->order));
	chain->order[0] = source;
	chain->count++;
	put_in_order(chain);
	return SMART_FOUND;
}

static enum smart_found
open_sources(struct smart_sorted_chain *chain)
{
	enum smart_found found = SMART_FOUND;

	smart_assert(chain->lane_count <= SMART_LANES && chain->count == 0);
	for (int i = 0; i < chain->lane_count && found == SMART_FOUND; i++)
	{
		struct source *source = &chain->sources[i];

		source->pieces = &chain->lanes[i];
		smart_assert(source->pieces->count > 0);
		source->reader = palloc(sizeof(*source->reader));
		smart_reader_begin_chain(source->reader, chain->index, chain->meta, &source->pieces->list[0].place, true);
		found = add_source(chain, source);
	}
	if (found == SMART_FOUND && chain->sorter != NULL)
		found = add_source(chain, &chain->sources[chain->lane_count]);
	return found;
}

/* ---- the whole ---- */

static struct smart_chain_keys *
copy_keys(const struct smart_chain_keys *keys)
{
	struct own_keys *own = palloc(sizeof(*own));

	smart_assert(keys->from_length <= sizeof(own->from) && keys->to_length <= sizeof(own->to));
	memcpy(own->from, keys->from, keys->from_length);
	memcpy(own->to, keys->to, keys->to_length);
	own->keys = smart_chain_keys(own->from, keys->from_length, own->to, keys->to_length);
	return &own->keys;
}

enum smart_found
smart_sorted_chain_begin(Relation index, const struct smart_codec *codec, const struct smart_meta *meta,
						 const struct smart_look *look, const struct smart_chain_keys *keys,
						 struct smart_sorted_chain **made, struct smart_chain_place *end)
{
	struct smart_sorted_chain *chain = palloc0(sizeof(*chain));
	enum smart_found found;

	smart_environment_init();
	chain->index = index;
	chain->codec = codec;
	chain->meta = meta;
	chain->look = look;
	chain->keys = keys == NULL ? NULL : copy_keys(keys);
	chain->reader = palloc(sizeof(*chain->reader));
	chain->kept.items = palloc(KEPT_BYTES);
	smart_reader_begin_chain(chain->reader, index, meta, &meta->cut, true);
	found = find_stretches(chain, end);
	if (found == SMART_FOUND_END)
	{
		elog(DEBUG1, "chain of index \"%s\": " UINT64_FORMAT " operations%s, %d lanes, " UINT64_FORMAT " sorted",
			 RelationGetRelationName(index), chain->operations, keys == NULL ? "" : " of the range that is read",
			 chain->lane_count, chain->loose_operations);
		found = sort_loose(chain);
		if (found == SMART_FOUND)
			found = open_sources(chain);
		if (found == SMART_FOUND)
			found = SMART_FOUND_END;
	}
	*made = chain;
	if (found != SMART_FOUND_END)
		smart_sorted_chain_end(chain);
	return found;
}

enum smart_found
smart_sorted_chain_next(struct smart_sorted_chain *chain, struct smart_last_operation *last)
{
	enum smart_found found = SMART_FOUND;

	if (chain->count == 0)
		return SMART_FOUND_END;
	do
	{
		struct source *source = chain->order[0];

		smart_assert(source->key != NULL && source->key_length > 0 && source->payload_length >= 0);
		smart_assert(source->key_length + source->payload_length <= SMART_ENTRY_MAX);
		smart_copy_short(last->entry, source->key, (Size) source->key_length);
		smart_copy_short(last->entry + source->key_length, source->payload, (Size) source->payload_length);
		last->key_length = source->key_length;
		last->length = source->key_length + source->payload_length;
		last->operation = source->operation;
		found = advance(chain, source);
		if (found != SMART_FOUND)
			return found;
		put_in_order(chain);
	} while (chain->count > 0 && chain->order[0]->key_length == last->key_length &&
			 smart_equal_bytes(chain->order[0]->key, last->entry, (Size) last->key_length));
	return SMART_FOUND;
}

void
smart_sorted_chain_end(struct smart_sorted_chain *chain)
{
	if (chain->sorter != NULL)
		smart_sorter_end(chain->sorter);
	for (int i = 0; i < chain->lane_count; i++)
	{
		if (chain->sources[i].reader != NULL)
			pfree(chain->sources[i].reader);
		pfree(chain->lanes[i].list);
	}
	if (chain->loose.list != NULL)
		pfree(chain->loose.list);
	if (chain->keys != NULL)
		pfree(chain->keys);
	pfree(chain->kept.items);
	pfree(chain->reader);
	pfree(chain);
}
