/*
 * pattern.c
 *	  The fixed prefix of a pattern, for strategies 6 (~~), 7 (^@) and 10 (~).
 *
 * LIKE is read byte by byte: in every server encoding the bytes of a longer character are none of % _ and \.
 */
#include "postgres.h"

#include "utils/builtins.h"

#include "am/codec/normalizer.h"
#include "base/assert.h"

/*
 * A backslash at the very end is an error to the operator once it gets there: then nothing is claimed, and the recheck
 * raises it.
 */
static void
like_prefix(struct varlena *pattern, struct smart_prefix *prefix)
{
	const char *p = VARDATA_ANY(pattern);
	const char *end = p + VARSIZE_ANY_EXHDR(pattern);

	prefix->bytes = palloc(end - p + 1);
	prefix->length = 0;
	while (p < end && *p != '%' && *p != '_')
	{
		if (*p == '\\' && p + 1 == end)
			break;
		if (*p == '\\')
			p++;
		prefix->bytes[prefix->length++] = (uint8) *p++;
	}
	smart_assert(p <= end);
	prefix->whole = p == end;

	/* Is the rest nothing but one or more %? */
	while (p < end && *p == '%')
		p++;
	prefix->open = !prefix->whole && p == end;
}

void
smart_pattern_prefix(int strategy, struct varlena *pattern, Oid collation, struct smart_prefix *prefix)
{
	bool exact = false;
	char *fixed;

	switch (strategy)
	{
		case SMART_STRATEGY_LIKE:
			like_prefix(pattern, prefix);
			break;
		case SMART_STRATEGY_STARTS:
			prefix->length = VARSIZE_ANY_EXHDR(pattern);
			prefix->bytes = palloc(prefix->length + 1);
			memcpy(prefix->bytes, VARDATA_ANY(pattern), prefix->length);
			prefix->whole = false;
			prefix->open = true;
			break;
		case SMART_STRATEGY_REGEX:
			/* The server knows what all strings begin with that match, and whether that is the only one. */
			fixed = regexp_fixed_prefix(pattern, false, collation, &exact);
			prefix->bytes = (uint8 *) (fixed == NULL ? pstrdup("") : fixed);
			prefix->length = strlen((char *) prefix->bytes);
			prefix->whole = fixed != NULL && exact;
			prefix->open = false;
			break;
		default:
			elog(ERROR, "strategy %d is not a pattern", strategy);
	}
	smart_assert(prefix->length >= 0 && !(prefix->whole && prefix->open));
}
