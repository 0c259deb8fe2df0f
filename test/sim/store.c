/*
 * store.c
 *	  Blocks of the memory nodes: handed out by class, used again at once.
 *
 * A retired block serves again as soon as no operation is open that was open
 * when it was retired, the last one first, so that stale addresses meet new
 * content as often as possible.  A block keeps its class, as in a slab.
 */
#include <string.h>

#include "sim/world.h"

enum block_state
{
	BLOCK_NEVER,
	BLOCK_ALLOCATED,
	BLOCK_RETIRED
};

static uint8_t memory[2][NODE_BYTES] __attribute__((aligned(4096)));

fabric_address
store_root(void)
{
	return fabric_make_address(0, SMART_UNIT);
}

static uint8_t *
bytes_at(fabric_address address)
{
	return world.memory.base[fabric_node(address)] + fabric_offset(address);
}

uint64_t
store_word(fabric_address address)
{
	uint64_t word;

	memcpy(&word, bytes_at(address), sizeof(word));
	return word;
}

static void
set_word(fabric_address address, uint64_t word)
{
	memcpy(bytes_at(address), &word, sizeof(word));
}

void
store_reset(void)
{
	world.memory.nodes = world.plan.memory_nodes;
	world.memory.bytes = NODE_BYTES;
	for (unsigned int node = 0; node < world.memory.nodes; node++)
	{
		world.memory.base[node] = memory[node];
		for (unsigned int unit = 0; unit < world.next_unit[node]; unit++)
			world.blocks[node][unit].class = 0;
		world.next_unit[node] = 2; /* the root's word is in the second unit */
	}
	/* Nobody's block, whatever an earlier history had there. */
	for (unsigned int i = 0; i < OWNERS_UNITS && world.plan.owners; i++)
		world.blocks[0][world.next_unit[0]++] = (struct block){.class = 0};
	for (unsigned int node = 0; node < world.plan.log_copies; node++)
	{
		/* An earlier history's owners had the same numbers. */
		world.logs_at[node] = (uint64_t) world.next_unit[node] * SMART_UNIT;
		memset(memory[node] + world.logs_at[node], 0, LOGS_UNITS * SMART_UNIT);
		for (unsigned int i = 0; i < LOGS_UNITS; i++)
			world.blocks[node][world.next_unit[node]++] = (struct block){.class = 0};
	}
	world.retired_count = 0;
	world.allocated = 0;
	world.moment = 1;
	world.moment_since = world.now;
	set_word(store_root(), smart_tree_empty_root());
}

/* The block that an address lies in; NULL: the root's word, or nothing. */
struct block *
store_block(fabric_address address, fabric_address *start)
{
	struct block *blocks = world.blocks[fabric_node(address)];
	unsigned int unit = (unsigned int) (fabric_offset(address) / SMART_UNIT);

	if (unit >= UNITS || blocks[unit].class == 0)
		return NULL;
	unit = blocks[unit].start;
	*start = fabric_make_address(fabric_node(address), (uint64_t) unit * SMART_UNIT);
	return &blocks[unit];
}

/* The oldest operation that is open. */
static uint64_t
oldest_pin(void)
{
	uint64_t oldest = NEVER;

	for (int i = 0; i <= CLIENTS_MAX; i++)
	{
		const struct client *client = &world.clients[i];

		if (client->state != CLIENT_ABSENT && client->state != CLIENT_DEAD && client->pin < oldest)
			oldest = client->pin;
	}
	return oldest;
}

static void
prepare(smart_class class, fabric_address address)
{
	for (unsigned int i = 0; i < smart_class_bytes(class); i += 8)
	{
		if (world.plan.poison == POISON_ZERO)
			set_word(address + i, 0);
		else if (world.plan.poison == POISON_RANDOM)
			set_word(address + i, dice_roll(&world.dice));
	}
}

static bool
take_retired(smart_class class, fabric_address *address)
{
	uint64_t oldest = oldest_pin();

	for (unsigned int i = world.retired_count; i-- > 0;)
	{
		const struct retired *retired = &world.retired[i];

		if (retired->class != class || retired->at >= oldest)
			continue;
		*address = retired->address;
		world.retired[i] = world.retired[--world.retired_count];
		return true;
	}
	return false;
}

/* A block that was never used: on any memory node, with whatever earlier histories left replaced. */
static bool
take_fresh(smart_class class, fabric_address *address)
{
	unsigned int node = dice_below(&world.dice, world.plan.memory_nodes);
	unsigned int units = smart_class_bytes(class) / SMART_UNIT;
	unsigned int unit = world.next_unit[node];
	struct block *blocks = world.blocks[node];

	if (unit + units > UNITS)
		return false;
	world.next_unit[node] += units;
	for (unsigned int i = 0; i < units; i++)
		blocks[unit + i] = (struct block){.class = class, .start = (uint16_t) unit};
	*address = fabric_make_address(node, (uint64_t) unit * SMART_UNIT);
	memset(bytes_at(*address), 0, smart_class_bytes(class));
	return true;
}

/* The block begins a life. */
static void
begin_life(smart_class class, fabric_address address)
{
	fabric_address start;
	struct block *block = store_block(address, &start);

	smart_assert(block != NULL && start == address);
	for (unsigned int i = 0; i < smart_class_bytes(class) / SMART_UNIT; i++)
		block[i].class = class;
	block->state = BLOCK_ALLOCATED;
	block->sealer = -1;
	block->linked = false;
	block->born = world.now;
	prepare(class, address);
}

static void
begin_moment(void)
{
	world.moment++;
	world.moment_since = world.now;
}

/* A retired block, or, if there may be any, one that was never used. */
static smart_status
take(smart_class class, fabric_address *address, bool fresh)
{
	if (take_retired(class, address))
		begin_moment();
	else if (!fresh || !take_fresh(class, address))
		return SMART_NO_SPACE;
	begin_life(class, *address);
	world.allocated++;
	world_trace("allocates %s of %u bytes at %llx", smart_class_is_node(class) ? "node" : "leaf",
				smart_class_bytes(class), (unsigned long long) *address);
	return SMART_OK;
}

smart_status
store_allocate(smart_class class, fabric_address *address)
{
	bool full = world.running != SOLO && world.plan.full;
	smart_status status;

	if (world.running != SOLO && dice_one_in(&world.dice, world.plan.no_space_one_in))
		return SMART_NO_SPACE;
	status = take(class, address, !full || world.plan.room > 0);
	if (full && status == SMART_OK && world.plan.room > 0)
		world.plan.room--;
	return status;
}

smart_status
store_allocate_spared(smart_class class, fabric_address *address)
{
	return take(class, address, true);
}

smart_status
store_allocate_standby(smart_class class, fabric_address *address)
{
	smart_status status = take(class, address, false);

	if (status != SMART_NO_SPACE || world.plan.standbys == 0)
		return status;
	world.plan.standbys--;
	return take(class, address, true);
}

bool
store_is_unseen(uint64_t since)
{
	return since < oldest_pin();
}

void
store_reuse(smart_class class, fabric_address address)
{
	fabric_address start;
	const struct block *block = store_block(address, &start);

	world_trace("uses %llx again", (unsigned long long) address);
	if (block == NULL || start != address || block->class != class || block->state != BLOCK_ALLOCATED)
	{
		world_violation("block %llx is used again, but not allocated", (unsigned long long) address);
		return;
	}
	begin_life(class, address);
	begin_moment();
}

void
store_retire(smart_class class, fabric_address address)
{
	fabric_address start;
	struct block *block = store_block(address, &start);

	world_trace("retires %llx", (unsigned long long) address);
	if (block == NULL || start != address || block->class != class || block->state != BLOCK_ALLOCATED)
	{
		world_violation("block %llx is retired, but not allocated", (unsigned long long) address);
		return;
	}
	if (world.plan.lasting_moments && dice_one_in(&world.dice, 2))
		begin_moment();
	smart_assert(world.retired_count < RETIRED_MAX);
	block->state = BLOCK_RETIRED;
	world.retired[world.retired_count++] = (struct retired){.address = address, .class = class, .at = world.now};
	world.allocated--;
}

/* ---- recovery ---- */

/* Calls visit for every block that was ever used. */
static void
visit_blocks(void (*visit)(struct block *block, fabric_address address))
{
	for (unsigned int node = 0; node < world.memory.nodes; node++)
	{
		for (unsigned int unit = 2; unit < world.next_unit[node]; unit++)
		{
			if (world.blocks[node][unit].start == unit)
				visit(&world.blocks[node][unit], fabric_make_address(node, (uint64_t) unit * SMART_UNIT));
		}
	}
}

static void
clear_mark(struct block *block, fabric_address address)
{
	block->marked = false;
}

void
store_begin_marks(void)
{
	visit_blocks(clear_mark);
}

bool
store_mark(smart_class class, fabric_address address)
{
	fabric_address start;
	struct block *block = store_block(address, &start);

	if (block == NULL || start != address || block->class != class)
		world_violation("recovery is led to %llx, where no such block is", (unsigned long long) address);
	else if (block->state != BLOCK_ALLOCATED)
		world_violation("block %llx is in the tree, and free or retired", (unsigned long long) address);
	else if (block->marked)
		world_violation("two slots lead to block %llx", (unsigned long long) address);
	else
		block->marked = true;
	return !world_failed();
}

static void
retire_unmarked(struct block *block, fabric_address address)
{
	if (block->state == BLOCK_ALLOCATED && !block->marked)
		store_retire(block->class, address);
}

void
store_end_marks(void)
{
	visit_blocks(retire_unmarked);
	/* No client is left that could have seen them. */
	world.now++;
}

/* At the end no leaf of the tree may be locked, unless clients died or a completion got lost. */
void
store_check_locks(void)
{
	if (world.plan.lost_one_in != 0 || world.died || world.retracted)
		return;
	for (unsigned int node = 0; node < world.memory.nodes; node++)
	{
		for (unsigned int unit = 2; unit < world.next_unit[node]; unit++)
		{
			const struct block *block = &world.blocks[node][unit];
			fabric_address address = fabric_make_address(node, (uint64_t) unit * SMART_UNIT);

			if (block->start != unit || block->state != BLOCK_ALLOCATED || !block->linked ||
				smart_class_is_node(block->class))
				continue;
			if (smart_meta_locked(store_word(smart_leaf_meta_address(address, block->class))))
				world_violation("leaf %llx was left locked", (unsigned long long) address);
		}
	}
}
