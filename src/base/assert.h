/*
 * assert.h
 *	  Assertions that stay on in every test build and vanish from production
 *	  builds, whose input must never reach one.
 */
#ifndef SMART_BASE_ASSERT_H
#define SMART_BASE_ASSERT_H

#ifdef SMART_ASSERTIONS
extern void smart_assert_failed(const char *condition, const char *file, int line) __attribute__((noreturn));
#define smart_assert(condition) ((condition) ? (void) 0 : smart_assert_failed(#condition, __FILE__, __LINE__))
#else
#define smart_assert(condition) ((void) sizeof(condition))
#endif

#define smart_likely(x)   __builtin_expect(!!(x), 1)
#define smart_unlikely(x) __builtin_expect(!!(x), 0)

#endif /* SMART_BASE_ASSERT_H */
