/*
 * grow.c
 *	  REPLACE-NODE: grow, shrink, merge, drop and path compression of a node
 *	  (the papers' node type switch), all in one way.
 *
 * E1 freezes every slot, the unused ones too, so that the node can change no
 * more.  E2 and E3 make what comes in its place from the frozen values.  E4
 * publishes it by one CAS of the parent's slot.  A client that meets a frozen
 * slot does the same: there is no owner, and so none whose death would block.
 *
 * Progress: lock-free.
 */
#include "tree/block/access.h"
#include "tree/find/find.h"
#include "tree/structure/change.h"

/* Work on the slots of a frozen node. */
struct replacement
{
	const struct smart_node *node;
	smart_slot room; /* leads to a block for the node that comes in its place; 0: in use, or none */
	unsigned int count;
	smart_slot slots[256]; /* ascending, unfrozen values */
	unsigned int dead_count;
	smart_slot dead[256]; /* leaves that were merged: retired when E4 is won */
	unsigned int born_count;
	smart_slot born[128]; /* merged leaves: retired when E4 is lost */
};

/*
 * E1.  Sets F in every slot; a slot that changes meanwhile is tried again with
 * its new value.  values[] are the final ones, with F.  Starts anywhere, so that
 * helpers do not all meet on the same word.
 */
static smart_status
freeze(struct smart_tree *tree, const struct smart_node *node, uint64_t *values)
{
	unsigned int first = (unsigned int) (tree->env->random(tree->env) % node->slots);
	struct fabric_request batch[SMART_EXECUTE_MAX];
	unsigned int index_of[SMART_EXECUTE_MAX];
	smart_status status = SMART_OK;
	int count;

	smart_assert(tree->entered && node->slots == tree->kind_slots[node->kind] && node->slots <= SMART_EXECUTE_MAX);
	memcpy(values, node->words + SMART_NODE_HEAD_WORDS, node->slots * sizeof(*values));
	do
	{
		count = 0;
		for (unsigned int i = 0; i < node->slots; i++)
		{
			unsigned int index = (first + i) % node->slots;
			uint64_t value = values[index];

			if (smart_slot_frozen(value) || (SMART_FAULT(nofreezeempty) && value == 0))
				continue;
			index_of[count] = index;
			batch[count++] = smart_cas_request(smart_node_slot_address(node->address, index), value,
											   value | SMART_SLOT_FROZEN, false);
		}
		if (!tree->direct && count > 0)
			status = smart_execute(tree, batch, count);
		for (int i = 0; tree->direct && i < count && status == SMART_OK; i++)
			status = smart_word_cas(tree, batch[i].remote, batch[i].compare, batch[i].operand, &batch[i].result);
		for (int i = 0; i < count && status == SMART_OK; i++)
		{
			uint64_t old = batch[i].compare;
			uint64_t new = batch[i].result == old ? batch[i].operand : batch[i].result;

			/* I3: a used slot keeps its partial key, and stays used. */
			smart_assert(!smart_slot_used(old) || (smart_slot_used(new) && smart_slot_pk(new) == smart_slot_pk(old)));
			values[index_of[i]] = new;
		}
	} while (status == SMART_OK && count > 0);
	return status;
}

/* E2: the used slots, unfrozen and in order of their partial keys; adjacent empty ranges become one. */
static void
sort_slots(struct replacement *work, const uint64_t *values)
{
	unsigned int kept = 0;

	work->count = 0;
	for (unsigned int i = 0; i < work->node->slots; i++)
	{
		smart_slot slot = values[i] & ~SMART_SLOT_FROZEN;
		unsigned int at = work->count;

		smart_assert(smart_slot_frozen(values[i]) || SMART_FAULT(nofreezeempty));
		if (!smart_slot_used(slot))
			continue;
		for (; at > 0 && smart_slot_pk(work->slots[at - 1]) > smart_slot_pk(slot); at--)
			work->slots[at] = work->slots[at - 1];
		work->slots[at] = slot;
		work->count++;
	}
	for (unsigned int i = 0; i < work->count; i++)
	{
		smart_slot slot = work->slots[i];
		smart_slot *last = &work->slots[kept > 0 ? kept - 1 : 0];

		if (kept > 0 && smart_slot_is_empty(slot) && smart_slot_is_empty(*last))
			*last = smart_slot_make_empty(smart_slot_pk(*last), smart_slot_empty_hi(slot));
		else
			work->slots[kept++] = slot;
	}
	work->count = kept;
}

/* ---- merging ---- */

#define GROUP_MAX 4

/* Neighbouring ranges that may become one leaf. */
struct group
{
	unsigned int members; /* slots */
	unsigned int leaf_count;
	struct smart_leaf leaves[GROUP_MAX];
	unsigned int hi;
};

/* hi of the range at index i of the frozen view. */
static unsigned int
range_end(const struct replacement *work, unsigned int i)
{
	return i + 1 < work->count ? smart_slot_pk(work->slots[i + 1]) - 1 : 255;
}

/*
 * Reads the leaf at index i and adds its entries to tree->extra.  *usable: it
 * is live or sealed, ends where its range in the frozen view ends (not pending:
 * the view is newer than what was read), and fits.
 */
static smart_status
read_member(struct smart_tree *tree, const struct smart_key *key, const struct replacement *work, unsigned int i,
			struct group *group, bool *usable)
{
	struct smart_leaf *leaf = &group->leaves[group->leaf_count];
	uint8_t *buffer = tree->merge_buffer + (size_t) group->leaf_count * SMART_LEAF_BYTES_MAX;
	uint32_t before = tree->extra.count;
	smart_status status;

	smart_assert(group->leaf_count < GROUP_MAX && smart_slot_is_leaf(work->slots[i]));
	*usable = false;
	for (int attempt = 0; attempt < 2; attempt++)
	{
		bool good;

		status = smart_leaf_read(tree, work->slots[i], key, buffer, leaf, &good);
		if (status != SMART_OK || !good)
			return status;
		if (leaf->state != SMART_NEW)
			break;
		/* In a node that this client froze: linked, so it may be activated. */
		status = smart_leaf_activate(tree, leaf);
		if (status != SMART_OK)
			return status;
	}
	/* V3: the values of a leaf that is merged are not frozen.  V5: and only who has its local lock seals it. */
	if (tree->options.value && !tree->options.shared)
		return SMART_OK;
	if ((leaf->meta & SMART_META_UPDATED) != 0 && !SMART_FAULT(nofreeze))
		return SMART_OK;
	if (leaf->state == SMART_NEW || leaf->depth != work->node->depth || leaf->lo != smart_slot_pk(work->slots[i]) ||
		leaf->hi != range_end(work, i))
		return SMART_OK;
	status = smart_list_collect(tree, &tree->extra, leaf, leaf->lo, leaf->hi);
	if (status != SMART_OK)
		return status;
	/* A merged leaf must not split at the next insert. */
	*usable = tree->extra.count == 0 || smart_leaf_bytes_for(tree, &tree->extra, 0, tree->extra.count, 0) <=
											tree->options.leaf_size - tree->options.leaf_size / 4;
	if (*usable)
		group->leaf_count++;
	else
		tree->extra.count = before;
	return SMART_OK;
}

/* Gathers ranges from index i on into a group, as far as they fit. */
static smart_status
gather(struct smart_tree *tree, const struct smart_key *key, const struct replacement *work, unsigned int i,
	   struct group *group)
{
	size_t most = 2 * (size_t) tree->options.leaf_size;
	size_t bytes = 0;

	group->members = group->leaf_count = 0;
	tree->extra.count = 0;
	for (; i < work->count && smart_slot_is_range(work->slots[i]) && group->leaf_count < GROUP_MAX; i++)
	{
		bool usable = true;
		smart_status status = SMART_OK;

		bytes += smart_slot_size(work->slots[i]) * SMART_UNIT;
		if (bytes > most)
			break;
		if (!smart_slot_is_empty(work->slots[i]))
			status = read_member(tree, key, work, i, group, &usable);
		if (status != SMART_OK)
			return status;
		if (!usable)
			break;
		group->members++;
		group->hi = range_end(work, i);
	}
	return SMART_OK;
}

/*
 * Makes the leaf that takes the place of the group's, and seals these.  *done false: one of them changed, and those that
 * were sealed stay so, and are mended by the next client that meets them; or there is no room, and none was sealed.
 */
static smart_status
merge_group(struct smart_tree *tree, const struct smart_key *key, struct replacement *work, unsigned int i,
			struct group *group, smart_slot *merged, bool *done)
{
	unsigned int lo = smart_slot_pk(work->slots[i]);
	smart_status status = SMART_OK;

	smart_assert(group->members >= 2 && group->members <= work->count - i && lo <= group->hi);
	smart_assert(work->dead_count + group->leaf_count <= 256 && work->born_count < 128);
	*done = true;
	*merged = smart_slot_make_empty(lo, group->hi);
	if (tree->extra.count > 0)
	{
		/* Room first: a leaf that stays sealed can be changed by no client that finds none. */
		status = smart_leaf_build(tree, key, work->node->depth, lo, group->hi, &tree->extra, 0, tree->extra.count, 0,
								  merged);
		*done = !smart_no_room(status);
		if (status != SMART_OK)
			return *done ? status : SMART_OK;
		work->born[work->born_count++] = *merged;
	}
	for (unsigned int leaf = 0; leaf < group->leaf_count && *done && status == SMART_OK; leaf++)
	{
		/* I5: in the frozen view, which is newer than the leaf's meta, it is not pending.  It is what was read. */
		smart_assert(group->leaves[leaf].lo >= lo && group->leaves[leaf].hi <= group->hi);
		status = smart_seal(tree, &group->leaves[leaf], done);
	}
	if (status == SMART_OK && !*done && smart_slot_is_leaf(*merged))
		smart_retire_slot(tree, work->born[--work->born_count]);
	if (status != SMART_OK || !*done)
		return status;
	for (unsigned int leaf = 0; leaf < group->leaf_count; leaf++)
		work->dead[work->dead_count++] = group->leaves[leaf].link;
	return SMART_OK;
}

static smart_status
merge_ranges(struct smart_tree *tree, const struct smart_key *key, struct replacement *work)
{
	unsigned int count = 0;
	unsigned int i = 0;

	smart_assert(tree->entered && work->born_count == 0 && work->dead_count == 0);
	while (i < work->count)
	{
		struct group group;
		smart_slot merged = 0;
		bool done = false;
		smart_status status;

		status = gather(tree, key, work, i, &group);
		if (status == SMART_OK && group.members >= 2)
			status = merge_group(tree, key, work, i, &group, &merged, &done);
		if (status != SMART_OK)
			return status;
		/* In place: what is still to be read lies behind. */
		work->slots[count++] = done ? merged : work->slots[i];
		i += done ? group.members : 1;
	}
	smart_assert(count > 0 && count <= work->count && smart_slot_pk(work->slots[0]) == 0);
	work->count = count;
	return SMART_OK;
}

/* ---- what comes in the node's place ---- */

/* The only child node of a node whose other ranges are empty, if a reader of the parent's slot can tell its header. */
static smart_status
only_child(struct smart_tree *tree, const struct replacement *work, smart_slot *child)
{
	uint64_t header;
	smart_status status;

	*child = 0;
	for (unsigned int i = 0; i < work->count; i++)
	{
		if (smart_slot_is_empty(work->slots[i]))
			continue;
		if (smart_slot_is_leaf(work->slots[i]) || *child != 0)
		{
			*child = 0;
			return SMART_OK;
		}
		*child = work->slots[i];
	}
	if (*child == 0)
		return SMART_OK;
	status = smart_word_read(tree, smart_slot_address(*child), &header);
	if (status != SMART_OK || smart_node_depth(header) - work->node->arrived > SMART_NODE_PARTIAL_MAX)
		*child = 0;
	return status;
}

/* E3.  *made: the result is a new node, to be activated. */
static smart_status
make_result(struct smart_tree *tree, const struct smart_key *key, struct replacement *work, smart_slot *result,
			bool *made)
{
	const struct smart_node *node = work->node;
	bool root = node->link_address == tree->options.root;
	unsigned int pk = smart_slot_pk(node->link);
	unsigned int spare = work->count < 256 ? 1 : 0;
	unsigned int kind = smart_kind_for(tree, work->count + spare);
	smart_slot room = work->room;
	smart_slot child;
	smart_status status;

	smart_assert(work->count > 0 && work->count <= 256 && smart_slot_pk(work->slots[0]) == 0 && room != 0);
	*made = false;
	if (work->count == 1 && smart_slot_is_empty(work->slots[0]))
	{
		*result = smart_slot_make_empty(pk, root ? 255 : pk);
		return SMART_OK;
	}
	status = only_child(tree, work, &child);
	if (status != SMART_OK)
		return status;
	if (child != 0)
	{
		*result = smart_slot_with_pk(child, pk);
		return SMART_OK;
	}
	/* In the block that was taken for it, or where another kind fits better. */
	*made = true;
	if (kind != smart_slot_size(room))
	{
		status = smart_node_build(tree, key, node->depth, pk, work->slots, work->count, spare, result);
		if (!smart_no_room(status) || kind > smart_slot_size(room))
			return status;
	}
	work->room = 0;
	return smart_node_build_in(tree, key, node->depth, smart_slot_with_pk(room, pk), work->slots, work->count, result);
}

/* After E4 was won: the new blocks are trusted, the old ones retired. */
static smart_status
end_won(struct smart_tree *tree, const struct replacement *work, smart_slot result, bool made)
{
	smart_status status = SMART_OK;
	uint64_t header = work->node->words[0];
	uint64_t seen = header;

	smart_assert(smart_node_state(header) == SMART_LIVE && !smart_slot_frozen(result) && result != work->node->link);
	if (made)
		status = smart_slot_activate(tree, result);
	for (unsigned int i = 0; i < work->born_count && status == SMART_OK; i++)
		status = smart_slot_activate(tree, work->born[i]);
	/*
	 * live -> dead before it is retired (I6): a client that reads it later starts again.  It was live, and only the
	 * client that won E4 makes it dead.
	 */
	if (status == SMART_OK)
		status = smart_word_cas(tree, work->node->address, header, smart_node_with_state(header, SMART_DEAD), &seen);
	if (status != SMART_OK)
		return status; /* the old blocks leak until they are marked */
	smart_assert(seen == header);
	smart_retire_slot(tree, work->node->link);
	for (unsigned int i = 0; i < work->dead_count; i++)
		smart_retire_slot(tree, work->dead[i]);
	return SMART_OK;
}

static void
end_lost(struct smart_tree *tree, const struct replacement *work, smart_slot result, bool made)
{
	if (made)
		smart_retire_slot(tree, result);
	for (unsigned int i = 0; i < work->born_count; i++)
		smart_retire_slot(tree, work->born[i]);
}

/* E1 to E4. */
static smart_status
replace(struct smart_tree *tree, const struct smart_key *key, struct replacement *work, bool merge)
{
	const struct smart_node *node = work->node;
	uint64_t values[256];
	smart_slot result = 0;
	uint64_t seen = 0;
	bool made = false;
	smart_status status = freeze(tree, node, values);

	if (status != SMART_OK)
		return status;
	sort_slots(work, values);
	if (work->count == 0 || smart_slot_pk(work->slots[0]) != 0)
		return SMART_CORRUPT;
	if (merge)
		status = merge_ranges(tree, key, work);
	if (status == SMART_OK)
		status = make_result(tree, key, work, &result, &made);
	if (status != SMART_OK)
	{
		end_lost(tree, work, result, false);
		return status;
	}
	/* E4: the parent's slot goes over, under its partial key (I3). */
	smart_assert(node->link_address != 0 && (!made || smart_slot_is_node(result)));
	status = smart_link(tree, node->link_address, node->link, result, NULL, &seen);
	if (status == SMART_OK && seen == node->link)
	{
		smart_slot_changed(tree, node->parent, node->parent_index, node->link, result);
		return end_won(tree, work, result, made);
	}
	/* A lost completion: the result may be linked, and must not be used again. */
	if (status == SMART_OK)
		end_lost(tree, work, result, made);
	return status;
}

smart_status
smart_replace_node(struct smart_tree *tree, const struct smart_key *key, const struct smart_node *node, bool merge,
				   bool *tried)
{
	fabric_address wanted = node->address;
	struct replacement work;
	unsigned int kind;
	fabric_address address;
	smart_status status = SMART_OK;

	smart_assert(tree->entered && smart_slot_is_node(node->link) && smart_slot_address(node->link) == node->address);
	if (tried != NULL)
		*tried = false;
	if (!tree->direct && node->link_address == 0)
		status = smart_find_parent(tree, key, &node);
	if (status != SMART_OK || node == NULL)
		return status;
	if (tried != NULL)
		*tried = node->address == wanted;
	smart_assert(node->link_address != 0 && smart_node_state(node->words[0]) == SMART_LIVE);
	work = (struct replacement){.node = node};
	/*
	 * Room is taken before E1, since a frozen node that no client has room to replace is in the way of every client, also
	 * of readers.  Slots that others use until E1 is done may make the block too small.
	 */
	kind = smart_kind_for(tree, smart_node_used(node) + 1);
	status = smart_allocate(tree, SMART_CLASS_NODE(kind), &address);
	if (status != SMART_OK)
		return status;
	work.room = smart_slot_make_node(0, kind, address);
	status = replace(tree, key, &work, merge && node->address == wanted);
	smart_assert(tree->entered && work.node == node);
	smart_retire_slot(tree, work.room);
	return status;
}
