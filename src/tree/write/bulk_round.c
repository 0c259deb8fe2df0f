/*
 * bulk_round.c
 *	  REMOVE for the leaves of many keys together.
 *
 * Remote providers, exclusive mode, trees without values.  In a round the leaves are looked for together (window.c) and
 * locked, as many.c does it: this client waits for none of these locks.  One batch READs the leaves and, each once, the
 * nodes above them, header first.  Such a node, if it is live and its slot leads to the leaf and is not frozen, is a strict
 * view (I2); it was READ since the leaf was locked, so it tells whether the leaf is pending, which only the lock's holder
 * could change.  Then the copies are written, and SEAL and REPLACE-LEAF of all leaves are posted together (divide.c, as a
 * division with one part).  That takes some four round trips for 128 leaves.
 *
 * A leaf that is locked, not live, pending, or below a frozen slot, and one whose slot another client was quicker to change,
 * stays as it is, or sealed; its keys are not settled, and are seen to one by one (remove.c), which is strict and
 * helps.  A leaf that is live and covers a key without having it answers for that (B1).
 */
#include "tree/block/access.h"
#include "tree/cached/hints.h"
#include "tree/cached/results.h"
#include "tree/find/window.h"
#include "tree/structure/strict.h"
#include "tree/write/bulk_round.h"
#include "tree/write/divide.h"

#define KEYS_MAX    2048
#define BYTES_MAX   (128 * 1024) /* of keys */
#define TARGETS_MAX 128
#define VIEWS_MAX   64
#define COPIES_MAX  (64 * SMART_LEAF_BYTES_MAX) /* bytes of all leaves */
#define BATCH_MAX   (TARGETS_MAX + 2 * VIEWS_MAX)

_Static_assert(BATCH_MAX <= SMART_EXECUTE_MAX, "one batch READs leaves and nodes");

/* What a round made of a key. */
enum fate
{
	FATE_OPEN, /* nothing: the leaf's lock was another client's, or another leaf's, or the round had no room for the leaf */
	FATE_ALONE, /* its leaf has to be seen to by itself */
	FATE_THERE, /* the same, unless its target's leaf, which covers it, can be rewritten */
	FATE_EMPTY, /* the same, unless the node above shows an empty range there */
	FATE_SETTLED
};

/* A leaf of the round. */
struct target
{
	smart_slot link;
	unsigned int depth;
	unsigned int first; /* its keys, which follow each other */
	unsigned int count;
	bool locked;
	bool holds; /* the lock; as above, but for a planted fault */
	uint8_t *block;
	struct smart_leaf read;
	struct smart_drop drop;
	struct smart_blocked hint;
	struct smart_guest mark; /* placed: the leaf has been replaced */
	struct smart_division division;
};

struct smart_round
{
	struct smart_tree *tree;
	unsigned int count;
	unsigned int used; /* bytes */
	unsigned int targets;
	unsigned int nodes;
	unsigned int copied; /* bytes of copies */
	struct smart_key keys[KEYS_MAX];
	int limits[KEYS_MAX]; /* the last byte that the key's leaf has to cover; -1: any */
	enum fate fates[KEYS_MAX];
	struct smart_view *views[KEYS_MAX]; /* of keys that lead to empty ranges */
	struct smart_place places[SMART_POINTS_MAX];
	struct smart_above above[SMART_POINTS_MAX];
	struct smart_view view[VIEWS_MAX];
	bool smaller[VIEWS_MAX]; /* leaves below the node have lost entries */
	struct target target[TARGETS_MAX];
	struct fabric_request batch[BATCH_MAX];
	uint8_t copies[COPIES_MAX] __attribute__((aligned(SMART_UNIT)));
	uint8_t bytes[BYTES_MAX];
};

struct smart_round *
smart_round_open(struct smart_tree *tree)
{
	struct smart_round *round;

	if (tree->direct || tree->options.shared || tree->options.value || tree->services->try_lock_leaf == NULL)
		return NULL;
	round = tree->env->allocate(tree->env, sizeof(*round));
	if (round == NULL)
		return NULL;
	round->tree = tree;
	round->count = round->used = 0;
	return round;
}

bool
smart_round_is_empty(const struct smart_round *round)
{
	return round->count == 0;
}

bool
smart_round_is_full(const struct smart_round *round)
{
	return round->count >= TARGETS_MAX;
}

bool
smart_round_add(struct smart_round *round, const uint8_t *bytes, size_t length, int limit)
{
	uint8_t *copy = round->bytes + round->used;

	smart_assert(length > 0 && length <= SMART_KEY_MAX);
	if (round->count == KEYS_MAX || round->used + length > BYTES_MAX)
		return false;
	memcpy(copy, bytes, length);
	round->used += (unsigned int) length;
	round->limits[round->count] = limit;
	round->keys[round->count++] = (struct smart_key){.bytes = copy, .length = (uint32_t) length};
	return true;
}

bool
smart_round_next_alone(const struct smart_round *round, unsigned int *number, struct smart_key *key, int *limit)
{
	while (*number < round->count && round->fates[*number] != FATE_ALONE)
		(*number)++;
	if (*number == round->count)
		return false;
	*key = round->keys[*number];
	*limit = round->limits[*number];
	return true;
}

void
smart_round_keep_open(struct smart_round *round)
{
	unsigned int count = round->count;

	round->count = round->used = 0;
	for (unsigned int i = 0; i < count; i++)
	{
		struct smart_key key = round->keys[i];

		if (round->fates[i] != FATE_OPEN)
			continue;
		smart_assert(round->bytes + round->used <= key.bytes);
		memmove(round->bytes + round->used, key.bytes, key.length);
		key.bytes = round->bytes + round->used;
		round->used += key.length;
		round->limits[round->count] = round->limits[i];
		round->keys[round->count++] = key;
	}
}

/* ---- which leaves ---- */

/* The node that the cache shows above a leaf; NULL: there are too many. */
static struct smart_view *
find_view(struct smart_round *round, const struct smart_above *above, const struct smart_key *key)
{
	struct smart_view *view = round->view;

	smart_assert(above->link != 0 && round->nodes <= VIEWS_MAX);
	while (view < round->view + round->nodes && view->node.link != above->link)
		view++;
	if (view < round->view + round->nodes)
		return view;
	if (round->nodes == VIEWS_MAX)
		return NULL;
	view->node.link = above->link;
	view->node.arrived = above->arrived;
	view->key = key;
	view->wanted = view->strict = false;
	round->smaller[round->nodes++] = false;
	return view;
}

/* The key is of the leaf that the place leads to; false: the round has no room for another leaf. */
static bool
join_target(struct smart_round *round, unsigned int number, const struct smart_place *place,
			const struct smart_above *above)
{
	struct target *target = round->targets == 0 ? NULL : &round->target[round->targets - 1];
	unsigned int bytes = smart_slot_size(place->slot) * SMART_UNIT;
	struct smart_view *view;

	smart_assert(place->kind == SMART_PLACE_LEAF && number < round->count);
	if (target != NULL && target->link == place->slot && target->first + target->count == number)
	{
		target->count++;
		return true;
	}
	view = round->targets == TARGETS_MAX || round->copied + bytes > COPIES_MAX
			   ? NULL
			   : find_view(round, above, &round->keys[number]);
	if (view == NULL)
		return false;
	target = &round->target[round->targets++];
	target->link = place->slot;
	target->depth = place->depth;
	target->first = number;
	target->count = 1;
	target->locked = target->holds = false;
	target->drop = (struct smart_drop){.count = 0};
	target->mark.placed = false;
	target->block = round->copies + round->copied;
	target->division = (struct smart_division){.view = view, .step = SMART_DIVISION_NONE};
	round->copied += bytes;
	smart_assert(round->targets <= TARGETS_MAX && round->copied <= COPIES_MAX);
	return true;
}

/* The key leads to an empty range, as the cache shows it; false: the round has no room for another node. */
static bool
join_empty(struct smart_round *round, unsigned int number, const struct smart_above *above)
{
	struct smart_view *view = find_view(round, above, &round->keys[number]);

	smart_assert(number < round->count && round->limits[number] < 0);
	if (view == NULL)
		return false;
	view->wanted = true;
	round->views[number] = view;
	round->fates[number] = FATE_EMPTY;
	return true;
}

/* The key takes part in the round; false: that has no room for it. */
static bool
join(struct smart_round *round, unsigned int number, const struct smart_place *place, const struct smart_above *above)
{
	if (above->link != 0 && place->kind == SMART_PLACE_LEAF)
		return join_target(round, number, place, above);
	if (above->link != 0 && smart_slot_is_empty(place->slot) && round->limits[number] < 0)
		return join_empty(round, number, above);
	round->fates[number] = FATE_ALONE;
	return true;
}

/* Groups the keys by where the cache leads them, as far as there is room. */
static smart_status
choose_targets(struct smart_round *round)
{
	unsigned int end = 0;
	smart_status status = SMART_OK;

	smart_assert(round->tree->entered && round->count <= KEYS_MAX);
	round->targets = round->nodes = round->copied = 0;
	for (unsigned int i = 0; i < round->count; i++)
		round->fates[i] = FATE_OPEN;
	for (unsigned int i = 0; i < round->count && status == SMART_OK; i++)
	{
		unsigned int left = round->count - i;
		const struct smart_place *place = &round->places[i % SMART_POINTS_MAX];
		const struct smart_above *above = &round->above[i % SMART_POINTS_MAX];

		if (i == end)
		{
			end = i + (left < SMART_POINTS_MAX ? left : SMART_POINTS_MAX);
			status = smart_points_find(round->tree, &round->keys[i], end - i, round->places, round->above);
		}
		if (status == SMART_OK && !join(round, i, place, above))
			break;
	}
	return status;
}

/* Takes the locks that are free, and READs those leaves and the nodes above them. */
static smart_status
lock_and_read(struct smart_round *round)
{
	struct smart_tree *tree = round->tree;
	struct smart_services *services = tree->services;
	int requests = 0;
	smart_status status;

	for (unsigned int i = 0; i < round->targets; i++)
	{
		struct target *target = &round->target[i];
		fabric_address address = smart_slot_address(target->link);

		target->holds = !SMART_FAULT(openend) && services->try_lock_leaf(services, address);
		target->locked = target->holds || SMART_FAULT(openend);
		if (!target->locked)
			continue;
		target->division.view->wanted = true;
		round->batch[requests++] =
			smart_read_request(address, target->block, smart_slot_size(target->link) * SMART_UNIT);
	}
	for (unsigned int i = 0; i < round->nodes; i++)
	{
		struct smart_view *view = &round->view[i];

		view->wanted = view->wanted && smart_node_prepare_again(tree, view->node.link, view->node.arrived, &view->node,
																&round->batch[requests]);
		requests += view->wanted ? 2 : 0;
	}
	smart_assert(requests <= BATCH_MAX);
	if (requests == 0)
		return SMART_OK;
	status = smart_execute(tree, round->batch, requests);
	for (unsigned int i = 0; i < round->nodes && status == SMART_OK; i++)
	{
		struct smart_view *view = &round->view[i];

		view->strict = view->wanted && smart_node_finish_again(tree, &view->node, view->key);
		if (view->strict)
			smart_keep_read_node(tree, &view->node, true);
		else if (view->wanted)
			smart_forget_node(tree, view->node.link);
	}
	return status;
}

/* ---- what leaves them ---- */

/* Is the leaf, which is right for one of its keys, right for another one, and all of its range? */
static bool
belongs(const struct smart_round *round, const struct target *target, unsigned int number)
{
	const struct smart_leaf *leaf = &target->read;
	const struct smart_key *key = &round->keys[number];
	int limit = round->limits[number];

	return key->length > leaf->depth && memcmp(key->bytes, round->keys[target->first].bytes, leaf->depth) == 0 &&
		   smart_leaf_covers(leaf, key) &&
		   (limit < 0 || (key->length == leaf->depth + 1 && leaf->hi >= (unsigned int) limit));
}

/* Is the leaf live, and the one of its first key?  It is to be seen to with those of its keys that it covers. */
static bool
look_at(struct smart_round *round, struct target *target)
{
	const struct smart_key *proved = &round->keys[target->first];

	smart_assert(target->locked && target->count > 0 && target->first + target->count <= round->count);
	for (unsigned int i = target->first; i < target->first + target->count; i++)
		round->fates[i] = FATE_ALONE;
	if (!smart_leaf_from_copy(round->tree, target->link, target->block, proved, &target->read) ||
		target->read.state != SMART_LIVE || target->read.depth != target->depth)
		return false;
	for (unsigned int i = target->first; i < target->first + target->count; i++)
	{
		if (belongs(round, target, i))
			round->fates[i] = FATE_THERE;
	}
	return round->fates[target->first] == FATE_THERE;
}

static void
settle(struct smart_round *round, const struct target *target)
{
	for (unsigned int i = target->first; i < target->first + target->count; i++)
	{
		if (round->fates[i] == FATE_THERE)
			round->fates[i] = FATE_SETTLED;
	}
}

/* Makes what comes in the leaf's place, of which nobody knows yet: the list. */
static smart_status
build_copy(struct smart_tree *tree, struct target *target, smart_slot *link)
{
	struct smart_division *division = &target->division;
	const struct smart_leaf *leaf = &target->read;
	const struct smart_list *list = &tree->list;
	smart_status status;

	smart_assert(division->block_count == 0);
	*link = smart_slot_make_empty(leaf->lo, leaf->hi);
	if (list->count == 0)
		return SMART_OK;
	status = smart_leaf_build(tree, division->key, leaf->depth, leaf->lo, leaf->hi, list, 0, list->count, 0, link);
	if (status == SMART_OK)
		division->blocks[division->block_count++] = *link;
	return status;
}

/* The target's leaf is to be replaced by its list. */
static smart_status
plan_end(struct smart_tree *tree, struct target *target)
{
	struct smart_division *division = &target->division;
	smart_slot link;
	smart_status status = build_copy(tree, target, &link);

	smart_assert(target->locked && target->drop.count > 0);
	/* Who removes the entries by themselves finds room, or hears that there is none. */
	if (status != SMART_OK)
		return smart_no_room(status) ? SMART_OK : status;
	division->guests = &target->mark;
	division->guest_count = division->count = 1;
	division->parts[0] = (struct smart_part){.lo = target->read.lo,
											 .hi = target->read.hi,
											 .link = link,
											 .guests = 1,
											 .blocks = division->block_count};
	division->step = SMART_DIVISION_REPLACE;
	if (!SMART_FAULT(pendingend))
		smart_divide_began(division, NULL);
	return SMART_OK;
}

/* Looks for what is to go in the target's leaf, and prepares its end. */
static smart_status
plan_target(struct smart_round *round, struct smart_round_drop *drop, struct target *target)
{
	struct smart_tree *tree = round->tree;
	struct smart_division *division = &target->division;
	struct smart_list *list = &tree->list;
	smart_status status;

	smart_assert(target->division.step == SMART_DIVISION_NONE && !target->mark.placed);
	if (!target->locked || !look_at(round, target))
		return SMART_OK;
	division->key = &round->keys[target->first];
	division->leaf = target->read;
	division->leaf.link = target->link;
	/* I5: a leaf that is pending is not sealed. */
	if (!division->view->strict || (!SMART_FAULT(pendingend) && !smart_divide_shows(division, target->read.hi)))
		return SMART_OK;
	list->count = 0;
	status = smart_list_collect(tree, list, &target->read, target->read.lo, target->read.hi);
	if (status != SMART_OK || (drop->blocked != NULL && drop->blocked->count + list->count > SMART_BLOCKED_MAX))
		return status;
	drop->begin(drop->argument, division->key);
	target->drop = (struct smart_drop){.dead = drop->dead, .argument = drop->argument};
	smart_drop_entries(list, &target->read, &target->drop);
	if (target->drop.count > 0)
		return plan_end(tree, target);
	settle(round, target);
	return SMART_OK;
}

/*
 * Does the node show that nothing has this key?  B4 (e): it is live, and was READ in this operation, so that a slot which is not
 * frozen was in the tree then (I2).
 */
static bool
shows_empty(const struct smart_view *view, const struct smart_key *key)
{
	const struct smart_node *node = &view->node;
	unsigned int byte;
	smart_slot slot;
	int index;

	if (!view->strict || key->length <= node->depth || memcmp(key->bytes, view->key->bytes, node->depth) != 0)
		return false;
	byte = smart_key_byte(key, node->depth);
	index = smart_node_cover_index(node, byte);
	slot = index < 0 ? 0 : node->words[SMART_NODE_HEAD_WORDS + index];
	return smart_slot_is_empty(slot) && !smart_slot_frozen(slot) && smart_slot_empty_hi(slot) >= byte;
}

/* Keys that are not there. */
static void
settle_empty(struct smart_round *round)
{
	for (unsigned int i = 0; i < round->count; i++)
	{
		if (round->fates[i] == FATE_EMPTY && shows_empty(round->views[i], &round->keys[i]))
			round->fates[i] = FATE_SETTLED;
	}
}

/* Ends the leaves that were planned for it.  *removed: entries. */
static smart_status
end_leaves(struct smart_round *round, uint64_t *removed)
{
	struct smart_tree *tree = round->tree;
	struct smart_division *divisions[TARGETS_MAX];
	unsigned int count = 0;
	smart_status status;

	for (unsigned int i = 0; i < round->targets; i++)
	{
		struct target *target = &round->target[i];

		target->hint = (struct smart_blocked){.version = SMART_VERSION_NONE};
		if (target->division.step == SMART_DIVISION_NONE)
			continue;
		if (!SMART_FAULT(freehint))
			target->hint = smart_leaf_hint_block(tree, target->link);
		divisions[count++] = &target->division;
	}
	/* A copy may lie on another memory node than the slot that is to lead to it. */
	status = count == 0 ? SMART_OK : smart_post_flush(tree);
	if (status == SMART_OK && count > 0)
		status = smart_divide(tree, divisions, count);
	for (unsigned int i = 0; i < round->targets; i++)
	{
		struct target *target = &round->target[i];

		(void) smart_leaf_hint_unblock(tree, &target->hint);
		if (!target->mark.placed)
			continue;
		smart_assert(target->locked && target->drop.count > 0);
		*removed += target->drop.count;
		round->smaller[target->division.view - round->view] = true;
		settle(round, target);
	}
	return status;
}

/* ---- rounds ---- */

static smart_status
remove_together(struct smart_round *round, struct smart_round_drop *drop)
{
	struct smart_tree *tree = round->tree;
	smart_status status;

	smart_enter(tree);
	status = choose_targets(round);
	if (status == SMART_OK)
		status = lock_and_read(round);
	if (status == SMART_OK)
		settle_empty(round);
	for (unsigned int i = 0; i < round->targets && status == SMART_OK; i++)
		status = plan_target(round, drop, &round->target[i]);
	if (status == SMART_OK)
		status = end_leaves(round, &drop->removed);
	for (unsigned int i = 0; i < round->targets; i++)
	{
		struct target *target = &round->target[i];

		smart_divide_end(tree, &target->division);
		if (target->holds)
			tree->services->unlock_leaf(tree->services, smart_slot_address(target->link));
	}
	status = smart_leave(tree, status);
	smart_unblock_points(tree, drop->blocked);
	return status;
}

/* What became small is merged, in nodes where that pays. */
static smart_status
tidy_nodes(struct smart_round *round)
{
	struct smart_tree *tree = round->tree;
	smart_status status = SMART_OK;

	for (unsigned int i = 0; i < round->nodes && status == SMART_OK; i++)
	{
		const struct smart_view *view = &round->view[i];

		if (!round->smaller[i] || !smart_is_untidy(tree, &view->node))
			continue;
		smart_enter(tree);
		status = smart_leave(tree, smart_tidy_node(tree, view->key));
	}
	/* What was removed is removed, whether or not there was room to tidy up behind it. */
	return smart_no_room(status) ? SMART_OK : status;
}

/* Keys whose leaf was to be rewritten, and was not, go alone; and the first one does, lest nothing happens at all. */
static void
choose_alone(struct smart_round *round)
{
	bool progress = false;

	for (unsigned int i = 0; i < round->count; i++)
	{
		if (round->fates[i] == FATE_THERE || round->fates[i] == FATE_EMPTY)
			round->fates[i] = FATE_ALONE;
		progress |= round->fates[i] != FATE_OPEN;
	}
	if (!progress)
		round->fates[0] = FATE_ALONE;
}

smart_status
smart_round_execute(struct smart_round *round, struct smart_round_drop *drop)
{
	smart_status status;

	smart_assert(!round->tree->entered && round->count > 0);
	status = remove_together(round, drop);
	if (status == SMART_OK)
		status = tidy_nodes(round);
	choose_alone(round);
	return status;
}
