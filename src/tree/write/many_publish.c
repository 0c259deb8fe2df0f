/*
 * many_publish.c
 *	  What was put into the copies of a round's leaves (many.c) becomes part of the tree, by one batch, and divisions go on from there.
 */
#include "tree/block/access.h"
#include "tree/block/copies.h"
#include "tree/block/leaf.h"
#include "tree/block/node.h"
#include "tree/cached/hints.h"
#include "tree/cached/results.h"
#include "tree/write/many_round.h"

/* Two WRITEs to a leaf are one if there are no more bytes between them: where many insert, requests are what is scarce. */
#define GAP_MAX 1024

/* The WRITE of a part of the leaf, as it is in its copy. */
static void
prepare_write(struct smart_many *many, const struct smart_target *target, unsigned int from, unsigned int to)
{
	smart_assert(target->locked && from < to && to + SMART_LEAF_REAR_BYTES <= target->read.units * SMART_UNIT);
	many->batch[many->requests++] = (struct fabric_request){.verb = FABRIC_WRITE,
															.remote = target->read.address + from,
															.local = target->block + from,
															.length = to - from};
}

/* Entries, values, and the CAS that publishes what is new among them. */
static void
prepare_append(struct smart_many *many, struct smart_target *target)
{
	const struct smart_leaf *read = &target->read;
	const struct smart_leaf *leaf = &target->grown.leaf;
	bool values = target->values_end > 0;
	bool together = values && target->put > 0 && target->values_low - leaf->used <= GAP_MAX;

	if (values && !together)
		prepare_write(many, target, target->values_low, target->values_end);
	if (target->put == 0)
		return;
	/* I4: the lock's holder alone writes at used; I3: hi only falls, and not here. */
	smart_assert(target->locked && leaf->used > read->used && leaf->hi == read->hi && read->state == SMART_LIVE);
	prepare_write(many, target, read->used, together ? target->values_end : leaf->used);
	target->append = many->requests;
	many->batch[many->requests++] =
		smart_cas_request(smart_leaf_meta_address(read->address, read->units), read->meta, target->desired, false);
}

/* The batch that appends, and begins the divisions. */
static void
prepare_batch(struct smart_many *many)
{
	many->requests = 0;
	for (unsigned int i = 0; i < many->targets; i++)
	{
		struct smart_target *target = &many->target[i];

		target->append = target->begin = -1;
		target->hint = (struct smart_blocked){.version = SMART_VERSION_NONE};
		if (target->locked &&
			(target->put > 0 || target->values_end > 0 || target->division.step != SMART_DIVISION_NONE))
			target->hint = smart_leaf_hint_block(many->tree, target->link);
		prepare_append(many, target);
		target->begin = many->requests;
		many->requests += smart_divide_begin(&target->division, &many->batch[many->requests]);
	}
	for (unsigned int i = 0; i < many->views; i++)
	{
		struct smart_view *view = &many->view[i];

		if (view->wanted && smart_node_prepare_again(many->tree, view->node.link, view->node.arrived, &view->node,
													 &many->batch[many->requests]))
			many->requests += 2;
	}
}

/* The target's append came about, or not.  What is certain is settled. */
static void
finish_append(struct smart_many *many, struct smart_target *target)
{
	for (unsigned int i = target->first; i < target->first + target->count; i++)
	{
		struct smart_addition *addition = many->additions[i];

		/* A key may be there since it was put there just now. */
		if (many->fates[i] == SMART_FATE_PUT || (many->fates[i] == SMART_FATE_THERE && target->put > 0))
			addition->settled = target->published;
		else
			addition->settled = many->fates[i] == SMART_FATE_THERE && (target->written || !many->tree->options.value);
		addition->added = addition->settled && many->fates[i] == SMART_FATE_PUT;
		if (many->fates[i] != SMART_FATE_ALONE && many->fates[i] != SMART_FATE_GUEST && !addition->settled)
			many->fates[i] = SMART_FATE_OPEN;
	}
}

/* The batch has ended: what of it came about.  Divisions whose beginning did go on. */
static smart_status
finish_batch(struct smart_many *many, smart_status status)
{
	struct smart_division *divisions[SMART_MANY_TARGETS_MAX];
	unsigned int count = 0;

	for (unsigned int i = 0; i < many->views && status == SMART_OK; i++)
	{
		struct smart_view *view = &many->view[i];

		if (!view->wanted)
			continue;
		view->strict = smart_node_finish_again(many->tree, &view->node, view->key);
		if (view->strict)
			smart_keep_read_node(many->tree, &view->node, true);
		else
			smart_forget_node(many->tree, view->node.link);
	}
	for (unsigned int i = 0; i < many->targets; i++)
	{
		struct smart_target *target = &many->target[i];

		target->written = status == SMART_OK;
		target->published =
			target->put > 0 && status == SMART_OK && many->batch[target->append].result == target->read.meta;
		if (target->locked)
			finish_append(many, target);
		if (status != SMART_OK || (target->put > 0 && !target->published))
			target->division.step = SMART_DIVISION_NONE;
		if (target->division.step == SMART_DIVISION_NONE)
			continue;
		smart_divide_began(&target->division, &many->batch[target->begin]);
		divisions[count++] = &target->division;
	}
	return count == 0 || status != SMART_OK ? status : smart_divide(many->tree, divisions, count);
}

/* The target's changes are over: what was divided, and the leaf's hint. */
static void
finish_target(struct smart_many *many, struct smart_target *target)
{
	struct smart_division *division = &target->division;
	uint64_t ticket = smart_leaf_hint_unblock(many->tree, &target->hint);
	/* A leaf that was divided is not what the copy shows. */
	bool known = target->written && (target->put == 0 || target->published) && division->guest_count == 0;

	if (many->tree->copies && target->values_end > 0 && known)
		smart_leaf_copy_changed(many->tree, target->link, target->block,
								target->put > 0 ? target->desired : target->read.meta, ticket);
	else if (target->put > 0 && known)
		smart_leaf_hint_keep(many->tree, target->link, target->block, &many->keys[target->first], target->desired,
							 ticket);
	for (unsigned int i = 0; i < division->guest_count; i++)
	{
		unsigned int entry = many->entry_of[division->guests - many->guest + i];

		many->additions[entry]->settled = many->additions[entry]->added = division->guests[i].placed;
		if (!division->guests[i].placed)
			many->fates[entry] = SMART_FATE_OPEN;
	}
}

smart_status
smart_many_publish(struct smart_many *many)
{
	struct smart_tree *tree = many->tree;
	smart_status status;

	smart_assert(tree->entered && many->count <= SMART_MANY_MAX);
	for (unsigned int i = 0; i < many->count; i++)
	{
		/* A1: no cached result for an equality prefix while it may change. */
		if (tree->results && (many->fates[i] == SMART_FATE_PUT || many->fates[i] == SMART_FATE_GUEST))
			many->blocked[i] = smart_block(tree, many->keys[i].bytes, many->keys[i].length);
		else
			many->blocked[i] = (struct smart_blocked){.version = SMART_VERSION_NONE};
	}
	prepare_batch(many);
	status = finish_batch(many, smart_many_execute(many));
	for (unsigned int i = 0; i < many->targets; i++)
		finish_target(many, &many->target[i]);
	for (unsigned int i = 0; i < many->count; i++)
		smart_unblock(tree, &many->blocked[i]);
	return status;
}
