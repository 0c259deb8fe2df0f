/*
 * access.h
 *	  Words and blocks of memory nodes, and what waits for the next batch.
 */
#ifndef SMART_TREE_ACCESS_H
#define SMART_TREE_ACCESS_H

#include "tree/block/handle.h"

struct smart_leaf_lock;

#define SMART_EXECUTE_MAX 256

/* Released with env->release; NULL: no memory. */
extern struct smart_post *smart_post_open(struct smart_env *env);

/* Direct: prefetches a block.  This is a hint: the address may lead nowhere. */
static inline void
smart_prefetch_block(const struct smart_tree *tree, fabric_address address, unsigned int bytes)
{
	const uint8_t *block = fabric_direct(tree->fabric, address, bytes);

	for (unsigned int line = 0; block != NULL && line < bytes; line += 64)
		__builtin_prefetch(block + line, 0, 3);
}

/* Requests of a batch.  fence: behind the READs and atomics ahead of it. */
static inline struct fabric_request
smart_read_request(fabric_address remote, void *local, size_t length)
{
	smart_assert(length > 0 && remote % sizeof(uint64_t) == 0);
	return (struct fabric_request){.verb = FABRIC_READ, .remote = remote, .local = local, .length = (uint32_t) length};
}

static inline struct fabric_request
smart_cas_request(fabric_address word, uint64_t expected, uint64_t desired, bool fence)
{
	smart_assert(expected != desired && word % sizeof(uint64_t) == 0);
	return (struct fabric_request){.verb = FABRIC_CAS,
								   .remote = word,
								   .compare = expected,
								   .operand = desired,
								   .fence = fence};
}

/* Remote: a batch of at most SMART_EXECUTE_MAX, behind what waits; results are set in requests. */
extern smart_status smart_execute(struct smart_tree *tree, struct fabric_request *requests, int count);
extern bool smart_post_waits(const struct smart_tree *tree);
/* Posts what waits. */
extern smart_status smart_post_flush(struct smart_tree *tree);

/* CAS of one word; *seen is what was found (== expected: done). */
extern smart_status
smart_word_cas(struct smart_tree *tree, fabric_address word, uint64_t expected, uint64_t desired, uint64_t *seen);
/* The same of a live leaf's meta, with the next batch, with which *seen is set; by pointers at once. */
extern smart_status
smart_post_cas(struct smart_tree *tree, fabric_address word, uint64_t expected, uint64_t desired, uint64_t *seen);
extern smart_status smart_word_read(struct smart_tree *tree, fabric_address word, uint64_t *value);
/* READ; remote providers only, since a direct one has no need of copies. */
extern smart_status smart_block_read(struct smart_tree *tree, fabric_address block, void *buffer, size_t length);
/*
 * WRITE of a block, or a part, that no client can reach yet.  Remote: it waits; the memory of bytes may be used again at
 * once.
 */
extern smart_status smart_block_write(struct smart_tree *tree, fabric_address remote, const void *bytes, size_t length);

/*
 * CAS of a slot that is to lead to blocks that were made just now; *seen as in smart_word_cas.  lock: NULL, or of the
 * leaf whose upper half the slot gets, which is narrowed by now: in shared mode it is let go behind the CAS.
 */
extern smart_status smart_link(struct smart_tree *tree, fabric_address word, smart_slot expected, smart_slot desired,
							   struct smart_leaf_lock *lock, uint64_t *seen);

/* The cache: keeps a node's words, or the root's word (slot 0). */
extern void smart_keep_node(struct smart_tree *tree, smart_slot slot, const uint64_t *words);
/* Keeps a node that this operation has READ.  today: it is proved, so that its links hold for this moment (B1). */
extern void smart_keep_read_node(struct smart_tree *tree, const struct smart_node *node, bool today);
extern void smart_forget_node(struct smart_tree *tree, smart_slot slot);
/* The slot at index of the node that link leads to, or (0) the root's, went over from one value to another. */
extern void smart_slot_changed(struct smart_tree *tree, smart_slot link, int index, smart_slot from, smart_slot to);

/* The errors of services->allocate. */
extern smart_status smart_allocate(struct smart_tree *tree, smart_class class, fabric_address *block);
/* Retires the block that a slot links to; an empty range has none. */
extern void smart_retire_slot(struct smart_tree *tree, smart_slot slot);
/* The same for a copy whose publication did not come about.  status: of the CAS. */
extern void smart_retire_loser(struct smart_tree *tree, smart_status status, smart_slot slot);
/* Remembers how the state's word of a block was written. */
extern void smart_post_birth(struct smart_tree *tree, fabric_address word, uint64_t value);
/* ACTIVATE for a block that this operation has just linked. */
extern smart_status smart_slot_activate(struct smart_tree *tree, smart_slot link);

/* What smart_allocate comes to where there is no room, which need not be the end of an operation. */
static inline bool
smart_no_room(smart_status status)
{
	return status == SMART_NO_SPACE || status == SMART_DISK_FULL;
}

/*
 * Every operation begins and ends so: enters the epoch; posts what waits and may not wait longer, if all went well, and
 * leaves the epoch.  The operation's status.
 */
extern void smart_enter(struct smart_tree *tree);
extern smart_status smart_leave(struct smart_tree *tree, smart_status status);

/* Counts an attempt of a loop that others can make fail; SMART_INTERRUPTED, SMART_TIMEOUT. */
extern smart_status smart_again(struct smart_tree *tree, unsigned int *attempts);

/* Hash of the first length bytes of a key under the tree's id (XXH3-64). */
extern uint64_t smart_prefix_hash(const struct smart_tree *tree, const struct smart_key *key, unsigned int length);

#endif /* SMART_TREE_ACCESS_H */
