/*
 * answers.c
 *	  Hot answers: what a point has, from the compute node's memory.
 *
 * In exclusive mode all clients of a tree share a compute node, and so may know
 * what an entry's point has without a verb, as long as whoever changes it says so
 * first (A1-A3).  Answers are taken from leaves that lookups READ; they tell
 * entries, not where they lie, so that changes of structure do not concern them.
 */
#include "tree/internal.h"

bool
smart_answers_wanted(const struct smart_tree *tree)
{
	return !tree->direct && !tree->options.shared && tree->options.point != NULL && tree->services->find_answer != NULL;
}

unsigned int
smart_point_of(const struct smart_tree *tree, const uint8_t *bytes, size_t length)
{
	size_t point = tree->options.point(tree->options.point_argument, bytes, length);

	smart_assert(point >= 1 && point <= length);
	return point < SMART_ANSWER_BYTES_MAX ? (unsigned int) point : 0;
}

/* ---- writers ---- */

/* A1: blocks the point of an entry, or of a key, that is about to come or go.  What unblock wants. */
struct smart_blocked
smart_block(struct smart_tree *tree, const uint8_t *bytes, size_t length)
{
	unsigned int point = smart_point_of(tree, bytes, length);

	if (point == 0)
		return (struct smart_blocked){.gate = SMART_GATE_NONE};
	return tree->services->block_point(tree->services, tree->options.id, bytes, point);
}

/* The change has taken effect, or no READ from here on can miss it (A3). */
void
smart_unblock(struct smart_tree *tree, const struct smart_blocked *blocked)
{
	if (blocked->gate != SMART_GATE_NONE)
		(void) tree->services->unblock_point(tree->services, blocked);
}

/* ---- what a leaf says ---- */

/* Does an entry go on, from its list's base, with these bytes? */
static bool
begins_with(const struct smart_ref *ref, const uint8_t *bytes, unsigned int length)
{
	unsigned int head = length < ref->head_length ? length : ref->head_length;

	return smart_ref_length(ref) >= length && memcmp(ref->head, bytes, head) == 0 &&
		   memcmp(ref->tail, bytes + head, length - head) == 0;
}

/* Leaves those entries of a leaf in tree->list that begin with the point, in order. */
static smart_status
collect(struct smart_tree *tree, const struct smart_key *point, const struct smart_leaf *leaf)
{
	struct smart_list *list = &tree->list;
	unsigned int byte = smart_key_byte(point, leaf->depth);
	uint32_t kept = 0;
	smart_status status;

	smart_assert(leaf->depth < point->length);
	list->count = 0;
	status = smart_list_collect(tree, list, leaf, byte, byte);
	for (uint32_t i = 0; status == SMART_OK && i < list->count; i++)
	{
		if (begins_with(&list->refs[i], point->bytes + leaf->depth, point->length - leaf->depth))
			list->refs[kept++] = list->refs[i];
	}
	list->count = kept;
	return status;
}

/* The answer that tree->list is; false: it is too long. */
static bool
make_answer(const struct smart_tree *tree, const struct smart_key *point, struct smart_answer *answer)
{
	const struct smart_list *list = &tree->list;
	unsigned int skip = point->length - list->base;

	answer->length = 0;
	for (uint32_t i = 0; i < list->count; i++)
	{
		unsigned int length = smart_ref_length(&list->refs[i]) - skip;

		if (point->length + answer->length + 1 + length > SMART_ANSWER_BYTES_MAX)
			return false;
		answer->tails[answer->length++] = (uint8_t) length;
		answer->length += smart_ref_put(answer->tails + answer->length, &list->refs[i], skip);
	}
	return true;
}

/*
 * A2: keeps what a leaf says about a point, if it is all: the leaf is live and
 * covers the point's byte, and was READ after the ticket was given.  Not kept if the
 * point reaches no further than the leaf, since others may hold entries of it, too.
 */
void
smart_keep_answer(struct smart_tree *tree, const struct smart_key *point, const struct smart_leaf *leaf,
				  struct smart_answer *answer)
{
	smart_assert(leaf->state == SMART_LIVE && smart_leaf_covers(leaf, point));
	if (answer->ticket == 0 || leaf->depth >= point->length)
		return;
	if (collect(tree, point, leaf) == SMART_OK && make_answer(tree, point, answer))
		tree->services->keep_answer(tree->services, tree->options.id, point->bytes, point->length, answer);
}

/* ---- what an answer says ---- */

/* Is the key, which begins with the answer's point, among the entries? */
bool
smart_answer_contains(const struct smart_answer *answer, const struct smart_key *key, unsigned int point_length)
{
	const uint8_t *rest = key->bytes + point_length;
	unsigned int rest_length = key->length - point_length;

	for (unsigned int i = 0; i < answer->length; i += 1 + answer->tails[i])
	{
		smart_assert(i + 1 + answer->tails[i] <= answer->length);
		if (answer->tails[i] >= rest_length && memcmp(answer->tails + i + 1, rest, rest_length) == 0)
			return true;
	}
	return false;
}

static void
visit_answer(const struct smart_answer *answer, const struct smart_key *point, smart_entry_fn visit, void *argument)
{
	uint8_t entry[SMART_ANSWER_BYTES_MAX];
	bool more = true;

	memcpy(entry, point->bytes, point->length);
	for (unsigned int i = 0; more && i < answer->length; i += 1 + answer->tails[i])
	{
		memcpy(entry + point->length, answer->tails + i + 1, answer->tails[i]);
		more = visit(argument, entry, point->length + answer->tails[i]);
	}
}

/* The entries that collect left in the list; they lie in the handle's memory. */
static void
visit_list(struct smart_tree *tree, const struct smart_key *point, smart_entry_fn visit, void *argument)
{
	const struct smart_list *list = &tree->list;
	uint8_t *entry = tree->build_buffer;
	bool more = true;

	memcpy(entry, point->bytes, list->base);
	for (uint32_t i = 0; more && i < list->count; i++)
		more = visit(argument, entry, list->base + smart_ref_put(entry + list->base, &list->refs[i], 0));
}

/* What the leaf that the cache leads to says; *known: it holds all of the point, which is in tree->list. */
static smart_status
ask_leaf(struct smart_tree *tree, const struct smart_key *point, struct smart_answer *answer, bool *known)
{
	struct smart_place place;
	struct smart_leaf leaf;
	bool good;
	smart_status status = smart_find_fast(tree, point, &place);

	if (status != SMART_OK || place.kind != SMART_PLACE_LEAF || place.depth >= point->length)
		return status;
	status = smart_offload_leaf(tree, place.slot, point, tree->leaf_buffer, &leaf, &good);
	if (status != SMART_OK || !good || leaf.state != SMART_LIVE || leaf.depth != place.depth ||
		!smart_leaf_covers(&leaf, point))
		return status;
	status = collect(tree, point, &leaf);
	if (status != SMART_OK)
		return status;
	*known = true;
	if (answer->ticket != 0 && make_answer(tree, point, answer))
		tree->services->keep_answer(tree->services, tree->options.id, point->bytes, point->length, answer);
	return SMART_OK;
}

bool
smart_tree_answer(struct smart_tree *tree, const uint8_t *point, size_t length, struct smart_answer *answer)
{
	answer->ticket = 0;
	if (!tree->answers || length == 0 || length >= SMART_ANSWER_BYTES_MAX)
		return false;
	return tree->services->find_answer(tree->services, tree->options.id, point, (unsigned int) length, answer);
}

smart_status
smart_tree_point(struct smart_tree *tree, const uint8_t *bytes, size_t length, smart_entry_fn visit, void *argument,
				 bool *known)
{
	struct smart_key point = {.bytes = bytes, .length = (uint32_t) length};
	struct smart_answer answer = {.ticket = 0};
	smart_status status;
	bool there = false;

	if (length == 0 || length > SMART_KEY_MAX)
		return SMART_TOO_LONG;
	*known = false;
	if (!tree->answers)
		return SMART_OK;
	if (smart_tree_answer(tree, bytes, length, &answer))
	{
		*known = true;
		visit_answer(&answer, &point, visit, argument);
		return SMART_OK;
	}
	smart_enter(tree);
	status = ask_leaf(tree, &point, &answer, &there);
	status = smart_leave(tree, status);
	if (status != SMART_OK || !there)
		return status;
	*known = true;
	visit_list(tree, &point, visit, argument);
	return SMART_OK;
}
