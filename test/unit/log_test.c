/*
 * log_test.c
 *	  The log of a range owner: group commit, the ring's end, space, WRITEs that fail, two copies, what can be read again.
 */
#include <stdlib.h>
#include <string.h>

#include "base/thread_env.h"
#include "compute/partition/log.h"
#include "rdma/local.h"
#include "support/check.h"

#define MEMORY  (1 << 16)
#define RING    512
#define AT      4096
#define OWNER   7
#define TIMEOUT 1000

static uint8_t *memory[2];
static struct fabric *fabric;
static struct smart_env env;
static struct smart_log *shared;

static const struct smart_log_place one_copy = {.address = {AT}, .copies = 1, .bytes = RING, .owner = OWNER};
static const struct smart_log_place two_copies = {.address = {AT, (UINT64_C(1) << FABRIC_NODE_SHIFT) | AT},
												  .copies = 2,
												  .bytes = RING,
												  .owner = OWNER};

static uint64_t
memory_size(void *unused)
{
	return MEMORY;
}

/* ---- a fabric whose batches fail, or those to the first memory node ---- */

static const struct fabric_provider *real;
static int batches;
static bool fails;
static bool first_is_away;
static uint64_t freed_meanwhile; /* by another client, as the next batch is under way; 0: nothing */

static smart_status
execute(struct fabric *to, struct fabric_request *requests, int count)
{
	uint64_t freed = freed_meanwhile;

	batches++;
	freed_meanwhile = 0;
	if (freed != 0)
		CHECK(smart_log_release(shared, fabric, &env, freed) == SMART_OK && smart_log_used(shared) > 0);
	if (fails || (first_is_away && fabric_node(requests[0].remote) == 0))
		return SMART_UNREACHABLE;
	return real->execute(to, requests, count);
}

static struct fabric_provider failing;

/* ---- records ---- */

static uint64_t
append(unsigned int number, uint64_t *frame)
{
	const struct smart_log_record record = {.range = number, .key_length = 8, .length = 16, .kind = SMART_LOG_PUT};
	uint64_t entry[2] = {number, ~(uint64_t) number};
	uint64_t start;
	uint64_t end;

	return smart_log_append(shared, &env, &record, (const uint8_t *) entry, &start, &end, frame) ? end : 0;
}

static bool
add(unsigned int number)
{
	uint64_t frame;
	uint64_t end = append(number, &frame);

	return end != 0 && smart_log_commit(shared, fabric, &env, end, TIMEOUT) == SMART_OK;
}

struct seen
{
	unsigned int first;
	unsigned int count;
};

static smart_status
see(void *argument, const struct smart_log_record *record)
{
	struct seen *seen = argument;
	uint64_t entry[2];

	memcpy(entry, smart_log_entry(record), sizeof(entry));
	seen->first = seen->count == 0 ? record->range : seen->first;
	CHECK(record->range == seen->first + seen->count && entry[0] == record->range && entry[1] == ~entry[0]);
	seen->count++;
	return SMART_OK;
}

static struct seen
read_log(const struct smart_log_place *place)
{
	struct seen seen = {.first = 0};
	uint8_t *image;

	CHECK(smart_log_read(place, fabric, &env, &image, see, &seen) == SMART_OK);
	env.release(&env, image);
	return seen;
}

static void
begin(const struct smart_log_place *place)
{
	memset(memory[0], 0, MEMORY);
	memset(memory[1], 0, MEMORY);
	fails = first_is_away = false;
	CHECK(smart_log_open(shared, fabric, place, 2) == SMART_OK);
	batches = 0;
}

/* ---- tests ---- */

/* What waits goes together; L2: and counts then. */
static void
test_group(void)
{
	uint64_t frame;
	uint64_t end;

	begin(&one_copy);
	CHECK(append(1, &frame) != 0 && frame == 0);
	end = append(2, &frame);
	CHECK(smart_log_durable(shared) == 0 && read_log(&one_copy).count == 0);
	batches = 0;
	CHECK(smart_log_commit(shared, fabric, &env, end, TIMEOUT) == SMART_OK && batches == 1);
	CHECK(smart_log_durable(shared) == end && read_log(&one_copy).count == 2);
	batches = 0;
	CHECK(smart_log_commit(shared, fabric, &env, end, TIMEOUT) == SMART_OK && batches == 0);
}

/* L5: space that is in use is not used again, and what was released is not read; the ring's end many times. */
static void
test_space(void)
{
	uint64_t frames[600];
	unsigned int oldest = 0;
	struct seen seen;

	begin(&one_copy);
	for (unsigned int i = 0; i < 600; i++)
	{
		uint64_t end = append(i, &frames[i]);

		if (end == 0)
		{
			/* No room for another frame of 64 bytes, where one may be lost in front of the ring's end. */
			CHECK(i - oldest >= 6 && i - oldest <= 8);
			seen = read_log(&one_copy);
			CHECK(seen.first == oldest && seen.count == i - oldest);
			oldest += 1 + i % 5;
			CHECK(smart_log_release(shared, fabric, &env, frames[oldest]) == SMART_OK);
			end = append(i, &frames[i]);
		}
		CHECK(end != 0 && smart_log_commit(shared, fabric, &env, end, TIMEOUT) == SMART_OK);
	}
	seen = read_log(&one_copy);
	CHECK(oldest > 300 && seen.first == oldest && seen.count == 600 - oldest);
	CHECK(smart_log_release(shared, fabric, &env, smart_log_durable(shared)) == SMART_OK);
	CHECK(smart_log_used(shared) == 0 && read_log(&one_copy).count == 0);
}

/* Frames that came half, and those of another owner, are none, and end what is read. */
static void
test_damage(void)
{
	struct smart_log_place other = one_copy;
	struct seen seen;

	begin(&one_copy);
	CHECK(add(1) && add(2) && add(3));
	other.owner++;
	CHECK(read_log(&other).count == 0);
	memory[0][AT + SMART_LOG_HEAD_BYTES + 64 + 50] ^= 1;
	seen = read_log(&one_copy);
	CHECK(seen.first == 1 && seen.count == 1);
}

/* A frame whose WRITE failed is another client's, and nothing behind it is durable before. */
static void
test_failure(void)
{
	uint64_t frame;
	uint64_t end;
	uint64_t later;

	begin(&one_copy);
	end = append(1, &frame);
	fails = true;
	CHECK(smart_log_commit(shared, fabric, &env, end, TIMEOUT) == SMART_UNREACHABLE);
	CHECK(smart_log_durable(shared) == 0);
	CHECK(smart_log_release(shared, fabric, &env, 0) == SMART_OK);
	fails = false;
	later = append(2, &frame);
	CHECK(frame == end && smart_log_commit(shared, fabric, &env, later, TIMEOUT) == SMART_OK);
	CHECK(smart_log_durable(shared) == later && read_log(&one_copy).count == 2);
	/* Space whose word could not be WRITTEN stays in use. */
	fails = true;
	CHECK(smart_log_release(shared, fabric, &env, later) == SMART_UNREACHABLE && smart_log_used(shared) == later);
}

/* Who frees space while another client is about that leaves it to that one, and goes on. */
static void
test_space_meanwhile(void)
{
	uint64_t frame;
	uint64_t first;
	uint64_t second;

	begin(&one_copy);
	first = append(1, &frame);
	CHECK(smart_log_commit(shared, fabric, &env, first, TIMEOUT) == SMART_OK);
	second = append(2, &frame);
	CHECK(smart_log_commit(shared, fabric, &env, second, TIMEOUT) == SMART_OK);
	batches = 0;
	freed_meanwhile = second;
	CHECK(smart_log_release(shared, fabric, &env, first) == SMART_OK);
	CHECK(batches == 2 && smart_log_used(shared) == 0 && read_log(&one_copy).count == 0);
}

/* Either copy has all. */
static void
test_copies(void)
{
	begin(&two_copies);
	CHECK(add(1) && add(2));
	CHECK(memcmp(memory[0] + AT, memory[1] + AT, RING) == 0);
	CHECK(read_log(&two_copies).count == 2);
	first_is_away = true;
	CHECK(read_log(&two_copies).count == 2);
}

int
main(void)
{
	struct fabric_local_region regions[2];

	for (int i = 0; i < 2; i++)
	{
		memory[i] = aligned_alloc(4096, MEMORY);
		CHECK(memory[i] != NULL);
		regions[i] = (struct fabric_local_region){memory[i], memory_size, NULL};
	}
	env = smart_thread_env;
	CHECK(fabric_local_open(&env, regions, 2, &fabric) == SMART_OK);
	real = fabric->provider;
	failing = *real;
	failing.execute = execute;
	fabric->provider = &failing;
	shared = aligned_alloc(64, (smart_log_size(RING) + 63) / 64 * 64);
	CHECK(shared != NULL);
	test_group();
	test_space();
	test_damage();
	test_failure();
	test_space_meanwhile();
	test_copies();
	fabric->provider->close(fabric);
	free(shared);
	free(memory[0]);
	free(memory[1]);
	return check_finish();
}
