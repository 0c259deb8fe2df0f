/*
 * acceptance.h
 *	  Whether the tree that a metapage names may be used, and who is told when
 *	  that changes.
 *
 * Include postgres.h first.
 */
#ifndef SMART_AM_ACCEPTANCE_H
#define SMART_AM_ACCEPTANCE_H

#include "am/am.h"
#include "compute/space.h"

/*
 * Why the tree that a metapage names is not the content of its index: a
 * sentence without its full stop, NULL if it is the content.  fits: are its entries made as the
 * index's codec makes them?  The server must have a region.
 */
extern const char *smart_acceptance_loss(Relation index, const struct smart_meta *meta, bool fits);

/* Somebody has met a lost index: it is put down for a rebuild, if there is to be one. */
extern void smart_acceptance_notice(Relation index);

/* Raises the error that an index is lost, which is a notice, too. */
extern void smart_acceptance_report(Relation index, const char *loss) __attribute__((noreturn));

/*
 * The tree of an index has been given up or replaced: all backends look again
 * before their next use of it, and plan anew what they have planned for its table.
 */
extern void smart_acceptance_announce(Relation index);

/* All that is planned in a database is planned anew, and all indexes are looked at again. */
extern void smart_acceptance_announce_database(Oid database);

/* The trees of this space can be used from now on: the same for all databases that they belong to.  Needs no database. */
extern void smart_acceptance_announce_all(struct smart_space *space);

/*
 * Trees of this space were lost with a memory node: the same for all indexes of
 * the databases that they belong to, since from here nobody knows which these are;
 * and they are looked through for what is to be rebuilt.  Needs no database.
 */
extern void smart_acceptance_announce_lost(struct smart_space *space);

#endif /* SMART_AM_ACCEPTANCE_H */
