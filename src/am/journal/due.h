/*
 * due.h
 *	  When a journal's run is to be written anew.
 */
#ifndef SMART_AM_JOURNAL_DUE_H
#define SMART_AM_JOURNAL_DUE_H

#include "am/index/meta.h"

/*
 * As its metapage tells: what it holds is superfluous, or its chain too long (meta.h).  An index that answers from its pages has
 * the chain in memory (delta.h), and so it is due, too, if that takes more than a share of it, or than there is.
 */
extern bool smart_compaction_is_due(Relation index, const struct smart_meta *meta);

#endif /* SMART_AM_JOURNAL_DUE_H */
