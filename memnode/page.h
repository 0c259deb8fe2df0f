/*
 * page.h
 *	  A running node as a page for a browser (--status=html).
 */
#ifndef MEMNODE_PAGE_H
#define MEMNODE_PAGE_H

#include "report.h"

/*
 * One file of XHTML that needs no other one and has no script.  Each number that is one of the metrics stands in a
 * <data> whose value is exact and whose title is the metric's name.  Bounded, whatever the number of owners and chunks.
 */
extern void memnode_page_write(const struct memnode_report *report, struct memnode_text *text);

#endif /* MEMNODE_PAGE_H */
