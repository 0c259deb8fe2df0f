/*
 * standby.c
 *	  A removal's block where there is no room.
 *
 * A removal replaces a leaf by a copy.  Where no block is free that is long enough, the copy goes into the standby, a
 * block of the tree that this client alone knows of, from pages that are set apart for that.  The old leaf's block is
 * not retired but becomes the standby, and, when every operation has ended that was open then (I6), takes the leaf's
 * content back; then the first block is the standby again, and can take any leaf's copy.  So a removal needs one block,
 * however many leaves it replaces, and whatever other clients take in the meantime.
 *
 * While a leaf lies in the standby it is sealed, from its beginning: it must not grow longer than the block that it goes
 * back to.  It was never live, so no cache leads to it (B1); a reader confirms its content by its slot, as that of any
 * sealed leaf (B5), and a writer puts another copy in its place if it has room for that (FORWARD).  The removal then finds
 * another leaf there, and takes another standby.
 *
 * Progress: waits for operations of other clients that are open.
 */
#include "tree/block/access.h"
#include "tree/structure/standby.h"

/* Units of a standby: a page, or the longest leaf. */
#define PAGE_UNITS 64

smart_status
smart_standby_build(struct smart_tree *tree, const struct smart_key *key, const struct smart_leaf *leaf,
					smart_slot *copy, smart_status failure)
{
	struct smart_standby *standby = &tree->standby;
	const struct smart_list *list = &tree->list;
	unsigned int units = (unsigned int) SMART_UNITS_FOR(smart_leaf_bytes_for(tree, list, 0, list->count, 0));
	bool parks;
	smart_status status;

	smart_assert(tree->removing && list->count > 0);
	standby->wanted = units;
	if (standby->link == 0 || !standby->ready || smart_slot_size(standby->link) < units)
		return failure;
	/* A leaf that is longer than any that is made otherwise lies in another removal's standby. */
	parks = leaf->units < smart_slot_size(standby->link) ||
			(leaf->units > units && leaf->units > SMART_UNITS_FOR(smart_leaf_most(tree, leaf->prefix_length)));
	status = smart_leaf_build_in(tree, key, leaf->depth, leaf->lo, leaf->hi, list, 0, list->count, standby->link,
								 parks ? SMART_SEALED : SMART_NEW, copy);
	/* It has been retired. */
	if (status != SMART_OK)
		standby->link = 0;
	else
		standby->parked = parks ? *copy : 0;
	return status;
}

/* Does the slot lead to the standby's block? */
static bool
is_standby(const struct smart_tree *tree, smart_slot slot)
{
	return tree->standby.link != 0 && smart_slot_is_leaf(slot) &&
		   smart_slot_address(slot) == smart_slot_address(tree->standby.link);
}

bool
smart_standby_swap(struct smart_tree *tree, smart_slot old, smart_slot copy)
{
	struct smart_standby *standby = &tree->standby;
	bool used = is_standby(tree, copy);
	smart_slot surplus = old;

	smart_assert(smart_slot_is_leaf(old) && !is_standby(tree, old));
	if (used || (standby->link != 0 && smart_slot_size(old) > smart_slot_size(standby->link)))
	{
		surplus = used ? 0 : standby->link;
		standby->link = old;
		standby->ready = false;
	}
	smart_retire_slot(tree, surplus);
	return used && standby->parked == copy;
}

void
smart_standby_lost(struct smart_tree *tree, smart_status status, smart_slot copy)
{
	struct smart_standby *standby = &tree->standby;

	if (!is_standby(tree, copy))
	{
		smart_retire_loser(tree, status, copy);
		return;
	}
	standby->parked = 0;
	standby->ready = false;
	/* The completion of the CAS got lost: it may be linked. */
	if (status != SMART_OK)
		standby->link = 0;
}

/* Waits until the block that was unlinked last may be written.  Within no operation. */
static smart_status
make_ready(struct smart_tree *tree)
{
	struct smart_standby *standby = &tree->standby;
	smart_status status = SMART_OK;

	smart_assert(!tree->entered && standby->link != 0);
	if (!standby->ready && !SMART_FAULT(hasty))
		status =
			tree->services->reuse(tree->services, smart_slot_class(standby->link), smart_slot_address(standby->link));
	standby->ready = status == SMART_OK;
	return status;
}

/* A new one, of at least so many units. */
static smart_status
take(struct smart_tree *tree, unsigned int units)
{
	struct smart_standby *standby = &tree->standby;
	fabric_address address;
	smart_status status;

	smart_assert(!tree->entered && standby->link == 0);
	units = units <= PAGE_UNITS ? PAGE_UNITS : SMART_LEAF_UNITS_MAX;
	status = tree->services->allocate_spared(tree->services, tree->options.id, SMART_CLASS_LEAF(units), true, &address);
	if (status == SMART_OK)
		*standby = (struct smart_standby){.link = smart_slot_make_leaf(0, units, address), .ready = true};
	return status;
}

smart_status
smart_standby_renew(struct smart_tree *tree, smart_status failure)
{
	struct smart_standby *standby = &tree->standby;
	unsigned int wanted = standby->wanted;
	smart_status status;

	smart_assert(tree->entered && tree->locked == 0 && smart_no_room(failure));
	standby->wanted = 0;
	if (wanted == 0 || tree->services->allocate_spared == NULL || SMART_FAULT(nostandby))
		return failure;
	status = smart_leave(tree, SMART_OK);
	if (status == SMART_OK && standby->link != 0 && smart_slot_size(standby->link) < wanted)
		smart_standby_release(tree);
	if (status == SMART_OK)
		status = standby->link != 0 ? make_ready(tree) : take(tree, wanted);
	smart_enter(tree);
	return status == SMART_OK || status == SMART_INTERRUPTED ? status : failure;
}

smart_slot
smart_standby_unpark(struct smart_tree *tree)
{
	struct smart_standby *standby = &tree->standby;
	smart_slot parked = standby->parked;
	smart_status status;

	smart_assert(tree->entered && tree->locked == 0);
	standby->parked = 0;
	if (parked == 0)
		return 0;
	status = smart_leave(tree, SMART_OK);
	/* Not from one standby to another. */
	if (status == SMART_OK && standby->link != 0 && smart_slot_size(standby->link) < smart_slot_size(parked))
		status = make_ready(tree);
	smart_enter(tree);
	return status == SMART_OK ? parked : 0;
}

void
smart_standby_release(struct smart_tree *tree)
{
	struct smart_standby *standby = &tree->standby;

	smart_assert(!tree->entered && standby->parked == 0);
	if (standby->link == 0)
		return;
	smart_enter(tree);
	smart_retire_slot(tree, standby->link);
	*standby = (struct smart_standby){.link = 0};
	(void) smart_leave(tree, SMART_OK);
}
