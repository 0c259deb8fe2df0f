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

/*
 * Adds a string from outside as the content of an element or of an attribute in XML: what means something there is
 * written as a reference, and U+FFFD stands for bytes that are no UTF-8 and for characters that XML has not.
 */
extern void memnode_text_add_escaped(struct memnode_text *text, const char *string);

#endif /* MEMNODE_TEXT_H */
