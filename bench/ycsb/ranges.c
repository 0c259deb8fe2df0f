/*
 * ranges.c
 *	  The ranges of a partitioned tree on a simulated cluster.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "tree/tree.h"
#include "cluster.h"
#include "ranges.h"
#include "sorted.h"

#define WAITS_MAX 100000 /* for an owner */
#define GIVE_MS   2000

/* ---- bounds ---- */

/* Passing all keys in order. */
struct sample
{
	const struct ycsb_options *options;
	struct smart_range *range;
	unsigned int count; /* so far */
	uint64_t passed;    /* keys */
	uint8_t last[YCSB_ENTRY_MAX];
	size_t last_length;
};

static smart_status
sample_key(void *argument, const uint8_t *key, size_t length, uint64_t record)
{
	struct sample *sample = argument;
	const struct ycsb_options *options = sample->options;

	smart_assert(sample->count <= options->partitions && length <= YCSB_ENTRY_MAX);
	if (sample->count < options->partitions && sample->passed >= sample->count * options->keys / options->partitions)
	{
		struct smart_range *range = &sample->range[sample->count];
		unsigned int bytes = sample->count == 0 ? 0 : smart_range_bound(sample->last, sample->last_length, key, length);

		if (sample->count > 0 && bytes == 0)
			return SMART_TOO_LONG;
		smart_assert(bytes <= SMART_RANGE_BOUND_MAX);
		range->bound_length = (uint8_t) bytes;
		memcpy(range->bound, key, bytes);
		sample->count++;
	}
	sample->passed++;
	memcpy(sample->last, key, length);
	sample->last_length = length;
	return SMART_OK;
}

static smart_status
choose_bounds(const struct ycsb_options *options, struct smart_env *env, struct smart_range *range)
{
	struct sample sample = {.options = options, .range = range};
	smart_status status = ycsb_sorted(options->key_type, options->keys, env, sample_key, &sample);

	smart_assert(status != SMART_OK || sample.count == options->partitions);
	return status;
}

/* Empty trees, their roots by turns on all memory nodes. */
static bool
make_roots(const struct ycsb_options *options, struct ycsb_store *store, struct smart_range *range)
{
	smart_slot empty = smart_tree_empty_root();

	for (unsigned int i = 0; i < options->partitions; i++)
	{
		if (i < store->nodes)
			range[i].root = ycsb_store_reserve(store, i, options->partitions * SMART_UNIT);
		else
			range[i].root = range[i - store->nodes].root + SMART_UNIT;
		if (range[i].root == 0)
			return false;
		memcpy(store->base[fabric_node(range[i].root)] + fabric_offset(range[i].root), &empty, sizeof(empty));
		range[i].tree = YCSB_RANGES_FIRST_TREE + i;
	}
	return true;
}

/* ---- opening ---- */

static unsigned int
first_owner(const struct ycsb_ranges *ranges, unsigned int range)
{
	smart_assert(range < ranges->count);
	return (unsigned int) ((uint64_t) range * ranges->compute_nodes / ranges->count);
}

static smart_status
take_all(struct ycsb_ranges *ranges, struct fabric *fabric)
{
	smart_status status = SMART_OK;

	for (unsigned int range = 0; range < ranges->count && status == SMART_OK; range++)
	{
		unsigned int compute = first_owner(ranges, range);
		bool mine = false;

		status = smart_partition_take(ranges->partition[compute], fabric, range, SMART_OWNER_NONE, NULL, &mine);
		smart_assert(status != SMART_OK || mine);
		ranges->owner[range] = compute + 1;
	}
	return status;
}

static smart_status
open_partitions(struct ycsb_ranges *ranges, const struct ycsb_options *options, struct fabric *fabric,
				fabric_address table)
{
	unsigned int clients = options->clients * options->compute_nodes;
	smart_status status = SMART_OK;

	for (unsigned int i = 0; i < options->compute_nodes && status == SMART_OK; i++)
	{
		ranges->partition[i] = ycsb_allocate_table(smart_partition_size(options->partitions, clients));
		if (ranges->partition[i] == NULL)
			return SMART_NO_MEMORY;
		status = smart_partition_open(ranges->partition[i], fabric, table, options->partitions, clients, i + 1);
	}
	return status;
}

bool
ycsb_ranges_open(struct ycsb_ranges *ranges, const struct ycsb_options *options, struct ycsb_store *store,
				 struct fabric *fabric, struct smart_env *env)
{
	fabric_address table = ycsb_store_reserve(store, 0, smart_partition_table_bytes(options->partitions));
	struct smart_range *range = calloc(options->partitions, sizeof(*range));
	smart_status status = SMART_NO_MEMORY;

	smart_assert(options->partitions >= options->compute_nodes && options->partitions <= SMART_RANGES_MAX);
	ranges->count = options->partitions;
	ranges->compute_nodes = options->compute_nodes;
	if (options->move)
	{
		ranges->leaves_at = (options->sorted ? 0 : options->keys) + options->warmup + options->operations / 3;
		ranges->returns_at = ranges->leaves_at + options->operations / 3;
	}
	if (table != 0 && range != NULL && make_roots(options, store, range))
		status = choose_bounds(options, env, range);
	if (status == SMART_OK)
		status = smart_partition_create(fabric, table, range, options->partitions);
	free(range);
	if (status == SMART_OK)
		status = open_partitions(ranges, options, fabric, table);
	if (status == SMART_OK)
		status = take_all(ranges, fabric);
	return status == SMART_OK || ycsb_complain("ranges", status);
}

void
ycsb_ranges_close(struct ycsb_ranges *ranges)
{
	for (unsigned int i = 0; i < SIM_TIMED_NODES_MAX; i++)
		free(ranges->partition[i]);
}

/* ---- moving ---- */

static smart_status
move_range(struct ycsb_ranges *ranges, struct fabric *fabric, struct smart_env *env,
		   const struct ycsb_ranges_logs *logs, unsigned int range, uint32_t to)
{
	/* So that little is left to do when no turn begins any more. */
	smart_status ahead = logs->handover != NULL ? logs->ahead(logs->client, range) : SMART_OK;
	uint64_t begin_ns = env->now_ns(env);
	uint32_t from = ranges->owner[range];
	bool mine = false;
	smart_status status = ahead;

	smart_assert(range < ranges->count);
	smart_assert(from >= 1 && from <= ranges->compute_nodes && to >= 1 && to <= ranges->compute_nodes);
	if (status == SMART_OK)
		status = smart_partition_give(ranges->partition[from - 1], fabric, env, range, to, GIVE_MS, logs->handover);
	if (status == SMART_OK)
		status =
			smart_partition_take(ranges->partition[to - 1], fabric, range, SMART_OWNER_NONE, logs->handover, &mine);
	if (status != SMART_OK || !mine)
		return status == SMART_OK ? SMART_CORRUPT : status;
	ranges->owner[range] = to;
	ranges->moves.count++;
	if (env->now_ns(env) - begin_ns > ranges->moves.longest_ns)
		ranges->moves.longest_ns = env->now_ns(env) - begin_ns;
	return SMART_OK;
}

smart_status
ycsb_ranges_move(struct ycsb_ranges *ranges, struct fabric *fabric, struct smart_env *env,
				 const struct ycsb_ranges_logs *logs)
{
	uint64_t turn = ++ranges->turns;
	unsigned int last = ranges->compute_nodes - 1;
	smart_status status = SMART_OK;

	if (turn != ranges->leaves_at && turn != ranges->returns_at)
		return SMART_OK;
	smart_assert(last > 0);
	/* They return when all have left. */
	for (unsigned int attempt = 0; ranges->moving; attempt++)
		env->pause(env, attempt);
	ranges->moving = true;
	for (unsigned int range = 0; range < ranges->count && status == SMART_OK; range++)
	{
		if (first_owner(ranges, range) == last)
			status =
				move_range(ranges, fabric, env, logs, range, turn == ranges->leaves_at ? 1 + range % last : 1 + last);
	}
	ranges->moving = false;
	return status;
}

/* ---- turns ---- */

smart_status
ycsb_ranges_enter(struct ycsb_ranges *ranges, struct fabric *fabric, struct smart_env *env, unsigned int client,
				  unsigned int range, unsigned int *compute, uint64_t *tenure)
{
	for (unsigned int attempt = 0; attempt < WAITS_MAX; attempt++)
	{
		uint32_t owner = ranges->owner[range];
		uint32_t changes;
		smart_status status;

		smart_assert(owner >= 1 && owner <= ranges->compute_nodes);
		*compute = owner - 1;
		if (smart_partition_enter(ranges->partition[*compute], client, range, tenure))
			return SMART_OK;
		status = smart_partition_owner(ranges->partition[*compute], fabric, range, &owner, &changes);
		if (status != SMART_OK)
			return status;
		smart_assert(owner >= 1 && owner <= ranges->compute_nodes);
		ranges->owner[range] = owner;
		env->pause(env, attempt);
	}
	return SMART_TIMEOUT;
}
