/*
 * handle.h
 *	  The trees that this backend has open.
 */
#ifndef SMART_AM_HANDLE_H
#define SMART_AM_HANDLE_H

#include "am/am.h"

struct smart_codec;

struct smart_handle
{
	uint64 id; /* of the tree; the hash key */
	struct smart_tree *tree;
	struct smart_codec *codec;    /* a copy, for the tree's points */
	struct smart_scan *idle_scan; /* kept for the next user, or NULL */
	uint32 pins;
	uint32 changes; /* smart_changes() when the tree was known to be there */
	bool dropped;   /* close it with the last pin */
};

/*
 * The handle of the tree that a metapage names, with a pin, or NULL if this
 * server's region has no such tree.  codec: the index's.
 */
extern struct smart_handle *
smart_handle_pin(Relation index, const struct smart_codec *codec, const struct smart_meta *meta);
extern void smart_handle_unpin(struct smart_handle *handle);

/* Closes the handle on a tree that is about to go, at once or with its last pin. */
extern void smart_handle_drop(uint64 tree);

#endif /* SMART_AM_HANDLE_H */
