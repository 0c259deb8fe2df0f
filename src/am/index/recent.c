/*
 * recent.c
 *	  Pages that a session reads again and again, by the buffers in which it found them last.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "storage/bufmgr.h"
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
