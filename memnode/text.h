/*
 * text.h
 *	  A text that grows at its end.
 */
#ifndef MEMNODE_TEXT_H
#define MEMNODE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct memnode_text
{
	char *bytes; /* with a zero byte behind them; free() it; NULL: nothing was added */
	size_t length;
	size_t capacity;
	bool failed; /* no memory was left: the text is not complete */
};

extern void memnode_text_add(struct memnode_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif /* MEMNODE_TEXT_H */
