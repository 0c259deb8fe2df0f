/*
 * status.h
 *	  What a person is told of a running node (--status).
 */
#ifndef MEMNODE_STATUS_H
#define MEMNODE_STATUS_H

#include "report.h"

/* Bounded, whatever the number of owners and hosts. */
extern void memnode_status_write(const struct memnode_report *report, struct memnode_text *text);

#endif /* MEMNODE_STATUS_H */
