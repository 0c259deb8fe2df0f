/*
 * tuples.h
 *	  The index tuples that an index-only scan returns.
 */
#ifndef SMART_AM_TUPLES_H
#define SMART_AM_TUPLES_H

#include "access/itup.h"

#include "tree/tree.h"

struct smart_codec;
struct smart_position;

#define SMART_TUPLES_AHEAD 64 /* formed at a time */
#define SMART_TUPLES_SPACE (16 * 1024)

/* How tuples without NULLs are formed. */
enum smart_tuple_shape
{
	SMART_TUPLE_ANY,
	SMART_TUPLE_WORD,    /* one column, passed by value */
	SMART_TUPLE_VARLENA, /* one column of variable length */
	SMART_TUPLE_VERBATIM /* the same, of the bytes that the key has */
};

/* The tuples of some neighbouring entries of a batch. */
struct smart_tuples
{
	const struct smart_codec *codec;
	MemoryContext context;
	enum smart_tuple_shape shape;
	uint32 batch; /* of which batch; 0: none yet */
	bool same;    /* all entries of that batch have one tuple, but for its TID */
	int low;      /* of entries low .. high */
	int high;
	int base; /* tuple[i - base] is that of entry i */
	char *space;
	IndexTuple tuple[SMART_TUPLES_AHEAD];
	uint32 entry_end[SMART_TUPLES_AHEAD];
	uint8 entries[SMART_ENTRY_MAX + SMART_BATCH_SLACK];
};

/* codec and CurrentMemoryContext live as long. */
extern void smart_tuples_init(struct smart_tuples *tuples, const struct smart_codec *codec);

/*
 * Forms the tuple of the entry at a position, unless that has been done, and perhaps those of entries that follow in the
 * given direction, if all satisfy the conditions: tuple[i - base] for each entry i from low to high.  If tuples->same,
 * tuple[low - base] is the one of all entries of the batch, but for its TID.  Good until the next call.
 */
extern void smart_tuples_form(struct smart_tuples *tuples, const struct smart_position *position, bool backward);

#endif /* SMART_AM_TUPLES_H */
