/*
 * piece.h
 *	  A piece of a chain: operations that are carried out together, in a tree or in a delta.
 */
#ifndef SMART_AM_JOURNAL_PIECE_H
#define SMART_AM_JOURNAL_PIECE_H

#include "am/codec/encode.h"
#include "am/journal/read.h"
#include "tree/pack.h"
#include "tree/tree.h"

#define SMART_PIECE_FIRST 64 /* operations that there is room for at first: mostly there are few */

struct smart_piece_operation
{
	uint8 *entry;
	int key_length;
	int length;
	uint32 number; /* in the piece */
	enum smart_operation operation;
	bool anew; /* it adds what an earlier one of the piece has removed */
	bool met;  /* the entry was there, and was removed */
};

struct smart_piece
{
	const struct smart_codec *codec;
	MemoryContext context; /* of the entries */
	uint32 count;
	Size bytes; /* of the entries */
	uint32 capacity;
	struct smart_piece_operation *operations;
	struct smart_piece_operation *more; /* NULL: they are in first */
	struct smart_piece_operation first[SMART_PIECE_FIRST];
};

/* An empty piece of which all lives in this memory context. */
extern struct smart_piece *smart_piece_make(const struct smart_codec *codec, MemoryContext context);

/* The same that the process has once.  What an error leaves is freed by the next begin. */
extern struct smart_piece *smart_piece_begin(const struct smart_codec *codec);
extern void smart_piece_end(struct smart_piece *piece);

/* Empties it. */
extern void smart_piece_clear(struct smart_piece *piece);

/* Adds the operation that a reader has found. */
extern void smart_piece_add(struct smart_piece *piece, const struct smart_reader *reader);

/* Puts the last operation on each entry in the order of the keys; the others go. */
extern void smart_piece_keep_last(struct smart_piece *piece);

/* Right afterwards: so many operations from this one on stay, and the memory of the others is free. */
extern void smart_piece_keep_part(struct smart_piece *piece, uint32 begin, uint32 count);

/*
 * Carries out the operations of each entry as if they came one after the other; of those that add an entry, or remove it, only
 * the last one has to.  Before it ends a reader may miss an entry that was removed and added anew.  Returns the status of the tree.
 */
extern smart_status smart_piece_carry_out(struct smart_piece *piece, struct smart_tree *tree);

/*
 * The same in a delta (delta.h), with a reader of its run.  spent: the mark (delta_entry.h) of what was added there, is removed, and is not
 * in the run.
 */
#define SMART_DELTA_NOTHING (-1) /* nothing is left of it */

extern smart_status smart_piece_carry_out_in_delta(struct smart_piece *piece, struct smart_tree *delta,
												   struct smart_reader *run, int spent);

#endif /* SMART_AM_JOURNAL_PIECE_H */
