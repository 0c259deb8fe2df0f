/*
 * identity.h
 *	  By which identity this data directory is known on memory nodes.
 */
#ifndef SMART_AM_IDENTITY_H
#define SMART_AM_IDENTITY_H

/*
 * The data directory's identity, not 0: the one in its file, or a new one.  Called by the postmaster before it has
 * children.  A failure to store a new one is logged: the next start has another one then.
 */
extern uint64 smart_identity_find(void);

#endif /* SMART_AM_IDENTITY_H */
