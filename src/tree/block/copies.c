/*
 * copies.c
 *	  Leaf copies: whole leaves in the compute node's memory, each believed without a READ (A5).
 *
 * A copy is a leaf hint with everything: in exclusive mode each client of the compute node that changes a leaf, by a CAS
 * of meta or a WRITE of a value (V5), blocks its copy meanwhile (A4), so a copy that is found is what a READ of that
 * moment would bring.  It is handed to the code that looks at READs, which checks it as one: the node that leads here may
 * be of any age, so whether this is the key's leaf is for the checksum to say.
 *
 * A scan takes what it finds into its window, beside what it READs, and looks at it when its turn comes (A6).
 */
#include "tree/block/copies.h"
#include "tree/block/leaf.h"

bool
smart_leaf_copy_find(struct smart_tree *tree, smart_slot link, const struct smart_key *key, uint8_t *buffer,
					 bool changes, struct smart_leaf *leaf)
{
	if (!tree->copies)
		return false;
	tree->asked_link = link;
	if (!tree->services->find_leaf(tree->services, tree->cached_as, link, false, buffer, &tree->asked_ticket) ||
		!smart_leaf_from_copy(tree, link, buffer, key, leaf))
		return false;
	smart_assert(leaf->state != SMART_SEALED && !tree->options.shared);
	/* Linked, and not sealed since: the authority for its keys (I1), which becomes live at any moment. */
	if (leaf->state == SMART_NEW && changes)
		return false;
	leaf->state = SMART_LIVE;
	return true;
}

bool
smart_leaf_copy_asks(struct smart_tree *tree)
{
	return tree->copies && tree->services->asks_leaves(tree->services);
}

bool
smart_leaf_copy_take(struct smart_tree *tree, smart_slot link, uint8_t *copy, uint64_t *ticket)
{
	uint8_t *meta_bytes = copy + smart_slot_size(link) * SMART_UNIT - SMART_LEAF_REAR_BYTES;
	uint64_t meta;

	smart_assert(tree->copies && tree->entered);
	if (!tree->services->find_leaf(tree->services, tree->cached_as, link, true, copy, ticket))
		return false;
	*ticket = 0;
	meta = smart_leaf_copy_meta(link, copy);
	smart_assert(smart_meta_state(meta) != SMART_SEALED && !tree->options.shared);
	/* As find has it for readers. */
	meta = smart_meta_with_state(meta, SMART_LIVE);
	memcpy(meta_bytes, &meta, sizeof(meta));
	return true;
}

void
smart_leaf_copy_read(struct smart_tree *tree, const struct smart_leaf *leaf, uint64_t ticket)
{
	uint8_t copy[SMART_LEAF_BYTES_MAX];

	smart_assert(ticket == 0 || (tree->copies && leaf->state == SMART_LIVE));
	if (SMART_FAULT(lateticket) && tree->copies &&
		tree->services->find_leaf(tree->services, tree->cached_as, leaf->link, true, copy, &ticket))
		return;
	if (ticket != 0)
		tree->services->keep_leaf(tree->services, tree->cached_as, leaf->link, leaf->block, leaf->meta, ticket,
								  SMART_KEEP_SPARE);
}

void
smart_leaf_copy_changed(struct smart_tree *tree, smart_slot link, const uint8_t *block, uint64_t meta, uint64_t ticket)
{
	smart_assert(smart_meta_state(meta) != SMART_SEALED && !smart_meta_locked(meta));
	if (tree->copies && ticket != 0)
		tree->services->keep_leaf(tree->services, tree->cached_as, link, block, meta, ticket, SMART_KEEP_HOT);
}
