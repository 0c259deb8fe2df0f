/*
 * undo_test.c
 *	  Undo records: which process has a segment, which records are there, and that a writer may
 *	  be killed at any moment.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compute/recovery/undo.h"
#include "support/check.h"
#include "support/node.h"

#define KEY_MAX 100
#define KILLS   40

static struct test_node *node;
static struct test_client *client;

/* What has been visited. */
struct seen
{
	uint64_t records;
	uint64_t sum; /* of positions */
	smart_status result;
};

/* A key whose bytes and length follow from the position. */
static struct smart_undo
make_undo(uint64_t position, uint8_t key[KEY_MAX])
{
	uint16_t length = (uint16_t) (1 + position * 7 % KEY_MAX);

	memset(key, (int) (position & 0xff), length);
	return (struct smart_undo){.position = position,
							   .tree = position + 1,
							   .leaf_size = 512,
							   .fixed_length = (uint16_t) (position % 3),
							   .key_length = length,
							   .key = key};
}

static smart_status
see(void *argument, const struct smart_undo_record *record)
{
	struct seen *seen = argument;
	uint8_t key[KEY_MAX];
	struct smart_undo undo = make_undo(record->position, key);

	CHECK(record->tree == undo.tree && record->key_length == undo.key_length && record->leaf_size == 512);
	CHECK(record->fixed_length == undo.fixed_length && memcmp(record->key, key, undo.key_length) == 0);
	seen->records++;
	seen->sum += record->position;
	return seen->result;
}

static struct seen
see_all(uint64_t beyond)
{
	struct seen seen = {.result = SMART_OK};

	CHECK(smart_undo_each(&node->region, beyond, see, &seen) == SMART_OK);
	return seen;
}

static bool
put(struct smart_undo_segment *segment, uint64_t position)
{
	uint8_t key[KEY_MAX];
	struct smart_undo undo = make_undo(position, key);

	return smart_undo_put(segment, &undo);
}

static struct smart_undo_segment *
claim_new(unsigned int number, unsigned int limit)
{
	struct smart_undo_segment *segment = NULL;

	CHECK(smart_undo_claim_new(&client->client->space, number, limit, &segment) == SMART_OK);
	return segment;
}

/* One segment: what is put there is what is seen. */
static void
test_records(void)
{
	struct smart_undo_segment *segment;
	struct seen seen = {.result = SMART_INTERRUPTED};
	uint64_t count = 0;

	CHECK(see_all(0).records == 0);
	CHECK(smart_undo_claim(&node->region, 1, UINT64_MAX) == NULL);
	segment = claim_new(1, 4);
	while (put(segment, count + 1))
		count++;
	CHECK(count > 500 && segment->last == count);
	CHECK(see_all(0).records == count && see_all(0).sum == count * (count + 1) / 2);
	CHECK(see_all(count - 3).records == 3 && see_all(count).records == 0);
	CHECK(smart_undo_each(&node->region, 0, see, &seen) == SMART_INTERRUPTED && seen.records == 1);
	smart_undo_release(&node->region, segment);
	CHECK(see_all(0).records == count);
}

/* Puts records of one position until there is no room; returns how many. */
static uint64_t
fill(struct smart_undo_segment *segment, uint64_t position)
{
	uint64_t count = 0;

	while (put(segment, position))
		count++;
	return count;
}

/* A full segment serves again when no process has it and its records are durable. */
static void
test_claims(void)
{
	struct smart_undo_segment *first = smart_undo_claim(&node->region, 1, UINT64_MAX);
	struct smart_undo_segment *second;
	struct smart_undo_segment *third = NULL;
	uint64_t count;

	CHECK(first != NULL && first->used == 0);
	CHECK(put(first, 100) && fill(first, 90) > 0 && put(first, 90) == false);
	CHECK(smart_undo_claim(&node->region, 2, UINT64_MAX) == NULL);
	second = claim_new(2, 2);
	CHECK(second != first);
	count = fill(second, 200);
	CHECK(smart_undo_claim_new(&client->client->space, 3, 2, &third) == SMART_NO_SPACE);
	CHECK(smart_undo_least(&node->region) == 0);

	smart_undo_release(&node->region, second);
	CHECK(smart_undo_least(&node->region) == 200);
	smart_undo_release(&node->region, first);
	CHECK(smart_undo_least(&node->region) == 100);
	CHECK(smart_undo_claim(&node->region, 3, 99) == NULL);
	CHECK(see_all(0).records > count);
	CHECK(smart_undo_claim(&node->region, 3, 199) == first && first->used == 0);
	CHECK(smart_undo_claim(&node->region, 3, 199) == NULL);
	CHECK(see_all(0).records == count && see_all(0).sum == count * 200);

	/* The owner of one has died. */
	smart_undo_clear(&node->region);
	CHECK(see_all(0).records == 0 && smart_undo_least(&node->region) == 0);
	CHECK(smart_undo_claim(&node->region, 4, 0) == first);
	smart_undo_release(&node->region, first);
	smart_undo_clear(&node->region);
}

/* One that is half empty serves as it is; the one that was released last comes first. */
static void
test_room(void)
{
	struct smart_undo_segment *first = smart_undo_claim(&node->region, 1, 0);
	struct smart_undo_segment *second = smart_undo_claim(&node->region, 2, 0);

	CHECK(first != NULL && second != NULL && first->number != second->number);
	CHECK(put(first, 10) && put(second, 20));
	smart_undo_release(&node->region, first);
	smart_undo_release(&node->region, second);
	CHECK(smart_undo_claim(&node->region, 3, 0) == second && second->last == 20);
	CHECK(put(second, 5) && second->last == 20);
	CHECK(smart_undo_claim(&node->region, 4, 0) == first && put(first, 11));
	CHECK(see_all(0).records == 4 && see_all(0).sum == 10 + 20 + 5 + 11);

	/* Up to half, and no further. */
	while (second->used <= sizeof(second->records) / 2)
		CHECK(put(second, 30));
	smart_undo_release(&node->region, second);
	CHECK(smart_undo_claim(&node->region, 3, 29) == NULL && second->used > sizeof(second->records) / 2);
	CHECK(smart_undo_claim(&node->region, 3, 30) == second && second->used == 0);
	smart_undo_clear(&node->region);
}

static void
test_damage(void)
{
	struct smart_undo_segment *segment = smart_undo_claim(&node->region, 1, UINT64_MAX);
	struct smart_undo_record *record = (struct smart_undo_record *) segment->records;
	struct seen seen = {.result = SMART_OK};

	CHECK(put(segment, 10) && put(segment, 11));
	record->key_length = SMART_KEY_MAX;
	CHECK(smart_undo_each(&node->region, 0, see, &seen) == SMART_CORRUPT && seen.records == 0);
	record->key_length = 1 + 70;
	record->bytes = 0;
	CHECK(smart_undo_each(&node->region, 0, see, &seen) == SMART_CORRUPT);
	segment->used = sizeof(segment->records) + 8;
	CHECK(smart_undo_each(&node->region, 0, see, &seen) == SMART_CORRUPT);
	smart_undo_clear(&node->region);
}

/* A process that writes records until it is killed; it says how far it has come behind each. */
static void
write_on(uint64_t *come)
{
	for (uint64_t position = 1;; position++)
	{
		struct smart_undo_segment *segment = smart_undo_claim(&node->region, 5, UINT64_MAX);

		while (put(segment, position))
			__atomic_store_n(come, position++, __ATOMIC_RELEASE);
		smart_undo_release(&node->region, segment);
	}
}

static void
test_kills(void)
{
	uint64_t *come = smart_segment(&node->region, SMART_SEGMENT_MAX - 1);

	for (unsigned int round = 0; round < KILLS; round++)
	{
		struct seen seen;
		int status;
		pid_t child;

		__atomic_store_n(come, 0, __ATOMIC_RELAXED);
		child = fork();
		CHECK(child >= 0);
		if (child == 0)
			write_on(come);
		while (__atomic_load_n(come, __ATOMIC_ACQUIRE) == 0)
			usleep(10);
		usleep((useconds_t) (round * 17));
		kill(child, SIGKILL);
		CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
		/* All that it can have acted upon since is there, but for what was dropped. */
		seen = see_all(0);
		if (seen.records > 0)
			CHECK(see_all(*come - 1).records >= 1 && see_all(*come - 1).records <= 2);
		smart_undo_clear(&node->region);
	}
}

int
main(void)
{
	node = test_node_open(8, UINT64_C(64) << 20);
	client = test_client_open(node, 1);
	CHECK(smart_space_segment(&client->client->space, SMART_SEGMENT_MAX - 1) == SMART_OK);
	test_records();
	test_claims();
	test_room();
	test_damage();
	test_kills();
	test_client_close(client);
	test_node_close(node);
	return check_finish();
}
