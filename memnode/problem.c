/*
 * problem.c
 *	  Why something cannot be done.
 */
#include <stdarg.h>
#include <stdio.h>

#include "problem.h"

bool
memnode_refuse(char *problem, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(problem, MEMNODE_PROBLEM_MAX, format, arguments);
	va_end(arguments);
	return false;
}
