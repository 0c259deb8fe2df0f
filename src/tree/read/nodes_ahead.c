/*
 * nodes_ahead.c
 *	  Nodes that a walk on a remote provider READs before it comes to them, many in one batch.
 *
 * What was of use longest ago makes room for what is wanted.
 */
#include "tree/block/access.h"
#include "tree/read/nodes_ahead.h"

#define ROOM   64 /* nodes that are remembered */
#define DEPTHS 8  /* of a key, whose prefixes are told apart */

_Static_assert(SMART_AHEAD_BATCH < ROOM, "a batch leaves room for the node that served last");

struct ahead
{
	bool known;        /* READ, and proved */
	uint64_t used;     /* orders the nodes by their last use */
	bool arriving;     /* the next batch READs it, */
	uint64_t moment;   /* arriving: in which the slot was in the tree that leads to it (B1); 0: not known */
	unsigned int path; /* arriving: where the bytes begin that lead to its parent, and up to the parent's own byte */
	const struct ahead *parent; /* arriving: the same batch READs the node whose slot leads here; or NULL */
	uint64_t shown;             /* the prefix, by its identity, that a parent has shown; 0: none has */
	unsigned int parent_depth;
	uint64_t parent_identity;
	struct smart_node node;
};

struct smart_nodes_ahead
{
	uint64_t uses;         /* so far */
	unsigned int served;   /* the last one that told the walk its place */
	unsigned int arriving; /* nodes */
	unsigned int path;     /* the last one, */
	unsigned int path_end; /* and where it ends */
	uint8_t paths[SMART_KEY_MAX + 1];
	struct ahead nodes[ROOM];
};

struct smart_nodes_ahead *
smart_nodes_ahead_open(struct smart_env *env)
{
	struct smart_nodes_ahead *ahead = env->allocate(env, sizeof(*ahead));

	if (ahead == NULL)
		return NULL;
	memset(ahead, 0, sizeof(*ahead));
	return ahead;
}

static void
forget_paths(struct smart_nodes_ahead *ahead)
{
	ahead->arriving = ahead->path = ahead->path_end = 0;
}

void
smart_nodes_ahead_start(struct smart_nodes_ahead *ahead)
{
	forget_paths(ahead);
	for (unsigned int i = 0; i < ROOM; i++)
		ahead->nodes[i].known = ahead->nodes[i].arriving = false;
}

/* ---- one batch ---- */

/* Keeps the key's first bytes, once for siblings, and for a node and those above it; false: there is no room. */
static bool
keep_path(struct smart_nodes_ahead *ahead, const struct smart_key *key, unsigned int length)
{
	unsigned int kept = ahead->arriving > 0 ? ahead->path_end - ahead->path : 0;
	unsigned int same = 0;

	smart_assert(ahead->path <= ahead->path_end && ahead->path_end <= sizeof(ahead->paths));
	while (same < kept && same < length && ahead->paths[ahead->path + same] == smart_key_byte(key, same))
		same++;
	if (same == length)
		return true;
	if (same < kept)
		same = 0;
	if (length - same > sizeof(ahead->paths) - ahead->path_end)
		return false;
	if (same == 0)
		ahead->path = ahead->path_end;
	for (unsigned int i = same; i < length; i++)
		ahead->paths[ahead->path_end++] = (uint8_t) smart_key_byte(key, i);
	return true;
}

/* The entry of a node, or NULL. */
static struct ahead *
find_entry(struct smart_nodes_ahead *ahead, smart_slot link, unsigned int arrived)
{
	for (unsigned int i = 0; i < ROOM; i++)
	{
		struct ahead *entry = &ahead->nodes[i];

		if ((entry->known || entry->arriving) && entry->node.link == link && entry->node.arrived == arrived)
			return entry;
	}
	return NULL;
}

/* The entry that is given away next. */
static struct ahead *
take_entry(struct smart_nodes_ahead *ahead)
{
	struct ahead *oldest = NULL;

	for (unsigned int i = 0; i < ROOM; i++)
	{
		struct ahead *entry = &ahead->nodes[i];

		if (entry->arriving || i == ahead->served)
			continue;
		if (!entry->known)
			return entry;
		if (oldest == NULL || entry->used < oldest->used)
			oldest = entry;
	}
	smart_assert(oldest != NULL);
	return oldest;
}

/* The next batch READs the node; NULL: it does not. */
static struct ahead *
want(struct smart_nodes_ahead *ahead, const struct smart_key *key, smart_slot link, unsigned int arrived,
	 uint64_t moment)
{
	struct ahead *entry = find_entry(ahead, link, arrived);

	smart_assert(!smart_slot_is_range(link) && ahead->arriving <= SMART_AHEAD_BATCH);
	if (entry != NULL && entry->arriving)
		return entry;
	if (ahead->arriving == SMART_AHEAD_BATCH || !keep_path(ahead, key, arrived == 0 ? 0 : arrived - 1))
		return NULL;
	if (entry == NULL)
	{
		entry = take_entry(ahead);
		entry->shown = 0;
	}
	entry->known = false;
	entry->arriving = true;
	entry->used = ++ahead->uses;
	entry->moment = moment;
	entry->path = ahead->path;
	entry->parent = NULL;
	entry->node.link = link;
	entry->node.arrived = arrived;
	ahead->arriving++;
	return entry;
}

bool
smart_nodes_ahead_want(struct smart_nodes_ahead *ahead, const struct smart_key *key, smart_slot link,
					   unsigned int arrived, uint64_t moment)
{
	return want(ahead, key, link, arrived, moment) != NULL;
}

bool
smart_nodes_ahead_renew(struct smart_nodes_ahead *ahead, const struct smart_key *key, const struct smart_node *node)
{
	struct ahead *entry = find_entry(ahead, node->link, node->arrived);

	if (entry == NULL || !entry->known)
		return want(ahead, key, node->link, node->arrived, 0) != NULL;
	entry->used = ++ahead->uses;
	return true;
}

bool
smart_nodes_ahead_want_both(struct smart_nodes_ahead *ahead, const struct smart_key *key,
							const struct smart_node *parent, smart_slot link)
{
	unsigned int arrived = parent->depth + 1;
	const struct ahead *above = want(ahead, key, parent->link, parent->arrived, 0);
	struct ahead *entry = above == NULL ? NULL : want(ahead, key, link, arrived, 0);

	if (entry != NULL)
		entry->parent = above;
	return entry != NULL;
}

int
smart_nodes_ahead_prepare(const struct smart_tree *tree, struct smart_nodes_ahead *ahead, struct fabric_request *batch)
{
	int count = 0;

	for (unsigned int i = 0; i < ROOM && ahead->arriving > 0; i++)
	{
		struct ahead *entry = &ahead->nodes[i];

		if (!entry->arriving)
			continue;
		entry->arriving =
			smart_node_prepare_again(tree, entry->node.link, entry->node.arrived, &entry->node, &batch[count]);
		/* It may have waited for this batch since an earlier operation. */
		if (entry->moment != tree->moment)
			entry->moment = 0;
		if (entry->arriving && entry->moment != 0)
		{
			batch[count] = batch[count + 1];
			count++;
		}
		else if (entry->arriving)
			count += 2;
	}
	smart_assert(count <= SMART_AHEAD_REQUESTS);
	return count;
}

/* Is it the live node of the path that leads to it? */
static bool
prove(const struct smart_tree *tree, const struct smart_nodes_ahead *ahead, struct ahead *entry)
{
	struct smart_node *node = &entry->node;
	unsigned int arrived = node->arrived;
	uint8_t bytes[SMART_KEY_MAX + 1 + SMART_NODE_PARTIAL_MAX];
	struct smart_key key = {.bytes = bytes, .length = arrived + SMART_NODE_PARTIAL_MAX};

	smart_assert(arrived <= SMART_KEY_MAX);
	if (arrived > 0)
	{
		memcpy(bytes, ahead->paths + entry->path, arrived - 1);
		bytes[arrived - 1] = (uint8_t) smart_slot_pk(node->link);
	}
	if (!smart_header_fits(node->words[0], node->kind, arrived))
		return false;
	for (unsigned int i = arrived; i < smart_node_depth(node->words[0]); i++)
		bytes[i] = (uint8_t) smart_node_partial_byte(node->words[0], i);
	if (entry->moment != 0)
		memcpy(node->head, node->words, sizeof(node->head));
	return smart_node_finish_again(tree, node, &key);
}

/*
 * Does the node whose slot led here show that?  It was live, and its slot not frozen, so what that led to was part of the tree (I2).
 * This one was live, too, and a block is not used again within the epoch of a batch (I6): so it is the node that the slot led to.
 * A node's prefix never changes.
 */
static void
look_from_above(struct ahead *entry)
{
	const struct smart_node *parent = &entry->parent->node;
	int index;

	smart_assert(entry->arriving && entry->parent != NULL);
	/* In the place of the one above there may be another one by now. */
	if (!entry->known || !entry->parent->known || parent->depth + 1 != entry->node.arrived)
		return;
	index = smart_node_cover_index(parent, smart_slot_pk(entry->node.link));
	if (index < 0 || parent->words[SMART_NODE_HEAD_WORDS + index] != entry->node.link)
		return;
	entry->shown = entry->node.words[1];
	entry->parent_depth = parent->depth;
	entry->parent_identity = parent->words[1];
}

void
smart_nodes_ahead_finish(struct smart_tree *tree, struct smart_nodes_ahead *ahead, bool done)
{
	for (unsigned int i = 0; i < ROOM && ahead->arriving > 0; i++)
	{
		struct ahead *entry = &ahead->nodes[i];
		uint64_t moment;

		if (!entry->arriving)
			continue;
		entry->known = done && prove(tree, ahead, entry);
		if (SMART_FAULT(staleahead) && entry->known)
			tree->services->cache_find(tree->services, tree->options.id, entry->node.link, entry->node.words, &moment);
		entry->node.moment = entry->known ? tree->moment : 0;
		if (entry->known)
			smart_keep_read_node(tree, &entry->node, true);
	}
	for (unsigned int i = 0; i < ROOM && ahead->arriving > 0; i++)
	{
		struct ahead *entry = &ahead->nodes[i];

		if (entry->arriving && entry->parent != NULL)
			look_from_above(entry);
		entry->arriving = false;
	}
	forget_paths(ahead);
}

/* ---- nodes that were READ ---- */

bool
smart_node_leads(struct smart_node *node, bool fresh, const struct smart_key *key, struct smart_place *place)
{
	*place = (struct smart_place){.slot = node->link, .consumed = node->depth};
	smart_node_step(node, key, place, true);
	if (place->kind != SMART_PLACE_LEAF && (place->kind != SMART_PLACE_EMPTY || (!fresh && !SMART_FAULT(trustempty)) ||
											smart_slot_frozen(node->words[SMART_NODE_HEAD_WORDS + place->index])))
		return false;
	/* I2: an empty range is evidence only in a node that was READ within the walk. */
	smart_assert(place->kind == SMART_PLACE_LEAF || fresh || SMART_FAULT(trustempty));
	return true;
}

struct smart_node *
smart_nodes_ahead_known(struct smart_nodes_ahead *ahead, smart_slot link, unsigned int arrived)
{
	struct ahead *entry = find_entry(ahead, link, arrived);

	return entry != NULL && entry->known ? &entry->node : NULL;
}

/* The entry that this is the node of; NULL: there is none. */
static const struct ahead *
entry_of(const struct smart_nodes_ahead *ahead, const struct smart_node *node)
{
	for (unsigned int i = 0; i < ROOM; i++)
	{
		if (&ahead->nodes[i].node == node)
			return ahead->nodes[i].known ? &ahead->nodes[i] : NULL;
	}
	return NULL;
}

bool
smart_nodes_ahead_has(const struct smart_nodes_ahead *ahead, const struct smart_node *node)
{
	return entry_of(ahead, node) != NULL;
}

bool
smart_nodes_ahead_shows_prefix(const struct smart_tree *tree, const struct smart_nodes_ahead *ahead,
							   const struct smart_key *key, const struct smart_node *node)
{
	const struct ahead *entry = entry_of(ahead, node);

	/* What has been READ once more may be another node in the same block. */
	return entry != NULL && entry->shown != 0 && entry->shown == node->words[1] &&
		   smart_slot_pk(node->link) == smart_key_byte(key, entry->parent_depth) &&
		   entry->parent_identity == smart_prefix_hash(tree, key, entry->parent_depth);
}

/* The identities of a key's prefixes, each of which is told once. */
struct identities
{
	unsigned int depth[DEPTHS];
	uint64_t identity[DEPTHS];
};

static uint64_t
identity_of(struct identities *known, const struct smart_tree *tree, const struct smart_key *key, unsigned int depth)
{
	unsigned int i = depth % DEPTHS;

	if (known->depth[i] != depth)
		known->identity[i] = smart_prefix_hash(tree, key, depth);
	known->depth[i] = depth;
	return known->identity[i];
}

bool
smart_nodes_ahead_find(const struct smart_tree *tree, struct smart_nodes_ahead *ahead, const struct smart_key *key,
					   struct smart_place *place)
{
	struct identities identities;

	smart_assert(ahead->served < ROOM);
	for (unsigned int i = 0; i < DEPTHS; i++)
		identities.depth[i] = UINT_MAX;
	for (unsigned int tried = 0; tried < ROOM; tried++)
	{
		unsigned int i = (ahead->served + tried) % ROOM;
		struct smart_node *node = &ahead->nodes[i].node;

		if (!ahead->nodes[i].known || node->words[1] != identity_of(&identities, tree, key, node->depth) ||
			!smart_node_leads(node, true, key, place))
			continue;
		ahead->served = i;
		ahead->nodes[i].used = ++ahead->uses;
		return true;
	}
	return false;
}

void
smart_nodes_ahead_forget(struct smart_nodes_ahead *ahead, const struct smart_node *node)
{
	for (unsigned int i = 0; i < ROOM; i++)
		ahead->nodes[i].known &= &ahead->nodes[i].node != node;
}
