/*
 * trees.h
 *	  Making and freeing the trees of indexes.
 */
#ifndef SMART_AM_TREES_H
#define SMART_AM_TREES_H

#include "utils/relcache.h"

#include "am/index/meta.h"
#include "base/status.h"
#include "compute/allocate/space.h"

/*
 * What is noted with a tree (smart_space_put_note).
 *
 * A removal from a tree with a journal is put down first: the server's incarnation while it is under way.  A tree in which
 * another server's is found, or that was given up, is not used again: it may have entries that the journal has not.  One that
 * was left behind (src/README, J14) has a word of this start of the server there, and lacks what its journal's chain has
 * behind a place.
 *
 * The others are those of followers, which a standby makes, or a primary for indexes that write back (src/README, J15), and of
 * deltas (src/am/journal/delta.h): no metapage names them, and they are found by their journals.  Place and losses are also
 * those of a tree that was left behind.
 */
enum smart_tree_note
{
	SMART_NOTE_REMOVAL, /* 0; the incarnation of the server that removes entries; SMART_GIVEN_UP; or left behind */
	SMART_NOTE_JOURNAL, /* which one it is loaded from; 0: it is being made; or SMART_PROMOTED */
	SMART_NOTE_SERIAL,  /* up to which place the chain has been applied (struct smart_chain_place) */
	SMART_NOTE_PLACE,   /* the same: block << 32 | offset; 0: it has not been loaded yet */
	SMART_NOTE_LOSSES,  /* of the journal, when it was loaded; of a delta: the id of its run, 0 if there is none */
	SMART_NOTE_APPLIER  /* who applies the chain to it (src/am/journal/follow.c), or 0 */
};

/*
 * Of any tree but followers that no metapage names: SMART_CHOSEN if smart_rebalance() wants it moved.
 */
#define SMART_NOTE_CHOSEN SMART_NOTE_APPLIER
#define SMART_CHOSEN      PG_UINT64_MAX /* no process */

#define SMART_GIVEN_UP PG_UINT64_MAX
#define SMART_PROMOTED 1 /* the server is no standby any more: a metapage names it, as any other */

/* An owner's flags. */
#define SMART_TREE_IS_FOLLOWER 1u
#define SMART_TREE_IS_DELTA    2u
#define SMART_TREE_IS_LEAN     4u /* of a delta: it goes with its run, and with no follower (src/am/journal/delta.h) */

/* Does the tree follow a chain, and no metapage names it? */
static inline bool
smart_tree_is_followed(const struct smart_tree_info *info)
{
	return (info->owner.flags & SMART_TREE_IS_DELTA) != 0 ||
		   (info->owner.flags == SMART_TREE_IS_FOLLOWER && info->note[SMART_NOTE_JOURNAL] != SMART_PROMOTED);
}

static inline bool
smart_tree_is_chosen(const struct smart_tree_info *info)
{
	return info->note[SMART_NOTE_CHOSEN] == SMART_CHOSEN && !smart_tree_is_followed(info);
}

/*
 * Makes an empty tree for an index in the directory of the region, owned by its database, relfilenode and
 * transaction; *tree is its id.  The status is that of the attempt.  Until a metapage names it, the caller has to
 * free it after an error.
 */
extern smart_status smart_tree_make(Relation index, uint64 *tree);

/* The same for one that follows the chain of the journal that the index's metapage names. */
extern smart_status smart_tree_make_follower(Relation index, const struct smart_meta *meta, uint64 *tree);
extern smart_status smart_tree_make_delta(Relation index, const struct smart_meta *meta, bool lean, uint64 *tree);

/*
 * What the owner of one with these flags has as its incarnation, if somebody looks for it still: it is of this database, and not of
 * another one that had its OID (server/database_birth.h); a delta is of this start of the server, too.
 */
extern uint64 smart_follower_incarnation(uint32 flags);

/*
 * The follower that this server has loaded from the journal of a metapage, or the delta over its run; and that may be used.
 * False: none, of followers also while startup recovery is pending.
 */
extern bool smart_tree_of_journal(Relation index, const struct smart_meta *meta, struct smart_tree_info *info);
extern bool smart_tree_of_delta(Relation index, const struct smart_meta *meta, struct smart_tree_info *info);

/*
 * Called where a tree is about to be made, inside a transaction, with nothing of a tree in hand: may free what is not
 * needed any more.  temporary: the tree is a temporary table's.  Set by orphans.c; NULL: nothing is freed.
 */
extern void (*smart_make_room_hook)(bool temporary);
extern void smart_am_tree_make_room(bool temporary);

/*
 * The tree is not used any more, by any process, whatever its metapage says, and another one has to be made.  For an index
 * with a journal.
 */
extern void smart_tree_give_up(Relation index, uint64 tree);

/*
 * Is there room for a tree of so many bytes?  Deltas have a share of an embedded region that trees leave to them
 * (SMART_DELTA_SHARE).  On memory nodes also if that is not known, as one of them is away.
 */
extern bool smart_tree_has_room(uint64 bytes);

/* Was it given up, or is it about to be left behind, or to catch up, and was given up if who is at that has failed? */
extern bool smart_tree_is_given_up(uint64 tree);

/*
 * Leaves a tree behind at this place of its journal's chain.  False: a removal is under way, or it was left behind or given
 * up before.
 */
extern bool smart_tree_leave_behind(uint64 tree, const struct smart_chain_place *place, uint32 losses);

/* What stands in its note then. */
extern uint64 smart_tree_behind_word(void);

/* Was it left behind, and where? */
extern bool smart_tree_is_behind(uint64 tree, struct smart_chain_place *place, uint32 *losses);

/*
 * It is going to catch up: until that has ended it is as one that was given up.  False: it was not left behind, or was given up
 * since.
 */
extern bool smart_tree_begin_catching_up(uint64 tree);
extern bool smart_tree_end_catching_up(uint64 tree);
extern bool smart_tree_is_delta(uint64 tree);
extern bool smart_tree_is_lean(uint64 tree);

/* Has a tree a part on a memory node that statements do without (peers.h)? */
extern bool smart_tree_is_missed(uint64 tree);

/* The same, or on one that does not answer, which may be over in a moment. */
extern bool smart_tree_is_away(uint64 tree);

/*
 * Has a tree to move to other memory nodes: has it a part on one that is closed, as that shall be taken away, or is it chosen
 * (SMART_NOTE_CHOSEN)?
 */
extern bool smart_tree_has_to_move(const struct smart_tree_info *info);

/* Frees a tree that no metapage names and no backend uses; closes this backend's handle. */
extern void smart_am_tree_drop(uint64 tree);

/*
 * Frees the trees but keep (0: none is kept) that this transaction, or this backend for a temporary table, made for
 * the file that the index has now.
 */
extern void smart_am_tree_drop_older(Relation index, uint64 keep);

#endif /* SMART_AM_TREES_H */
