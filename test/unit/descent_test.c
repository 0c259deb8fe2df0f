/*
 * descent_test.c
 *	  The messages of descents: what is put is got, and nothing else is taken for one.
 */
#include <stdlib.h>
#include <string.h>

#include "rdma/descent.h"
#include "rdma/wire.h"
#include "support/check.h"

static struct fabric_path path;

static uint64_t state = 1;

static uint64_t
random_number(void)
{
	state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return state >> 24;
}

static void
check_request(void)
{
	uint8_t key[FABRIC_DESCENT_KEY_MAX];
	uint8_t bytes[FABRIC_DESCENT_BYTES_MAX];
	struct fabric_descent sent = {.link = UINT64_C(0x0102030405060708),
								  .root = UINT64_C(0x0000aabbccddeef8),
								  .arrived = 4095,
								  .pad = 0xff,
								  .key = key};
	struct fabric_descent found;
	uint16_t lengths[] = {1, 14, FABRIC_DESCENT_KEY_MAX};

	for (unsigned int i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t) random_number();
	for (unsigned int i = 0; i < 3; i++)
	{
		uint32_t length;

		sent.key_length = lengths[i];
		length = fabric_descent_put(bytes, &sent);
		CHECK(length == 32u + lengths[i] && fabric_descent_get(bytes, length, &found));
		CHECK(found.link == sent.link && found.root == sent.root && found.arrived == sent.arrived);
		CHECK(found.key_length == sent.key_length && found.pad == sent.pad && found.key == bytes + 32);
		CHECK(memcmp(found.key, key, lengths[i]) == 0);
		CHECK(!fabric_descent_get(bytes, length - 1, &found) && !fabric_descent_get(bytes, length + 1, &found));
	}
}

/* A reply of so many blocks of 8, 16, .. bytes. */
static uint32_t
make_result(uint8_t *reply, unsigned int blocks)
{
	uint32_t bytes = fabric_path_begin(reply);

	for (unsigned int i = 0; i < blocks; i++)
	{
		uint8_t *room = fabric_path_add(reply, &bytes, 100 + i, 8 * (i + 1));

		CHECK(room != NULL && room + 8 * (i + 1) == reply + bytes);
		memset(room, (int) i, 8 * (i + 1));
	}
	return bytes;
}

static void
check_answer(void)
{
	static uint8_t reply[FABRIC_PATH_BYTES_MAX];

	for (unsigned int blocks = 0; blocks <= FABRIC_PATH_BLOCKS_MAX; blocks++)
	{
		uint32_t bytes = make_result(reply, blocks);

		fabric_path_end(reply, FABRIC_PATH_STOPPED, blocks % 2 == 0);
		CHECK(fabric_path_get(reply, bytes, &path) && path.count == blocks && path.end == FABRIC_PATH_STOPPED);
		CHECK(path.exact == (blocks % 2 == 0));
		for (unsigned int i = 0; i < path.count; i++)
		{
			CHECK(path.block[i].link == 100 + i && path.block[i].length == 8 * (i + 1));
			CHECK((uintptr_t) path.block[i].bytes % 8 == 0 && path.block[i].bytes[8 * i + 7] == i);
		}
		CHECK(!fabric_path_get(reply, bytes - 1, &path) && path.count == 0);
		CHECK(!fabric_path_get(reply, bytes + 8, &path));
	}
}

/* No more blocks than there may be, nor more bytes. */
static void
check_room(void)
{
	static uint8_t reply[FABRIC_PATH_BYTES_MAX];
	uint32_t bytes = make_result(reply, FABRIC_PATH_BLOCKS_MAX);
	uint32_t before = bytes;
	uint32_t rest = FABRIC_PATH_BYTES_MAX - FABRIC_PATH_HEAD_BYTES - FABRIC_BLOCK_HEAD_BYTES;

	CHECK(fabric_path_add(reply, &bytes, 1, 8) == NULL && bytes == before);
	bytes = fabric_path_begin(reply);
	CHECK(fabric_path_add(reply, &bytes, 1, rest + 8) == NULL && bytes == FABRIC_PATH_HEAD_BYTES);
	CHECK(fabric_path_add(reply, &bytes, 1, rest) != NULL && bytes == FABRIC_PATH_BYTES_MAX);
	CHECK(fabric_path_add(reply, &bytes, 1, 8) == NULL);
	fabric_path_end(reply, FABRIC_PATH_LEAF, true);
	CHECK(fabric_path_get(reply, bytes, &path) && path.count == 1 && path.block[0].length == rest);
}

/* One byte of a reply of two blocks changed. */
static bool
answer_with(unsigned int at, uint8_t value)
{
	static uint8_t reply[FABRIC_PATH_BYTES_MAX];
	uint32_t bytes = make_result(reply, 2);

	fabric_path_end(reply, FABRIC_PATH_LEAF, true);
	reply[at] = value;
	return fabric_path_get(reply, bytes, &path);
}

static void
check_bad_answers(void)
{
	CHECK(answer_with(0, FABRIC_PATH_EMPTY) && answer_with(1, 0));
	CHECK(!answer_with(0, 0) && !answer_with(0, FABRIC_PATH_ENDS) && !answer_with(0, FABRIC_PATH_BUSY));
	CHECK(!answer_with(1, 2) && !answer_with(2, 1) && !answer_with(3, 1));
	CHECK(!answer_with(4, 1) && !answer_with(4, 3) && !answer_with(4, FABRIC_PATH_BLOCKS_MAX + 1) &&
		  !answer_with(7, 1));
	/* The length of the first block. */
	CHECK(!answer_with(16, 0) && !answer_with(16, 7) && !answer_with(16, 16) && !answer_with(20, 1));
	CHECK(!answer_with(23, 0xff));
}

/* Whatever arrives: a reply, never a read behind it (the sanitizers look). */
static void
check_noise(void)
{
	struct fabric_descent descent;

	for (unsigned int i = 0; i < 20000; i++)
	{
		uint32_t length = (uint32_t) (random_number() % 200);
		uint8_t *bytes = malloc(length + 1);

		for (uint32_t j = 0; j < length; j++)
			bytes[j] = random_number() % 4 == 0 ? (uint8_t) (random_number() % 64) : 0;
		if (fabric_descent_get(bytes, length, &descent))
			CHECK(descent.key_length >= 1 && descent.key + descent.key_length == bytes + length);
		if (fabric_path_get(bytes, length, &path))
			CHECK(path.count <= FABRIC_PATH_BLOCKS_MAX);
		free(bytes);
	}
}

int
main(void)
{
	check_request();
	check_answer();
	check_room();
	check_bad_answers();
	check_noise();
	return check_finish();
}
