/*
 * progress.h
 *	  Subphases in pg_stat_progress_create_index, of builds, rebuilds and loadings; smart_am_build_phase_name() has
 *	  their names.
 */
#ifndef SMART_AM_PROGRESS_H
#define SMART_AM_PROGRESS_H

#define SMART_PHASE_SCAN    2
#define SMART_PHASE_SORT    3
#define SMART_PHASE_LOAD    4
#define SMART_PHASE_JOURNAL 5

#endif /* SMART_AM_PROGRESS_H */
