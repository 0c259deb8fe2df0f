/*
 * many_fill.c
 *	  What goes into the leaves of a round (many.c), and what has no room there.
 *
 * Nothing is changed yet but the leaves' copies.  What has no room comes with a division, as its guest, if the node above
 * is known.
 */
#include "tree/block/leaf.h"
#include "tree/block/node.h"
#include "tree/block/values.h"
#include "tree/write/many_round.h"

/* ---- what goes into them ---- */

/* Is the leaf, which is right for one key, right for another one, too?  C3. */
static bool
belongs(const struct smart_leaf *leaf, const struct smart_key *proved, const struct smart_key *key)
{
	return key->length > leaf->depth && memcmp(key->bytes, proved->bytes, leaf->depth) == 0 &&
		   smart_leaf_covers(leaf, key);
}

/* Bytes of an entry that are stored as such: its value is a word of its own. */
static size_t
stored_length(const struct smart_many *many, unsigned int entry)
{
	return many->tree->options.value ? many->keys[entry].length : many->additions[entry]->length;
}

/* The entry comes with the target's division, unless it is there twice. */
static void
make_guest(struct smart_many *many, struct smart_target *target, unsigned int entry)
{
	struct smart_division *division = &target->division;
	const struct smart_key *key = &many->keys[entry];
	const struct smart_key *last = division->guest_count == 0 ? NULL : &many->guest[many->guests - 1].key;

	many->fates[entry] = SMART_FATE_OPEN;
	if (last != NULL && smart_compare_bytes(last->bytes, last->length, key->bytes, key->length) == 0)
		return;
	if (division->guest_count == 0)
		division->guests = &many->guest[many->guests];
	smart_assert(many->guests < SMART_MANY_MAX);
	smart_assert(division->guests + division->guest_count == many->guest + many->guests);
	many->entry_of[many->guests] = entry;
	many->guest[many->guests++] =
		(struct smart_guest){.key = *key, .length = (uint32_t) stored_length(many, entry), .placed = false};
	division->guest_count++;
	many->fates[entry] = SMART_FATE_GUEST;
}

/* The entry with this number gets its value, in the leaf's copy; V5: under the lock. */
static void
put_value(struct smart_many *many, struct smart_target *target, unsigned int entry, unsigned int number)
{
	uint64_t word = smart_value_behind(many->keys[entry].bytes, many->keys[entry].length);
	unsigned int offset = smart_value_offset(&target->grown.leaf, number);

	smart_assert(target->locked);
	memcpy(target->block + offset, &word, sizeof(word));
	if (target->values_end == 0 || offset < target->values_low)
		target->values_low = offset;
	if (offset + sizeof(word) > target->values_end)
		target->values_end = offset + (unsigned int) sizeof(word);
}

/* An entry for which the leaf is right goes behind those that it has, if its key is not there; false: there is no room. */
static bool
put_entry(struct smart_many *many, struct smart_target *target, unsigned int entry)
{
	const struct smart_key *key = &many->keys[entry];
	size_t length = stored_length(many, entry);
	unsigned int number;
	int found;

	if (!many->tree->options.value)
	{
		found = smart_leaf_contains(&target->grown.leaf, key) ? 0 : -1;
		number = 0;
	}
	else
	{
		found = smart_leaf_find(&target->grown.leaf, key);
		number = found < 0 ? smart_leaf_entries(&target->grown.leaf) : (unsigned int) found;
	}
	if (found < 0 && !smart_grown_fits(many->tree, &target->grown, length))
		return false;
	if (found < 0)
		smart_grown_put(many->tree, &target->grown, key, length, 0);
	if (many->tree->options.value)
		put_value(many, target, entry, number);
	many->fates[entry] = found < 0 ? SMART_FATE_PUT : SMART_FATE_THERE;
	target->put += found < 0;
	return true;
}

/* Puts the leaf's entries behind those that it has, in its copy, as far as there is room. */
static void
fill_target(struct smart_many *many, struct smart_target *target)
{
	const struct smart_key *proved = &many->keys[target->first];
	bool good = smart_leaf_from_copy(many->tree, target->link, target->block, proved, &target->read) &&
				target->read.state == SMART_LIVE && target->read.depth == target->depth;

	smart_assert(target->locked && target->put == 0);
	if (good)
		smart_grown_begin(&target->grown, &target->read);
	for (unsigned int i = target->first; i < target->first + target->count; i++)
	{
		const struct smart_key *key = &many->keys[i];
		bool matches;

		many->fates[i] = SMART_FATE_ALONE;
		if (!good || !belongs(&target->read, proved, key))
			continue;
		matches = key->length > target->read.depth + target->read.prefix_length &&
				  smart_leaf_prefix_matches(&target->read, key);
		if (!matches || !put_entry(many, target, i))
			make_guest(many, target, i);
	}
	if (target->put > 0)
		target->desired = smart_grown_meta(&target->grown);
}

/* ---- what has no room ---- */

/* The node above, as the cache has it; NULL: it has not, or there are too many. */
static struct smart_view *
find_view(struct smart_many *many, const struct smart_target *target)
{
	struct smart_view *view = many->view;
	bool usable;

	smart_assert(target->above.link != 0 && many->views <= SMART_MANY_VIEWS_MAX);
	while (view < many->view + many->views && view->node.link != target->above.link)
		view++;
	if (view < many->view + many->views)
		return view;
	if (many->views == SMART_MANY_VIEWS_MAX ||
		!smart_node_recall(many->tree, target->above.link, target->above.arrived, &view->node, &usable) || !usable)
		return NULL;
	view->key = &many->keys[target->first];
	view->planned = 0;
	view->wanted = view->full = view->strict = false;
	many->views++;
	return view;
}

/* The target as the round's append leaves it, or an empty range. */
static void
begin_division(struct smart_many *many, struct smart_target *target)
{
	struct smart_division *division = &target->division;

	division->key = &many->keys[target->first];
	if (smart_slot_is_leaf(target->link))
	{
		division->leaf = target->put > 0 ? target->grown.leaf : target->read;
		division->leaf.meta = target->put > 0 ? target->desired : target->read.meta;
		return;
	}
	division->leaf = (struct smart_leaf){.link = target->link,
										 .depth = target->depth,
										 .lo = smart_slot_pk(target->link),
										 .hi = smart_slot_empty_hi(target->link),
										 .state = SMART_SEALED};
	for (unsigned int i = target->first; i < target->first + target->count; i++)
		make_guest(many, target, i);
}

/*
 * Perhaps no node is above the leaf, although the cache knows of one: the leaf may lie where that node had another one once.
 * A leaf without a node is not narrowed: nobody could put its parts anywhere.
 */
static bool
may_be_root(const struct smart_leaf *leaf)
{
	return leaf->depth == 0 && leaf->lo == 0 && leaf->hi == 255;
}

/* Entries for which the leaf has no room are to divide it, or to fill the empty range. */
static smart_status
plan_division(struct smart_many *many, struct smart_target *target)
{
	struct smart_division *division = &target->division;
	smart_status status = SMART_OK;

	smart_assert(division->step == SMART_DIVISION_NONE && division->block_count == 0);
	if (smart_slot_is_empty(target->link) || division->guest_count > 0)
		begin_division(many, target);
	if (division->guest_count == 0)
		return SMART_OK;
	if (target->above.link == 0 || (smart_slot_is_leaf(target->link) && may_be_root(&target->read)))
		division->view = NULL;
	else
		division->view = find_view(many, target);
	if (division->view != NULL)
		status = smart_divide_plan(many->tree, division);
	if (status != SMART_OK)
		return status;
	if (division->step != SMART_DIVISION_NONE)
	{
		division->view->wanted = true;
		return SMART_OK;
	}
	for (unsigned int i = 0; i < division->guest_count; i++)
	{
		unsigned int entry = many->entry_of[division->guests - many->guest + i];
		bool waits = division->view != NULL && (division->view->full || division->view->planned > 0);

		many->fates[entry] = waits ? SMART_FATE_OPEN : SMART_FATE_ALONE;
	}
	division->guest_count = 0;
	return SMART_OK;
}

/* ---- all of them ---- */

smart_status
smart_many_fill(struct smart_many *many)
{
	smart_status status = SMART_OK;

	smart_assert(many->tree->entered);
	for (unsigned int i = 0; i < many->targets && status == SMART_OK; i++)
	{
		if (many->target[i].locked)
			fill_target(many, &many->target[i]);
		status = plan_division(many, &many->target[i]);
	}
	return status;
}
