/*
 * lookahead.h
 *	  Nested loops that look ahead.
 */
#ifndef SMART_AM_JOIN_LOOKAHEAD_H
#define SMART_AM_JOIN_LOOKAHEAD_H

/* Lets the executor look ahead in nested loops over indexes on memory nodes.  Called once, when the library is loaded. */
extern void smart_lookahead_init(void);

#endif /* SMART_AM_JOIN_LOOKAHEAD_H */
