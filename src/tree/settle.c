/*
 * settle.c
 *	  Answers from leaves that are changing (B5).
 */
#include "tree/internal.h"

/*
 * B5.  Finds the leaf that answers for key now, and up to which byte of its depth
 * (*limit).  A sealed leaf, or one narrowed below the key's byte, answers too
 * if a second strict descent, after its content was read, still finds it: then
 * its upper half had not been given away.  place->kind tells: with EMPTY and
 * MISMATCH there is no leaf.
 */
smart_status
smart_settle(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place, struct smart_leaf *leaf,
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
			return SMART_OK;
		}
		kept = 0;
		status = smart_leaf_read(tree, place->slot, key, tree->kept_buffer, leaf, &good);
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
