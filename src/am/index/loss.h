/*
 * loss.h
 *	  Why the tree that a metapage names is not the content of its index, or cannot be had.
 */
#ifndef SMART_AM_LOSS_H
#define SMART_AM_LOSS_H

enum smart_loss
{
	SMART_LOSS_NONE,           /* it is the content */
	SMART_LOSS_STALE,          /* its metapage says so */
	SMART_LOSS_COPIED,         /* with the database, but memory is not */
	SMART_LOSS_ELSEWHERE,      /* it is of another region */
	SMART_LOSS_NODE_LOST,      /* with a memory node, all that it held */
	SMART_LOSS_NOT_THERE,      /* it is in no directory */
	SMART_LOSS_GONE,           /* the same, since a moment ago */
	SMART_LOSS_GIVEN_UP,       /* nobody uses it any more */
	SMART_LOSS_LEFT_BEHIND,    /* it lacks what was inserted while a memory node was away (src/README, J14) */
	SMART_LOSS_REMOVAL,        /* a removal of entries was interrupted */
	SMART_LOSS_OTHER_ENTRIES,  /* the codec of now makes others */
	SMART_LOSS_OUT_OF_REACH,   /* a memory node is away, and may come back */
	SMART_LOSS_NO_TREE,        /* nor is it to have one */
	SMART_LOSS_REBUILT,        /* it is another one than when a statement began */
	SMART_LOSS_NOT_REPLICATED, /* in recovery: there is no journal */
	SMART_LOSS_JOURNAL_STALE,  /* in recovery: or it is not whole */
	SMART_LOSS_NOT_LOADED      /* in recovery: or it has not been loaded */
};

/* A sentence with its full stop; NULL for NONE. */
extern const char *smart_loss_text(enum smart_loss loss);

#endif /* SMART_AM_LOSS_H */
