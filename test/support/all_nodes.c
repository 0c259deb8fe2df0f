/*
 * all_nodes.c
 *	  A cache of inner nodes for one client, which has everything it was ever given.
 */
#include <string.h>

#include "support/all_nodes.h"

#define CACHE_MAX 4096

static struct
{
	smart_slot slot;
	uint64_t words[SMART_NODE_WORDS_MAX];
} cache[CACHE_MAX];

static unsigned int cached;

static int
cache_index(smart_slot slot)
{
	for (unsigned int i = 0; i < cached; i++)
	{
		if (smart_slot_address(cache[i].slot) == smart_slot_address(slot))
			return (int) i;
	}
	return -1;
}

/* What a caller's words have room for: the block may be longer. */
static size_t
cached_bytes(smart_slot slot)
{
	return sizeof(uint64_t) * (slot == 0 ? 1 : SMART_NODE_HEAD_WORDS + smart_kind_slots(smart_slot_size(slot)));
}

static bool
cache_find(struct smart_services *services, uint64_t tree, smart_slot slot, uint64_t *words, uint64_t *moment)
{
	int index = cache_index(slot);

	*moment = 0;
	if (index >= 0)
		memcpy(words, cache[index].words, cached_bytes(slot));
	return index >= 0;
}

static void
cache_store(struct smart_services *services, uint64_t tree, smart_slot slot, const uint64_t *words, uint64_t moment)
{
	int index = cache_index(slot);

	if (index < 0 && cached < CACHE_MAX)
		index = (int) cached++;
	if (index < 0)
		return;
	cache[index].slot = slot;
	memcpy(cache[index].words, words, cached_bytes(slot));
}

static void
cache_update(struct smart_services *services, uint64_t tree, smart_slot slot, unsigned int index, uint64_t from,
			 uint64_t to)
{
	int at = cache_index(slot);

	if (at >= 0 && cache[at].words[index] == from)
		cache[at].words[index] = to;
	else if (at >= 0 && cache[at].words[index] != to)
		cache[at] = cache[--cached];
}

static void
cache_drop(struct smart_services *services, uint64_t tree, smart_slot slot)
{
	int index = cache_index(slot);

	if (index >= 0)
		cache[index] = cache[--cached];
}

void
keep_all_nodes(struct tree_client *client)
{
	forget_all_nodes();
	client->services.cache_find = cache_find;
	client->services.cache_store = cache_store;
	client->services.cache_update = cache_update;
	client->services.cache_drop = cache_drop;
}

void
forget_all_nodes(void)
{
	cached = 0;
}
