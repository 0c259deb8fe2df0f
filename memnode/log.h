/*
 * log.h
 *	  The daemon's log: lines on standard error with time and level.
 *
 * Any thread may log; a line is one write.
 */
#ifndef MEMNODE_LOG_H
#define MEMNODE_LOG_H

#include "base/env.h"

/* Lines below this level are not written.  SMART_LOG_INFO until then. */
extern void memnode_log_set_level(enum smart_log_level level);

extern void memnode_log(enum smart_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif /* MEMNODE_LOG_H */
