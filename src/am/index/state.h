/*
 * state.h
 *	  What is the tree of an index now?
 */
#ifndef SMART_AM_STATE_H
#define SMART_AM_STATE_H

#include "utils/rel.h"

#include "am/codec/encode.h"
#include "am/index/loss.h"
#include "am/index/meta.h"

/* The codec of an index, as the relcache keeps it: good until the next look at a catalog. */
extern const struct smart_codec *smart_relation_codec(Relation index);

/* Why the tree that the metapage names is not the content of the index.  Raises an error if the metapage cannot be read. */
extern enum smart_loss smart_relation_loss(Relation index);

/*
 * Why the tree cannot be had now, but may be later: a memory node is away, and smart.node_down_after is over; or NONE.  An index
 * with a journal counts as lost then; without one it is not planned with.
 */
extern enum smart_loss smart_relation_absence(Relation index);

/* Is the index lost, and could its tree be loaded from its journal? */
extern bool smart_relation_is_loadable(Relation index);

/*
 * Has it no tree that can be read now, since that is lost or a memory node does not answer, and may the pages of its journal answer?
 * could: or may they, should it come to that?
 */
extern bool smart_relation_can_answer(Relation index);
extern bool smart_relation_could_answer(Relation index);

/* Was its tree left behind (src/README, J14) a moment ago, so that no worker loads another one yet? */
extern bool smart_relation_is_about_to_return(Relation index);

/*
 * Are these pages to answer, and no worker loads the index?  As its storage parameter "resident" says: never, lost or not; or
 * auto, if it has given up its tree, or could not be loaded, and there is no room for one.
 */
extern bool smart_relation_is_to_answer(Relation index);

/*
 * Does the index write back (src/README, J15)?  It has no tree then but a follower on memory nodes, and so its pages are always to
 * answer.  is_carried: is it, with this metapage, large enough to have one?  wants_follower: it has none that can be had and
 * may stay, and there is room for one.
 */
extern bool smart_relation_writes_back(Relation index);
extern bool smart_relation_is_carried(Relation index, const struct smart_meta *meta);
extern bool smart_relation_wants_follower(Relation index);

/* May it give up its tree, so that they answer? */
extern bool smart_relation_may_answer(Relation index);

/* Does a scan ask memory nodes, for all that is known?  Not of an index that its pages answer for, and that no tree follows. */
extern bool smart_relation_reads_nodes(Relation index);

/*
 * The tree that the metapage names is not to be used any more, by any process; returns when the metapage says so, in
 * WAL too.  Nothing if the index has none.  False: another tree has been named there, which is to be used.
 */
extern bool smart_relation_mark_stale(Relation index);

/* ---- for the other files of an open index ---- */

/* What the relcache keeps for us (rd_amcache): one chunk in rd_indexcxt, the codec at the end. */
struct smart_amcache
{
	struct smart_meta meta;
	bool fits;                           /* the entries were made as codec makes them */
	bool whole;                          /* the tree was found to be the content of the index */
	bool standby;                        /* read in recovery: meta names the tree that this server has loaded */
	uint32 changes;                      /* when meta was read */
	uint64 also;                         /* the tree that the index moves to, once that takes adds, too; or 0 */
	uint64 codec[FLEXIBLE_ARRAY_MEMBER]; /* aligned as a struct smart_codec needs it */
};

static inline struct smart_codec *
smart_amcache_codec(struct smart_amcache *cache)
{
	return (struct smart_codec *) cache->codec;
}

/* What the relcache keeps of an index, up to date. */
extern struct smart_amcache *smart_state_amcache(Relation index);

/* As smart_relation_loss(); a whole tree stays so until something changes. */
extern enum smart_loss smart_state_loss(Relation index, struct smart_amcache *cache);

/* As smart_relation_could_answer(), smart_relation_is_about_to_return() and so on, where the server is available. */
extern bool smart_state_can_answer(Relation index, const struct smart_amcache *cache);
extern bool smart_state_is_about_to_return(const struct smart_amcache *cache);
extern bool smart_state_is_to_answer(Relation index, struct smart_amcache *cache);
extern bool smart_state_wants_follower(Relation index, const struct smart_amcache *cache);

/* Has it no tree that can be read now? */
extern bool smart_state_has_no_tree(Relation index, struct smart_amcache *cache);

#endif /* SMART_AM_STATE_H */
