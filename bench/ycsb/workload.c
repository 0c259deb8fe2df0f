/*
 * workload.c
 *	  The operations of YCSB's workloads on an index.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "keys.h"
#include "random.h"
#include "workload.h"

#define ZIPF_EXPONENT 0.99

/* A client at work. */
struct worker
{
	struct ycsb_client *client;
	struct ycsb_task *task;
	struct ycsb_measure *measure;
	struct ycsb_zipf zipf; /* over as many records as there were when it was used last */
	uint64_t random;
};

/* Parts of a hundred. */
static const struct
{
	unsigned int read, update, insert, scan, read_modify_write;
} mix[YCSB_WORKLOADS] = {
	[YCSB_LOAD] = {.insert = 100},
	[YCSB_A] = {.read = 50, .update = 50},
	[YCSB_B] = {.read = 95, .update = 5},
	[YCSB_C] = {.read = 100},
	[YCSB_D] = {.read = 95, .insert = 5},
	[YCSB_E] = {.scan = 95, .insert = 5},
	[YCSB_F] = {.read = 50, .read_modify_write = 50},
	[YCSB_BESIDE] = {.insert = 100},
	[YCSB_UPDATES] = {.update = 100},
};

/* ---- which records there are ---- */

static uint8_t *
mark_of(struct ycsb_records *records, uint64_t record)
{
	return &records->ended[record % YCSB_WINDOW];
}

uint64_t
ycsb_records_take(struct ycsb_records *records, struct smart_env *env)
{
	uint64_t record = __atomic_fetch_add(&records->next, 1, __ATOMIC_RELAXED);

	for (unsigned int attempt = 0; record - ycsb_records_present(records) >= YCSB_WINDOW; attempt++)
		env->pause(env, attempt);
	return record;
}

/* Passes all marks that follow; one client at a time. */
static void
advance(struct ycsb_records *records)
{
	uint64_t present = records->present;

	smart_assert(__atomic_load_n(&records->advancing, __ATOMIC_RELAXED) != 0);
	while (__atomic_load_n(mark_of(records, present), __ATOMIC_SEQ_CST) != 0)
	{
		__atomic_store_n(mark_of(records, present), 0, __ATOMIC_RELAXED);
		present++;
	}
	smart_assert(present <= __atomic_load_n(&records->next, __ATOMIC_RELAXED));
	__atomic_store_n(&records->present, present, __ATOMIC_RELEASE);
}

void
ycsb_records_end(struct ycsb_records *records, uint64_t record)
{
	smart_assert(record - ycsb_records_present(records) < YCSB_WINDOW);
	__atomic_store_n(mark_of(records, record), 1, __ATOMIC_SEQ_CST);
	/* A client that cannot advance leaves it to the one that does, which looks at the marks again afterwards. */
	do
	{
		if (__atomic_exchange_n(&records->advancing, 1, __ATOMIC_SEQ_CST) != 0)
			return;
		advance(records);
		__atomic_store_n(&records->advancing, 0, __ATOMIC_SEQ_CST);
	} while (__atomic_load_n(mark_of(records, ycsb_records_present(records)), __ATOMIC_SEQ_CST) != 0);
}

/* ---- which operation, and which record ---- */

static enum ycsb_operation
choose_operation(struct worker *worker)
{
	unsigned int dice = (unsigned int) ycsb_random_below(&worker->random, 100);
	enum ycsb_workload workload = worker->task->workload;

	smart_assert(workload < YCSB_WORKLOADS);
	if (dice < mix[workload].read)
		return YCSB_READ;
	dice -= mix[workload].read;
	if (dice < mix[workload].update)
		return YCSB_UPDATE;
	dice -= mix[workload].update;
	if (dice < mix[workload].insert)
		return YCSB_INSERT;
	dice -= mix[workload].insert;
	smart_assert(dice < mix[workload].scan + mix[workload].read_modify_write);
	return dice < mix[workload].scan ? YCSB_SCAN : YCSB_READ_MODIFY_WRITE;
}

static uint64_t
choose_record(struct worker *worker)
{
	uint64_t present = ycsb_records_present(worker->task->records);
	bool latest = worker->task->workload == YCSB_D;
	uint64_t rank;

	smart_assert(present > 0);
	if (!latest && !worker->task->options->zipf)
		return ycsb_random_below(&worker->random, present);
	if (worker->zipf.n != present)
		ycsb_zipf_init(&worker->zipf, present, ZIPF_EXPONENT);
	rank = ycsb_zipf_draw(&worker->zipf, &worker->random);
	smart_assert(rank < present);
	/* The latest first, or in an order of popularity that has nothing to do with age. */
	return latest ? present - 1 - rank : ycsb_mix(rank) % present;
}

/* ---- operations ---- */

static smart_status
look_up(struct worker *worker)
{
	uint8_t entry[YCSB_ENTRY_MAX];
	size_t key_length = ycsb_key(worker->task->options->key_type, choose_record(worker), entry);
	bool found;
	smart_status status = worker->client->index->lookup(worker->client, entry, key_length, &found);

	if (status == SMART_OK)
		worker->measure->absent += !found;
	return status;
}

static smart_status
update(struct worker *worker, bool look_first)
{
	uint8_t entry[YCSB_ENTRY_MAX];
	size_t key_length = ycsb_key(worker->task->options->key_type, choose_record(worker), entry);
	size_t length = ycsb_payload(entry, key_length, ycsb_random(&worker->random));
	smart_status status = SMART_OK;
	bool found = false;

	if (look_first)
		status = worker->client->index->lookup(worker->client, entry, key_length, &found);
	if (status == SMART_OK && look_first)
		worker->measure->absent += !found;
	return status == SMART_OK ? worker->client->index->update(worker->client, entry, key_length, length) : status;
}

/* Nothing is inserted twice: an entry that was there before came from nowhere. */
static smart_status
insert_new(struct worker *worker, uint8_t entry[YCSB_ENTRY_MAX], size_t key_length, uint64_t number)
{
	size_t length = ycsb_payload(entry, key_length, number);
	bool added;
	smart_status status = worker->client->index->insert(worker->client, entry, key_length, length, &added);

	return status == SMART_OK && !added ? SMART_CORRUPT : status;
}

static smart_status
insert(struct worker *worker)
{
	struct ycsb_records *records = worker->task->records;
	uint64_t record = ycsb_records_take(records, worker->client->env);
	uint8_t entry[YCSB_ENTRY_MAX];
	size_t key_length = ycsb_key(worker->task->options->key_type, record, entry);
	smart_status status = insert_new(worker, entry, key_length, record);

	if (status == SMART_OK)
		ycsb_records_end(records, record);
	return status;
}

static smart_status
insert_beside(struct worker *worker)
{
	uint64_t number = ycsb_records_take_beside(worker->task->records);
	uint8_t entry[YCSB_ENTRY_MAX];
	size_t key_length = ycsb_key_beside(worker->task->options->key_type, choose_record(worker), number, entry);

	return insert_new(worker, entry, key_length, number);
}

static smart_status
scan(struct worker *worker)
{
	const struct ycsb_options *options = worker->task->options;
	uint64_t wanted = options->scan_min + ycsb_random_below(&worker->random, options->scan_max - options->scan_min + 1);
	uint8_t entry[YCSB_ENTRY_MAX];
	size_t key_length = ycsb_key(options->key_type, choose_record(worker), entry);
	uint64_t seen = 0;
	smart_status status = worker->client->index->scan(worker->client, entry, key_length, wanted, &seen);

	smart_assert(options->scan_min <= options->scan_max);
	smart_assert(status != SMART_OK || seen <= wanted);
	worker->measure->entries += seen;
	return status;
}

static smart_status
operate(struct worker *worker, enum ycsb_operation operation)
{
	smart_assert(operation < YCSB_OPERATIONS);
	switch (operation)
	{
		case YCSB_READ:
			return look_up(worker);
		case YCSB_UPDATE:
			return update(worker, false);
		case YCSB_INSERT:
			return worker->task->workload == YCSB_BESIDE ? insert_beside(worker) : insert(worker);
		case YCSB_SCAN:
			return scan(worker);
		default:
			return update(worker, true);
	}
}

/* ---- a client ---- */

static void
give_up(struct worker *worker, const char *what, smart_status status)
{
	smart_assert(status != SMART_OK);
	/* The first one tells; the others stop. */
	if (__atomic_exchange_n(&worker->task->failed, 1, __ATOMIC_RELAXED) == 0)
		fprintf(stderr, "ycsb: workload %s, client %u: %s: %s%s%s\n", ycsb_workload_names[worker->task->workload],
				worker->client->number, what, smart_status_text(status),
				worker->client->fabric->problem[0] != '\0' ? ": " : "", worker->client->fabric->problem);
}

static bool
work_once(struct worker *worker)
{
	struct ycsb_client *client = worker->client;
	enum ycsb_operation operation = choose_operation(worker);
	struct fabric_counters before = client->fabric->counters;
	uint64_t begin_ns = client->env->now_ns(client->env);
	smart_status status;

	if (client->cluster->work != NULL)
		client->cluster->work(client);
	status = operate(worker, operation);
	if (status != SMART_OK)
	{
		give_up(worker, ycsb_operation_names[operation], status);
		return false;
	}
	ycsb_measure_operation(worker->measure, operation, client->env->now_ns(client->env) - begin_ns, &before,
						   &client->fabric->counters);
	return true;
}

void
ycsb_work_off(struct ycsb_client *client, void *argument)
{
	struct ycsb_task *task = argument;
	struct worker worker = {
		.client = client,
		.task = task,
		.measure = &task->measure[client->number],
		.random = ycsb_mix(task->seed) ^ ycsb_mix(client->number + 1),
	};
	uint64_t share = task->operations / task->clients + (client->number < task->operations % task->clients);
	smart_status status = client->index->begin == NULL ? SMART_OK : client->index->begin(client);

	smart_assert(client->number < task->clients);
	if (status != SMART_OK)
	{
		give_up(&worker, "beginning", status);
		return;
	}
	for (; share > 0 && __atomic_load_n(&task->failed, __ATOMIC_RELAXED) == 0; share--)
	{
		if (!work_once(&worker))
			break;
	}
	if (client->index->end != NULL)
		client->index->end(client);
	task->ended_ns[client->number] = client->env->now_ns(client->env);
}
