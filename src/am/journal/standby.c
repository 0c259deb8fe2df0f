/*
 * standby.c
 *	  Opening an index to read it, on a standby as well.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "miscadmin.h"

#include "am/journal/adopt.h"
#include "am/journal/await.h"
#include "am/journal/follow.h"
#include "am/journal/standby.h"
#include "base/assert.h"

struct smart_relation *
smart_journal_open(Relation index)
{
	for (;;)
	{
		struct smart_relation *self;

		if (unlikely(smart_relation_loss(index) != NULL) && !smart_adopt(index) && RecoveryInProgress())
			smart_journal_await(index);
		self = smart_relation_open(index);
		/* What is empty was looked at just now. */
		if (likely(!self->standby) || self->tree == NULL)
			return self;
		if (likely(smart_follow_catch_up(index, self)))
			return self;
		/* What has been given up leaves with the current memory context. */
		CHECK_FOR_INTERRUPTS();
	}
}
