/*
 * kill.h
 *	  Entries of dead rows, removed by the scan or insert that meets them, or by a worker that it tells of them.
 */
#ifndef SMART_AM_KILL_H
#define SMART_AM_KILL_H

#include "utils/relcache.h"

struct smart_relation;

#define SMART_KILLS_MAX 128 /* entries noted at a time; what is met beyond them stays */

/* Entries whose rows were found dead: keys, in the order of the index or its reverse. */
struct smart_kills
{
	MemoryContext context;
	uint32 count;
	uint32 room;
	uint32 start[SMART_KILLS_MAX + 1]; /* of the keys in bytes */
	uint8 *bytes;
};

/* Sets up; takes no memory yet, and later from CurrentMemoryContext. */
extern void smart_kills_init(struct smart_kills *kills);

/* Can a backend tell that rows of this table are dead?  NULL, no table: false. */
extern bool smart_kills_possible(Relation heap);

/* Notes an entry by its key; perhaps not, if there are many. */
extern void smart_kills_note(struct smart_kills *kills, const uint8 *key, int key_length);

/* Frees the memory that the keys took. */
extern void smart_kills_release(struct smart_kills *kills);

/*
 * Removes those of the noted entries whose rows are dead, as far as that is durable, and forgets all; where there is a
 * journal, hands them over to a worker, which does so in a moment.
 * Raises no error about the index: the next scan will.
 */
extern void smart_kills_apply(struct smart_kills *kills, struct smart_relation *relation, Relation heap);

#endif /* SMART_AM_KILL_H */
