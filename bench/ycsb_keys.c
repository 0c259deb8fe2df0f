/*
 * ycsb_keys.c
 *	  Keys and payloads of records.
 */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "ycsb_keys.h"
#include "ycsb_random.h"

static const char *const first_names[] = {"anna", "ben", "carla", "david", "elena", "farid", "grace", "hugo",
										  "ines", "jan", "katja", "liam",  "maria", "noah",  "olga",  "paul"};
static const char *const domains[] = {"mail.com", "post.org", "web.net", "uni.edu"};

/* Another number of 32 bits for every number: odd factors and xor-shifts can be undone. */
static uint32_t
mix32(uint32_t word)
{
	word = (word ^ (word >> 16)) * UINT32_C(0x7feb352d);
	word = (word ^ (word >> 15)) * UINT32_C(0x846ca68b);
	return word ^ (word >> 16);
}

size_t
ycsb_key(bool string, uint64_t record, uint8_t entry[YCSB_ENTRY_MAX])
{
	uint64_t mixed = ycsb_mix(record + 1);
	int length;

	if (!string)
	{
		for (int i = 0; i < YCSB_INTEGER_BYTES; i++)
			entry[i] = (uint8_t) (mixed >> (8 * (YCSB_INTEGER_BYTES - 1 - i)));
		return YCSB_INTEGER_BYTES;
	}
	smart_assert(record < YCSB_STRINGS_MAX);
	/* The number alone tells records apart. */
	length = snprintf((char *) entry, YCSB_ENTRY_MAX, "%s%u@%s", first_names[mixed % 16], mix32((uint32_t) record),
					  domains[mixed / 16 % 4]);
	return (size_t) length + 1;
}

size_t
ycsb_point(void *argument, const uint8_t *bytes, size_t length)
{
	return argument == NULL ? YCSB_INTEGER_BYTES : strnlen((const char *) bytes, length - 1) + 1;
}

size_t
ycsb_payload(uint8_t *entry, size_t key_length, uint64_t payload)
{
	smart_assert(key_length + YCSB_PAYLOAD <= YCSB_ENTRY_MAX);
	memcpy(entry + key_length, &payload, YCSB_PAYLOAD);
	return key_length + YCSB_PAYLOAD;
}
