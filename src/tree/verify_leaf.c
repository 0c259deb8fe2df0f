/*
 * verify_leaf.c
 *	  The walk's check of one leaf and its entries.
 */
#include <stdio.h>

#include "tree/verify.h"

smart_status
smart_walk_init(struct smart_walk *walk)
{
	struct smart_env *env = walk->tree->env;
	smart_status status = smart_cursor_init(&walk->path, env);

	if (status == SMART_OK)
		status = smart_cursor_init(&walk->done, env);
	walk->bytes = env->allocate(env, SMART_KEY_MAX + SMART_ENTRY_MAX);
	walk->last = env->allocate(env, SMART_KEY_MAX + SMART_ENTRY_MAX);
	return walk->bytes == NULL || walk->last == NULL ? SMART_NO_MEMORY : status;
}

void
smart_walk_done(struct smart_walk *walk)
{
	struct smart_env *env = walk->tree->env;

	for (unsigned int i = 0; i < SMART_FRAMES_MAX && walk->frames[i] != NULL; i++)
	{
		smart_window_done(&walk->frames[i]->children, env);
		env->release(env, walk->frames[i]);
	}
	if (walk->path.bytes != NULL)
		smart_cursor_done(&walk->path, env);
	if (walk->done.bytes != NULL)
		smart_cursor_done(&walk->done, env);
	if (walk->bytes != NULL)
		env->release(env, walk->bytes);
	if (walk->last != NULL)
		env->release(env, walk->last);
}

static void
complain(struct smart_walk *walk, const char *sentence)
{
	snprintf(walk->message, sizeof(walk->message), "%s", sentence);
	walk->doubt = true;
}

/* Header and meta against the slot; I5 says when hi may be lower than the slot's end. */
static bool
check_frame(struct smart_walk *walk, const struct smart_leaf *leaf, unsigned int depth, unsigned int lo,
			unsigned int hi)
{
	struct smart_key key = {.bytes = walk->path.bytes, .length = depth};

	if (leaf->depth != depth)
		complain(walk, "a leaf's depth is not that of its slot");
	else if (leaf->lo != lo)
		complain(walk, "a leaf's range does not begin at its slot's partial key");
	else if (leaf->hi > hi || leaf->hi < lo)
		complain(walk, "a leaf's range does not agree with its slot's");
	else if (leaf->hi < hi && leaf->state == SMART_SEALED)
		complain(walk, "a leaf was sealed while its upper half was pending");
	else if (!smart_leaf_checksum_ok(walk->tree, leaf, &key))
		complain(walk, "a leaf's checksum is wrong");
	else if (smart_leaf_prefix_hash(leaf->header) != (uint32_t) (smart_prefix_hash(walk->tree, &key, depth) >> 45))
		complain(walk, "a leaf's prefix hash is not that of its path");
	return !walk->doubt;
}

/* The sorted run ascends. */
static bool
check_run(struct smart_walk *walk, const struct smart_leaf *leaf)
{
	const uint8_t *previous = NULL;
	unsigned int previous_length = 0;
	unsigned int offset = leaf->start;

	while (offset < leaf->used)
	{
		bool in_run = offset < leaf->sorted_end;
		const uint8_t *suffix;
		unsigned int length;

		offset = smart_leaf_next_entry(leaf, offset, &suffix, &length);
		if (offset == 0)
		{
			complain(walk, "a leaf's entries are malformed");
			return false;
		}
		if (in_run && previous != NULL && smart_compare_bytes(previous, previous_length, suffix, length) >= 0)
			complain(walk, "a leaf's sorted run does not ascend");
		if ((leaf->prefix_length > 0 ? smart_leaf_prefix(leaf)[0] : suffix[0]) < leaf->lo)
			complain(walk, "an entry lies below its leaf's range");
		previous = suffix;
		previous_length = length;
	}
	return !walk->doubt;
}

/* Hands out the entries that lie in the range; they ascend within the leaf and behind the last one's. */
static smart_status
hand_out(struct smart_walk *walk, const struct smart_leaf *leaf, const struct smart_list *list)
{
	memcpy(walk->bytes, walk->path.bytes, leaf->depth);
	for (uint32_t i = 0; i < list->count; i++)
	{
		const struct smart_ref *ref = &list->refs[i];
		size_t length = leaf->depth + smart_ref_length(ref);
		uint8_t *swap = walk->last;

		memcpy(walk->bytes, walk->path.bytes, leaf->depth);
		memcpy(walk->bytes + leaf->depth, ref->head, ref->head_length);
		memcpy(walk->bytes + leaf->depth + ref->head_length, ref->tail, ref->tail_length);
		if (walk->last_length > 0 && smart_compare_bytes(walk->last, walk->last_length, walk->bytes, length) >= 0)
		{
			complain(walk, "entries do not ascend, or one is there twice");
			return SMART_OK;
		}
		walk->report->entries++;
		if (walk->entry != NULL && !walk->entry(walk->argument, walk->bytes, length))
			return SMART_INTERRUPTED;
		walk->last = walk->bytes;
		walk->last_length = length;
		walk->bytes = swap;
	}
	return SMART_OK;
}

smart_status
smart_walk_leaf(struct smart_walk *walk, smart_slot slot, unsigned int depth, unsigned int hi, const uint8_t *copy)
{
	struct smart_tree *tree = walk->tree;
	struct smart_key key = {.bytes = walk->path.bytes, .length = depth};
	struct smart_verify_report *report = walk->report;
	struct smart_leaf leaf;
	bool good = copy != NULL && smart_leaf_from_copy(tree, slot, copy, &key, &leaf);
	smart_status status = SMART_OK;

	if (!good && smart_slot_size(slot) > 0)
		status = smart_leaf_read(tree, slot, &key, tree->leaf_buffer, &leaf, &good);
	if (status == SMART_CORRUPT || (status == SMART_OK && !good))
	{
		complain(walk, "a leaf is malformed");
		return SMART_OK;
	}
	if (status != SMART_OK || !check_frame(walk, &leaf, depth, smart_slot_pk(slot), hi) || !check_run(walk, &leaf))
		return status;
	/* Pending: the entries up to the slot's end are authoritative (I5). */
	tree->list.count = 0;
	status = smart_list_collect(tree, &tree->list, &leaf, leaf.lo, hi);
	if (status == SMART_OK)
		status = hand_out(walk, &leaf, &tree->list);
	if (status != SMART_OK || walk->doubt)
		return status;
	report->leaves++;
	report->pending += leaf.hi < hi;
	report->sealed += leaf.state == SMART_SEALED;
	report->bytes_blocks += leaf.units * SMART_UNIT;
	report->bytes_used += leaf.used + SMART_LEAF_REAR_BYTES;
	if (walk->depth + 1 > report->height)
		report->height = walk->depth + 1;
	return SMART_OK;
}
