/*
 * strict.c
 *	  Finding a key strictly, and helping what is in the way: nodes (B4), leaves
 *	  whose content has to be confirmed (B5), leaves that others left (FORWARD).
 *
 * Why B4 and E1 to E4 hold.  What smart_find_strict returns was found by one
 * descent (descend.c), which has gone through live nodes and unfrozen slots only
 * (B4 a to c, e).  A descent that meets a frozen slot ends there and names the
 * node (B4 d).  The node is replaced by E1 to E4 (grow.c), nothing of what this
 * descent has seen is used again, and the next one begins at the root.
 *
 * E4 needs the slot that leads to the node.  A descent from the root has come
 * through it.  For a node that was found by way of the cache grow.c READs the
 * parent as B1 says, or else makes one descent of its own, which replaces
 * nothing; if this one meets a frozen node, then that node is replaced, by the
 * slot that the descent has come through.  So no replacement begins within
 * another one, and none waits for another one.
 *
 * Progress: lock-free.  A descent that does not find the place ends as
 *
 *	  UNKNOWN   it met a new node and activated it, which happens once to a node;
 *	            or a dead node, other content than the slot promised, or a torn
 *	            view: then a CAS of another client has taken effect since the
 *	            slot that led there was read;
 *	  FROZEN    and E4 comes about: a replacement is complete;
 *	  FROZEN    and E4 fails: the parent's slot has changed, which is the effect
 *	            of another client's CAS, or is frozen.  If it is frozen, the next
 *	            descent ends at the parent or above it.
 *
 * The root's slot is never frozen, and a path has finitely many nodes: so as long
 * as no other client's CAS takes effect, each descent ends at a node above the
 * one before, until E4 comes about for the topmost frozen one; then the same
 * holds for the rest of the path, which has one frozen node less.  No node
 * stays frozen for want of room if a client has room for it: grow.c takes
 * the new node's block before E1.
 */
#include "tree/block/access.h"
#include "tree/block/promise.h"
#include "tree/find/find.h"
#include "tree/structure/change.h"
#include "tree/structure/strict.h"

smart_status
smart_find_strict(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place)
{
	bool mends = tree->mends;
	unsigned int attempts = 0;
	smart_status status = smart_descend_near(tree, key, place);

	smart_assert(tree->entered);
	while (status == SMART_OK && (place->kind == SMART_PLACE_FROZEN || place->kind == SMART_PLACE_UNKNOWN))
	{
		/* It is in the way of readers, too. */
		tree->mends = true;
		if (place->kind == SMART_PLACE_FROZEN)
			status = smart_replace_node(tree, key, place->child, false, NULL);
		tree->mends = mends;
		if (status == SMART_OK)
			status = smart_again(tree, &attempts);
		if (status == SMART_OK)
			status = smart_descend(tree, key, place);
	}
	smart_assert(status != SMART_OK || place->kind == SMART_PLACE_LEAF || place->kind == SMART_PLACE_EMPTY ||
				 place->kind == SMART_PLACE_MISMATCH);
	smart_assert(status != SMART_OK || (place->slot_address != 0 && !smart_slot_frozen(place->slot)));
	return status;
}

/* Looks at a leaf whose promised entries do not come, before a reader takes them back. */
#define PROMISE_LOOKS 8

smart_status
smart_confirm(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place, struct smart_leaf *leaf,
			  unsigned int *limit)
{
	unsigned int attempts = 0;
	smart_slot kept = 0;
	smart_status status;

	for (;;)
	{
		bool good;

		status = smart_again(tree, &attempts);
		if (status == SMART_OK)
			status = smart_find_strict(tree, key, place);
		if (status != SMART_OK || place->kind != SMART_PLACE_LEAF)
			return status;
		if (kept != 0 && kept == place->slot)
		{
			unsigned int byte = smart_key_byte(key, place->depth);

			*limit = byte <= leaf->hi ? leaf->hi
									  : (place->node == NULL ? 255 : smart_node_next_pk(place->node, leaf->hi) - 1);
			smart_assert(*limit <= 255);
			return SMART_OK;
		}
		kept = 0;
		status = smart_leaf_read(tree, place->slot, key, tree->kept_buffer, leaf, &good);
		if (status != SMART_OK)
			return status;
		if (!good && attempts > PROMISE_LOOKS && smart_leaf_has_open_promise(tree, leaf))
			status = smart_promise_retract(tree, key, leaf, &good);
		if (status != SMART_OK)
			return status;
		if (!good || leaf->depth != place->depth || smart_key_byte(key, leaf->depth) < leaf->lo)
			continue; /* torn, or used again */
		if (leaf->state == SMART_NEW)
		{
			/* Seen linked by a strict descent: may be activated. */
			status = smart_leaf_activate(tree, leaf);
			if (status != SMART_OK)
				return status;
		}
		else if (leaf->state == SMART_LIVE && smart_leaf_covers(leaf, key))
		{
			*limit = leaf->hi;
			return SMART_OK;
		}
		else
			kept = place->slot;
	}
}

/*
 * INSTALL by who has not the leaf's lock.  V5: a value above hi may have changed while the READ that showed the leaf pending
 * was under way, and does not any more: so it is READ once more.
 */
static smart_status
install_pending(struct smart_tree *tree, const struct smart_key *key, const struct smart_place *place,
				struct smart_leaf *leaf)
{
	uint64_t meta = leaf->meta;
	bool good = true;
	smart_status status = SMART_OK;

	if (tree->options.value && !tree->options.shared)
		status = smart_leaf_read(tree, place->slot, key, tree->leaf_buffer, leaf, &good);
	return status == SMART_OK && good && leaf->meta == meta ? smart_install(tree, key, place, leaf) : status;
}

smart_status
smart_forward(struct smart_tree *tree, const struct smart_key *key, fabric_address address)
{
	struct smart_rewrite rewrite = {.drop = NULL};
	struct smart_place place;
	struct smart_leaf leaf;
	bool good;
	bool flag;
	smart_status status = smart_find_strict(tree, key, &place);

	smart_assert(tree->entered && tree->locked == 0);
	if (status != SMART_OK || place.kind != SMART_PLACE_LEAF || smart_slot_address(place.slot) != address)
		return status;
	status = smart_leaf_read(tree, place.slot, key, tree->leaf_buffer, &leaf, &good);
	/* Whoever promised an entry has had the time to write it. */
	if (status == SMART_OK && !good && smart_leaf_has_open_promise(tree, &leaf))
		status = smart_promise_retract(tree, key, &leaf, &good);
	if (status != SMART_OK || !good)
		return status;
	/* Once more, so that the view is newer than the meta. */
	status = smart_find_strict(tree, key, &place);
	if (status != SMART_OK || place.kind != SMART_PLACE_LEAF || place.slot != leaf.link)
		return status;
	if (leaf.state == SMART_NEW)
		return smart_leaf_activate(tree, &leaf);
	if (smart_pending(&place, &leaf))
		return install_pending(tree, key, &place, &leaf);
	if (leaf.state == SMART_LIVE)
	{
		/* Nothing is wrong with it but, in a shared tree, a lock that is held for too long. */
		if (!smart_meta_locked(leaf.meta))
			return SMART_OK;
		status = smart_seal(tree, &leaf, &flag);
		if (status != SMART_OK || !flag)
			return status;
	}
	smart_assert(leaf.state == SMART_SEALED && !smart_pending(&place, &leaf));
	return smart_replace_leaf(tree, key, &place, &leaf, &rewrite, &flag);
}

/* ---- what a removal leaves small ---- */

/* Would two neighbouring ranges of these sizes make one small leaf? */
static bool
mergeable(const struct smart_tree *tree, smart_slot a, smart_slot b)
{
	unsigned int bytes = (smart_slot_size(a) + smart_slot_size(b)) * SMART_UNIT;
	unsigned int most = tree->options.leaf_size / 2;

	return smart_slot_is_range(a) && smart_slot_is_range(b) && bytes <= (most < 2 * SMART_UNIT ? 2 * SMART_UNIT : most);
}

/* Is it worth while to replace the node that holds place's slot, now that something was removed there? */
static bool
wants_tidying(const struct smart_tree *tree, const struct smart_place *place)
{
	const struct smart_node *node = place->node;
	unsigned int pk = smart_slot_pk(place->slot);
	unsigned int next = smart_node_next_pk(node, pk);
	int index;

	if (next < 256)
	{
		index = smart_node_cover_index(node, next);
		if (mergeable(tree, place->slot, node->words[SMART_NODE_HEAD_WORDS + index]))
			return true;
	}
	if (pk > 0)
	{
		index = smart_node_cover_index(node, pk - 1);
		if (index >= 0 && mergeable(tree, place->slot, node->words[SMART_NODE_HEAD_WORDS + index]))
			return true;
	}
	/* The last range of its node. */
	return pk == 0 && next == 256 && smart_slot_is_empty(place->slot);
}

smart_status
smart_tidy(struct smart_tree *tree, const struct smart_key *key)
{
	smart_status status = SMART_OK;
	unsigned int depth = UINT_MAX;
	unsigned int used = 0;

	smart_assert(tree->entered && tree->locked == 0);
	for (int round = 0; round < 4 && status == SMART_OK; round++)
	{
		struct smart_place place;
		unsigned int found_depth;
		unsigned int found_used;
		bool tried;

		status = smart_find_strict(tree, key, &place);
		if (status != SMART_OK || place.kind == SMART_PLACE_MISMATCH || place.node == NULL ||
			!wants_tidying(tree, &place))
			return status;
		if (place.node->depth == depth && smart_node_used(place.node) >= used)
			return status;
		found_depth = place.node->depth;
		found_used = smart_node_used(place.node);
		smart_assert(found_depth == place.depth && found_used <= place.node->slots);
		status = smart_replace_node(tree, key, place.node, true, &tried);
		if (status == SMART_OK && tried)
		{
			depth = found_depth;
			used = found_used;
		}
	}
	/* Nothing has to be tidied. */
	return smart_no_room(status) ? SMART_OK : status;
}

/* A node is replaced for the sake of what became small in it if that is one range in so many. */
#define WORTH_ONE_IN 8

/*
 * Are there enough ranges that are small together with the next one, or only one, which is empty?  *pk: of the first such
 * range.
 */
static bool
is_worth_tidying(const struct smart_tree *tree, const struct smart_node *node, unsigned int *pk)
{
	const uint64_t *slots = node->words + SMART_NODE_HEAD_WORDS;
	unsigned int small = 0;
	unsigned int count = 0;
	unsigned int next;

	for (unsigned int at = 0; at < 256; at = next)
	{
		int index = smart_node_cover_index(node, at);

		next = smart_node_next_pk(node, at);
		if (index < 0)
			return false;
		count++;
		if (next < 256 ? !mergeable(tree, slots[index], slots[smart_node_cover_index(node, next)])
					   : count > 1 || !smart_slot_is_empty(slots[index]))
			continue;
		if (small++ == 0)
			*pk = at;
	}
	return small > 0 && small * WORTH_ONE_IN >= count;
}

bool
smart_is_untidy(const struct smart_tree *tree, const struct smart_node *node)
{
	unsigned int pk;

	return is_worth_tidying(tree, node, &pk);
}

smart_status
smart_tidy_node(struct smart_tree *tree, const struct smart_key *key)
{
	uint8_t bytes[SMART_KEY_MAX + 1];
	struct smart_key small = {.bytes = bytes};
	struct smart_place place;
	unsigned int pk = 0;
	smart_status status = smart_find_strict(tree, key, &place);

	smart_assert(tree->entered && tree->locked == 0);
	if (status != SMART_OK || place.kind == SMART_PLACE_MISMATCH || place.node == NULL ||
		!is_worth_tidying(tree, place.node, &pk))
		return status;
	small.length = place.depth + 1;
	for (unsigned int i = 0; i < place.depth; i++)
		bytes[i] = (uint8_t) smart_key_byte(key, i);
	bytes[place.depth] = (uint8_t) pk;
	return smart_tidy(tree, &small);
}
