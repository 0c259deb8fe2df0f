/*
 * overwrite.c
 *	  Updates in exclusive mode: a value is changed by a WRITE (V5).
 *
 * The local lock of the leaf keeps away whoever could seal or narrow it, so that a leaf which is live when it is looked
 * at under the lock is live, and the key's, until the lock is let go: the WRITE needs nothing to compare with, the leaf no
 * mark, and its values are not frozen when it is copied.  The leaf's copy stands for the look (A5).
 *
 * Clients that update one key at the same time share a WRITE, as they share a CAS in shared mode (update.c): one of those
 * that wait WRITEs its own value after all of them have asked, and the others' count as done just before it.
 *
 * Progress: waits for the leaf's local lock, and for an update that is shared.
 */
#include "tree/block/access.h"
#include "tree/block/copies.h"
#include "tree/block/lock.h"
#include "tree/block/values.h"
#include "tree/cached/hints.h"
#include "tree/cached/results.h"
#include "tree/find/find.h"
#include "tree/structure/strict.h"
#include "tree/write/overwrite.h"

/* Updates of longer keys are not shared. */
#define SHARED_KEY_MAX 64

/* An update on its way. */
struct overwrite
{
	const struct smart_key *key;
	uint64_t word; /* the new one */
	bool strict;   /* the cache has misled this update */
	bool finished;
	bool found;
};

/* Under the lock.  One aligned word, which is stored as a whole. */
static smart_status
write_value(struct smart_tree *tree, const struct smart_leaf *leaf, unsigned int entry, uint64_t word)
{
	unsigned int offset = smart_value_offset(leaf, entry);
	struct fabric_request request = {.verb = FABRIC_WRITE,
									 .remote = leaf->address + offset,
									 .local = &word,
									 .length = sizeof(word)};
	struct smart_blocked blocked = {.version = SMART_VERSION_NONE};
	uint64_t ticket;
	smart_status status;

	smart_assert(tree->locked == leaf->address && leaf->state == SMART_LIVE && request.remote % sizeof(word) == 0);
	if (!SMART_FAULT(latecopy))
		blocked = smart_leaf_hint_block(tree, leaf->link);
	status = smart_execute(tree, &request, 1);
	ticket = smart_leaf_hint_unblock(tree, &blocked);
	if (status != SMART_OK)
		return status;
	memcpy((uint8_t *) (uintptr_t) leaf->block + offset, &word, sizeof(word));
	smart_leaf_copy_changed(tree, leaf->link, leaf->block, leaf->meta, ticket);
	return SMART_OK;
}

/* At a leaf: takes its lock, looks at it, and WRITEs. */
static smart_status
overwrite_at_leaf(struct smart_tree *tree, struct overwrite *update, const struct smart_place *place)
{
	struct smart_leaf_lock lock;
	struct smart_leaf leaf;
	bool stuck;
	bool good;
	bool help;
	int entry;
	smart_status status = smart_lock_local(tree, place->slot);

	smart_assert(place->kind == SMART_PLACE_LEAF);
	if (status != SMART_OK)
		return status;
	good = smart_leaf_copy_find(tree, place->slot, update->key, tree->leaf_buffer, true, &leaf);
	if (!good)
		status = smart_leaf_read_locked(tree, place->slot, update->key, &lock, &leaf, &good, &stuck);
	if (status != SMART_OK)
		return status;
	smart_assert(tree->locked == smart_slot_address(place->slot));
	if (!good || leaf.state != SMART_LIVE || leaf.depth != place->depth || !smart_leaf_covers(&leaf, update->key))
	{
		/* C3: not what the slot promised, or changing. */
		help = good && update->strict;
		smart_unlock_local(tree);
		update->strict = true;
		return help ? smart_forward(tree, update->key, leaf.address) : SMART_OK;
	}
	entry = smart_leaf_find(&leaf, update->key);
	if (entry >= 0)
		status = write_value(tree, &leaf, (unsigned int) entry, update->word);
	update->finished = status == SMART_OK;
	update->found = update->finished && entry >= 0;
	smart_unlock_local(tree);
	return status;
}

static smart_status
overwrite_once(struct smart_tree *tree, struct overwrite *update)
{
	struct smart_place place = {.kind = SMART_PLACE_UNKNOWN};
	smart_status status = SMART_OK;

	smart_assert(tree->entered && tree->locked == 0 && !update->finished);
	if (!update->strict)
		status = smart_find_fast(tree, update->key, &place);
	if (status == SMART_OK && place.kind != SMART_PLACE_LEAF)
		status = smart_find_strict(tree, update->key, &place);
	if (status != SMART_OK)
		return status;
	update->finished = place.kind != SMART_PLACE_LEAF;
	return update->finished ? SMART_OK : overwrite_at_leaf(tree, update, &place);
}

static smart_status
overwrite_alone(struct smart_tree *tree, const struct smart_key *key, uint64_t word, bool *found)
{
	struct overwrite update = {.key = key, .word = word};
	unsigned int attempts = 0;
	smart_status status;

	do
	{
		status = smart_again(tree, &attempts);
		if (status == SMART_OK)
			status = overwrite_once(tree, &update);
		smart_assert(tree->locked == 0);
	} while (status == SMART_OK && !update.finished);
	*found = status == SMART_OK && update.found;
	return status;
}

/* A place in the table where READs of leaves and updates are shared that is no leaf's: for one key, or by chance for two. */
static fabric_address
shared_place(const struct smart_tree *tree, const struct smart_key *key)
{
	return (smart_prefix_hash(tree, key, key->length) & ~(uint64_t) (SMART_UNIT - 1)) | sizeof(uint64_t);
}

/* Key and word are what one client delivers to another, so that who waits for another key goes on by itself. */
smart_status
smart_overwrite(struct smart_tree *tree, const struct smart_key *key, uint64_t word, bool *found)
{
	struct smart_services *services = tree->services;
	enum smart_delegation delegation = SMART_READ_ALONE;
	uint8_t told[SHARED_KEY_MAX + sizeof(word)];
	uint32_t length = key->length + (uint32_t) sizeof(word);
	smart_status status = SMART_OK;

	smart_assert(tree->options.value && !tree->options.shared && tree->entered && tree->locked == 0);
	*found = false;
	if (services->read_begin != NULL && key->length <= SHARED_KEY_MAX)
		status = services->read_begin(services, shared_place(tree, key), told, length, &delegation);
	if (status != SMART_OK)
		return status;
	*found = delegation == SMART_READ_DELIVERED && memcmp(told, key->bytes, key->length) == 0;
	if (*found)
		return SMART_OK;
	tree->leads = delegation == SMART_READ_LEADS;
	status = overwrite_alone(tree, key, word, found);
	tree->leads = false;
	if (delegation != SMART_READ_LEADS)
		return status;
	memcpy(told, key->bytes, key->length);
	memcpy(told + key->length, &word, sizeof(word));
	services->read_end(services, *found ? told : NULL, length);
	return status;
}
