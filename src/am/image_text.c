/*
 * image_text.c - images of text (and varchar), name and bpchar
 *
 * The image is the string's bytes and a 00, which no string contains.  Under C, POSIX and the server's builtin
 * collations that is also the order, and the operators of the pattern classes compare bytes whatever the collation is.
 *
 * Under a collation of ICU the string's sort key and a 00 are in front of that, as a string that the collation puts
 * level with another one compares by its bytes; but not if it is nondeterministic and takes them for equal: then there
 * is nothing but the sort key.
 *
 * Under a collation of the C library there are no sort keys to be trusted, and the bytes serve equality alone.
 */
#include "postgres.h"

#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/pg_locale.h"
#include "utils/varlena.h"

#include "am/image.h"

/* Sort keys that are longer take two calls */
#define KEY_ROOM 512

/* bpchar(n) above this is not returned by index-only scans: its padding might make an IndexTuple too large */
#define BPCHAR_RETURNABLE_MAX 2000

SMART_IMAGE_FUNCTION(smart_image_text);
SMART_IMAGE_FUNCTION(smart_image_text_pattern);
SMART_IMAGE_FUNCTION(smart_image_name);
SMART_IMAGE_FUNCTION(smart_image_bpchar);
SMART_IMAGE_FUNCTION(smart_image_bpchar_pattern);

/* What images under a collation are made of */
struct makeup
{
	bool has_key;   /* the sort key and 00 */
	bool has_bytes; /* the string and 00 */
};

static const struct makeup bytes_only = {.has_bytes = true};
static const struct makeup key_only = {.has_key = true};
static const struct makeup key_and_bytes = {.has_key = true, .has_bytes = true};

static const struct makeup *
makeup_of(const struct smart_image *image)
{
	return (const struct makeup *) image->details;
}

/* Writes bytes and the final 00 */
static uint8 *
put_string(uint8 *out, uint8 *limit, const char *bytes, Size length)
{
	Assert(memchr(bytes, 0, length) == NULL);
	out = smart_put_bytes(out, limit, bytes, length);
	if (out == NULL || out == limit)
		return NULL;
	*out = 0;
	return out + 1;
}

/* Writes a string's sort key and 00 */
static uint8 *
put_key(const struct smart_image *image, uint8 *out, uint8 *limit, const char *string, Size length)
{
	char some[KEY_ROOM];
	char *key = some;
	Size size = smart_sort_key(image->collation, string, length, key, KEY_ROOM);

	if (size >= KEY_ROOM)
	{
		key = palloc(size + 1);
		(void) smart_sort_key(image->collation, string, length, key, size + 1);
	}
	out = put_string(out, limit, key, size);
	if (key != some)
		pfree(key);
	return out;
}

/* Writes a string's image */
static uint8 *
put_image(const struct smart_image *image, uint8 *out, uint8 *limit, const char *string, Size length)
{
	if (makeup_of(image)->has_key)
		out = put_key(image, out, limit, string, length);
	if (makeup_of(image)->has_bytes && out != NULL)
		out = put_string(out, limit, string, length);
	return out;
}

static const uint8 *
string_end(const struct smart_image *image, const uint8 *bytes, const uint8 *limit, uint8 flip)
{
	const uint8 *last = memchr(bytes, flip, limit - bytes);

	if (last != NULL && makeup_of(image) == &key_and_bytes)
		last = memchr(last + 1, flip, limit - last - 1);
	return last == NULL ? NULL : last + 1;
}

/* The string in an image that has its bytes, and its length */
static const uint8 *
get_string(const struct smart_image *image, const uint8 *bytes, int length, int *string_length)
{
	const uint8 *string = bytes;

	Assert(makeup_of(image)->has_bytes);
	if (makeup_of(image)->has_key)
		string = (const uint8 *) memchr(bytes, 0, length) + 1;
	*string_length = bytes + length - 1 - string;
	return string;
}

static uint8 *
text_encode(const struct smart_image *image, Datum value, uint8 *out, uint8 *limit)
{
	struct varlena *text = PG_DETOAST_DATUM_PACKED(value);
	uint8 *end = put_image(image, out, limit, VARDATA_ANY(text), VARSIZE_ANY_EXHDR(text));

	if (unlikely(PointerGetDatum(text) != value))
		pfree(text);
	return end;
}

static Datum
text_decode(const struct smart_image *image, const uint8 *bytes, int length, const uint8 *residue, char *space)
{
	const uint8 *string = get_string(image, bytes, length, &length);

	return smart_make_varlena(space, string, length);
}

static enum smart_place
text_place(const struct smart_image *image, Datum argument, Oid argtype, Datum *value, Datum *high)
{
	if (argtype != NAMEOID)
		elog(ERROR, "type %u cannot be compared with text", argtype);
	*value = CStringGetTextDatum(NameStr(*DatumGetName(argument)));
	return SMART_PLACE_AT;
}

/*
 * Text, name and bpchar (rtrim): the prefix of a pattern as the beginning of an image.  Sort keys tell nothing about
 * the beginnings of strings.
 */
static uint8 *
string_pattern(const struct smart_image *image, int strategy, Datum pattern, uint8 *out, uint8 *limit, bool *exact,
			   bool *recheck)
{
	struct smart_prefix prefix;
	uint8 *end;

	smart_pattern_prefix(strategy, PG_DETOAST_DATUM_PACKED(pattern), image->collation, &prefix);
	*exact = prefix.whole;
	*recheck = !prefix.whole && !prefix.open;

	/* A bpchar's blanks are matched by the pattern, but they are not in the image */
	if (image->type == BPCHAROID)
	{
		int trimmed = bpchartruelen((char *) prefix.bytes, prefix.length);

		*recheck = *recheck || prefix.whole || trimmed < prefix.length;
		prefix.length = trimmed;
	}

	if (prefix.whole && makeup_of(image)->has_bytes)
		end = put_image(image, out, limit, (char *) prefix.bytes, prefix.length);
	else if (makeup_of(image)->has_key)
	{
		end = out;
		*exact = false;
		*recheck = true;
	}
	else
		end = smart_put_bytes(out, limit, prefix.bytes, prefix.length);
	if (end == NULL)
		*exact = false;
	pfree(prefix.bytes);
	return end == NULL ? limit : end;
}

static uint8 *
name_encode(const struct smart_image *image, Datum value, uint8 *out, uint8 *limit)
{
	const char *name = NameStr(*DatumGetName(value));

	return put_image(image, out, limit, name, strnlen(name, NAMEDATALEN - 1));
}

static Datum
name_decode(const struct smart_image *image, const uint8 *bytes, int length, const uint8 *residue, char *space)
{
	const uint8 *string = get_string(image, bytes, length, &length);

	memset(space, 0, NAMEDATALEN);
	memcpy(space, string, Min(length, NAMEDATALEN - 1));
	return PointerGetDatum(space);
}

/* A text too long for a name lies right behind the name that it begins with, where bytes are compared */
static enum smart_place
name_place(const struct smart_image *image, Datum argument, Oid argtype, Datum *value, Datum *high)
{
	struct varlena *text = PG_DETOAST_DATUM_PACKED(argument);
	Size length = VARSIZE_ANY_EXHDR(text);
	Name name = palloc0(NAMEDATALEN);

	if (argtype != TEXTOID)
		elog(ERROR, "type %u cannot be compared with a name", argtype);
	memcpy(NameStr(*name), VARDATA_ANY(text), Min(length, NAMEDATALEN - 1));
	*value = NameGetDatum(name);
	if (length < NAMEDATALEN)
		return SMART_PLACE_AT;
	return makeup_of(image)->has_key ? SMART_PLACE_UNKNOWN : SMART_PLACE_ABOVE;
}

static uint8 *
bpchar_encode(const struct smart_image *image, Datum value, uint8 *out, uint8 *limit)
{
	struct varlena *text = PG_DETOAST_DATUM_PACKED(value);
	int length = bpchartruelen(VARDATA_ANY(text), VARSIZE_ANY_EXHDR(text));
	uint8 *end = put_image(image, out, limit, VARDATA_ANY(text), length);

	if (unlikely(PointerGetDatum(text) != value))
		pfree(text);
	return end;
}

/* bpchar(n) always has n characters, so the blanks can be put back */
static Datum
bpchar_decode(const struct smart_image *image, const uint8 *bytes, int length, const uint8 *residue, char *space)
{
	int used;
	const uint8 *string = get_string(image, bytes, length, &used);
	int blanks = image->typmod - VARHDRSZ - pg_mbstrlen_with_len((const char *) string, used);

	blanks = Max(blanks, 0);
	if (used + blanks + VARHDRSZ_SHORT <= VARATT_SHORT_MAX)
		SET_VARSIZE_SHORT(space, used + blanks + VARHDRSZ_SHORT);
	else
		SET_VARSIZE(space, used + blanks + VARHDRSZ);
	memcpy(VARDATA_ANY(space), string, used);
	memset(VARDATA_ANY(space) + used, ' ', blanks);
	return PointerGetDatum(space);
}

/* Raised when the index is made, as the comparison functions would later */
static void
check_collation(const struct smart_image *image, bool pattern_class)
{
	if (!OidIsValid(image->collation))
		ereport(ERROR, errcode(ERRCODE_INDETERMINATE_COLLATION),
				errmsg("could not determine the collation of a column of index \"%s\"", image->index_name),
				errhint("Name it with the COLLATE clause."));
	if (pattern_class && !get_collation_isdeterministic(image->collation))
		ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("a pattern operator class of index \"%s\" cannot have a nondeterministic collation",
					   image->index_name),
				errdetail("The operators of the class compare bytes, which does not tell that different strings are "
						  "equal."),
				errhint("Use the default operator class, or a deterministic collation."));
}

static Datum
set_string(FunctionCallInfo fcinfo, const struct smart_image *form, bool pattern_class)
{
	struct smart_image *image = (struct smart_image *) DatumGetPointer(smart_image_set(fcinfo, form));

	check_collation(image, pattern_class);
	image->details = &bytes_only;
	if (pattern_class || smart_orders_by_bytes(image->collation))
		return PointerGetDatum(image);
	image->unordered = !smart_has_sort_keys(image->collation);
	image->no_patterns = !image->unordered;
	if (image->unordered)
		return PointerGetDatum(image);
	image->version = smart_sort_key_version(image->collation);
	if (get_collation_isdeterministic(image->collation))
		image->details = &key_and_bytes;
	else
	{
		image->details = &key_only;
		image->forgets = true;
		image->decode = NULL;
	}
	return PointerGetDatum(image);
}

static Datum
set_bpchar(FunctionCallInfo fcinfo, bool pattern_class)
{
	static const struct smart_image form = {.encode = bpchar_encode,
											.end = string_end,
											.decode = bpchar_decode,
											.pattern = string_pattern};
	struct smart_image *image = (struct smart_image *) DatumGetPointer(set_string(fcinfo, &form, pattern_class));

	if (image->typmod < VARHDRSZ || image->typmod - VARHDRSZ > BPCHAR_RETURNABLE_MAX)
		image->forgets = true;
	if (!image->forgets)
		image->decode_extra = image->typmod - VARHDRSZ;
	return PointerGetDatum(image);
}

static const struct smart_image text_form = {.encode = text_encode,
											 .end = string_end,
											 .decode = text_decode,
											 .place = text_place,
											 .pattern = string_pattern};

Datum
smart_image_text(PG_FUNCTION_ARGS)
{
	return set_string(fcinfo, &text_form, false);
}

Datum
smart_image_text_pattern(PG_FUNCTION_ARGS)
{
	return set_string(fcinfo, &text_form, true);
}

Datum
smart_image_name(PG_FUNCTION_ARGS)
{
	static const struct smart_image form = {.encode = name_encode,
											.end = string_end,
											.decode = name_decode,
											.place = name_place,
											.pattern = string_pattern};

	return set_string(fcinfo, &form, false);
}

Datum
smart_image_bpchar(PG_FUNCTION_ARGS)
{
	return set_bpchar(fcinfo, false);
}

Datum
smart_image_bpchar_pattern(PG_FUNCTION_ARGS)
{
	return set_bpchar(fcinfo, true);
}
