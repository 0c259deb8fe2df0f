/*
 * cached.c
 *	  Keeping the cache of nodes in step with what this client changes.
 *
 * A changed slot is changed in the node's copy, too; a node that this client
 * made goes into the cache as it was made, and one that it retires goes out.  So
 * the clients of a compute node, when they alone write a tree, rarely find the
 * cache wrong.  It stays a hint all the same (B1): two changes may reach it in
 * another order than the tree, and another compute node's do not reach it.
 */
#include "tree/internal.h"

/* Keeps a node's words, or the root's word (slot 0). */
void
smart_keep_node(struct smart_tree *tree, smart_slot slot, const uint64_t *words)
{
	if (tree->services->cache_store != NULL)
		tree->services->cache_store(tree->services, tree->options.id, slot, words);
}

void
smart_forget_node(struct smart_tree *tree, smart_slot slot)
{
	if (tree->services->cache_drop != NULL)
		tree->services->cache_drop(tree->services, tree->options.id, slot);
}

/* The slot at index of the node that link leads to, or (0) the root's, went over from one value to another. */
void
smart_slot_changed(struct smart_tree *tree, smart_slot link, int index, smart_slot from, smart_slot to)
{
	if (tree->services->cache_update != NULL)
		tree->services->cache_update(tree->services, tree->options.id, link,
									 link == 0 ? 0 : SMART_NODE_HEAD_WORDS + (unsigned int) index, from, to);
}

/* CAS of the slot that a strict descent came to; *won: it leads to desired now. */
smart_status
smart_place_cas(struct smart_tree *tree, const struct smart_place *place, smart_slot desired, bool *won)
{
	uint64_t seen;
	smart_status status = smart_link_cas(tree, place->slot_address, place->slot, desired, &seen);

	*won = status == SMART_OK && seen == place->slot;
	if (*won)
		smart_slot_changed(tree, place->node == NULL ? 0 : place->node->link, place->index, place->slot, desired);
	return status;
}
