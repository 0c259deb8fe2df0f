/*
 * standby.c
 *	  Opening an index to read it, on a standby as well.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "miscadmin.h"

#include "am/index/trees.h"
#include "am/journal/await.h"
#include "am/journal/follow.h"
#include "am/journal/promote.h"
#include "am/journal/standby.h"
#include "am/journal/view.h"

/* Recovery may end between any two of these lines.  So whether the index is lost is asked once in a round. */
struct smart_relation *
smart_journal_open(Relation index, bool wait)
{
	wait |= RecoveryInProgress();
	for (;;)
	{
		bool lost;
		struct smart_relation *opened = smart_relation_open_any(index, &lost);
		struct smart_relation *self = lost ? NULL : opened;

		/* A memory node does not answer. */
		if (self != NULL && unlikely(smart_tree_is_away(self->meta.tree)) && smart_relation_can_answer(index))
		{
			struct smart_relation *paged = smart_view_open(index, false);

			if (paged != NULL)
				return paged;
		}
		if (unlikely(lost) && !smart_promote(index))
		{
			if (wait && smart_relation_is_loadable(index))
			{
				/* Until it is loaded its pages answer. */
				if (smart_relation_can_answer(index) && smart_view_open_for_scan(opened, index))
					return opened;
				smart_journal_await(index);
			}
			else
				self = smart_relation_open(index);
		}
		/* What is empty was looked at just now. */
		if (likely(self != NULL) &&
			(likely(!self->standby) || self->tree == NULL || likely(smart_follow_catch_up(index, self))))
			return self;
		/* What has been given up leaves with the current memory context. */
		CHECK_FOR_INTERRUPTS();
	}
}
