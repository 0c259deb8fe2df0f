/*
 * verify.c
 *	  Walks a tree and checks every invariant that can be seen in it.
 *
 * The walk keeps copies of the nodes on its path and a cursor behind what it has
 * checked.  When something does not fit, the tree may only be changing: the
 * walk starts again from the root and passes over what lies before the cursor.
 * What does not fit time and again at one place is a violation.
 *
 * On a remote provider nodes are READ many at a time, the children of several nodes that follow one another, and so
 * are leaves.  Each epoch begins with a batch of the nodes where the last one has ended.
 *
 * Pending and sealed leaves, frozen nodes and new blocks are no violations: a
 * client may have died, and the next one mends them.
 */
#include <stdio.h>

#include "tree/block/promise.h"
#include "tree/block/access.h"
#include "tree/block/cursor.h"
#include "tree/read/readahead.h"

/* Times that the walk starts again at one place before it calls that a violation. */
#define RESTARTS_MAX 20
/* Leaves between two moments without an epoch. */
#define LEAVES_PER_EPOCH 256
/* Nodes that are READ at a time: as many as the leaves of an epoch need, within these bounds. */
#define NODES_AHEAD_MIN 8
#define NODES_AHEAD_MAX 64

/* Every node on a path branches at its own position. */
#define FRAMES_MAX (SMART_KEY_MAX + 1)

/* A node on the path: a copy of it, and its used slots in order. */
struct frame
{
	struct smart_node node;
	unsigned int count;
	unsigned int next; /* slot to visit next */
	bool frozen;
	smart_slot slots[256];
	struct smart_window children; /* remote: nodes that slots from next on lead to, or those of nodes that follow */
};

/* Blocks that the walk will come to. */
struct blocks
{
	smart_slot slots[SMART_WINDOW_MAX];
	unsigned int count;
	uint64_t most;
};

struct walk
{
	struct smart_tree *tree;
	struct smart_verify_report *report;
	smart_entry_fn entry;
	void *argument;
	struct smart_cursor path; /* key bytes that lead to where the walk is */
	struct smart_cursor done; /* everything before has been checked */
	uint8_t *bytes;           /* the entry that is handed out */
	size_t last_length;       /* of the last one, in last; 0: none yet */
	uint8_t *last;
	uint64_t epoch_end;    /* the number of leaves at which this epoch ends */
	unsigned int depth;    /* frames in use */
	unsigned int restarts; /* at this place */
	bool doubt;            /* something did not fit */
	bool finished;
	char message[160];
	struct smart_window leaves; /* remote: that the walk comes to next */
	struct smart_window again;  /* remote: the nodes on the path where the last epoch ended */
	struct blocks path_blocks;  /* these, and header and identity of each, READ ahead of it (B1) */
	uint64_t heads[SMART_WINDOW_FRONT_MAX][SMART_NODE_HEAD_WORDS];
	struct smart_node below; /* the node whose leaves are looked out */
	struct frame *frames[FRAMES_MAX];
};

static void
complain(struct walk *walk, const char *sentence)
{
	snprintf(walk->message, sizeof(walk->message), "%s", sentence);
	walk->doubt = true;
}

/* ---- nodes ---- */

static bool
check_header(struct walk *walk, const struct frame *frame)
{
	const struct smart_node *node = &frame->node;
	uint64_t header = node->words[0];
	struct smart_key key = smart_cursor_key(&walk->path);

	if (smart_node_kind(header) != node->kind)
		complain(walk, "a node is not of the kind that its slot says");
	else if (node->depth < node->arrived || node->depth - node->arrived > SMART_NODE_PARTIAL_MAX)
		complain(walk, "a node branches at a position that its slot cannot lead to");
	else if (smart_node_state(header) != SMART_NEW && smart_node_state(header) != SMART_LIVE)
		complain(walk, "a linked node is dead");
	if (walk->doubt)
		return false;
	/* Its bytes before depth extend the path. */
	for (unsigned int i = node->arrived; i < node->depth; i++)
		walk->path.bytes[i] = (uint8_t) smart_node_partial_byte(header, i);
	walk->path.length = node->depth;
	key.length = node->depth;
	for (unsigned int i = node->depth < SMART_NODE_PARTIAL_MAX ? 0 : node->depth - SMART_NODE_PARTIAL_MAX;
		 i < node->arrived; i++)
	{
		if (smart_node_partial_byte(header, i) != walk->path.bytes[i])
			complain(walk, "a node's partial key differs from its path");
	}
	if (!smart_node_is_ours(walk->tree, node, &key))
		complain(walk, "a node's identity is not that of its path");
	return !walk->doubt;
}

/* Sorts the used slots into the frame; checks I3. */
static bool
check_slots(struct walk *walk, struct frame *frame)
{
	const struct smart_node *node = &frame->node;
	bool unused = false;

	frame->count = 0;
	for (unsigned int i = 0; i < node->slots; i++)
	{
		smart_slot slot = node->words[SMART_NODE_HEAD_WORDS + i];
		unsigned int at = frame->count;

		frame->frozen |= smart_slot_frozen(slot);
		if (!smart_slot_used(slot))
		{
			unused = true;
			continue;
		}
		if (node->kind == SMART_NODE_256 ? smart_slot_pk(slot) != i : unused)
			complain(walk, "a node's slots are not filled in order");
		slot &= ~SMART_SLOT_FROZEN;
		for (; at > 0 && smart_slot_pk(frame->slots[at - 1]) > smart_slot_pk(slot); at--)
			frame->slots[at] = frame->slots[at - 1];
		if (at > 0 && smart_slot_pk(frame->slots[at - 1]) == smart_slot_pk(slot))
			complain(walk, "a partial key stands in a node twice");
		frame->slots[at] = slot;
		frame->count++;
	}
	if (frame->count == 0 || smart_slot_pk(frame->slots[0]) != 0)
		complain(walk, "a node's ranges do not begin at 0");
	return !walk->doubt;
}

/* Last byte that slot i of a frame stands for. */
static unsigned int
frame_end(const struct frame *frame, unsigned int i)
{
	smart_assert(i < frame->count);
	return i + 1 < frame->count ? smart_slot_pk(frame->slots[i + 1]) - 1 : 255;
}

static void
add_block(struct blocks *blocks, smart_slot slot)
{
	if (blocks->count < blocks->most && blocks->count < SMART_WINDOW_MAX &&
		smart_class_bytes(smart_slot_class(slot)) > 0)
		blocks->slots[blocks->count++] = slot;
}

/* The slot of a node that covers a byte, or 0. */
static smart_slot
slot_at(const struct smart_node *node, unsigned int pk)
{
	int index = smart_node_cover_index(node, pk);

	return index < 0 ? 0 : node->words[SMART_NODE_HEAD_WORDS + index];
}

/* The child nodes of one that was READ; of a slot that is frozen another one may be in the tree by now. */
static void
gather_children(struct walk *walk, smart_slot link, const uint8_t *copy, struct blocks *blocks)
{
	struct smart_node *node = &walk->below;

	if (!smart_node_from_copy(walk->tree, link, 0, copy, node))
		return;
	for (unsigned int pk = 0; pk <= 255; pk = smart_node_next_pk(node, pk))
	{
		smart_slot slot = slot_at(node, pk);

		if (smart_slot_is_node(slot) && !smart_slot_frozen(slot))
			add_block(blocks, slot);
	}
}

/* Nodes from slot i of the topmost frame on, and then those below the nodes that were READ with it, and follow it. */
static void
gather_nodes(struct walk *walk, const struct frame *frame, unsigned int i, struct blocks *blocks)
{
	struct smart_window *beside = walk->depth > 1 ? &walk->frames[walk->depth - 2]->children : NULL;
	const struct smart_verify_report *report = walk->report;
	uint64_t nodes = 0;

	smart_assert(walk->depth > 0 && frame == walk->frames[walk->depth - 1]);
	for (unsigned int kind = 1; kind <= SMART_NODE_KINDS; kind++)
		nodes += report->nodes[kind];
	blocks->most = nodes * (walk->epoch_end - report->leaves) / (report->leaves + 1);
	blocks->most = blocks->most < NODES_AHEAD_MIN ? NODES_AHEAD_MIN : blocks->most;
	blocks->most = blocks->most > NODES_AHEAD_MAX ? NODES_AHEAD_MAX : blocks->most;
	for (; i < frame->count; i++)
	{
		if (smart_slot_is_node(frame->slots[i]))
			add_block(blocks, frame->slots[i]);
	}
	for (uint32_t other = 0; beside != NULL && other < beside->count && blocks->count < blocks->most; other++)
	{
		smart_slot link = beside->blocks[other].link;

		if (smart_slot_is_node(link))
			gather_children(walk, link, beside->blocks[other].copy, blocks);
	}
}

/* The leaves of a node that was READ, up to its first child node; true: it has none. */
static bool
gather_below(struct walk *walk, smart_slot link, const uint8_t *copy, struct blocks *blocks)
{
	struct smart_node *node = &walk->below;

	if (copy == NULL || !smart_node_from_copy(walk->tree, link, 0, copy, node))
		return false;
	for (unsigned int pk = 0; pk <= 255; pk = smart_node_next_pk(node, pk))
	{
		smart_slot slot = slot_at(node, pk) & ~SMART_SLOT_FROZEN;

		if (!smart_slot_is_range(slot))
			return false;
		if (smart_slot_is_leaf(slot))
			add_block(blocks, slot);
	}
	return true;
}

/* Leaves from slot i of the topmost frame on, in the order in which the walk comes to them, as far as nodes were READ. */
static void
gather_leaves(struct walk *walk, unsigned int i, struct blocks *blocks)
{
	blocks->most = walk->epoch_end - walk->report->leaves;
	for (unsigned int level = walk->depth; level > 0; level--)
	{
		struct frame *frame = walk->frames[level - 1];

		for (unsigned int next = level == walk->depth ? i : frame->next; next < frame->count; next++)
		{
			smart_slot slot = frame->slots[next];

			if (smart_slot_is_leaf(slot))
				add_block(blocks, slot);
			else if (smart_slot_is_node(slot) &&
					 !gather_below(walk, slot, smart_window_look(&frame->children, slot), blocks))
				return;
		}
	}
}

/* The node that a slot leads to, if it was READ at the begin of the epoch; B1: it was live when its header was READ. */
static const uint8_t *
take_again(struct walk *walk, smart_slot link)
{
	const uint8_t *copy = smart_slot_is_node(link) ? smart_window_take(&walk->again, link, NULL) : NULL;

	for (unsigned int i = 0; copy != NULL && i < walk->path_blocks.count; i++)
	{
		if (walk->path_blocks.slots[i] == link && smart_node_state(walk->heads[i][0]) == SMART_LIVE &&
			memcmp(copy, walk->heads[i], sizeof(walk->heads[i])) == 0)
			return copy;
	}
	return NULL;
}

/*
 * Remote: the block that slot i of the topmost frame leads to, with others in one batch.  *copy NULL: one of them could
 * not be READ, and has to be found out by itself.
 */
static smart_status
read_child(struct walk *walk, struct frame *frame, unsigned int i, const uint8_t **copy)
{
	smart_slot slot = frame->slots[i];
	struct smart_window *window = smart_slot_is_node(slot) ? &frame->children : &walk->leaves;
	struct blocks blocks = {.count = 0};
	smart_status status;

	smart_assert(i < frame->count && walk->report->leaves < walk->epoch_end);
	*copy = take_again(walk, slot);
	if (*copy == NULL)
		*copy = smart_window_take(window, slot, NULL);
	if (*copy != NULL)
		return SMART_OK;
	if (smart_slot_is_node(slot))
		gather_nodes(walk, frame, i, &blocks);
	else
		gather_leaves(walk, i, &blocks);
	if (blocks.count < 2)
		return SMART_OK;
	status = smart_window_read(walk->tree, window, NULL, 0, blocks.slots, blocks.count);
	if (status == SMART_OK)
		*copy = smart_window_take(window, slot, NULL);
	return status == SMART_CORRUPT ? SMART_OK : status;
}

static smart_status
push_node(struct walk *walk, smart_slot link, unsigned int arrived, const uint8_t *copy)
{
	struct smart_env *env = walk->tree->env;
	struct frame *frame;
	smart_status status = SMART_OK;

	smart_assert(walk->depth <= FRAMES_MAX);
	if (walk->depth == FRAMES_MAX)
	{
		complain(walk, "a path of nodes does not end");
		return SMART_OK;
	}
	frame = walk->frames[walk->depth];
	if (frame == NULL)
	{
		frame = walk->frames[walk->depth] = env->allocate(env, sizeof(*frame));
		if (frame == NULL)
			return SMART_NO_MEMORY;
		memset(&frame->children, 0, sizeof(frame->children));
	}
	frame->next = 0;
	frame->frozen = false;
	if (copy == NULL || !smart_node_from_copy(walk->tree, link, arrived, copy, &frame->node))
		status = smart_node_read(walk->tree, link, 0, arrived, &frame->node);
	if (status != SMART_OK)
		return status;
	if (!check_header(walk, frame) || !check_slots(walk, frame))
		return SMART_OK;
	walk->depth++;
	return SMART_OK;
}

/* ---- leaves ---- */

/* Header and meta against the slot; I5 says when hi may be lower than the slot's end. */
static bool
check_frame(struct walk *walk, const struct smart_leaf *leaf, unsigned int depth, unsigned int lo, unsigned int hi)
{
	struct smart_key key = {.bytes = walk->path.bytes, .length = depth};

	if (leaf->depth != depth)
		complain(walk, "a leaf's depth is not that of its slot");
	else if (leaf->lo != lo)
		complain(walk, "a leaf's range does not begin at its slot's partial key");
	else if (leaf->hi > hi || leaf->hi < lo)
		complain(walk, "a leaf's range does not agree with its slot's");
	else if (leaf->hi < hi && leaf->state == SMART_SEALED)
		complain(walk, "a leaf was sealed while its upper half was pending");
	else if (!smart_leaf_checksum_ok(walk->tree, leaf, &key))
		complain(walk, "a leaf's checksum is wrong");
	else if (smart_leaf_prefix_hash(leaf->header) != (uint32_t) (smart_prefix_hash(walk->tree, &key, depth) >> 45))
		complain(walk, "a leaf's prefix hash is not that of its path");
	return !walk->doubt;
}

/* The sorted run ascends. */
static bool
check_run(struct walk *walk, const struct smart_leaf *leaf)
{
	const uint8_t *previous = NULL;
	unsigned int previous_length = 0;
	unsigned int offset = leaf->start;

	while (offset < leaf->used)
	{
		bool in_run = offset < leaf->sorted_end;
		const uint8_t *suffix;
		unsigned int length;

		offset = smart_leaf_next_entry(leaf, offset, &suffix, &length);
		if (offset == 0)
		{
			complain(walk, "a leaf's entries are malformed");
			return false;
		}
		if (in_run && previous != NULL && smart_compare_bytes(previous, previous_length, suffix, length) >= 0)
			complain(walk, "a leaf's sorted run does not ascend");
		if ((leaf->prefix_length > 0 ? smart_leaf_prefix(leaf)[0] : suffix[0]) < leaf->lo)
			complain(walk, "an entry lies below its leaf's range");
		previous = suffix;
		previous_length = length;
	}
	return !walk->doubt;
}

/* Hands out the entries that lie in the range; they ascend within the leaf and behind the last one's. */
static smart_status
hand_out(struct walk *walk, const struct smart_leaf *leaf, const struct smart_list *list)
{
	for (uint32_t i = 0; i < list->count; i++)
	{
		const struct smart_ref *ref = &list->refs[i];
		size_t length = leaf->depth + smart_ref_length(ref);
		uint8_t *swap = walk->last;

		memcpy(walk->bytes, walk->path.bytes, leaf->depth);
		memcpy(walk->bytes + leaf->depth, ref->head, ref->head_length);
		memcpy(walk->bytes + leaf->depth + ref->head_length, ref->tail, ref->tail_length);
		if (walk->last_length > 0 && smart_compare_bytes(walk->last, walk->last_length, walk->bytes, length) >= 0)
		{
			complain(walk, "entries do not ascend, or one is there twice");
			return SMART_OK;
		}
		walk->report->entries++;
		if (walk->entry != NULL && !walk->entry(walk->argument, walk->bytes, length))
			return SMART_INTERRUPTED;
		walk->last = walk->bytes;
		walk->last_length = length;
		walk->bytes = swap;
	}
	return SMART_OK;
}

/*
 * Checks the leaf that a slot for bytes up to hi at depth leads to, and hands out its entries.  copy: of the block, where
 * it was read ahead, or NULL.
 */
static smart_status
check_leaf(struct walk *walk, smart_slot slot, unsigned int depth, unsigned int hi, const uint8_t *copy)
{
	struct smart_tree *tree = walk->tree;
	struct smart_key key = {.bytes = walk->path.bytes, .length = depth};
	struct smart_verify_report *report = walk->report;
	struct smart_leaf leaf;
	bool good = copy != NULL && smart_leaf_from_copy(tree, slot, copy, &key, &leaf);
	smart_status status = SMART_OK;

	smart_assert(depth <= SMART_KEY_MAX && hi <= 255);
	if (!good && smart_slot_size(slot) > 0)
		status = smart_leaf_read(tree, slot, &key, tree->leaf_buffer, &leaf, &good);
	if (status == SMART_OK && !good && smart_slot_size(slot) > 0 && smart_leaf_has_open_promise(tree, &leaf))
	{
		/* What a client has promised, and has not written yet, or never will. */
		smart_promise_leave_out(tree, &key, &leaf);
		good = true;
	}
	if (status == SMART_CORRUPT || (status == SMART_OK && !good))
	{
		complain(walk, "a leaf is malformed");
		return SMART_OK;
	}
	if (status != SMART_OK || !check_frame(walk, &leaf, depth, smart_slot_pk(slot), hi) || !check_run(walk, &leaf))
		return status;
	/* Pending: the entries up to the slot's end are authoritative (I5). */
	tree->list.count = 0;
	status = smart_list_collect(tree, &tree->list, &leaf, leaf.lo, hi);
	if (status == SMART_OK)
		status = hand_out(walk, &leaf, &tree->list);
	if (status != SMART_OK || walk->doubt)
		return status;
	report->leaves++;
	report->pending += leaf.hi < hi;
	report->sealed += leaf.state == SMART_SEALED;
	report->bytes_blocks += leaf.units * SMART_UNIT;
	report->bytes_used += leaf.used + SMART_LEAF_REAR_BYTES;
	if (walk->depth + 1 > report->height)
		report->height = walk->depth + 1;
	return SMART_OK;
}

/* ---- the walk ---- */

/* Is all that a range stands for behind the walk already? */
static bool
passed(const struct walk *walk, unsigned int depth, unsigned int hi)
{
	const struct smart_cursor *done = &walk->done;
	unsigned int common;

	if (done->length == 0)
		return false;
	common = (unsigned int) smart_common_prefix(walk->path.bytes, depth, done->bytes, done->length);
	if (common < depth)
		return common < done->length && walk->path.bytes[common] < done->bytes[common];
	return depth < done->length && hi < done->bytes[depth];
}

/* What a slot of the topmost frame (or the root slot) leads to; copy: of its block, or NULL. */
static smart_status
visit(struct walk *walk, smart_slot slot, unsigned int depth, unsigned int lo, unsigned int hi, unsigned int arrived,
	  const uint8_t *copy)
{
	smart_status status = SMART_OK;

	smart_assert(lo <= hi && hi <= 255);
	if (smart_slot_is_node(slot))
	{
		if (hi != lo && walk->depth > 0)
		{
			complain(walk, "a gap follows the slot of a node");
			return SMART_OK;
		}
		return push_node(walk, slot, arrived, copy);
	}
	if (smart_slot_is_empty(slot))
	{
		if (smart_slot_empty_hi(slot) != hi)
			complain(walk, "an empty range does not end where the next one begins");
	}
	else
		status = check_leaf(walk, slot, depth, hi, copy);
	if (status == SMART_OK && !walk->doubt)
	{
		/* Everything up to here is checked. */
		memcpy(walk->done.bytes, walk->path.bytes, depth);
		walk->done.length = depth;
		walk->restarts = 0;
		status = smart_cursor_pass(&walk->done, depth, hi);
	}
	return status;
}

/* One step of the walk from its topmost frame. */
static smart_status
advance(struct walk *walk)
{
	struct smart_verify_report *report = walk->report;
	struct frame *frame = walk->frames[walk->depth - 1];
	unsigned int i = frame->next++;
	smart_slot slot;
	unsigned int depth = frame->node.depth;
	const uint8_t *copy = NULL;

	smart_assert(i <= frame->count && walk->depth <= FRAMES_MAX);
	if (i == frame->count)
	{
		/* The walk leaves the node for good: it is counted now, once. */
		report->nodes[frame->node.kind]++;
		report->frozen += frame->frozen;
		report->bytes_blocks += smart_kind_bytes(frame->node.kind);
		report->bytes_used += sizeof(uint64_t) * (SMART_NODE_HEAD_WORDS + frame->count);
		walk->depth--;
		return SMART_OK;
	}
	slot = frame->slots[i];
	walk->path.length = depth;
	if (passed(walk, depth, frame_end(frame, i)))
		return SMART_OK;
	walk->path.bytes[depth] = (uint8_t) smart_slot_pk(slot);
	walk->path.length = depth + 1;
	if (!walk->tree->direct && !smart_slot_is_empty(slot))
	{
		smart_status status = read_child(walk, frame, i, &copy);

		if (status != SMART_OK)
			return status;
	}
	return visit(walk, slot, depth, smart_slot_pk(slot), frame_end(frame, i), depth + 1, copy);
}

/*
 * Remote: the nodes where the last walk has ended, in one batch, since this one mostly comes through them again.  Their
 * links are of an earlier epoch, so each header is READ ahead of its node (B1).
 */
static smart_status
read_path(struct walk *walk, smart_slot root)
{
	struct fabric_request heads[SMART_WINDOW_FRONT_MAX];
	struct blocks *path = &walk->path_blocks;
	smart_status status;

	path->count = 0;
	path->most = SMART_WINDOW_FRONT_MAX;
	if (smart_slot_is_node(root))
		add_block(path, root);
	for (unsigned int level = 1; level < walk->depth; level++)
	{
		const struct frame *frame = walk->frames[level - 1];

		smart_assert(frame->next > 0 && frame->next <= frame->count);
		add_block(path, frame->slots[frame->next - 1]);
	}
	if (path->count == 0)
		return SMART_OK;
	for (unsigned int i = 0; i < path->count; i++)
		heads[i] = smart_read_request(smart_slot_address(path->slots[i]), walk->heads[i], sizeof(walk->heads[i]));
	status = smart_window_read(walk->tree, &walk->again, heads, (int) path->count, path->slots, path->count);
	return status == SMART_CORRUPT ? SMART_OK : status;
}

/* What was READ in an earlier epoch must not be used any more. */
static void
forget_blocks(struct walk *walk)
{
	walk->leaves.count = 0;
	walk->again.count = 0;
	for (unsigned int i = 0; i < FRAMES_MAX && walk->frames[i] != NULL; i++)
		walk->frames[i]->children.count = 0;
}

/* From the root, as far as one epoch goes or until something does not fit. */
static smart_status
walk_once(struct walk *walk)
{
	smart_slot root;
	smart_status status = smart_word_read(walk->tree, walk->tree->options.root, &root);

	smart_assert(walk->tree->entered && !walk->finished);
	forget_blocks(walk);
	if (status == SMART_OK && !walk->tree->direct && walk->depth > 1)
		status = read_path(walk, root);
	walk->doubt = false;
	walk->depth = 0;
	walk->path.length = 0;
	walk->epoch_end = walk->report->leaves + LEAVES_PER_EPOCH;
	if (status != SMART_OK)
		return status;
	if (!smart_slot_used(root) || smart_slot_frozen(root) || smart_slot_pk(root) != 0)
	{
		complain(walk, "the root slot is malformed");
		return SMART_OK;
	}
	status = visit(walk, root, 0, 0, 255, 0, take_again(walk, root));
	while (status == SMART_OK && walk->depth > 0 && !walk->doubt)
	{
		const struct frame *frame = walk->frames[walk->depth - 1];

		/* Enough for one epoch?  Nodes whose slots are all done are counted first: the next walk passes over them. */
		if (walk->report->leaves >= walk->epoch_end && frame->next < frame->count)
			break;
		status = advance(walk);
	}
	/* Below a compressed path the last range ends before the greatest of all keys does. */
	if (status == SMART_OK && !walk->doubt && walk->depth == 0)
		walk->finished = true;
	return status;
}

smart_status
smart_tree_verify(struct smart_tree *tree, smart_entry_fn entry, void *argument, struct smart_verify_report *report,
				  char *message, size_t message_size)
{
	struct smart_env *env = tree->env;
	struct walk *walk = env->allocate(env, sizeof(*walk));
	smart_status status;

	if (walk == NULL)
		return SMART_NO_MEMORY;
	memset(walk, 0, sizeof(*walk));
	memset(report, 0, sizeof(*report));
	walk->tree = tree;
	walk->report = report;
	walk->entry = entry;
	walk->argument = argument;
	walk->bytes = env->allocate(env, SMART_KEY_MAX + SMART_ENTRY_MAX);
	walk->last = env->allocate(env, SMART_KEY_MAX + SMART_ENTRY_MAX);
	status = smart_cursor_init(&walk->path, env);
	if (status == SMART_OK)
		status = smart_cursor_init(&walk->done, env);
	if (status == SMART_OK && (walk->bytes == NULL || walk->last == NULL))
		status = SMART_NO_MEMORY;
	while (status == SMART_OK && !walk->finished)
	{
		smart_enter(tree);
		status = walk_once(walk);
		status = smart_leave(tree, status);
		if (status == SMART_OK && walk->doubt && ++walk->restarts > RESTARTS_MAX)
			status = SMART_CORRUPT;
		if (status == SMART_OK && walk->doubt)
			env->pause(env, walk->restarts);
		if (status == SMART_OK && env->interrupted(env))
			status = SMART_INTERRUPTED;
	}
	snprintf(message, message_size, "%s",
			 status == SMART_CORRUPT && walk->message[0] != '\0' ? walk->message : smart_status_text(status));
	smart_window_done(&walk->leaves, env);
	smart_window_done(&walk->again, env);
	for (unsigned int i = 0; i < FRAMES_MAX && walk->frames[i] != NULL; i++)
	{
		smart_window_done(&walk->frames[i]->children, env);
		env->release(env, walk->frames[i]);
	}
	if (walk->path.bytes != NULL)
		smart_cursor_done(&walk->path, env);
	if (walk->done.bytes != NULL)
		smart_cursor_done(&walk->done, env);
	smart_release(env, walk->bytes);
	smart_release(env, walk->last);
	env->release(env, walk);
	return status;
}
