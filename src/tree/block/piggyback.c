/*
 * piggyback.c
 *	  The node above a leaf, READ in the batch that READs the leaf.
 *
 * A writer that READs a leaf under its lock, to append, finds now and then that it has no
 * room.  Then it needs a strict descent (C6), which begins with a READ of the node that the
 * cache shows above the leaf (descend.c).  This READ needs nothing that the leaf tells; so
 * where it is likely to be wanted, or is short, it goes ahead of time.
 *
 * What it brings is good for one descent of the same attempt, by the writer that still
 * holds the leaf's lock.  It is newer than the leaf's hi, as smart_pending wants it: hi is
 * changed by the lock's holder alone.  In exclusive mode the lock is held before the
 * batch is posted; in shared mode the node goes with the CAS that locks the leaf, so they
 * have to lie on one memory node, where a batch's requests are executed in order.
 */
#include "tree/block/piggyback.h"

struct smart_piggyback
{
	bool read;              /* the node's READ went with the leaf's */
	struct smart_node node; /* link 0: none is planned, nor was one READ */
};

struct smart_piggyback *
smart_piggyback_open(struct smart_env *env)
{
	struct smart_piggyback *piggyback = env->allocate(env, sizeof(*piggyback));

	if (piggyback != NULL)
	{
		piggyback->node.link = 0;
		piggyback->read = false;
	}
	return piggyback;
}

void
smart_piggyback_plan(struct smart_tree *tree, const struct smart_place *place, bool wanted)
{
	struct smart_piggyback *piggyback = tree->piggyback;
	const struct smart_node *node = place->node;

	smart_piggyback_forget(tree);
	if (tree->direct || node == NULL || tree->services->cache_find == NULL ||
		(tree->options.shared && fabric_node(node->address) != fabric_node(smart_slot_address(place->slot))))
		return;
	/* Entries of one length change their leaves' structure seldom; a node longer than the leaf costs more than the leaf. */
	if (!wanted &&
		(tree->options.fixed_length != 0 || smart_kind_bytes(node->kind) > smart_slot_size(place->slot) * SMART_UNIT))
		return;
	smart_assert(place->kind == SMART_PLACE_LEAF && node->arrived <= node->depth);
	piggyback->node.link = node->link;
	piggyback->node.arrived = node->arrived;
}

int
smart_piggyback_prepare(struct smart_tree *tree, struct fabric_request *batch)
{
	struct smart_piggyback *piggyback = tree->piggyback;

	if (tree->direct || piggyback->node.link == 0 ||
		!smart_node_prepare_again(tree, piggyback->node.link, piggyback->node.arrived, &piggyback->node, batch))
		return 0;
	piggyback->read = true;
	return SMART_PIGGYBACK_REQUESTS;
}

bool
smart_piggyback_take(struct smart_tree *tree, struct smart_node *node, const struct smart_key *key, bool *ours)
{
	struct smart_piggyback *piggyback = tree->piggyback;
	bool there = piggyback->read && piggyback->node.link == node->link && piggyback->node.arrived == node->arrived;

	if (there)
	{
		memcpy(node->head, piggyback->node.head, sizeof(node->head));
		memcpy(node->words, piggyback->node.words, (SMART_NODE_HEAD_WORDS + node->slots) * sizeof(uint64_t));
		node->part = false;
		*ours = smart_node_finish_again(tree, node, key);
	}
	smart_piggyback_forget(tree);
	return there;
}

void
smart_piggyback_forget(struct smart_tree *tree)
{
	if (tree->direct || SMART_FAULT(keptview))
		return;
	tree->piggyback->node.link = 0;
	tree->piggyback->read = false;
}
