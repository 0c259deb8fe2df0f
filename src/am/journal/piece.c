/*
 * piece.c
 *	  A piece of a chain.
 *
 * In a tree all removals go first, and then all adds, each of them together, leaf by leaf: on memory nodes that takes a few round
 * trips for all.  An entry that is removed and added again takes part in both, since what lies behind its key may be different.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "am/journal/apply.h"
#include "am/journal/piece.h"
#include "base/assert.h"
#include "base/bytes.h"

/* ---- collecting ---- */

void
smart_piece_init(struct smart_piece *piece, const struct smart_codec *codec)
{
	memset(piece, 0, offsetof(struct smart_piece, first));
	piece->codec = codec;
	piece->context = AllocSetContextCreate(CurrentMemoryContext, "smart operations", ALLOCSET_DEFAULT_SIZES);
	piece->operations = piece->first;
	piece->capacity = SMART_PIECE_FIRST;
}

void
smart_piece_free(struct smart_piece *piece)
{
	MemoryContextDelete(piece->context);
	if (piece->more != NULL)
		pfree(piece->more);
}

void
smart_piece_clear(struct smart_piece *piece)
{
	piece->count = 0;
	piece->bytes = 0;
	MemoryContextReset(piece->context);
}

/* Twice as much room for operations. */
static void
grow(struct smart_piece *piece)
{
	Size bytes = piece->capacity * sizeof(struct smart_piece_operation);

	piece->capacity *= 2;
	if (piece->more != NULL)
		piece->more = repalloc(piece->more, 2 * bytes);
	else
	{
		piece->more = palloc(2 * bytes);
		memcpy(piece->more, piece->operations, bytes);
	}
	piece->operations = piece->more;
}

void
smart_piece_add(struct smart_piece *piece, const struct smart_reader *reader)
{
	const struct smart_unpacker *from = &reader->unpacker;
	struct smart_piece_operation *operation;

	smart_assert(piece->count <= piece->capacity);
	if (piece->count == piece->capacity)
		grow(piece);
	operation = &piece->operations[piece->count];
	*operation = (struct smart_piece_operation){.operation = reader->operation, .length = from->length};
	operation->key_length = reader->operation == SMART_OPERATION_REMOVE
								? from->length
								: smart_codec_key_length(piece->codec, from->entry, from->length);
	operation->number = piece->count++;
	operation->entry = MemoryContextAlloc(piece->context, (Size) from->length);
	memcpy(operation->entry, from->entry, (Size) from->length);
	piece->bytes += (Size) from->length;
}

/* ---- in order ---- */

static int
compare_keys(const struct smart_piece_operation *operation, const uint8 *key, Size key_length)
{
	return smart_compare_bytes(operation->entry, (size_t) operation->key_length, key, key_length);
}

/* qsort's: by key, and of one key the last operation first. */
static int
compare_operations(const void *a, const void *b)
{
	const struct smart_piece_operation *left = a;
	const struct smart_piece_operation *right = b;
	int order = compare_keys(left, right->entry, (Size) right->key_length);

	return order != 0 ? order : (left->number < right->number) - (left->number > right->number);
}

/* Puts the last operation on each entry in the order of the keys; the others go. */
static void
keep_last(struct smart_piece *piece)
{
	struct smart_piece_operation *kept = piece->operations;

	qsort(piece->operations, piece->count, sizeof(*kept), compare_operations);
	for (uint32 i = 1; i < piece->count; i++)
	{
		const struct smart_piece_operation *operation = &piece->operations[i];

		if (compare_keys(kept, operation->entry, (Size) operation->key_length) != 0)
			*++kept = *operation;
		else
			kept->anew |= kept->operation == SMART_OPERATION_ADD && operation->operation == SMART_OPERATION_REMOVE;
	}
	piece->count = piece->count == 0 ? 0 : (uint32) (kept - piece->operations) + 1;
}

/* ---- in a tree ---- */

/* The keys to be removed, in order, and how far the walk over the tree has come. */
struct victims
{
	const struct smart_codec *codec;
	const struct smart_piece_operation **keys;
	uint32 count;
	uint32 next;
};

/* The first key, from one on, that is not below another one. */
static uint32
search(const struct victims *victims, uint32 from, const uint8 *key, size_t key_length)
{
	uint32 low = from;
	uint32 high = victims->count;

	while (low < high)
	{
		uint32 middle = low + (high - low) / 2;

		if (compare_keys(victims->keys[middle], key, key_length) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* smart_next_key_fn */
static bool
next_victim(void *argument, const uint8_t *from, size_t from_length, const uint8_t **key, size_t *key_length)
{
	struct victims *victims = argument;

	victims->next = search(victims, victims->next, from, from_length);
	if (victims->next == victims->count)
		return false;
	*key = victims->keys[victims->next]->entry;
	*key_length = (size_t) victims->keys[victims->next]->key_length;
	return true;
}

/* smart_dead_fn */
static bool
is_victim(void *argument, const uint8_t *entry, size_t length)
{
	const struct victims *victims = argument;
	size_t key_length = (size_t) smart_codec_key_length(victims->codec, entry, (int) length);
	uint32 place = search(victims, 0, entry, key_length);

	return place < victims->count && compare_keys(victims->keys[place], entry, key_length) == 0;
}

static smart_status
remove_all(const struct smart_piece *piece, struct smart_tree *tree)
{
	struct victims victims = {.codec = piece->codec,
							  .keys = MemoryContextAlloc(piece->context, piece->count * sizeof(*victims.keys))};
	struct smart_victims those = {.dead = is_victim, .argument = &victims};
	uint64_t removed;

	for (uint32 i = 0; i < piece->count; i++)
	{
		if (piece->operations[i].operation == SMART_OPERATION_REMOVE || piece->operations[i].anew)
			victims.keys[victims.count++] = &piece->operations[i];
	}
	if (victims.count == 0)
		return SMART_OK;
	those.last = victims.keys[victims.count - 1]->entry;
	those.last_length = (size_t) victims.keys[victims.count - 1]->key_length;
	return smart_tree_remove_many(tree, &those, next_victim, &removed);
}

static smart_status
add_all(const struct smart_piece *piece, struct smart_tree *tree)
{
	struct smart_addition *additions = MemoryContextAlloc(piece->context, piece->count * sizeof(*additions));
	uint32 count = 0;

	for (uint32 i = 0; i < piece->count; i++)
	{
		const struct smart_piece_operation *operation = &piece->operations[i];

		if (operation->operation == SMART_OPERATION_ADD)
			additions[count++] = (struct smart_addition){.bytes = operation->entry,
														 .key_length = (uint32) operation->key_length,
														 .length = (uint32) operation->length};
	}
	return smart_tree_insert_many(tree, additions, count);
}

smart_status
smart_piece_carry_out(struct smart_piece *piece, struct smart_tree *tree)
{
	smart_status status;

	if (piece->count == 0)
		return SMART_OK;
	keep_last(piece);
	status = remove_all(piece, tree);
	return status == SMART_OK ? add_all(piece, tree) : status;
}

/* ---- in a delta ---- */

int
smart_delta_entry(const struct smart_codec *codec, enum smart_operation operation, const uint8 *entry, int length,
				  uint8 *out)
{
	int rest = codec->fixed_length > 0 ? codec->fixed_length - length : 0;

	smart_assert(rest >= 0 && length + rest < SMART_ENTRY_MAX);
	memcpy(out, entry, (Size) length);
	memset(out + length, 0, (Size) rest);
	out[length + rest] = operation == SMART_OPERATION_ADD ? SMART_DELTA_ADDED : SMART_DELTA_REMOVED;
	return length + rest + 1;
}

static smart_status
carry_out_in_delta(const struct smart_codec *codec, struct smart_tree *delta,
				   const struct smart_piece_operation *operation)
{
	uint8 entry[SMART_ENTRY_MAX];
	Size length = (Size) smart_delta_entry(codec, operation->operation, operation->entry, operation->length, entry);
	Size key_length = (Size) operation->key_length;
	smart_status status;
	bool done = false;

	/*
	 * An earlier operation on the entry makes room first.  A reader between the two steps sees what the run has, or nothing.
	 * That is right for him: this operation lies behind the place up to which he has everything, so the row is too new for
	 * him, or dead.
	 */
	while ((status = smart_tree_insert(delta, entry, key_length, length, &done)) == SMART_OK && !done)
	{
		status = smart_tree_remove(delta, entry, key_length, &done);
		if (status != SMART_OK)
			break;
	}
	return status;
}

/* Has the run this entry?  If its pages are used anew: perhaps. */
static bool
run_has(struct smart_reader *run, const struct smart_piece_operation *operation)
{
	const struct smart_unpacker *found = &run->unpacker;
	Size length = (Size) operation->key_length;

	switch (smart_reader_seek_entry(run, operation->entry, operation->key_length))
	{
		case SMART_FOUND:
			return (Size) found->length >= length && memcmp(found->entry, operation->entry, length) == 0;
		case SMART_FOUND_END:
			return false;
		default:
			return true;
	}
}

/* The removal of an entry that has come after the run was written: it goes, and nothing is left.  *done: it was so. */
static smart_status
remove_from_lean_delta(struct smart_tree *delta, struct smart_reader *run,
					   const struct smart_piece_operation *operation, bool *done)
{
	smart_status status = smart_tree_remove(delta, operation->entry, (Size) operation->key_length, done);

	if (status == SMART_OK && *done)
		*done = !run_has(run, operation);
	return status;
}

smart_status
smart_piece_carry_out_in_delta(struct smart_piece *piece, struct smart_tree *delta, struct smart_reader *run)
{
	smart_status status = SMART_OK;

	keep_last(piece);
	for (uint32 i = 0; i < piece->count && status == SMART_OK; i++)
	{
		const struct smart_piece_operation *operation = &piece->operations[i];
		bool done = false;

		CHECK_FOR_INTERRUPTS();
		if (run != NULL && operation->operation == SMART_OPERATION_REMOVE)
			status = remove_from_lean_delta(delta, run, operation, &done);
		if (status == SMART_OK && !done)
			status = carry_out_in_delta(piece->codec, delta, operation);
	}
	return status;
}
