/*
 * many.c
 *	  Many inserts at a time: C1 to C5 for the leaves of up to 64 keys together.
 *
 * Remote providers, exclusive mode, trees without values.  The leaves are looked for together (window.c) and READ
 * in one batch.  Then each gets its entries by one WRITE at used and one CAS of meta, all of
 * them in one batch again.  So entries for 64 leaves take two round trips where the cache
 * knows the way.
 *
 * Each leaf's local lock is held from before the READ until its CAS, as C1 and C5 say.  So
 * this client holds many locks at a time, and therefore waits for none of them: if another
 * client has a leaf's lock, or another leaf of the round shares it, the leaf's entries wait
 * for the next round.  Nothing else is waited for under these locks but the two batches.
 *
 * An entry that needs more than an append is inserted by itself (insert.c), one for each
 * leaf, which makes room for those that follow it there.  An entry is settled by a round
 * only if its leaf was live when it was READ (C4) or the CAS came about (C5).
 */
#include "tree/block/access.h"
#include "tree/block/leaf.h"
#include "tree/cached/hints.h"
#include "tree/cached/results.h"
#include "tree/find/window.h"
#include "tree/write/append.h"

/* What a round made of an entry. */
enum fate
{
	FATE_OPEN,  /* nothing: the leaf's lock, or its CAS, was another client's */
	FATE_ALONE, /* it is not for an append */
	FATE_THERE, /* its key is in the leaf */
	FATE_PUT    /* it is among those that the leaf's append publishes */
};

/* A leaf of the round. */
struct target
{
	smart_slot link;
	unsigned int first; /* its entries, which follow each other */
	unsigned int count;
	unsigned int put;
	bool locked;
	bool holds; /* the lock; as above, but for a planted fault */
	struct smart_leaf read;
	struct smart_grown grown;
	struct smart_blocked hint;
	uint64_t desired; /* meta, if anything was put */
	uint8_t block[SMART_LEAF_BYTES_MAX] __attribute__((aligned(SMART_UNIT)));
};

struct many
{
	struct smart_tree *tree;
	unsigned int count; /* entries of this round, ascending */
	unsigned int targets;
	struct smart_addition *additions[SMART_POINTS_MAX];
	struct smart_key keys[SMART_POINTS_MAX];
	struct smart_place places[SMART_POINTS_MAX];
	enum fate fates[SMART_POINTS_MAX];
	struct smart_blocked blocked[SMART_POINTS_MAX];
	struct fabric_request batch[2 * SMART_POINTS_MAX];
	struct target target[SMART_POINTS_MAX];
};

_Static_assert(2 * SMART_POINTS_MAX <= SMART_EXECUTE_MAX, "a round's appends are one batch");

/* ---- which leaves ---- */

/* Groups the keys by the leaves to which the cache leads, and takes the locks that are free. */
static void
choose_targets(struct many *many)
{
	struct smart_services *services = many->tree->services;

	many->targets = 0;
	for (unsigned int i = 0; i < many->count; i++)
	{
		const struct smart_place *place = &many->places[i];
		struct target *target = many->targets == 0 ? NULL : &many->target[many->targets - 1];

		many->fates[i] = FATE_ALONE;
		if (place->kind != SMART_PLACE_LEAF)
			continue;
		many->fates[i] = FATE_OPEN;
		if (target != NULL && target->link == place->slot && target->first + target->count == i)
		{
			target->count++;
			continue;
		}
		target = &many->target[many->targets++];
		target->link = place->slot;
		target->first = i;
		target->count = 1;
		target->put = 0;
		target->holds = !SMART_FAULT(unlocked) && services->try_lock_leaf(services, smart_slot_address(place->slot));
		target->locked = target->holds || SMART_FAULT(unlocked);
	}
}

static void
unlock_targets(struct many *many)
{
	struct smart_services *services = many->tree->services;

	for (unsigned int i = 0; i < many->targets; i++)
	{
		if (many->target[i].holds)
			services->unlock_leaf(services, smart_slot_address(many->target[i].link));
	}
}

static smart_status
read_targets(struct many *many)
{
	int count = 0;

	for (unsigned int i = 0; i < many->targets; i++)
	{
		struct target *target = &many->target[i];

		if (target->locked)
			many->batch[count++] = smart_read_request(smart_slot_address(target->link), target->block,
													  smart_slot_size(target->link) * SMART_UNIT);
	}
	return count == 0 ? SMART_OK : smart_execute(many->tree, many->batch, count);
}

/* ---- what goes into them ---- */

/* Is the leaf, which is right for one key, right for another one, too?  C3, and what an append needs. */
static bool
belongs(const struct smart_leaf *leaf, const struct smart_key *proved, const struct smart_key *key)
{
	return key->length > leaf->depth + leaf->prefix_length && memcmp(key->bytes, proved->bytes, leaf->depth) == 0 &&
		   smart_leaf_covers(leaf, key) && smart_leaf_prefix_matches(leaf, key);
}

/* Puts the leaf's entries behind those that it has, in its copy. */
static void
fill_target(struct many *many, struct target *target)
{
	struct smart_tree *tree = many->tree;
	const struct smart_key *proved = &many->keys[target->first];
	bool good = smart_leaf_from_copy(tree, target->link, target->block, proved, &target->read) &&
				target->read.state == SMART_LIVE && target->read.depth == many->places[target->first].depth;

	if (good)
		smart_grown_begin(&target->grown, &target->read);
	for (unsigned int i = target->first; i < target->first + target->count; i++)
	{
		const struct smart_key *key = &many->keys[i];
		size_t length = many->additions[i]->length;

		many->fates[i] = FATE_ALONE;
		if (!good || !belongs(&target->read, proved, key))
			continue;
		if (smart_leaf_contains(&target->grown.leaf, key))
			many->fates[i] = FATE_THERE;
		else if (smart_grown_fits(tree, &target->grown, length))
		{
			smart_grown_put(tree, &target->grown, key, length, 0);
			many->fates[i] = FATE_PUT;
			target->put++;
		}
	}
}

/* ---- publishing ---- */

static void
prepare_append(struct many *many, struct target *target, struct fabric_request *batch)
{
	const struct smart_leaf *read = &target->read;
	const struct smart_leaf *leaf = &target->grown.leaf;

	/* I4: the lock's holder alone writes at used; I3: hi only falls, and not here. */
	smart_assert(target->locked && leaf->used > read->used && leaf->hi == read->hi && read->state == SMART_LIVE);
	target->desired = smart_grown_meta(&target->grown);
	target->hint = smart_leaf_hint_block(many->tree, target->link);
	batch[0] = (struct fabric_request){.verb = FABRIC_WRITE,
									   .remote = read->address + read->used,
									   .local = target->block + read->used,
									   .length = leaf->used - read->used};
	batch[1] =
		smart_cas_request(smart_leaf_meta_address(read->address, read->units), read->meta, target->desired, false);
}

/* The append came about, or not; batch: its requests, NULL: it is not known.  What is certain is settled. */
static void
finish_target(struct many *many, struct target *target, const struct fabric_request *batch)
{
	bool published = target->put > 0 && batch != NULL && batch[1].result == target->read.meta;
	uint64_t ticket;

	if (target->put > 0)
	{
		ticket = smart_leaf_hint_unblock(many->tree, &target->hint);
		if (published)
			smart_leaf_hint_keep(many->tree, target->link, target->block, &many->keys[target->first], target->desired,
								 ticket);
	}
	for (unsigned int i = target->first; i < target->first + target->count; i++)
	{
		struct smart_addition *addition = many->additions[i];

		/* A key may be there since it was put there just now. */
		if (many->fates[i] == FATE_PUT || (many->fates[i] == FATE_THERE && target->put > 0))
			addition->settled = published;
		else
			addition->settled = many->fates[i] == FATE_THERE;
		addition->added = addition->settled && many->fates[i] == FATE_PUT;
		if (many->fates[i] != FATE_ALONE && !addition->settled)
			many->fates[i] = FATE_OPEN;
	}
}

static smart_status
publish_targets(struct many *many)
{
	struct smart_tree *tree = many->tree;
	smart_status status = SMART_OK;
	int count = 0;
	int at = 0;

	for (unsigned int i = 0; i < many->count; i++)
	{
		/* A1: no cached result for an equality prefix while it may change. */
		if (tree->results && many->fates[i] == FATE_PUT)
			many->blocked[i] = smart_block(tree, many->keys[i].bytes, many->keys[i].length);
		else
			many->blocked[i] = (struct smart_blocked){.version = SMART_VERSION_NONE};
	}
	for (unsigned int i = 0; i < many->targets; i++)
	{
		if (many->target[i].put > 0)
		{
			prepare_append(many, &many->target[i], &many->batch[count]);
			count += 2;
		}
	}
	if (count > 0)
		status = smart_execute(tree, many->batch, count);
	for (unsigned int i = 0; i < many->targets; i++)
	{
		struct target *target = &many->target[i];

		if (target->locked)
			finish_target(many, target, status == SMART_OK ? &many->batch[at] : NULL);
		at += target->put > 0 ? 2 : 0;
	}
	for (unsigned int i = 0; i < many->count; i++)
		smart_unblock(tree, &many->blocked[i]);
	return status;
}

/* ---- rounds ---- */

/* Appends what can be appended, of all that many->additions has. */
static smart_status
append_together(struct many *many)
{
	struct smart_tree *tree = many->tree;
	smart_status status;

	many->targets = 0;
	smart_enter(tree);
	status = smart_points_find(tree, many->keys, many->count, many->places);
	if (status == SMART_OK)
	{
		choose_targets(many);
		status = read_targets(many);
	}
	for (unsigned int i = 0; i < many->targets && status == SMART_OK; i++)
	{
		if (many->target[i].locked)
			fill_target(many, &many->target[i]);
	}
	if (status == SMART_OK)
		status = publish_targets(many);
	unlock_targets(many);
	return smart_leave(tree, status);
}

static smart_status
insert_alone(struct smart_tree *tree, struct smart_addition *addition)
{
	smart_status status =
		smart_tree_insert(tree, addition->bytes, addition->key_length, addition->length, &addition->added);

	addition->settled = status == SMART_OK;
	return status;
}

/* After a round: of the entries that are not for an append one for each leaf; or any, lest nothing is settled at all. */
static smart_status
insert_rest(struct many *many, bool progress)
{
	smart_status status = SMART_OK;
	smart_slot last = 0;

	for (unsigned int i = 0; i < many->count && status == SMART_OK; i++)
	{
		struct smart_addition *addition = many->additions[i];

		if (addition->settled || (many->fates[i] != FATE_ALONE && (progress || i + 1 < many->count)) ||
			(many->places[i].slot == last && last != 0))
			continue;
		last = many->places[i].slot;
		status = insert_alone(many->tree, addition);
		progress = true;
	}
	return status;
}

/* Inserts so many entries, at most SMART_POINTS_MAX. */
static smart_status
insert_window(struct many *many, struct smart_addition *additions, unsigned int count)
{
	struct smart_tree *tree = many->tree;
	smart_status status = SMART_OK;

	for (unsigned int left = count; status == SMART_OK && left > 0; left = many->count)
	{
		if (tree->env->interrupted(tree->env))
			return SMART_INTERRUPTED;
		many->count = 0;
		for (unsigned int i = 0; i < count; i++)
		{
			if (additions[i].settled)
				continue;
			many->additions[many->count] = &additions[i];
			many->keys[many->count++] =
				(struct smart_key){.bytes = additions[i].bytes, .length = additions[i].key_length};
		}
		smart_assert(many->count <= left);
		if (many->count > 1)
			status = append_together(many);
		else if (many->count == 1)
			status = insert_alone(tree, many->additions[0]);
		if (many->count > 1 && status == SMART_OK)
		{
			bool progress = false;

			for (unsigned int i = 0; i < many->count; i++)
				progress |= many->additions[i]->settled;
			status = insert_rest(many, progress);
		}
	}
	return status;
}

smart_status
smart_tree_insert_many(struct smart_tree *tree, struct smart_addition *additions, unsigned int count)
{
	struct many *many = NULL;
	smart_status status = SMART_OK;

	for (unsigned int i = 0; i < count; i++)
	{
		const struct smart_addition *addition = &additions[i];

		if (addition->key_length == 0 || addition->key_length > SMART_KEY_MAX || addition->length > SMART_ENTRY_MAX ||
			addition->length < addition->key_length)
			return SMART_TOO_LONG;
		smart_assert(i == 0 || smart_compare_bytes(additions[i - 1].bytes, additions[i - 1].key_length, addition->bytes,
												   addition->key_length) <= 0);
		additions[i].settled = additions[i].added = false;
	}
	if (count > 1 && !tree->direct && !tree->options.shared && !tree->options.value &&
		tree->services->try_lock_leaf != NULL)
		many = tree->env->allocate(tree->env, sizeof(*many));
	if (many != NULL)
		many->tree = tree;
	for (unsigned int i = 0; i < count && status == SMART_OK;)
	{
		unsigned int size = many == NULL ? 1 : count - i < SMART_POINTS_MAX ? count - i : SMART_POINTS_MAX;

		status = many == NULL ? insert_alone(tree, &additions[i]) : insert_window(many, &additions[i], size);
		i += size;
	}
	smart_release(tree->env, many);
	return status;
}
