/*
 * keys.h
 *	  The entries of a tree for YCSB: a record's key, and a payload.
 *
 *	  integer   8 bytes: the record's number, scrambled
 *	  string    an e-mail address and a zero byte, some 20 to 30 bytes
 *	  randint   8 bytes, as DART 5.1 draws integers: uniform from 0 to 2^63 - 1
 *	  email     an e-mail address with the domain first, as SMART 5.1 and DART 5.1 have them, and a zero byte, some 20
 *	            bytes.  The papers' addresses are not in this repository; these have letters of two bits of information
 *	            each, many of them rare, which make a radix tree about as high as DART 2.2 says
 *
 * followed by a payload of six bytes, as long as a PostgreSQL index has a row's
 * address there; with --values it is a number of eight.  Different records have different keys.
 */
#ifndef YCSB_KEYS_H
#define YCSB_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define YCSB_PAYLOAD       6
#define YCSB_INTEGER_BYTES 8
#define YCSB_KEY_MAX       48 /* bytes of a record's key, or of one beside it */
#define YCSB_ENTRY_MAX     64
#define YCSB_STRINGS_MAX   (UINT64_C(1) << 32) /* records that have strings of their own */
#define YCSB_EMAILS_MAX    (UINT64_C(1) << 28) /* records that have e-mail addresses of the last kind */

enum ycsb_keys
{
	YCSB_INTEGER,
	YCSB_STRING,
	YCSB_RANDINT,
	YCSB_EMAIL,
	YCSB_KEY_TYPES
};

static inline bool
ycsb_is_integer(enum ycsb_keys type)
{
	return type == YCSB_INTEGER || type == YCSB_RANDINT;
}

/* Writes the key of a record; returns its length. */
extern size_t ycsb_key(enum ycsb_keys type, uint64_t record, uint8_t entry[YCSB_ENTRY_MAX]);

/*
 * Writes a key beside that of a record, another one for every number below
 * YCSB_STRINGS_MAX; returns its length.  Integers: the record's first four bytes and
 * the number, scrambled, which no record has but by a chance of 2^-32 or less.
 * Strings: the record's address with +number ahead of the domain, or at the end where the domain stands first.
 */
extern size_t ycsb_key_beside(enum ycsb_keys type, uint64_t record, uint64_t number, uint8_t entry[YCSB_ENTRY_MAX]);

/* The point of an entry or a key (smart_point_fn, argument NULL: integers, else strings): the key. */
extern size_t ycsb_point(void *argument, const uint8_t *bytes, size_t length);

/* Appends a payload to a key; returns the entry's length. */
extern size_t ycsb_payload(uint8_t *entry, size_t key_length, uint64_t payload);

#endif /* YCSB_KEYS_H */
