/*
 * explain.h
 *	  What EXPLAIN tells of scans of smart indexes.
 */
#ifndef SMART_AM_EXPLAIN_H
#define SMART_AM_EXPLAIN_H

#include "am/am.h"

/* Called once, when the library is loaded. */
extern void smart_explain_init(void);

/* Waits for memory nodes so far while the scan looked for entries (scan.c). */
extern uint64 smart_scan_round_trips(IndexScanDesc scan);

#endif /* SMART_AM_EXPLAIN_H */
