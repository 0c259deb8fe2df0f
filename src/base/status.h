/*
 * status.h
 *	  The one result type of everything below src/am.
 *
 * Nothing down here raises an error: a function returns a status and sets its
 * outputs only on SMART_OK.  src/am turns a status into ereport() once the
 * tree has unwound, since an error that jumped through the tree would leave an
 * epoch entered or a leaf locked.
 */
#ifndef SMART_BASE_STATUS_H
#define SMART_BASE_STATUS_H

typedef enum smart_status
{
	SMART_OK = 0,
	SMART_DONE,        /* a scan has come to its end */
	SMART_NO_MEMORY,   /* this process has no memory left */
	SMART_NO_SPACE,    /* the memory nodes have no room left */
	SMART_DISK_FULL,   /* the file system under a region has no room left */
	SMART_INTERRUPTED, /* the environment asked to stop (query cancel, shutdown) */
	SMART_TIMEOUT,     /* a wait came to its limit */
	SMART_UNREACHABLE, /* a memory node does not answer */
	SMART_STALE,       /* a memory node has closed this generation of connections: make a new one */
	SMART_CORRUPT,     /* words that no operation of ours can have written */
	SMART_TOO_LONG,    /* an entry above the limits of layout.h */
	SMART_UNSORTED,    /* bulk load: entries do not ascend */
	SMART_STATUS_COUNT
} smart_status;

/* A short English phrase for a status; never NULL. */
extern const char *smart_status_text(smart_status status);

#endif /* SMART_BASE_STATUS_H */
