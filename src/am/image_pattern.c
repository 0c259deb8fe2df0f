/*
 * image_pattern.c - the fixed prefix of a LIKE pattern, for strategies 6 (~~) and 7 (^@)
 *
 * Bytes are looked at one by one: in every server encoding the bytes of a longer character are none of % _ and \.
 */
#include "postgres.h"

#include "am/image.h"

/* Is the rest of a LIKE pattern nothing but one or more %? */
static bool
only_percent(const char *rest, const char *end)
{
	const char *p = rest;

	while (p < end && *p == '%')
		p++;
	return p == end && p > rest;
}

/*
 * A backslash at the very end is an error to the operator once it gets there: then nothing is claimed, and the recheck
 * raises it.
 */
void
smart_pattern_prefix(int strategy, struct varlena *pattern, struct smart_prefix *prefix)
{
	const char *p = VARDATA_ANY(pattern);
	const char *end = p + VARSIZE_ANY_EXHDR(pattern);

	Assert(strategy == SMART_STRATEGY_LIKE || strategy == SMART_STRATEGY_STARTS);
	prefix->bytes = palloc(end - p + 1);
	prefix->length = 0;
	if (strategy == SMART_STRATEGY_STARTS)
	{
		memcpy(prefix->bytes, p, end - p);
		prefix->length = end - p;
		prefix->whole = false;
		prefix->open = true;
		return;
	}

	while (p < end && *p != '%' && *p != '_')
	{
		if (*p == '\\' && p + 1 == end)
			break;
		if (*p == '\\')
			p++;
		prefix->bytes[prefix->length++] = (uint8) *p++;
	}
	prefix->whole = p == end;
	prefix->open = only_percent(p, end);
	Assert(!(prefix->whole && prefix->open));
}
