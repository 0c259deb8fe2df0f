/*
 * load.c
 *	  Bulk load: a tree from entries in ascending order, bottom-up, each block
 *	  written once.
 *
 * The path of nodes above the last entry is open, one on top of the other by
 * depth; the entries that no leaf holds yet are pending and lie below the
 * topmost.  When pending entries fill a leaf, those with finished bytes get
 * one; if all have the same byte, a node is opened below.  When an entry leaves
 * the topmost node's prefix that node is closed: it is written, and becomes a
 * slot of the open node at the position where the entry branched off, which is
 * opened if there is none.
 *
 * No client sees the tree before its root is stored, and its id is new, so that no
 * cache holds a path into it: blocks are born live.  On a remote provider their
 * WRITEs are gathered, and posted many at a time; all are complete before the
 * root's CAS.
 */
#include "tree/block/access.h"
#include "tree/block/gather.h"
#include "tree/block/values.h"
#include "tree/structure/change.h"

struct open_node
{
	unsigned int depth;
	unsigned int start; /* first byte without a slot yet; 256: all have one */
	unsigned int count;
	smart_slot slots[256];
};

struct smart_load
{
	struct smart_tree *tree;
	struct smart_gather *gather; /* remote: blocks on their way; NULL on a direct provider */
	unsigned int limit;          /* bytes of a leaf that is full */
	size_t room;                 /* bytes that a leaf has at least, so that it can grow where it is */
	unsigned int open_count;
	unsigned int open_capacity;
	struct open_node **open; /* by depth */

	/* Pending entries, one behind the other in arena. */
	uint8_t *arena;
	size_t arena_used;
	size_t arena_capacity;
	struct
	{
		uint32_t offset;
		uint32_t length;
	} * entries;
	uint32_t count;
	uint32_t capacity;
	uint32_t group; /* first entry with the last one's byte at the topmost depth */
	size_t total;   /* bytes of all pending entries */
	unsigned int longest;
	unsigned int common; /* bytes that all pending entries share */
	uint8_t *last;       /* the last entry added */
	size_t last_length;
};

smart_status
smart_load_begin(struct smart_tree *tree, unsigned int fill, struct smart_load **result)
{
	struct smart_env *env = tree->env;
	struct smart_load *load = env->allocate(env, sizeof(*load));

	smart_assert(fill >= 10 && fill <= 100);
	if (load == NULL)
		return SMART_NO_MEMORY;
	memset(load, 0, sizeof(*load));
	load->tree = tree;
	/* Whole units: what a limit in between left over would be room for nothing. */
	load->limit = tree->options.leaf_size * fill / 100 / SMART_UNIT * SMART_UNIT;
	if (load->limit < SMART_UNIT)
		load->limit = SMART_UNIT;
	/* Where an append is one atomic, to replace a leaf by a longer one costs most: eight requests. */
	load->room = fill < 100 && tree->options.retractions != 0 ? tree->options.leaf_size : 0;
	load->last = env->allocate(env, SMART_ENTRY_MAX);
	if (load->last != NULL && !tree->direct)
		load->gather = smart_gather_open(env);
	if (load->last == NULL || (load->gather == NULL && !tree->direct))
	{
		smart_load_abandon(load);
		return SMART_NO_MEMORY;
	}
	*result = load;
	return SMART_OK;
}

/* Blocks that are made from now on are part of the load, or those of any other operation. */
static void
make_blocks_for_load(struct smart_load *load, bool yes)
{
	struct smart_tree *tree = load->tree;

	smart_assert(!tree->entered && tree->locked == 0);
	tree->born = yes ? SMART_LIVE : SMART_NEW;
	tree->gather = yes ? load->gather : NULL;
}

void
smart_load_abandon(struct smart_load *load)
{
	struct smart_env *env = load->tree->env;

	for (unsigned int i = 0; i < load->open_capacity; i++)
		smart_release(env, load->open[i]);
	smart_release(env, load->open);
	smart_release(env, load->arena);
	smart_release(env, load->entries);
	smart_release(env, load->last);
	smart_release(env, load->gather);
	env->release(env, load);
}

/* A larger copy of an array; the old one is released. */
static smart_status
enlarge(struct smart_env *env, void **array, size_t used_bytes, size_t new_bytes)
{
	void *copy = env->allocate(env, new_bytes);

	if (copy == NULL)
		return SMART_NO_MEMORY;
	if (*array != NULL)
	{
		memcpy(copy, *array, used_bytes);
		env->release(env, *array);
	}
	*array = copy;
	return SMART_OK;
}

/* ---- open nodes ---- */

/* NULL: none. */
static inline struct open_node *
topmost(const struct smart_load *load)
{
	return load->open_count > 0 ? load->open[load->open_count - 1] : NULL;
}

/* Position from which pending entries' bytes go into leaves. */
static unsigned int
leaf_depth(const struct smart_load *load)
{
	return load->open_count > 0 ? topmost(load)->depth : 0;
}

static smart_status
open_node(struct smart_load *load, unsigned int depth)
{
	struct smart_env *env = load->tree->env;
	struct open_node *node;

	smart_assert(load->open_count == 0 || topmost(load)->depth < depth);
	smart_assert(depth < SMART_KEY_MAX && load->open_count <= load->open_capacity);
	if (load->open_count == load->open_capacity)
	{
		unsigned int capacity = load->open_capacity ? 2 * load->open_capacity : 16;
		smart_status status =
			enlarge(env, (void **) &load->open, load->open_capacity * sizeof(node), capacity * sizeof(node));

		if (status != SMART_OK)
			return status;
		memset(load->open + load->open_capacity, 0, (capacity - load->open_capacity) * sizeof(node));
		load->open_capacity = capacity;
	}
	node = load->open[load->open_count];
	if (node == NULL)
		node = env->allocate(env, sizeof(*node));
	if (node == NULL)
		return SMART_NO_MEMORY;
	node->depth = depth;
	node->start = 0;
	node->count = 0;
	load->open[load->open_count++] = node;
	return SMART_OK;
}

static void
add_slot(struct open_node *node, smart_slot slot, unsigned int hi)
{
	smart_assert(smart_slot_pk(slot) == node->start && hi >= node->start && node->count < 256);
	node->slots[node->count++] = slot;
	node->start = hi + 1;
	smart_assert(node->start <= 256);
}

/* An exact slot for byte, with an empty range in front if there is a gap. */
static void
add_child(struct open_node *node, smart_slot link, unsigned int byte)
{
	smart_assert(node->start <= byte && byte <= 255);
	if (node->start < byte)
		add_slot(node, smart_slot_make_empty(node->start, byte - 1), byte - 1);
	add_slot(node, smart_slot_with_pk(link, byte), byte);
}

/* ---- pending entries ---- */

/* Bytes of a leaf of all pending entries. */
static size_t
pending_bytes(const struct smart_load *load)
{
	unsigned int depth = leaf_depth(load);
	unsigned int common = load->count == 1 ? depth : load->common;
	size_t lengths = 0;

	smart_assert(load->count > 0 && common >= depth && load->longest >= common);
	if (load->tree->options.fixed_length == 0)
		lengths = (size_t) load->count * (load->longest - common < 0x80 ? 1 : 2);
	return SMART_LEAF_HEADER_BYTES + (common - depth) + (load->total - (size_t) load->count * common) + lengths +
		   SMART_LEAF_REAR_BYTES;
}

/* The byte of a pending entry at the topmost depth. */
static unsigned int
pending_byte(const struct smart_load *load, uint32_t entry)
{
	smart_assert(entry < load->count && leaf_depth(load) < load->entries[entry].length);
	return load->arena[load->entries[entry].offset + leaf_depth(load)];
}

/* Room for one more pending entry of this length. */
static __attribute__((noinline)) smart_status
reserve_pending(struct smart_load *load, size_t length)
{
	struct smart_env *env = load->tree->env;
	smart_status status = SMART_OK;

	if (load->arena_used + length > load->arena_capacity)
	{
		size_t capacity = 2 * (load->arena_capacity + length) + 4096;

		status = enlarge(env, (void **) &load->arena, load->arena_used, capacity);
		if (status != SMART_OK)
			return status;
		load->arena_capacity = capacity;
	}
	if (load->count == load->capacity)
	{
		uint32_t capacity = load->capacity ? 2 * load->capacity : 256;

		status = enlarge(env, (void **) &load->entries, load->count * sizeof(load->entries[0]),
						 capacity * sizeof(load->entries[0]));
		if (status != SMART_OK)
			return status;
		load->capacity = capacity;
	}
	return status;
}

static inline smart_status
append_pending(struct smart_load *load, const uint8_t *entry, size_t length)
{
	if (smart_unlikely(load->arena_used + length > load->arena_capacity || load->count == load->capacity))
	{
		smart_status status = reserve_pending(load, length);

		if (status != SMART_OK)
			return status;
	}
	smart_assert(load->arena_used + length <= load->arena_capacity && load->count < load->capacity);
	smart_copy_short(load->arena + load->arena_used, entry, length);
	load->entries[load->count].offset = (uint32_t) load->arena_used;
	load->entries[load->count].length = (uint32_t) length;
	load->count++;
	load->arena_used += length;
	load->total += length;
	if (length > load->longest)
		load->longest = (unsigned int) length;
	return SMART_OK;
}

/* Forgets the first taken pending entries; the rest moves to the front. */
static void
drop_pending(struct smart_load *load, uint32_t taken)
{
	uint32_t left = load->count - taken;
	uint32_t shift = left > 0 ? load->entries[taken].offset : (uint32_t) load->arena_used;

	smart_assert(taken > 0 && taken <= load->count && shift <= load->arena_used);
	memmove(load->arena, load->arena + shift, load->arena_used - shift);
	load->arena_used -= shift;
	load->total = load->arena_used;
	load->longest = 0;
	for (uint32_t i = 0; i < left; i++)
	{
		load->entries[i].offset = load->entries[taken + i].offset - shift;
		load->entries[i].length = load->entries[taken + i].length;
		if (load->entries[i].length > load->longest)
			load->longest = load->entries[i].length;
	}
	load->count = left;
	load->group = 0;
	smart_assert((load->count == 0) == (load->arena_used == 0));
	/* They ascend: what the first and the last share, all share. */
	if (left > 0)
		load->common = (unsigned int) smart_common_prefix(load->arena, load->entries[0].length,
														  load->arena + load->entries[left - 1].offset,
														  load->entries[left - 1].length);
}

/* Makes a leaf for [lo..hi] at the topmost depth of the first count pending entries. */
static smart_status
write_leaf(struct smart_load *load, uint32_t count, unsigned int lo, unsigned int hi, smart_slot *link)
{
	struct smart_tree *tree = load->tree;
	struct smart_list *list = &tree->list;
	unsigned int depth = leaf_depth(load);
	unsigned int value_bytes = tree->options.value ? SMART_VALUE_BYTES : 0;
	struct smart_key key = {.bytes = load->arena, .length = load->entries[0].length};
	smart_status status;

	smart_assert(count > 0 && count <= load->count && tree->born == SMART_LIVE);
	smart_assert(lo <= hi && hi <= 255);
	list->count = 0;
	status = smart_list_reserve(tree, list, count);
	if (status != SMART_OK)
		return status;
	list->base = depth;
	list->count = count;
	for (uint32_t i = 0; i < count; i++)
	{
		const uint8_t *bytes = load->arena + load->entries[i].offset + depth;
		uint32_t length = load->entries[i].length - depth - value_bytes;

		list->refs[i] = (struct smart_ref){.head = bytes, .tail = bytes + length, .head_length = (uint16_t) length};
	}
	status = smart_leaf_build(tree, &key, depth, lo, hi, list, 0, count, load->room, link);
	if (status == SMART_OK)
		drop_pending(load, count);
	return status;
}

/*
 * Gives what is pending below the topmost node its last range there, writes the node, whose prefix is the last entry's,
 * and takes it off.
 */
static smart_status
close_node(struct smart_load *load, unsigned int consumed, smart_slot *link)
{
	struct open_node *node = topmost(load);
	struct smart_key key = {.bytes = load->last, .length = (uint32_t) load->last_length};
	smart_status status = SMART_OK;

	smart_assert(load->open_count > 0 && load->last_length > node->depth);
	if (node->start <= 255)
	{
		*link = smart_slot_make_empty(node->start, 255);
		if (load->count > 0)
			status = write_leaf(load, load->count, node->start, 255, link);
		if (status != SMART_OK)
			return status;
		add_slot(node, *link, 255);
	}
	smart_assert(load->count == 0 && node->start == 256 && node->depth >= consumed);
	status = smart_node_build(load->tree, &key, node->depth, 0, node->slots, node->count, 0, link);
	if (status == SMART_OK)
		status = smart_make_chain(load->tree, &key, consumed, node->depth, link, NULL, NULL);
	load->open_count--;
	return status;
}

/* Closes all open nodes deeper than position, at which the next entry leaves the last one. */
static __attribute__((noinline)) smart_status
close_below(struct smart_load *load, unsigned int position)
{
	smart_status status = SMART_OK;

	make_blocks_for_load(load, true);
	while (status == SMART_OK && load->open_count > 0 && topmost(load)->depth > position)
	{
		struct open_node *parent = load->open_count > 1 ? load->open[load->open_count - 2] : NULL;
		unsigned int at = parent != NULL && parent->depth >= position ? parent->depth : position;
		smart_slot link;

		status = close_node(load, at + 1, &link);
		if (status == SMART_OK && (parent == NULL || parent->depth < at))
			status = open_node(load, at);
		if (status == SMART_OK)
			add_child(topmost(load), link, load->last[at]);
	}
	make_blocks_for_load(load, false);
	return status;
}

/* Have the pending entries become more than a leaf? */
static inline bool
is_too_much(const struct smart_load *load)
{
	if (load->count < 2 || smart_likely(pending_bytes(load) <= load->limit))
		return false;
	return pending_bytes(load) - load->limit >
		   smart_leaf_most(load->tree, load->common - leaf_depth(load)) - load->tree->options.leaf_size;
}

/* If so: the finished bytes get one, or a node is opened below. */
static __attribute__((noinline)) smart_status
relieve(struct smart_load *load)
{
	smart_status status = SMART_OK;

	make_blocks_for_load(load, true);
	while (status == SMART_OK && is_too_much(load))
	{
		struct open_node *node = topmost(load);

		if (node != NULL && load->group > 0)
		{
			unsigned int hi = pending_byte(load, load->group - 1);
			smart_slot link;

			status = write_leaf(load, load->group, node->start, hi, &link);
			if (status == SMART_OK)
				add_slot(node, link, hi);
			continue;
		}
		if (node != NULL && node->start < pending_byte(load, 0))
		{
			unsigned int hi = pending_byte(load, 0) - 1;

			add_slot(node, smart_slot_make_empty(node->start, hi), hi);
		}
		status = open_node(load, load->common);
		/* First pending entry that has the last one's byte there. */
		load->group = load->count - 1;
		while (load->group > 0 && pending_byte(load, load->group - 1) == pending_byte(load, load->count - 1))
			load->group--;
		smart_assert(status != SMART_OK || load->group > 0);
	}
	make_blocks_for_load(load, false);
	return status;
}

smart_status
smart_load_add(struct smart_load *load, const uint8_t *entry, size_t length)
{
	unsigned int common;
	smart_status status = SMART_OK;

	if (length == 0 || length > SMART_ENTRY_MAX ||
		(load->tree->options.value &&
		 (length <= SMART_VALUE_BYTES || !smart_value_is_behind(load->tree, entry, length - SMART_VALUE_BYTES))))
		return SMART_TOO_LONG;
	common = (unsigned int) smart_common_prefix(load->last, load->last_length, entry, length);
	if (load->last_length > 0)
	{
		if (common == load->last_length || common == length || entry[common] < load->last[common])
			return SMART_UNSORTED;
		if (common >= SMART_KEY_MAX)
			return SMART_TOO_LONG;
		if (smart_unlikely(load->open_count > 0 && topmost(load)->depth > common))
			status = close_below(load, common);
	}
	if (status == SMART_OK)
		status = append_pending(load, entry, length);
	if (status == SMART_OK)
	{
		if (load->count == 1)
			load->common = (unsigned int) length;
		else if (common < load->common)
			load->common = common;
		if (load->open_count > 0 && common == topmost(load)->depth)
			load->group = load->count - 1;
		if (smart_unlikely(is_too_much(load)))
			status = relieve(load);
	}
	smart_copy_short(load->last, entry, length);
	load->last_length = length;
	return status;
}

/* The root slot of everything that was added. */
static smart_status
make_root(struct smart_load *load, smart_slot *root)
{
	smart_status status = SMART_OK;

	*root = smart_tree_empty_root();
	if (load->open_count == 0)
		return load->count == 0 ? SMART_OK : write_leaf(load, load->count, 0, 255, root);
	while (status == SMART_OK && load->open_count > 0)
	{
		struct open_node *parent = load->open_count > 1 ? load->open[load->open_count - 2] : NULL;

		status = close_node(load, parent != NULL ? parent->depth + 1 : 0, root);
		if (status == SMART_OK && parent != NULL)
			add_child(parent, *root, load->last[parent->depth]);
	}
	smart_assert(status != SMART_OK || load->count == 0);
	return status;
}

smart_status
smart_load_finish(struct smart_load *load)
{
	struct smart_tree *tree = load->tree;
	smart_slot empty = smart_tree_empty_root();
	uint64_t since_ns = 0;
	uint64_t seen;
	smart_slot root;
	smart_status status;

	make_blocks_for_load(load, true);
	status = make_root(load, &root);
	make_blocks_for_load(load, false);
	if (status == SMART_OK && load->gather != NULL)
		status = smart_gather_flush(tree, load->gather);
	if (status == SMART_OK && root != empty)
	{
		smart_assert(smart_slot_used(root) && !smart_slot_frozen(root) && smart_slot_pk(root) == 0);
		/* Publishes the whole tree.  Only this load does: where root is there already, an earlier attempt came about. */
		do
			status = smart_word_cas(tree, tree->options.root, empty, root, &seen);
		while (!tree->direct && smart_await(tree, status, &since_ns));
		if (status == SMART_OK && seen != empty && seen != root)
			status = SMART_CORRUPT;
	}
	smart_load_abandon(load);
	return status;
}
