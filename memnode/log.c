/*
 * log.c
 *	  What the daemon tells its operator.
 */
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "log.h"

#define LINE_MAX_BYTES 1024

static enum smart_log_level lowest = SMART_LOG_INFO;

void
memnode_log_set_level(enum smart_log_level level)
{
	__atomic_store_n(&lowest, level, __ATOMIC_RELAXED);
}

void
memnode_log(enum smart_log_level level, const char *format, ...)
{
	static const char *const names[] = {"debug", "info", "warning"};
	char line[LINE_MAX_BYTES];
	struct timespec now;
	struct tm local;
	va_list arguments;
	int length;

	if (level < __atomic_load_n(&lowest, __ATOMIC_RELAXED))
		return;
	smart_assert((unsigned int) level < sizeof(names) / sizeof(names[0]));
	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &local);
	length = (int) strftime(line, sizeof(line), "%Y-%m-%d %H:%M:%S", &local);
	length +=
		snprintf(line + length, sizeof(line) - (size_t) length, ".%03ld %s: ", now.tv_nsec / 1000000, names[level]);
	va_start(arguments, format);
	length += vsnprintf(line + length, sizeof(line) - (size_t) length - 1, format, arguments);
	va_end(arguments);
	if (length > (int) sizeof(line) - 2)
		length = (int) sizeof(line) - 2;
	smart_assert(length > 0 && length < (int) sizeof(line) - 1);
	line[length] = '\n';
	/* A log whose reader has gone must not stop the node. */
	if (write(STDERR_FILENO, line, (size_t) length + 1) < 0)
		return;
}

bool
memnode_refuse(char *problem, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(problem, MEMNODE_PROBLEM_MAX, format, arguments);
	va_end(arguments);
	return false;
}
