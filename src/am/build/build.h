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

/*
 * May columns of a type, which is no domain, have a class of an access method that is of type class_type?  Not if it
 * is another type, and the one of the columns has comparisons of its own.
 */
extern bool smart_build_takes_class(Oid type, Oid class_type, Oid method);

#endif /* SMART_AM_BUILD_H */
