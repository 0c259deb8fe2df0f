/*
 * scan.h
 *	  Index scans: the callbacks of IndexAmRoutine.
 */
#ifndef SMART_AM_SCAN_H
#define SMART_AM_SCAN_H

#include "access/genam.h"

extern IndexScanDesc smart_am_begin_scan(Relation index, int nkeys, int norderbys);
extern void smart_am_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys);
extern bool smart_am_get_tuple(IndexScanDesc scan, ScanDirection direction);
extern int64 smart_am_get_bitmap(IndexScanDesc scan, TIDBitmap *bitmap);
extern void smart_am_end_scan(IndexScanDesc scan);
extern void smart_am_mark(IndexScanDesc scan);
extern void smart_am_restore(IndexScanDesc scan);

/* As smart_read_ahead() (read_ahead.h). */
extern bool smart_scan_read_ahead(IndexScanDesc scan, ScanKey keys, int nkeys, int sets);

/* Waits for memory nodes so far while the scan looked for entries. */
extern uint64 smart_scan_round_trips(IndexScanDesc scan);

/* Adds to EXPLAIN what it tells of scans of smart indexes (explain.c).  Called once, when the library is loaded. */
extern void smart_explain_init(void);

#endif /* SMART_AM_SCAN_H */
