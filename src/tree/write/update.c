/*
 * update.c
 *	  Update: a value is changed in place, in shared mode by one CAS (V1-V3), in exclusive mode by a WRITE (overwrite.c).
 *
 * A READ of the leaf, as a lookup's, and a CAS of the value's word; the first update in a leaf marks it in between.
 * Clients of a compute node that update one value at the same time share a CAS: one of those that wait CASes its own
 * value, and the others' count as done just before it.
 *
 * Progress: lock-free, but for marking, which waits for the leaf's lock, and for a CAS that is shared.
 */
#include "tree/block/access.h"
#include "tree/block/values.h"
#include "tree/find/find.h"
#include "tree/structure/strict.h"
#include "tree/write/overwrite.h"

/* Looks at a leaf that one holder of its lock keeps from being marked, before that one counts as stuck. */
#define PATIENCE 24

/* CASes of a client that does it for others, too, at most: if two are lost, the second one's winner came after them. */
#define SHARED_CASES 2

/* An update on its way. */
struct update
{
	struct smart_key key;
	uint64_t word; /* the new one */
	bool strict;   /* the cache has misled this update */
	bool finished;
	bool found;
	uint64_t locked;    /* meta as it was seen last, locked */
	unsigned int looks; /* since it was first seen so */
};

/* V1: one CAS of the word, which holds expected as far as is known.  *seen: what it held. */
static smart_status
cas_value(struct smart_tree *tree, fabric_address word, uint64_t expected, uint64_t desired, uint64_t *seen)
{
	struct fabric_request request = {.verb = FABRIC_CAS, .remote = word, .compare = expected, .operand = desired};
	smart_status status = smart_execute(tree, &request, 1);

	smart_assert(smart_value_written(desired) && !smart_value_frozen(desired) && word % SMART_VALUE_BYTES == 0);
	*seen = request.result;
	return status;
}

/* Another update, and no copier or new owner of the block, has taken the word's place. */
static bool
is_update(uint64_t word)
{
	return smart_value_written(word) && (!smart_value_frozen(word) || SMART_FAULT(frozenlost));
}

/*
 * For this client alone, or for those that wait, too.  A lost CAS that met another update counts as done just before that
 * one, which came after this client's READ.  But a client that waits may have come after it: so it takes another CAS.
 */
static smart_status
change_value(struct smart_tree *tree, fabric_address word, uint64_t expected, uint64_t desired, bool shared, bool *done)
{
	int most = shared && !SMART_FAULT(latevalue) ? SHARED_CASES : 1;
	smart_status status = SMART_OK;
	uint64_t seen = 0;

	*done = false;
	for (int i = 0; i < most && status == SMART_OK && !*done; i++)
	{
		status = cas_value(tree, word, expected, desired, &seen);
		*done = status == SMART_OK && seen == expected;
		if (status == SMART_OK && !*done && !is_update(seen))
			return SMART_OK;
		expected = seen;
	}
	if (status == SMART_OK)
		*done = true;
	return status;
}

/* The same, shared with other clients of the compute node that want it now. */
static smart_status
change_together(struct smart_tree *tree, fabric_address word, uint64_t expected, uint64_t desired, bool *done)
{
	struct smart_services *services = tree->services;
	enum smart_delegation delegation = SMART_READ_ALONE;
	uint64_t told = desired;
	smart_status status = SMART_OK;

	if (services->read_begin != NULL)
		status = services->read_begin(services, word, (uint8_t *) &told, sizeof(told), &delegation);
	*done = status == SMART_OK && delegation == SMART_READ_DELIVERED;
	if (status != SMART_OK || *done)
		return status;
	status = change_value(tree, word, expected, desired, delegation == SMART_READ_LEADS, done);
	if (delegation == SMART_READ_LEADS)
		services->read_end(services, *done ? (const uint8_t *) &desired : NULL, sizeof(desired));
	return status;
}

/* V2: the leaf is marked, or *marked is false, and this attempt is over. */
static smart_status
mark(struct smart_tree *tree, struct update *update, struct smart_leaf *leaf, bool *marked)
{
	unsigned int patience = tree->options.patience > 0 ? tree->options.patience : PATIENCE;

	*marked = (leaf->meta & SMART_META_UPDATED) != 0 || SMART_FAULT(unmarked);
	if (*marked)
		return SMART_OK;
	if (!smart_meta_locked(leaf->meta))
		return smart_values_mark(tree, leaf, marked);
	if (update->locked != leaf->meta)
		update->looks = 0;
	update->locked = leaf->meta;
	if (++update->looks > patience)
		return smart_forward(tree, &update->key, leaf->address);
	tree->env->pause(tree->env, update->looks);
	return tree->env->interrupted(tree->env) ? SMART_INTERRUPTED : SMART_OK;
}

/* The leaf is live and covers the key. */
static smart_status
update_in_leaf(struct smart_tree *tree, struct update *update, struct smart_leaf *leaf)
{
	int entry = smart_leaf_find(leaf, &update->key);
	fabric_address word;
	uint64_t expected;
	bool marked;
	smart_status status;

	smart_assert(leaf->state == SMART_LIVE && smart_leaf_covers(leaf, &update->key));
	update->finished = entry < 0;
	if (update->finished)
		return SMART_OK;
	word = leaf->address + smart_value_offset(leaf, (unsigned int) entry);
	expected = smart_value_at(leaf, (unsigned int) entry);
	if (smart_value_frozen(expected))
	{
		/* It was sealed since, or narrowed. */
		update->strict = true;
		return SMART_OK;
	}
	status = mark(tree, update, leaf, &marked);
	if (status != SMART_OK || !marked)
		return status;
	status = change_together(tree, word, expected, update->word, &update->finished);
	update->found = update->finished;
	update->strict = !update->finished;
	return status;
}

static smart_status
update_once(struct smart_tree *tree, struct update *update)
{
	const struct smart_key *key = &update->key;
	struct smart_place place = {.kind = SMART_PLACE_UNKNOWN};
	struct smart_leaf leaf;
	bool help = update->strict;
	bool good;
	smart_status status = SMART_OK;

	smart_assert(tree->entered && tree->locked == 0 && !update->finished);
	if (!update->strict)
		status = smart_find_fast(tree, key, &place);
	if (status == SMART_OK && place.kind != SMART_PLACE_LEAF)
		status = smart_find_strict(tree, key, &place);
	if (status != SMART_OK)
		return status;
	update->finished = place.kind != SMART_PLACE_LEAF;
	if (update->finished)
		return SMART_OK;
	status = smart_leaf_read(tree, place.slot, key, tree->leaf_buffer, &leaf, &good);
	if (status != SMART_OK)
		return status;
	if (good && leaf.state == SMART_LIVE && leaf.depth == place.depth && smart_leaf_covers(&leaf, key))
		return update_in_leaf(tree, update, &leaf);
	/* Not what the slot promised, or changing (C3). */
	update->strict = true;
	return good && help ? smart_forward(tree, key, leaf.address) : SMART_OK;
}

/* In shared mode, within an epoch. */
static smart_status
update_shared(struct smart_tree *tree, const struct smart_key *key, uint64_t word, bool *found)
{
	struct update update = {.key = *key, .word = word};
	unsigned int attempts = 0;
	smart_status status;

	smart_assert(tree->options.shared && tree->entered && tree->locked == 0);
	do
	{
		status = smart_again(tree, &attempts);
		if (status == SMART_OK)
			status = update_once(tree, &update);
	} while (status == SMART_OK && !update.finished);
	*found = update.found;
	return status;
}

smart_status
smart_tree_update(struct smart_tree *tree, const uint8_t *key_bytes, size_t key_length, uint64_t value, bool *found)
{
	struct smart_key key = {.bytes = key_bytes, .length = (uint32_t) key_length};
	uint64_t word;
	bool there;
	smart_status status;

	smart_assert(tree->options.value);
	if (!smart_value_fits_key(tree, key_length) || value > SMART_VALUE_MAX)
		return SMART_TOO_LONG;
	word = smart_value_word(value);
	smart_enter(tree);
	if (tree->options.shared)
		status = update_shared(tree, &key, word, &there);
	else
		status = smart_overwrite(tree, &key, word, &there);
	status = smart_leave(tree, status);
	if (status == SMART_OK)
		*found = there;
	return status;
}

smart_status
smart_tree_upsert(struct smart_tree *tree, const uint8_t *entry, size_t key_length, bool *added)
{
	size_t length = key_length + SMART_VALUE_BYTES;
	bool done = false;
	uint64_t value;
	smart_status status = SMART_OK;

	if (!smart_value_is_behind(tree, entry, key_length))
		return SMART_TOO_LONG;
	memcpy(&value, entry + key_length, sizeof(value));
	/* The key may come and go in between. */
	while (status == SMART_OK && !done)
	{
		*added = false;
		status = smart_tree_update(tree, entry, key_length, value, &done);
		if (status == SMART_OK && !done)
			status = smart_tree_insert(tree, entry, key_length, length, added);
		done |= *added;
		if (status == SMART_OK && !done && tree->env->interrupted(tree->env))
			status = SMART_INTERRUPTED;
	}
	return status;
}
