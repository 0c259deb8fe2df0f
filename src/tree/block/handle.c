/*
 * handle.c
 *	  The handle of a tree.
 */
#include "tree/block/access.h"
#include "tree/block/piggyback.h"

static uint8_t *
take(struct smart_tree *tree, size_t bytes, bool *failed)
{
	uint8_t *memory = tree->env->allocate(tree->env, bytes);

	*failed |= memory == NULL;
	return memory;
}

/* Of a server's tree, whose tenure is 0, the id. */
static uint64_t
cached_as(uint64_t id, uint64_t tenure)
{
	return id ^ tenure * UINT64_C(0x9e3779b97f4a7c15);
}

smart_status
smart_tree_open(struct fabric *fabric, struct smart_env *env, struct smart_services *services,
				const struct smart_tree_options *options, struct smart_tree **result)
{
	struct smart_tree *tree = env->allocate(env, sizeof(*tree));
	bool failed = false;

	smart_assert(options->leaf_size % SMART_UNIT == 0 && options->leaf_size >= SMART_LEAF_SIZE_MIN &&
				 options->leaf_size <= SMART_LEAF_SIZE_MAX);
	smart_assert(options->fixed_length <= SMART_ENTRY_MAX);
	smart_assert(!options->value || !fabric->direct);
	if (tree == NULL)
		return SMART_NO_MEMORY;
	memset(tree, 0, sizeof(*tree));
	tree->fabric = fabric;
	tree->env = env;
	tree->services = services;
	tree->options = *options;
	tree->direct = fabric->direct;
	tree->cached_as = cached_as(options->id, options->tenure);
	if (!tree->direct && !options->shared && options->value)
		tree->copies = services->find_leaf != NULL;
	else if (!tree->direct && !options->shared)
	{
		tree->results = options->point != NULL && services->find_result != NULL;
		tree->hints = options->hints && services->find_hint != NULL;
	}
	tree->born = SMART_FAULT(bornlive) ? SMART_LIVE : SMART_NEW;
	for (unsigned int kind = 0; kind < 8; kind++)
	{
		tree->kind_slots[kind] = (uint16_t) smart_kind_slots(kind);
		if (options->tiny_nodes != 0 && kind >= SMART_NODE_6 && kind <= SMART_NODE_62)
			tree->kind_slots[kind] = (uint16_t) (options->tiny_nodes + kind - 1);
		/* No kind between has more room than the smallest, so that none is chosen. */
		if (options->wide_nodes && kind > SMART_NODE_6 && kind < SMART_NODE_256)
			tree->kind_slots[kind] = tree->kind_slots[SMART_NODE_6];
	}
	tree->build_buffer = take(tree, SMART_LEAF_BYTES_MAX, &failed);
	if (!tree->direct)
	{
		tree->leaf_buffer = take(tree, SMART_LEAF_BYTES_MAX, &failed);
		tree->kept_buffer = take(tree, SMART_LEAF_BYTES_MAX, &failed);
		tree->merge_buffer = take(tree, SMART_REPLACE_BUFFER_BYTES, &failed);
		tree->piggyback = smart_piggyback_open(env);
		tree->post = smart_post_open(env);
		failed |= tree->piggyback == NULL || tree->post == NULL;
	}
	if (failed)
	{
		smart_tree_close(tree);
		return SMART_NO_MEMORY;
	}
	*result = tree;
	return SMART_OK;
}

bool
smart_tree_is_swept(const struct smart_tree *tree)
{
	/* Nobody but this compute node locks leaves, and no value goes astray. */
	return tree->direct && !tree->options.shared && !tree->options.value;
}

void
smart_tree_turn(struct smart_tree *tree, uint64_t id, fabric_address root, uint64_t tenure)
{
	smart_assert(!tree->entered && !tree->direct && tree->locked == 0 && tree->room == 0 && tree->standby.link == 0);
	tree->options.id = id;
	tree->options.root = root;
	tree->options.tenure = tenure;
	tree->cached_as = cached_as(id, tenure);
}

void
smart_tree_close(struct smart_tree *tree)
{
	void *memory[] = {tree->build_buffer, tree->leaf_buffer, tree->kept_buffer, tree->merge_buffer,
					  tree->piggyback,    tree->post,        tree->list.refs,   tree->extra.refs};

	for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++)
		smart_release(tree->env, memory[i]);
	tree->env->release(tree->env, tree);
}
