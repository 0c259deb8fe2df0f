/*
 * dead_tids.h
 *	  The rows whose entries VACUUM removes, as bits.
 *
 * VACUUM hands an access method a function that it has to ask about each entry, and that searches a list of all dead rows
 * each time.  For an index whose entries lie in memory that search is most of the work.  So the list, where it is known,
 * is turned into bits by table block once for each index.
 */
#ifndef SMART_AM_DEAD_TIDS_H
#define SMART_AM_DEAD_TIDS_H

#include "access/genam.h"

#define SMART_DEAD_WORD 64

struct smart_dead_tids
{
	BlockNumber first; /* table block; what follows is about so many from there on */
	BlockNumber blocks;
	uint32 *begin; /* of each block, and behind the last one: number of its first word */
	uint64 *words; /* bit n of a block stands for offset number n */
	uint32 blocks_room;
	uint32 words_room;
	Size limit; /* bytes */
};

/*
 * What callback says of rows, as bits; palloc'ed, to be freed by smart_dead_tids_free().  NULL: only callback knows, or
 * the bits would take more than maintenance_work_mem.  info: of the index that is to be bulk deleted.
 */
extern struct smart_dead_tids *
smart_dead_tids_of(IndexVacuumInfo *info, IndexBulkDeleteCallback callback, void *callback_state);
extern void smart_dead_tids_free(struct smart_dead_tids *dead);

/*
 * To be asked first by an ambulkdelete: is this call no bulk delete, but smart_dead_tids_of()'s, which wants to know what
 * function VACUUM passes?
 */
extern bool smart_dead_tids_learn(IndexBulkDeleteCallback callback);

static inline bool
smart_dead_tids_have(const struct smart_dead_tids *dead, BlockNumber block, OffsetNumber offset)
{
	BlockNumber i = block - dead->first; /* wraps below the first one */
	uint32 word = offset / SMART_DEAD_WORD;

	return i < dead->blocks && word < dead->begin[i + 1] - dead->begin[i] &&
		   (dead->words[dead->begin[i] + word] >> (offset % SMART_DEAD_WORD) & 1) != 0;
}

#endif /* SMART_AM_DEAD_TIDS_H */
