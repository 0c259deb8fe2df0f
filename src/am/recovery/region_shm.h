/*
 * region_shm.h
 *	  The region in POSIX shared memory, which outlives the server and not the machine.
 */
#ifndef SMART_AM_REGION_SHM_H
#define SMART_AM_REGION_SHM_H

/*
 * Opens the shared memory of this server's region and locks it; made if there is none.  -1: the region has to lie in a
 * file, and the log tells why.
 */
extern int smart_region_shm_open(uint64 max_size);

/*
 * Removes shared memory whose data directory is gone or holds another cluster now, and this server's own unless it is
 * in use.
 */
extern void smart_region_shm_sweep(bool in_use);

/* Locks the region's file for this postmaster: a logger that outlives it does not keep the lock.  False: another has it. */
extern bool smart_region_lock(int fd);

#endif /* SMART_AM_REGION_SHM_H */
