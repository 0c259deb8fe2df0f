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

struct smart_handle
{
	uint64 id; /* of the tree; the hash key */
	struct smart_tree *tree;
	struct smart_codec *codec;    /* a copy, for the tree's equality prefixes */
	struct smart_scan *idle_scan; /* kept for the next user, or NULL */
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
