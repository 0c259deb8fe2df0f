/*
 * build.h
 *	  Building an index: callbacks of IndexAmRoutine.
 */
#ifndef SMART_AM_BUILD_H
#define SMART_AM_BUILD_H

#include "access/genam.h"
#include "nodes/execnodes.h"

extern IndexBuildResult *smart_am_build(Relation heap, Relation index, struct IndexInfo *info);
extern void smart_am_build_empty(Relation index);
extern char *smart_am_build_phase_name(int64 phase);

#endif /* SMART_AM_BUILD_H */
