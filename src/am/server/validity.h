/*
 * validity.h
 *	  Announcing that the tree of an index was found to be lost, or that another one took its place.
 */
#ifndef SMART_AM_VALIDITY_H
#define SMART_AM_VALIDITY_H

#include "utils/relcache.h"

#include "compute/allocate/space.h"

/* Is this index, if it is lost and cannot be loaded, rebuilt in the background? */
extern bool smart_validity_rebuilds(Relation index);

/* This process has met a lost index: registers it to be loaded or rebuilt. */
extern void smart_validity_notice(Relation index);

/*
 * OBJECT_NOT_IN_PREREQUISITE_STATE if an entry was left out of the tree that this process fills, which has to begin anew.  seal: if not,
 * none can be left out any more.  done: what was done to the index, for the message.
 */
extern void smart_validity_require(Relation index, bool seal, const char *done);

/*
 * The tree of an index has been given up or replaced: all backends look again before their next use of it, and plan
 * anew what they have planned for its table.
 */
extern void smart_validity_announce(Relation index);

/* All plans of a database are made anew, and all its indexes are checked again before their next use. */
extern void smart_validity_announce_database(Oid database);

/*
 * All trees of this space can be used from now on, or, lost_only, some were lost with a memory node.  As the
 * directory does not name the indexes, this concerns all of the databases that the trees belong to; where trees were
 * lost, the databases are searched for what is to be rebuilt.
 */
extern void smart_validity_announce_trees(struct smart_space *space, bool lost_only);

#endif /* SMART_AM_VALIDITY_H */
