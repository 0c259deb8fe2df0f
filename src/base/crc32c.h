/*
 * crc32c.h
 *	  The checksum of leaves: CRC-32C.
 *
 * Blocks go to Intel's ISA-L.  The few bytes of an append are worth the CPU's own
 * instruction at once: ISA-L's start-up for wide registers costs more than
 * the rest of the append.
 */
#ifndef SMART_BASE_CRC32C_H
#define SMART_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <isa-l/crc.h>

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
#endif

/*
 * Extends crc by length bytes.  No inversion at either end, so that
 * crc(crc(s, a), b) = crc(s, a ‖ b) and an append costs its own bytes only.
 */
static inline uint32_t
smart_crc32c(uint32_t crc, const void *bytes, size_t length)
{
#if defined(__x86_64__)
	if (length < SMART_CRC_SHORT && __builtin_cpu_supports("sse4.2"))
		return smart_crc32c_short(crc, bytes, length);
#endif
	return crc32_iscsi((unsigned char *) (uintptr_t) bytes, (int) length, crc);
}

#endif /* SMART_BASE_CRC32C_H */
