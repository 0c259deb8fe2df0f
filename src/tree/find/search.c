/*
 * search.c
 *	  Finding the leaf of a key fast: by pointers on a direct provider, through
 *	  the cache of nodes elsewhere.
 *
 * By pointers a descent is as strict as any (B3, B4): it starts at the root's
 * word, loads every node within this operation, and gives up
 * (SMART_PLACE_UNKNOWN) at a node that is not live, a slot that is frozen, or a
 * view that is torn.  So its "empty" may be believed.
 *
 * Where keys come in order, the next one goes where the last one went: a handle
 * remembers the node of the last leaf by pointers, and the slot in it.  Nothing
 * of this is believed unseen: an operation reads header, identity and slot anew,
 * within its own epoch.
 *
 * Through a cache it shows where a leaf probably is, and nothing else may be
 * concluded (B1): a live leaf with the right checksum and range answers for
 * itself, however it was reached (I1).
 */
#include "tree/block/access.h"
#include "tree/find/find.h"

/* ---- by pointers ---- */

/* What a node's or a leaf's slot leads to: the slot tells how long it is. */
static inline void
prefetch_child(const struct smart_tree *tree, const struct smart_place *place)
{
	unsigned int size = smart_slot_size(place->slot);

	smart_prefetch_block(tree, smart_slot_address(place->slot),
						 place->kind == SMART_PLACE_LEAF ? size * SMART_UNIT : smart_kind_bytes(size));
}

/* Through the node to which place leads, which was read within this epoch. */
static inline smart_status
pass_node(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place)
{
	unsigned int kind = smart_slot_size(place->slot);
	fabric_address node = smart_slot_address(place->slot);
	const uint64_t *words = fabric_direct(tree->fabric, node, smart_kind_bytes(kind));
	enum smart_place_kind found;
	uint64_t header;

	if (smart_unlikely(words == NULL || kind > SMART_NODE_KINDS))
		return SMART_CORRUPT;
	header = smart_load_acquire(words);
	if (smart_unlikely(smart_node_state(header) != SMART_LIVE || smart_node_depth(header) < place->consumed))
	{
		place->kind = SMART_PLACE_UNKNOWN;
		return SMART_OK;
	}
	found = smart_place_step(place, header, words + SMART_NODE_HEAD_WORDS, kind, tree->kind_slots[kind], key, false);
	/* Each step consumes the byte that the node branches on, so that a descent ends. */
	smart_assert(found > SMART_PLACE_NODE || place->consumed == smart_node_depth(header) + 1);
	if (smart_unlikely(found == SMART_PLACE_FROZEN))
		place->kind = SMART_PLACE_UNKNOWN;
	place->index = 0; /* any but the root's */
	place->shared = words;
	place->shared_at = node;
	return SMART_OK;
}

/* From place on, which was read within this epoch, as long as it leads to a node. */
static smart_status
walk_direct(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place)
{
	smart_status status = SMART_OK;

	smart_assert(tree->direct && tree->entered);
	while (place->kind == SMART_PLACE_NODE && status == SMART_OK)
		status = pass_node(tree, key, place);
	if (smart_likely(place->kind == SMART_PLACE_LEAF && status == SMART_OK))
		prefetch_child(tree, place);
	else if (place->kind == SMART_PLACE_FROZEN)
		place->kind = SMART_PLACE_UNKNOWN;
	return status;
}

/* Is the node still what it was then?  If so it stays so within this epoch. */
static bool
ancestor_stands(const struct smart_ancestor *ancestor)
{
	return smart_load_acquire(&ancestor->words[0]) == ancestor->header &&
		   smart_load_acquire(&ancestor->words[1]) == ancestor->identity;
}

smart_status
smart_find_from(struct smart_tree *tree, const struct smart_key *key, struct smart_ancestor *ancestor,
				struct smart_place *place, bool *found)
{
	const uint64_t *words = ancestor->words;
	unsigned int kind = smart_node_kind(ancestor->header);

	smart_assert(tree->direct && smart_node_state(ancestor->header) == SMART_LIVE);
	*found = ancestor_stands(ancestor);
	if (!*found)
	{
		ancestor->words = NULL;
		return SMART_OK;
	}
	place->index = 0;
	place->shared = words;
	place->shared_at = ancestor->address;
	place->consumed = smart_node_depth(ancestor->header);
	smart_place_step(place, ancestor->header, words + SMART_NODE_HEAD_WORDS, kind, tree->kind_slots[kind], key, false);
	return walk_direct(tree, key, place);
}

/* ---- what a handle remembers by pointers ---- */

/*
 * The remembered leaf, if its slot is still the same and it is live and covers
 * the key's byte: then it answers, whichever slot a search would have come to
 * (I1).
 */
static bool
find_recent_leaf(const struct smart_recent *recent, const struct smart_key *key, struct smart_place *place)
{
	unsigned int depth = smart_node_depth(recent->node.header);
	unsigned int byte = smart_key_byte(key, depth);
	uint64_t meta;

	/* The partial key is the lowest byte of a leaf's range. */
	if (recent->slot == 0 || byte < smart_slot_pk(recent->slot))
		return false;
	if (!SMART_FAULT(recent) &&
		(!ancestor_stands(&recent->node) || smart_load_acquire(recent->slot_word) != recent->slot))
		return false;
	smart_assert(smart_slot_is_leaf(recent->slot) && !smart_slot_frozen(recent->slot) && recent->node.words != NULL);
	meta = smart_load_acquire(recent->meta);
	if (smart_meta_state(meta) != SMART_LIVE || byte > smart_meta_hi(meta))
		return false;
	place->kind = SMART_PLACE_LEAF;
	place->slot = recent->slot;
	place->index = 0; /* any but the root's */
	place->shared = recent->node.words;
	place->shared_at = recent->node.address;
	place->depth = depth;
	place->consumed = depth + 1;
	return true;
}

/* The node was live within this epoch and has the key's first bytes for its prefix. */
static bool
remember_node(struct smart_recent *recent, const struct smart_key *key, const uint64_t *words, fabric_address address)
{
	struct smart_ancestor node;
	unsigned int depth;

	smart_remember_ancestor(&node, words, address);
	depth = smart_node_depth(node.header);
	if (node.words == NULL || depth > SMART_RECENT_DEPTH_MAX || depth >= key->length)
		return false;
	smart_assert(smart_node_state(node.header) == SMART_LIVE && depth <= sizeof(recent->prefix));
	recent->node = node;
	recent->slot = 0;
	memcpy(recent->prefix, key->bytes, depth);
	return true;
}

void
smart_remember_node(struct smart_tree *tree, const struct smart_key *key, const struct smart_node *node)
{
	const uint64_t *words;

	if (!tree->direct)
		return;
	words = fabric_direct(tree->fabric, node->address, smart_kind_bytes(node->kind));
	if (words != NULL)
		remember_node(&tree->recent, key, words, node->address);
}

void
smart_remember_leaf(struct smart_tree *tree, const struct smart_key *key, const struct smart_place *place)
{
	struct smart_recent *recent = &tree->recent;
	unsigned int length = smart_slot_size(place->slot) * SMART_UNIT;
	const uint8_t *block;
	const uint64_t *slots;
	unsigned int count;
	unsigned int i = 0;

	smart_assert(tree->direct && place->kind == SMART_PLACE_LEAF);
	if (place->index < 0 || (place->slot == recent->slot && place->shared == recent->node.words))
		return;
	if (place->slot != recent->last)
	{
		recent->last = place->slot;
		return;
	}
	block = fabric_direct(tree->fabric, smart_slot_address(place->slot), length);
	if (block == NULL || !remember_node(recent, key, place->shared, place->shared_at))
		return;
	slots = place->shared + SMART_NODE_HEAD_WORDS;
	count = tree->kind_slots[smart_node_kind(recent->node.header)];
	while (i < count && smart_load_acquire(&slots[i]) != place->slot)
		i++;
	if (i == count)
		return;
	/* A leaf that is taken without a descent was in a live node's slot that is not frozen. */
	smart_assert(recent->node.words == place->shared && smart_slot_is_leaf(place->slot));
	recent->slot = place->slot;
	recent->slot_word = &slots[i];
	recent->meta = (const uint64_t *) (const void *) (block + length - SMART_LEAF_REAR_BYTES);
}

/* A descent begins. */
static inline void
begin_direct(const uint64_t *root, struct smart_place *place)
{
	place->slot = smart_load_acquire(root);
	place->kind = smart_place_kind_of(place->slot, 0, false);
	place->index = -1;
	place->depth = 0;
	place->consumed = 0;
}

static smart_status
find_direct(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place)
{
	const uint64_t *root = fabric_direct(tree->fabric, tree->options.root, sizeof(uint64_t));
	struct smart_recent *recent = &tree->recent;
	unsigned int depth = smart_node_depth(recent->node.header);

	/* Does the key lie below the remembered node? */
	if (recent->node.words != NULL && key->length > depth && memcmp(recent->prefix, key->bytes, depth) == 0)
	{
		bool found = find_recent_leaf(recent, key, place);
		smart_status status = SMART_OK;

		if (!found)
			status = smart_find_from(tree, key, &recent->node, place, &found);
		if (status != SMART_OK || found)
			return status;
	}
	if (root == NULL)
		return SMART_CORRUPT;
	begin_direct(root, place);
	return walk_direct(tree, key, place);
}

/* Walks to the leaves of some keys, one node of each in turn, and prefetches what comes next on each way. */
static smart_status
walk_together(struct smart_tree *tree, const struct smart_key *keys, unsigned int count, struct smart_place *places)
{
	const uint64_t *root = fabric_direct(tree->fabric, tree->options.root, sizeof(uint64_t));
	unsigned int walking[SMART_AHEAD_MAX];
	unsigned int left = count;
	smart_status status = root == NULL ? SMART_CORRUPT : SMART_OK;

	smart_assert(tree->direct && tree->entered && count <= SMART_AHEAD_MAX);
	for (unsigned int i = 0; i < count && status == SMART_OK; i++)
	{
		begin_direct(root, &places[i]);
		walking[i] = i;
	}
	while (left > 0 && status == SMART_OK)
	{
		unsigned int walked = left;

		left = 0;
		for (unsigned int i = 0; i < walked && status == SMART_OK; i++)
		{
			struct smart_place *place = &places[walking[i]];

			if (place->kind == SMART_PLACE_NODE)
				status = pass_node(tree, &keys[walking[i]], place);
			if (place->kind == SMART_PLACE_NODE || place->kind == SMART_PLACE_LEAF)
				prefetch_child(tree, place);
			if (place->kind == SMART_PLACE_NODE)
				walking[left++] = walking[i];
		}
	}
	return status;
}

smart_status
smart_find_ahead(struct smart_tree *tree, const struct smart_key *keys, unsigned int count)
{
	const struct smart_key ends[2] = {keys[0], keys[count - 1]};
	struct smart_place places[SMART_AHEAD_MAX];
	smart_status status = walk_together(tree, ends, 2, places);

	/* If the first and the last key lead to one leaf, so do those between, as when keys ascend behind what is there. */
	if (status == SMART_OK && count > 2 && places[0].slot != places[1].slot)
		status = walk_together(tree, keys + 1, count - 2, places);
	return status;
}

/* ---- by way of the cache ---- */

static smart_status
find_cached(struct smart_tree *tree, const struct smart_key *key, bool parts, struct smart_place *place)
{
	struct smart_services *services = tree->services;
	smart_slot root;
	uint64_t moment;
	smart_status status;

	smart_assert(!tree->direct && tree->entered);
	*place = (struct smart_place){.kind = SMART_PLACE_UNKNOWN, .index = -1};
	smart_offload_begin(tree);
	if (!services->cache_find(services, tree->options.id, 0, &root, &moment))
	{
		status = smart_offload_root(tree, key, &root);
		if (status != SMART_OK)
			return status;
		smart_keep_node(tree, 0, &root);
	}
	place->slot = root;
	place->kind = smart_place_kind_of(root, 0, true);
	while (place->kind == SMART_PLACE_NODE)
	{
		struct smart_node *node = smart_next_node(tree, place);
		smart_slot link = place->slot;
		bool usable;

		place->kind = SMART_PLACE_UNKNOWN;
		if (!smart_node_recall(tree, link, place->consumed, node, &usable))
		{
			/* Reverse check: an address may have been used again since its slot was cached. */
			status = smart_offload_node(tree, place, parts, node, key, &usable);
			if (status != SMART_OK)
				return status;
			if (usable && !node->part)
				smart_keep_read_node(tree, node, node->today);
		}
		if (!usable)
		{
			smart_forget_node(tree, link);
			return SMART_OK;
		}
		/* Copies of different moments may lead in a circle: the way goes downwards only. */
		smart_assert(node->link == link && node->depth >= node->arrived);
		smart_node_set_parent(node, place);
		smart_node_step(node, key, place, true);
		smart_assert(place->kind > SMART_PLACE_NODE || (place->node == node && place->consumed > node->arrived));
	}
	if (place->kind != SMART_PLACE_LEAF && !(SMART_FAULT(trustempty) && place->kind == SMART_PLACE_EMPTY))
		place->kind = SMART_PLACE_UNKNOWN;
	return SMART_OK;
}

smart_status
smart_find_cached(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place)
{
	return find_cached(tree, key, true, place);
}

static smart_status
find_fast(struct smart_tree *tree, const struct smart_key *key, bool parts, struct smart_place *place)
{
	if (tree->direct)
		return find_direct(tree, key, place);
	if (tree->services->cache_find == NULL)
	{
		place->kind = SMART_PLACE_UNKNOWN;
		return SMART_OK;
	}
	return find_cached(tree, key, parts, place);
}

smart_status
smart_find_fast(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place)
{
	return find_fast(tree, key, true, place);
}

smart_status
smart_find_whole(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place)
{
	return find_fast(tree, key, false, place);
}
