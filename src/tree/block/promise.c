/*
 * promise.c
 *	  Entries that meta counts before they are WRITTEN (src/README, C5a).
 *
 * A CAS of meta, from what was READ, gives a client the bytes behind used, and promises what will stand there: meta's
 * checksum covers it.  So until it is there the leaf looks torn, and whoever needs it waits, as for a lock.  A client that
 * waits in vain takes the promise back.  Only one of three may come about: the writer, or who has seen the entry, makes
 * it final by a CAS; or it is taken back by one.
 *
 * The writer's CAS is saved as long as nobody takes anything back.  Who does so first raises a count that all clients
 * of the tree have, and then READs the leaf once more; the writer first WRITES the entry and then READs the count.
 * So one of the two sees what the other has done.  That READ is shared by the clients of a compute node.
 */
#include "tree/block/access.h"
#include "tree/block/promise.h"

static inline fabric_address
meta_of(const struct smart_leaf *leaf)
{
	return smart_leaf_meta_address(leaf->address, leaf->units);
}

/* Offset behind the entries that are there for good. */
static inline unsigned int
kept_end(const struct smart_leaf *leaf)
{
	return leaf->used - smart_meta_promised(leaf->meta) * leaf->stride;
}

/* READs the count, or has it from a client of this compute node that READs it after this call has begun. */
static smart_status
read_count(struct smart_tree *tree, uint64_t *count)
{
	bool delivered;

	return smart_leaf_read_together(tree, tree->options.retractions, count, sizeof(*count), &delivered);
}

smart_status
smart_promise_prepare(struct smart_tree *tree)
{
	smart_status status = SMART_OK;

	smart_assert(smart_promises(tree));
	if (!tree->knows_retractions)
		status = read_count(tree, &tree->retractions);
	tree->knows_retractions = status == SMART_OK;
	return status;
}

smart_status
smart_promise_confirm(struct smart_tree *tree, const struct smart_leaf *leaf, uint64_t promised, bool *kept)
{
	uint64_t before = tree->retractions;
	uint64_t met;
	smart_status status;

	smart_assert(tree->knows_retractions && smart_meta_promised(promised) > 0);
	*kept = SMART_FAULT(unconfirmed);
	if (*kept)
		return SMART_OK;
	status = read_count(tree, &tree->retractions);
	tree->knows_retractions = status == SMART_OK;
	*kept = status == SMART_OK && tree->retractions == before;
	if (status != SMART_OK || *kept)
		return status;
	/* Something was taken back somewhere: who is first with this leaf? */
	status = smart_word_cas(tree, meta_of(leaf), promised, smart_meta_settled(promised), &met);
	/* used falls only where a promise is taken back, and by that of another one not below this one's end. */
	*kept = status == SMART_OK && smart_meta_used(met) >= smart_meta_used(promised);
	return status;
}

smart_status
smart_promise_settle(struct smart_tree *tree, const struct smart_leaf *leaf, bool *settled)
{
	uint64_t met = leaf->meta;
	smart_status status = SMART_OK;

	smart_assert(leaf->state == SMART_LIVE || smart_meta_promised(leaf->meta) == 0);
	if (smart_meta_promised(leaf->meta) > 0 && !SMART_FAULT(unsettled))
		status = smart_word_cas(tree, meta_of(leaf), leaf->meta, smart_meta_settled(leaf->meta), &met);
	*settled = status == SMART_OK && met == leaf->meta;
	return status;
}

smart_status
smart_promise_vouch(struct smart_tree *tree, const struct smart_leaf *leaf, const struct smart_key *key, bool *settled)
{
	struct smart_leaf kept = *leaf;

	*settled = true;
	if (smart_meta_promised(leaf->meta) == 0)
		return SMART_OK;
	kept.used = kept_end(leaf);
	kept.sorted_end = kept.sorted_end < kept.used ? kept.sorted_end : kept.used;
	return smart_leaf_contains(&kept, key) ? SMART_OK : smart_promise_settle(tree, leaf, settled);
}

void
smart_promise_leave_out(const struct smart_tree *tree, const struct smart_key *key, struct smart_leaf *leaf)
{
	uint64_t hash = smart_prefix_hash(tree, key, leaf->depth);
	unsigned int end = kept_end(leaf);
	uint32_t crc = smart_crc32c((uint32_t) (hash ^ (hash >> 32)), leaf->block, end);
	bool parsed = smart_leaf_parse(tree, leaf->link, leaf->block,
								   smart_meta_make(end, SMART_LIVE, leaf->hi, crc) | (leaf->meta & SMART_META_SORTED) |
									   SMART_META_LOCKED,
								   leaf);

	smart_assert(parsed && smart_meta_promised(leaf->meta) == 0);
	(void) parsed;
}

smart_status
smart_promise_retract(struct smart_tree *tree, const struct smart_key *key, struct smart_leaf *leaf, bool *good)
{
	struct fabric_request count = {.verb = FABRIC_FAA, .remote = tree->options.retractions, .operand = 1};
	uint64_t promised = leaf->meta;
	uint64_t met = 0;
	smart_status status = SMART_OK;

	smart_assert(smart_leaf_has_open_promise(tree, leaf) && !tree->direct);
	*good = false;
	if (tree->options.retractions == 0)
		return SMART_OK;
	/* Ahead of the READ: a writer that finds the count as it was has WRITTEN before it. */
	if (!SMART_FAULT(uncounted))
		status = smart_execute(tree, &count, 1);
	if (status == SMART_OK)
		status = smart_leaf_read_alone(tree, leaf->link, key, (uint8_t *) (uintptr_t) leaf->block, leaf, good);
	if (status != SMART_OK || *good || leaf->meta != promised || !smart_leaf_has_open_promise(tree, leaf))
		return status;
	/* I4: the bytes in front of the promise do not change, in a leaf that was found strictly within this epoch. */
	smart_promise_leave_out(tree, key, leaf);
	status = smart_word_cas(tree, meta_of(leaf), promised, leaf->meta, &met);
	*good = status == SMART_OK && met == promised;
	return status;
}
