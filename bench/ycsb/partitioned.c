/*
 * partitioned.c
 *	  This project's index in ranges, behind the driver's interface: each operation is a turn with its range's owner.
 */
#include "base/assert.h"
#include "cluster.h"

static const struct ycsb_index *
whole_of(const struct ycsb_client *client)
{
	smart_assert(client->index == &ycsb_partitioned_values_index || client->index == &ycsb_partitioned_index);
	return client->index == &ycsb_partitioned_values_index ? &ycsb_values_index : &ycsb_tree_index;
}

/* Within a turn. */
static const struct ycsb_index *
part_of(const struct ycsb_client *client)
{
	if (client->turn == NULL)
		return whole_of(client);
	return client->index == &ycsb_partitioned_values_index ? &ycsb_logged_values_index : &ycsb_logged_index;
}

/* A turn has ended with status; true: its log was full, and the turn is to be taken again.  attempt: how often it was. */
static bool
take_again(struct ycsb_client *client, smart_status *status, unsigned int attempt)
{
	bool full = *status == SMART_NO_SPACE;

	client->cluster->leave(client);
	if (client->cluster->relieve == NULL || (*status != SMART_OK && !full))
		return false;
	*status = client->cluster->relieve(client, full);
	/* Others may be about it. */
	if (full)
		client->env->pause(client->env, attempt);
	return full && *status == SMART_OK;
}

static smart_status
partitioned_begin(struct ycsb_client *client)
{
	return whole_of(client)->begin(client);
}

static void
partitioned_end(struct ycsb_client *client)
{
	whole_of(client)->end(client);
}

static smart_status
partitioned_load(struct ycsb_client *client, const struct ycsb_options *options)
{
	return whole_of(client)->load(client, options);
}

static smart_status
partitioned_lookup(struct ycsb_client *client, const uint8_t *key, size_t length, bool *found)
{
	smart_status status = client->cluster->enter(client, key, length);

	if (status != SMART_OK)
		return status;
	status = part_of(client)->lookup(client, key, length, found);
	client->cluster->leave(client);
	return status;
}

static smart_status
partitioned_insert(struct ycsb_client *client, const uint8_t *entry, size_t key_length, size_t length, bool *added)
{
	unsigned int attempt = 0;
	smart_status status;

	do
	{
		status = client->cluster->enter(client, entry, key_length);
		if (status != SMART_OK)
			return status;
		status = part_of(client)->insert(client, entry, key_length, length, added);
	} while (take_again(client, &status, attempt++));
	return status;
}

static smart_status
partitioned_update(struct ycsb_client *client, const uint8_t *entry, size_t key_length, size_t length)
{
	unsigned int attempt = 0;
	smart_status status;

	do
	{
		status = client->cluster->enter(client, entry, key_length);
		if (status != SMART_OK)
			return status;
		status = part_of(client)->update(client, entry, key_length, length);
	} while (take_again(client, &status, attempt++));
	return status;
}

/* From one range to the next, with the owner of each. */
static smart_status
partitioned_scan(struct ycsb_client *client, const uint8_t *key, size_t length, uint64_t wanted, uint64_t *seen)
{
	smart_status status;

	*seen = 0;
	do
	{
		uint64_t some = 0;

		status = client->cluster->enter(client, key, length);
		if (status != SMART_OK)
			return status;
		status = part_of(client)->scan(client, key, length, wanted - *seen, &some);
		client->cluster->leave(client);
		smart_assert(status != SMART_OK || some <= wanted - *seen);
		*seen += some;
	} while (status == SMART_OK && *seen < wanted && client->cluster->next_range(client, &key, &length));
	return status;
}

const struct ycsb_index ycsb_partitioned_index = {
	.begin = partitioned_begin,
	.end = partitioned_end,
	.load = partitioned_load,
	.lookup = partitioned_lookup,
	.insert = partitioned_insert,
	.update = partitioned_update,
	.scan = partitioned_scan,
	.update_is_removal = true,
};

const struct ycsb_index ycsb_partitioned_values_index = {
	.begin = partitioned_begin,
	.end = partitioned_end,
	.load = partitioned_load,
	.lookup = partitioned_lookup,
	.insert = partitioned_insert,
	.update = partitioned_update,
	.scan = partitioned_scan,
};
