/*
 * pack.h
 *	  A node's words in fewer bits, as a cache that is short of room keeps them.
 *
 *	  packed words    header | identity | what follows | slots, one behind the other, of so many bits each
 *	  what follows    slots 9 | direct-mapped 1 | whole units 1 | bits of the low part 6 | of the memory node 4 |
 *	                  of what the slot leads to 4 | least offset 34 (lowest bits first)
 *	  slot            partial key 8 | what it leads to | memory node | low part
 *
 * Leaves of one node often lie near each other, have few lengths, and are on few memory nodes: so each of a slot's
 * fields gets as many bits as the node's slots need, and offsets count from the least one.  Of a direct-mapped node
 * the slots that are not in use are left out.  Whatever the words are, unpacking gives the same ones.
 */
#ifndef SMART_COMPUTE_CACHE_PACK_H
#define SMART_COMPUTE_CACHE_PACK_H

#include "tree/layout.h"

#define CACHE_PACKED_HEAD 3 /* words ahead of the slots */
#define CACHE_PACKED_MAX  (CACHE_PACKED_HEAD + 256)

/* Packs a node of so many slots into CACHE_PACKED_MAX words or less; how many it takes. */
extern unsigned int cache_pack(const uint64_t *words, unsigned int slots, uint64_t *packed);
/* The words of a node of so many slots.  One word behind what is packed has to be there, whatever it is. */
extern void cache_unpack(const uint64_t *packed, unsigned int slots, uint64_t *words);

#endif /* SMART_COMPUTE_CACHE_PACK_H */
