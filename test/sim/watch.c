/*
 * watch.c
 *	  Sees every request take effect: what each CAS means, whether the protocol
 *	  allows it, and how often each kind of change came about.
 */
#include <inttypes.h>
#include <string.h>

#include "sim/watch.h"
#include "sim/world.h"

uint64_t watch_counts[WATCH_COUNT];

const char *const watch_names[WATCH_COUNT] = {"appends",
											  "narrowings",
											  "seals",
											  "activations",
											  "installs",
											  "fills",
											  "rewrites",
											  "leaf drops",
											  "downs",
											  "node replacements",
											  "header splits",
											  "node drops",
											  "path compressions",
											  "freezes",
											  "node deaths",
											  "locks of leaves",
											  "locks met",
											  "leaves finished by others",
											  "nodes finished by others",
											  "lost CASes",
											  "delegated READs",
											  "combined entries",
											  "entries given back",
											  "cached results",
											  "cached results refused",
											  "leaf hints",
											  "keys twice in a leaf",
											  "recovered blocks",
											  "blocks of standbys",
											  "inserts of several",
											  "installs of nodes",
											  "updates of values",
											  "leaves marked as updated",
											  "values frozen",
											  "values written over",
											  "ranges given away",
											  "changes logged",
											  "logged changes applied",
											  "logs found full",
											  "logs settled",
											  "leaf copies found",
											  "leaf copies found by scans",
											  "promises",
											  "promises made final",
											  "promises taken back",
											  "parts of nodes READ"};

static void
illegal(const char *what, fabric_address address, uint64_t from, uint64_t to)
{
	if (world.settings.watch)
		world_violation("%s at %" PRIx64 ": %" PRIx64 " -> %" PRIx64, what, address, from, to);
}

/* The block that a slot leads to is linked now, and what lies below it. */
static void
note_linked(smart_slot slot)
{
	unsigned int words = smart_slot_is_node(slot) ? smart_kind_bytes(smart_slot_size(slot)) / 8 : 0;
	fabric_address start;
	struct block *block;

	if (!smart_slot_used(slot) || smart_slot_is_empty(slot))
		return;
	block = store_block(smart_slot_address(slot), &start);
	if (block != NULL)
		block->linked = true;
	for (unsigned int i = SMART_NODE_HEAD_WORDS; i < words; i++)
		note_linked(store_word(smart_slot_address(slot) + 8 * (uint64_t) i));
}

/* C5a: what was promised is promised anew, made final, or taken back.  False: it is another change. */
static bool
watch_promise(fabric_address address, uint64_t from, uint64_t to)
{
	bool grows = smart_meta_used(to) > smart_meta_used(from);
	bool same = smart_meta_state(from) == SMART_LIVE && smart_meta_state(to) == SMART_LIVE &&
				smart_meta_hi(from) == smart_meta_hi(to) && !smart_meta_locked(from);

	if (smart_meta_promised(from) == 0 && smart_meta_promised(to) == 0)
		return false;
	if (smart_meta_promised(to) > 0)
	{
		if (!same || !grows || smart_meta_locked(to) || !world.plan.promises)
			illegal("a leaf promises that may not", address, from, to);
		watch_counts[WATCH_PROMISE]++;
	}
	else if (same && to == smart_meta_settled(from))
		watch_counts[WATCH_PROMISE_FINAL]++;
	else if (same && smart_meta_locked(to) && smart_meta_used(to) < smart_meta_used(from))
	{
		/* Locked as by a client that has died. */
		watch_counts[WATCH_PROMISE_BACK]++;
		world.retracted = true;
	}
	else
		return false;
	return true;
}

static void
watch_meta(struct client *client, struct block *block, fabric_address address, uint64_t from, uint64_t to)
{
	enum smart_block_state before = smart_meta_state(from);
	enum smart_block_state after = smart_meta_state(to);

	if (watch_promise(address, from, to))
		return;
	/* Who takes the lock has seen that everything is there. */
	from = smart_meta_settled(from);
	if (before == SMART_LIVE && (from ^ to) == SMART_META_LOCKED)
	{
		watch_counts[WATCH_LOCK] += smart_meta_locked(to);
		return;
	}
	if (before == SMART_LIVE && (from ^ to) == SMART_META_UPDATED)
	{
		if (smart_meta_locked(from) || !world.plan.values || (to & SMART_META_UPDATED) == 0)
			illegal("a leaf is marked that may not be", address, from, to);
		watch_counts[WATCH_MARK]++;
		return;
	}
	if (((from ^ to) & SMART_META_UPDATED) != 0)
		illegal("a leaf's mark changes", address, from, to);
	if (before == after)
	{
		bool appends = smart_meta_used(to) > smart_meta_used(from) && smart_meta_hi(to) == smart_meta_hi(from);
		bool narrows = smart_meta_hi(to) < smart_meta_hi(from) && smart_meta_used(to) == smart_meta_used(from);

		/* Only who holds the lock does either; an append ends it. */
		if (smart_meta_locked(from) != world.plan.shared || smart_meta_locked(to) != (narrows && world.plan.shared))
			illegal("a leaf changes that is not locked", address, from, to);

		if (before != SMART_LIVE || appends == narrows)
			illegal("meta changes as no rule says", address, from, to);
		watch_counts[appends ? WATCH_APPEND : WATCH_NARROW]++;
		client->appends += appends;
		return;
	}
	if ((after == SMART_SEALED ? smart_meta_sealed(from) : smart_meta_with_state(from, after)) != to ||
		!((before == SMART_NEW && after == SMART_LIVE) || (before == SMART_LIVE && after == SMART_SEALED)))
		illegal("a leaf's state goes back", address, from, to);
	if (after == SMART_LIVE && !block->linked)
		illegal("a leaf becomes live that is not linked", address, from, to);
	watch_counts[after == SMART_LIVE ? WATCH_ACTIVATE : WATCH_SEAL]++;
	if (after == SMART_SEALED)
		block->sealer = (int8_t) client->number;
}

/* V1, V3: a word of a leaf's values. */
static void
watch_value(const struct block *block, fabric_address start, fabric_address address, uint64_t from, uint64_t to)
{
	uint64_t meta = store_word(smart_leaf_meta_address(start, block->class));

	if (!smart_value_written(from) || !smart_value_written(to) || smart_value_frozen(from) ||
		(meta & SMART_META_UPDATED) == 0)
		illegal("a value changes that may not", address, from, to);
	if (smart_value_frozen(to) && to != (from | SMART_VALUE_FROZEN))
		illegal("a value changes as it is frozen", address, from, to);
	watch_counts[smart_value_frozen(to) ? WATCH_VALUE_FREEZE : WATCH_UPDATE]++;
}

/* Is one of the node's slots a link to old? */
static bool
holds(smart_slot node, smart_slot old)
{
	unsigned int words = smart_kind_bytes(smart_slot_size(node)) / 8;

	for (unsigned int i = SMART_NODE_HEAD_WORDS; i < words; i++)
	{
		uint64_t slot = store_word(smart_slot_address(node) + 8 * (uint64_t) i);

		if (smart_slot_is_node(slot) && smart_slot_address(slot) == smart_slot_address(old))
			return true;
	}
	return false;
}

static void
watch_old_block(const struct client *client, smart_slot from)
{
	fabric_address start;
	const struct block *block = store_block(smart_slot_address(from), &start);

	if (block == NULL || start != smart_slot_address(from))
	{
		illegal("a slot led to no block", smart_slot_address(from), from, 0);
		return;
	}
	if (block->sealer >= 0 && block->sealer != client->number)
		watch_counts[smart_slot_is_leaf(from) ? WATCH_LEAF_BY_OTHER : WATCH_NODE_BY_OTHER]++;
	if (smart_slot_is_leaf(from) &&
		smart_meta_state(store_word(smart_leaf_meta_address(start, smart_slot_size(from)))) != SMART_SEALED)
		illegal("a leaf that is not sealed is replaced", start, from, 0);
}

static void
watch_node_slot(const struct client *client, fabric_address address, smart_slot from, smart_slot to)
{
	if (smart_slot_is_node(to) && holds(to, from))
	{
		watch_counts[WATCH_HEADER_SPLIT]++;
		return;
	}
	watch_old_block(client, from);
	if (smart_slot_is_empty(to))
		watch_counts[WATCH_NODE_DROP]++;
	else if (smart_slot_is_leaf(to))
		illegal("a node becomes a leaf", address, from, to);
	else if (holds(from, to))
		watch_counts[WATCH_COMPRESS]++;
	else
		watch_counts[WATCH_NODE_REPLACE]++;
}

static void
watch_slot(struct client *client, struct block *block, fabric_address address, smart_slot from, smart_slot to)
{
	note_linked(to);
	if (smart_slot_frozen(from) || to == 0 || smart_slot_used(from) > smart_slot_used(to))
		illegal("a slot changes that may not", address, from, to);
	else if (smart_slot_frozen(to))
	{
		if (block == NULL || (from | SMART_SLOT_FROZEN) != to)
			illegal("a frozen slot is written", address, from, to);
		else if (block->sealer < 0)
			block->sealer = (int8_t) client->number;
		watch_counts[WATCH_FREEZE]++;
	}
	else if (from == 0)
		watch_counts[smart_slot_is_node(to) ? WATCH_INSTALL_NODE : WATCH_INSTALL]++;
	else if (smart_slot_pk(from) != smart_slot_pk(to))
		illegal("a partial key changes", address, from, to);
	else if (smart_slot_is_empty(from))
	{
		if (!smart_slot_is_leaf(to))
			illegal("an empty range becomes something else than a leaf", address, from, to);
		watch_counts[WATCH_FILL]++;
	}
	else if (smart_slot_is_node(from))
		watch_node_slot(client, address, from, to);
	else
	{
		watch_old_block(client, from);
		watch_counts[smart_slot_is_leaf(to) ? WATCH_REWRITE : smart_slot_is_empty(to) ? WATCH_LEAF_DROP : WATCH_DOWN]++;
	}
}

static void
watch_header(const struct block *block, fabric_address address, uint64_t from, uint64_t to)
{
	enum smart_block_state before = smart_node_state(from);
	enum smart_block_state after = smart_node_state(to);

	if (smart_node_with_state(from, after) != to ||
		!((before == SMART_NEW && after == SMART_LIVE) || (before == SMART_LIVE && after == SMART_DEAD)))
		illegal("a node's header changes as no rule says", address, from, to);
	if (after == SMART_LIVE && !block->linked)
		illegal("a node becomes live that is not linked", address, from, to);
	watch_counts[after == SMART_LIVE ? WATCH_ACTIVATE : WATCH_NODE_DEATH]++;
}

/* A CAS that takes a leaf's lock, or lets it go, and has found something else. */
static void
watch_lost_lock(const struct fabric_request *request)
{
	if (smart_meta_locked(request->operand))
		watch_counts[WATCH_LOCK_MET]++;
	else if (smart_meta_state(request->result) == SMART_LIVE && world.plan.lost_one_in == 0)
		illegal("a lock was taken over", request->remote, request->compare, request->result);
}

/* V5: a value is written over in a leaf that is linked and not sealed. */
static void
watch_overwrite(const struct fabric_request *request)
{
	fabric_address start = 0;
	struct block *block = store_block(request->remote, &start);
	uint64_t meta;

	if (block == NULL || smart_class_is_node(block->class) || !world.plan.values || world.plan.shared)
		return;
	meta = store_word(start + smart_class_bytes(block->class) - SMART_LEAF_REAR_BYTES);
	if (!block->linked)
		return; /* of a leaf that is being made, or appended to */
	if (smart_meta_state(meta) == SMART_SEALED)
		illegal("a value is written over in a sealed leaf", request->remote, meta, 0);
	watch_counts[WATCH_OVERWRITE]++;
}

/* A CAS, whether it took effect or not. */
static void
watch_cas(struct client *client, const struct fabric_request *request)
{
	bool won = request->result == request->compare;
	fabric_address start = 0;
	struct block *block = store_block(request->remote, &start);
	uint64_t at = fabric_offset(request->remote) - fabric_offset(start);

	bool meta = block != NULL && !smart_class_is_node(block->class) &&
				at == smart_class_bytes(block->class) - SMART_LEAF_REAR_BYTES;

	if (!won && meta && (smart_meta_settled(request->compare) ^ request->operand) == SMART_META_LOCKED)
		watch_lost_lock(request);
	else if (!won)
		watch_counts[WATCH_LOST]++;
	else if (block == NULL)
		watch_slot(client, NULL, request->remote, request->compare, request->operand);
	else if (meta)
		watch_meta(client, block, request->remote, request->compare, request->operand);
	else if (!smart_class_is_node(block->class) && world.plan.values && at > 0)
		watch_value(block, start, request->remote, request->compare, request->operand);
	else if (!smart_class_is_node(block->class))
		illegal("a CAS on no word of a leaf", request->remote, request->compare, request->operand);
	else if (at == 0)
		watch_header(block, request->remote, request->compare, request->operand);
	else
		watch_slot(client, block, request->remote, request->compare, request->operand);
}

/*
 * The pieces of a READ come in any order, so that a node that is READ at once must have had the same life since before that
 * READ began (B1).
 */
static void
watch_node_read(struct client *client, const struct fabric_request *request)
{
	fabric_address start;
	const struct block *block = store_block(request->remote, &start);
	bool headed = false;

	if (block == NULL || start != request->remote || !smart_class_is_node(block->class))
		return;
	for (unsigned int i = 0; i < client->heads_count && i < HEADS_MAX; i++)
		headed |= client->heads[i] == start;
	if (request->length == SMART_NODE_HEAD_WORDS * sizeof(uint64_t))
		client->heads[client->heads_count++ % HEADS_MAX] = start;
	else if (request->length > SMART_NODE_HEAD_WORDS * sizeof(uint64_t) && !headed && block->born > client->reached)
		world_violation("node %" PRIx64 " is READ at once, and its life began meanwhile", start);
}

void
watch_request(void *argument, const struct fabric_request *request)
{
	static const char *const verbs[] = {"READ", "WRITE", "CAS", "FAA"};
	struct client *client = argument;
	bool atomic = request->verb == FABRIC_CAS || request->verb == FABRIC_FAA;

	if (smart_unlikely(world.settings.trace))
	{
		if (atomic)
			world_trace("%s %" PRIx64 ": %016" PRIx64 " -> %016" PRIx64 "%s", verbs[request->verb], request->remote,
						request->compare, request->operand, request->result == request->compare ? "" : " lost");
		else
			world_trace("%s %" PRIx64 " +%u", verbs[request->verb], request->remote, request->length);
	}
	if (request->verb == FABRIC_READ && client->pin != NEVER)
		watch_node_read(client, request);
	client->reached = world.now;
	if (request->verb == FABRIC_READ && request->length > 8)
		schedule_maybe_stall(client, world.plan.stall_read_one_in);
	if (request->verb == FABRIC_WRITE && request->length == sizeof(uint64_t))
		watch_overwrite(request);
	if (request->verb != FABRIC_CAS || owners_word(request->remote))
		return;
	watch_cas(client, request);
	if (request->result == request->compare)
		schedule_maybe_stall(client, world.plan.stall_one_in);
}
