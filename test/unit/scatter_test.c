/*
 * scatter_test.c
 *	  src/base/scatter.h: what the CPU does at once, beside the plain loop, and what both have to do.
 */
#include <stdint.h>

#include "base/scatter.h"
#include "support/check.h"

int
main(void)
{
	const uint8_t bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	const uint64_t word = UINT64_C(0xf8f7f6f5f4f3f2f1);
	uint32_t bad = 0;

	for (uint32_t mask = 0; mask < 256; mask++)
	{
		uint64_t each = smart_scatter_each(word, bytes, mask);

		bad += smart_scatter(word, bytes, mask) != each || smart_scatter_count(mask) != __builtin_popcount(mask);
	}
	CHECK(bad == 0);
	CHECK(smart_scatter_each(word, bytes, 0) == word);
	CHECK(smart_scatter_each(word, bytes, 0x81) == UINT64_C(0x02f7f6f5f4f3f201));
	CHECK(smart_scatter_each(word, bytes, 0xff) == UINT64_C(0x0807060504030201));
	return check_finish();
}
