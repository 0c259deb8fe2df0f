/*
 * window.c
 *	  Blocks that are READ in one batch before their turn comes (remote
 *	  providers).
 */
#include "tree/readahead.h"

smart_status
smart_window_read(struct smart_tree *tree, struct smart_window *window, const struct fabric_request *front,
				  int front_count, const smart_slot *slots, unsigned int count)
{
	struct fabric_request batch[SMART_READAHEAD_MAX + SMART_WINDOW_FRONT_MAX];
	smart_status status;

	smart_assert(front_count <= SMART_WINDOW_FRONT_MAX && count <= SMART_READAHEAD_MAX);
	if (front_count > 0)
		memcpy(batch, front, (size_t) front_count * sizeof(*front));
	window->count = 0;
	for (unsigned int i = 0; i < count; i++)
	{
		if (window->blocks[i].copy == NULL)
			window->blocks[i].copy = tree->env->allocate(tree->env, SMART_LEAF_BYTES_MAX);
		if (window->blocks[i].copy == NULL)
			return SMART_NO_MEMORY;
		window->blocks[i].link = slots[i];
		batch[front_count + (int) i] = (struct fabric_request){.verb = FABRIC_READ,
															   .remote = smart_slot_address(slots[i]),
															   .local = window->blocks[i].copy,
															   .length = smart_class_bytes(smart_slot_class(slots[i]))};
	}
	/* A leaf by itself: others may be after it, too. */
	if (front_count == 0 && count == 1)
		status = smart_leaf_read_together(tree, smart_slot_address(slots[0]), batch[0].local, batch[0].length);
	else
		status = fabric_execute(tree->fabric, batch, front_count + (int) count);
	if (status == SMART_OK)
		window->count = count;
	return status;
}

smart_status
smart_window_put(struct smart_tree *tree, struct smart_window *window, smart_slot link, const uint8_t *bytes)
{
	window->count = 0;
	if (window->blocks[0].copy == NULL)
		window->blocks[0].copy = tree->env->allocate(tree->env, SMART_LEAF_BYTES_MAX);
	if (window->blocks[0].copy == NULL)
		return SMART_NO_MEMORY;
	memcpy(window->blocks[0].copy, bytes, smart_class_bytes(smart_slot_class(link)));
	window->blocks[0].link = link;
	window->count = 1;
	return SMART_OK;
}

uint8_t *
smart_window_take(struct smart_window *window, smart_slot link)
{
	for (uint32_t i = 0; i < window->count; i++)
	{
		if (window->blocks[i].link == link)
		{
			window->blocks[i].link = 0;
			return window->blocks[i].copy;
		}
	}
	return NULL;
}

void
smart_window_done(struct smart_window *window, struct smart_env *env)
{
	for (int i = 0; i < SMART_READAHEAD_MAX; i++)
	{
		if (window->blocks[i].copy != NULL)
			env->release(env, window->blocks[i].copy);
	}
}
