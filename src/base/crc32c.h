/*
 * crc32c.h
 *	  The checksum of leaves: CRC-32C.
 *
 * Blocks go to Intel's ISA-L.  The few bytes of an append are worth the CPU's own
 * instruction at once: ISA-L's start-up for wide registers costs more than
 * the rest of the append.
 *
 * ISA-L (2.30) leaves the wide registers in use.  Code for narrow ones, which is all around us, is slowed down from then
 * on, until something clears them: ascending inserts took a third longer in PostgreSQL, most of it in heap's own part.
 */
#ifndef SMART_BASE_CRC32C_H
#define SMART_BASE_CRC32C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <isa-l/crc.h>

#include "base/assert.h"

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

#define SMART_CRC_SHORT 1024

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static inline uint32_t
smart_crc32c_short(uint32_t crc, const uint8_t *bytes, size_t length)
{
	uint64_t wide = crc;

	for (; length >= sizeof(uint64_t); length -= sizeof(uint64_t), bytes += sizeof(uint64_t))
	{
		uint64_t word;

		memcpy(&word, bytes, sizeof(word));
		wide = __builtin_ia32_crc32di(wide, word);
	}
	crc = (uint32_t) wide;
	while (length-- > 0)
		crc = __builtin_ia32_crc32qi(crc, *bytes++);
	return crc;
}

__attribute__((target("avx"))) static inline void
smart_leave_wide_registers(void)
{
	__builtin_ia32_vzeroupper();
}
#elif defined(__aarch64__)

/* Compilers name the feature, and its instructions, in different ways. */
#if defined(__clang__)
#define SMART_CRC_TARGET "crc"
#define SMART_CRC_WORD   __builtin_arm_crc32cd
#define SMART_CRC_BYTE   __builtin_arm_crc32cb
#else
#define SMART_CRC_TARGET "+crc"
#define SMART_CRC_WORD   __builtin_aarch64_crc32cx
#define SMART_CRC_BYTE   __builtin_aarch64_crc32cb
#endif
#define SMART_HWCAP_CRC32 (1ul << 7) /* Linux: of AT_HWCAP */

__attribute__((target(SMART_CRC_TARGET))) static inline uint32_t
smart_crc32c_short(uint32_t crc, const uint8_t *bytes, size_t length)
{
	for (; length >= sizeof(uint64_t); length -= sizeof(uint64_t), bytes += sizeof(uint64_t))
	{
		uint64_t word;

		memcpy(&word, bytes, sizeof(word));
		crc = SMART_CRC_WORD(crc, word);
	}
	while (length-- > 0)
		crc = SMART_CRC_BYTE(crc, *bytes++);
	return crc;
}
#endif

/* Has the CPU an instruction for it?  ARMv8.0 leaves it to the maker. */
static inline bool
smart_crc32c_has_short(void)
{
#if defined(__x86_64__)
	return __builtin_cpu_supports("sse4.2");
#elif defined(__ARM_FEATURE_CRC32)
	return true;
#elif defined(__aarch64__)
	return (getauxval(AT_HWCAP) & SMART_HWCAP_CRC32) != 0;
#else
	return false;
#endif
}

/*
 * Extends crc by length bytes.  No inversion at either end, so that
 * crc(crc(s, a), b) = crc(s, a ‖ b) and an append costs its own bytes only.
 */
static inline uint32_t
smart_crc32c(uint32_t crc, const void *bytes, size_t length)
{
#if defined(__x86_64__) || defined(__aarch64__)
	if (length < SMART_CRC_SHORT && smart_crc32c_has_short())
		return smart_crc32c_short(crc, bytes, length);
#endif
	smart_assert(length <= INT32_MAX);
	crc = crc32_iscsi((unsigned char *) (uintptr_t) bytes, (int) length, crc);
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx"))
		smart_leave_wide_registers();
#endif
	return crc;
}

#endif /* SMART_BASE_CRC32C_H */
