/*
 * search.c
 *	  Finding the leaf of a key fast: by pointers on a direct provider, through
 *	  the cache of nodes elsewhere; and lookups.
 *
 * By pointers a descent is as strict as any (B3, B4): it starts at the root's
 * word, loads every node within this operation, and gives up
 * (SMART_PLACE_UNKNOWN) at a node that is not live, a slot that is frozen, or a
 * view that is torn.  So its "empty" may be believed.
 *
 * Through a cache it shows where a leaf probably is, and nothing else may be
 * concluded (B1): a live leaf with the right checksum and range answers for
 * itself, however it was reached (I1).
 */
#include "tree/internal.h"
#include "tree/cover.h"

/* All lines of a leaf at once: the slot knows its length before the leaf is touched. */
static inline void
prefetch_block(const uint8_t *block, unsigned int bytes)
{
	for (unsigned int line = 0; line < bytes; line += 64)
		__builtin_prefetch(block + line, 0, 3);
}

/* Compares key[consumed..depth) with the header; true: all equal. */
static inline bool
header_matches(uint64_t header, const struct smart_key *key, unsigned int consumed, unsigned int depth,
			   struct smart_place *place)
{
	for (unsigned int i = consumed; i < depth; i++)
	{
		unsigned int byte = smart_node_partial_byte(header, i);

		if (smart_unlikely(byte != smart_key_byte(key, i)))
		{
			place->kind = SMART_PLACE_MISMATCH;
			place->mismatch_at = i;
			place->mismatch_byte = byte;
			place->mismatch_header = header;
			return false;
		}
	}
	return true;
}

/* What the slot that covers the key means, as far as slot and byte tell. */
static inline enum smart_place_kind
classify(smart_slot slot, unsigned int byte)
{
	if (smart_unlikely(smart_slot_frozen(slot) || !smart_slot_used(slot)))
		return SMART_PLACE_UNKNOWN;
	if (smart_slot_is_leaf(slot))
		return SMART_PLACE_LEAF;
	if (smart_slot_is_empty(slot))
		return smart_slot_empty_hi(slot) < byte ? SMART_PLACE_UNKNOWN : SMART_PLACE_EMPTY;
	return SMART_PLACE_UNKNOWN;
}

/*
 * From place->slot, which was read within this epoch, on.  byte is the key's at
 * place->depth.
 */
static smart_status
walk_direct(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place, unsigned int byte)
{
	smart_slot slot = place->slot;

	while (smart_slot_is_node(slot))
	{
		unsigned int kind = smart_slot_size(slot);
		const uint64_t *words = fabric_direct(tree->fabric, smart_slot_address(slot), smart_kind_bytes(kind));
		uint64_t header;
		unsigned int depth;
		smart_slot next;

		if (smart_unlikely(words == NULL || kind > SMART_NODE_KINDS))
			return SMART_CORRUPT;
		header = smart_load_acquire(words);
		depth = smart_node_depth(header);
		place->slot = slot;
		place->kind = SMART_PLACE_UNKNOWN;
		if (smart_unlikely(smart_node_state(header) != SMART_LIVE || depth < place->consumed))
			return SMART_OK;
		if (!header_matches(header, key, place->consumed, depth, place))
			return SMART_OK;
		byte = smart_key_byte(key, depth);
		next = smart_cover(words + SMART_NODE_HEAD_WORDS, kind, tree->kind_slots[kind], byte);
		place->index = 0; /* any but the root's */
		place->shared = words;
		place->depth = depth;
		place->consumed = depth + 1;
		if (smart_slot_is_node(next) && (smart_slot_pk(next) != byte || smart_slot_frozen(next)))
			return SMART_OK;
		slot = next;
		if (smart_slot_is_leaf(slot))
			prefetch_block(tree->fabric->window[fabric_node(smart_slot_address(slot))].base +
							   fabric_offset(smart_slot_address(slot)),
						   smart_slot_size(slot) * SMART_UNIT);
	}
	place->slot = slot;
	place->kind = classify(slot, byte);
	return SMART_OK;
}

/*
 * By pointers, from a node of an earlier descent instead of the root (B4: a
 * cached ancestor).  The key has the node's prefix.  Header and identity must be
 * what they were: then it is live, the node of this prefix in this tree, and
 * will not be used again within this epoch; a slot of it that is not frozen is
 * part of the tree (I2).  *found false: start at the root.
 */
smart_status
smart_find_from(struct smart_tree *tree, const struct smart_key *key, const struct smart_ancestor *ancestor,
				struct smart_place *place, bool *found)
{
	const uint64_t *words = ancestor->words;
	unsigned int kind = smart_node_kind(ancestor->header);
	unsigned int depth = smart_node_depth(ancestor->header);
	unsigned int byte = smart_key_byte(key, depth);

	smart_assert(tree->direct && smart_node_state(ancestor->header) == SMART_LIVE);
	*found = smart_ancestor_stands(ancestor);
	if (!*found)
		return SMART_OK;
	place->slot = smart_cover(words + SMART_NODE_HEAD_WORDS, kind, tree->kind_slots[kind], byte);
	place->index = 0;
	place->shared = words;
	place->depth = depth;
	place->consumed = depth + 1;
	if (smart_slot_is_node(place->slot) && (smart_slot_pk(place->slot) != byte || smart_slot_frozen(place->slot)))
	{
		place->kind = SMART_PLACE_UNKNOWN;
		return SMART_OK;
	}
	return walk_direct(tree, key, place, byte);
}

static smart_status
find_direct(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place)
{
	const uint64_t *root = fabric_direct(tree->fabric, tree->options.root, sizeof(uint64_t));

	if (smart_is_recent(&tree->recent, key))
	{
		bool found;
		smart_status status = smart_find_recent(tree, key, place, &found);

		if (status != SMART_OK || found)
			return status;
	}
	if (root == NULL)
		return SMART_CORRUPT;
	place->slot = smart_load_acquire(root);
	place->index = -1;
	place->depth = 0;
	place->consumed = 0;
	return walk_direct(tree, key, place, 0);
}

/* One cached node, or a READ that fills the cache.  *usable: it is a node of this tree on this key's path, if perhaps stale. */
static smart_status
cached_node(struct smart_tree *tree, const struct smart_key *key, smart_slot link, unsigned int arrived,
			struct smart_node *node, bool *usable)
{
	struct smart_services *services = tree->services;
	smart_status status = SMART_OK;

	if (services->cache_find(services, tree->options.id, link, node->words))
	{
		/* Copies of different moments may lead in a circle: only downwards. */
		*usable = smart_node_from_copy(tree, link, arrived, NULL, node) && node->depth >= arrived &&
				  node->depth - arrived <= SMART_NODE_PARTIAL_MAX;
	}
	else
	{
		/* Reverse check: an address may have been used again since its slot was cached. */
		status = smart_offload_node(tree, link, arrived, node, key, usable);
		if (status == SMART_OK && *usable)
			smart_keep_node(tree, link, node->words);
	}
	if (status == SMART_OK && !*usable)
		smart_forget_node(tree, link);
	return status;
}

/* By way of the cache; tree->nodes[0] is place->node, the last one on the way, and the waypoint the last one that fits. */
smart_status
smart_find_cached(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place)
{
	struct smart_services *services = tree->services;
	struct smart_node *node = &tree->nodes[0];
	struct smart_waypoint *last = &tree->waypoint;
	smart_slot slot;
	smart_status status;

	*place = (struct smart_place){.kind = SMART_PLACE_UNKNOWN, .index = -1};
	*last = (struct smart_waypoint){.link = 0};
	smart_offload_begin(tree);
	if (!services->cache_find(services, tree->options.id, 0, &slot))
	{
		status = smart_offload_root(tree, key, &slot);
		if (status != SMART_OK)
			return status;
		smart_keep_node(tree, 0, &slot);
	}
	while (smart_slot_is_node(slot))
	{
		unsigned int byte;
		bool usable;
		int index;

		status = cached_node(tree, key, slot, place->consumed, node, &usable);
		if (status != SMART_OK || !usable)
			return status;
		if (!header_matches(node->words[0], key, place->consumed, node->depth, place))
		{
			place->kind = SMART_PLACE_UNKNOWN;
			return SMART_OK;
		}
		byte = smart_key_byte(key, node->depth);
		index = smart_node_cover_index(node, byte);
		if (index < 0)
			return SMART_OK;
		slot = node->words[SMART_NODE_HEAD_WORDS + index] & ~SMART_SLOT_FROZEN;
		if (smart_slot_is_node(slot) && smart_slot_pk(slot) != byte)
			return SMART_OK;
		*last = (struct smart_waypoint){.link = node->link,
										.arrived = node->arrived,
										.parent = last->link,
										.parent_index = place->index,
										.parent_arrived = last->arrived};
		place->index = index;
		place->node = node;
		place->depth = node->depth;
		place->consumed = node->depth + 1;
	}
	place->slot = slot;
	if (smart_slot_is_leaf(slot))
		place->kind = SMART_PLACE_LEAF;
	else if (SMART_FAULT(trustempty) && smart_slot_is_empty(slot))
		place->kind = SMART_PLACE_EMPTY;
	return SMART_OK;
}

smart_status
smart_find_fast(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place)
{
	if (tree->direct)
		return find_direct(tree, key, place);
	if (tree->services->cache_find == NULL)
	{
		place->kind = SMART_PLACE_UNKNOWN;
		return SMART_OK;
	}
	return smart_find_cached(tree, key, place);
}

/*
 * The first attempt: a leaf that answers for itself.  *answered: *found is the
 * answer, and on a remote provider *leaf the leaf.
 */
static smart_status
lookup_fast(struct smart_tree *tree, const struct smart_key *key, struct smart_leaf *leaf, bool *answered, bool *found)
{
	struct smart_place place;
	bool good;
	smart_status status = smart_find_fast(tree, key, &place);

	*answered = false;
	if (status == SMART_OK && place.kind == SMART_PLACE_UNKNOWN && smart_offload_proves_empty(tree, key, &place))
		place.kind = SMART_PLACE_EMPTY;
	if (status != SMART_OK || place.kind == SMART_PLACE_UNKNOWN)
		return status;
	if (place.kind != SMART_PLACE_LEAF)
	{
		/* Only a strict path says so (a direct one is, and a memory node's if it is exact). */
		*answered = true;
		*found = false;
		return SMART_OK;
	}
	status = smart_offload_leaf(tree, place.slot, key, tree->leaf_buffer, leaf, &good);
	if (status != SMART_OK)
		return status;
	if (good && leaf->state == SMART_LIVE && leaf->depth == place.depth && smart_leaf_covers(leaf, key))
	{
		*answered = true;
		*found = smart_leaf_contains(leaf, key);
	}
	else if (SMART_FAULT(slotonly) && good && leaf->depth == place.depth && smart_fault_slot_stands(tree, &place))
	{
		*answered = true;
		*found = smart_leaf_contains(leaf, key);
	}
	return SMART_OK;
}

static smart_status
lookup_strict(struct smart_tree *tree, const struct smart_key *key, bool *found)
{
	struct smart_place place;
	struct smart_leaf leaf;
	unsigned int limit;
	smart_status status = smart_settle(tree, key, &place, &leaf, &limit);

	if (status == SMART_OK)
		*found = place.kind == SMART_PLACE_LEAF && smart_leaf_contains(&leaf, key);
	return status;
}

static smart_status
lookup(struct smart_tree *tree, const struct smart_key *key, bool *found)
{
	struct smart_leaf leaf;
	bool answered;
	smart_status status = lookup_fast(tree, key, &leaf, &answered, found);

	return status != SMART_OK || answered ? status : lookup_strict(tree, key, found);
}

/* The same where there are answers: this one is not known, but may be from here on. */
static smart_status
lookup_and_keep(struct smart_tree *tree, const struct smart_key *key, unsigned int point_length,
				struct smart_answer *answer, bool *found)
{
	struct smart_key point = {.bytes = key->bytes, .length = point_length};
	struct smart_leaf leaf = {.state = SMART_NEW};
	bool answered;
	smart_status status = lookup_fast(tree, key, &leaf, &answered, found);

	if (status == SMART_OK && !answered)
		return lookup_strict(tree, key, found);
	if (status == SMART_OK && leaf.state == SMART_LIVE && leaf.depth < point_length)
		smart_keep_answer(tree, &point, &leaf, answer);
	return status;
}

smart_status
smart_tree_lookup(struct smart_tree *tree, const uint8_t *key_bytes, size_t key_length, bool *found)
{
	struct smart_key key = {.bytes = key_bytes, .length = (uint32_t) key_length};
	struct smart_answer answer;
	unsigned int point = 0;
	smart_status status;
	bool there = false;

	if (key_length == 0 || key_length > SMART_KEY_MAX)
		return SMART_TOO_LONG;
	if (tree->answers)
	{
		point = smart_point_of(tree, key_bytes, key_length);
		if (point > 0 && tree->services->find_answer(tree->services, tree->options.id, key_bytes, point, &answer))
		{
			*found = smart_answer_contains(&answer, &key, point);
			return SMART_OK;
		}
	}
	smart_enter(tree);
	status = point > 0 ? lookup_and_keep(tree, &key, point, &answer, &there) : lookup(tree, &key, &there);
	status = smart_leave(tree, status);
	if (status == SMART_OK)
		*found = there;
	return status;
}
