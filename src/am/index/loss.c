/*
 * loss.c
 *	  Why the tree that a metapage names is not the content of its index, or cannot be had.
 */
#include "postgres.h"

#include "am/index/loss.h"
#include "base/assert.h"

const char *
smart_loss_text(enum smart_loss loss)
{
	static const char *const texts[] = {
		[SMART_LOSS_NOT_REPLICATED] = "It is not logged, and so not replicated to standby servers.",
		[SMART_LOSS_JOURNAL_STALE] = "Its journal is not whole, and has to be written anew on the primary server.",
		[SMART_LOSS_OTHER_ENTRIES] = "Its entries were made for other operator classes, collations or row types.",
		[SMART_LOSS_NOT_LOADED] = "It has not been loaded on this standby server yet.",
		[SMART_LOSS_OUT_OF_REACH] = "A memory node that holds a part of it is away.",
		[SMART_LOSS_NO_TREE] = "It has no tree.",
		[SMART_LOSS_STALE] = "Rows were inserted or removed while its content could not be reached.",
		[SMART_LOSS_COPIED] = "The index was copied from another database, and its content cannot be.",
		[SMART_LOSS_ELSEWHERE] =
			"The memory node was made anew after the index had been built, for example because the server had not "
			"been shut down cleanly, or its settings have the indexes elsewhere now.",
		[SMART_LOSS_NODE_LOST] = "A memory node that held a part of it has lost its memory, or was given up.",
		[SMART_LOSS_NOT_THERE] = "The memory node does not have it.",
		[SMART_LOSS_GIVEN_UP] = "It was given up.",
		[SMART_LOSS_LEFT_BEHIND] = "Rows were inserted while a memory node that holds a part of it was away.",
		[SMART_LOSS_REMOVAL] = "The removal of entries was interrupted.",
		[SMART_LOSS_GONE] = "The memory node does not have it any more.",
		[SMART_LOSS_REBUILT] = "The index has been rebuilt since the statement began.",
	};

	smart_assert((Size) loss < lengthof(texts) && (texts[loss] == NULL) == (loss == SMART_LOSS_NONE));
	return texts[loss];
}
