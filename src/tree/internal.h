/*
 * internal.h
 *	  What the files of src/tree share: the handle, keys, views of blocks,
 *	  places, and the operations that change one word.
 */
#ifndef SMART_TREE_INTERNAL_H
#define SMART_TREE_INTERNAL_H

#include <limits.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "tree/fault.h"
#include "tree/tree.h"

/* ---- keys ---- */

/*
 * A key, or a bound: a string that goes on with pad for ever.  Entries end
 * before their padding matters, since no key is a prefix of another.
 */
struct smart_key
{
	const uint8_t *bytes;
	uint32_t length;
	uint8_t pad; /* 0x00, or 0xff for an upper bound */
};

static inline unsigned int
smart_key_byte(const struct smart_key *key, unsigned int position)
{
	return position < key->length ? key->bytes[position] : key->pad;
}

/* A position between entries from which a walk goes on; its key leads to what comes next. */
struct smart_cursor
{
	uint8_t *bytes; /* SMART_KEY_MAX + 1 */
	uint32_t length;
	uint8_t pad; /* 0x00 forward, 0xff backward */
	bool backward;
	bool end; /* nothing comes next */
};

static inline struct smart_key
smart_cursor_key(const struct smart_cursor *cursor)
{
	return (struct smart_key){.bytes = cursor->bytes, .length = cursor->length, .pad = cursor->pad};
}

/* ---- blocks as they were read ---- */

/* A node: a copy of its words, in this operation's memory. */
struct smart_node
{
	fabric_address address;
	smart_slot link;             /* the slot that led here */
	fabric_address link_address; /* of that slot; 0: not known, since the node was found without its parent */
	smart_slot parent;           /* link of the node with that slot, 0: it is the root's */
	int parent_index;            /* and which one it is */
	unsigned int parent_arrived; /* bytes of the key consumed before that node */
	unsigned int kind;
	unsigned int depth;
	unsigned int slots;   /* that this kind holds */
	unsigned int arrived; /* bytes of the key consumed before this node */
	uint64_t words[SMART_NODE_WORDS_MAX];
};

/* A leaf.  Everything but the entries' bytes is loaded once and checked to lie within the block. */
struct smart_leaf
{
	fabric_address address;
	smart_slot link;
	unsigned int units;
	const uint8_t *block; /* in place on a direct provider, else a copy */
	uint64_t header;
	uint64_t meta;
	unsigned int depth;
	unsigned int lo;
	unsigned int hi;
	unsigned int prefix_length;
	unsigned int start; /* offset of the first entry */
	unsigned int sorted_end;
	unsigned int used;
	unsigned int stride; /* bytes of every suffix, 0: each has its length in front */
	enum smart_block_state state;
};

static inline const uint8_t *
smart_leaf_prefix(const struct smart_leaf *leaf)
{
	return leaf->block + SMART_LEAF_HEADER_BYTES;
}

static inline unsigned int
smart_leaf_room(const struct smart_leaf *leaf)
{
	return leaf->units * SMART_UNIT - SMART_LEAF_REAR_BYTES - leaf->used;
}

/* ---- where a key leads ---- */

enum smart_place_kind
{
	SMART_PLACE_LEAF,     /* slot covers the key's byte with a leaf */
	SMART_PLACE_EMPTY,    /* slot covers it with an empty range */
	SMART_PLACE_MISMATCH, /* slot leads to a node whose bytes before its depth differ */
	SMART_PLACE_UNKNOWN   /* fast paths only: nothing can be concluded, go strict */
};

struct smart_place
{
	enum smart_place_kind kind;
	smart_slot slot;
	fabric_address slot_address; /* strict paths only, as the next three */
	int index;                   /* of the slot in node, -1: the root slot */
	struct smart_node *node;     /* that holds the slot, NULL: the root slot */
	struct smart_node *child;    /* MISMATCH: the node that differs */
	const uint64_t *shared;      /* by pointers: the words of the node that holds the slot */
	unsigned int depth;          /* position of the byte that the slot's range is about; 0 at the root */
	unsigned int consumed;       /* bytes of the key that lead to the slot's child: depth + 1, at the root 0 */
	unsigned int mismatch_at;    /* MISMATCH: first position that differs */
	unsigned int mismatch_byte;  /* MISMATCH: the node's byte there */
	uint64_t mismatch_header;    /* MISMATCH: the node's header */
};

/* A node that a descent by pointers may start from again, and what it must still be. */
struct smart_ancestor
{
	const uint64_t *words; /* NULL: none */
	uint64_t header;
	uint64_t identity;
};

/* Where the cache's path went last: the way back to that node, and to the one above it. */
struct smart_waypoint
{
	smart_slot link; /* 0: there was no node */
	unsigned int arrived;
	smart_slot parent; /* these as in smart_node */
	int parent_index;
	unsigned int parent_arrived;
};

/* Remote: nodes that the cache did not have (offload.c). */
struct smart_offload_misses
{
	uint32_t count;    /* of the search in hand */
	uint32_t expected; /* of a search that misses any, as a moving average with a fraction of 8 bits; 0: none so far */
};

/* Nodes deeper than this are not remembered. */
#define SMART_RECENT_DEPTH_MAX 32

/* By pointers: where the last inserts went (recent.c). */
struct smart_recent
{
	struct smart_ancestor node;
	uint8_t prefix[SMART_RECENT_DEPTH_MAX]; /* of the node: the key's bytes before its depth */
	smart_slot last;                        /* the leaf that the last insert was led to */
	smart_slot slot;                        /* a leaf below the node, 0: none */
	const uint64_t *slot_word;              /* where slot stands */
	const uint64_t *meta;                   /* of that leaf */
};

/* The byte range that a range slot of this place stands for begins here. */
static inline unsigned int
smart_place_lo(const struct smart_place *place)
{
	return place->index < 0 ? 0 : smart_slot_pk(place->slot);
}

/* ---- entries on their way into new leaves ---- */

/* One entry from position base of its list on: head ‖ tail. */
struct smart_ref
{
	const uint8_t *head;
	const uint8_t *tail;
	uint16_t head_length;
	uint16_t tail_length;
	uint64_t rank; /* the tail's first eight bytes, as a number: orders most entries of one leaf */
};

struct smart_list
{
	unsigned int base;
	uint32_t count;
	uint32_t capacity;
	struct smart_ref *refs;
};

/* ---- the handle ---- */

struct smart_tree
{
	struct fabric *fabric;
	struct smart_env *env;
	struct smart_services *services;
	struct smart_tree_options options;
	uint16_t kind_slots[8];
	uint32_t acquisition; /* number of the last lock word, shared mode */
	bool direct;
	bool answers;                   /* answers.c has something to do */
	bool stubs;                     /* so has stubs.c */
	enum smart_block_state born;    /* of blocks that are made: new, but for a bulk load */
	struct smart_waypoint waypoint; /* remote: the last node that smart_find_cached came through */
	struct smart_post *post;        /* remote: requests that wait for the next batch */
	struct smart_gather *gather;    /* remote bulk load: where WRITEs of blocks wait; NULL: they are posted at once */
	struct smart_node nodes[2];     /* a descent's, in turn: the place's node, and its child */
	struct smart_list list;         /* entries of the leaf that is rewritten */
	struct smart_list extra;        /* entries of merged leaves */
	struct smart_beside *beside;    /* remote: the node above the leaf that an insert READs */
	uint8_t *leaf_buffer;           /* remote: the leaf that an operation looks at */
	uint8_t *kept_buffer;           /* remote: the leaf whose content was kept (B5) */
	uint8_t *merge_buffer;          /* remote: leaves that are merged */
	uint8_t *build_buffer;          /* a block that is being made */
	uint64_t built_meta;            /* of the leaf that was made there last, as it was written */
	uint8_t *key_buffer;            /* a key made up on the way */
	struct smart_recent recent;
	struct smart_offload_misses misses;
};

#define SMART_REPLACE_BUFFER_BYTES (4 * SMART_LEAF_BYTES_MAX)

#define SMART_UNITS_FOR(bytes) (((bytes) + SMART_UNIT - 1) / SMART_UNIT)

/* Bytes that an entry's suffix takes in a leaf. */
static inline unsigned int
smart_stored_bytes(const struct smart_tree *tree, unsigned int suffix_length)
{
	if (tree->options.fixed_length != 0)
		return suffix_length;
	return suffix_length + (suffix_length < 0x80 ? 1 : 2);
}

/* Writes the length in front of a suffix of a variable tree; returns its bytes. */
static inline unsigned int
smart_put_length(uint8_t *target, unsigned int suffix_length)
{
	if (suffix_length < 0x80)
	{
		target[0] = (uint8_t) suffix_length;
		return 1;
	}
	target[0] = (uint8_t) (0x80 | (suffix_length >> 8));
	target[1] = (uint8_t) suffix_length;
	return 2;
}

/* ---- words and blocks (access.c) ---- */

/* CAS of one word; *seen is what was found (== expected: done). */
extern smart_status
smart_word_cas(struct smart_tree *tree, fabric_address word, uint64_t expected, uint64_t desired, uint64_t *seen);
extern smart_status smart_word_read(struct smart_tree *tree, fabric_address word, uint64_t *value);
extern smart_status smart_block_read(struct smart_tree *tree, fabric_address block, void *buffer, size_t length);
extern smart_status smart_block_write(struct smart_tree *tree, fabric_address block, const void *bytes, size_t length);
extern smart_status smart_blocks_write(struct smart_tree *tree, struct fabric_request *requests, int count);
extern bool smart_await(struct smart_tree *tree, smart_status status, uint64_t *since_ns);
extern smart_status smart_allocate(struct smart_tree *tree, smart_class class, fabric_address *block);
extern void smart_retire_slot(struct smart_tree *tree, smart_slot slot);
extern void smart_retire_loser(struct smart_tree *tree, smart_status status, smart_slot slot);

/* What smart_allocate comes to where there is no room, which need not be the end of an operation. */
static inline bool
smart_no_room(smart_status status)
{
	return status == SMART_NO_SPACE || status == SMART_DISK_FULL;
}

/* Counts an attempt of a loop that others can make fail; SMART_INTERRUPTED, SMART_TIMEOUT. */
extern smart_status smart_again(struct smart_tree *tree, unsigned int *attempts);

/* Hash of the first length bytes of a key under the tree's id (XXH3-64). */
extern uint64_t smart_prefix_hash(const struct smart_tree *tree, const struct smart_key *key, unsigned int length);

/* ---- requests that wait for the next batch (post.c) ---- */

#define SMART_EXECUTE_MAX 256

/* Released with env->release; NULL: no memory. */
extern struct smart_post *smart_post_open(struct smart_env *env);
/* Remote: a batch of at most SMART_EXECUTE_MAX, behind what waits. */
extern smart_status smart_execute(struct smart_tree *tree, struct fabric_request *requests, int count);
extern bool smart_post_waits(const struct smart_tree *tree);
extern smart_status smart_post_flush(struct smart_tree *tree);
extern smart_status smart_post_write(struct smart_tree *tree, fabric_address remote, const void *bytes, size_t length);
extern void smart_post_birth(struct smart_tree *tree, fabric_address word, uint64_t value);
extern smart_status
smart_post_activation(struct smart_tree *tree, fabric_address word, uint64_t (*live)(uint64_t value), bool *known);
extern smart_status
smart_post_cas(struct smart_tree *tree, fabric_address word, uint64_t expected, uint64_t desired, uint64_t *seen);
/* CAS of a slot that is to lead to blocks that were made just now; the second one lets a leaf's rear lock go, too. */
extern smart_status
smart_link_cas(struct smart_tree *tree, fabric_address word, uint64_t expected, uint64_t desired, uint64_t *seen);
struct smart_leaf_lock;
extern smart_status smart_link_and_unlock(struct smart_tree *tree, fabric_address word, uint64_t expected,
										  uint64_t desired, struct smart_leaf_lock *lock, uint64_t *seen);
/* Every operation begins and ends so: enters the epoch; posts what waits and leaves it.  The operation's status. */
extern void smart_enter(struct smart_tree *tree);
extern smart_status smart_leave(struct smart_tree *tree, smart_status status);

/* ---- WRITEs of a bulk load that wait for one another (gather.c) ---- */

/* Released with env->release; NULL: no memory. */
extern struct smart_gather *smart_gather_open(struct smart_env *env);
/* Copies the bytes and posts what waits when there is no room for more.  The status of the first batch that failed. */
extern smart_status smart_gather_write(struct smart_tree *tree, struct smart_gather *gather, fabric_address remote,
									   const void *bytes, size_t length);
/* Posts what waits; SMART_OK: every WRITE so far is complete. */
extern smart_status smart_gather_flush(struct smart_tree *tree, struct smart_gather *gather);

/* ---- nodes (node.c) ---- */

extern smart_slot smart_cover(const uint64_t *slots, unsigned int kind, unsigned int count, unsigned int byte);
extern int smart_node_cover_index(const struct smart_node *node, unsigned int byte);
extern unsigned int smart_node_next_pk(const struct smart_node *node, unsigned int after);
extern int smart_node_free_index(const struct smart_node *node, unsigned int pk);
extern smart_status smart_node_read(struct smart_tree *tree, smart_slot link, fabric_address link_address,
									unsigned int arrived, struct smart_node *node);
extern bool smart_node_from_copy(const struct smart_tree *tree, smart_slot link, unsigned int arrived,
								 const uint8_t *copy, struct smart_node *node);
extern smart_status smart_node_read_again(struct smart_tree *tree, smart_slot link, unsigned int arrived,
										  struct smart_node *node, const struct smart_key *key, bool *ours);
extern bool smart_node_prepare_again(const struct smart_tree *tree, smart_slot link, unsigned int arrived,
									 struct smart_node *node, uint64_t *head, struct fabric_request *batch);
extern bool smart_node_finish_again(const struct smart_tree *tree, struct smart_node *node, const uint64_t *head,
									const struct smart_key *key);
extern unsigned int smart_kind_for(const struct smart_tree *tree, unsigned int slots);
extern smart_status
smart_node_build(struct smart_tree *tree, const struct smart_key *key, unsigned int depth, unsigned int pk,
				 const smart_slot *slots, unsigned int count, unsigned int spare, smart_slot *link);
extern smart_status smart_node_build_in(struct smart_tree *tree, const struct smart_key *key, unsigned int depth,
										smart_slot room, const smart_slot *slots, unsigned int count, smart_slot *link);
extern uint64_t smart_node_live(uint64_t header);
extern smart_status smart_node_activate(struct smart_tree *tree, fabric_address node);
extern bool
smart_node_is_ours(const struct smart_tree *tree, const struct smart_node *node, const struct smart_key *key);

/* ---- leaves (leaf.c: reading, leaf_build.c: making) ---- */

extern bool smart_leaf_parse(const struct smart_tree *tree, smart_slot link, const uint8_t *block, uint64_t meta,
							 struct smart_leaf *leaf);
extern bool smart_leaf_from_copy(const struct smart_tree *tree, smart_slot link, const uint8_t *copy,
								 const struct smart_key *key, struct smart_leaf *leaf);
extern smart_status smart_leaf_read(struct smart_tree *tree, smart_slot link, const struct smart_key *key,
									uint8_t *buffer, struct smart_leaf *leaf, bool *good);
/* The same by a READ that nobody waits for, for who has the leaf's lock. */
extern smart_status smart_leaf_read_alone(struct smart_tree *tree, smart_slot link, const struct smart_key *key,
										  uint8_t *buffer, struct smart_leaf *leaf, bool *good);
extern bool
smart_leaf_checksum_ok(const struct smart_tree *tree, const struct smart_leaf *leaf, const struct smart_key *key);
extern bool smart_leaf_covers(const struct smart_leaf *leaf, const struct smart_key *key);
extern bool smart_leaf_prefix_matches(const struct smart_leaf *leaf, const struct smart_key *key);
extern bool smart_leaf_ends_below(const struct smart_leaf *leaf, const struct smart_key *key);
extern bool smart_leaf_contains(const struct smart_leaf *leaf, const struct smart_key *key);
extern unsigned int
smart_leaf_next_entry(const struct smart_leaf *leaf, unsigned int offset, const uint8_t **suffix, unsigned int *length);
extern int smart_leaf_compare(const struct smart_leaf *leaf, const uint8_t *suffix, unsigned int length,
							  const struct smart_key *key);
extern unsigned int smart_leaf_lower_bound(const struct smart_leaf *leaf, const struct smart_key *key);
extern smart_status smart_leaf_activate(struct smart_tree *tree, const struct smart_leaf *leaf);

extern smart_status smart_list_collect(struct smart_tree *tree, struct smart_list *list, const struct smart_leaf *leaf,
									   unsigned int lo, unsigned int hi);
extern smart_status
smart_list_add(struct smart_tree *tree, struct smart_list *list, const struct smart_key *key, size_t length);
extern void smart_list_take_out(struct smart_list *list, const struct smart_key *key, size_t length);
extern smart_status smart_list_try_add(struct smart_tree *tree, struct smart_list *list, const struct smart_key *key,
									   size_t length, bool *added);
extern smart_status smart_list_reserve(struct smart_tree *tree, struct smart_list *list, uint32_t count);
extern void smart_list_sort_tail(struct smart_list *list, uint32_t sorted);
extern unsigned int smart_ref_put(uint8_t *target, const struct smart_ref *ref, unsigned int skip);
extern unsigned int smart_ref_byte(const struct smart_ref *ref, unsigned int position);
extern unsigned int smart_ref_length(const struct smart_ref *ref);
extern int smart_ref_compare(const struct smart_ref *a, const struct smart_ref *b);
extern unsigned int smart_ref_common(const struct smart_ref *a, const struct smart_ref *b);
extern size_t smart_leaf_bytes_for(const struct smart_tree *tree, const struct smart_list *list, uint32_t from,
								   uint32_t to, unsigned int skip);
extern smart_status smart_leaf_build(struct smart_tree *tree, const struct smart_key *key, unsigned int depth,
									 unsigned int lo, unsigned int hi, const struct smart_list *list, uint32_t from,
									 uint32_t to, size_t reserve, smart_slot *link);
extern smart_status
smart_leaf_build_one(struct smart_tree *tree, const struct smart_key *key, size_t length, unsigned int depth,
					 unsigned int lo, unsigned int hi, size_t reserve, smart_slot *link);
extern smart_status smart_slot_activate(struct smart_tree *tree, smart_slot link);

/* ---- finding (search.c: fast, descend.c: strict, settle.c: a leaf that answers) ---- */

extern smart_status smart_find_fast(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place);
extern smart_status smart_find_from(struct smart_tree *tree, const struct smart_key *key,
									const struct smart_ancestor *ancestor, struct smart_place *place, bool *found);
extern smart_status smart_find_strict(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place);
extern smart_status
smart_find_from_root(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place);
extern smart_status
smart_find_parent(struct smart_tree *tree, const struct smart_key *key, const struct smart_node **node);
extern smart_status smart_find_cached(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place);

/* ---- the node above a leaf, READ with it (beside.c) ---- */

#define SMART_BESIDE_REQUESTS 2

/* Released with env->release; NULL: no memory. */
extern struct smart_beside *smart_beside_open(struct smart_env *env);
extern void smart_beside_plan(struct smart_tree *tree, const struct smart_place *place, bool wanted);
extern int smart_beside_prepare(struct smart_tree *tree, struct fabric_request *batch);
extern bool smart_beside_take(struct smart_tree *tree, smart_slot link, unsigned int arrived, struct smart_node *node,
							  const struct smart_key *key, bool *ours);
extern void smart_beside_forget(struct smart_tree *tree);

/* ---- the cache of nodes (cached.c) ---- */

extern void smart_keep_node(struct smart_tree *tree, smart_slot slot, const uint64_t *words);
extern void smart_forget_node(struct smart_tree *tree, smart_slot slot);
extern void smart_slot_changed(struct smart_tree *tree, smart_slot link, int index, smart_slot from, smart_slot to);
extern smart_status
smart_place_cas(struct smart_tree *tree, const struct smart_place *place, smart_slot desired, bool *won);

/* ---- descents by memory nodes (offload.c) ---- */

/* A search by way of the cache begins: what an earlier one was brought is forgotten. */
extern void smart_offload_begin(struct smart_tree *tree);
/* The root's word, a node, a leaf that the search needs: as smart_word_read, smart_node_read_again and smart_leaf_read. */
extern smart_status smart_offload_root(struct smart_tree *tree, const struct smart_key *key, smart_slot *root);
extern smart_status smart_offload_node(struct smart_tree *tree, smart_slot link, unsigned int arrived,
									   struct smart_node *node, const struct smart_key *key, bool *ours);
extern smart_status smart_offload_leaf(struct smart_tree *tree, smart_slot link, const struct smart_key *key,
									   uint8_t *buffer, struct smart_leaf *leaf, bool *good);
/* The node is what the search was brought, as good as READ by it. */
extern bool smart_offload_shows(struct smart_tree *tree, const struct smart_key *key, const struct smart_node *node);
/* The search has come to an empty range: does what it was brought prove that the key is absent? */
extern bool
smart_offload_proves_empty(struct smart_tree *tree, const struct smart_key *key, const struct smart_place *place);

/* ---- answers (answers.c); nothing of this is called unless tree->answers ---- */

#define SMART_GATE_NONE UINT32_MAX

extern bool smart_answers_wanted(const struct smart_tree *tree);
/* Length of the point of bytes that begin with a key; 0: it is too long for an answer. */
extern unsigned int smart_point_of(const struct smart_tree *tree, const uint8_t *bytes, size_t length);
extern void smart_keep_answer(struct smart_tree *tree, const struct smart_key *point, const struct smart_leaf *leaf,
							  struct smart_answer *answer);
extern bool
smart_answer_contains(const struct smart_answer *answer, const struct smart_key *key, unsigned int point_length);
extern struct smart_blocked smart_block(struct smart_tree *tree, const uint8_t *bytes, size_t length);
extern void smart_unblock(struct smart_tree *tree, const struct smart_blocked *blocked);

/* ---- stubs of leaves (stubs.c); where tree->stubs is not set, block and unblock do nothing ---- */

extern bool smart_stubs_wanted(const struct smart_tree *tree);
extern struct smart_blocked smart_stub_block(struct smart_tree *tree, smart_slot link);
extern uint64_t smart_stub_unblock(struct smart_tree *tree, const struct smart_blocked *blocked);
extern void
smart_stub_begin(struct smart_tree *tree, smart_slot link, const struct smart_key *key, struct smart_blocked *blocked);
extern void smart_stub_keep(struct smart_tree *tree, const struct smart_leaf *before, const struct smart_key *key,
							uint64_t meta, uint64_t ticket);

/* What came of an append by a stub. */
enum smart_appended
{
	SMART_APPENDED_NOT,  /* nothing was done: there is no stub, or it was too old */
	SMART_APPENDED_FULL, /* the same: by its stub the leaf has no room, or is not for this key */
	SMART_APPENDED_ADDED,
	SMART_APPENDED_TWICE /* the key was there, and the leaf has it once more */
};

extern smart_status smart_append_by_stub(struct smart_tree *tree, const struct smart_place *place,
										 const struct smart_key *key, size_t length, enum smart_appended *appended);

/* ---- what a handle remembers by pointers (recent.c) ---- */

/* Does the key lie below the remembered node? */
static inline bool
smart_is_recent(const struct smart_recent *recent, const struct smart_key *key)
{
	unsigned int depth = smart_node_depth(recent->node.header);

	return recent->node.words != NULL && key->length > depth && memcmp(recent->prefix, key->bytes, depth) == 0;
}

extern bool smart_ancestor_stands(const struct smart_ancestor *ancestor);
extern smart_status
smart_find_recent(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place, bool *found);
extern void smart_remember_node(struct smart_tree *tree, const struct smart_key *key, const struct smart_node *node);
extern void smart_remember_leaf(struct smart_tree *tree, const struct smart_key *key, const struct smart_place *place);

/* A leaf's content that is an answer for key (B5): valid for bytes lo..limit at its depth. */
extern smart_status smart_settle(struct smart_tree *tree, const struct smart_key *key, struct smart_place *place,
								 struct smart_leaf *leaf, unsigned int *limit);

/* ---- cursors (cursor.c) ---- */

extern smart_status smart_cursor_init(struct smart_cursor *cursor, struct smart_env *env);
extern void smart_cursor_done(struct smart_cursor *cursor, struct smart_env *env);
/* Behind (backward: before) all keys that share the cursor's first depth bytes and have byte there. */
extern smart_status smart_cursor_pass(struct smart_cursor *cursor, unsigned int depth, unsigned int byte);
/* Has the cursor left the range that ends, in its direction, at bound?  Length 0: no end. */
extern bool smart_cursor_past(const struct smart_cursor *cursor, const uint8_t *bound, size_t length);
/* Behind (before) what an empty or mismatching place stands for. */
extern smart_status smart_cursor_skip(struct smart_cursor *cursor, const struct smart_place *place);

/* ---- changes of structure ---- */

extern bool smart_pending(const struct smart_place *place, const struct smart_leaf *leaf);
extern smart_status smart_install(struct smart_tree *tree, const struct smart_key *key, const struct smart_place *place,
								  const struct smart_leaf *leaf);
/* A leaf's meta on its way to a lower hi (D1). */
struct smart_narrowing
{
	uint64_t desired;
	uint64_t seen;
	struct smart_blocked blocked; /* the leaf's stub */
};

extern smart_status smart_narrow(struct smart_tree *tree, const struct smart_leaf *leaf, unsigned int mid,
								 struct smart_narrowing *narrowing);
extern smart_status
smart_end_narrowing(struct smart_tree *tree, struct smart_leaf *leaf, struct smart_narrowing *narrowing, bool *done);
extern unsigned int smart_split_edge(const struct smart_key *key, const struct smart_leaf *leaf);
extern unsigned int smart_split_middle(const struct smart_tree *tree, const struct smart_key *key,
									   const struct smart_leaf *leaf, bool ascending);
extern smart_status
smart_split(struct smart_tree *tree, const struct smart_key *key, size_t length, const struct smart_place *place,
			struct smart_leaf *leaf, struct smart_leaf_lock *lock, bool *added);
extern smart_status smart_seal(struct smart_tree *tree, struct smart_leaf *leaf, bool *sealed);

/* Entries that a rewrite leaves out. */
struct smart_drop
{
	bool (*dead)(void *argument, const struct smart_leaf *leaf, const uint8_t *suffix, unsigned int length);
	void *argument;
	/* Set by the rewrite: */
	uint32_t count;             /* entries left out */
	uint32_t kept;              /* all other ones, */
	unsigned int depth, lo, hi; /* of the range with these bytes at depth */
};

/* How a leaf is rewritten. */
struct smart_rewrite
{
	struct smart_drop *drop;      /* NULL: keep all */
	size_t reserve;               /* bytes of room wanted */
	size_t guest;                 /* bytes of an entry for the copy to take in if it finds room, the key's; 0: none */
	bool took;                    /* set by the rewrite: it did */
	struct smart_leaf_lock *lock; /* NULL: the leaf is sealed; else it is live, and sealed by smart_end_leaf */
};

extern smart_status smart_end_leaf(struct smart_tree *tree, const struct smart_place *place, struct smart_leaf *leaf,
								   struct smart_leaf_lock *lock, smart_slot desired, bool *won);
extern smart_status
smart_replace_leaf(struct smart_tree *tree, const struct smart_key *key, const struct smart_place *place,
				   struct smart_leaf *leaf, struct smart_rewrite *rewrite, bool *won);
extern unsigned int
smart_choose_cut(const struct smart_list *list, unsigned int position, unsigned int key_byte, bool ascending);
extern void smart_key_at(struct smart_tree *tree, const struct smart_key *key, unsigned int depth, unsigned int byte,
						 struct smart_key *result);
extern smart_status
smart_down(struct smart_tree *tree, const struct smart_key *key, size_t length, const struct smart_place *place,
		   struct smart_leaf *leaf, struct smart_leaf_lock *lock, bool ascending, bool *added);
extern smart_status
smart_make_chain(struct smart_tree *tree, const struct smart_key *key, unsigned int consumed, unsigned int depth,
				 smart_slot *link, void (*made)(void *argument, smart_slot link), void *argument);
extern smart_status smart_forward(struct smart_tree *tree, const struct smart_key *key, fabric_address leaf);
extern smart_status
smart_replace_node(struct smart_tree *tree, const struct smart_key *key, const struct smart_node *node, bool merge);
extern smart_status smart_header_split(struct smart_tree *tree, const struct smart_key *key, size_t length,
									   const struct smart_place *place, bool *won);
extern smart_status smart_fill_empty(struct smart_tree *tree, const struct smart_key *key, size_t length,
									 const struct smart_place *place, bool *won);
extern smart_status smart_tidy(struct smart_tree *tree, const struct smart_key *key);

/* ---- the lock of a leaf (lock.c) ---- */

struct smart_leaf_lock
{
	fabric_address leaf;
	fabric_address word_address; /* shared mode */
	uint64_t word;               /* shared mode: what we stored; 0: none */
};

/* Locks and reads in one batch; *locked false: somebody of another compute node holds it. */
extern smart_status
smart_leaf_lock_and_read(struct smart_tree *tree, smart_slot link, const struct smart_key *key,
						 struct smart_leaf_lock *lock, struct smart_leaf *leaf, bool *locked, bool *good);
extern smart_status smart_leaf_unlock(struct smart_tree *tree, struct smart_leaf_lock *lock);
/* The same for who has the local lock; lets go of it if *locked is false. */
extern smart_status
smart_leaf_read_locked(struct smart_tree *tree, smart_slot link, const struct smart_key *key,
					   struct smart_leaf_lock *lock, struct smart_leaf *leaf, bool *locked, bool *good);
/* Publishes an append (C5) of the key's entry of length bytes and unlocks, in one batch. */
extern smart_status
smart_leaf_publish(struct smart_tree *tree, struct smart_leaf_lock *lock, const struct smart_leaf *leaf,
				   const struct smart_key *key, size_t length, bool *published);
/* Remote: WRITEs bytes at used, CASes meta and the lock, in one batch; before: NULL, or where it READs what lies below used. */
extern smart_status
smart_leaf_publish_bytes(struct smart_tree *tree, struct smart_leaf_lock *lock, const struct smart_leaf *leaf,
						 const uint8_t *bytes, unsigned int length, uint64_t desired, uint8_t *before, bool *published);
extern bool smart_leaf_stays_sorted(const struct smart_leaf *leaf, const uint8_t *suffix);
extern unsigned int smart_leaf_put_entry(const struct smart_tree *tree, const struct smart_leaf *leaf, uint8_t *target,
										 const struct smart_key *key, size_t length);

/* ---- together with others of the compute node (share.c: READs, combine.c: appends) ---- */

/* READ of a leaf that others may be waiting for; remote providers only. */
extern smart_status smart_leaf_read_together(struct smart_tree *tree, fabric_address leaf, void *buffer, size_t length);
/*
 * Takes the local lock of a leaf for an insert: *combined is ADDED or THERE if somebody
 * else did it (nothing is locked then); or UNKNOWN, if he may have done it.
 */
extern smart_status smart_leaf_lock_or_combine(struct smart_tree *tree, smart_slot link, const struct smart_key *key,
											   size_t length, enum smart_combined *combined);
/* Is there anybody who would have an append by the lock's holder take his entry along?  It may have changed by now. */
extern bool smart_leaf_is_awaited(const struct smart_tree *tree, smart_slot link);
/* smart_leaf_publish on a remote provider, with the entries that others have handed in. */
extern smart_status
smart_leaf_publish_together(struct smart_tree *tree, struct smart_leaf_lock *lock, const struct smart_leaf *leaf,
							const struct smart_key *key, size_t length, bool *published);

/* ---- faults that need code of their own (fault.c); never called in production builds ---- */

extern void smart_fault_rollback(struct smart_tree *tree, const struct smart_leaf *leaf);
extern smart_status
smart_fault_take_over(struct smart_tree *tree, smart_slot link, const struct smart_key *key,
					  struct smart_leaf_lock *lock, uint64_t holder, struct smart_leaf *leaf, bool *locked, bool *good);
extern bool smart_fault_slot_stands(struct smart_tree *tree, const struct smart_place *place);
extern int smart_fault_any_index(struct smart_tree *tree, const struct smart_node *node);
extern void smart_fault_zero(struct smart_tree *tree, const struct smart_key *key);
extern bool smart_fault_stale_node(struct smart_tree *tree, smart_slot link, struct smart_node *node);
extern unsigned int smart_fault_miss_mark(const smart_slot *slots, unsigned int count);

#endif /* SMART_TREE_INTERNAL_H */
