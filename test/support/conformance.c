/*
 * conformance.c
 *	  The checks that every provider must pass.
 */
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/conformance.h"
#include "support/env_thread.h"
#include "support/threads.h"

#define THREADS   3
#define ADDITIONS 20000

#define MANY       3000 /* more verbs, and more bytes, than one message takes */
#define MANY_BYTES 512
#define LONG_BYTES ((size_t) 3 << 19) /* longer than a message */

static fabric_address
at(const struct conformance *conformance, unsigned int node, uint64_t offset)
{
	return fabric_make_address(node, conformance->offset + offset);
}

static struct fabric_request
moves(enum fabric_verb verb, fabric_address remote, void *local, size_t length)
{
	return (struct fabric_request){.verb = verb, .remote = remote, .local = local, .length = (uint32_t) length};
}

static struct fabric_request
swaps(fabric_address remote, uint64_t compare, uint64_t operand)
{
	return (struct fabric_request){.verb = FABRIC_CAS, .remote = remote, .compare = compare, .operand = operand};
}

static struct fabric_request
adds(fabric_address remote, uint64_t operand)
{
	return (struct fabric_request){.verb = FABRIC_FAA, .remote = remote, .operand = operand};
}

static void
run(struct fabric *fabric, struct fabric_request *requests, int count)
{
	CHECK(fabric_execute(fabric, requests, count) == SMART_OK);
}

/* Every length and alignment comes back as it was written, and its neighbours stay. */
static void
check_bytes(struct conformance *conformance, unsigned int node)
{
	static const uint32_t lengths[] = {1, 2, 7, 8, 9, 16, 63, 64, 65, 512, 1000, 4096, 8128};
	uint8_t written[8128 + 32];
	uint8_t found[8128 + 32];
	uint64_t random = 1;

	for (unsigned int i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		for (unsigned int skew = 0; skew < 9; skew++)
		{
			uint32_t length = lengths[i];
			struct fabric_request request = moves(FABRIC_WRITE, at(conformance, node, 64), written, length + 32);

			memset(written, 0xee, sizeof(written));
			run(conformance->fabric, &request, 1);
			for (uint32_t j = 0; j < length; j++)
				written[8 + skew + j] = (uint8_t) test_random(&random);
			request = moves(FABRIC_WRITE, at(conformance, node, 64 + 8 + skew), written + 8 + skew, length);
			run(conformance->fabric, &request, 1);
			request = moves(FABRIC_READ, at(conformance, node, 64), found, length + 32);
			run(conformance->fabric, &request, 1);
			CHECK(memcmp(found, written, length + 32) == 0);
			request = moves(FABRIC_READ, at(conformance, node, 64 + 8 + skew), found, length);
			run(conformance->fabric, &request, 1);
			CHECK(memcmp(found, written + 8 + skew, length) == 0);
		}
}

static void
check_atomics(struct conformance *conformance, unsigned int node)
{
	fabric_address word = at(conformance, node, 128);
	uint64_t value = 5;
	struct fabric_request batch[5];

	batch[0] = moves(FABRIC_WRITE, word, &value, 8);
	batch[1] = swaps(word, 4, 9);
	batch[2] = swaps(word, 5, UINT64_MAX);
	batch[3] = adds(word, 3);
	batch[4] = moves(FABRIC_READ, word, &value, 8);
	run(conformance->fabric, batch, 5);
	CHECK(batch[1].result == 5 && batch[2].result == 5 && batch[3].result == UINT64_MAX && value == 2);
}

/* A batch takes effect in order: an entry, its commit, the fenced unlock; and what is read lies in between. */
static void
check_order(struct conformance *conformance, unsigned int node)
{
	fabric_address word = at(conformance, node, 256);
	uint64_t zero = 0;
	uint64_t seen[3] = {7, 7, 7};
	struct fabric_request batch[7];

	batch[0] = moves(FABRIC_WRITE, word, &zero, 8);
	batch[1] = moves(FABRIC_READ, word, &seen[0], 8);
	batch[2] = swaps(word, 0, 1);
	batch[2].fence = true;
	batch[3] = moves(FABRIC_READ, word, &seen[1], 8);
	batch[4] = adds(word, 1);
	batch[4].fence = true;
	batch[5] = moves(FABRIC_READ, word, &seen[2], 8);
	batch[6] = swaps(word, 2, 0);
	batch[6].fence = true;
	run(conformance->fabric, batch, 7);
	CHECK(seen[0] == 0 && seen[1] == 1 && seen[2] == 2);
	CHECK(batch[2].result == 0 && batch[4].result == 1 && batch[6].result == 2);
}

/* A batch of any length is one batch: all of it, in order. */
static void
check_many(struct conformance *conformance)
{
	struct fabric_request *batch = calloc(3 * MANY, sizeof(*batch));
	uint8_t *written = malloc(MANY * MANY_BYTES);
	uint8_t *found = calloc(MANY, MANY_BYTES);
	uint64_t zero = 0;
	uint64_t random = 1;
	unsigned long wrong = 0;

	for (size_t i = 0; i < MANY * MANY_BYTES; i++)
		written[i] = (uint8_t) test_random(&random);
	batch[0] = moves(FABRIC_WRITE, at(conformance, 0, 0), &zero, 8);
	batch[1] = moves(FABRIC_WRITE, at(conformance, conformance->nodes - 1, 8), &zero, 8);
	run(conformance->fabric, batch, 2);
	for (unsigned int i = 0; i < MANY; i++)
	{
		unsigned int node = i % conformance->nodes;
		fabric_address place = at(conformance, node, 1024 + i % 7 * MANY_BYTES);

		/* Each finds what it wrote, before the next one writes there; numbers count up. */
		batch[3 * i] = moves(FABRIC_WRITE, place, written + i * MANY_BYTES, MANY_BYTES);
		batch[3 * i].fence = true;
		batch[3 * i + 1] = moves(FABRIC_READ, place, found + i * MANY_BYTES, MANY_BYTES);
		batch[3 * i + 2] = adds(at(conformance, i % 2 == 0 ? 0 : conformance->nodes - 1, i % 2 * 8), 1);
	}
	run(conformance->fabric, batch, 3 * MANY);
	for (unsigned int i = 0; i < MANY; i++)
		wrong += batch[3 * i + 2].result != i / 2;
	CHECK(wrong == 0 && memcmp(written, found, MANY * MANY_BYTES) == 0);
	free(batch);
	free(written);
	free(found);
}

/* Requests that are longer than a message come back as they were, at any alignment, and between others. */
static void
check_long(struct conformance *conformance, unsigned int node)
{
	uint8_t *written = malloc(LONG_BYTES + 16);
	uint8_t *found = calloc(1, LONG_BYTES + 16);
	uint64_t random = node;
	struct fabric_request batch[5];

	for (size_t i = 0; i < LONG_BYTES + 16; i++)
		written[i] = (uint8_t) test_random(&random);
	for (unsigned int skew = 0; skew < 9; skew += 3)
	{
		batch[0] = moves(FABRIC_WRITE, at(conformance, node, 0), written + LONG_BYTES, 16);
		batch[1] = moves(FABRIC_WRITE, at(conformance, node, skew), written, LONG_BYTES);
		batch[2] = adds(at(conformance, node, 65536), 0);
		batch[3] = moves(FABRIC_READ, at(conformance, node, skew), found, LONG_BYTES);
		batch[4] = moves(FABRIC_READ, at(conformance, node, 65536), found + LONG_BYTES, 8);
		memset(found, 0, LONG_BYTES + 16);
		run(conformance->fabric, batch, 5);
		CHECK(memcmp(found, written, LONG_BYTES) == 0);
		CHECK(memcmp(found + LONG_BYTES, written + 65536 - skew, 8) == 0);
		CHECK(memcmp(&batch[2].result, written + 65536 - skew, 8) == 0);
	}
	/* One after the other they fit. */
	for (unsigned int i = 0; i < 3; i++)
		batch[i] =
			moves(FABRIC_READ, at(conformance, node, i * LONG_BYTES / 3), found + i * LONG_BYTES / 3, LONG_BYTES / 3);
	memset(found, 0, LONG_BYTES);
	run(conformance->fabric, batch, 3);
	batch[0] = moves(FABRIC_READ, at(conformance, node, 0), written, LONG_BYTES);
	run(conformance->fabric, batch, 1);
	CHECK(memcmp(found, written, LONG_BYTES) == 0);
	free(written);
	free(found);
}

static void
check_counters(struct conformance *conformance)
{
	struct fabric_counters before = conformance->fabric->counters;
	const struct fabric_counters *after = &conformance->fabric->counters;
	struct fabric_request batch[4];
	uint8_t bytes[100] = {0};

	batch[0] = moves(FABRIC_WRITE, at(conformance, 0, 512), bytes, 100);
	batch[1] = moves(FABRIC_READ, at(conformance, 0, 512), bytes, 60);
	batch[2] = adds(at(conformance, conformance->nodes - 1, 1024), 1);
	batch[3] = swaps(at(conformance, conformance->nodes - 1, 1024), 0, 0);
	run(conformance->fabric, batch, 4);
	for (int verb = 0; verb < FABRIC_VERBS; verb++)
		CHECK(after->requests[verb] == before.requests[verb] + 1);
	CHECK(after->bytes[FABRIC_WRITE] == before.bytes[FABRIC_WRITE] + 100);
	CHECK(after->bytes[FABRIC_READ] == before.bytes[FABRIC_READ] + 60);
	CHECK(after->bytes[FABRIC_CAS] == before.bytes[FABRIC_CAS] + 8);
	CHECK(after->round_trips == before.round_trips + 1);
	CHECK(after->doorbells == before.doorbells + (conformance->nodes > 1 ? 2 : 1));
}

/* Never a wild access: an address outside is an error, and so is an atomic that is not aligned. */
static void
check_outside(struct conformance *conformance)
{
	uint64_t word = 0;
	struct fabric_request request = swaps(at(conformance, 0, 4), 0, 0);

	CHECK(fabric_execute(conformance->fabric, &request, 1) == SMART_CORRUPT);
	if (conformance->outside == 0)
		return;
	request = moves(FABRIC_READ, fabric_make_address(0, conformance->outside), &word, 8);
	CHECK(fabric_execute(conformance->fabric, &request, 1) == SMART_CORRUPT);
	request = moves(FABRIC_READ, fabric_make_address(0, conformance->outside - 4), &word, 8);
	CHECK(fabric_execute(conformance->fabric, &request, 1) == SMART_CORRUPT);
	request = moves(FABRIC_READ, fabric_make_address(0, FABRIC_OFFSET_MASK - 2), &word, 8);
	CHECK(fabric_execute(conformance->fabric, &request, 1) == SMART_CORRUPT);
	request = moves(FABRIC_READ, fabric_make_address(conformance->nodes, 64), &word, 8);
	CHECK(fabric_execute(conformance->fabric, &request, 1) == SMART_CORRUPT);
}

/* Direct pointers show the same memory, where the provider has them. */
static void
check_direct(struct conformance *conformance, unsigned int node)
{
	uint64_t value = UINT64_C(0x0123456789abcdef);
	struct fabric_request request = moves(FABRIC_WRITE, at(conformance, node, 2048), &value, 8);
	uint64_t *direct = fabric_direct(conformance->fabric, at(conformance, node, 2048), 8);

	CHECK((direct != NULL) == conformance->fabric->direct);
	if (direct == NULL)
		return;
	run(conformance->fabric, &request, 1);
	CHECK(__atomic_load_n(direct, __ATOMIC_ACQUIRE) == value);
	__atomic_store_n(direct, 1, __ATOMIC_RELEASE);
	request = moves(FABRIC_READ, at(conformance, node, 2048), &value, 8);
	run(conformance->fabric, &request, 1);
	CHECK(value == 1);
	if (conformance->outside != 0)
	{
		CHECK(fabric_direct(conformance->fabric, fabric_make_address(node, conformance->outside - 4), 8) == NULL);
		CHECK(fabric_direct(conformance->fabric, fabric_make_address(node, conformance->outside), 1) == NULL);
		CHECK(fabric_direct(conformance->fabric, fabric_make_address(node, conformance->outside - 8), 8) != NULL);
	}
}

/* ---- flights ---- */

#define FLIGHT_READS 200
#define FLIGHT_BYTES 200 /* of a READ */

/* READs of all nodes in turn. */
static void
fill_flight(const struct conformance *conformance, struct fabric_request *reads, uint8_t (*found)[FLIGHT_BYTES])
{
	for (unsigned int i = 0; i < FLIGHT_READS; i++)
		reads[i] =
			moves(FABRIC_READ, at(conformance, i % conformance->nodes, i * FLIGHT_BYTES), found[i], FLIGHT_BYTES);
}

/* What the READs of a flight are to find from now on. */
static void
write_all(struct conformance *conformance, uint8_t byte)
{
	uint8_t bytes[FLIGHT_READS * FLIGHT_BYTES];

	memset(bytes, byte, sizeof(bytes));
	for (unsigned int node = 0; node < conformance->nodes; node++)
	{
		struct fabric_request write = moves(FABRIC_WRITE, at(conformance, node, 0), bytes, sizeof(bytes));

		run(conformance->fabric, &write, 1);
	}
}

static bool
has_landed(const struct fabric_flight *flight, uint8_t (*found)[FLIGHT_BYTES], uint8_t byte)
{
	bool same = true;

	for (unsigned int i = 0; i < FLIGHT_READS; i++)
		for (unsigned int j = 0; j < FLIGHT_BYTES; j++)
			same &= found[i][j] == byte;
	return !flight->under_way && flight->status == SMART_OK && same;
}

/* READs that are under way while their client does other things have landed before anything else takes effect. */
static void
check_flights(struct conformance *conformance)
{
	struct fabric *fabric = conformance->fabric;
	struct fabric_request reads[2][FLIGHT_READS];
	uint8_t found[2][FLIGHT_READS][FLIGHT_BYTES];
	struct fabric_flight one = {.reads = reads[0], .count = FLIGHT_READS};
	struct fabric_flight other = {.reads = reads[1], .count = FLIGHT_READS};
	uint64_t before = fabric->counters.round_trips;

	fill_flight(conformance, reads[0], found[0]);
	fill_flight(conformance, reads[1], found[1]);
	write_all(conformance, 1);
	CHECK(fabric_depart(fabric, &one) == SMART_OK && one.under_way);
	write_all(conformance, 2);
	CHECK(has_landed(&one, found[0], 1));
	CHECK(fabric->counters.flights == 1 && fabric->counters.round_trips == before + 2 * conformance->nodes + 1);
	CHECK(fabric_depart(fabric, &one) == SMART_OK && fabric_depart(fabric, &other) == SMART_OK);
	CHECK(has_landed(&one, found[0], 2) && other.under_way);
	fabric_land(fabric);
	fabric_land(fabric);
	CHECK(has_landed(&other, found[1], 2));
	if (conformance->outside == 0)
		return;
	/* An address that is none is found at one end or the other, and the client goes on. */
	reads[1][FLIGHT_READS / 2].remote = fabric_make_address(0, conformance->outside);
	if (fabric_depart(fabric, &other) == SMART_OK)
		fabric_land(fabric);
	CHECK(other.status == SMART_CORRUPT && !other.under_way);
	CHECK(fabric_depart(fabric, &one) == SMART_OK);
	fabric_land(fabric);
	CHECK(has_landed(&one, found[0], 2));
}

static unsigned int
additions_of(const struct conformance *conformance)
{
	return conformance->additions != 0 ? conformance->additions : ADDITIONS;
}

/*
 * Threads add to one word by FAA and by CAS; and each publishes pairs of words
 * by a third one, which the others must never see torn behind it.
 */
static void *
work(void *argument)
{
	struct conformance *conformance = argument;
	struct fabric *fabric = conformance->open(conformance);
	uint64_t expected = 0;
	unsigned long torn = 0;

	for (unsigned int i = 0; i < additions_of(conformance); i++)
	{
		struct fabric_request add = adds(at(conformance, 0, 4096), 1);
		struct fabric_request swap = swaps(at(conformance, 0, 4096 + 64), expected, expected + 1);
		uint64_t pair[2];
		struct fabric_request read[2];

		run(fabric, &add, 1);
		while (run(fabric, &swap, 1), swap.result != expected)
		{
			expected = swap.result;
			swap = swaps(at(conformance, 0, 4096 + 64), expected, expected + 1);
		}
		expected++;
		/* The count first, then the flag: a reader of the flag finds a count that is no older. */
		read[0] = moves(FABRIC_READ, at(conformance, 0, 8192 + 64), &pair[1], 8);
		read[1] = moves(FABRIC_READ, at(conformance, 0, 8192), &pair[0], 8);
		run(fabric, read, 2);
		torn += pair[0] < pair[1];
		read[0] = adds(at(conformance, 0, 8192), 1);
		read[1] = adds(at(conformance, 0, 8192 + 64), 1);
		run(fabric, read, 2);
	}
	CHECK(torn == 0);
	fabric->provider->close(fabric);
	return NULL;
}

static void
check_threads(struct conformance *conformance)
{
	uint64_t words[1024] = {0};
	struct fabric_request request = moves(FABRIC_WRITE, at(conformance, 0, 4096), words, sizeof(words));

	run(conformance->fabric, &request, 1);
	test_run_threads(THREADS, work, conformance, 0);
	request = moves(FABRIC_READ, at(conformance, 0, 4096), words, sizeof(words));
	run(conformance->fabric, &request, 1);
	CHECK(words[0] == THREADS * additions_of(conformance) && words[8] == words[0] && words[512] == words[0]);
}

void
conformance_check(struct conformance *conformance)
{
	CHECK(conformance->nodes >= 1 && conformance->bytes >= 65536 && conformance->offset % 64 == 0);
	for (unsigned int node = 0; node < conformance->nodes; node++)
	{
		check_bytes(conformance, node);
		check_atomics(conformance, node);
		check_order(conformance, node);
		check_direct(conformance, node);
		if (conformance->bytes >= (uint64_t) 2 << 20)
			check_long(conformance, node);
	}
	check_many(conformance);
	check_counters(conformance);
	check_outside(conformance);
	if (conformance->fabric->provider->depart != NULL)
		check_flights(conformance);
	if (conformance->open != NULL)
		check_threads(conformance);
}
