/*
 * key_locks.h
 *	  Locks of keys of unique indexes: one session at a time checks a key and publishes its entry.
 *
 * A key's lock is one of a fixed number of stripes in shared memory, chosen by the hash of index and key, so keys share
 * one by chance.  A session holds one at most, waits for nothing else by its own choice while it has it, and serves
 * interrupts while it waits for it.  So these locks are in no circle of waits.  pg_stat_activity shows who waits, with the
 * wait event SmartUniqueKey from version 17 on.
 *
 * Progress: blocked by the holder of the stripe, for the check of one key and one insert into the tree.
 */
#ifndef SMART_AM_KEY_LOCKS_H
#define SMART_AM_KEY_LOCKS_H

#include "common/hashfn.h"
#include "utils/rel.h"

/* Asks the server for memory (shmem_request_hook), and makes the locks (shmem_startup_hook). */
extern void smart_key_locks_request(void);
extern void smart_key_locks_make(void);

/* The hash of a key of a unique index: length bytes of its columns as an entry has them.  Never 0. */
static inline uint32
smart_key_hash(Relation index, const uint8 *columns, int length)
{
	uint32 hash = hash_combine(hash_bytes(columns, length), RelationGetRelid(index));

	return hash != 0 ? hash : 1;
}

/*
 * Locks the key with this hash.  It is unlocked by smart_key_unlock(), or by the end of the (sub)transaction after an
 * error.  Errors: those of interrupts.
 */
extern void smart_key_lock(uint32 hash);
extern void smart_key_unlock(void);

#endif /* SMART_AM_KEY_LOCKS_H */
