/*
 * sort_test.c
 *	  The two sorts of src/base/sort.h against qsort, on inputs that take each
 *	  of their paths; the interrupt; the stack they need.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "support/check.h"
#include "support/env_thread.h"

static uint64_t seed = 88172645463325252u;
static unsigned int interrupt_after; /* calls of interrupted() until it says so; 0: never */

static void
check(bool good, const char *what, size_t count)
{
	if (!CHECK(good))
		printf("     %s, %zu items\n", what, count);
}

static bool
interrupted(struct smart_env *env)
{
	return interrupt_after > 0 && --interrupt_after == 0;
}

static struct smart_env env = {.interrupted = interrupted};

/* ---- items of words ---- */

static unsigned int compared_words;

static int
compare_words(const void *a, const void *b)
{
	const uint64_t *x = a;
	const uint64_t *y = b;

	for (unsigned int i = 0; i < compared_words; i++)
	{
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	}
	return 0;
}

enum pattern
{
	RANDOM, /* all bytes differ */
	NARROW, /* a few values far down in the last word */
	ASCENDING,
	DESCENDING,
	EQUAL,
	FEW, /* seven values of the first word, the rest random */
	PATTERNS
};

static uint64_t
word_of(enum pattern pattern, size_t i, unsigned int word, unsigned int words)
{
	switch (pattern)
	{
		case RANDOM:
			return test_random(&seed);
		case NARROW:
			return word + 1 == words ? test_random(&seed) % 50000 : 42;
		case ASCENDING:
			return word + 1 == words ? i : 7;
		case DESCENDING:
			return word == 0 ? UINT64_MAX - i : 7;
		case FEW:
			return word == 0 ? (test_random(&seed) % 7) << 56 : test_random(&seed);
		default:
			return 9;
	}
}

static void
test_words(enum pattern pattern, size_t count, unsigned int words)
{
	uint64_t *sorted = malloc((count + 1) * words * 8);
	uint64_t *expected = malloc((count + 1) * words * 8);
	char what[64];

	for (size_t i = 0; i < count; i++)
	{
		for (unsigned int w = 0; w < words; w++)
			expected[i * words + w] = word_of(pattern, i, w, words);
	}
	memcpy(sorted, expected, count * words * 8);
	compared_words = words;
	qsort(expected, count, words * 8, compare_words);
	snprintf(what, sizeof(what), "%u words, pattern %d", words, (int) pattern);
	check(smart_sort_words(sorted, count, words, &env) == SMART_OK, what, count);
	check(memcmp(sorted, expected, count * words * 8) == 0, what, count);
	free(sorted);
	free(expected);
}

/* ---- records ---- */

static int
compare_records(const void *a, const void *b)
{
	const uint8_t *x = ((const struct smart_sort_item *) a)->record;
	const uint8_t *y = ((const struct smart_sort_item *) b)->record;

	return smart_compare_bytes(smart_sort_bytes(x), smart_sort_length(x), smart_sort_bytes(y), smart_sort_length(y));
}

enum shape
{
	SHORT,  /* up to 12 letters */
	MAIL,   /* a common first part, a number, one of a few ends */
	DEEP,   /* hundreds of common bytes */
	STAIRS, /* each one shares more with the next: the deepest recursion that there can be */
	SAME,   /* the same record again and again */
	SHAPES
};

/* Writes record i at out and returns its size; a number at the end makes it no prefix of another. */
static size_t
make_record(enum shape shape, size_t i, uint8_t *out)
{
	size_t length = 0;
	uint16_t stored;
	uint8_t *bytes = out + sizeof(stored);

	switch (shape)
	{
		case SHORT:
			for (size_t n = test_random(&seed) % 12; length < n; length++)
				bytes[length] = (uint8_t) ('a' + test_random(&seed) % 4);
			break;
		case MAIL:
			length = (size_t) sprintf((char *) bytes, "user.%llu@%s.example",
									  (unsigned long long) (test_random(&seed) % 100000),
									  test_random(&seed) % 2 ? "mail" : "post");
			break;
		case DEEP:
			memset(bytes, 'x', 600);
			length =
				600 + (size_t) sprintf((char *) bytes + 600, "%llu", (unsigned long long) (test_random(&seed) % 1000));
			break;
		case STAIRS:
			length = i % 1500;
			memset(bytes, 's', length);
			break;
		default:
			length = (size_t) sprintf((char *) bytes, "the same");
	}
	bytes[length++] = 0;
	if (shape != SAME)
	{
		for (int shift = 24; shift >= 0; shift -= 8)
			bytes[length++] = (uint8_t) (i >> shift);
	}
	stored = (uint16_t) length;
	memcpy(out, &stored, sizeof(stored));
	return sizeof(stored) + length;
}

static void
test_strings(enum shape shape, size_t count)
{
	uint8_t *space = malloc(count * 2048 + 1);
	struct smart_sort_item *items = malloc((count + 1) * sizeof(*items));
	struct smart_sort_item *expected = malloc((count + 1) * sizeof(*items));
	size_t used = 0;
	bool same = true;
	char what[64];

	for (size_t i = 0; i < count; i++)
	{
		items[i].record = space + used;
		used += make_record(shape, i, space + used);
		items[i].head = smart_sort_head(items[i].record, 0);
	}
	memcpy(expected, items, count * sizeof(*items));
	qsort(expected, count, sizeof(*items), compare_records);
	snprintf(what, sizeof(what), "strings, shape %d", (int) shape);
	check(smart_sort_strings(items, count, &env) == SMART_OK, what, count);
	for (size_t i = 0; i < count; i++)
		same &= compare_records(&items[i], &expected[i]) == 0;
	check(same, what, count);
	free(space);
	free(items);
	free(expected);
}

static void
test_interrupt(void)
{
	size_t count = 200000;
	uint64_t *words = malloc(count * 8);
	struct smart_sort_item *items = malloc(count * sizeof(*items));
	uint8_t *space = malloc(count * 24);

	for (size_t i = 0; i < count; i++)
	{
		words[i] = test_random(&seed);
		make_record(SHORT, i, space + i * 24);
		items[i].record = space + i * 24;
		items[i].head = smart_sort_head(items[i].record, 0);
	}
	interrupt_after = 1;
	check(smart_sort_words(words, count, 1, &env) == SMART_INTERRUPTED, "interrupted words", count);
	interrupt_after = 1;
	check(smart_sort_strings(items, count, &env) == SMART_INTERRUPTED, "interrupted strings", count);
	interrupt_after = 0;
	free(words);
	free(items);
	free(space);
}

int
main(void)
{
	static const size_t counts[] = {0, 1, 2, 24, 25, 80, 33, 1000, 20000, 81, 300};

	for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
	{
		for (unsigned int words = 1; words <= SMART_SORT_WORDS_MAX; words++)
		{
			for (int pattern = 0; pattern < PATTERNS; pattern++)
				test_words((enum pattern) pattern, counts[c], words);
		}
		for (int shape = 0; shape < SHAPES; shape++)
			test_strings((enum shape) shape, counts[c]);
	}
	test_words(RANDOM, 300000, 2);
	test_interrupt();
	return check_finish();
}
