/*
 * ycsb_zipf_test.c
 *	  The benchmark's choices: ranks by Zipf's law against its formula, and keys
 *	  that differ.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/ycsb/keys.h"
#include "bench/ycsb/random.h"
#include "support/check.h"
#include "support/env_thread.h"

#define DRAWS   400000
#define CELLS   200 /* ranks that are looked at one by one; all others together are one more */
#define RECORDS 60000

/* ---- ranks ---- */

/*
 * How far the counts of draws with one exponent are from what the formula says for
 * another: chi-square, less its mean, in standard deviations.
 */
static double
deviation(uint64_t n, double drawn, double formula, uint64_t seed)
{
	static uint64_t count[CELLS + 1];
	uint64_t cells = n < CELLS ? n : CELLS;
	uint64_t outside = 0;
	struct ycsb_zipf zipf;
	double sum = 0;
	double head = 0;
	double square = 0;

	memset(count, 0, sizeof(count));
	ycsb_zipf_init(&zipf, n, drawn);
	for (int i = 0; i < DRAWS; i++)
	{
		uint64_t rank = ycsb_zipf_draw(&zipf, &seed);

		outside += rank >= n;
		count[rank < cells ? rank : cells]++;
	}
	CHECK(outside == 0);
	for (uint64_t i = 0; i < n; i++)
		sum += pow((double) (i + 1), -formula);
	for (uint64_t i = 0; i <= cells; i++)
	{
		double share = i < cells ? pow((double) (i + 1), -formula) / sum : 1 - head;
		double expected = share * DRAWS;

		head += share;
		if (i < cells || n > cells)
			square += (double) count[i] * (double) count[i] / expected - 2 * (double) count[i] + expected;
	}
	/* As many degrees of freedom as there are cells, less one. */
	if (n <= cells)
		cells--;
	return cells > 0 ? (square - (double) cells) / sqrt(2 * (double) cells) : square;
}

static void
check_zipf(void)
{
	static const uint64_t sizes[] = {1, 2, 3, 10, 200, 1000, 100000};
	static const double exponents[] = {0.5, 0.99, 1.3};

	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
	{
		for (unsigned int j = 0; j < sizeof(exponents) / sizeof(exponents[0]); j++)
			CHECK(fabs(deviation(sizes[i], exponents[j], exponents[j], 1 + i)) < 4);
	}
	/* The yardstick can tell: another law, and another number of ranks. */
	CHECK(deviation(10, 0.99, 0.95, 1) > 4);
	CHECK(deviation(1000, 0.99, 0.97, 1) > 4);
	CHECK(deviation(1000, 0.99, 1.01, 1) > 4);
	CHECK(deviation(100000, 0.99, 0.98, 1) > 4);
}

/* ---- keys ---- */

struct key
{
	uint8_t bytes[YCSB_ENTRY_MAX];
	size_t length;
};

static int
compare_keys(const void *a, const void *b)
{
	return memcmp(((const struct key *) a)->bytes, ((const struct key *) b)->bytes, YCSB_ENTRY_MAX);
}

/* Sorted, the first key that has a given one as its prefix would stand right behind it. */
static void
check_keys(bool string)
{
	struct key *keys = calloc(RECORDS, sizeof(*keys));
	uint64_t wrong = 0;

	if (keys == NULL)
		abort();
	for (uint64_t i = 0; i < RECORDS; i++)
	{
		size_t length;

		keys[i].length = ycsb_key(string, i, keys[i].bytes);
		length = ycsb_payload(keys[i].bytes, keys[i].length, i);
		wrong += length != keys[i].length + YCSB_PAYLOAD || length > YCSB_ENTRY_MAX;
		memset(keys[i].bytes + keys[i].length, 0, YCSB_ENTRY_MAX - keys[i].length);
	}
	qsort(keys, RECORDS, sizeof(*keys), compare_keys);
	for (uint64_t i = 1; i < RECORDS; i++)
		wrong += memcmp(keys[i - 1].bytes, keys[i].bytes, keys[i - 1].length) >= 0;
	CHECK(wrong == 0);
	free(keys);
}

int
main(void)
{
	check_zipf();
	check_keys(false);
	check_keys(true);
	return check_finish();
}
