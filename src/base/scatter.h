/*
 * scatter.h
 *	  Bytes that take the places of some bytes of a word.
 *
 * Which ones is a matter of chance, so a loop over them is a branch that the CPU guesses wrong.  SSE4.1 and NEON do it at
 * once, by a table of which byte comes to which place.
 */
#ifndef SMART_BASE_SCATTER_H
#define SMART_BASE_SCATTER_H

#include <stdint.h>
#include <string.h>

#include "base/assert.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define SMART_SCATTER_KEPT 0x80 /* no byte comes to this place */

/* Where the mask has bit i: how many bits it has below, so which byte comes to place i. */
#define SMART_SCATTER_FROM(mask, i) \
	((mask) >> (i) &1 ? __builtin_popcount((mask) & ((1u << (i)) - 1)) : SMART_SCATTER_KEPT)
#define SMART_SCATTER_ROW(mask)                                                                    \
	{                                                                                              \
		SMART_SCATTER_FROM(mask, 0), SMART_SCATTER_FROM(mask, 1), SMART_SCATTER_FROM(mask, 2),     \
			SMART_SCATTER_FROM(mask, 3), SMART_SCATTER_FROM(mask, 4), SMART_SCATTER_FROM(mask, 5), \
			SMART_SCATTER_FROM(mask, 6), SMART_SCATTER_FROM(mask, 7)                               \
	}
#define SMART_SCATTER_4(row, mask) row(mask), row((mask) + 1u), row((mask) + 2u), row((mask) + 3u)
#define SMART_SCATTER_16(row, mask)                                                                   \
	SMART_SCATTER_4(row, mask), SMART_SCATTER_4(row, (mask) + 4u), SMART_SCATTER_4(row, (mask) + 8u), \
		SMART_SCATTER_4(row, (mask) + 12u)
#define SMART_SCATTER_64(row, mask)                                                                        \
	SMART_SCATTER_16(row, mask), SMART_SCATTER_16(row, (mask) + 16u), SMART_SCATTER_16(row, (mask) + 32u), \
		SMART_SCATTER_16(row, (mask) + 48u)
#define SMART_SCATTER_256(row) \
	SMART_SCATTER_64(row, 0u), SMART_SCATTER_64(row, 64u), SMART_SCATTER_64(row, 128u), SMART_SCATTER_64(row, 192u)

static const uint8_t smart_scatter_from[256][8] = {SMART_SCATTER_256(SMART_SCATTER_ROW)};
static const uint8_t smart_scatter_counts[256] = {SMART_SCATTER_256(__builtin_popcount)};

/* How many bytes does a mask take? */
static inline int
smart_scatter_count(uint32_t mask)
{
	smart_assert(mask <= 0xff);
	return smart_scatter_counts[mask];
}

/* As smart_scatter(), and no byte is read that the mask does not take. */
static inline uint64_t
smart_scatter_each(uint64_t word, const uint8_t *bytes, uint32_t mask)
{
	smart_assert(mask <= 0xff);
	for (; mask != 0; mask &= mask - 1)
	{
		int shift = 8 * __builtin_ctz(mask);

		word = (word & ~(UINT64_C(0xff) << shift)) | (uint64_t) *bytes++ << shift;
	}
	return word;
}

#if defined(__x86_64__)
__attribute__((target("sse4.1"))) static inline uint64_t
smart_scatter_sse(uint64_t word, const uint8_t *bytes, uint32_t mask)
{
	__m128i from = _mm_loadl_epi64((const __m128i *) smart_scatter_from[mask]);
	__m128i moved = _mm_shuffle_epi8(_mm_loadl_epi64((const __m128i *) bytes), from);

	return (uint64_t) _mm_cvtsi128_si64(_mm_blendv_epi8(moved, _mm_cvtsi64_si128((long long) word), from));
}
#endif

/*
 * The word with other bytes, the next ones in turn, at those places whose bits are in the mask of 8 bits; place 0 has the
 * lowest address.  Eight bytes can be read, however many it takes.
 */
static inline uint64_t
smart_scatter(uint64_t word, const uint8_t *bytes, uint32_t mask)
{
	smart_assert(mask <= 0xff);
#if defined(__x86_64__)
	if (__builtin_cpu_supports("sse4.1"))
		return smart_scatter_sse(word, bytes, mask);
#elif defined(__aarch64__)
	return vget_lane_u64(vreinterpret_u64_u8(
							 vtbx1_u8(vcreate_u8(word), vld1_u8(bytes), vld1_u8(smart_scatter_from[mask]))),
						 0);
#endif
	return smart_scatter_each(word, bytes, mask);
}

#endif /* SMART_BASE_SCATTER_H */
