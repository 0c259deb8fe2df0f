/*
 * log.h
 *	  What the daemon tells its operator: lines on standard error with time and
 *	  level, and phrases that say why something cannot be done.
 *
 * Any thread may log; a line is one write.
 */
#ifndef MEMNODE_LOG_H
#define MEMNODE_LOG_H

#include <limits.h>
#include <stdbool.h>

#include "base/env.h"

/* Lines below this level are not written.  SMART_LOG_INFO until then. */
extern void memnode_log_set_level(enum smart_log_level level);

extern void memnode_log(enum smart_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define MEMNODE_PROBLEM_MAX (PATH_MAX + 256)

/* Writes the phrase to problem[MEMNODE_PROBLEM_MAX], which its arguments must not contain, and returns false. */
extern bool memnode_refuse(char *problem, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif /* MEMNODE_LOG_H */
