/*
 * model_test.c
 *	  The tree against a sorted array: random operations by one client, keys of
 *	  every shape, memory that runs out.
 *
 * The array has candidates in order, each with a mark: is it in the tree?
 * After an operation that failed, nothing may have changed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "support/check.h"
#include "support/tree_client.h"

#define ROUNDS         72
#define CANDIDATES_MAX 700
#define OPERATIONS     700

enum shape
{
	SHAPE_SHORT,      /* 7 to 20 bytes */
	SHAPE_FIXED,      /* 8 bytes and a TID */
	SHAPE_DUPLICATES, /* few values, many TIDs */
	SHAPE_PREFIXES,   /* hundreds of bytes in common */
	SHAPE_LONG,       /* up to 2,700 bytes */
	SHAPE_MIXED,
	SHAPES
};

struct candidate
{
	uint8_t *entry;
	unsigned int key_length;
	unsigned int length;
	bool present;
};

struct round
{
	uint64_t random_state;
	enum shape shape;
	unsigned int payload;
	bool failing;
	struct smart_tree_options options;
	struct candidate candidates[CANDIDATES_MAX];
	unsigned int count;
	unsigned int next; /* ascending and descending orders */
	struct test_node *node;
	struct test_client *owner; /* of the trees */
	bool verbs;                /* remote paths */
	struct tree_client *client;
	struct smart_scan *scan;
	uint64_t dead_salt;
	unsigned int dead_quarters; /* what part of the entries a bulk delete removes, */
	size_t dead_tail;           /* as so many of their last bytes tell; 0: all of them */
	unsigned int dead_last;     /* the last candidate that it may remove */
};

static struct round round_;

static unsigned int
below(unsigned int n)
{
	return (unsigned int) (test_random(&round_.random_state) % n);
}

/* ---- candidates ---- */

/* n bytes of any kind but 0, which ends a body: no key is then a prefix of another. */
static void
put_random(uint8_t *bytes, unsigned int n, unsigned int values)
{
	for (unsigned int i = 0; i < n; i++)
		bytes[i] = (uint8_t) (1 + below(values) * (254 / values));
}

static unsigned int
make_body(uint8_t *bytes)
{
	unsigned int prefix;
	unsigned int length;

	switch (round_.shape == SHAPE_MIXED ? (enum shape) below(SHAPE_MIXED) : round_.shape)
	{
		case SHAPE_FIXED:
			put_random(bytes, 8, 254);
			return 8;
		case SHAPE_DUPLICATES:
			memset(bytes, 'd', 5);
			bytes[4] = (uint8_t) (1 + below(4));
			return 5;
		case SHAPE_PREFIXES:
			prefix = 200 + 150 * below(3);
			length = below(12);
			memset(bytes, 'p', prefix);
			put_random(bytes + prefix, length, 3);
			return prefix + length;
		case SHAPE_LONG:
			length = below(4) == 0 ? 2600 : 20 + below(600);
			put_random(bytes, length, 254);
			memset(bytes, 'l', below(length));
			return length;
		default:
			length = below(13);
			put_random(bytes, length, below(2) ? 254 : 3);
			return length;
	}
}

static int
by_key(const void *a, const void *b)
{
	const struct candidate *x = a;
	const struct candidate *y = b;

	return smart_compare_bytes(x->entry, x->key_length, y->entry, y->key_length);
}

static void
make_candidates(unsigned int wanted)
{
	unsigned int kept = 0;

	for (round_.count = 0; round_.count < wanted; round_.count++)
	{
		struct candidate *candidate = &round_.candidates[round_.count];
		uint8_t body[4096];
		unsigned int length = make_body(body);

		body[length++] = 0;
		for (unsigned int i = 0; i < 6; i++)
			body[length++] = (uint8_t) (i < 4 ? 0 : below(i == 4 ? 3 : 256));
		candidate->key_length = length;
		for (unsigned int i = 0; i < round_.payload; i++)
			body[length++] = (uint8_t) (7 * i + 1);
		candidate->length = length;
		candidate->present = false;
		candidate->entry = malloc(length);
		if (candidate->entry == NULL)
			abort();
		memcpy(candidate->entry, body, length);
	}
	qsort(round_.candidates, round_.count, sizeof(round_.candidates[0]), by_key);
	for (unsigned int i = 0; i < round_.count; i++)
	{
		if (kept > 0 && by_key(&round_.candidates[kept - 1], &round_.candidates[i]) == 0)
			free(round_.candidates[i].entry);
		else
			round_.candidates[kept++] = round_.candidates[i];
	}
	round_.count = kept;
}

/* Any, or in runs upwards and downwards. */
static struct candidate *
choose(void)
{
	switch (round_.random_state >> 40 & 3)
	{
		case 0:
			round_.next = (round_.next + 1) % round_.count;
			break;
		case 1:
			round_.next = (round_.next + round_.count - 1) % round_.count;
			break;
		default:
			round_.next = below(round_.count);
			break;
	}
	return &round_.candidates[round_.next];
}

/* ---- operations ---- */

static void
fail_memory(bool on)
{
	round_.client->fail_one_in = on && round_.failing ? 5 : 0;
	round_.client->client->thread.fail_one_in = on && round_.failing ? 5 : 0;
}

/* Was it done?  A failure is right only if memory was made to fail, and only of these kinds. */
static bool
done(smart_status status)
{
	if (status == SMART_OK)
		return true;
	CHECK(round_.failing && (status == SMART_NO_MEMORY || status == SMART_NO_SPACE));
	return false;
}

static void
insert(void)
{
	struct candidate *candidate = choose();
	bool added;

	if (!done(
			smart_tree_insert(round_.client->tree, candidate->entry, candidate->key_length, candidate->length, &added)))
		return;
	CHECK(added == !candidate->present);
	candidate->present = true;
}

static void
remove_one(void)
{
	struct candidate *candidate = choose();
	bool removed;

	if (!done(smart_tree_remove(round_.client->tree, candidate->entry, candidate->key_length, &removed)))
		return;
	CHECK(removed == candidate->present);
	candidate->present = false;
}

static void
lookup(void)
{
	const struct candidate *candidate = choose();
	bool found;

	if (done(smart_tree_lookup(round_.client->tree, candidate->entry, candidate->key_length, &found)))
		CHECK(found == candidate->present);
}

/* ---- scans ---- */

struct bounds
{
	uint8_t from[4200];
	uint8_t to[4200];
	size_t from_length;
	size_t to_length;
};

static size_t
make_bound(uint8_t *bytes, size_t least)
{
	const struct candidate *candidate = choose();
	size_t length = below(2) ? candidate->key_length : below(candidate->key_length + 1);

	if (length < least)
		length = least;
	memcpy(bytes, candidate->entry, length);
	if (length > 0 && below(3) == 0)
		bytes[length - 1] = (uint8_t) below(256);
	return length;
}

static bool
within(const struct bounds *bounds, const struct candidate *candidate)
{
	return candidate->present &&
		   smart_compare_bytes(candidate->entry, candidate->length, bounds->from, bounds->from_length) >= 0 &&
		   (bounds->to_length == 0 ||
			smart_compare_bytes(candidate->entry, candidate->length, bounds->to, bounds->to_length) < 0);
}

static bool
is_item(const struct smart_batch *batch, uint32_t i, const struct candidate *candidate)
{
	const struct smart_item *item = &batch->items[i];

	return batch->prefix_length + (unsigned int) item->length == candidate->length &&
		   memcmp(candidate->entry, batch->prefix, batch->prefix_length) == 0 &&
		   memcmp(candidate->entry + batch->prefix_length, batch->bytes + item->offset, item->length) == 0;
}

/* Seeks what the scan has not returned. */
static smart_status
begin_anew(bool backward)
{
	static uint8_t from[SMART_KEY_MAX + 1];
	static uint8_t to[SMART_KEY_MAX + 1];
	uint32_t from_length;
	uint32_t to_length;

	if (!smart_scan_rest(round_.scan, from, &from_length, to, &to_length))
		return SMART_OK;
	return smart_scan_seek(round_.scan, from, from_length, to, to_length, backward);
}

/* Runs a scan over bounds against the array; true: every entry came, once, in order. */
static bool
compare_scan(const struct bounds *bounds, bool backward, smart_status *status)
{
	struct smart_batch batch;
	int step = backward ? -1 : 1;
	int at = backward ? (int) round_.count - 1 : 0;

	*status = smart_scan_seek(round_.scan, bounds->from, bounds->from_length, bounds->to, bounds->to_length, backward);
	while (*status == SMART_OK && (*status = smart_scan_next(round_.scan, &batch)) == SMART_OK)
	{
		if (batch.count == 0)
			return false;
		for (uint32_t i = 0; i < batch.count; i++)
		{
			while (at >= 0 && at < (int) round_.count && !within(bounds, &round_.candidates[at]))
				at += step;
			if (at < 0 || at >= (int) round_.count ||
				!is_item(&batch, backward ? batch.count - 1 - i : i, &round_.candidates[at]))
				return false;
			at += step;
		}
		if (below(8) == 0)
			*status = begin_anew(backward);
	}
	while (at >= 0 && at < (int) round_.count && !within(bounds, &round_.candidates[at]))
		at += step;
	return *status != SMART_DONE || at < 0 || at >= (int) round_.count;
}

static void
scan(void)
{
	static struct bounds bounds;
	smart_status status;
	bool right;

	if (round_.scan == NULL && !done(smart_scan_open(round_.client->tree, &round_.scan)))
		return;
	bounds.from_length = below(4) == 0 ? 0 : make_bound(bounds.from, 0);
	bounds.to_length = below(4) == 0 ? 0 : make_bound(bounds.to, 1);
	right = compare_scan(&bounds, below(2) != 0, &status);
	CHECK(right);
	if (status != SMART_DONE)
		done(status);
}

/* ---- whole trees ---- */

static bool
is_dead(void *argument, const uint8_t *entry, size_t length)
{
	uint64_t state = round_.dead_salt;
	size_t tail = round_.dead_tail == 0 || round_.dead_tail > length ? length : round_.dead_tail;

	for (size_t i = length - tail; i < length; i++)
		state = state * 31 + entry[i];
	return test_random(&state) % 4 < round_.dead_quarters;
}

/* Which of them are there now? */
static void
learn(void)
{
	for (unsigned int i = 0; i < round_.count; i++)
		CHECK(smart_tree_lookup(round_.client->tree, round_.candidates[i].entry, round_.candidates[i].key_length,
								&round_.candidates[i].present) == SMART_OK);
}

/* Which entries are dead, among those up to a candidate or among all. */
static void
choose_dead(bool up_to_one)
{
	round_.dead_salt = test_random(&round_.random_state);
	round_.dead_quarters = below(5);
	round_.dead_tail = below(2) == 0 ? 0 : 1 + below(12);
	round_.dead_last = up_to_one ? below(round_.count) : round_.count - 1;
}

/* Takes dead entries out of one leaf, where one of the candidates belongs. */
static void
weed(void)
{
	const struct candidate *chosen = &round_.candidates[below(round_.count)];
	bool was[CANDIDATES_MAX] = {false};
	uint64_t removed = 0;
	uint64_t gone = 0;
	bool ended;

	choose_dead(false);
	for (unsigned int i = 0; i < round_.count; i++)
		was[i] = round_.candidates[i].present;
	ended = done(smart_tree_weed(round_.client->tree, chosen->entry, chosen->key_length, is_dead, NULL, &removed));
	fail_memory(false);
	learn();
	for (unsigned int i = 0; i < round_.count; i++)
	{
		const struct candidate *candidate = &round_.candidates[i];

		gone += was[i] && !candidate->present;
		CHECK(was[i] == candidate->present || (was[i] && is_dead(NULL, candidate->entry, candidate->length)));
	}
	CHECK(!ended || gone == removed);
	CHECK(!ended || !chosen->present || !is_dead(NULL, chosen->entry, chosen->length));
	fail_memory(true);
}

/* Is a candidate to go? */
static bool
goes(unsigned int i)
{
	const struct candidate *candidate = &round_.candidates[i];

	return i <= round_.dead_last && is_dead(NULL, candidate->entry, candidate->length);
}

/* smart_next_key_fn: candidates are in order. */
static bool
next_dead(void *argument, const uint8_t *from, size_t from_length, const uint8_t **key, size_t *key_length)
{
	for (unsigned int i = 0; i < round_.count; i++)
	{
		const struct candidate *candidate = &round_.candidates[i];

		if (!goes(i) || smart_compare_bytes(candidate->entry, candidate->key_length, from, from_length) < 0)
			continue;
		*key = candidate->entry;
		*key_length = candidate->key_length;
		return true;
	}
	return false;
}

/* What a bulk delete that removes nothing tells of. */
struct told
{
	unsigned int next; /* candidate */
	uint64_t count;
	bool right;
};

/* smart_found_fn: each dead candidate that is there, in order. */
static void
told_of(void *argument, const uint8_t *entry, size_t length)
{
	struct told *told = argument;

	while (told->next < round_.count && !(round_.candidates[told->next].present && goes(told->next)))
		told->next++;
	told->right = told->right && told->next < round_.count && round_.candidates[told->next].length == length &&
				  memcmp(round_.candidates[told->next].entry, entry, length) == 0;
	told->next++;
	told->count++;
}

static void
find_dead(uint64_t present, uint64_t dead)
{
	struct told told = {.right = true};
	const struct smart_victims victims = {.dead = is_dead,
										  .tail = round_.dead_tail,
										  .found = told_of,
										  .argument = &told};
	uint64_t visited;
	uint64_t removed;

	if (!done(smart_tree_bulk_delete(round_.client->tree, &victims, NULL, &visited, &removed)))
		return;
	CHECK(told.right && told.count == dead && visited == present && removed == 0);
}

/* smart_found_fn: what is removed meanwhile; more may be told where memory fails. */
static void
told_of_removed(void *argument, const uint8_t *entry, size_t length)
{
	bool *told = argument;
	unsigned int i = 0;

	while (i < round_.count &&
		   (round_.candidates[i].length != length || memcmp(round_.candidates[i].entry, entry, length) != 0))
		i++;
	CHECK(i < round_.count && goes(i));
	if (i < round_.count)
		told[i] = true;
}

/* All that is dead; either by a look at every entry, or by its keys, which may be those up to one. */
static void
bulk_delete(void)
{
	bool told[CANDIDATES_MAX] = {false};
	bool by_keys = below(2) == 0;
	struct smart_victims victims = {.dead = is_dead, .at_once = below(2) == 0, .argument = told};
	bool ended;
	uint64_t visited;
	uint64_t removed;
	uint64_t present = 0;
	uint64_t dead = 0;

	choose_dead(by_keys && below(2) == 0);
	victims.tail = round_.dead_tail;
	if (victims.at_once)
		victims.found = told_of_removed;
	for (unsigned int i = 0; i < round_.count; i++)
	{
		present += round_.candidates[i].present;
		dead += round_.candidates[i].present && goes(i);
	}
	if (!by_keys && below(2) == 0)
		find_dead(present, dead);
	if (by_keys)
	{
		victims.last = round_.candidates[round_.dead_last].entry;
		victims.last_length = round_.candidates[round_.dead_last].key_length;
		ended = done(smart_tree_remove_many(round_.client->tree, &victims, next_dead, &removed));
	}
	else
		ended = done(smart_tree_bulk_delete(round_.client->tree, &victims, NULL, &visited, &removed));
	if (!ended)
	{
		/* It went some way. */
		bool was[CANDIDATES_MAX] = {false};

		for (unsigned int i = 0; i < round_.count; i++)
			was[i] = round_.candidates[i].present;
		fail_memory(false);
		learn();
		for (unsigned int i = 0; i < round_.count; i++)
			CHECK(was[i] == round_.candidates[i].present || (was[i] && goes(i) && (told[i] || !victims.at_once)));
		fail_memory(true);
		return;
	}
	CHECK((by_keys || visited == present) && removed == dead);
	for (unsigned int i = 0; i < round_.count; i++)
	{
		if (!goes(i))
			continue;
		CHECK(!victims.at_once || told[i] == round_.candidates[i].present);
		round_.candidates[i].present = false;
	}
}

struct walk
{
	unsigned int at;
	bool right;
};

static bool
walk_entry(void *argument, const uint8_t *entry, size_t length)
{
	struct walk *walk = argument;

	while (walk->at < round_.count && !round_.candidates[walk->at].present)
		walk->at++;
	walk->right = walk->right && walk->at < round_.count && round_.candidates[walk->at].length == length &&
				  memcmp(round_.candidates[walk->at].entry, entry, length) == 0;
	walk->at++;
	return true;
}

static void
verify(void)
{
	struct walk walk = {.right = true};
	struct smart_verify_report report;
	char message[256] = "";
	uint64_t present = 0;
	smart_status status = smart_tree_verify(round_.client->tree, walk_entry, &walk, &report, message, sizeof(message));

	if (!CHECK(status == SMART_OK))
		printf("%s\n", message);
	for (unsigned int i = 0; i < round_.count; i++)
		present += round_.candidates[i].present;
	CHECK(walk.right && report.entries == present);
	CHECK(report.bytes_used <= report.bytes_blocks);
	CHECK(report.pending == 0 || round_.failing);
}

/* A new tree instead of the old one, whose blocks all go back. */
static void
start_anew(void)
{
	char message[256] = "";

	if (round_.scan != NULL)
		smart_scan_close(round_.scan);
	round_.scan = NULL;
	if (round_.client != NULL)
	{
		verify();
		tree_client_close(round_.client);
		CHECK(smart_space_drop_tree(&round_.owner->client->space, round_.options.id));
		if (!CHECK(smart_space_verify(&round_.owner->client->space, message, sizeof(message)) == SMART_OK))
			printf("%s\n", message);
	}
	round_.options.id = test_tree_create(round_.owner, &round_.options.root);
	round_.client = tree_client_open(round_.node, &round_.options, round_.verbs, test_random(&round_.random_state));
	for (unsigned int i = 0; i < round_.count; i++)
		round_.candidates[i].present = false;
}

static void
load(void)
{
	struct smart_load *load;
	smart_status status = smart_load_begin(round_.client->tree, 10 + below(91), &load);
	unsigned int skip = 1 + below(4);
	unsigned int i;

	if (!done(status))
		return;
	for (i = 0; i < round_.count && status == SMART_OK; i += skip)
		status = smart_load_add(load, round_.candidates[i].entry, round_.candidates[i].length);
	if (status == SMART_OK && round_.count > 1 && below(8) == 0)
	{
		CHECK(smart_load_add(load, round_.candidates[0].entry, round_.candidates[0].length) == SMART_UNSORTED);
		status = SMART_UNSORTED;
	}
	if (status != SMART_OK || below(8) == 0)
	{
		CHECK(status == SMART_OK || status == SMART_UNSORTED || !done(status));
		smart_load_abandon(load);
		return;
	}
	if (!done(smart_load_finish(load)))
		return;
	for (i = 0; i < round_.count; i += skip)
		round_.candidates[i].present = true;
}

/* ---- rounds ---- */

static void
operate(void)
{
	unsigned int dice = below(1000);

	fail_memory(true);
	if (dice < 450)
		insert();
	else if (dice < 750)
		remove_one();
	else if (dice < 880)
		lookup();
	else if (dice < 985)
		scan();
	else if (dice < 987)
		bulk_delete();
	else if (dice < 989)
		weed();
	fail_memory(false);
	if (dice >= 989 && dice < 999)
		verify();
	else if (dice == 999)
	{
		start_anew();
		fail_memory(true);
		if (below(2))
			load();
		fail_memory(false);
	}
}

static unsigned int
fixed_length(void)
{
	return (round_.shape == SHAPE_FIXED ? 8 : 5) + 7 + round_.payload;
}

static void
run_round(struct test_node *node, unsigned int number)
{
	memset(&round_, 0, sizeof(round_));
	round_.node = node;
	round_.owner = test_client_open(node, number);
	round_.verbs = number % 3 == 2;
	round_.random_state = number * UINT64_C(0x9e3779b97f4a7c15);
	round_.shape = (enum shape)(number % SHAPES);
	round_.payload = below(3) == 0 ? below(40) : 0;
	round_.failing = number / SHAPES % 3 == 2;
	round_.options.leaf_size = (1 + below(below(2) ? 64 : 4)) * 64;
	if ((round_.shape == SHAPE_FIXED || round_.shape == SHAPE_DUPLICATES) && below(3))
		round_.options.fixed_length = fixed_length();
	round_.options.shared = below(2) != 0;
	round_.options.tiny_nodes = (uint8_t) (below(3) == 0 ? 2 + below(3) : 0);
	make_candidates(30 + below(CANDIDATES_MAX - 30));
	start_anew();
	if (below(2))
		load();
	for (unsigned int i = 0; i < OPERATIONS; i++)
		operate();
	start_anew();
	verify();
	tree_client_close(round_.client);
	test_client_close(round_.owner);
	for (unsigned int i = 0; i < round_.count; i++)
		free(round_.candidates[i].entry);
}

int
main(void)
{
	struct test_node *node = test_node_open(8, 256 << 20);
	struct test_client *first = test_client_open(node, 1);
	fabric_address block;
	fabric_address root;
	uint64_t id = test_tree_create(first, &root);

	/* Verbs reach the region as large as it is when a handle is opened: let it grow first. */
	for (int i = 0; i < 2000; i++)
		CHECK(smart_space_allocate(&first->client->space, id, SMART_CLASS_LEAF(127), &block) == SMART_OK);
	CHECK(smart_space_drop_tree(&first->client->space, id));
	test_client_close(first);
	for (unsigned int number = 0; number < ROUNDS; number++)
		run_round(node, number);
	test_node_close(node);
	return check_finish();
}
