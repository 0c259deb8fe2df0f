/*
 * descents.c
 *	  Descents that a simulated memory node makes: the daemon's own walk, with a
 *	  scheduling point before every word that it loads.
 */
#include "sim/world.h"
#include "tree/find/walk.h"

static const uint64_t *
find_words(void *argument, fabric_address address, uint32_t length)
{
	uint64_t offset = fabric_offset(address);

	if (fabric_node(address) >= world.memory.nodes || offset + length > world.memory.bytes)
		return NULL;
	return (const uint64_t *) (void *) (world.memory.base[fabric_node(address)] + offset);
}

static uint64_t
load_word(void *argument, const uint64_t *word)
{
	schedule_yield(argument);
	return *word;
}

smart_status
descents_walk(void *client, const struct fabric_descent *descent, struct fabric_path *path)
{
	struct smart_walk_memory memory = {
		.find = find_words,
		.load = load_word,
		.argument = client,
		.exact = world.plan.descents != DESCENTS_HINTS,
	};
	uint8_t reply[FABRIC_PATH_BYTES_MAX];
	uint32_t length = smart_walk(&memory, descent, reply);

	if (!fabric_path_get(reply, length, path))
		world_violation("a memory node's reply is none");
	return SMART_OK;
}
