/*
 * recent.c
 *	  Pages in shared buffers: those that a session reads again and again, and whether one is there.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "storage/lwlock.h"
#include "utils/rel.h"

#include "am/compat.h"
#include "am/index/recent.h"
#include "base/assert.h"

#define PLACES 32 /* a power of two; two pages that want the same one take turns */

Buffer
smart_read_recent(Relation index, BlockNumber block)
{
	static Buffer buffers[PLACES];
	Buffer *place = &buffers[(murmurhash32(smart_relation_file(index)) + block) % PLACES];

	smart_assert(!RelationUsesLocalBuffers(index));
	/* Whatever was remembered, the buffer tells whether it has the page. */
	if (BufferIsInvalid(*place) || !ReadRecentBuffer(smart_relation_locator(index), MAIN_FORKNUM, block, *place))
		*place = ReadBuffer(index, block);
	return *place;
}

bool
smart_page_is_buffered(Relation index, BlockNumber block)
{
	BufferTag tag;
	uint32 hash;
	LWLock *lock;
	bool there;

	smart_assert(!RelationUsesLocalBuffers(index));
	smart_make_buffer_tag(&tag, index, block);
	hash = BufTableHashCode(&tag);
	lock = BufMappingPartitionLock(hash);
	LWLockAcquire(lock, LW_SHARED);
	there = BufTableLookup(&tag, hash) >= 0;
	LWLockRelease(lock);
	return there;
}
