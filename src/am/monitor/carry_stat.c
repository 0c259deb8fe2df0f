/*
 * carry_stat.c
 *	  smart_carry(): carries to memory nodes what an index has written back.
 */
#include "postgres.h"

#include "access/relation.h"
#include "fmgr.h"
#include "utils/rel.h"

#include "am/index/relation.h"
#include "am/journal/carry.h"
#include "am/server/shared.h"

PG_FUNCTION_INFO_V1(smart_carry_index);

/*
 * smart_carry(index regclass) returns boolean
 *
 * The tree on memory nodes of an index that writes back is brought up to date, and not in a moment by a worker.  True: it has all that
 * had been written when this was called.  False: the index has none, or not yet, or a memory node is away.  Errors: those of
 * smart_index_open() and smart_carry() (src/am/journal/carry.h).
 */
PGDLLEXPORT Datum
smart_carry_index(PG_FUNCTION_ARGS)
{
	Relation index = smart_index_open(PG_GETARG_OID(0));
	bool carried;

	smart_server_require();
	carried = smart_carry_all(index);
	relation_close(index, AccessShareLock);
	PG_RETURN_BOOL(carried);
}
