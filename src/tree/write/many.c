/*
 * many.c
 *	  Many inserts at a time: C1 to C7 for the leaves of many keys together.
 *
 * Remote providers, exclusive mode.  In a round the leaves are looked for together (window.c) and
 * READ in one batch.  Then each gets its entries by one WRITE at used and one CAS of meta, all of
 * them in one batch again.  So the entries of a round take two round trips where the cache
 * knows the way and the leaves have room.  Those without are divided (divide.c), all of them together, in as many more
 * batches as the one with most parts needs; so are empty ranges filled.
 *
 * Each leaf's local lock is held from before the READ until its last change, as C1, C5 and C6 say.  So
 * this client holds many locks at a time, and therefore waits for none of them: if another
 * client has a leaf's lock, or another leaf of the round shares it, the leaf's entries wait
 * for the next round.  Nothing else is waited for under these locks but the round's batches, and a chunk
 * of memory where there is none.
 *
 * In trees with values entries have theirs, and a key that is there gets it: the words of a leaf's values that change, with
 * those between, are WRITTEN in the same batch (V5), and the leaf's copy stands for the READ (A5).
 *
 * An entry that needs anything else is inserted by itself (insert.c), one for each
 * leaf, which makes room for those that follow it there.  An entry is settled by a round
 * only if its leaf was live when it was READ (C4), or the CAS came about that publishes it.
 */
#include "tree/block/access.h"
#include "tree/block/copies.h"
#include "tree/block/leaf.h"
#include "tree/block/values.h"
#include "tree/cached/hints.h"
#include "tree/cached/results.h"
#include "tree/find/find.h"
#include "tree/find/window.h"
#include "tree/structure/change.h"
#include "tree/structure/strict.h"
#include "tree/write/append.h"
#include "tree/write/divide.h"

#define ROUND_MAX   2048 /* entries */
#define TARGETS_MAX 128
#define VIEWS_MAX   64
#define COPIES_MAX  (64 * SMART_LEAF_BYTES_MAX) /* bytes of all leaves */
#define BORN_MAX    (32 * SMART_LEAF_BYTES_MAX) /* bytes of leaves that are made, whose copies are kept */
#define BATCH_MAX   (3 * TARGETS_MAX + 2 * VIEWS_MAX)
/* Two WRITEs to a leaf are one if there are no more bytes between them: where many insert, requests are what is scarce. */
#define GAP_MAX 1024

/* What a round made of an entry. */
enum fate
{
	FATE_OPEN,  /* nothing: the leaf's lock, or its CAS, was another client's, or the round had no room for it */
	FATE_ALONE, /* it has to go by itself */
	FATE_THERE, /* its key is in the leaf */
	FATE_PUT,   /* it is among those that the leaf's append publishes */
	FATE_GUEST  /* it comes with the leaf's division */
};

/* A leaf of the round, or an empty range. */
struct target
{
	smart_slot link;
	struct smart_above above;
	unsigned int depth;
	unsigned int first; /* its entries, which follow each other */
	unsigned int count;
	unsigned int put;
	bool locked;
	bool holds;  /* the lock; as above, but for a planted fault */
	bool copied; /* the leaf's copy is in block */
	bool born;   /* as it was made: it is to become live, or is */
	bool published;
	bool written;            /* the batch has ended well */
	unsigned int values_low; /* bytes of the leaf's values that change */
	unsigned int values_end; /* 0: none do */
	int append;              /* request, -1: none */
	int birth;               /* likewise, of the batch that READs */
	int begin;               /* of the division */
	struct smart_leaf read;
	struct smart_grown grown;
	struct smart_blocked hint;
	uint64_t desired; /* meta, if anything was put */
	uint8_t *block;
	struct smart_division division;
};

struct many
{
	struct smart_tree *tree;
	unsigned int count; /* entries of this round, ascending */
	unsigned int targets;
	unsigned int views;
	unsigned int guests;
	unsigned int bytes; /* of copies */
	int requests;
	struct smart_addition *additions[ROUND_MAX];
	struct smart_key keys[ROUND_MAX];
	smart_slot slots[ROUND_MAX]; /* where the keys lead; 0: not known */
	enum fate fates[ROUND_MAX];
	struct smart_blocked blocked[ROUND_MAX];
	struct smart_guest guest[ROUND_MAX];
	unsigned int entry_of[ROUND_MAX]; /* the guest's */
	struct smart_view view[VIEWS_MAX];
	struct target target[TARGETS_MAX];
	struct smart_place places[SMART_POINTS_MAX];
	struct smart_above above[SMART_POINTS_MAX];
	struct fabric_request batch[BATCH_MAX];
	uint8_t copies[COPIES_MAX] __attribute__((aligned(SMART_UNIT)));
	struct smart_born born;
	uint8_t born_bytes[BORN_MAX];
};

/* Executes what is in the batch, in order. */
static smart_status
execute_batch(struct many *many)
{
	smart_status status = SMART_OK;

	smart_assert(many->requests <= BATCH_MAX);
	for (int i = 0; i < many->requests && status == SMART_OK; i += SMART_EXECUTE_MAX)
	{
		int left = many->requests - i;

		status = smart_execute(many->tree, &many->batch[i], left < SMART_EXECUTE_MAX ? left : SMART_EXECUTE_MAX);
	}
	return status;
}

/* ---- which leaves ---- */

/* The entry goes where the place leads; false: the round has no room for another leaf. */
static bool
join_target(struct many *many, unsigned int entry, const struct smart_place *place, const struct smart_above *above)
{
	struct target *target = many->targets == 0 ? NULL : &many->target[many->targets - 1];
	bool leaf = place->kind == SMART_PLACE_LEAF;
	unsigned int bytes = leaf ? smart_slot_size(place->slot) * SMART_UNIT : 0;

	many->slots[entry] = place->slot;
	many->fates[entry] = FATE_ALONE;
	if (!leaf && (!smart_slot_is_empty(place->slot) || above->link == 0))
		return true;
	many->fates[entry] = FATE_OPEN;
	if (target != NULL && target->link == place->slot && target->above.link == above->link &&
		target->first + target->count == entry)
	{
		target->count++;
		return true;
	}
	if (many->targets == TARGETS_MAX || many->bytes + bytes > COPIES_MAX)
		return false;
	target = &many->target[many->targets++];
	target->link = place->slot;
	target->above = *above;
	target->depth = place->depth;
	target->first = entry;
	target->count = 1;
	target->put = 0;
	target->locked = target->holds = target->copied = target->born = target->written = false;
	target->values_low = target->values_end = 0;
	target->block = many->copies + many->bytes;
	target->division.step = SMART_DIVISION_NONE;
	target->division.guest_count = target->division.block_count = 0;
	target->division.born = &many->born;
	many->bytes += bytes;
	return true;
}

/* Groups the keys by where the cache leads them. */
static smart_status
choose_targets(struct many *many)
{
	unsigned int chosen = 0;
	unsigned int end = 0;
	smart_status status = SMART_OK;

	many->targets = many->views = many->guests = many->bytes = 0;
	many->born = (struct smart_born){.size = sizeof(many->born_bytes), .bytes = many->born_bytes};
	for (unsigned int i = 0; i < many->count; i++)
	{
		many->fates[i] = FATE_OPEN;
		many->slots[i] = 0;
	}
	for (; chosen < many->count; chosen++)
	{
		unsigned int left = many->count - chosen;

		if (chosen == end)
		{
			end = chosen + (left < SMART_POINTS_MAX ? left : SMART_POINTS_MAX);
			status = smart_points_find(many->tree, &many->keys[chosen], end - chosen, many->places, many->above);
		}
		if (status != SMART_OK || !join_target(many, chosen, &many->places[chosen % SMART_POINTS_MAX],
											   &many->above[chosen % SMART_POINTS_MAX]))
			return status;
	}
	return status;
}

/* Takes the locks that are free. */
static void
lock_targets(struct many *many)
{
	struct smart_services *services = many->tree->services;

	for (unsigned int i = 0; i < many->targets; i++)
	{
		struct target *target = &many->target[i];

		if (smart_slot_is_empty(target->link))
			continue;
		target->holds = !SMART_FAULT(unlocked) && services->try_lock_leaf(services, smart_slot_address(target->link));
		target->locked = target->holds || SMART_FAULT(unlocked);
		target->copied = target->holds && smart_leaf_copy_find(many->tree, target->link, &many->keys[target->first],
															   target->block, false, &target->read);
		target->born = target->copied && smart_meta_state(target->read.meta) == SMART_NEW;
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

/*
 * ACTIVATE, instead of a READ: the lock is held, and the copy tells that the leaf is linked, and has not been changed since
 * it was made (A5).  So whoever made it live, it is what the copy shows.
 */
static void
finish_birth(struct target *target, uint64_t seen)
{
	uint64_t live = smart_meta_with_state(target->read.meta, SMART_LIVE);
	uint64_t meta = seen == target->read.meta ? live : seen;

	smart_assert(meta == live);
	memcpy(target->block + smart_slot_size(target->link) * SMART_UNIT - SMART_LEAF_REAR_BYTES, &meta, sizeof(meta));
}

static smart_status
read_targets(struct many *many)
{
	smart_status status;

	many->requests = 0;
	for (unsigned int i = 0; i < many->targets; i++)
	{
		struct target *target = &many->target[i];
		fabric_address address = smart_slot_address(target->link);
		unsigned int units = smart_slot_size(target->link);

		target->birth = many->requests;
		if (target->born && !SMART_FAULT(unborn))
			many->batch[many->requests++] =
				smart_cas_request(smart_leaf_meta_address(address, units), target->read.meta,
								  smart_meta_with_state(target->read.meta, SMART_LIVE), false);
		else if (target->locked && !target->copied)
			many->batch[many->requests++] = smart_read_request(address, target->block, units * SMART_UNIT);
	}
	status = execute_batch(many);
	for (unsigned int i = 0; i < many->targets && status == SMART_OK; i++)
	{
		struct target *target = &many->target[i];

		if (target->born)
			finish_birth(target, SMART_FAULT(unborn) ? target->read.meta : many->batch[target->birth].result);
	}
	return status;
}

/* ---- what goes into them ---- */

/* Is the leaf, which is right for one key, right for another one, too?  C3. */
static bool
belongs(const struct smart_leaf *leaf, const struct smart_key *proved, const struct smart_key *key)
{
	return key->length > leaf->depth && memcmp(key->bytes, proved->bytes, leaf->depth) == 0 &&
		   smart_leaf_covers(leaf, key);
}

/* Bytes of an entry that are stored as such: its value is a word of its own. */
static size_t
stored_length(const struct many *many, unsigned int entry)
{
	return many->tree->options.value ? many->keys[entry].length : many->additions[entry]->length;
}

/* The entry comes with the target's division, unless it is there twice. */
static void
make_guest(struct many *many, struct target *target, unsigned int entry)
{
	struct smart_division *division = &target->division;
	const struct smart_key *key = &many->keys[entry];
	const struct smart_key *last = division->guest_count == 0 ? NULL : &many->guest[many->guests - 1].key;

	many->fates[entry] = FATE_OPEN;
	if (last != NULL && smart_compare_bytes(last->bytes, last->length, key->bytes, key->length) == 0)
		return;
	if (division->guest_count == 0)
		division->guests = &many->guest[many->guests];
	many->entry_of[many->guests] = entry;
	many->guest[many->guests++] =
		(struct smart_guest){.key = *key, .length = (uint32_t) stored_length(many, entry), .placed = false};
	division->guest_count++;
	many->fates[entry] = FATE_GUEST;
}

/* The entry with this number gets its value, in the leaf's copy; V5: under the lock. */
static void
put_value(struct many *many, struct target *target, unsigned int entry, unsigned int number)
{
	uint64_t word = smart_value_behind(many->keys[entry].bytes, many->keys[entry].length);
	unsigned int offset = smart_value_offset(&target->grown.leaf, number);

	smart_assert(target->locked);
	memcpy(target->block + offset, &word, sizeof(word));
	if (target->values_end == 0 || offset < target->values_low)
		target->values_low = offset;
	if (offset + sizeof(word) > target->values_end)
		target->values_end = offset + (unsigned int) sizeof(word);
}

/* An entry for which the leaf is right goes behind those that it has, if its key is not there; false: there is no room. */
static bool
put_entry(struct many *many, struct target *target, unsigned int entry)
{
	const struct smart_key *key = &many->keys[entry];
	size_t length = stored_length(many, entry);
	unsigned int number;
	int found;

	if (!many->tree->options.value)
	{
		found = smart_leaf_contains(&target->grown.leaf, key) ? 0 : -1;
		number = 0;
	}
	else
	{
		found = smart_leaf_find(&target->grown.leaf, key);
		number = found < 0 ? smart_leaf_entries(&target->grown.leaf) : (unsigned int) found;
	}
	if (found < 0 && !smart_grown_fits(many->tree, &target->grown, length))
		return false;
	if (found < 0)
		smart_grown_put(many->tree, &target->grown, key, length, 0);
	if (many->tree->options.value)
		put_value(many, target, entry, number);
	many->fates[entry] = found < 0 ? FATE_PUT : FATE_THERE;
	target->put += found < 0;
	return true;
}

/* Puts the leaf's entries behind those that it has, in its copy, as far as there is room. */
static void
fill_target(struct many *many, struct target *target)
{
	const struct smart_key *proved = &many->keys[target->first];
	bool good = smart_leaf_from_copy(many->tree, target->link, target->block, proved, &target->read) &&
				target->read.state == SMART_LIVE && target->read.depth == target->depth;

	if (good)
		smart_grown_begin(&target->grown, &target->read);
	for (unsigned int i = target->first; i < target->first + target->count; i++)
	{
		const struct smart_key *key = &many->keys[i];
		bool matches;

		many->fates[i] = FATE_ALONE;
		if (!good || !belongs(&target->read, proved, key))
			continue;
		matches = key->length > target->read.depth + target->read.prefix_length &&
				  smart_leaf_prefix_matches(&target->read, key);
		if (!matches || !put_entry(many, target, i))
			make_guest(many, target, i);
	}
	if (target->put > 0)
		target->desired = smart_grown_meta(&target->grown);
}

/* ---- what has no room ---- */

/* The node above, as the cache has it; NULL: it has not, or there are too many. */
static struct smart_view *
find_view(struct many *many, const struct target *target)
{
	struct smart_view *view = many->view;
	bool usable;

	while (view < many->view + many->views && view->node.link != target->above.link)
		view++;
	if (view < many->view + many->views)
		return view;
	if (many->views == VIEWS_MAX ||
		!smart_node_recall(many->tree, target->above.link, target->above.arrived, &view->node, &usable) || !usable)
		return NULL;
	view->key = &many->keys[target->first];
	view->planned = 0;
	view->wanted = view->full = view->strict = false;
	many->views++;
	return view;
}

/* The target as the round's append leaves it, or an empty range. */
static void
begin_division(struct many *many, struct target *target)
{
	struct smart_division *division = &target->division;

	division->key = &many->keys[target->first];
	if (smart_slot_is_leaf(target->link))
	{
		division->leaf = target->put > 0 ? target->grown.leaf : target->read;
		division->leaf.meta = target->put > 0 ? target->desired : target->read.meta;
		return;
	}
	division->leaf = (struct smart_leaf){.link = target->link,
										 .depth = target->depth,
										 .lo = smart_slot_pk(target->link),
										 .hi = smart_slot_empty_hi(target->link),
										 .state = SMART_SEALED};
	for (unsigned int i = target->first; i < target->first + target->count; i++)
		make_guest(many, target, i);
}

/*
 * Perhaps no node is above the leaf, although the cache knows of one: the leaf may lie where that node had another one once.
 * A leaf without a node is not narrowed: nobody could put its parts anywhere.
 */
static bool
may_be_root(const struct smart_leaf *leaf)
{
	return leaf->depth == 0 && leaf->lo == 0 && leaf->hi == 255;
}

/* Entries for which the leaf has no room are to divide it, or to fill the empty range. */
static smart_status
plan_division(struct many *many, struct target *target)
{
	struct smart_division *division = &target->division;
	smart_status status = SMART_OK;

	if (smart_slot_is_empty(target->link) || division->guest_count > 0)
		begin_division(many, target);
	if (division->guest_count == 0)
		return SMART_OK;
	if (target->above.link == 0 || (smart_slot_is_leaf(target->link) && may_be_root(&target->read)))
		division->view = NULL;
	else
		division->view = find_view(many, target);
	if (division->view != NULL)
		status = smart_divide_plan(many->tree, division);
	if (status != SMART_OK)
		return status;
	if (division->step != SMART_DIVISION_NONE)
	{
		division->view->wanted = true;
		return SMART_OK;
	}
	for (unsigned int i = 0; i < division->guest_count; i++)
	{
		unsigned int entry = many->entry_of[division->guests - many->guest + i];
		bool waits = division->view != NULL && (division->view->full || division->view->planned > 0);

		many->fates[entry] = waits ? FATE_OPEN : FATE_ALONE;
	}
	division->guest_count = 0;
	return SMART_OK;
}

/* ---- publishing ---- */

/* The WRITE of a part of the leaf, as it is in its copy. */
static void
prepare_write(struct many *many, const struct target *target, unsigned int from, unsigned int to)
{
	many->batch[many->requests++] = (struct fabric_request){.verb = FABRIC_WRITE,
															.remote = target->read.address + from,
															.local = target->block + from,
															.length = to - from};
}

/* Entries, values, and the CAS that publishes what is new among them. */
static void
prepare_append(struct many *many, struct target *target)
{
	const struct smart_leaf *read = &target->read;
	const struct smart_leaf *leaf = &target->grown.leaf;
	bool values = target->values_end > 0;
	bool together = values && target->put > 0 && target->values_low - leaf->used <= GAP_MAX;

	if (values && !together)
		prepare_write(many, target, target->values_low, target->values_end);
	if (target->put == 0)
		return;
	/* I4: the lock's holder alone writes at used; I3: hi only falls, and not here. */
	smart_assert(target->locked && leaf->used > read->used && leaf->hi == read->hi && read->state == SMART_LIVE);
	prepare_write(many, target, read->used, together ? target->values_end : leaf->used);
	target->append = many->requests;
	many->batch[many->requests++] =
		smart_cas_request(smart_leaf_meta_address(read->address, read->units), read->meta, target->desired, false);
}

/* The batch that appends, and begins the divisions. */
static void
prepare_batch(struct many *many)
{
	many->requests = 0;
	for (unsigned int i = 0; i < many->targets; i++)
	{
		struct target *target = &many->target[i];

		target->append = target->begin = -1;
		target->hint = (struct smart_blocked){.version = SMART_VERSION_NONE};
		if (target->locked &&
			(target->put > 0 || target->values_end > 0 || target->division.step != SMART_DIVISION_NONE))
			target->hint = smart_leaf_hint_block(many->tree, target->link);
		prepare_append(many, target);
		target->begin = many->requests;
		many->requests += smart_divide_begin(&target->division, &many->batch[many->requests]);
	}
	for (unsigned int i = 0; i < many->views; i++)
	{
		struct smart_view *view = &many->view[i];

		if (view->wanted && smart_node_prepare_again(many->tree, view->node.link, view->node.arrived, &view->node,
													 &many->batch[many->requests]))
			many->requests += 2;
	}
}

/* The target's append came about, or not.  What is certain is settled. */
static void
finish_append(struct many *many, struct target *target)
{
	for (unsigned int i = target->first; i < target->first + target->count; i++)
	{
		struct smart_addition *addition = many->additions[i];

		/* A key may be there since it was put there just now. */
		if (many->fates[i] == FATE_PUT || (many->fates[i] == FATE_THERE && target->put > 0))
			addition->settled = target->published;
		else
			addition->settled = many->fates[i] == FATE_THERE && (target->written || !many->tree->options.value);
		addition->added = addition->settled && many->fates[i] == FATE_PUT;
		if (many->fates[i] != FATE_ALONE && many->fates[i] != FATE_GUEST && !addition->settled)
			many->fates[i] = FATE_OPEN;
	}
}

/* The batch has ended: what of it came about.  Divisions whose beginning did go on. */
static smart_status
finish_batch(struct many *many, smart_status status)
{
	struct smart_division *divisions[TARGETS_MAX];
	unsigned int count = 0;

	for (unsigned int i = 0; i < many->views && status == SMART_OK; i++)
	{
		struct smart_view *view = &many->view[i];

		if (!view->wanted)
			continue;
		view->strict = smart_node_finish_again(many->tree, &view->node, view->key);
		if (view->strict)
			smart_keep_node(many->tree, view->node.link, view->node.words);
		else
			smart_forget_node(many->tree, view->node.link);
	}
	for (unsigned int i = 0; i < many->targets; i++)
	{
		struct target *target = &many->target[i];

		target->written = status == SMART_OK;
		target->published =
			target->put > 0 && status == SMART_OK && many->batch[target->append].result == target->read.meta;
		if (target->locked)
			finish_append(many, target);
		if (status != SMART_OK || (target->put > 0 && !target->published))
			target->division.step = SMART_DIVISION_NONE;
		if (target->division.step == SMART_DIVISION_NONE)
			continue;
		smart_divide_began(&target->division, &many->batch[target->begin]);
		divisions[count++] = &target->division;
	}
	return count == 0 || status != SMART_OK ? status : smart_divide(many->tree, divisions, count);
}

/* The target's changes are over: what was divided, and the leaf's hint. */
static void
finish_target(struct many *many, struct target *target)
{
	struct smart_division *division = &target->division;
	uint64_t ticket = smart_leaf_hint_unblock(many->tree, &target->hint);
	/* A leaf that was divided is not what the copy shows. */
	bool known = target->written && (target->put == 0 || target->published) && division->guest_count == 0;

	if (many->tree->copies && target->values_end > 0 && known)
		smart_leaf_copy_changed(many->tree, target->link, target->block,
								target->put > 0 ? target->desired : target->read.meta, ticket);
	else if (target->put > 0 && known)
		smart_leaf_hint_keep(many->tree, target->link, target->block, &many->keys[target->first], target->desired,
							 ticket);
	for (unsigned int i = 0; i < division->guest_count; i++)
	{
		unsigned int entry = many->entry_of[division->guests - many->guest + i];

		many->additions[entry]->settled = many->additions[entry]->added = division->guests[i].placed;
		if (!division->guests[i].placed)
			many->fates[entry] = FATE_OPEN;
	}
}

static smart_status
publish_targets(struct many *many)
{
	struct smart_tree *tree = many->tree;
	smart_status status;

	for (unsigned int i = 0; i < many->count; i++)
	{
		/* A1: no cached result for an equality prefix while it may change. */
		if (tree->results && (many->fates[i] == FATE_PUT || many->fates[i] == FATE_GUEST))
			many->blocked[i] = smart_block(tree, many->keys[i].bytes, many->keys[i].length);
		else
			many->blocked[i] = (struct smart_blocked){.version = SMART_VERSION_NONE};
	}
	prepare_batch(many);
	status = finish_batch(many, execute_batch(many));
	for (unsigned int i = 0; i < many->targets; i++)
		finish_target(many, &many->target[i]);
	for (unsigned int i = 0; i < many->count; i++)
		smart_unblock(tree, &many->blocked[i]);
	return status;
}

/* ---- rounds ---- */

/* Adds what can be added together, of all that many->additions has. */
static smart_status
add_together(struct many *many)
{
	struct smart_tree *tree = many->tree;
	smart_status status;

	smart_enter(tree);
	status = choose_targets(many);
	if (status == SMART_OK)
	{
		lock_targets(many);
		status = read_targets(many);
	}
	for (unsigned int i = 0; i < many->targets && status == SMART_OK; i++)
	{
		if (many->target[i].locked)
			fill_target(many, &many->target[i]);
		status = plan_division(many, &many->target[i]);
	}
	if (status == SMART_OK)
		status = publish_targets(many);
	/* What was not used, of whatever was planned. */
	for (unsigned int i = 0; i < many->targets; i++)
		smart_divide_end(tree, &many->target[i].division);
	unlock_targets(many);
	return smart_leave(tree, status);
}

static smart_status
insert_alone(struct smart_tree *tree, struct smart_addition *addition, bool upsert)
{
	smart_status status =
		upsert ? smart_tree_upsert(tree, addition->bytes, addition->key_length, &addition->added)
			   : smart_tree_insert(tree, addition->bytes, addition->key_length, addition->length, &addition->added);

	addition->settled = status == SMART_OK;
	return status;
}

/* After a round: of the entries that have to go alone one for each leaf; or any, lest nothing is settled at all. */
static smart_status
insert_rest(struct many *many)
{
	smart_status status = SMART_OK;
	smart_slot last = 0;
	bool progress = false;

	for (unsigned int i = 0; i < many->count; i++)
		progress |= many->additions[i]->settled;
	for (unsigned int i = 0; i < many->count && status == SMART_OK; i++)
	{
		struct smart_addition *addition = many->additions[i];

		if (addition->settled || (many->fates[i] != FATE_ALONE && (progress || i + 1 < many->count)) ||
			(many->slots[i] == last && last != 0))
			continue;
		last = many->slots[i];
		status = insert_alone(many->tree, addition, many->tree->options.value);
		progress = true;
	}
	return status;
}

/* After a round: nodes without a slot for a leaf that is to be divided get one. */
static smart_status
make_slots(struct many *many)
{
	struct smart_tree *tree = many->tree;
	smart_status status = SMART_OK;

	for (unsigned int i = 0; i < many->views && status == SMART_OK; i++)
	{
		const struct smart_key *key = many->view[i].key;
		struct smart_place place;

		if (!many->view[i].full)
			continue;
		smart_enter(tree);
		status = smart_find_strict(tree, key, &place);
		if (status == SMART_OK && place.node != NULL && smart_node_used(place.node) == place.node->slots)
			status = smart_replace_node(tree, key, place.node, false, NULL);
		status = smart_leave(tree, status);
		/* Who goes alone hears of it. */
		if (smart_no_room(status))
			status = SMART_OK;
	}
	return status;
}

/* A round with the first entries that are not settled; *first: behind those that are. */
static smart_status
insert_round(struct many *many, struct smart_addition *additions, unsigned int count, unsigned int *first)
{
	smart_status status;

	many->count = 0;
	while (*first < count && additions[*first].settled)
		(*first)++;
	for (unsigned int i = *first; i < count && many->count < ROUND_MAX; i++)
	{
		if (additions[i].settled)
			continue;
		many->additions[many->count] = &additions[i];
		many->keys[many->count++] = (struct smart_key){.bytes = additions[i].bytes, .length = additions[i].key_length};
	}
	if (many->count == 0)
		return SMART_OK;
	if (many->count == 1)
		return insert_alone(many->tree, many->additions[0], many->tree->options.value);
	status = add_together(many);
	if (status == SMART_OK)
		status = insert_rest(many);
	return status == SMART_OK ? make_slots(many) : status;
}

static smart_status
add_many(struct smart_tree *tree, struct smart_addition *additions, unsigned int count, bool upsert)
{
	struct many *many = NULL;
	smart_status status = SMART_OK;
	unsigned int first = 0;

	for (unsigned int i = 0; i < count; i++)
	{
		const struct smart_addition *addition = &additions[i];

		if (addition->key_length == 0 || addition->key_length > SMART_KEY_MAX || addition->length > SMART_ENTRY_MAX ||
			addition->length < addition->key_length ||
			(upsert && (addition->length != addition->key_length + SMART_VALUE_BYTES ||
						!smart_value_is_behind(tree, addition->bytes, addition->key_length))))
			return SMART_TOO_LONG;
		smart_assert(i == 0 || smart_compare_bytes(additions[i - 1].bytes, additions[i - 1].key_length, addition->bytes,
												   addition->key_length) <= 0);
		additions[i].settled = additions[i].added = false;
	}
	if (count > 1 && !tree->direct && !tree->options.shared && tree->options.value == upsert &&
		tree->services->try_lock_leaf != NULL)
		many = tree->env->allocate(tree->env, sizeof(*many));
	if (many != NULL)
		many->tree = tree;
	while (first < count && status == SMART_OK)
	{
		if (tree->env->interrupted(tree->env))
			status = SMART_INTERRUPTED;
		else if (many != NULL)
			status = insert_round(many, additions, count, &first);
		else
			status = insert_alone(tree, &additions[first++], upsert);
	}
	smart_release(tree->env, many);
	return status;
}

smart_status
smart_tree_insert_many(struct smart_tree *tree, struct smart_addition *additions, unsigned int count)
{
	return add_many(tree, additions, count, false);
}

smart_status
smart_tree_upsert_many(struct smart_tree *tree, struct smart_addition *additions, unsigned int count)
{
	smart_assert(tree->options.value);
	return add_many(tree, additions, count, true);
}
