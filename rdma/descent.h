/*
 * descent.h
 *	  A descent that a memory node makes for a client: what is asked, and the
 *	  blocks on the path that the answer brings.
 *
 * The answer is no more than READs of which the memory node chose the next one by
 * itself: from the root's word, or a node, the blocks that it came through, in
 * their order, and the leaf at the end.  It concludes nothing from them; that is
 * the client's business.  What the words mean is the tree's (src/tree/find/walk.h).
 *
 * An answer is exact if whatever was acknowledged to any client before the descent
 * was asked for is seen by it, as a READ would.  It is where verbs are executed by
 * the memory node's processor.  Where its NIC executes them, an acknowledgement promises
 * that to the NIC's own READs only: then the blocks are hints, like copies in a cache, and
 * the leaf, which the client has to READ itself, is left out.
 */
#ifndef SMART_RDMA_DESCENT_H
#define SMART_RDMA_DESCENT_H

#include "rdma/fabric.h"

#define FABRIC_DESCENT_KEY_MAX   4096                          /* bytes */
#define FABRIC_DESCENT_BYTES_MAX (32 + FABRIC_DESCENT_KEY_MAX) /* of a request */
#define FABRIC_PATH_BLOCKS_MAX   18                            /* of an answer */
#define FABRIC_PATH_BYTES_MAX    ((32u << 10) - 16)            /* its frame fills a buffer */
#define FABRIC_PATH_HEAD_BYTES   8
#define FABRIC_BLOCK_HEAD_BYTES  16

/*
 * 32 bytes, and the key: link 8 · root 8 · arrived 2 · key length 2 · pad 1 · 0 11.
 * Addresses go with the memory node's number, by which it tells its own from others'.
 */
struct fabric_descent
{
	uint64_t link;       /* the slot that leads to the first block; 0: it is the root's word */
	fabric_address root; /* where the root's word lies */
	uint16_t arrived;    /* bytes of the key consumed at link */
	uint16_t key_length; /* at most FABRIC_DESCENT_KEY_MAX */
	uint8_t pad;         /* what follows the key */
	const uint8_t *key;
};

enum fabric_path_end
{
	FABRIC_PATH_LEAF = 1, /* the last block is a leaf, or would be if the answer were exact */
	FABRIC_PATH_EMPTY,    /* the last block says that there is none */
	FABRIC_PATH_STOPPED,  /* there is more, on another memory node, or behind what changes this moment */
	FABRIC_PATH_BUSY,     /* no block: the memory node has too much to do */
	FABRIC_PATH_ENDS
};

struct fabric_path_block
{
	uint64_t link; /* that leads to it; 0: the root's word */
	const uint8_t *bytes;
	uint32_t length; /* a multiple of 8, at least 8 */
};

/* An answer: end 1 · exact 1 · 0 2 · count 4, then the blocks: link 8 · length 4 · 0 4 · bytes. */
struct fabric_path
{
	enum fabric_path_end end;
	bool exact;
	uint32_t count;
	struct fabric_path_block block[FABRIC_PATH_BLOCKS_MAX];
	uint64_t answer[FABRIC_PATH_BYTES_MAX / sizeof(uint64_t)];
};

/*
 * Asks a memory node for a descent, in one round trip.  SMART_OK: *path is its answer, which may be none;
 * otherwise its count is 0.  Errors of execute; SMART_UNREACHABLE also where the provider has no descents.
 */
extern smart_status fabric_descend(struct fabric *fabric, unsigned int node, const struct fabric_descent *descent,
								   struct fabric_path *path);

/* ---- as messages: put returns the bytes written, get tells whether it is one ---- */

extern uint32_t fabric_descent_put(uint8_t *bytes, const struct fabric_descent *descent);
/* The key points into bytes. */
extern bool fabric_descent_get(const uint8_t *bytes, uint32_t length, struct fabric_descent *descent);

/* An answer without blocks; and behind so many bytes of one room for a block's bytes, NULL: it would be too long. */
extern uint32_t fabric_path_begin(uint8_t *answer);
extern uint8_t *fabric_path_add(uint8_t *answer, uint32_t *bytes, uint64_t link, uint32_t length);
extern void fabric_path_end(uint8_t *answer, enum fabric_path_end end, bool exact);
/* The answer is copied. */
extern bool fabric_path_get(const uint8_t *answer, uint32_t length, struct fabric_path *path);

#endif /* SMART_RDMA_DESCENT_H */
