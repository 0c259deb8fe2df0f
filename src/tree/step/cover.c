/*
 * cover.c
 *	  Search of the wide node kinds, with AVX2 where the CPU has it, or with NEON, which every arm64 has.
 */
#include "tree/step/cover.h"

#if defined(__SANITIZE_THREAD__)
#define COVER_PLAIN_ONLY
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define COVER_PLAIN_ONLY
#endif
#endif

#if defined(__x86_64__) && !defined(COVER_PLAIN_ONLY)
#include <immintrin.h>

/*
 * Four slots at a time.  The hardware loads each aligned 8-byte element of a
 * vector whole, which is all that a slot needs.  There is no unsigned 64-bit
 * compare: both sides have their sign bit flipped.
 */
__attribute__((target("avx2"))) static smart_slot
cover_avx2(const uint64_t *slots, unsigned int count, uint64_t limit)
{
	const __m256i flip = _mm256_set1_epi64x((long long) (UINT64_C(1) << 63));
	const __m256i bound = _mm256_xor_si256(_mm256_set1_epi64x((long long) limit), flip);
	__m256i best = flip; /* 0, flipped */
	uint64_t lanes[4];
	uint64_t result = 0;
	smart_slot rest;
	unsigned int i = 0;

	for (; i + 4 <= count; i += 4)
	{
		__m256i slot = _mm256_xor_si256(_mm256_loadu_si256((const __m256i *) &slots[i]), flip);
		__m256i above = _mm256_cmpgt_epi64(slot, bound);
		__m256i candidate = _mm256_blendv_epi8(slot, flip, above);

		best = _mm256_blendv_epi8(best, candidate, _mm256_cmpgt_epi64(candidate, best));
	}
	_mm256_storeu_si256((__m256i *) lanes, _mm256_xor_si256(best, flip));
	for (int lane = 0; lane < 4; lane++)
		result = lanes[lane] > result ? lanes[lane] : result;
	smart_assert(result <= limit);
	/* Its fence orders the loads above, too. */
	rest = smart_cover_each(&slots[i], count - i, limit);
	return rest > result ? rest : result;
}

static smart_slot cover_choose(const uint64_t *slots, unsigned int count, uint64_t limit);

static smart_slot (*cover_wide)(const uint64_t *, unsigned int, uint64_t) = cover_choose;

/* The first call finds out what the CPU has; every thread finds the same. */
static smart_slot
cover_choose(const uint64_t *slots, unsigned int count, uint64_t limit)
{
	smart_slot (*chosen)(const uint64_t *, unsigned int, uint64_t);

	chosen = __builtin_cpu_supports("avx2") ? cover_avx2 : smart_cover_each;
	smart_assert(chosen != cover_choose && count > 14);
	__atomic_store_n(&cover_wide, chosen, __ATOMIC_RELAXED);
	return chosen(slots, count, limit);
}

smart_slot
smart_cover_wide(const uint64_t *slots, unsigned int count, uint64_t limit)
{
	return __atomic_load_n(&cover_wide, __ATOMIC_RELAXED)(slots, count, limit);
}

#elif defined(__aarch64__) && !defined(COVER_PLAIN_ONLY)
#include <arm_neon.h>

/* The greater of each pair, of the slots that are not above the bound. */
static inline uint64x2_t
cover_pair(uint64x2_t best, uint64x2_t slot, uint64x2_t bound)
{
	uint64x2_t candidate = vandq_u64(slot, vcleq_u64(slot, bound));

	return vbslq_u64(vcgtq_u64(candidate, best), candidate, best);
}

/*
 * Four slots at a time, in two pairs that do not wait for each other.  The hardware loads each aligned 8-byte element
 * of a vector whole, which is all that a slot needs.
 */
smart_slot
smart_cover_wide(const uint64_t *slots, unsigned int count, uint64_t limit)
{
	const uint64x2_t bound = vdupq_n_u64(limit);
	uint64x2_t best = vdupq_n_u64(0);
	uint64x2_t other = best;
	uint64_t result;
	smart_slot rest;
	unsigned int i = 0;

	smart_assert(count > 14 && (uintptr_t) slots % sizeof(*slots) == 0);
	for (; i + 4 <= count; i += 4)
	{
		best = cover_pair(best, vld1q_u64(&slots[i]), bound);
		other = cover_pair(other, vld1q_u64(&slots[i + 2]), bound);
	}
	best = cover_pair(best, other, bound);
	result = vgetq_lane_u64(best, 0) > vgetq_lane_u64(best, 1) ? vgetq_lane_u64(best, 0) : vgetq_lane_u64(best, 1);
	smart_assert(result <= limit);
	/* Its fence orders the loads above, too. */
	rest = smart_cover_each(&slots[i], count - i, limit);
	return rest > result ? rest : result;
}

#else

smart_slot
smart_cover_wide(const uint64_t *slots, unsigned int count, uint64_t limit)
{
	return smart_cover_each(slots, count, limit);
}
#endif
