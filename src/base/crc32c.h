/*
 * crc32c.h
 *	  The checksum of leaves: CRC-32C, computed by Intel's ISA-L.
 */
#ifndef SMART_BASE_CRC32C_H
#define SMART_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

#include <isa-l/crc.h>

/*
 * Extends crc by length bytes.  No inversion at either end, so that
 * crc(crc(s, a), b) = crc(s, a ‖ b) and an append costs its own bytes only.
 */
static inline uint32_t
smart_crc32c(uint32_t crc, const void *bytes, size_t length)
{
	return crc32_iscsi((unsigned char *) (uintptr_t) bytes, (int) length, crc);
}

#endif							/* SMART_BASE_CRC32C_H */
