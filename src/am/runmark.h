/*
 * runmark.h
 *	  The run file: what a server that uses a region leaves in its data directory
 *	  while it runs, so that the next start can tell, if there was no clean stop,
 *	  whether the region is what this server has left.
 *
 * Include postgres.h first.
 */
#ifndef SMART_AM_RUNMARK_H
#define SMART_AM_RUNMARK_H

#include "postgres.h"

/*
 * Makes the run file anew for the region in the open file fd; its token, never 0.  A run without a file (that is
 * logged) is taken for another one at the next start.
 */
extern uint64 smart_run_mark_write(int fd);

/*
 * Does the run file show that the region in fd, which has the token, is in the state in which a server of this data
 * directory has left it on this machine?  If not, *reason tells why.
 */
extern bool smart_run_mark_matches(int fd, uint64 token, const char **reason);

/* There is no such run any more: it has ended cleanly, or its region is given up. */
extern void smart_run_mark_remove(void);

/* Changes whenever a server is started on the data directory, whatever it loads; 0: not known. */
extern uint64 smart_run_started(void);

#endif /* SMART_AM_RUNMARK_H */
