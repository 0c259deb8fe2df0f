/*
 * apply.c
 *	  Bringing a tree up to date with the chain of its journal.
 *
 * The chain is read in pieces.  Of each entry only the last operation of the piece is carried out.  So an operation
 * that is carried out once more, since the process before was cancelled in its piece, brings no entry back for a moment
 * that a later operation of the piece removes: its TID may serve another row by now.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "am/codec/encode.h"
#include "am/index/relation.h"
#include "am/journal/apply.h"
#include "am/journal/read.h"
#include "base/assert.h"
#include "base/bytes.h"

#define PIECE_OPERATIONS 8192 /* or some more: up to the end of a batch, which has less than BLCKSZ */
#define PIECE_BYTES      (1024 * 1024)
#define PIECE_FIRST      64 /* operations that there is room for at first: on a standby there are few as a rule */

struct operation
{
	uint8 *entry;
	int key_length;
	int length;
	uint32 number; /* in the piece */
	enum smart_operation operation;
};

struct piece
{
	struct operation *operations;
	struct operation *more; /* NULL: they are on the stack */
	uint32 capacity;
	uint32 count;
	Size bytes;
	MemoryContext context; /* of the entries */
};

/* qsort's: by key, and of one key the last operation first. */
static int
compare_operations(const void *a, const void *b)
{
	const struct operation *left = a;
	const struct operation *right = b;
	int order = smart_compare_bytes(left->entry, (size_t) left->key_length, right->entry, (size_t) right->key_length);

	return order != 0 ? order : (left->number < right->number) - (left->number > right->number);
}

/* Twice as much room for operations; the first ones have theirs on the stack. */
static void
grow(struct piece *piece)
{
	Size bytes = piece->capacity * sizeof(struct operation);

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

static void
add_to_piece(struct piece *piece, const struct smart_codec *codec, const struct smart_reader *reader)
{
	const struct smart_unpacker *from = &reader->unpacker;
	struct operation *operation;

	smart_assert(piece->count < PIECE_OPERATIONS + BLCKSZ && piece->count <= piece->capacity);
	if (piece->count == piece->capacity)
		grow(piece);
	operation = &piece->operations[piece->count];
	operation->operation = reader->operation;
	operation->length = from->length;
	operation->key_length = reader->operation == SMART_OPERATION_REMOVE
								? from->length
								: smart_codec_key_length(codec, from->entry, from->length);
	operation->number = piece->count++;
	operation->entry = MemoryContextAlloc(piece->context, (Size) from->length);
	memcpy(operation->entry, from->entry, (Size) from->length);
	piece->bytes += (Size) from->length;
}

/* ---- carrying out ---- */

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
carry_out_in_delta(const struct smart_codec *codec, struct smart_tree *tree, const struct operation *operation)
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
	while ((status = smart_tree_insert(tree, entry, key_length, length, &done)) == SMART_OK && !done)
	{
		status = smart_tree_remove(tree, entry, key_length, &done);
		if (status != SMART_OK)
			break;
	}
	return status;
}

static smart_status
carry_out(struct smart_tree *tree, const struct operation *operation)
{
	bool done;

	return operation->operation == SMART_OPERATION_ADD
			   ? smart_tree_insert(tree, operation->entry, (size_t) operation->key_length, (size_t) operation->length,
								   &done)
			   : smart_tree_remove(tree, operation->entry, (size_t) operation->key_length, &done);
}

/* False: the target has no room. */
static bool
carry_out_all(Relation index, const struct smart_codec *codec, struct smart_tree *tree, enum smart_target target,
			  const struct piece *piece)
{
	qsort(piece->operations, piece->count, sizeof(struct operation), compare_operations);
	for (uint32 i = 0; i < piece->count; i++)
	{
		const struct operation *operation = &piece->operations[i];
		smart_status status;

		if (i > 0 && operation->key_length == operation[-1].key_length &&
			memcmp(operation->entry, operation[-1].entry, (Size) operation->key_length) == 0)
			continue;
		CHECK_FOR_INTERRUPTS();
		status = target == SMART_TARGET_DELTA ? carry_out_in_delta(codec, tree, operation) : carry_out(tree, operation);
		if ((status == SMART_NO_SPACE || status == SMART_DISK_FULL) && target != SMART_TARGET_TREE)
			return false;
		smart_check_status(status, index);
	}
	return true;
}

bool
smart_journal_apply(Relation index, const struct smart_codec *codec, struct smart_tree *tree, enum smart_target target,
					struct smart_chain_place *place, void (*after_piece)(void *, const struct smart_chain_place *),
					void *argument)
{
	/* The next call has it again: where each insert into a unique index applies its own entry, this is called for each. */
	static struct smart_reader *reader = NULL;
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "smart operations", ALLOCSET_DEFAULT_SIZES);
	struct operation first[PIECE_FIRST];
	struct piece piece = {.operations = first, .capacity = PIECE_FIRST, .context = context};
	enum smart_found found = SMART_FOUND;
	bool room = true;
	struct smart_meta meta;

	if (reader == NULL)
		reader = MemoryContextAlloc(TopMemoryContext, sizeof(*reader));
	smart_meta_read_again(index, &meta);
	/* A chain that was not there when the tree was loaded begins with serial 1. */
	if (place->serial == 0 && meta.tail_serial > 0)
	{
		if (meta.cut.serial == 1)
			*place = (struct smart_chain_place){.serial = 1, .block = meta.cut.block, .offset = SMART_PAGE_BEGIN};
		else
			found = SMART_FOUND_BEHIND;
	}
	if (found == SMART_FOUND)
		smart_reader_begin_chain(reader, index, &meta, place, false);
	while (found == SMART_FOUND && room)
	{
		piece.count = 0;
		piece.bytes = 0;
		MemoryContextReset(piece.context);
		while ((piece.count < PIECE_OPERATIONS && piece.bytes < PIECE_BYTES) || !smart_reader_at_batch_end(reader))
		{
			found = smart_reader_next_operation(reader);
			if (found != SMART_FOUND)
				break;
			smart_reader_check(reader, codec, reader->operation == SMART_OPERATION_REMOVE);
			add_to_piece(&piece, codec, reader);
		}
		if (found == SMART_FOUND_BEHIND)
			break;
		room = carry_out_all(index, codec, tree, target, &piece);
		if (!room)
			break;
		*place = smart_reader_place(reader);
		if (after_piece != NULL && piece.count > 0)
			after_piece(argument, place);
	}
	MemoryContextDelete(context);
	if (piece.more != NULL)
		pfree(piece.more);
	return found == SMART_FOUND_END && room;
}
