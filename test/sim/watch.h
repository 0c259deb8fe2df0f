/*
 * watch.h
 *	  How often each kind of change came about over a run.
 */
#ifndef SIM_WATCH_H
#define SIM_WATCH_H

#include <stdint.h>

enum watch_kind
{
	WATCH_APPEND,
	WATCH_NARROW,
	WATCH_SEAL,
	WATCH_ACTIVATE,
	WATCH_INSTALL,
	WATCH_FILL,
	WATCH_REWRITE,
	WATCH_LEAF_DROP,
	WATCH_DOWN,
	WATCH_NODE_REPLACE,
	WATCH_HEADER_SPLIT,
	WATCH_NODE_DROP,
	WATCH_COMPRESS,
	WATCH_FREEZE,
	WATCH_NODE_DEATH,
	WATCH_LOCK,
	WATCH_LOCK_MET,
	WATCH_LEAF_BY_OTHER, /* sealed by one client, replaced by another */
	WATCH_NODE_BY_OTHER,
	WATCH_LOST,
	WATCH_DELEGATED,
	WATCH_COMBINED,
	WATCH_GIVEN_BACK,
	WATCH_RESULT,         /* an operation that asked no memory node */
	WATCH_RESULT_REFUSED, /* not kept, since a writer had come */
	WATCH_HINT,           /* that was found */
	WATCH_DUPLICATE,      /* an insert appended a key that was there */
	WATCH_RECOVERED,      /* a block that the dead had left */
	WATCH_STANDBY,        /* a removal uses a leaf's block again */
	WATCH_TOGETHER,       /* an insert by a call for several */
	WATCH_INSTALL_NODE,   /* an install of a node for one byte */
	WATCH_UPDATE,
	WATCH_MARK,
	WATCH_VALUE_FREEZE,
	WATCH_OVERWRITE,
	WATCH_GIFT,    /* a range given to another compute node */
	WATCH_LOGGED,  /* a change that a log has, ahead of the tree */
	WATCH_APPLIED, /* a key whose changes have gone from there to the tree */
	WATCH_LOG_FULL,
	WATCH_SETTLED,    /* a log that the next owner read */
	WATCH_COPY,       /* of a leaf, that was found */
	WATCH_COPY_AHEAD, /* by a scan */
	WATCH_PROMISE,
	WATCH_PROMISE_FINAL,
	WATCH_PROMISE_BACK,
	WATCH_PART, /* of a node, that was READ */
	WATCH_COUNT
};

extern uint64_t watch_counts[WATCH_COUNT];
extern const char *const watch_names[WATCH_COUNT];

#endif /* SIM_WATCH_H */
