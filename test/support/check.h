/*
 * check.h
 *	  Counting checks of a test program.
 */
#ifndef TEST_CHECK_H
#define TEST_CHECK_H

#include <stdbool.h>

/* Counts; a failure is printed with its place and what was checked.  Threads may call it. */
#define CHECK(condition) check_at((condition), #condition, __FILE__, __LINE__)

extern bool check_at(bool condition, const char *text, const char *file, int line);

/* Prints "N passed, N failed"; the program's exit status. */
extern int check_finish(void);

#endif /* TEST_CHECK_H */
