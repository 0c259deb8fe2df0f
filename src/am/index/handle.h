/*
 * handle.h
 *	  The trees that this backend has open.
 */
#ifndef SMART_AM_HANDLE_H
#define SMART_AM_HANDLE_H

#include "utils/relcache.h"

#include "am/codec/encode.h"
#include "am/index/meta.h"
#include "tree/tree.h"

/* An UPDATE uses two at a time: to find its row, and for the check of a unique index. */
#define SMART_IDLE_SCANS 2

struct smart_handle
{
	uint64 id; /* of the tree; the hash key */
	struct smart_tree *tree;
	struct smart_codec *codec;                       /* a copy, for the tree's equality prefixes */
	struct smart_scan *idle_scans[SMART_IDLE_SCANS]; /* kept for the next users */
	uint32 idle;                                     /* so many of them */
	uint32 references;
	uint32 changes; /* smart_changes() when the tree was known to be there */
	bool dropped;   /* close it with the last reference */
};

/*
 * The handle of the tree that a metapage names, with one more reference, or NULL if this server's region has no such
 * tree.  codec: the index's.  Raises an error if there is no memory.
 */
extern struct smart_handle *
smart_handle_pin(Relation index, const struct smart_codec *codec, const struct smart_meta *meta);

/* Ends a reference; the handle stays open for the next user, if it is not dropped. */
extern void smart_handle_unpin(struct smart_handle *handle);

/* Closes the handle on a tree that is about to go, at once or with its last reference. */
extern void smart_handle_drop(uint64 tree);

#endif /* SMART_AM_HANDLE_H */
