/*
 * keys.c
 *	  Keys and payloads of records.
 */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "keys.h"
#include "random.h"

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

static size_t
put_integer(uint64_t number, uint8_t entry[YCSB_ENTRY_MAX])
{
	return (size_t) (smart_put_be64(entry, number) - entry);
}

/* A record's address; tag: what stands ahead of the domain. */
static size_t
put_address(uint64_t record, const char *tag, uint8_t entry[YCSB_ENTRY_MAX])
{
	uint64_t mixed = ycsb_mix(record + 1);
	int length;

	smart_assert(record < YCSB_STRINGS_MAX);
	/* The number alone tells records apart. */
	length = snprintf((char *) entry, YCSB_ENTRY_MAX, "%s%u%s@%s", first_names[mixed % 16], mix32((uint32_t) record),
					  tag, domains[mixed / 16 % 4]);
	return (size_t) length + 1;
}

size_t
ycsb_key(bool string, uint64_t record, uint8_t entry[YCSB_ENTRY_MAX])
{
	return string ? put_address(record, "", entry) : put_integer(ycsb_mix(record + 1), entry);
}

size_t
ycsb_key_beside(bool string, uint64_t record, uint64_t number, uint8_t entry[YCSB_ENTRY_MAX])
{
	char tag[sizeof("+4294967295")];

	smart_assert(number < YCSB_STRINGS_MAX);
	if (!string)
		return put_integer((ycsb_mix(record + 1) & UINT64_C(0xffffffff00000000)) | mix32((uint32_t) number), entry);
	snprintf(tag, sizeof(tag), "+%u", (uint32_t) number);
	return put_address(record, tag, entry);
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
