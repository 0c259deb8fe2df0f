/*
 * history.h
 *	  What the clients did and saw, and whether a set could have behaved so.
 *
 * A tree is a set, and a set decomposes by key: the history is right if for
 * every key the operations on it can be put in an order that respects real
 * time and gives every result.  A scan counts as a lookup of every key in its
 * range; a bulk delete as a removal of every key that it was told is dead.  In a
 * tree with values a key is absent or has one, and no two clients come with the same.
 */
#ifndef SIM_HISTORY_H
#define SIM_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

enum event_kind
{
	EVENT_LOOKUP, /* result: found */
	EVENT_INSERT, /* result: added */
	EVENT_REMOVE, /* result: removed */
	EVENT_UPDATE  /* result: found */
};

enum event_result
{
	RESULT_NO,
	RESULT_YES,
	RESULT_ANY,  /* took effect, but what it saw is not known */
	RESULT_MAYBE /* may have taken effect, or not */
};

extern void history_reset(void);

/* A call begins: its number.  Until its end is told, it may have taken effect or not. */
extern int history_begin(int client, enum event_kind kind, unsigned int key);
/* The value that the call came with, or the one that it saw; without this there is none, or it is not known. */
extern void history_value(int event, uint64_t value);
extern void history_end(int event, enum event_result result);
/* It had no effect and saw nothing. */
extern void history_cancel(int event);
/* A client died now: what it had begun may have taken effect, or not. */
extern void history_died(int client);
/* A whole event at once. */
extern void
history_add(int client, enum event_kind kind, unsigned int key, uint64_t start, uint64_t end, enum event_result result);

/* An insert that may have taken effect a second time, in between. */
extern void history_add_again(int event, uint64_t start, uint64_t end);

/* Was the key ever put in, as far as is known? */
extern bool history_touched(unsigned int key);

/* Reports the first key whose events no set can explain. */
extern void history_check(void);

extern uint64_t history_count(void);

#endif /* SIM_HISTORY_H */
