/*
 * cursor.h
 *	  Cursors: positions between entries.
 */
#ifndef SMART_TREE_CURSOR_H
#define SMART_TREE_CURSOR_H

#include "tree/step/place.h"
#include "tree/tree.h"

/* A position between entries from which a walk goes on; its key leads to what comes next. */
struct smart_cursor
{
	uint8_t *bytes; /* SMART_KEY_MAX + 1 */
	uint32_t length;
	uint8_t pad; /* 0x00 forward, 0xff backward */
	bool backward;
	bool end; /* nothing comes next */
};

static inline struct smart_key
smart_cursor_key(const struct smart_cursor *cursor)
{
	return (struct smart_key){.bytes = cursor->bytes, .length = cursor->length, .pad = cursor->pad};
}

extern smart_status smart_cursor_init(struct smart_cursor *cursor, struct smart_env *env);
extern void smart_cursor_done(struct smart_cursor *cursor, struct smart_env *env);
/* Behind (backward: before) all keys that share the cursor's first depth bytes and have byte there. */
extern smart_status smart_cursor_pass(struct smart_cursor *cursor, unsigned int depth, unsigned int byte);
/* Has the cursor left the range that ends, in its direction, at bound?  Length 0: no end. */
extern bool smart_cursor_past(const struct smart_cursor *cursor, const uint8_t *bound, size_t length);
/* Behind (before) what an empty or mismatching place stands for. */
extern smart_status smart_cursor_skip(struct smart_cursor *cursor, const struct smart_place *place);

#endif /* SMART_TREE_CURSOR_H */
