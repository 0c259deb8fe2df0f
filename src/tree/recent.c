/*
 * recent.c
 *	  What a handle remembers by pointers: where keys come in order, the next one
 *	  goes where the last one went.
 *
 * The node of the last leaf, and the slot in it.  Nothing of this is believed
 * unseen: an operation reads header, identity and slot anew, within its own
 * epoch (B3).
 */
#include "tree/internal.h"

/* Is the node still what it was then?  If so it stays so within this epoch. */
bool
smart_ancestor_stands(const struct smart_ancestor *ancestor)
{
	return smart_load_acquire(&ancestor->words[0]) == ancestor->header &&
		   smart_load_acquire(&ancestor->words[1]) == ancestor->identity;
}

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
		(!smart_ancestor_stands(&recent->node) || smart_load_acquire(recent->slot_word) != recent->slot))
		return false;
	meta = smart_load_acquire(recent->meta);
	if (smart_meta_state(meta) != SMART_LIVE || byte > smart_meta_hi(meta))
		return false;
	place->kind = SMART_PLACE_LEAF;
	place->slot = recent->slot;
	place->index = 0; /* any but the root's */
	place->shared = recent->node.words;
	place->depth = depth;
	place->consumed = depth + 1;
	return true;
}

/* From the remembered leaf or node, below which the key lies; *found false: start at the root. */
smart_status
smart_find_recent(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place, bool *found)
{
	struct smart_recent *recent = &tree->recent;
	smart_status status;

	*found = find_recent_leaf(recent, key, place);
	if (*found)
		return SMART_OK;
	status = smart_find_from(tree, key, &recent->node, place, found);
	if (status == SMART_OK && !*found)
		recent->node.words = NULL;
	return status;
}

/* The node was live within this epoch and has the key's first bytes for its prefix. */
static bool
remember_node(struct smart_recent *recent, const struct smart_key *key, const uint64_t *words)
{
	uint64_t header = smart_load_acquire(&words[0]);
	unsigned int depth = smart_node_depth(header);

	if (smart_node_state(header) != SMART_LIVE || depth > SMART_RECENT_DEPTH_MAX || depth >= key->length)
		return false;
	recent->node = (struct smart_ancestor){.words = words, .header = header, .identity = smart_load_acquire(&words[1])};
	recent->slot = 0;
	memcpy(recent->prefix, key->bytes, depth);
	return true;
}

/* The next keys will probably lie below this node, too; key lies below it. */
void
smart_remember_node(struct smart_tree *tree, const struct smart_key *key, const struct smart_node *node)
{
	const uint64_t *words;

	if (!tree->direct)
		return;
	words = fabric_direct(tree->fabric, node->address, smart_kind_bytes(node->kind));
	if (words != NULL)
		remember_node(&tree->recent, key, words);
}

/* An insert was led to this leaf by pointers; the second time in a row the leaf is remembered. */
void
smart_remember_leaf(struct smart_tree *tree, const struct smart_key *key, const struct smart_place *place)
{
	struct smart_recent *recent = &tree->recent;
	unsigned int length = smart_slot_size(place->slot) * SMART_UNIT;
	const uint8_t *block;
	const uint64_t *slots;
	unsigned int count;
	unsigned int i = 0;

	if (place->index < 0 || (place->slot == recent->slot && place->shared == recent->node.words))
		return;
	if (place->slot != recent->last)
	{
		recent->last = place->slot;
		return;
	}
	block = fabric_direct(tree->fabric, smart_slot_address(place->slot), length);
	if (block == NULL || !remember_node(recent, key, place->shared))
		return;
	slots = place->shared + SMART_NODE_HEAD_WORDS;
	count = tree->kind_slots[smart_node_kind(recent->node.header)];
	while (i < count && smart_load_acquire(&slots[i]) != place->slot)
		i++;
	if (i == count)
		return;
	recent->slot = place->slot;
	recent->slot_word = &slots[i];
	recent->meta = (const uint64_t *) (const void *) (block + length - SMART_LEAF_REAR_BYTES);
}
