/*
 * keys.h
 *	  The entries of a tree for YCSB: a record's key, and a payload.
 *
 *	  integer   8 bytes: the record's number, scrambled
 *	  string    an e-mail address and a zero byte, some 20 to 30 bytes
 *
 * followed by a payload of six bytes, as long as a PostgreSQL index has a row's
 * address there.  Different records have different keys.
 */
#ifndef YCSB_KEYS_H
#define YCSB_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define YCSB_PAYLOAD       6
#define YCSB_INTEGER_BYTES 8
#define YCSB_ENTRY_MAX     64
#define YCSB_STRINGS_MAX   (UINT64_C(1) << 32) /* records that have strings of their own */

/* Writes the key of a record; returns its length. */
extern size_t ycsb_key(bool string, uint64_t record, uint8_t entry[YCSB_ENTRY_MAX]);

/*
 * Writes a key beside that of a record, another one for every number below
 * YCSB_STRINGS_MAX; returns its length.  Integers: the record's first four bytes and
 * the number, scrambled, which no record has but by a chance of 2^-32 or less.
 * Strings: the record's address with +number ahead of the domain.
 */
extern size_t ycsb_key_beside(bool string, uint64_t record, uint64_t number, uint8_t entry[YCSB_ENTRY_MAX]);

/* The point of an entry or a key (smart_point_fn, argument NULL: integers, else strings): the key. */
extern size_t ycsb_point(void *argument, const uint8_t *bytes, size_t length);

/* Appends a payload to a key; returns the entry's length. */
extern size_t ycsb_payload(uint8_t *entry, size_t key_length, uint64_t payload);

#endif /* YCSB_KEYS_H */
