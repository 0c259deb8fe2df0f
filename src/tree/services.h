/*
 * services.h
 *	  What the tree asks of its compute node: memory, epochs, leaf locks, a cache of
 *	  nodes, cached results and leaf hints.
 *
 * src/compute implements this for a server; the simulator has a plain set of
 * its own.
 */
#ifndef SMART_TREE_SERVICES_H
#define SMART_TREE_SERVICES_H

#include "base/status.h"
#include "tree/layout.h"

/* How a client comes by a leaf that others may be reading, too. */
enum smart_delegation
{
	SMART_READ_ALONE,    /* READ it; no other client waits for the copy */
	SMART_READ_LEADS,    /* READ it now and call read_end, whatever came of it */
	SMART_READ_DELIVERED /* the copy is in the buffer */
};

/* What became of an entry that was handed in. */
enum smart_combined
{
	SMART_COMBINED_NOT,    /* nothing */
	SMART_COMBINED_ADDED,  /* the client that took it added it */
	SMART_COMBINED_THERE,  /* the key was there */
	SMART_COMBINED_UNKNOWN /* the client that took it failed: it may have been added, or not */
};

/* An entry for a leaf that another client holds. */
struct smart_handed
{
	uint64_t tree;
	const uint8_t *bytes; /* of the taker: good until the taker calls tell_handed */
	uint32_t key_length;
	uint32_t length;
	uint32_t from; /* the client that handed it in; the compute node's */
};

struct smart_cache;
struct smart_offload;
struct smart_rdwc_member;

#define SMART_RESULT_BYTES_MAX 120 /* of an equality prefix and its tails together */

/* A cached result: the rests of the entries that begin with an equality prefix (tree.h), in ascending order. */
struct smart_result
{
	uint64_t ticket;                       /* after a miss: what keep_result wants back; 0: nothing is to be kept */
	bool hot;                              /* it was found, and is kept anew after a change: it stays longer */
	unsigned int length;                   /* bytes of the tails */
	uint8_t tails[SMART_RESULT_BYTES_MAX]; /* of each entry: one byte of length, and what follows the prefix */
};

/* What is known of a live leaf without its entries (hints.c). */
struct smart_leaf_hint
{
	uint64_t identity; /* hash of its place: the tree, where its range begins, and all that its keys share */
	uint64_t meta;
	uint16_t prefix_length;  /* bytes of the leaf's prefix, which identity covers, too */
	uint8_t greatest_length; /* bytes of greatest that are known, 0..8 */
	uint8_t greatest[8];     /* the first bytes of the greatest key, behind the prefix */
};

/* What a leaf copy is worth. */
enum smart_keep
{
	SMART_KEEP_SPARE, /* room that nothing has had yet */
	SMART_KEEP_READ,  /* others' room, as likely as questions like this one were answered of late */
	SMART_KEEP_HOT    /* it was found or made by a change, and is used on */
};

/* An equality prefix that is blocked, or a leaf's hint or copy; for unblock_point. */
struct smart_blocked
{
	uint64_t word;
	uint32_t version;
};

struct smart_services
{
	/*
	 * A block of this class for tree, on any memory node.  Its content is
	 * whatever an earlier block of the same class left there.  A leaf's block of a tree with
	 * values: what this tree left there, or zeros since before any operation was open (V4).  Errors: SMART_NO_SPACE,
	 * SMART_DISK_FULL, SMART_NO_MEMORY, SMART_UNREACHABLE, SMART_INTERRUPTED.
	 */
	smart_status (*allocate)(struct smart_services *services, uint64_t tree, smart_class class, fabric_address *block);

	/*
	 * Gives a block back.  It is not used again before every operation that
	 * was open at this moment has ended (I6).  Called for blocks that were
	 * sealed or dead first, and for copies that lost their CAS.  Never fails.
	 */
	void (*retire)(struct smart_services *services, uint64_t tree, smart_class class, fabric_address block);

	/*
	 * As allocate, where that finds no room, from what is set apart for removals (space.h): for a standby, which the
	 * caller gives back; else to finish what another client has begun.  NULL: nothing is set apart.
	 */
	smart_status (*allocate_spared)(struct smart_services *services, uint64_t tree, smart_class class, bool standby,
									fabric_address *block);

	/*
	 * A block that this client has unlinked, and not retired, becomes as allocate gives it, when every operation that
	 * was open at this moment has ended (I6).  Outside of the epoch.  SMART_INTERRUPTED, SMART_TIMEOUT: not yet.  NULL
	 * if allocate_spared is.
	 */
	smart_status (*reuse)(struct smart_services *services, smart_class class, fabric_address block);

	/*
	 * A batch or an allocation came to status.  If a memory node did not reply, waits until it may; true: do the same
	 * again.  Outside of the epoch and without a lock only.  *since_ns is 0 before the first time.  NULL: false.
	 */
	bool (*await)(struct smart_services *services, smart_status status, uint64_t *since_ns);

	/*
	 * The reclamation epoch: between enter and leave no block that this client
	 * can reach is used again.  Not nested, never held across a wait for
	 * anything but a leaf lock or a verb.
	 */
	void (*enter)(struct smart_services *services);
	void (*leave)(struct smart_services *services);

	/*
	 * Within an epoch: a number that only rises, not 0.  What was reachable when it was told to
	 * any client, or later, is not used again before the end of an operation that is told the same
	 * number when it has entered.  NULL: there is no such number.
	 */
	uint64_t (*moment)(struct smart_services *services);

	/*
	 * The local lock of a leaf: excludes two appenders of this compute node.
	 * Distinct leaves may share a lock, so a client holds one at most.
	 * SMART_INTERRUPTED, SMART_TIMEOUT: not locked.
	 */
	smart_status (*lock_leaf)(struct smart_services *services, fabric_address leaf);
	void (*unlock_leaf)(struct smart_services *services, fabric_address leaf);

	/*
	 * The same lock, if it is free at this moment, also for a client that holds others; so who takes several waits for
	 * none.  False, too, if another leaf that the client has locked shares the lock.  NULL: leaves are locked one at a time.
	 */
	bool (*try_lock_leaf)(struct smart_services *services, fabric_address leaf);

	/*
	 * The cache of internal nodes; all five are NULL on a provider with direct
	 * access, and where there is none.  What it returns may be stale and is
	 * checked on arrival.  find copies the words of the node that slot links to
	 * into words[] and tells whether it had them; slot 0 asks for the tree's root
	 * slot, in words[0]; *moment is what store was told with them (of the root 0), which is when the node was
	 * in the tree, or 0 (B1).  update tells that words[index] went over from one value
	 * to another; a copy that has neither is dropped.  wants: is a large node that it does not have worth a READ of all its
	 * bytes, so that it can be kept?  Always where there is room, else now and then.  NULL: it always is.
	 */
	bool (*cache_find)(struct smart_services *services, uint64_t tree, smart_slot slot, uint64_t *words,
					   uint64_t *moment);
	void (*cache_store)(struct smart_services *services, uint64_t tree, smart_slot slot, const uint64_t *words,
						uint64_t moment);
	void (*cache_update)(struct smart_services *services, uint64_t tree, smart_slot slot, unsigned int index,
						 uint64_t from, uint64_t to);
	void (*cache_drop)(struct smart_services *services, uint64_t tree, smart_slot slot);
	bool (*cache_wants)(struct smart_services *services, uint64_t tree, smart_slot slot);

	/*
	 * Cached results (A1-A3 in src/README); all four are NULL where there are none.
	 * point is an equality prefix.  find_result: true: cached->length and tails were
	 * true within this call; false: what is READ after this call may be kept with
	 * cached->ticket, unless that is 0.  From block_point until unblock_point, which
	 * takes what block_point returned, the prefix has no cached result, nor is one
	 * kept.  unblock_point returns a ticket for what the caller knows to be there now,
	 * or 0: another client blocked the prefix in between.  None of them fails.
	 */
	bool (*find_result)(struct smart_services *services, uint64_t tree, const uint8_t *point, unsigned int length,
						struct smart_result *cached);
	void (*keep_result)(struct smart_services *services, uint64_t tree, const uint8_t *point, unsigned int length,
						const struct smart_result *cached);
	struct smart_blocked (*block_point)(struct smart_services *services, uint64_t tree, const uint8_t *point,
										unsigned int length);
	uint64_t (*unblock_point)(struct smart_services *services, const struct smart_blocked *blocked);

	/*
	 * Leaf hints (A4); all three are NULL where the four above are.  The same for
	 * what is known of the leaf that a slot leads to: find tells what was true within the
	 * call; keep wants a ticket of unblock_point; hot: it was found, and is kept anew after a
	 * change.
	 */
	bool (*find_hint)(struct smart_services *services, smart_slot leaf, struct smart_leaf_hint *hint);
	void (*keep_hint)(struct smart_services *services, smart_slot leaf, const struct smart_leaf_hint *hint,
					  uint64_t ticket, bool hot);
	struct smart_blocked (*block_hint)(struct smart_services *services, smart_slot leaf);

	/*
	 * Leaf copies (A5); all are NULL where the seven above are.  find puts the whole leaf that a slot leads to into
	 * copy, as it was within the call; *ticket, found or not: what keep wants, 0: nothing is to be kept.  keep takes meta
	 * instead of the copy's.  block_hint blocks copies, too.  tree: as find_result has it.  ahead: for a scan, which asks
	 * for many leaves once: what it finds and keeps is no reason for others to make room.  asks: is it likely enough,
	 * as far as the last questions tell, that a scan's questions are worth their time?
	 */
	bool (*find_leaf)(struct smart_services *services, uint64_t tree, smart_slot leaf, bool ahead, uint8_t *copy,
					  uint64_t *ticket);
	void (*keep_leaf)(struct smart_services *services, uint64_t tree, smart_slot leaf, const uint8_t *copy,
					  uint64_t meta, uint64_t ticket, enum smart_keep how);
	bool (*asks_leaves)(struct smart_services *services);

	/* What src/compute's functions for these fifteen know of the client; the tree does not look at it. */
	struct smart_cache *cache;
	unsigned int cache_client; /* its number among the cache's clients */

	/*
	 * Read delegation; both are NULL on a provider with direct access, and where
	 * there is none.  begin waits while another client of this compute node READs
	 * the leaf of so many bytes, and then one client READs for all that have
	 * waited: what it delivers was READ after the call began.  A client that
	 * leads calls end with its copy, or with NULL if the READ failed, before
	 * anything else.  SMART_INTERRUPTED: there is nothing to end.  Updates share the
	 * CAS of a value's word likewise, under the word's address: the copy has eight
	 * bytes, and says that the CAS came about, or lost to a later update.
	 */
	smart_status (*read_begin)(struct smart_services *services, fabric_address leaf, uint8_t *buffer, uint32_t length,
							   enum smart_delegation *delegation);
	void (*read_end)(struct smart_services *services, const uint8_t *copy, uint32_t length);

	/*
	 * Write combining; all four are NULL where the two above are.  lock_or_combine
	 * is lock_leaf, and while it waits the entry may be taken by the holder of the lock:
	 * *combined is ADDED or THERE, and nothing is locked; or the leaf is locked, and
	 * it is NOT or UNKNOWN.  An error: not locked, and if it is SMART_TIMEOUT the entry
	 * may have been added.  The holder takes entries of the tree for its leaf, at
	 * most `most`, and tells the owner of each what became of it before it unlocks.  is_awaited: perhaps
	 * there are some.
	 */
	smart_status (*lock_or_combine)(struct smart_services *services, fabric_address leaf,
									const struct smart_handed *entry, enum smart_combined *combined);
	bool (*is_awaited)(struct smart_services *services, fabric_address leaf);
	unsigned int (*take_handed)(struct smart_services *services, fabric_address leaf, uint64_t tree,
								struct smart_handed *entries, unsigned int most);
	void (*tell_handed)(struct smart_services *services, const struct smart_handed *entry,
						enum smart_combined combined);

	/* What src/compute's functions for leaf locks and for these six know of the client; the tree does not look at it. */
	struct smart_rdwc_member *member;

	/* Descents by memory nodes (offload.h), where the cache does not know the way; NULL: none. */
	struct smart_offload *offload;
};

#endif /* SMART_TREE_SERVICES_H */
