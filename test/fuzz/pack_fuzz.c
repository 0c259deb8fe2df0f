/*
 * pack_fuzz.c
 *	  Any bytes as the content of a journal's page (tree/pack.h, tree/groups.h): libFuzzer drives the readers of batches,
 *	  entries and groups.
 *
 * The first byte of an input chooses.  0: the rest is a page of batches, as they are.  1: a page of batches whose
 * checksums are made right, so that their entries are whatever the bytes are.  2: packed entries.  3: groups of a run page,
 * 4: of a fence page; the second byte tells how long the directory is, the third one how long the key that is looked for,
 * which follows.
 *
 * What must be true: reading ends, stays within the page, and every entry has a length that there can be; and what was
 * found, packed anew, is found again.  In groups a search ends, and finds nothing that is before its key.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "support/must.h"
#include "tree/groups.h"

#define PAGE   8192u
#define SERIAL UINT64_C(7)

extern int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Entries of one batch or run page, packed anew: no entry takes more than it did and 4 bytes. */
static uint8_t again[SMART_ENTRY_MAX * 4];

/* Reads entries to their end, or to what is none, and packs them anew; returns how many of them were packed. */
static uint32_t
read_entries(struct smart_unpacker *unpacker, struct smart_packer *packer)
{
	const uint8_t *at = unpacker->at;
	uint32_t expected = smart_unpacker_count(unpacker);
	uint32_t found = 0;
	uint32_t count = 0;
	bool room = true;

	smart_packer_begin(packer, again, again + sizeof(again));
	while (smart_unpacker_next(unpacker))
	{
		must(unpacker->at > at && unpacker->at <= unpacker->end, "reading does not move on within the content");
		must(unpacker->length > 0 && unpacker->length <= SMART_ENTRY_MAX, "the length of an entry");
		at = unpacker->at;
		found++;
		room = room && smart_packer_add(packer, unpacker->entry, unpacker->length);
		count += room;
	}
	must(unpacker->at == at, "what is no entry moves the reader");
	must(found == expected, "the number of entries");
	return count;
}

/* The entries of one reader are those of another one that reads them packed anew. */
static void
check_entries(struct smart_unpacker *unpacker)
{
	static struct smart_unpacker first;
	static struct smart_unpacker second;
	static struct smart_packer packer;
	uint32_t count;

	first = *unpacker;
	count = read_entries(unpacker, &packer);
	smart_unpacker_begin(&second, again, packer.at);
	while (count-- > 0)
	{
		must(smart_unpacker_next(&first) && smart_unpacker_next(&second), "an entry is missing");
		must(first.length == second.length && memcmp(first.entry, second.entry, (size_t) first.length) == 0,
			 "an entry is another one");
	}
	must(!smart_unpacker_next(&second) && second.at == second.end, "entries that were not packed");
}

/* Gives the batch at this place the checksum that it should have. */
static void
mend(uint8_t *page, uint32_t place, uint32_t end)
{
	struct smart_batch_head head;

	if (end - place <= sizeof(head))
		return;
	memcpy(&head, page + place, sizeof(head));
	if (head.length > end - place)
		head.length = (uint16_t) (sizeof(head) + 1 + head.length % (end - place - sizeof(head)));
	if (head.length <= sizeof(head))
		return;
	smart_batch_finish(page + place, head.length,
					   head.operation % 2 == 0 ? SMART_OPERATION_ADD : SMART_OPERATION_REMOVE, SERIAL, place);
}

static void
read_batches(uint8_t *page, uint32_t end, bool mended)
{
	struct smart_unpacker unpacker;
	enum smart_operation operation;
	uint32_t place = 0;
	uint32_t next;

	for (;; place = next)
	{
		if (mended)
			mend(page, place, end);
		if (!smart_batch_begin(page, place, end, SERIAL, &unpacker, &operation, &next))
			return;
		must(next > place && next <= end, "the place of the next batch");
		must(operation == SMART_OPERATION_ADD || operation == SMART_OPERATION_REMOVE, "the operation");
		check_entries(&unpacker);
	}
}

/* Reads groups from the first entry on, or from a key on. */
static void
read_groups(const uint8_t *bytes, size_t size, int suffix)
{
	static struct smart_unpacker unpacker;
	struct smart_groups groups;
	uint8_t found[4];
	const uint8_t *end = bytes + size;
	const uint8_t *directory;
	const uint8_t *key = bytes + 2;
	int length;

	if (size < 2 || size - 2 < (size_t) bytes[0] + bytes[1])
		return;
	length = bytes[1];
	directory = end - bytes[0];
	if (!smart_groups_open(&groups, key + length, directory, directory, end, suffix))
		return;
	smart_groups_rewind(&groups, &unpacker);
	while (smart_groups_next(&groups, &unpacker))
		must(unpacker.length > 0 && unpacker.length <= SMART_ENTRY_MAX, "the length of an entry");
	if (smart_groups_seek(&groups, key, length, &unpacker))
		must(unpacker.length < suffix ||
				 smart_compare_bytes(unpacker.entry, (size_t) (unpacker.length - suffix), key, (size_t) length) >= 0,
			 "an entry before the key");
	while (smart_groups_next(&groups, &unpacker))
		must(unpacker.length > 0 && unpacker.length <= SMART_ENTRY_MAX, "the length of an entry behind the key");
	(void) smart_groups_floor(&groups, key, length, &unpacker, found);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct smart_unpacker unpacker;
	uint8_t *page;

	if (size == 0 || size > PAGE)
		return 0;
	/* As long as it is, so that AddressSanitizer finds what lies behind it. */
	page = malloc(size);
	must(page != NULL, "malloc");
	memcpy(page, data + 1, size - 1);
	switch (data[0] % 5)
	{
		case 2:
			smart_unpacker_begin(&unpacker, page, page + size - 1);
			check_entries(&unpacker);
			break;
		case 3:
		case 4:
			read_groups(page, size - 1, data[0] % 5 == 4 ? 4 : 0);
			break;
		default:
			read_batches(page, (uint32_t) size - 1, data[0] % 5 == 1);
			break;
	}
	free(page);
	return 0;
}
