/*
 * gather.h
 *	  WRITEs of a bulk load that wait for one another.
 */
#ifndef SMART_TREE_GATHER_H
#define SMART_TREE_GATHER_H

#include "tree/block/handle.h"

/* Released with env->release; NULL: no memory. */
extern struct smart_gather *smart_gather_open(struct smart_env *env);
/* Copies the bytes and posts what waits when there is no room for more.  The status of the first batch that failed. */
extern smart_status smart_gather_write(struct smart_tree *tree, struct smart_gather *gather, fabric_address remote,
									   const void *bytes, size_t length);
/* Posts what waits; SMART_OK: every WRITE so far is complete. */
extern smart_status smart_gather_flush(struct smart_tree *tree, struct smart_gather *gather);
/* For a bulk load, which holds nothing that others wait for: is what came to status worth another attempt? */
extern bool smart_await(struct smart_tree *tree, smart_status status, uint64_t *since_ns);

#endif /* SMART_TREE_GATHER_H */
