/*
 * logged.c
 *	  This project's index within a turn with an owner that has a log, behind the driver's interface.
 */
#include <string.h>

#include "base/assert.h"
#include "cluster.h"

#define LOOKUP_LOOKS 1 /* at the table of changes */
#define CHANGE_LOOKS 3 /* at the table, the log and the table again */

static smart_status
logged_lookup(struct ycsb_client *client, const uint8_t *key, size_t length, bool *found)
{
	uint64_t value;

	smart_assert(client->turn != NULL);
	client->cluster->look(client, LOOKUP_LOOKS);
	return smart_logged_get(client->turn, key, length, &value, found);
}

static smart_status
logged_insert(struct ycsb_client *client, const uint8_t *entry, size_t key_length, size_t length, bool *added)
{
	smart_assert(client->turn != NULL);
	client->cluster->look(client, CHANGE_LOOKS);
	return smart_logged_insert(client->turn, entry, key_length, length, added);
}

static smart_status
logged_update(struct ycsb_client *client, const uint8_t *entry, size_t key_length, size_t length)
{
	bool flag;
	smart_status status;

	smart_assert(client->turn != NULL);
	client->cluster->look(client, 2 * CHANGE_LOOKS);
	status = smart_logged_remove(client->turn, entry, key_length, &flag);
	return status == SMART_OK ? smart_logged_insert(client->turn, entry, key_length, length, &flag) : status;
}

/* What is in the log goes into the tree first. */
static smart_status
logged_scan(struct ycsb_client *client, const uint8_t *key, size_t length, uint64_t wanted, uint64_t *seen)
{
	unsigned int count;
	smart_status status = smart_changes_apply(client->turn, SMART_CHANGES_ALL, &count);

	if (status != SMART_OK)
		return status;
	client->cluster->look(client, count);
	return ycsb_tree_index.scan(client, key, length, wanted, seen);
}

const struct ycsb_index ycsb_logged_index = {
	.lookup = logged_lookup,
	.insert = logged_insert,
	.update = logged_update,
	.scan = logged_scan,
	.update_is_removal = true,
};

/* ---- with values ---- */

static smart_status
values_insert(struct ycsb_client *client, const uint8_t *payload_entry, size_t key_length, size_t length, bool *added)
{
	uint8_t entry[YCSB_ENTRY_MAX];
	uint64_t value;

	smart_assert(key_length < length && length <= YCSB_ENTRY_MAX);
	memcpy(entry, payload_entry, length);
	length = ycsb_make_value(entry, key_length, length, &value);
	return logged_insert(client, entry, key_length, length, added);
}

static smart_status
values_update(struct ycsb_client *client, const uint8_t *payload_entry, size_t key_length, size_t length)
{
	uint8_t entry[YCSB_ENTRY_MAX];
	uint64_t value;
	bool found;
	smart_status status;

	smart_assert(client->turn != NULL && key_length < length && length <= YCSB_ENTRY_MAX);
	memcpy(entry, payload_entry, length);
	ycsb_make_value(entry, key_length, length, &value);
	client->cluster->look(client, CHANGE_LOOKS);
	status = smart_logged_update(client->turn, entry, key_length, value, &found);
	return status == SMART_OK && !found ? SMART_CORRUPT : status;
}

const struct ycsb_index ycsb_logged_values_index = {
	.lookup = logged_lookup,
	.insert = values_insert,
	.update = values_update,
	.scan = logged_scan,
};
