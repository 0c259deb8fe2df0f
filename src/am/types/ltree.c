/*
 * ltree.c
 *	  Normalized keys of ltree, a type of the extension of that name.
 *
 * Paths compare label by label, and labels by their bytes.  So each label is followed by 01, or the last one by 00: what
 * a label may have is above both.  A path without labels is the 00 alone.
 */
#include "postgres.h"

#include "fmgr.h"

#include "am/codec/normalizer.h"

#define BETWEEN_LABELS 0x01

/* As the extension stores it, since its first version */
struct label
{
	uint16 length;
	char bytes[FLEXIBLE_ARRAY_MEMBER];
};

struct path
{
	int32 header;
	uint16 count;
	uint16 unused;
	char labels[FLEXIBLE_ARRAY_MEMBER]; /* each has a multiple of MAXALIGN bytes */
};

StaticAssertDecl(offsetof(struct path, labels) == MAXALIGN(offsetof(struct path, unused)), "labels are aligned");

static uint8 *
ltree_encode(const struct smart_normalizer *normalizer, Datum value, uint8 *out, uint8 *limit)
{
	struct path *path = (struct path *) PG_DETOAST_DATUM(value);
	const char *place = path->labels;

	for (int i = 0; i < path->count; i++)
	{
		const struct label *label = (const struct label *) place;

		smart_assert(place + label->length < (char *) path + VARSIZE(path));
		if (i > 0)
			out = smart_put_byte(out, limit, BETWEEN_LABELS);
		out = smart_put_bytes(out, limit, label->bytes, label->length);
		place += MAXALIGN(offsetof(struct label, bytes) + label->length);
	}
	smart_free_copy(path, value);
	return smart_put_byte(out, limit, 0);
}

static const uint8 *
ltree_end(const struct smart_normalizer *normalizer, const uint8 *bytes, const uint8 *limit, uint8 flip)
{
	return smart_string_end(bytes, limit, flip);
}

SMART_NORMALIZER(ltree, NULL, .forgets = true, .encode = ltree_encode, .end = ltree_end);
