/*
 * compat.h
 *	  What differs between server versions; the only place that asks for them.
 */
#ifndef SMART_AM_COMPAT_H
#define SMART_AM_COMPAT_H

#include "postgres.h"

#include "commands/vacuum.h"
#include "access/amapi.h"
#include "storage/latch.h"
#include "utils/guc.h"
#include "utils/pg_locale.h"
#include "utils/rel.h"
#include "utils/wait_event.h"

#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif
#if PG_VERSION_NUM >= 170000
#include "storage/procnumber.h"
#else
#include "storage/backendid.h"
#endif

#if PG_VERSION_NUM < 150000
#error "smart needs PostgreSQL 15 or newer"
#endif

/* What later versions want to know of an access method beside what version 15 does. */
static inline void
smart_compat_describe(IndexAmRoutine *routine)
{
#if PG_VERSION_NUM >= 180000
	routine->amconsistentequality = true;
	routine->amconsistentordering = true;
#endif
}

/* The number of the file that stores a relation; its tablespace does not matter to us. */
static inline Oid
smart_relation_file(Relation relation)
{
#if PG_VERSION_NUM >= 160000
	return relation->rd_locator.relNumber;
#else
	return relation->rd_node.relNode;
#endif
}

static inline Oid
smart_relation_tablespace(Relation relation)
{
#if PG_VERSION_NUM >= 160000
	return relation->rd_locator.spcOid;
#else
	return relation->rd_node.spcNode;
#endif
}

/* In which subtransaction a relation got the file that it has now, if it was in this transaction. */
static inline SubTransactionId
smart_relation_new_file_subid(Relation relation)
{
#if PG_VERSION_NUM >= 160000
	return relation->rd_newRelfilelocatorSubid;
#else
	return relation->rd_newRelfilenodeSubid;
#endif
}

/* The database that a relation's file belongs to. */
static inline Oid
smart_relation_database(Relation relation)
{
#if PG_VERSION_NUM >= 160000
	return relation->rd_locator.dbOid;
#else
	return relation->rd_node.dbNode;
#endif
}

/* This backend's number among those that run; never negative. */
static inline int
smart_my_backend(void)
{
#if PG_VERSION_NUM >= 170000
	return MyProcNumber;
#else
	return MyBackendId;
#endif
}

/* Does a collation order strings by their bytes? */
static inline bool
smart_orders_by_bytes(Oid collation)
{
#if PG_VERSION_NUM >= 180000
	return pg_newlocale_from_collation(collation)->collate_is_c;
#else
	return lc_collate_is_c(collation);
#endif
}

/* Inside a security-restricted operation: names are looked up in safe places only. */
static inline void
smart_restrict_search_path(void)
{
#if PG_VERSION_NUM >= 170000
	RestrictSearchPath();
#endif
}

/* The cost-based delay of VACUUM. */
static inline void
smart_vacuum_delay_point(void)
{
#if PG_VERSION_NUM >= 180000
	vacuum_delay_point(false);
#else
	vacuum_delay_point();
#endif
}

/* A set for so many events; free it. */
static inline WaitEventSet *
smart_make_wait_set(int events)
{
#if PG_VERSION_NUM >= 170000
	return CreateWaitEventSet(NULL, events);
#else
	return CreateWaitEventSet(CurrentMemoryContext, events);
#endif
}

/* The wait event of this name, or the one of all extensions where there are no others. */
static inline uint32
smart_wait_event(const char *name)
{
#if PG_VERSION_NUM >= 170000
	return WaitEventExtensionNew(name);
#else
	return PG_WAIT_EXTENSION;
#endif
}

/*
 * Before version 18 the executor opens the indexes of INSERT ... ON CONFLICT
 * only if all unique ones are btrees.
 */
#if PG_VERSION_NUM < 180000
#define SMART_SPECULATE_OURSELVES 1
#else
#define SMART_SPECULATE_OURSELVES 0
#endif

#endif /* SMART_AM_COMPAT_H */
