/*
 * tree.h
 *	  A SMART tree: an ordered set of byte strings on memory nodes.
 *
 * An entry is `key ‖ payload`.  Keys are compared with memcmp; no key is a
 * prefix of another; the payload takes no part in order or identity.  In a tree
 * with values (option value) the payload is a number that can be changed in place.
 *
 * A handle belongs to one client.  Functions return a status, set their outputs
 * on SMART_OK only, and leave neither an epoch entered nor a leaf locked.
 *
 * Sources: SMART (OSDI'23) for the tree and its verbs, DART (SIGMOD'26) for
 * one-word commits and metadata in the parent's slot, CANRT for leaves of
 * appended entries.  src/README has the protocol and its proofs.
 */
#ifndef SMART_TREE_TREE_H
#define SMART_TREE_TREE_H

#include "base/assert.h"
#include "base/bytes.h"
#include "base/env.h"
#include "base/status.h"
#include "rdma/fabric.h"
#include "tree/layout.h"
#include "tree/services.h"

#define SMART_LEAF_SIZE_DEFAULT 512
#define SMART_LEAF_SIZE_MIN     64
#define SMART_LEAF_SIZE_MAX     4096

/*
 * The equality prefix of an entry ("point"): the bytes in front that it shares with
 * the entries that are asked for together, such as the key columns without the row's
 * address.  bytes begin with an entry's whole key; the result is the length of the
 * prefix, from 1 to the key's, the same for every entry that begins with the same
 * prefix.  No equality prefix begins with another one.
 */
typedef size_t (*smart_point_fn)(void *argument, const uint8_t *bytes, size_t length);

/*
 * What a handle is told about its tree.  All clients of a tree give the same options.
 *
 * A PostgreSQL server opens its trees in exclusive mode: it is the only compute node
 * that writes them.  Shared mode and tiny_nodes are the library's own, and no server
 * sets them:
 *
 * - In shared mode several compute nodes write one tree, as in SMART.  A writer takes
 *   the leaf's lock, a bit of its meta, besides the local one, and there are no cached
 *   results and no leaf hints, since a compute node does not hear of the changes of
 *   others.  The benchmark (bench/ycsb), the simulator and the tests run it.
 * - With tiny_nodes a tree of a few hundred entries passes through all kinds of nodes.
 *   Only the simulator and the tests set it.
 */
struct smart_tree_options
{
	/* Every tree. */
	uint64_t id;           /* never used twice */
	fabric_address root;   /* where the root slot lies */
	uint32_t leaf_size;    /* bytes up to which a leaf grows, a multiple of 64 (but see smart_leaf_most) */
	uint32_t fixed_length; /* bytes of every entry, or 0: entries carry their length */

	/* Exclusive mode on a remote provider: what the compute node's cache can know. */
	smart_point_fn point; /* for cached results; NULL: there are none.  The same for all clients. */
	void *point_argument;
	bool hints;       /* leaf hints: appends in one round trip, where it can be had */
	uint32_t payload; /* with leaf hints: bytes behind the key, the same for every entry */

	bool shared; /* other compute nodes write too: lock the leaves */

	/*
	 * A remote provider, shared, entries of fixed_length, without values: a word that all clients of the tree have, in
	 * remote memory, for appends by promises (src/README, C5a), which count there what they have taken back.  0: appends
	 * take the leaf's lock.
	 */
	fabric_address retractions;

	/*
	 * Where compute nodes own the tree in turn (src/README, Partitions): a number that changes with each owner.  What an
	 * earlier owner's cache knew is not believed any more.
	 */
	uint64_t tenure;

	/*
	 * A remote provider: each entry has a value, which is not counted in fixed_length, and no payload.  In
	 * exclusive mode the compute node's cache keeps leaves (A5) instead of results and hints.  Blocks come from services
	 * that give a leaf's block only to leaves of this tree again, or as zeros that it had before any operation was open
	 * (V4).
	 */
	bool value;

	/* Tests. */
	uint8_t tiny_nodes;   /* node kinds 1..4 hold tiny_nodes + kind - 1 slots; 0: their real number */
	bool wide_nodes;      /* with tiny_nodes: larger ones than kind 1 are direct-mapped */
	uint8_t first_window; /* leaves of a scan's first window and flight; 0: their real numbers */
	uint8_t patience;     /* looks at a lock whose holder does not move; 0: their real number */
};

struct smart_tree;

/*
 * Opens a handle on the tree whose root slot lies at options->root.  The root
 * slot must hold smart_tree_empty_root() or what operations made of it.
 * SMART_NO_MEMORY.
 */
extern smart_status smart_tree_open(struct fabric *fabric, struct smart_env *env, struct smart_services *services,
									const struct smart_tree_options *options, struct smart_tree **tree);
extern void smart_tree_close(struct smart_tree *tree);

/*
 * Between operations: the handle goes over to the tree with this id, root and tenure, for which its other options hold,
 * too.  A scan that is open on it begins anew with smart_scan_seek.
 */
extern void smart_tree_turn(struct smart_tree *tree, uint64_t id, fabric_address root, uint64_t tenure);

/* ---- single entries ---- */

/*
 * Adds an entry of length bytes, of which the first key_length are the key.
 * *added: false if the key was there (its payload then stays as it is).
 * Progress: lock-free but for the leaf's lock, which is bypassed by rewriting
 * the leaf when its holder does not move.
 */
extern smart_status
smart_tree_insert(struct smart_tree *tree, const uint8_t *entry, size_t key_length, size_t length, bool *added);

/*
 * Adds many entries, whose keys ascend (one may follow itself), as so many smart_tree_insert(), each at a moment of its
 * own.  On a remote provider in exclusive mode they go together: two round trips for those of 128 leaves, and a few more
 * if some of these have no room, for all of them.  After an error those that are settled are in the tree, and others may
 * be, too.
 */
struct smart_addition
{
	const uint8_t *bytes;
	uint32_t key_length;
	uint32_t length;
	bool settled; /* the entry is in the tree; set in any case */
	bool added;   /* it was not before */
};

extern smart_status
smart_tree_insert_many(struct smart_tree *tree, struct smart_addition *additions, unsigned int count);

/*
 * Trees with values.  A value is a number up to SMART_VALUE_MAX.  It is an entry's payload where entries are handed over,
 * eight bytes in the machine's order: by smart_tree_insert, which leaves the value of a key that is there, and by
 * smart_load_add.  Scans and smart_tree_verify return keys alone.
 *
 * get: the key's value.  update: gives the key another value in place; of updates that meet the last one wins.  Both:
 * *found: is the key there?  If not, nothing is set, or changed.  upsert: the one or the other; *added: the key was not
 * there.  Progress: get as lookup.  update is lock-free, but for the first one in a leaf, which waits for the leaf's lock
 * as an insert does, and for a CAS that it shares with others; it needs room only where it has to finish what another
 * client has begun.  SMART_TOO_LONG: also if the value is too large.
 */
extern smart_status
smart_tree_get(struct smart_tree *tree, const uint8_t *key, size_t key_length, uint64_t *value, bool *found);
extern smart_status
smart_tree_update(struct smart_tree *tree, const uint8_t *key, size_t key_length, uint64_t value, bool *found);
extern smart_status smart_tree_upsert(struct smart_tree *tree, const uint8_t *entry, size_t key_length, bool *added);

/* Many of them, as smart_tree_insert_many() goes about inserts: what a leaf gets comes together. */
extern smart_status
smart_tree_upsert_many(struct smart_tree *tree, struct smart_addition *additions, unsigned int count);

/* *removed: was the key there?  Merges and drops nodes that became small. */
extern smart_status smart_tree_remove(struct smart_tree *tree, const uint8_t *key, size_t key_length, bool *removed);

/* *found: is the key there?  Lock-free, but for a READ that is shared with others (src/README, Progress). */
extern smart_status smart_tree_lookup(struct smart_tree *tree, const uint8_t *key, size_t key_length, bool *found);

/* The same by the tree alone: no cached result is believed, or kept.  For who checks, and for keys that are not hot. */
extern smart_status
smart_tree_lookup_uncached(struct smart_tree *tree, const uint8_t *key, size_t key_length, bool *found);

/* *bare: it has neither a leaf nor a node, as before its first entry.  A READ of the root's word. */
extern smart_status smart_tree_is_bare(struct smart_tree *tree, bool *bare);

/* ---- equality prefixes (points) ---- */

/*
 * What the compute node knows about an equality prefix, without a verb.  False: nothing, and
 * cached->ticket, if it is not 0, lets a scan that begins after this call keep what it
 * finds (smart_scan_keep).
 */
extern bool
smart_tree_result(struct smart_tree *tree, const uint8_t *point, size_t length, struct smart_result *cached);

/* ---- ranges ---- */

struct smart_item
{
	uint16_t offset; /* of the suffix in the batch's bytes */
	uint16_t length; /* of the suffix */
};

/*
 * Entries of one leaf in ascending order: entry i is prefix ‖ suffix of item i.
 * Everything lies in memory of the scan and is good until its next call.
 * SMART_BATCH_SLACK bytes behind the prefix and behind each suffix may be read,
 * too, whatever they hold: short strings are copied and compared by words.
 */
#define SMART_BATCH_SLACK 16

struct smart_batch
{
	uint32_t count;
	uint32_t prefix_length;
	const uint8_t *prefix;
	const uint8_t *bytes;
	const struct smart_item *items;
};

/* Copies entry i of a batch, which has at most SMART_ENTRY_MAX bytes; returns its length. */
static inline int
smart_batch_entry(const struct smart_batch *batch, uint32_t i, uint8_t *entry)
{
	const struct smart_item *item = &batch->items[i];

	smart_assert(i < batch->count && batch->prefix_length + item->length <= SMART_ENTRY_MAX);
	smart_copy_short(entry, batch->prefix, batch->prefix_length);
	smart_copy_short(entry + batch->prefix_length, batch->bytes + item->offset, item->length);
	return (int) (batch->prefix_length + item->length);
}

/* Copies some bytes of a batch, which are mostly few: then with some of those behind them, by one or two loads and stores. */
static inline void
smart_batch_copy(uint8_t *out, const uint8_t *bytes, uint32_t length)
{
	if (__builtin_expect(length > 2 * SMART_BATCH_SLACK, 0))
	{
		smart_copy_short(out, bytes, length);
		return;
	}
	memcpy(out, bytes, SMART_BATCH_SLACK);
	if (length > SMART_BATCH_SLACK)
		memcpy(out + SMART_BATCH_SLACK, bytes + SMART_BATCH_SLACK, SMART_BATCH_SLACK);
}

/* As smart_batch_entry(), to where SMART_BATCH_SLACK bytes more may be overwritten. */
static inline int
smart_batch_entry_roomy(const struct smart_batch *batch, uint32_t i, uint8_t *entry)
{
	const struct smart_item *item = &batch->items[i];

	smart_assert(i < batch->count && batch->prefix_length + item->length <= SMART_ENTRY_MAX);
	smart_batch_copy(entry, batch->prefix, batch->prefix_length);
	smart_batch_copy(entry + batch->prefix_length, batch->bytes + item->offset, item->length);
	return (int) (batch->prefix_length + item->length);
}

struct smart_scan;

/* A scan for use with many ranges, one after the other.  SMART_NO_MEMORY. */
extern smart_status smart_scan_open(struct smart_tree *tree, struct smart_scan **scan);
extern void smart_scan_close(struct smart_scan *scan);

/*
 * Positions on the entries e with from <= e < to, where a string sorts before
 * its extensions: (P, successor of P) are the entries that begin with P.
 * to_length 0 means no upper end.  The strings are copied (SMART_TOO_LONG
 * above SMART_KEY_MAX bytes, SMART_NO_MEMORY).  Backward scans return the
 * batches from the upper end; items ascend within each all the same.
 */
extern smart_status smart_scan_seek(struct smart_scan *scan, const uint8_t *from, size_t from_length, const uint8_t *to,
									size_t to_length, bool backward);

/*
 * Says where the next ranges (= ANY) will begin or, backward, end: at most
 * SMART_POINTS_MAX strings, best in the order in which the ranges come.  On a remote
 * provider the leaves there are READ now, in one round trip for each level of the tree
 * that is not in the cache and one for the leaves; on a direct one nothing happens.
 * seek_point then positions on the ranges; what is in the tree from this call on is
 * returned.  seek and forget make an end of it.  The strings of ends are changed.
 * SMART_TOO_LONG, SMART_NO_MEMORY.
 */
#define SMART_POINTS_MAX 64

struct smart_point
{
	uint8_t *bytes;
	uint32_t length;
};

extern smart_status
smart_scan_points(struct smart_scan *scan, const struct smart_point *points, unsigned int count, bool backward);
extern smart_status smart_scan_seek_point(struct smart_scan *scan, const uint8_t *from, size_t from_length,
										  const uint8_t *to, size_t to_length, bool backward);

/*
 * After seek, or seek_point: the range is that of the entries of the equality prefix `from`,
 * and a cached result is to be kept if one leaf tells it.  ticket: of smart_tree_result, called
 * for this prefix before seek or, for seek_point, before smart_scan_points.
 */
extern void smart_scan_keep(struct smart_scan *scan, uint64_t ticket);

/*
 * The next batch, with at least one entry, or SMART_DONE.  An entry that is in
 * the tree from seek to the end is returned exactly once, in order; one that
 * comes or goes meanwhile at most once.  No epoch is held afterwards.
 */
extern smart_status smart_scan_next(struct smart_scan *scan, struct smart_batch *batch);

/*
 * Forgets what a remote provider has read ahead, so that the batches to come are
 * READ after this call: for a caller that has to tell others how old the entries are that
 * it looks at.
 */
extern void smart_scan_forget(struct smart_scan *scan);

/*
 * The part of the range that has not been returned yet, also after next has failed: from and to have room for SMART_KEY_MAX + 1
 * bytes; no bytes of to: no end.  False: all has been returned.
 */
extern bool
smart_scan_rest(const struct smart_scan *scan, uint8_t *from, uint32_t *from_length, uint8_t *to, uint32_t *to_length);

/* Makes of key the least string behind all that begin with it; returns its length, 0: there is none. */
extern size_t smart_successor(uint8_t *key, size_t length);

/* ---- many removals ---- */

/* An entry's bytes, or its last ones, see below. */
typedef bool (*smart_dead_fn)(void *argument, const uint8_t *bytes, size_t length);
typedef void (*smart_found_fn)(void *argument, const uint8_t *entry, size_t length);

/* Which entries a bulk delete is about. */
struct smart_victims
{
	/*
	 * Is an entry to go?  It is shown at least so many bytes, the last ones of the entry, or the whole entry if that is
	 * shorter or tail is 0.  It may be asked again about an entry whose leaf changed meanwhile.
	 */
	smart_dead_fn dead;
	size_t tail;
	/* Entries that sort above this key are left alone; NULL: none is. */
	const uint8_t *last;
	size_t last_length;
	/* Not NULL: is told of each entry that is to go, in ascending order.  Nothing is removed, unless at_once is set. */
	smart_found_fn found;
	/*
	 * With found: the entries are removed, too.  found is told of every entry that is removed, whatever the call returns.
	 * If other clients are in the way, it may be told twice, in any order, and, if the call fails, of an entry that is
	 * still there.
	 */
	bool at_once;
	void *argument;
};

/*
 * Can clients replace leaves that they have found by pointers?  Then a bulk delete sweeps the tree (SWEEP), at_once saves a
 * second walk, and scans put leaves in order (ORDER).
 */
extern bool smart_tree_is_swept(const struct smart_tree *tree);

/*
 * Bulk delete: visits all entries in key order, a leaf at a time.  *visited and
 * *removed (none, if they are only told of) count entries.  Called between leaves: pause_point, where the caller
 * may check for interrupts (return false: SMART_INTERRUPTED); NULL: none.
 */
typedef bool (*smart_pause_fn)(void *argument);

extern smart_status smart_tree_bulk_delete(struct smart_tree *tree, const struct smart_victims *victims,
										   smart_pause_fn pause_point, uint64_t *visited, uint64_t *removed);

/*
 * The same for the leaves of some keys only; found only with at_once.  next() returns the least of them that is not
 * below from, which never falls, in memory that is good until the next call; false: there is none.  On memory nodes it
 * is asked for many keys before the first of them is removed.  After an error that comes under way *removed is set, too.
 */
typedef bool (*smart_next_key_fn)(void *argument, const uint8_t *from, size_t from_length, const uint8_t **key,
								  size_t *key_length);

extern smart_status smart_tree_remove_many(struct smart_tree *tree, const struct smart_victims *victims,
										   smart_next_key_fn next, uint64_t *removed);

/*
 * Bulk delete for one leaf, the one that covers key, if there is one: dead() is asked about
 * that entry and all behind it in the leaf, and if it takes any of them for dead, about all that
 * are in the leaf.  The leaf is READ after the call.  SMART_TOO_LONG.
 */
extern smart_status smart_tree_weed(struct smart_tree *tree, const uint8_t *key, size_t key_length, smart_dead_fn dead,
									void *argument, uint64_t *removed);

/* ---- bulk load ---- */

struct smart_load;

/*
 * Builds the content of an empty tree that no other client sees yet from entries
 * in strictly ascending order, bottom-up, filling leaves to fill percent
 * (10..100) of leaf_size.  Below 100, where appends are by promises, each leaf has
 * a block of leaf_size, in which it grows.  finish links the root and frees the
 * load, also when it fails; abandon frees the load.  What was built and not linked
 * stays with the tree until that is dropped.  SMART_UNSORTED: an entry does not ascend.
 */
extern smart_status smart_load_begin(struct smart_tree *tree, unsigned int fill, struct smart_load **load);
extern smart_status smart_load_add(struct smart_load *load, const uint8_t *entry, size_t length);
extern smart_status smart_load_finish(struct smart_load *load);
extern void smart_load_abandon(struct smart_load *load);

/* ---- whole trees ---- */

struct smart_verify_report
{
	uint64_t entries;
	uint64_t leaves;
	uint64_t nodes[SMART_NODE_KINDS + 1]; /* by kind, from 1 */
	uint64_t bytes_used;                  /* of the blocks: header, prefix, entries, rear; nodes: used slots */
	uint64_t bytes_blocks;                /* of the blocks, whole */
	uint32_t height;                      /* most blocks on a path from the root to an entry */
	uint64_t pending;                     /* leaves whose upper half waits for its slot */
	uint64_t sealed;                      /* leaves that wait for their replacement */
	uint64_t frozen;                      /* nodes that wait for their replacement */
};

typedef bool (*smart_entry_fn)(void *argument, const uint8_t *entry, size_t length);

/*
 * Walks a tree and checks every invariant that can be seen in one: words,
 * identities, crcs, ranges that cover 0..255 without a gap, leaves that agree
 * with their slots, entries in range, sorted runs, no key twice, nothing
 * unreachable by its own key.  In a tree that others change meanwhile blocks
 * that prove to be changing are read again.  A violation: SMART_CORRUPT and an
 * English sentence in message.  entry() is called for every entry in order if
 * not NULL; returning false ends the walk with SMART_INTERRUPTED.
 */
extern smart_status smart_tree_verify(struct smart_tree *tree, smart_entry_fn entry, void *argument,
									  struct smart_verify_report *report, char *message, size_t message_size);

#endif /* SMART_TREE_TREE_H */
