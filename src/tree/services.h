/*
 * services.h
 *	  What the tree asks of its compute node: memory, epochs, leaf locks, a cache.
 *
 * src/compute implements this for a server; the simulator has a plain set of
 * its own.
 */
#ifndef SMART_TREE_SERVICES_H
#define SMART_TREE_SERVICES_H

#include "base/status.h"
#include "tree/layout.h"

struct smart_services
{
	/*
	 * A block of this class for tree, on any memory node.  Its content is
	 * whatever an earlier block of the same class left there, except that the
	 * lock word of a leaf is 0.  Errors: SMART_NO_SPACE, SMART_DISK_FULL,
	 * SMART_NO_MEMORY, SMART_UNREACHABLE, SMART_INTERRUPTED.
	 */
	smart_status (*allocate)(struct smart_services *services, uint64_t tree, smart_class class, fabric_address *block);

	/*
	 * Gives a block back.  It is not used again before every operation that
	 * was open at this moment has ended (I6).  Called for blocks that were
	 * sealed or dead first, and for copies that lost their CAS.  Never fails.
	 */
	void (*retire)(struct smart_services *services, uint64_t tree, smart_class class, fabric_address block);

	/*
	 * The reclamation epoch: between enter and leave no block that this client
	 * can reach is used again.  Not nested, never held across a wait for
	 * anything but a leaf lock or a verb.
	 */
	void (*enter)(struct smart_services *services);
	void (*leave)(struct smart_services *services);

	/*
	 * The local lock of a leaf: excludes two appenders of this compute node.
	 * Distinct leaves may share a lock, so a client holds one at most.
	 * SMART_INTERRUPTED, SMART_TIMEOUT: not locked.
	 */
	smart_status (*lock_leaf)(struct smart_services *services, fabric_address leaf);
	void (*unlock_leaf)(struct smart_services *services, fabric_address leaf);

	/*
	 * The cache of internal nodes; all four are NULL on a provider with direct
	 * access, and where there is none.  What it returns may be stale and is
	 * checked on arrival.  find copies the words of the node that slot links to
	 * into words[] and tells whether it had them; slot 0 asks for the tree's root
	 * slot, in words[0].  update tells that words[index] went over from one value
	 * to another; a copy that has neither is dropped.
	 */
	bool (*cache_find)(struct smart_services *services, uint64_t tree, smart_slot slot, uint64_t *words);
	void (*cache_store)(struct smart_services *services, uint64_t tree, smart_slot slot, const uint64_t *words);
	void (*cache_update)(struct smart_services *services, uint64_t tree, smart_slot slot, unsigned int index,
						 uint64_t from, uint64_t to);
	void (*cache_drop)(struct smart_services *services, uint64_t tree, smart_slot slot);
};

#endif /* SMART_TREE_SERVICES_H */
