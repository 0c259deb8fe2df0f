/*
 * change.h
 *	  Changes of structure: a leaf or a node gives way to others (src/README).
 */
#ifndef SMART_TREE_CHANGE_H
#define SMART_TREE_CHANGE_H

#include "tree/block/lock.h"

/* ---- a leaf's end (replace.c) ---- */

/*
 * I5, in the view of place: byte hi + 1 is still covered by the leaf's own slot.
 * The view must be newer than the leaf's meta.
 */
extern bool smart_pending(const struct smart_place *place, const struct smart_leaf *leaf);

/*
 * SEAL: live -> sealed, from the exact value read.  Only for a leaf that is not
 * pending in a strict view newer than that value.  *sealed false: it changed.
 */
extern smart_status smart_seal(struct smart_tree *tree, struct smart_leaf *leaf, bool *sealed);

/*
 * V3: the leaf is about to be copied; place is strict and leads to it, not pending.  If values may have been changed
 * there, it is sealed, which lets go of *lock and makes that NULL (as in smart_end_leaf), and its values are frozen.
 * *gone: another client has replaced it.
 */
extern smart_status
smart_settle_values(struct smart_tree *tree, struct smart_leaf *leaf, struct smart_leaf_lock **lock, bool *gone);

/* smart_link of the slot that a strict descent came to, and of its copy in the cache; *won: it leads to desired now. */
extern smart_status
smart_place_cas(struct smart_tree *tree, const struct smart_place *place, smart_slot desired, bool *won);

/*
 * The CAS of the slot of a leaf that ends; *won: it leads to desired now.  lock NULL: the leaf is sealed.  Else it is
 * live, not pending in a strict view newer than its meta, and the caller holds its lock: it is sealed here.
 */
extern smart_status smart_end_leaf(struct smart_tree *tree, const struct smart_place *place, struct smart_leaf *leaf,
								   struct smart_leaf_lock *lock, smart_slot desired, bool *won);

/* Entries that a rewrite leaves out. */
struct smart_drop
{
	bool (*dead)(void *argument, const struct smart_leaf *leaf, const uint8_t *suffix, unsigned int length);
	void *argument;
	/* Set by the rewrite: */
	uint32_t count;             /* entries left out */
	uint32_t kept;              /* all other ones, */
	unsigned int depth, lo, hi; /* of the range with these bytes at depth */
};

/* Removes from the list, which has the leaf's entries, what drop takes for dead. */
extern void smart_drop_entries(struct smart_list *list, const struct smart_leaf *leaf, struct smart_drop *drop);

/* How a leaf is rewritten. */
struct smart_rewrite
{
	struct smart_drop *drop;      /* NULL: keep all */
	size_t reserve;               /* bytes of room wanted */
	size_t guest;                 /* bytes of an entry for the copy to take in if it finds room, the key's; 0: none */
	bool took;                    /* set by the rewrite: it did */
	struct smart_leaf_lock *lock; /* as in smart_end_leaf */
};

/*
 * REPLACE-LEAF.  place is strict and its slot leads to leaf.  The copy holds the entries up to hi but those that drop
 * names, or is an empty range.  *won: this client's CAS took the slot over (and with it, drops and
 * the guest took effect).
 */
extern smart_status
smart_replace_leaf(struct smart_tree *tree, const struct smart_key *key, const struct smart_place *place,
				   struct smart_leaf *leaf, struct smart_rewrite *rewrite, bool *won);

/* ---- a node's end (grow.c) ---- */

/*
 * REPLACE-NODE.  node was read by a strict descent of this operation; key leads through it.  merge: small neighbouring
 * leaves become one.  Losing the last CAS is no error: another client replaced the node, or its parent is frozen, and the
 * caller's next strict descent meets that one.  Nor is it one if the parent cannot be told because the path is changing,
 * or if a frozen node that lies on the way to the parent is replaced instead.  *tried (not if NULL): this node itself
 * was replaced, here or by another client.
 */
extern smart_status smart_replace_node(struct smart_tree *tree, const struct smart_key *key,
									   const struct smart_node *node, bool merge, bool *tried);

/* ---- a leaf's halves (split.c) ---- */

/*
 * The partial key at which sorted entries are cut in two, position counted from the list's base: the lower part gets the
 * bytes below it.  Above all entries when keys ascend, so that the lower leaf stays full; else where the halves come
 * closest in bytes.  0: all entries have one byte there.
 */
extern unsigned int
smart_choose_cut(const struct smart_list *list, unsigned int position, unsigned int key_byte, bool ascending);
/*
 * Where to split a leaf above all its entries, so that it stays full and nothing has
 * to be copied, since keys ascend; 0: the key does not lie above all entries.
 */
extern unsigned int smart_split_edge(const struct smart_key *key, const struct smart_leaf *leaf);
/* Where to split a leaf of more than one byte, whose entries are in tree->list, in order. */
extern unsigned int smart_split_middle(const struct smart_tree *tree, const struct smart_key *key,
									   const struct smart_leaf *leaf, bool ascending);

/*
 * Units of the block that D2 takes for the leaf's upper half from mid on, with the key, of which length bytes are stored,
 * if that belongs there; 0: none.  The leaf's entries are in tree->list, in order.  Sets *status if that is an error.
 */
extern unsigned int smart_split_units(struct smart_tree *tree, const struct smart_key *key, size_t length,
									  unsigned int mid, smart_status *status);

/* A leaf's meta on its way to a lower hi (D1). */
struct smart_narrowing
{
	uint64_t desired;
	uint64_t seen;
	struct smart_blocked blocked; /* the leaf's hint */
};

/*
 * D1 with the next batch: narrows the leaf, whose lock is held, to the bytes below mid.
 * From the exact meta that was read, so that nothing was appended or sealed since.
 * smart_end_narrowing has to follow.
 */
extern smart_status smart_narrow(struct smart_tree *tree, const struct smart_leaf *leaf, unsigned int mid,
								 struct smart_narrowing *narrowing);
/* The batch of D1 is over, or has to be now; *done: the leaf is narrow, in the view, too. */
extern smart_status smart_end_narrowing(struct smart_tree *tree, struct smart_leaf_lock *lock, struct smart_leaf *leaf,
										struct smart_narrowing *narrowing, bool *done);

/*
 * INSTALL (D2).  place is strict, leaf is what its slot leads to, pending in
 * this view.  Installs the slot for [hi + 1 .. next partial key - 1] with the
 * entries that lie there, or finds that another client did.
 */
extern smart_status smart_install(struct smart_tree *tree, const struct smart_key *key, const struct smart_place *place,
								  const struct smart_leaf *leaf);
/*
 * SPLIT: D2, and D3 if there is anything to drop, of a leaf that this client has
 * narrowed; its lock is held; place is strict and leads to it, pending.  *added: the key,
 * of which length bytes are stored and which was not in the leaf, is in one of the
 * halves now.
 */
extern smart_status
smart_split(struct smart_tree *tree, const struct smart_key *key, size_t length, const struct smart_place *place,
			struct smart_leaf *leaf, struct smart_leaf_lock *lock, bool *added);

/* ---- a leaf gives way to a node (down.c) ---- */

/*
 * DOWN.  place is strict and its slot leads to leaf, which is to be sealed as in
 * smart_end_leaf, and holds entries; key, of which length bytes are to be stored, is to come into its range,
 * and is not there.  *added: it is now.
 */
extern smart_status
smart_down(struct smart_tree *tree, const struct smart_key *key, size_t length, const struct smart_place *place,
		   struct smart_leaf *leaf, struct smart_leaf_lock *lock, bool ascending, bool *added);
/* Slots of a new node: byte leads where link does, with empty ranges around it.  How many: three at most. */
static inline unsigned int
smart_slots_around(smart_slot *slots, smart_slot link, unsigned int byte)
{
	unsigned int count = 0;

	smart_assert(smart_slot_used(link) && byte <= 255);
	if (byte > 0)
		slots[count++] = smart_slot_make_empty(0, byte - 1);
	slots[count++] = smart_slot_with_pk(link, byte);
	if (byte < 255)
		slots[count++] = smart_slot_make_empty(byte + 1, 255);
	return count;
}

/*
 * Wraps the node at depth that *link leads to into chain nodes, until a reader
 * that comes with consumed bytes gets there by five bytes a step.  made() is
 * told of each; NULL: not wanted.
 */
extern smart_status
smart_make_chain(struct smart_tree *tree, const struct smart_key *key, unsigned int consumed, unsigned int depth,
				 smart_slot *link, void (*made)(void *argument, smart_slot link), void *argument);

#endif /* SMART_TREE_CHANGE_H */
