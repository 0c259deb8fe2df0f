/*
 * http.h
 *	  The metrics by HTTP: GET /metrics, and nothing else.
 */
#ifndef MEMNODE_HTTP_H
#define MEMNODE_HTTP_H

#include "report.h"
#include "source.h"

struct memnode_http;

/* Listens on the address that the report's options name.  NULL: problem[] says why not. */
extern struct memnode_http *memnode_http_open(const struct memnode_report *report, char problem[MEMNODE_PROBLEM_MAX]);

/* The port, whatever was asked for. */
extern const char *memnode_http_port(const struct memnode_http *http);

/* For the loop. */
extern struct memnode_source memnode_http_source(struct memnode_http *http);

extern void memnode_http_close(struct memnode_http *http);

#endif /* MEMNODE_HTTP_H */
