/*
 * due.h
 *	  When a journal's run is to be written anew.
 */
#ifndef SMART_AM_JOURNAL_DUE_H
#define SMART_AM_JOURNAL_DUE_H

#include "am/index/meta.h"

/*
 * As its metapage tells: what it holds is superfluous, or its chain too long (meta.h).  An index that answers from its pages has
 * the chain in memory (delta.h), and so it is due, too, if that takes more than a share of it, or than there is.  Or if scans have
 * passed by so many removed entries of its run (server/passed.h) that another run would have cost less.
 */
extern bool smart_compaction_is_due(Relation index, const struct smart_meta *meta);

/* Is memory so short that a compaction is not to sleep?  What is appended meanwhile is in the delta, too. */
extern bool smart_compaction_is_pressing(Relation index);

/* Would another run have cost less than passing by so many removed entries? */
extern bool smart_compaction_would_pay(const struct smart_meta *meta, uint64 passed);

#endif /* SMART_AM_JOURNAL_DUE_H */
