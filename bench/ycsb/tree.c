/*
 * tree.c
 *	  This project's index behind the driver's interface.
 */
#include "base/assert.h"
#include "base/bytes.h"
#include "cluster.h"
#include "keys.h"
#include "sorted.h"

#define FILL 100 /* percent of a leaf, as CREATE INDEX fills them */

static smart_status
tree_begin(struct ycsb_client *client)
{
	return smart_scan_open(client->tree, &client->scan);
}

static void
tree_end(struct ycsb_client *client)
{
	smart_scan_close(client->scan);
	client->scan = NULL;
}

static smart_status
add_record(void *argument, const uint8_t *key, size_t key_length, uint64_t record)
{
	uint8_t entry[YCSB_ENTRY_MAX];

	memcpy(entry, key, key_length);
	return smart_load_add(argument, entry, ycsb_payload(entry, key_length, record));
}

static smart_status
tree_load(struct ycsb_client *client, const struct ycsb_options *options)
{
	struct smart_load *load;
	smart_status status = smart_load_begin(client->tree, FILL, &load);

	if (status != SMART_OK)
		return status;
	status = ycsb_sorted(options->key_type, options->keys, client->env, add_record, load);
	if (status == SMART_OK)
		return smart_load_finish(load);
	smart_load_abandon(load);
	return status;
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
