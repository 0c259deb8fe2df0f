/*
 * offload.c
 *	  The client's side of offloaded descents: where the cache does not know the
 *	  way, a memory node walks it, in one round trip (DEX, section 6).
 *
 * The search goes on in the nodes that come as in those that it READs itself, and
 * the cache learns them.  If the reply is exact (descent.h), they are looked at as
 * if this client had READ them one after the other: they were loaded within this
 * operation, in the way of B1, by whole words.  Then the leaf at the end answers
 * for itself (I1) once its checksum is good; and an empty range, in a slot that is
 * not frozen, was part of the tree then (I2), so that "absent" may be concluded from it, as
 * in a strict descent that begins at this node (B4).  Else the leaf is READ, and
 * a client that comes to an empty range goes strict itself.
 *
 * What is faster is measured.  Without offloading every node that the cache does
 * not have costs a round trip, and the leaf another; how many nodes the cache did
 * not have in the last searches of this tree tells how many to expect.  Now and
 * then the other way is taken, so that no old measurement decides for ever.
 */
#include "tree/block/access.h"
#include "tree/block/copies.h"
#include "tree/find/find.h"
#include "tree/find/offload.h"
#include "tree/find/window.h"

#define BUSY_NS        UINT64_C(20000000)   /* without descents by a memory node that was busy, */
#define REFUSED_NS     UINT64_C(1000000000) /* and by one that made none at all */
#define AVERAGE_ABOVE  8                    /* of measurements, as far as they are above the average, */
#define AVERAGE_BELOW  2                    /* and below it */
#define MISSES_OF      8                    /* searches, in an average */
#define MEASURE_ONE_IN 256                  /* choices that are made the other way */
#define MISSES_SHIFT   8                    /* of the average of nodes that the cache did not have */
#define MISSES_FIRST   (2u << MISSES_SHIFT) /* what a new handle expects */

void
smart_offload_init(struct smart_offload *offload, enum smart_offload_mode mode)
{
	memset(offload->node, 0, sizeof(offload->node));
	offload->mode = mode;
	offload->path.count = 0;
}

/* ---- measuring ---- */

/*
 * What is far above the average is most likely of a process that did not run, or of a
 * connection that had to be made: samples count for no more than twice the
 * average, and those below it count for more.
 */
static void
add_sample(uint64_t *average, uint64_t sample)
{
	if (*average == 0)
		*average = sample > 0 ? sample : 1;
	else if (sample < *average)
		*average -= (*average - sample) / AVERAGE_BELOW;
	else
		*average += (sample > 2 * *average ? *average : sample - *average) / AVERAGE_ABOVE;
	smart_assert(*average > 0);
}

static struct smart_offload *
offload_of(const struct smart_tree *tree)
{
	struct smart_offload *offload = tree->services->offload;

	return offload == NULL || offload->mode == SMART_OFFLOAD_OFF || tree->services->cache_find == NULL ? NULL : offload;
}

void
smart_offload_begin(struct smart_tree *tree)
{
	struct smart_offload_misses *misses = &tree->misses;

	if (offload_of(tree) == NULL)
		return;
	tree->services->offload->path.count = 0;
	if (misses->expected == 0)
		misses->expected = MISSES_FIRST;
	/* A search that found its way in the cache says nothing about those that do not. */
	if (misses->count > 0)
		misses->expected += (misses->count << MISSES_SHIFT) / MISSES_OF - misses->expected / MISSES_OF;
	misses->count = 0;
	smart_assert(tree->entered && !tree->direct && tree->services->offload->path.count == 0);
}

/* Is a descent by this memory node likely to be faster?  The search misses its first node, or a later one. */
static bool
is_worth_while(struct smart_tree *tree, struct smart_offload *offload, unsigned int number)
{
	struct smart_offload_node *node = &offload->node[number];
	uint64_t passed = (uint64_t) tree->misses.count << MISSES_SHIFT;
	uint64_t nodes = tree->misses.expected > passed ? tree->misses.expected - passed : 0;
	uint64_t trips = nodes < 1u << MISSES_SHIFT ? 2u << MISSES_SHIFT : nodes + (1u << MISSES_SHIFT);
	bool other;

	if (node->not_before_ns != 0)
	{
		if (tree->env->now_ns(tree->env) < node->not_before_ns)
			return false;
		node->not_before_ns = 0;
	}
	if (offload->mode == SMART_OFFLOAD_ON)
		return true;
	other = ++node->choices % MEASURE_ONE_IN == 0;
	if (node->trip_ns == 0 || node->descent_ns == 0)
		return node->trip_ns != 0;
	return (node->descent_ns < ((node->trip_ns * trips) >> MISSES_SHIFT)) != other;
}

/* ---- asking ---- */

static const struct fabric_path_block *
path_block(const struct smart_offload *offload, smart_slot link, uint32_t length)
{
	const struct fabric_path *path = &offload->path;

	smart_assert(path->count <= FABRIC_PATH_BLOCKS_MAX);
	for (uint32_t i = 0; i < path->count; i++)
	{
		if (path->block[i].link == link)
			return path->block[i].length == length ? &path->block[i] : NULL;
	}
	return NULL;
}

/*
 * A block that the path has, or has once a descent was asked for; *block NULL: it has not.  A memory node that does not
 * reply is no error: the READs that follow will tell whether it is there.
 */
static smart_status
find_or_ask(struct smart_tree *tree, struct smart_offload *offload, const struct smart_key *key, smart_slot link,
			unsigned int arrived, uint32_t length, const struct fabric_path_block **block)
{
	unsigned int number = fabric_node(link == 0 ? tree->options.root : smart_slot_address(link));
	struct smart_offload_node *node = &offload->node[number];
	struct fabric_descent descent = {.link = link,
									 .root = tree->options.root,
									 .arrived = (uint16_t) arrived,
									 .key_length = (uint16_t) key->length,
									 .pad = key->pad,
									 .key = key->bytes};
	uint64_t begin_ns;
	uint64_t end_ns;
	bool asks;
	smart_status status;

	smart_assert(!tree->direct && tree->entered && arrived <= SMART_KEY_MAX);
	*block = path_block(offload, link, length);
	asks = *block == NULL && key->length >= 1 && key->length <= FABRIC_DESCENT_KEY_MAX &&
		   is_worth_while(tree, offload, number);
	tree->misses.count++;
	if (!asks)
		return SMART_OK;
	begin_ns = tree->env->now_ns(tree->env);
	status = fabric_descend(tree->fabric, number, &descent, &offload->path);
	end_ns = tree->env->now_ns(tree->env);
	if (status == SMART_UNREACHABLE || status == SMART_STALE)
	{
		/* A lost connection, say. */
		node->not_before_ns = end_ns + REFUSED_NS;
		status = SMART_OK;
	}
	else if (status == SMART_OK && offload->path.end == FABRIC_PATH_BUSY)
		node->not_before_ns = end_ns + BUSY_NS;
	else if (status == SMART_OK)
		add_sample(&node->descent_ns, end_ns - begin_ns);
	*block = path_block(offload, link, length);
	smart_assert(*block == NULL || (*block)->length == length);
	return status;
}

/* ---- blocks, by way of a path or by READs ---- */

smart_status
smart_offload_root(struct smart_tree *tree, const struct smart_key *key, smart_slot *root)
{
	struct smart_offload *offload = offload_of(tree);
	const struct fabric_path_block *block = NULL;
	smart_status status = SMART_OK;

	if (offload != NULL)
		status = find_or_ask(tree, offload, key, 0, 0, sizeof(*root), &block);
	if (status != SMART_OK)
		return status;
	if (block == NULL)
		return smart_word_read(tree, tree->options.root, root);
	memcpy(root, block->bytes, sizeof(*root));
	return SMART_OK;
}

static uint32_t
node_bytes(smart_slot link)
{
	return (SMART_NODE_HEAD_WORDS + smart_kind_slots(smart_slot_size(link))) * (uint32_t) sizeof(uint64_t);
}

smart_status
smart_offload_node(struct smart_tree *tree, const struct smart_place *place, bool parts, struct smart_node *node,
				   const struct smart_key *key, bool *ours)
{
	smart_slot link = place->slot;
	unsigned int arrived = place->consumed;
	struct smart_offload *offload = offload_of(tree);
	const struct fabric_path_block *block = NULL;
	uint64_t begin_ns;
	smart_status status = SMART_OK;

	smart_assert(smart_slot_is_node(link) && node != NULL);
	if (offload == NULL)
		return smart_fetch_node(tree, place, parts, node, key, ours);
	status = find_or_ask(tree, offload, key, link, arrived, node_bytes(link), &block);
	if (status != SMART_OK)
		return status;
	if (block != NULL)
	{
		/* Checked as one that was READ with its header first. */
		*ours =
			smart_node_from_copy(tree, link, arrived, block->bytes, node) && smart_node_finish_again(tree, node, key);
		return SMART_OK;
	}
	begin_ns = tree->env->now_ns(tree->env);
	status = smart_fetch_node(tree, place, parts, node, key, ours);
	if (status == SMART_OK)
		add_sample(&offload->node[fabric_node(smart_slot_address(link))].trip_ns,
				   tree->env->now_ns(tree->env) - begin_ns);
	return status;
}

smart_status
smart_offload_leaf(struct smart_tree *tree, smart_slot link, const struct smart_key *key, uint8_t *buffer,
				   struct smart_leaf *leaf, bool *good)
{
	struct smart_offload *offload = tree->direct ? NULL : offload_of(tree);
	const struct fabric_path_block *block;
	uint64_t begin_ns;
	smart_status status;

	smart_assert(tree->entered && smart_slot_is_leaf(link));
	*good = smart_leaf_copy_find(tree, link, key, buffer, false, leaf);
	if (*good)
		return SMART_OK;
	if (offload == NULL)
		return smart_leaf_read(tree, link, key, buffer, leaf, good);
	block = path_block(offload, link, smart_slot_size(link) * SMART_UNIT);
	*good = block != NULL && offload->path.exact && smart_leaf_from_copy(tree, link, block->bytes, key, leaf);
	if (*good)
		return SMART_OK;
	begin_ns = tree->env->now_ns(tree->env);
	status = smart_leaf_read(tree, link, key, buffer, leaf, good);
	if (status == SMART_OK)
		add_sample(&offload->node[fabric_node(smart_slot_address(link))].trip_ns,
				   tree->env->now_ns(tree->env) - begin_ns);
	return status;
}

smart_status
smart_offload_window(struct smart_tree *tree, smart_slot link, struct smart_window *window)
{
	struct smart_offload *offload = offload_of(tree);
	uint32_t length = smart_slot_size(link) * SMART_UNIT;
	const struct fabric_path_block *block = offload == NULL ? NULL : path_block(offload, link, length);

	if (block == NULL || !offload->path.exact)
		return SMART_OK;
	return smart_window_put(tree, window, link, block->bytes);
}

/* ---- what a path proves ---- */

bool
smart_offload_shows(struct smart_tree *tree, const struct smart_key *key, const struct smart_node *node)
{
	struct smart_offload *offload = offload_of(tree);
	struct smart_node *shown = &tree->nodes[node == &tree->nodes[0] ? 1 : 0];
	const struct fabric_path_block *block;

	smart_assert(!tree->direct);
	if (offload == NULL || !offload->path.exact)
		return false;
	block = path_block(offload, node->link, node_bytes(node->link));
	return block != NULL && smart_node_from_copy(tree, node->link, node->arrived, block->bytes, shown) &&
		   smart_node_finish_again(tree, shown, key) &&
		   memcmp(node->words, shown->words, (SMART_NODE_HEAD_WORDS + shown->slots) * sizeof(uint64_t)) == 0;
}

bool
smart_offload_proves_empty(struct smart_tree *tree, const struct smart_key *key, const struct smart_place *place)
{
	struct smart_offload *offload = tree->direct ? NULL : offload_of(tree);
	const struct smart_node *node = place->node;
	const struct fabric_path_block *root;
	smart_slot slot;

	if (offload == NULL || !offload->path.exact || !smart_slot_is_empty(place->slot))
		return false;
	if (SMART_FAULT(descent) && offload->path.count > 0)
		return true;
	if (node == NULL)
	{
		root = path_block(offload, 0, sizeof(slot));
		return root != NULL && memcmp(root->bytes, &place->slot, sizeof(slot)) == 0;
	}
	smart_assert(place->index >= 0 && place->index < (int) node->slots);
	slot = node->words[SMART_NODE_HEAD_WORDS + place->index];
	smart_assert((slot & ~SMART_SLOT_FROZEN) == place->slot);
	return !smart_slot_frozen(slot) && smart_offload_shows(tree, key, node);
}
