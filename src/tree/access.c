/*
 * access.c
 *	  Single words and blocks: by pointer where the provider is direct, by
 *	  verbs elsewhere.
 *
 * Ordering.  A CAS here is a full barrier on a direct provider: what this
 * client stored before it is visible to whoever loads the new value with
 * acquire (smart_load_acquire, smart_cover).  On a remote provider post.c keeps
 * the order of a block's WRITE and the CAS that links it, on whatever memory node
 * either lies; every other call waits for its completion.
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "tree/internal.h"

/* Attempts before a loop gives up: far more than any interleaving needs. */
#define ATTEMPTS_MAX 1000000
/* Attempts that are made at once, without letting others run. */
#define ATTEMPTS_EAGER 8

smart_status
smart_word_cas(struct smart_tree *tree, fabric_address word, uint64_t expected, uint64_t desired, uint64_t *seen)
{
	struct fabric_request request = {.verb = FABRIC_CAS, .remote = word, .compare = expected, .operand = desired};
	smart_status status;

	smart_assert(expected != desired);
	if (tree->direct)
	{
		uint64_t *pointer = fabric_direct(tree->fabric, word, sizeof(uint64_t));

		if (pointer == NULL)
			return SMART_CORRUPT;
		*seen = expected;
		__atomic_compare_exchange_n(pointer, seen, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE);
		return SMART_OK;
	}
	status = smart_execute(tree, &request, 1);
	if (status == SMART_OK)
		*seen = request.result;
	return status;
}

smart_status
smart_word_read(struct smart_tree *tree, fabric_address word, uint64_t *value)
{
	if (tree->direct)
	{
		uint64_t *pointer = fabric_direct(tree->fabric, word, sizeof(uint64_t));

		if (pointer == NULL)
			return SMART_CORRUPT;
		*value = smart_load_acquire(pointer);
		return SMART_OK;
	}
	return smart_block_read(tree, word, value, sizeof(*value));
}

/* READ; remote providers only, since a direct one has no need of copies. */
smart_status
smart_block_read(struct smart_tree *tree, fabric_address block, void *buffer, size_t length)
{
	struct fabric_request request = {.verb = FABRIC_READ,
									 .remote = block,
									 .local = buffer,
									 .length = (uint32_t) length};

	return smart_execute(tree, &request, 1);
}

smart_status
smart_block_write(struct smart_tree *tree, fabric_address block, const void *bytes, size_t length)
{
	struct fabric_request request = {.verb = FABRIC_WRITE,
									 .remote = block,
									 .local = (void *) (uintptr_t) bytes,
									 .length = (uint32_t) length};

	return smart_blocks_write(tree, &request, 1);
}

/*
 * WRITEs of blocks that nobody can reach yet.  On a remote provider they only join
 * those that wait: a block's memory may be used again at once.
 */
smart_status
smart_blocks_write(struct smart_tree *tree, struct fabric_request *requests, int count)
{
	smart_status status = SMART_OK;

	for (int i = 0; i < count && status == SMART_OK; i++)
	{
		const struct fabric_request *request = &requests[i];

		if (tree->direct)
		{
			void *pointer = fabric_direct(tree->fabric, request->remote, request->length);

			if (pointer == NULL)
				return SMART_CORRUPT;
			memcpy(pointer, request->local, request->length);
		}
		else if (tree->gather != NULL)
			status = smart_gather_write(tree, tree->gather, request->remote, request->local, request->length);
		else
			status = smart_post_write(tree, request->remote, request->local, request->length);
	}
	return status;
}

/* For a bulk load, which holds nothing that others wait for: is what came to status worth another attempt? */
bool
smart_await(struct smart_tree *tree, smart_status status, uint64_t *since_ns)
{
	struct smart_services *services = tree->services;

	return status != SMART_OK && services->await != NULL && services->await(services, status, since_ns);
}

smart_status
smart_allocate(struct smart_tree *tree, smart_class class, fabric_address *block)
{
	uint64_t since_ns = 0;
	smart_status status;

	do
		status = tree->services->allocate(tree->services, tree->options.id, class, block);
	while (tree->gather != NULL && smart_await(tree, status, &since_ns));
	return status;
}

/* Retires the block that a slot links to; an empty range has none. */
void
smart_retire_slot(struct smart_tree *tree, smart_slot slot)
{
	if (!smart_slot_used(slot) || smart_slot_is_empty(slot))
		return;
	if (smart_slot_is_node(slot))
		smart_forget_node(tree, slot);
	tree->services->retire(tree->services, tree->options.id, smart_slot_class(slot), smart_slot_address(slot));
}

/*
 * Retires a copy whose publication did not come about.  If the CAS's completion
 * got lost (status), the copy may be linked: then it is left to be marked or
 * not, one day, since a linked block that is used again would be the end.
 */
void
smart_retire_loser(struct smart_tree *tree, smart_status status, smart_slot slot)
{
	if (status == SMART_OK)
		smart_retire_slot(tree, slot);
}

smart_status
smart_again(struct smart_tree *tree, unsigned int *attempts)
{
	unsigned int attempt = (*attempts)++;

	if (attempt < ATTEMPTS_EAGER)
		return SMART_OK;
	if (tree->env->interrupted(tree->env))
		return SMART_INTERRUPTED;
	if (attempt > ATTEMPTS_MAX)
		return SMART_TIMEOUT;
	tree->env->pause(tree->env, attempt - ATTEMPTS_EAGER);
	return SMART_OK;
}

uint64_t
smart_prefix_hash(const struct smart_tree *tree, const struct smart_key *key, unsigned int length)
{
	uint8_t padded[SMART_KEY_MAX + 1];

	if (length <= key->length)
		return XXH3_64bits_withSeed(key->bytes, length, tree->options.id);
	smart_assert(length <= SMART_KEY_MAX);
	memcpy(padded, key->bytes, key->length);
	memset(padded + key->length, key->pad, length - key->length);
	return XXH3_64bits_withSeed(padded, length, tree->options.id);
}
