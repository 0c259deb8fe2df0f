/*
 * metrics.h
 *	  What a monitoring system is told, as OpenMetrics text.
 */
#ifndef MEMNODE_METRICS_H
#define MEMNODE_METRICS_H

#include "report.h"

#define MEMNODE_METRICS_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

extern void memnode_metrics_write(const struct memnode_report *report, struct memnode_text *text);

#endif /* MEMNODE_METRICS_H */
