/*
 * precedence.h
 *	  Who must have a tree (resident = always) comes before who may do without (auto), where there is no room for both.
 */
#ifndef SMART_AM_PRECEDENCE_H
#define SMART_AM_PRECEDENCE_H

#include "utils/relcache.h"

/*
 * To be called before a worker loads the tree of an index.  LOCK_NOT_AVAILABLE: it may do without one, and there is hardly room for
 * it and for those that others must have.
 */
extern void smart_precedence_ask(Relation index);

/*
 * There was no room for the tree of an index.  If it must have one, other indexes of its database that may do without give up
 * theirs, the largest first, until they amount to what it needs; none, if all together do not, or if that has not helped before.
 * Returns whether there is going to be memory for another attempt.  Within the current transaction, which has done nothing else.
 */
extern bool smart_precedence_make_room(Oid index);

#endif /* SMART_AM_PRECEDENCE_H */
