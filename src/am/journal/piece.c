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

#include "am/journal/delta_entry.h"
#include "am/journal/piece.h"
#include "am/journal/sorted_keys.h"
#include "base/assert.h"
#include "base/bytes.h"

#define FEW 16 /* operations, which go into a delta one by one */

/* ---- collecting ---- */

struct smart_piece *
smart_piece_make(const struct smart_codec *codec, MemoryContext context)
{
	struct smart_piece *piece = MemoryContextAlloc(context, sizeof(*piece));

	memset(piece, 0, offsetof(struct smart_piece, first));
	piece->codec = codec;
	piece->context = AllocSetContextCreate(context, "smart operations", ALLOCSET_DEFAULT_SIZES);
	piece->operations = piece->first;
	piece->capacity = SMART_PIECE_FIRST;
	return piece;
}

struct smart_piece *
smart_piece_begin(const struct smart_codec *codec)
{
	static struct smart_piece *piece = NULL;

	if (piece == NULL)
		piece = smart_piece_make(codec, TopMemoryContext);
	/* What an error has left. */
	smart_piece_end(piece);
	piece->codec = codec;
	return piece;
}

void
smart_piece_end(struct smart_piece *piece)
{
	smart_piece_clear(piece);
	if (piece->more != NULL)
		pfree(piece->more);
	piece->more = NULL;
	piece->operations = piece->first;
	piece->capacity = SMART_PIECE_FIRST;
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

	smart_assert(piece->count == piece->capacity && piece->capacity <= UINT32_MAX / 2);
	smart_assert(piece->operations == (piece->more != NULL ? piece->more : piece->first));
	piece->capacity *= 2;
	if (piece->more != NULL)
		piece->more = repalloc(piece->more, 2 * bytes);
	else
	{
		piece->more = MemoryContextAlloc(MemoryContextGetParent(piece->context), 2 * bytes);
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
	smart_assert(piece->count < piece->capacity);
	operation = &piece->operations[piece->count];
	*operation = (struct smart_piece_operation){.operation = reader->operation, .length = from->length};
	operation->key_length = reader->operation == SMART_OPERATION_REMOVE
								? from->length
								: smart_codec_key_length(piece->codec, from->entry, from->length);
	smart_assert(operation->key_length > 0 && operation->key_length <= operation->length);
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

void
smart_piece_keep_last(struct smart_piece *piece)
{
	struct smart_piece_operation *kept = piece->operations;

	qsort(piece->operations, piece->count, sizeof(*kept), compare_operations);
	for (uint32 i = 1; i < piece->count; i++)
	{
		const struct smart_piece_operation *operation = &piece->operations[i];

		smart_assert(kept < operation);
		if (compare_keys(kept, operation->entry, (Size) operation->key_length) != 0)
			*++kept = *operation;
		else
			kept->anew |= kept->operation == SMART_OPERATION_ADD && operation->operation == SMART_OPERATION_REMOVE;
	}
	piece->count = piece->count == 0 ? 0 : (uint32) (kept - piece->operations) + 1;
}

void
smart_piece_keep_part(struct smart_piece *piece, uint32 begin, uint32 count)
{
	MemoryContext old = piece->context;

	smart_assert(begin <= piece->count && count <= piece->count - begin);
	piece->context = AllocSetContextCreate(MemoryContextGetParent(old), "smart operations", ALLOCSET_DEFAULT_SIZES);
	piece->count = count;
	piece->bytes = 0;
	for (uint32 i = 0; i < count; i++)
	{
		struct smart_piece_operation operation = piece->operations[begin + i];
		const uint8 *bytes = operation.entry;

		operation.number = i;
		operation.entry = MemoryContextAlloc(piece->context, (Size) operation.length);
		memcpy(operation.entry, bytes, (Size) operation.length);
		piece->operations[i] = operation;
		piece->bytes += (Size) operation.length;
	}
	MemoryContextDelete(old);
}

/* ---- in a tree ---- */

/* The keys to be removed, beside which the walk over the tree goes. */
struct victims
{
	struct smart_sorted_keys keys; /* with numbers of operations */
	struct smart_piece *piece;
	bool delta; /* the tree is one */
};

/* smart_next_key_fn */
static bool
next_victim(void *argument, const uint8_t *from, size_t from_length, const uint8_t **key, size_t *key_length)
{
	struct victims *victims = argument;

	return smart_sorted_keys_next(&victims->keys, from, from_length, key, key_length);
}

/* smart_dead_fn.  Who asks has found the entry, which nobody else removes. */
static bool
is_victim(void *argument, const uint8_t *entry, size_t length)
{
	struct victims *victims = argument;
	const struct smart_codec *codec = victims->piece->codec;
	int key_length = victims->delta ? smart_delta_key_length(codec, entry, (int) length)
									: smart_codec_key_length(codec, entry, (int) length);
	const struct smart_sorted_key *key = smart_sorted_keys_find(&victims->keys, entry, (size_t) key_length);

	smart_assert(key == NULL || key->number < victims->piece->count);
	if (key != NULL)
		victims->piece->operations[key->number].met = true;
	return key != NULL;
}

/* Removes what is to go, and what is to be added anew.  Operations in order. */
static smart_status
remove_all(struct smart_piece *piece, struct smart_tree *tree, bool delta)
{
	struct smart_sorted_key *keys = MemoryContextAlloc(piece->context, piece->count * sizeof(*keys));
	struct victims victims = {.keys = {.keys = keys}, .piece = piece, .delta = delta};
	struct smart_victims those = {.dead = is_victim, .argument = &victims};
	uint64_t removed;

	for (uint32 i = 0; i < piece->count; i++)
	{
		const struct smart_piece_operation *operation = &piece->operations[i];

		smart_assert(i == 0 || compare_keys(operation - 1, operation->entry, (Size) operation->key_length) < 0);
		if (operation->operation == SMART_OPERATION_REMOVE || operation->anew)
			keys[victims.keys.count++] = (struct smart_sorted_key){.bytes = operation->entry,
																   .length = (uint32) operation->key_length,
																   .number = i};
	}
	smart_assert(victims.keys.count <= piece->count);
	if (victims.keys.count == 0)
		return SMART_OK;
	those.last = keys[victims.keys.count - 1].bytes;
	those.last_length = keys[victims.keys.count - 1].length;
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
	smart_piece_keep_last(piece);
	status = remove_all(piece, tree, false);
	return status == SMART_OK ? add_all(piece, tree) : status;
}

/* ---- in a delta ---- */

static smart_status
carry_out_in_delta(const struct smart_codec *codec, struct smart_tree *delta,
				   const struct smart_piece_operation *operation, uint8 mark)
{
	uint8 entry[SMART_ENTRY_MAX];
	Size length = (Size) smart_delta_entry(codec, mark, operation->entry, operation->length, entry);
	Size key_length = (Size) operation->key_length;
	smart_status status;
	bool done = false;

	smart_assert(mark <= SMART_DELTA_SPENT + 1);
	smart_assert(key_length > 0 && key_length < length);
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

/* Has the run this entry?  If its pages are used anew: perhaps.  ahead: the one before was below it. */
static bool
run_has(struct smart_reader *run, const struct smart_piece_operation *operation, bool ahead)
{
	const struct smart_unpacker *found = &run->unpacker;
	Size length = (Size) operation->key_length;

	smart_assert(operation->operation == SMART_OPERATION_REMOVE && operation->key_length == operation->length);
	switch ((ahead ? smart_reader_seek_ahead : smart_reader_seek_entry)(run, operation->entry, operation->key_length))
	{
		case SMART_FOUND:
			return (Size) found->length >= length && memcmp(found->entry, operation->entry, length) == 0;
		case SMART_FOUND_END:
			return false;
		default:
			return true;
	}
}

/* One by itself. */
static smart_status
carry_out_one(const struct smart_codec *codec, struct smart_tree *delta, struct smart_reader *run, int spent,
			  const struct smart_piece_operation *operation)
{
	int mark = smart_delta_mark(operation->operation);
	bool met = false;

	if (operation->operation == SMART_OPERATION_REMOVE)
	{
		smart_status status = smart_tree_remove(delta, operation->entry, (Size) operation->key_length, &met);

		if (status != SMART_OK)
			return status;
		if (met && !run_has(run, operation, false))
			mark = spent;
	}
	return mark == SMART_DELTA_NOTHING ? SMART_OK : carry_out_in_delta(codec, delta, operation, (uint8) mark);
}

/* The operations that stand in the delta afterwards, as what is to be added to it; numbers: which they are. */
static uint32
list_additions(struct smart_piece *piece, struct smart_reader *run, int spent, struct smart_addition *additions,
			   uint32 *numbers)
{
	uint32 count = 0;
	bool ahead = false;

	for (uint32 i = 0; i < piece->count; i++)
	{
		const struct smart_piece_operation *operation = &piece->operations[i];
		int mark = smart_delta_mark(operation->operation);
		uint8 entry[SMART_ENTRY_MAX];
		uint8 *bytes;
		int length;

		CHECK_FOR_INTERRUPTS();
		if (operation->operation == SMART_OPERATION_REMOVE && operation->met)
		{
			if (!run_has(run, operation, ahead))
				mark = spent;
			ahead = true;
		}
		if (mark == SMART_DELTA_NOTHING)
			continue;
		length = smart_delta_entry(piece->codec, (uint8) mark, operation->entry, operation->length, entry);
		bytes = MemoryContextAlloc(piece->context, (Size) length);
		memcpy(bytes, entry, (Size) length);
		numbers[count] = i;
		additions[count++] = (struct smart_addition){.bytes = bytes,
													 .key_length = (uint32) operation->key_length,
													 .length = (uint32) length};
	}
	return count;
}

/* All of them, leaf by leaf.  Operations in order. */
static smart_status
carry_out_together(struct smart_piece *piece, struct smart_tree *delta, struct smart_reader *run, int spent)
{
	struct smart_addition *additions = MemoryContextAlloc(piece->context, piece->count * sizeof(*additions));
	uint32 *numbers = MemoryContextAlloc(piece->context, piece->count * sizeof(*numbers));
	smart_status status = remove_all(piece, delta, true);
	uint32 count;

	if (status != SMART_OK)
		return status;
	count = list_additions(piece, run, spent, additions, numbers);
	smart_assert(count <= piece->count);
	status = smart_tree_insert_many(delta, additions, count);
	/* An entry that is added may have been removed in an earlier piece. */
	for (uint32 i = 0; i < count && status == SMART_OK; i++)
	{
		if (!additions[i].added)
			status = carry_out_in_delta(piece->codec, delta, &piece->operations[numbers[i]],
										additions[i].bytes[additions[i].length - 1]);
	}
	return status;
}

smart_status
smart_piece_carry_out_in_delta(struct smart_piece *piece, struct smart_tree *delta, struct smart_reader *run, int spent)
{
	smart_status status = SMART_OK;

	smart_assert(spent == SMART_DELTA_NOTHING || spent == SMART_DELTA_SPENT || spent == SMART_DELTA_SPENT + 1);
	smart_piece_keep_last(piece);
	if (piece->count > FEW)
		return carry_out_together(piece, delta, run, spent);
	for (uint32 i = 0; i < piece->count && status == SMART_OK; i++)
		status = carry_out_one(piece->codec, delta, run, spent, &piece->operations[i]);
	return status;
}
