/*
 * adopt.h
 *	  Which region a node starts with: the one that is there, a snapshot, or an
 *	  empty one.
 */
#ifndef MEMNODE_ADOPT_H
#define MEMNODE_ADOPT_H

#include "memory.h"
#include "node.h"

/*
 * Opens a node on memory.  With a snapshot's path (or ""), that file does not exist afterwards:
 * it was loaded, or the region that was there is newer.  False: problem[] says why.
 */
extern bool memnode_adopt(struct memnode *node, const struct memnode_memory *memory, const char *snapshot,
						  uint32_t transports, char problem[MEMNODE_PROBLEM_MAX]);

#endif /* MEMNODE_ADOPT_H */
