/*
 * complaints.h
 *	  Log lines that strangers can cause: of many in a short time the first one is
 *	  written, and a sum of the others.
 */
#ifndef MEMNODE_COMPLAINTS_H
#define MEMNODE_COMPLAINTS_H

#include <stdbool.h>
#include <stdint.h>

#define MEMNODE_COMPLAINT_MAX 256

struct memnode_complaints
{
	uint64_t end_ns; /* when the sum is written; 0: nothing was written for a while */
	uint64_t count;  /* of those that were not written */
	char last[MEMNODE_COMPLAINT_MAX];
};

/* Says that who has this name was refused, and why. */
extern void
memnode_complain(struct memnode_complaints *complaints, uint64_t now_ns, const char *name, const char *reason);

/* Writes the sum if it is time.  True: it has to be called again. */
extern bool memnode_complaints_sum(struct memnode_complaints *complaints, uint64_t now_ns);

#endif /* MEMNODE_COMPLAINTS_H */
