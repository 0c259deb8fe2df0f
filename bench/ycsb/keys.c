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

/* The same of 63 and of 28 bits. */
static uint64_t
mix_bits(uint64_t word, unsigned int bits)
{
	uint64_t mask = (UINT64_C(1) << bits) - 1;

	smart_assert(bits > 2 && bits < 64 && (word & ~mask) == 0);
	word = ((word ^ (word >> bits / 2)) * UINT64_C(0xbf58476d1ce4e5b9)) & mask;
	word = ((word ^ (word >> (bits / 2 - 1))) * UINT64_C(0x94d049bb133111eb)) & mask;
	return word ^ (word >> bits / 2);
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
	smart_assert(length > 0 && length < YCSB_ENTRY_MAX);
	return (size_t) length + 1;
}

/* By how often they come: the first half of the time, the second half of the rest, and so on. */
static const char *const swapped_domains[] = {"ab.me",  "gmx.de", "mail.ru", "aol.com",
											  "web.de", "qq.com", "ya.ru",   "me.com"};
static const char letters[] = "eainrostlmdhcukbgpywvfjxzq012";

#define EMAIL_BITS 28

/*
 * The domain, and a name that tells the record: each letter says how many zero bits of the scrambled number come
 * before the next one bit.
 */
static size_t
put_swapped(uint64_t record, const char *tag, uint8_t entry[YCSB_ENTRY_MAX])
{
	uint64_t number = mix_bits(record, EMAIL_BITS);
	int domain = __builtin_ctzll(ycsb_mix(record + 1) | 0x80);
	int length = snprintf((char *) entry, YCSB_ENTRY_MAX, "%s@", swapped_domains[domain]);

	smart_assert(record < YCSB_EMAILS_MAX);
	for (int left = EMAIL_BITS; left > 0;)
	{
		int zeros = number != 0 ? __builtin_ctzll(number) : left;

		smart_assert((size_t) zeros < sizeof(letters) - 1 && length < YCSB_ENTRY_MAX);
		entry[length++] = (uint8_t) letters[zeros];
		number >>= zeros + 1;
		left -= zeros + 1;
	}
	return (size_t) length + (size_t) snprintf((char *) entry + length, (size_t) (YCSB_ENTRY_MAX - length), "%s", tag) +
		   1;
}

size_t
ycsb_key(enum ycsb_keys type, uint64_t record, uint8_t entry[YCSB_ENTRY_MAX])
{
	smart_assert(type < YCSB_KEY_TYPES);
	switch (type)
	{
		case YCSB_INTEGER:
			return put_integer(ycsb_mix(record + 1), entry);
		case YCSB_RANDINT:
			return put_integer(mix_bits(record + 1, 63), entry);
		case YCSB_STRING:
			return put_address(record, "", entry);
		default:
			return put_swapped(record, "", entry);
	}
}

size_t
ycsb_key_beside(enum ycsb_keys type, uint64_t record, uint64_t number, uint8_t entry[YCSB_ENTRY_MAX])
{
	char tag[sizeof("+4294967295")];

	smart_assert(number < YCSB_STRINGS_MAX);
	if (ycsb_is_integer(type))
	{
		size_t length = ycsb_key(type, record, entry);

		smart_put_be32(entry + 4, mix32((uint32_t) number));
		return length;
	}
	snprintf(tag, sizeof(tag), "+%u", (uint32_t) number);
	return type == YCSB_STRING ? put_address(record, tag, entry) : put_swapped(record, tag, entry);
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
