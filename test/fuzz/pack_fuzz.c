/*
 * pack_fuzz.c
 *	  Any bytes as the content of a journal's page (tree/pack.h): libFuzzer drives the readers of batches and entries.
 *
 * The first byte of an input chooses.  0: the rest is a page of batches, as they are.  1: a page of batches whose
 * checksums are made right, so that their entries are whatever the bytes are.  2: the entries of a run page.
 *
 * What must be true: reading ends, stays within the page, and every entry has a length that there can be; and what was
 * found, packed anew, is found again.
 */
#include <stdlib.h>
#include <string.h>

#include "support/must.h"
#include "tree/pack.h"

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
	if (data[0] % 3 == 2)
	{
		smart_unpacker_begin(&unpacker, page, page + size - 1);
		check_entries(&unpacker);
	}
	else
		read_batches(page, (uint32_t) size - 1, data[0] % 3 == 1);
	free(page);
	return 0;
}
