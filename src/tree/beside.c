/*
 * beside.c
 *	  The node above a leaf, READ in the batch that READs the leaf.
 *
 * Who READs a leaf under its lock, to append, finds now and then that it has no room.
 * Then a strict descent is wanted (C6), which begins with a READ of the node that the
 * cache shows above the leaf (descend.c).  This READ needs nothing that the leaf tells; so
 * where it is likely to be wanted, or is short, it goes ahead of time.
 *
 * What it brings is good for one descent of the same attempt, by who still holds the
 * leaf's lock.  It is newer than the leaf's hi, as smart_pending wants it: hi is
 * changed by the lock's holder alone.  Without a rear lock, the lock is held before the
 * batch is posted; with one, the batch takes it, so leaf and node have to lie on one
 * memory node, where a batch's requests are executed in order.
 */
#include "tree/internal.h"

struct smart_beside
{
	smart_slot link; /* of the node that is to be READ, or was; 0: none */
	unsigned int arrived;
	bool read;
	uint64_t head[SMART_NODE_HEAD_WORDS];
	struct smart_node node;
};

struct smart_beside *
smart_beside_open(struct smart_env *env)
{
	struct smart_beside *beside = env->allocate(env, sizeof(*beside));

	if (beside != NULL)
	{
		beside->link = 0;
		beside->read = false;
	}
	return beside;
}

/*
 * Is a node's READ worth while where nobody knows whether it will be wanted?  Entries of one length change
 * their leaves' structure seldom; a node longer than the leaf costs more than the leaf.
 */
static inline bool
is_worth_a_try(const struct smart_tree *tree, const struct smart_node *node, smart_slot leaf)
{
	return tree->options.fixed_length == 0 && smart_kind_bytes(node->kind) <= smart_slot_size(leaf) * SMART_UNIT;
}

/*
 * The next READ of the leaf under its lock shall bring the node that place, which was found
 * by way of the cache, has it in.  wanted: it is known to be needed; else it might be.
 */
void
smart_beside_plan(struct smart_tree *tree, const struct smart_place *place, bool wanted)
{
	struct smart_beside *beside = tree->beside;
	const struct smart_node *node = place->node;

	smart_beside_forget(tree);
	if (tree->direct || node == NULL || tree->waypoint.link != node->link ||
		(tree->options.shared && fabric_node(node->address) != fabric_node(smart_slot_address(place->slot))) ||
		(!wanted && !is_worth_a_try(tree, node, place->slot)))
		return;
	beside->link = node->link;
	beside->arrived = node->arrived;
}

/* The requests for it, behind those of the leaf in batch; how many. */
int
smart_beside_prepare(struct smart_tree *tree, struct fabric_request *batch)
{
	struct smart_beside *beside = tree->beside;

	if (tree->direct || beside->link == 0 ||
		!smart_node_prepare_again(tree, beside->link, beside->arrived, &beside->node, beside->head, batch))
		return 0;
	beside->read = true;
	return SMART_BESIDE_REQUESTS;
}

/*
 * The node that link leads to for who has consumed so many bytes of the key, if it was READ
 * in this attempt; *ours as smart_node_read_again tells.  Once only: whoever looks
 * again wants to see what has changed.
 */
bool
smart_beside_take(struct smart_tree *tree, smart_slot link, unsigned int arrived, struct smart_node *node,
				  const struct smart_key *key, bool *ours)
{
	struct smart_beside *beside = tree->beside;
	bool there = beside->read && beside->link == link && beside->arrived == arrived;

	if (there)
	{
		*ours = smart_node_finish_again(tree, &beside->node, beside->head, key);
		*node = beside->node;
	}
	smart_beside_forget(tree);
	return there;
}

/* What was READ, or planned, is not to be used any more. */
void
smart_beside_forget(struct smart_tree *tree)
{
	if (tree->direct || SMART_FAULT(keptview))
		return;
	tree->beside->link = 0;
	tree->beside->read = false;
}
