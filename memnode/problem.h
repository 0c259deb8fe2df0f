/*
 * problem.h
 *	  Why something cannot be done, as a phrase for the operator.
 */
#ifndef MEMNODE_PROBLEM_H
#define MEMNODE_PROBLEM_H

#include <limits.h>
#include <stdbool.h>

#define MEMNODE_PROBLEM_MAX (PATH_MAX + 256)

/* Writes the phrase to problem[MEMNODE_PROBLEM_MAX], which its arguments must not contain, and returns false. */
extern bool memnode_refuse(char *problem, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif /* MEMNODE_PROBLEM_H */
