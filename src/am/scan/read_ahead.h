/*
 * read_ahead.h
 *	  What a scan is going to be asked for.
 */
#ifndef SMART_AM_READ_AHEAD_H
#define SMART_AM_READ_AHEAD_H

#include "am/scan/position.h"

/*
 * The scan, of a tree on memory nodes, is about to be started anew with several sets of keys, of nkeys each, forward:
 * has the leaves where their ranges begin READ in one batch, but for those whose results are cached.  Until the next call the
 * scan looks there first, and VACUUM waits for it where it would for a batch.  sets 0: nothing more is known to come.  Nothing
 * has to come about as it was foretold.  Returns whether something was READ.  Errors: as of amrescan.
 */
extern bool smart_read_ahead(struct smart_position *position, ScanKey keys, int nkeys, int sets);

#endif /* SMART_AM_READ_AHEAD_H */
