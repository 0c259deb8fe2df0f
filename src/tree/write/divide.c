/*
 * divide.c
 *	  DIVIDE: the changes of many leaves, a step of each in one batch.
 *
 * A leaf is divided from its upper end: D1 narrows it to what lies below the last part, D2 puts that part's slot, and
 * so on down to the first part, which stays in the leaf, if that has nothing else, or replaces it at last (D3, DOWN,
 * REPLACE-LEAF).  Each step's batch is complete before the next step of the same leaf is posted, but for a D1 that
 * follows a D2 on the same memory node, behind a fence: between the two the leaf is not pending, or it is so for
 * the part above, which only one client installs.  If another client was quicker, or the node is
 * frozen, the division ends there; what is half done is pending, and finished by whoever comes next.
 *
 * Several leaves may have their slots in one node.  The first unused slot (I3) is taken by one of them at a time, since
 * a slot behind it must not be put until it is known to be used.  In a direct-mapped node each has its own.
 */
#include "tree/block/access.h"
#include "tree/block/copies.h"
#include "tree/cached/hints.h"
#include "tree/cached/results.h"
#include "tree/structure/change.h"
#include "tree/write/divide.h"

/* Requests of a step, at most. */
#define STEP_MAX 2

/* A step of a round, which has been posted. */
struct posted
{
	struct smart_division *division;
	unsigned int part;
	int first; /* request */
	int index; /* of the slot; -1: none is changed */
};

struct round
{
	unsigned int count;
	int requests;
	struct posted posted[SMART_EXECUTE_MAX / STEP_MAX];
	struct fabric_request batch[SMART_EXECUTE_MAX];
};

static bool
same_node(const struct smart_division *division)
{
	return fabric_node(division->leaf.address) == fabric_node(division->view->node.address);
}

static struct fabric_request
cas_meta(const struct smart_leaf *leaf, uint64_t desired, bool fence)
{
	smart_assert(smart_meta_hi(desired) <= smart_meta_hi(leaf->meta));
	return smart_cas_request(smart_leaf_meta_address(leaf->address, leaf->units), leaf->meta, desired, fence);
}

/* D1 from the meta that the leaf has by now, to the bytes below the part. */
static struct fabric_request
narrow(const struct smart_division *division, unsigned int part)
{
	const struct smart_leaf *leaf = &division->leaf;
	unsigned int mid = division->parts[part].lo;

	/* I3: hi only falls. */
	smart_assert(part > 0 && mid > leaf->lo && mid <= leaf->hi && leaf->state == SMART_LIVE);
	return cas_meta(leaf, smart_meta_with_hi(leaf->meta, mid - 1), true);
}

static void
narrowed(struct smart_division *division, const struct fabric_request *request)
{
	struct smart_leaf *leaf = &division->leaf;

	if (request->result != request->compare)
	{
		division->step = SMART_DIVISION_NONE;
		return;
	}
	leaf->meta = request->operand;
	leaf->hi = smart_meta_hi(leaf->meta);
	smart_assert(leaf->lo <= leaf->hi && leaf->hi + 1 == division->parts[division->at].lo);
	division->step = SMART_DIVISION_INSTALL;
}

int
smart_divide_begin(struct smart_division *division, struct fabric_request *request)
{
	if (division->step != SMART_DIVISION_NARROW)
		return 0;
	smart_assert(division->at == division->count - 1 && division->count <= SMART_PARTS_MAX);
	*request = narrow(division, division->at);
	return 1;
}

bool
smart_divide_shows(const struct smart_division *division, unsigned int hi)
{
	const struct smart_leaf *leaf = &division->leaf;
	const struct smart_node *node = &division->view->node;
	int index = smart_node_cover_index(node, leaf->lo);

	/* Where the next slot begins above hi + 1 the leaf is pending. */
	return node->depth == leaf->depth && index >= 0 && node->words[SMART_NODE_HEAD_WORDS + index] == leaf->link &&
		   smart_node_next_pk(node, leaf->lo) == hi + 1;
}

void
smart_divide_began(struct smart_division *division, const struct fabric_request *request)
{
	bool narrows = division->step == SMART_DIVISION_NARROW;

	if (division->step == SMART_DIVISION_NONE)
		return;
	smart_assert(division->count > 0 && division->count <= SMART_PARTS_MAX);
	if (narrows)
		narrowed(division, request);
	/* So it was not pending before D1, and is not where there was none. */
	if (!division->view->strict || !smart_divide_shows(division, division->parts[division->count - 1].hi))
		division->step = SMART_DIVISION_NONE;
	if (division->step == SMART_DIVISION_REPLACE && division->leaf.state == SMART_LIVE && !same_node(division))
		division->step = SMART_DIVISION_SEAL;
}

/* ---- a step ---- */

/* Where the slot of the part goes; -1: not now, or not at all. */
static int
free_index(const struct round *round, struct smart_division *division)
{
	const struct smart_node *node = &division->view->node;
	int index = smart_node_free_index(node, division->parts[division->at].lo);

	smart_assert(division->step == SMART_DIVISION_INSTALL && division->at > 0);
	if (index < 0)
		division->step = SMART_DIVISION_NONE;
	for (unsigned int i = 0; i < round->count && index >= 0; i++)
	{
		if (round->posted[i].division->view == division->view && round->posted[i].index == index)
			return -1;
	}
	return index;
}

/* A4: no copies of the part's leaves while nobody knows whether they are linked. */
static void
block_copies(struct smart_tree *tree, struct smart_division *division, const struct smart_part *part)
{
	smart_assert(part->block + part->blocks <= division->block_count);
	for (unsigned int i = part->block; i < part->block + part->blocks; i++)
		division->blocked[i] = division->copies[i] == NULL ? (struct smart_blocked){.version = SMART_VERSION_NONE}
														   : smart_leaf_hint_block(tree, division->blocks[i]);
}

/* The batch has ended, and whoever is linked has been kept. */
static void
unblock_copies(struct smart_tree *tree, const struct smart_division *division, const struct smart_part *part)
{
	for (unsigned int i = part->block; i < part->block + part->blocks; i++)
		smart_leaf_hint_unblock(tree, &division->blocked[i]);
}

/* The division's next step goes into the round, if it can. */
static void
post_step(struct smart_tree *tree, struct round *round, struct smart_division *division)
{
	struct smart_leaf *leaf = &division->leaf;
	const struct smart_node *node = &division->view->node;
	const struct smart_part *part = &division->parts[division->at];
	struct fabric_request *batch = &round->batch[round->requests];
	int index = -1;
	int count = 0;

	switch (division->step)
	{
		case SMART_DIVISION_NONE:
			return;
		case SMART_DIVISION_NARROW:
			batch[count++] = narrow(division, division->at);
			break;
		case SMART_DIVISION_INSTALL:
			index = free_index(round, division);
			if (index < 0)
				return;
			/* Publishes the part: the leaf's own slot stops covering it. */
			batch[count++] =
				smart_cas_request(smart_node_slot_address(node->address, (unsigned int) index), 0, part->link, false);
			if (division->at > 1 && same_node(division))
				batch[count++] = narrow(division, division->at - 1);
			break;
		case SMART_DIVISION_SEAL:
			batch[count++] = cas_meta(leaf, smart_meta_sealed(leaf->meta), false);
			break;
		case SMART_DIVISION_REPLACE:
			index = smart_node_cover_index(node, leaf->lo);
			if (leaf->state == SMART_LIVE)
				batch[count++] = cas_meta(leaf, smart_meta_sealed(leaf->meta), false);
			/* Publishes what comes in the leaf's place; a frozen slot makes it fail. */
			batch[count] = smart_cas_request(smart_node_slot_address(node->address, (unsigned int) index), leaf->link,
											 part->link, count > 0);
			count++;
			break;
	}
	smart_assert(count > 0 && count <= STEP_MAX);
	if (index >= 0)
		block_copies(tree, division, part);
	round->posted[round->count++] =
		(struct posted){.division = division, .part = division->at, .first = round->requests, .index = index};
	round->requests += count;
}

/* The part's blocks are linked, or may be. */
static void
let_go(struct smart_division *division, const struct smart_part *part)
{
	for (unsigned int i = part->block; i < part->block + part->blocks; i++)
		division->blocks[i] = 0;
}

/*
 * A block that has just been linked becomes live; or, if it is a leaf whose copy is kept, when it is changed: until then
 * the copy answers for it (A5), and whoever has none makes it live.
 */
static smart_status
bear_block(struct smart_tree *tree, struct smart_division *division, unsigned int block)
{
	smart_slot link = division->blocks[block];
	uint64_t ticket = smart_leaf_hint_unblock(tree, &division->blocked[block]);

	smart_assert(block < division->block_count && link != 0);
	division->blocked[block].version = SMART_VERSION_NONE;
	if (ticket == 0)
		return smart_slot_activate(tree, link);
	smart_leaf_copy_changed(tree, link, division->copies[block], smart_leaf_copy_meta(link, division->copies[block]),
							ticket);
	return SMART_OK;
}

/* The part's slot is there: its blocks are linked, and its guests have come. */
static smart_status
link_part(struct smart_tree *tree, struct smart_division *division, int index, smart_slot from)
{
	const struct smart_part *part = &division->parts[division->at];
	struct smart_node *node = &division->view->node;
	smart_status status = SMART_OK;

	smart_assert(part->guest + part->guests <= division->guest_count);
	node->words[SMART_NODE_HEAD_WORDS + index] = part->link;
	smart_slot_changed(tree, node->link, index, from, part->link);
	for (unsigned int i = part->block; i < part->block + part->blocks && status == SMART_OK; i++)
		status = bear_block(tree, division, i);
	let_go(division, part);
	for (unsigned int i = part->guest; i < part->guest + part->guests; i++)
		division->guests[i].placed = true;
	return status;
}

/* D2 has come about or not. */
static smart_status
end_install(struct smart_tree *tree, struct smart_division *division, const struct posted *posted,
			const struct fabric_request *batch)
{
	bool follows = division->at > 1 && same_node(division);
	smart_status status;

	smart_assert(division->at > 0 && posted->index >= 0);
	division->step = SMART_DIVISION_NONE;
	if (batch[0].result != 0)
	{
		/* Another leaf's, or this one's by another client; or F. */
		division->view->node.words[SMART_NODE_HEAD_WORDS + posted->index] = batch[0].result;
		if (!SMART_FAULT(lostinstall))
			return SMART_OK;
	}
	status = link_part(tree, division, posted->index, 0);
	division->at--;
	if (follows)
		narrowed(division, &batch[1]);
	else if (division->at > 0)
		division->step = SMART_DIVISION_NARROW;
	/* D2 was this client's, so the leaf is not pending, and may be sealed (I5). */
	else if (!division->stays)
		division->step = same_node(division) ? SMART_DIVISION_REPLACE : SMART_DIVISION_SEAL;
	return status;
}

/* The leaf is sealed, by this client or by another, as who holds its lock knows: with this content (SEAL). */
static smart_status
end_seal(struct smart_division *division, const struct fabric_request *request)
{
	struct smart_leaf *leaf = &division->leaf;

	smart_assert(leaf->state == SMART_LIVE);
	if (request->result != request->compare && request->result != request->operand)
		return SMART_CORRUPT;
	leaf->meta = request->operand;
	leaf->state = SMART_SEALED;
	return SMART_OK;
}

static smart_status
end_replace(struct smart_tree *tree, struct smart_division *division, const struct posted *posted,
			const struct fabric_request *batch)
{
	smart_status status = SMART_OK;
	smart_slot old = division->leaf.link;

	division->step = SMART_DIVISION_NONE;
	if (division->leaf.state == SMART_LIVE)
		status = end_seal(division, batch++);
	if (status != SMART_OK || batch->result != batch->compare)
		return status;
	status = link_part(tree, division, posted->index, old);
	smart_retire_slot(tree, old);
	return status;
}

static smart_status
end_step(struct smart_tree *tree, const struct round *round, const struct posted *posted)
{
	struct smart_division *division = posted->division;
	const struct fabric_request *batch = &round->batch[posted->first];
	smart_status status;

	switch (division->step)
	{
		case SMART_DIVISION_NARROW:
			narrowed(division, batch);
			return SMART_OK;
		case SMART_DIVISION_INSTALL:
			return end_install(tree, division, posted, batch);
		case SMART_DIVISION_SEAL:
			status = end_seal(division, batch);
			division->step = SMART_DIVISION_REPLACE;
			return status;
		default:
			smart_assert(division->step == SMART_DIVISION_REPLACE);
			return end_replace(tree, division, posted, batch);
	}
}

/* Posts the round.  Each step learns what became of it, also if another one's end is an error. */
static smart_status
execute_round(struct smart_tree *tree, struct round *round)
{
	smart_status status = smart_execute(tree, round->batch, round->requests);
	smart_status result = status;

	smart_assert(round->count > 0 && round->requests <= SMART_EXECUTE_MAX);
	for (unsigned int i = 0; i < round->count; i++)
	{
		const struct posted *posted = &round->posted[i];
		struct smart_division *division = posted->division;
		smart_status ended = SMART_OK;

		if (status == SMART_OK)
			ended = end_step(tree, round, posted);
		else if (posted->index >= 0)
			let_go(division, &division->parts[posted->part]);
		if (posted->index >= 0)
			unblock_copies(tree, division, &division->parts[posted->part]);
		result = result == SMART_OK ? ended : result;
	}
	return result;
}

smart_status
smart_divide(struct smart_tree *tree, struct smart_division **divisions, unsigned int count)
{
	struct round round;
	smart_status status = SMART_OK;

	smart_assert(tree->entered && count > 0);
	do
	{
		round.count = 0;
		round.requests = 0;
		for (unsigned int i = 0; i < count && round.requests + STEP_MAX <= SMART_EXECUTE_MAX; i++)
			post_step(tree, &round, divisions[i]);
		if (round.count > 0)
			status = execute_round(tree, &round);
	} while (status == SMART_OK && round.count > 0);
	return status;
}

void
smart_divide_end(struct smart_tree *tree, struct smart_division *division)
{
	smart_assert(division->block_count <= SMART_BLOCKS_MAX);
	for (unsigned int i = 0; i < division->block_count; i++)
		smart_retire_slot(tree, division->blocks[i]);
	division->block_count = 0;
}
