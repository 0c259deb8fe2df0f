/*
 * many.c
 *	  Many inserts at a time: C1 to C7 for the leaves of many keys together.
 *
 * Remote providers, exclusive mode.  In a round the leaves are looked for together (window.c) and
 * READ in one batch.  Then each gets its entries by one WRITE at used and one CAS of meta, all of
 * them in one batch again.  So the entries of a round take two round trips where the cache
 * knows the way and the leaves have room.  Those without are divided (divide.c), all of them together, in as many more
 * batches as the one with most parts needs; so are empty ranges filled.
 *
 * Each leaf's local lock is held from before the READ until its last change, as C1, C5 and C6 say.  So
 * this client holds many locks at a time, and therefore waits for none of them: if another
 * client has a leaf's lock, or another leaf of the round shares it, the leaf's entries wait
 * for the next round.  Nothing else is waited for under these locks but the round's batches, and a chunk
 * of memory where there is none.
 *
 * In trees with values entries have theirs, and a key that is there gets it: the words of a leaf's values that change, with
 * those between, are WRITTEN in the same batch (V5), and the leaf's copy stands for the READ (A5).
 *
 * An entry that needs anything else is inserted by itself (insert.c), one for each
 * leaf, which makes room for those that follow it there.  An entry is settled by a round
 * only if its leaf was live when it was READ (C4), or the CAS came about that publishes it.
 *
 * A direct provider has no round trips to save.  There entries are inserted one after the other, with those behind that go into the
 * same leaf, and the nodes and leaves of the next ones are prefetched together (smart_find_ahead).
 */
#include "tree/block/access.h"
#include "tree/block/copies.h"
#include "tree/block/leaf.h"
#include "tree/block/node.h"
#include "tree/block/values.h"
#include "tree/find/find.h"
#include "tree/find/window.h"
#include "tree/structure/change.h"
#include "tree/structure/strict.h"
#include "tree/write/append.h"
#include "tree/write/divide.h"
#include "tree/write/insert.h"
#include "tree/write/many_round.h"

/* ---- which leaves ---- */

/* The entry goes where the place leads; false: the round has no room for another leaf. */
static bool
join_target(struct smart_many *many, unsigned int entry, const struct smart_place *place,
			const struct smart_above *above)
{
	struct smart_target *target = many->targets == 0 ? NULL : &many->target[many->targets - 1];
	bool leaf = place->kind == SMART_PLACE_LEAF;
	unsigned int bytes = leaf ? smart_slot_size(place->slot) * SMART_UNIT : 0;

	smart_assert(entry < many->count);
	many->slots[entry] = place->slot;
	many->fates[entry] = SMART_FATE_ALONE;
	if (!leaf && (!smart_slot_is_empty(place->slot) || above->link == 0))
		return true;
	many->fates[entry] = SMART_FATE_OPEN;
	if (target != NULL && target->link == place->slot && target->above.link == above->link &&
		target->first + target->count == entry)
	{
		target->count++;
		return true;
	}
	if (many->targets == SMART_MANY_TARGETS_MAX || many->bytes + bytes > SMART_MANY_COPIES_MAX)
		return false;
	target = &many->target[many->targets++];
	target->link = place->slot;
	target->above = *above;
	target->depth = place->depth;
	target->first = entry;
	target->count = 1;
	target->put = 0;
	target->locked = target->holds = target->copied = target->born = target->written = false;
	target->values_low = target->values_end = 0;
	target->block = many->copies + many->bytes;
	target->division.step = SMART_DIVISION_NONE;
	target->division.guest_count = target->division.block_count = 0;
	target->division.born = &many->born;
	many->bytes += bytes;
	smart_assert(many->targets <= SMART_MANY_TARGETS_MAX && many->bytes <= SMART_MANY_COPIES_MAX);
	return true;
}

/* Groups the keys by where the cache leads them. */
static smart_status
choose_targets(struct smart_many *many)
{
	unsigned int chosen = 0;
	unsigned int end = 0;
	smart_status status = SMART_OK;

	smart_assert(many->tree->entered && many->count <= SMART_MANY_MAX);
	many->targets = many->views = many->guests = many->bytes = 0;
	many->born = (struct smart_born){.size = sizeof(many->born_bytes), .bytes = many->born_bytes};
	for (unsigned int i = 0; i < many->count; i++)
	{
		many->fates[i] = SMART_FATE_OPEN;
		many->slots[i] = 0;
	}
	for (; chosen < many->count; chosen++)
	{
		unsigned int left = many->count - chosen;

		if (chosen == end)
		{
			end = chosen + (left < SMART_POINTS_MAX ? left : SMART_POINTS_MAX);
			status = smart_points_find(many->tree, &many->keys[chosen], end - chosen, many->places, many->above);
		}
		if (status != SMART_OK || !join_target(many, chosen, &many->places[chosen % SMART_POINTS_MAX],
											   &many->above[chosen % SMART_POINTS_MAX]))
			return status;
	}
	return status;
}

/* Takes the locks that are free. */
static void
lock_targets(struct smart_many *many)
{
	struct smart_services *services = many->tree->services;

	for (unsigned int i = 0; i < many->targets; i++)
	{
		struct smart_target *target = &many->target[i];

		if (smart_slot_is_empty(target->link))
			continue;
		target->holds = !SMART_FAULT(unlocked) && services->try_lock_leaf(services, smart_slot_address(target->link));
		target->locked = target->holds || SMART_FAULT(unlocked);
		target->copied = target->holds && smart_leaf_copy_find(many->tree, target->link, &many->keys[target->first],
															   target->block, false, &target->read);
		target->born = target->copied && smart_meta_state(target->read.meta) == SMART_NEW;
	}
}

static void
unlock_targets(struct smart_many *many)
{
	struct smart_services *services = many->tree->services;

	for (unsigned int i = 0; i < many->targets; i++)
	{
		if (many->target[i].holds)
			services->unlock_leaf(services, smart_slot_address(many->target[i].link));
	}
}

/*
 * ACTIVATE, instead of a READ: the lock is held, and the copy tells that the leaf is linked, and has not been changed since
 * it was made (A5).  So whoever made it live, it is what the copy shows.
 */
static void
finish_birth(struct smart_target *target, uint64_t seen)
{
	uint64_t live = smart_meta_with_state(target->read.meta, SMART_LIVE);
	uint64_t meta = seen == target->read.meta ? live : seen;

	smart_assert(meta == live);
	memcpy(target->block + smart_slot_size(target->link) * SMART_UNIT - SMART_LEAF_REAR_BYTES, &meta, sizeof(meta));
}

static smart_status
read_targets(struct smart_many *many)
{
	smart_status status;

	many->requests = 0;
	for (unsigned int i = 0; i < many->targets; i++)
	{
		struct smart_target *target = &many->target[i];
		fabric_address address = smart_slot_address(target->link);
		unsigned int units = smart_slot_size(target->link);

		target->birth = many->requests;
		if (target->born && !SMART_FAULT(unborn))
			many->batch[many->requests++] =
				smart_cas_request(smart_leaf_meta_address(address, units), target->read.meta,
								  smart_meta_with_state(target->read.meta, SMART_LIVE), false);
		else if (target->locked && !target->copied)
			many->batch[many->requests++] = smart_read_request(address, target->block, units * SMART_UNIT);
	}
	status = smart_many_execute(many);
	for (unsigned int i = 0; i < many->targets && status == SMART_OK; i++)
	{
		struct smart_target *target = &many->target[i];

		if (target->born)
			finish_birth(target, SMART_FAULT(unborn) ? target->read.meta : many->batch[target->birth].result);
	}
	return status;
}

/* ---- rounds ---- */

/* Adds what can be added together, of all that many->additions has. */
static smart_status
add_together(struct smart_many *many)
{
	struct smart_tree *tree = many->tree;
	smart_status status;

	smart_enter(tree);
	status = choose_targets(many);
	if (status == SMART_OK)
	{
		lock_targets(many);
		status = read_targets(many);
	}
	if (status == SMART_OK)
		status = smart_many_fill(many);
	if (status == SMART_OK)
		status = smart_many_publish(many);
	/* What was not used, of whatever was planned. */
	for (unsigned int i = 0; i < many->targets; i++)
		smart_divide_end(tree, &many->target[i].division);
	unlock_targets(many);
	return smart_leave(tree, status);
}

static smart_status
insert_alone(struct smart_tree *tree, struct smart_addition *addition, bool upsert)
{
	smart_status status;

	if (!upsert)
		return smart_insert_first(tree, addition, 1);
	status = smart_tree_upsert(tree, addition->bytes, addition->key_length, &addition->added);
	addition->settled = status == SMART_OK;
	return status;
}

/* After a round: of the entries that have to go alone one for each leaf; or any, lest nothing is settled at all. */
static smart_status
insert_rest(struct smart_many *many)
{
	smart_status status = SMART_OK;
	smart_slot last = 0;
	bool progress = false;

	for (unsigned int i = 0; i < many->count; i++)
		progress |= many->additions[i]->settled;
	for (unsigned int i = 0; i < many->count && status == SMART_OK; i++)
	{
		struct smart_addition *addition = many->additions[i];

		if (addition->settled || (many->fates[i] != SMART_FATE_ALONE && (progress || i + 1 < many->count)) ||
			(many->slots[i] == last && last != 0))
			continue;
		last = many->slots[i];
		status = insert_alone(many->tree, addition, many->tree->options.value);
		progress = true;
	}
	/* Else the rounds would not end. */
	smart_assert(status != SMART_OK || progress);
	return status;
}

/* After a round: nodes without a slot for a leaf that is to be divided get one. */
static smart_status
make_slots(struct smart_many *many)
{
	struct smart_tree *tree = many->tree;
	smart_status status = SMART_OK;

	for (unsigned int i = 0; i < many->views && status == SMART_OK; i++)
	{
		const struct smart_key *key = many->view[i].key;
		struct smart_place place;

		if (!many->view[i].full)
			continue;
		smart_enter(tree);
		status = smart_find_strict(tree, key, &place);
		if (status == SMART_OK && place.node != NULL && smart_node_used(place.node) == place.node->slots)
			status = smart_replace_node(tree, key, place.node, false, NULL);
		status = smart_leave(tree, status);
		/* Who goes alone hears of it. */
		if (smart_no_room(status))
			status = SMART_OK;
	}
	return status;
}

/* A round with the first entries that are not settled; *first: behind those that are. */
static smart_status
insert_round(struct smart_many *many, struct smart_addition *additions, unsigned int count, unsigned int *first)
{
	smart_status status;

	many->count = 0;
	while (*first < count && additions[*first].settled)
		(*first)++;
	for (unsigned int i = *first; i < count && many->count < SMART_MANY_MAX; i++)
	{
		if (additions[i].settled)
			continue;
		many->additions[many->count] = &additions[i];
		many->keys[many->count++] = (struct smart_key){.bytes = additions[i].bytes, .length = additions[i].key_length};
	}
	smart_assert(*first <= count && many->count <= SMART_MANY_MAX);
	if (many->count == 0)
		return SMART_OK;
	if (many->count == 1)
		return insert_alone(many->tree, many->additions[0], many->tree->options.value);
	status = add_together(many);
	if (status == SMART_OK)
		status = insert_rest(many);
	return status == SMART_OK ? make_slots(many) : status;
}

/* Direct: prefetches the nodes and leaves of the next entries, at most SMART_AHEAD_MAX. */
static smart_status
prefetch_next(struct smart_tree *tree, const struct smart_addition *additions, unsigned int count)
{
	struct smart_key keys[SMART_AHEAD_MAX];

	smart_assert(tree->direct && count > 0 && count <= SMART_AHEAD_MAX);
	for (unsigned int i = 0; i < count; i++)
		keys[i] = (struct smart_key){.bytes = additions[i].bytes, .length = additions[i].key_length};
	smart_enter(tree);
	return smart_leave(tree, smart_find_ahead(tree, keys, count));
}

/* One after the other. */
static smart_status
add_each(struct smart_tree *tree, struct smart_addition *additions, unsigned int count, bool upsert)
{
	smart_status status = SMART_OK;
	unsigned int ahead = 0; /* these were prefetched */

	for (unsigned int i = 0; i < count && status == SMART_OK; i++)
	{
		unsigned int left = count - i;

		if (additions[i].settled)
			continue;
		if (tree->env->interrupted(tree->env))
			return SMART_INTERRUPTED;
		if (tree->direct && i >= ahead)
		{
			ahead = i + (left < SMART_AHEAD_MAX ? left : SMART_AHEAD_MAX);
			status = prefetch_next(tree, additions + i, ahead - i);
		}
		if (status == SMART_OK)
			status = upsert ? insert_alone(tree, &additions[i], true) : smart_insert_first(tree, additions + i, left);
	}
	return status;
}

static smart_status
add_many(struct smart_tree *tree, struct smart_addition *additions, unsigned int count, bool upsert)
{
	struct smart_many *many = NULL;
	smart_status status = SMART_OK;
	unsigned int first = 0;

	for (unsigned int i = 0; i < count; i++)
	{
		const struct smart_addition *addition = &additions[i];

		if (addition->key_length == 0 || addition->key_length > SMART_KEY_MAX || addition->length > SMART_ENTRY_MAX ||
			addition->length < addition->key_length ||
			(upsert && (addition->length != addition->key_length + SMART_VALUE_BYTES ||
						!smart_value_is_behind(tree, addition->bytes, addition->key_length))))
			return SMART_TOO_LONG;
		smart_assert(i == 0 || smart_compare_bytes(additions[i - 1].bytes, additions[i - 1].key_length, addition->bytes,
												   addition->key_length) <= 0);
		additions[i].settled = additions[i].added = false;
	}
	if (count > 1 && !tree->direct && !tree->options.shared && tree->options.value == upsert &&
		tree->services->try_lock_leaf != NULL)
		many = tree->env->allocate(tree->env, sizeof(*many));
	if (many == NULL)
		return add_each(tree, additions, count, upsert);
	many->tree = tree;
	while (first < count && status == SMART_OK)
		status = tree->env->interrupted(tree->env) ? SMART_INTERRUPTED : insert_round(many, additions, count, &first);
	smart_release(tree->env, many);
	return status;
}

smart_status
smart_tree_insert_many(struct smart_tree *tree, struct smart_addition *additions, unsigned int count)
{
	return add_many(tree, additions, count, false);
}

smart_status
smart_tree_upsert_many(struct smart_tree *tree, struct smart_addition *additions, unsigned int count)
{
	smart_assert(tree->options.value);
	return add_many(tree, additions, count, true);
}
