/*
 * answered.c
 *	  What is known about a point, as a batch of a scan.
 */
#include "postgres.h"

#include "am/answered.h"
#include "am/tuples.h"
#include "base/assert.h"

StaticAssertDecl(SMART_ANSWERED_SLACK >= SMART_SHORT_COPY, "short strings are copied with what follows them");

void
smart_answered_fill(struct smart_answered *answered, const uint8 *point, uint32 length,
					const struct smart_answer *answer, struct smart_batch *batch)
{
	uint32 count = 0;

	smart_assert(length + answer->length <= SMART_ANSWER_BYTES_MAX);
	memcpy(answered->point, point, length);
	memcpy(answered->tails, answer->tails, answer->length);
	for (uint32 i = 0; i < answer->length; i += 1 + answer->tails[i])
	{
		smart_assert(count < SMART_ANSWERED_ENTRIES && answer->tails[i] > 0);
		answered->items[count++] = (struct smart_item){.offset = (uint16_t) (i + 1), .length = answer->tails[i]};
	}
	*batch = (struct smart_batch){.count = count,
								  .prefix_length = length,
								  .prefix = answered->point,
								  .bytes = answered->tails,
								  .items = answered->items};
}
