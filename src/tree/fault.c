/*
 * fault.c
 *	  Faults that need more than a condition: what earlier designs did, and what
 *	  the simulator has to find.  Empty in production builds.
 */
#include "tree/internal.h"

#ifdef SMART_FAULTS

/* Undoes a seal, although somebody may have finished what it began. */
void
smart_fault_rollback(struct smart_tree *tree, const struct smart_leaf *leaf)
{
	uint64_t seen;

	smart_word_cas(tree, smart_leaf_meta_address(leaf->address, leaf->units), leaf->meta,
				   smart_meta_with_state(leaf->meta, SMART_LIVE), &seen);
}

/* Takes the rear lock from whoever holds it, who may be alive. */
smart_status
smart_fault_take_over(struct smart_tree *tree, smart_slot link, const struct smart_key *key,
					  struct smart_leaf_lock *lock, uint64_t holder, struct smart_leaf *leaf, bool *locked, bool *good)
{
	uint64_t seen;
	smart_status status = smart_word_cas(tree, lock->word_address, holder, lock->word, &seen);

	*locked = status == SMART_OK && seen == holder;
	return *locked ? smart_leaf_read(tree, link, key, tree->leaf_buffer, leaf, good) : status;
}

/* Does the slot that a cached path led to still hold what it held?  Its node may be dead. */
bool
smart_fault_slot_stands(struct smart_tree *tree, const struct smart_place *place)
{
	uint64_t word;

	if (tree->direct || place->node == NULL)
		return false;
	return smart_word_read(tree, smart_node_slot_address(place->node->address, (unsigned int) place->index), &word) ==
			   SMART_OK &&
		   (word & ~SMART_SLOT_FROZEN) == place->slot;
}

/* Any unused slot; -1: none. */
int
smart_fault_any_index(struct smart_tree *tree, const struct smart_node *node)
{
	unsigned int first = (unsigned int) (tree->env->random(tree->env) % node->slots);

	for (unsigned int i = 0; i < node->slots; i++)
	{
		unsigned int index = (first + i) % node->slots;

		if (node->words[SMART_NODE_HEAD_WORDS + index] == 0)
			return (int) index;
	}
	return -1;
}

/* Joins an empty range with the empty one below it in place: its slot goes back to 0. */
void
smart_fault_zero(struct smart_tree *tree, const struct smart_key *key)
{
	struct smart_place place;
	smart_slot below;
	uint64_t seen;
	int index;

	if (smart_find_strict(tree, key, &place) != SMART_OK || place.kind != SMART_PLACE_EMPTY || place.node == NULL ||
		smart_slot_pk(place.slot) == 0)
		return;
	index = smart_node_cover_index(place.node, smart_slot_pk(place.slot) - 1);
	below = index < 0 ? 0 : place.node->words[SMART_NODE_HEAD_WORDS + index];
	if (!smart_slot_is_empty(below) || smart_slot_frozen(below))
		return;
	if (smart_word_cas(tree, place.slot_address, place.slot, 0, &seen) == SMART_OK && seen == place.slot)
		smart_word_cas(tree, smart_node_slot_address(place.node->address, (unsigned int) index), below,
					   smart_slot_make_empty(smart_slot_pk(below), smart_slot_empty_hi(place.slot)), &seen);
}

/* A node of a strict descent out of the cache; false: it has to be read. */
bool
smart_fault_stale_node(struct smart_tree *tree, smart_slot link, struct smart_node *node)
{
	if (tree->direct || tree->env->random(tree->env) % 4 == 0 ||
		!tree->services->cache_find(tree->services, tree->options.id, link, node->words))
		return false;
	node->depth = smart_node_depth(node->words[0]);
	return true;
}

/* Fewer slots than there are: without the last one that is used. */
unsigned int
smart_fault_miss_mark(const smart_slot *slots, unsigned int count)
{
	while (count > 0 && !smart_slot_used(slots[count - 1]))
		count--;
	return count > 0 ? count - 1 : 0;
}

#endif
