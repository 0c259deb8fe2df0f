/*
 * pack_test.c
 *	  Packed entries and batches (tree/pack.h) against a plain list: entries of 1 to 8000 bytes come back as they were,
 *	  nothing is written past the end, and a page that was damaged gives a part of what it held, in order, and nothing else.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "support/check.h"
#include "support/env_thread.h"
#include "support/must.h"
#include "tree/pack.h"

#define PAGE    8192
#define ROUNDS  3000
#define ITEMS   2048
#define CANARY  0xa5
#define SERIAL  UINT64_C(0x123456789abc)
#define HEADING ((int) sizeof(struct smart_batch_head))

struct item
{
	int length;
	enum smart_operation operation;
	uint8_t bytes[SMART_ENTRY_MAX];
};

static uint64_t seed = 88172645463325252u;
static struct item *items;

static uint32_t
below(uint32_t limit)
{
	return (uint32_t) (test_random(&seed) % limit);
}

/* Mostly short, sometimes of any length, the borders of one-byte numbers and of the format among them. */
static int
any_length(void)
{
	static const int borders[] = {1, 2, 127, 128, 129, 255, 256, 4095, SMART_ENTRY_MAX - 1, SMART_ENTRY_MAX};

	switch (below(8))
	{
		case 0:
			return borders[below(sizeof(borders) / sizeof(*borders))];
		case 1:
			return 1 + (int) below(SMART_ENTRY_MAX);
		default:
			return 1 + (int) below(40);
	}
}

/* An entry that shares a random beginning with the one before, the whole of it sometimes, and some bytes at the end. */
static void
make_item(struct item *item, const struct item *before)
{
	int shared = before == NULL ? 0 : (int) below((uint32_t) before->length + 1);

	item->length = any_length();
	item->operation = below(2) == 0 ? SMART_OPERATION_ADD : SMART_OPERATION_REMOVE;
	if (shared > item->length)
		shared = item->length;
	if (shared > 0)
		memcpy(item->bytes, before->bytes, (size_t) shared);
	for (int i = shared; i < item->length; i++)
		item->bytes[i] = (uint8_t) test_random(&seed);
	for (int i = 1; before != NULL && i <= 10 && i <= item->length - shared && i <= before->length; i++)
	{
		if (below(3) != 0)
			item->bytes[item->length - i] = before->bytes[before->length - i];
	}
}

static bool
same(const struct smart_unpacker *unpacker, const struct item *item)
{
	return unpacker->length == item->length && memcmp(unpacker->entry, item->bytes, (size_t) item->length) == 0;
}

/* ---- entries ---- */

/* Packs until there is no more room, reads it back. */
static bool
round_trip(void)
{
	struct smart_packer packer;
	struct smart_unpacker unpacker;
	uint32_t room = 1 + below(PAGE);
	/* Of its own, so that a byte too many is found by AddressSanitizer, too. */
	uint8_t *page = malloc(room + 1);
	uint32_t count = 0;
	bool good = true;

	must(page != NULL, "malloc");
	page[room] = CANARY;
	smart_packer_begin(&packer, page, page + room);
	for (;; count++)
	{
		const uint8_t *at = packer.at;

		make_item(&items[count], count > 0 ? &items[count - 1] : NULL);
		if (count == ITEMS - 1 || !smart_packer_add(&packer, items[count].bytes, items[count].length))
		{
			good &= packer.at == at;
			break;
		}
		good &= packer.at - at <= SMART_PACKED_MAX(items[count].length);
	}
	/* What was refused would not have fitted without sharing, at least. */
	good &= count == ITEMS - 1 || packer.end - packer.at < SMART_PACKED_MAX(items[count].length);
	good &= page[room] == CANARY;
	smart_unpacker_begin(&unpacker, page, packer.at);
	for (uint32_t i = 0; i < count; i++)
	{
		good &= i % 64 != 0 || smart_unpacker_count(&unpacker) == count - i;
		good &= smart_unpacker_next(&unpacker) && same(&unpacker, &items[i]);
	}
	good &= smart_unpacker_count(&unpacker) == 0;
	good &= !smart_unpacker_next(&unpacker) && unpacker.at == unpacker.end;
	free(page);
	return good;
}

static void
check_entries(void)
{
	uint32_t bad = 0;

	for (int i = 0; i < ROUNDS; i++)
		bad += !round_trip();
	CHECK(bad == 0);
}

/* Bytes that so many entries take of this length, with keys of 8 bytes that ascend by a step, and TIDs that ascend. */
static int
packed_bytes(int count, uint64_t step, int length)
{
	static uint8_t room[64 * ITEMS];
	uint8_t entry[32] = {1};
	struct smart_packer packer;

	smart_packer_begin(&packer, room, room + sizeof(room));
	for (int i = 0; i < count; i++)
	{
		(void) smart_put_be64(entry + 1, step * (uint64_t) i);
		(void) smart_put_be16(entry + length - 2, (uint16_t) (1 + i % 200));
		(void) smart_put_be32(entry + length - 6, (uint32_t) (i / 200));
		must(smart_packer_add(&packer, entry, length), "room");
	}
	return (int) (packer.at - room);
}

/* What is left out is what there was no need to write. */
static void
check_sizes(void)
{
	CHECK(packed_bytes(1, 1, 15) == 17);
	/* Head, mask, the last byte of the key, that of the TID; and a little whenever one before these changes. */
	CHECK(packed_bytes(2000, 1, 15) <= 2000 * 4 + 100);
	/* Keys that share nothing but the first bytes. */
	CHECK(packed_bytes(2000, UINT64_C(0x0123456789abcdef), 15) <= 2000 * 11 + 100);
	/* What lies between the key and the TID is the same in all entries. */
	CHECK(packed_bytes(2000, 1, 17) <= 2000 * 4 + 100);
}

/* What is no packed entry ends the reading where it began. */
static bool
is_refused(const uint8_t *bytes, size_t length, uint32_t good_before)
{
	struct smart_unpacker unpacker;
	uint8_t *copy = malloc(length);
	const uint8_t *at;
	bool refused = true;

	must(copy != NULL, "malloc");
	memcpy(copy, bytes, length);
	smart_unpacker_begin(&unpacker, copy, copy + length);
	for (uint32_t i = 0; i < good_before; i++)
		refused &= smart_unpacker_next(&unpacker);
	at = unpacker.at;
	refused &= smart_unpacker_count(&unpacker) == 0;
	refused &= !smart_unpacker_next(&unpacker) && unpacker.at == at && at != unpacker.end;
	free(copy);
	return refused;
}

#define REFUSED(good_before, ...) \
	CHECK(is_refused((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}), good_before))

static void
check_no_entries(void)
{
	const uint32_t most = SMART_ENTRY_MAX - 15; /* in the number behind the head */
	uint8_t too_long[SMART_ENTRY_MAX + 8] = {0x0f, 0x80 | ((most + 1) & 127), (uint8_t) ((most + 1) >> 7)};

	REFUSED(0, 0x0f);                                        /* cut off before the number */
	REFUSED(0, 0x0f, 0x80);                                  /* within it */
	REFUSED(0, 0x0f, 0x80, 0x80, 0x01);                      /* three bytes of a number */
	REFUSED(0, 0);                                           /* no bytes at all */
	REFUSED(0, 0x02, 7);                                     /* fewer than there should be */
	REFUSED(0, 0x11, 7);                                     /* shared with an entry that is not there */
	REFUSED(1, 0x02, 7, 7, 0x31, 7);                         /* more than it has */
	REFUSED(1, 0x02, 7, 7, 0xf1, 0x82);                      /* cut off within the number of what is shared */
	REFUSED(0, 0x0f, 0xff, 0x7f, 7, 7, 7);                   /* 16398 bytes */
	REFUSED(1, 8, 1, 2, 3, 4, 5, 6, 7, 8, 8);                /* cut off before the mask */
	REFUSED(1, 8, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0);             /* before the byte that the mask is not about */
	REFUSED(1, 8, 1, 2, 3, 4, 5, 6, 7, 8, 8, 3, 9);          /* before the second byte that it tells of */
	REFUSED(1, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0x17, 1, 9, 9, 9); /* a mask of a byte that is shared */
	CHECK(is_refused(too_long, sizeof(too_long), 0));
	too_long[1] = 0x80 | (most & 127); /* as many as there may be, which are there */
	too_long[2] = (uint8_t) (most >> 7);
	CHECK(!is_refused(too_long, 3 + SMART_ENTRY_MAX, 0));
}

/* ---- batches ---- */

/* Fills a page with batches of random entries; returns where they end. */
static uint32_t
fill_page(uint8_t *page, uint32_t begin, uint32_t *count)
{
	uint32_t end = begin;

	*count = 0;
	while (*count < ITEMS - 1)
	{
		struct smart_packer packer;
		uint32_t wanted = 1 + below(5);
		uint32_t added = 0;
		enum smart_operation operation = below(2) == 0 ? SMART_OPERATION_ADD : SMART_OPERATION_REMOVE;

		if (end + (uint32_t) HEADING > PAGE)
			break;
		smart_packer_begin(&packer, page + end + HEADING, page + PAGE);
		while (added < wanted && *count < ITEMS - 1)
		{
			struct item *item = &items[*count];

			make_item(item, added > 0 ? item - 1 : NULL);
			item->operation = operation;
			if (!smart_packer_add(&packer, item->bytes, item->length))
				break;
			added++;
			++*count;
		}
		if (added == 0)
			break;
		smart_batch_finish(page + end, (int) (packer.at - page - end), operation, SERIAL, end);
		end = (uint32_t) (packer.at - page);
	}
	return end;
}

/*
 * Reads all batches of a page; *count: how many of the items were found, from the first one on.  False: something was
 * found that is not the next item.
 */
static bool
read_page(const uint8_t *page, uint32_t begin, uint32_t end, uint64_t serial, uint32_t *count, uint32_t *stopped)
{
	struct smart_unpacker unpacker;
	enum smart_operation operation;
	uint32_t place = begin;
	uint32_t next;

	*count = 0;
	while (smart_batch_begin(page, place, end, serial, &unpacker, &operation, &next))
	{
		if (next <= place || next > end)
			return false;
		while (smart_unpacker_next(&unpacker))
		{
			const struct item *item = &items[*count];

			if (operation != item->operation || !same(&unpacker, item))
				return false;
			++*count;
		}
		if (unpacker.at != unpacker.end)
			return false;
		place = next;
	}
	*stopped = place;
	return true;
}

/* Pages that are whole, of another life, moved, cut off, and with some bytes that are not as they were. */
static void
check_batches(void)
{
	uint8_t *page = malloc(PAGE);
	uint32_t bad[6] = {0};
	uint32_t noticed = 0;

	must(page != NULL, "malloc");
	for (int i = 0; i < ROUNDS; i++)
	{
		uint32_t begin = below(2) == 0 ? 56 : below(200);
		uint32_t count;
		uint32_t found;
		uint32_t stopped;
		uint32_t end = fill_page(page, begin, &count);
		uint32_t cut = begin + below(end - begin + 1);
		uint32_t damages = 1 + below(3);

		bad[0] += !read_page(page, begin, end, SERIAL, &found, &stopped) || found != count || stopped != end;
		bad[1] += count > 0 && (!read_page(page, begin, end, SERIAL + 1, &found, &stopped) || found != 0);
		if (begin > 0 && count > 0)
		{
			memmove(page + begin - 1, page + begin, end - begin);
			bad[2] += !read_page(page, begin - 1, end - 1, SERIAL, &found, &stopped) || found != 0;
			memmove(page + begin, page + begin - 1, end - begin);
		}
		bad[3] += !read_page(page, begin, cut, SERIAL, &found, &stopped) || stopped > cut;
		bad[4] += cut < end && stopped == end;
		if (end == begin)
			continue;
		while (damages-- > 0)
			page[begin + below(end - begin)] ^= (uint8_t) (1 + below(255));
		bad[5] += !read_page(page, begin, end, SERIAL, &found, &stopped);
		noticed += stopped != end;
	}
	for (int i = 0; i < 6; i++)
		CHECK(bad[i] == 0);
	/* Damages may undo each other. */
	CHECK(noticed > ROUNDS * 9 / 10);
	free(page);
}

int
main(void)
{
	items = calloc(ITEMS, sizeof(*items));
	must(items != NULL, "calloc");
	check_entries();
	check_sizes();
	check_no_entries();
	check_batches();
	free(items);
	return check_finish();
}
