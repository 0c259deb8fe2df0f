/*
 * tree.c
 *	  This project's index behind the driver's interface.
 */
#include "base/assert.h"
#include "base/bytes.h"
#include "cluster.h"
#include "keys.h"
#include "sorted.h"

static smart_status
tree_begin(struct ycsb_client *client)
{
	smart_assert(client->scan == NULL);
	return smart_scan_open(client->tree, &client->scan);
}

static void
tree_end(struct ycsb_client *client)
{
	smart_assert(client->scan != NULL);
	smart_scan_close(client->scan);
	client->scan = NULL;
}

static smart_status
add_record(void *argument, const uint8_t *key, size_t key_length, uint64_t record)
{
	uint8_t entry[YCSB_ENTRY_MAX];

	smart_assert(key_length + YCSB_PAYLOAD <= YCSB_ENTRY_MAX);
	memcpy(entry, key, key_length);
	return smart_load_add(argument, entry, ycsb_payload(entry, key_length, record));
}

/* A load on its way, of one tree or, range by range, of several. */
struct loading
{
	struct ycsb_client *client;
	unsigned int fill;  /* percent of a leaf */
	ycsb_record_fn add; /* adds a record to a struct smart_load */
	struct smart_load *load;
	const uint8_t *end; /* where the next range begins; NULL: there is none */
	size_t end_length;
};

/* The next range's tree, if the key belongs there. */
static smart_status
go_on(struct loading *loading, const uint8_t *key, size_t key_length)
{
	struct ycsb_client *client = loading->client;
	smart_status status = SMART_OK;

	if (loading->load != NULL &&
		(loading->end == NULL ||
		 smart_compare_bytes(loading->end, (unsigned int) loading->end_length, key, (unsigned int) key_length) > 0))
		return SMART_OK;
	if (loading->load != NULL)
	{
		smart_assert(client->cluster->leave != NULL);
		status = smart_load_finish(loading->load);
		loading->load = NULL;
		client->cluster->leave(client);
	}
	if (status == SMART_OK && client->cluster->enter != NULL)
		status = client->cluster->enter(client, key, key_length);
	if (status != SMART_OK)
		return status;
	if (client->cluster->enter == NULL || !client->cluster->next_range(client, &loading->end, &loading->end_length))
		loading->end = NULL;
	return smart_load_begin(client->tree, loading->fill, &loading->load);
}

static smart_status
load_record(void *argument, const uint8_t *key, size_t key_length, uint64_t record)
{
	struct loading *loading = argument;
	smart_status status = go_on(loading, key, key_length);

	smart_assert(status != SMART_OK || loading->load != NULL);
	return status == SMART_OK ? loading->add(loading->load, key, key_length, record) : status;
}

static smart_status
load(struct ycsb_client *client, const struct ycsb_options *options, ycsb_record_fn add)
{
	struct loading loading = {.client = client, .fill = options->fill, .add = add};
	smart_status status = ycsb_sorted(options->key_type, options->keys, client->env, load_record, &loading);

	if (loading.load == NULL)
		return status;
	if (status == SMART_OK)
		status = smart_load_finish(loading.load);
	else
		smart_load_abandon(loading.load);
	if (client->cluster->leave != NULL)
		client->cluster->leave(client);
	return status;
}

static smart_status
tree_load(struct ycsb_client *client, const struct ycsb_options *options)
{
	return load(client, options, add_record);
}

static smart_status
tree_lookup(struct ycsb_client *client, const uint8_t *key, size_t length, bool *found)
{
	return smart_tree_lookup(client->tree, key, length, found);
}

static smart_status
tree_insert(struct ycsb_client *client, const uint8_t *entry, size_t key_length, size_t length, bool *added)
{
	return smart_tree_insert(client->tree, entry, key_length, length, added);
}

/* The entry leaves the tree and comes back with another payload.  Of clients that meet there, one does each step. */
static smart_status
tree_update(struct ycsb_client *client, const uint8_t *entry, size_t key_length, size_t length)
{
	bool flag;
	smart_status status = smart_tree_remove(client->tree, entry, key_length, &flag);

	return status == SMART_OK ? smart_tree_insert(client->tree, entry, key_length, length, &flag) : status;
}

static smart_status
tree_scan(struct ycsb_client *client, const uint8_t *key, size_t length, uint64_t wanted, uint64_t *seen)
{
	struct smart_batch batch;
	smart_status status = smart_scan_seek(client->scan, key, length, NULL, 0, false);

	*seen = 0;
	while (status == SMART_OK && *seen < wanted)
	{
		status = smart_scan_next(client->scan, &batch);
		if (status == SMART_OK)
			*seen += batch.count < wanted - *seen ? batch.count : wanted - *seen;
	}
	smart_assert(*seen <= wanted);
	return status == SMART_DONE ? SMART_OK : status;
}

const struct ycsb_index ycsb_tree_index = {
	.begin = tree_begin,
	.end = tree_end,
	.load = tree_load,
	.lookup = tree_lookup,
	.insert = tree_insert,
	.update = tree_update,
	.scan = tree_scan,
	.update_is_removal = true,
};

/* ---- with values ---- */

/* A payload becomes a value behind the key: the entry is longer then.  Its length. */
size_t
ycsb_make_value(uint8_t *entry, size_t key_length, size_t length, uint64_t *value)
{
	*value = 0;
	smart_assert(length - key_length <= sizeof(*value) && key_length + sizeof(*value) <= YCSB_ENTRY_MAX);
	memcpy(value, entry + key_length, length - key_length);
	memcpy(entry + key_length, value, sizeof(*value));
	return key_length + sizeof(*value);
}

static smart_status
add_record_with_value(void *argument, const uint8_t *key, size_t key_length, uint64_t record)
{
	uint8_t entry[YCSB_ENTRY_MAX];
	uint64_t value;

	smart_assert(key_length + YCSB_PAYLOAD <= YCSB_ENTRY_MAX);
	memcpy(entry, key, key_length);
	return smart_load_add(argument, entry,
						  ycsb_make_value(entry, key_length, ycsb_payload(entry, key_length, record), &value));
}

static smart_status
values_load(struct ycsb_client *client, const struct ycsb_options *options)
{
	return load(client, options, add_record_with_value);
}

static smart_status
values_lookup(struct ycsb_client *client, const uint8_t *key, size_t length, bool *found)
{
	uint64_t value;

	return smart_tree_get(client->tree, key, length, &value, found);
}

static smart_status
values_insert(struct ycsb_client *client, const uint8_t *payload_entry, size_t key_length, size_t length, bool *added)
{
	uint8_t entry[YCSB_ENTRY_MAX];
	uint64_t value;

	smart_assert(key_length < length && length <= YCSB_ENTRY_MAX);
	memcpy(entry, payload_entry, length);
	length = ycsb_make_value(entry, key_length, length, &value);
	return smart_tree_insert(client->tree, entry, key_length, length, added);
}

static smart_status
values_update(struct ycsb_client *client, const uint8_t *payload_entry, size_t key_length, size_t length)
{
	uint8_t entry[YCSB_ENTRY_MAX];
	uint64_t value;
	bool found;
	smart_status status;

	smart_assert(key_length < length && length <= YCSB_ENTRY_MAX);
	memcpy(entry, payload_entry, length);
	ycsb_make_value(entry, key_length, length, &value);
	status = smart_tree_update(client->tree, entry, key_length, value, &found);
	return status == SMART_OK && !found ? SMART_CORRUPT : status;
}

const struct ycsb_index ycsb_values_index = {
	.begin = tree_begin,
	.end = tree_end,
	.load = values_load,
	.lookup = values_lookup,
	.insert = values_insert,
	.update = values_update,
	.scan = tree_scan,
};
