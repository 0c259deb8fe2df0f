/*
 * complaints.c
 *	  Log lines that strangers can cause.
 */
#include <stdio.h>

#include "base/assert.h"
#include "complaints.h"
#include "log.h"

#define SUM_S 10

void
memnode_complain(struct memnode_complaints *complaints, uint64_t now_ns, const char *name, const char *reason)
{
	smart_assert(complaints->end_ns != 0 || complaints->count == 0);
	if (complaints->end_ns == 0)
	{
		memnode_log(SMART_LOG_WARNING, "%s: refused: %s", name, reason);
		complaints->end_ns = now_ns + SUM_S * UINT64_C(1000000000);
		return;
	}
	complaints->count++;
	snprintf(complaints->last, sizeof(complaints->last), "%s: %s", name, reason);
}

bool
memnode_complaints_sum(struct memnode_complaints *complaints, uint64_t now_ns)
{
	smart_assert(complaints->end_ns != 0 || complaints->count == 0);
	if (complaints->end_ns == 0 || now_ns < complaints->end_ns)
		return complaints->end_ns != 0;
	if (complaints->count > 0)
		memnode_log(SMART_LOG_WARNING, "%llu more connections were refused within %d s; the last one, %s",
					(unsigned long long) complaints->count, SUM_S, complaints->last);
	complaints->end_ns = 0;
	complaints->count = 0;
	return false;
}
