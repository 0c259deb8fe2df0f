/*
 * text.c
 *	  Normalized keys of text (and varchar), name and bpchar, and of citext, a type of the extension of that name.
 *
 * The normalized key is the string's bytes and a 00, which no string contains.  Under C, POSIX, the server's builtin
 * collations and C.UTF-8 that is also the order, and the operators of the pattern classes compare bytes whatever the
 * collation is.
 *
 * Under a collation of ICU the string's sort key and a 00 come first.  Strings that the collation puts level with each
 * other compare by their bytes.  But most strings can be guessed from their sort key (guess.h): so a byte follows that
 * says whether the string is the guess, lies before it, or lies behind it, and the string and a 00 only if it is not the
 * guess.  If the collation is nondeterministic and takes strings for equal, there is nothing but the sort key.
 *
 * Under another collation of the C library there are no sort keys to be trusted, and the bytes serve equality alone;
 * but the classes text_libc_ops and the like take its sort keys, each with a 00 and then the string and a 00, if they
 * hold where they are tried out.
 *
 * A citext is the string in lower case, as the locale of the database has it, whatever the column's collation is.  Two
 * of them are equal if these strings are.
 */
#include "postgres.h"

#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/formatting.h"
#include "utils/lsyscache.h"
#include "utils/pg_locale.h"
#include "utils/varlena.h"

#include "am/codec/normalizer.h"
#include "am/types/collation.h"
#include "am/types/guess.h"

/* Sort keys that are longer take two calls */
#define KEY_ROOM (SMART_GUESS_MAX + 1)

/* bpchar(n) above this is not returned by index-only scans: its padding might make an IndexTuple too large */
#define BPCHAR_RETURNABLE_MAX 2000

/* What normalized keys under a collation are made of */
struct makeup
{
	bool has_key;   /* the sort key and 00 */
	bool has_guess; /* an enum against_guess */
	bool has_bytes; /* the string and 00; not if it is the guess */
};

static const struct makeup bytes_only = {.has_bytes = true};
static const struct makeup key_only = {.has_key = true};
static const struct makeup key_and_bytes = {.has_key = true, .has_bytes = true};
static const struct makeup key_and_guess = {.has_key = true, .has_guess = true, .has_bytes = true};

/* Mixed into the version of sort keys: indexes that were made when the string stood behind each of them are made anew */
#define GUESS_FORM 0x67756573

/* Where a string lies among those of its sort key: the bytes that say so have the same order */
enum against_guess
{
	BEFORE_GUESS = 1,
	IS_GUESS = 2,
	BEHIND_GUESS = 3 /* or there is no guess */
};

static const struct makeup *
makeup_of(const struct smart_normalizer *normalizer)
{
	return (const struct makeup *) normalizer->details;
}

/* Writes what tells a string from others of its sort key, behind that */
static uint8 *
put_difference(const struct smart_normalizer *normalizer, uint8 *out, uint8 *limit, const char *key, Size size,
			   const char *string, Size length)
{
	uint8 guess[SMART_GUESS_MAX];
	int guessed = smart_guess(smart_guesser_of(normalizer->collation), (const uint8 *) key, size, guess);
	int order = guessed < 0 ? 1 : smart_compare_bytes((const uint8 *) string, length, guess, (Size) guessed);

	if (order == 0)
		return smart_put_byte(out, limit, IS_GUESS);
	out = smart_put_byte(out, limit, order < 0 ? BEFORE_GUESS : BEHIND_GUESS);
	return smart_put_string(out, limit, string, length);
}

/* Writes a string's sort key and 00, and what is behind that but for the whole string */
static uint8 *
put_key(const struct smart_normalizer *normalizer, uint8 *out, uint8 *limit, const char *string, Size length)
{
	char some[KEY_ROOM];
	char *key = some;
	Size size = smart_sort_key(normalizer->collation, string, length, key, KEY_ROOM);

	if (size >= KEY_ROOM)
	{
		key = palloc(size + 1);
		(void) smart_sort_key(normalizer->collation, string, length, key, size + 1);
	}
	smart_assert(key == some ? size < KEY_ROOM : size >= KEY_ROOM);
	out = smart_put_string(out, limit, key, size);
	if (makeup_of(normalizer)->has_guess)
		out = put_difference(normalizer, out, limit, key, size, string, length);
	if (key != some)
		pfree(key);
	return out;
}

/* Writes a string's normalized key */
static uint8 *
put_normalized(const struct smart_normalizer *normalizer, uint8 *out, uint8 *limit, const char *string, Size length)
{
	const struct makeup *makeup = makeup_of(normalizer);

	smart_assert(out <= limit && (makeup->has_key || makeup->has_bytes));
	if (makeup->has_key)
		out = put_key(normalizer, out, limit, string, length);
	return makeup->has_bytes && !makeup->has_guess ? smart_put_string(out, limit, string, length) : out;
}

static const uint8 *
string_end(const struct smart_normalizer *normalizer, const uint8 *bytes, const uint8 *limit, uint8 flip)
{
	const struct makeup *makeup = makeup_of(normalizer);
	const uint8 *end = smart_string_end(bytes, limit, flip);
	uint8 against = BEHIND_GUESS;

	if (makeup->has_guess)
		end = smart_get_byte(end, limit, flip, &against);
	return makeup->has_key && makeup->has_bytes && against != IS_GUESS ? smart_string_end(end, limit, flip) : end;
}

/* The string in a normalized key that has its bytes, and its length; guess: room for SMART_GUESS_MAX bytes */
static const uint8 *
get_string(const struct smart_normalizer *normalizer, const uint8 *bytes, int length, uint8 *guess, int *string_length)
{
	const struct makeup *makeup = makeup_of(normalizer);
	const uint8 *string = bytes;

	smart_assert(makeup->has_bytes);
	/* A key that has its string ends with 00. */
	if (makeup->has_guess && bytes[length - 1] == IS_GUESS)
	{
		*string_length = smart_guess(smart_guesser_of(normalizer->collation), bytes, length - 2, guess);
		if (*string_length < 0)
			ereport(ERROR, errcode(ERRCODE_DATA_CORRUPTED),
					errmsg("a sort key of collation \"%s\" tells of no string",
						   get_collation_name(normalizer->collation)),
					errhint("Rebuild the index with REINDEX."));
		return guess;
	}
	if (makeup->has_key)
		string = (const uint8 *) memchr(bytes, 0, length) + 1;
	string += makeup->has_guess;
	*string_length = bytes + length - 1 - string;
	return string;
}

static uint8 *
text_encode(const struct smart_normalizer *normalizer, Datum value, uint8 *out, uint8 *limit)
{
	struct varlena *text = PG_DETOAST_DATUM_PACKED(value);

	out = put_normalized(normalizer, out, limit, VARDATA_ANY(text), VARSIZE_ANY_EXHDR(text));
	smart_free_copy(text, value);
	return out;
}

static Datum
text_decode(const struct smart_normalizer *normalizer, const uint8 *bytes, int length, const uint8 *residue,
			char *space)
{
	uint8 guess[SMART_GUESS_MAX];
	/* A guess is no longer than its sort key.  A short one is written to where it stays. */
	uint8 *place = length + VARHDRSZ_SHORT <= VARATT_SHORT_MAX ? (uint8 *) space + VARHDRSZ_SHORT : guess;
	const uint8 *string = get_string(normalizer, bytes, length, place, &length);

	if (string == guess || string != place)
		return smart_make_varlena(space, string, length);
	SET_VARSIZE_SHORT(space, length + VARHDRSZ_SHORT);
	return PointerGetDatum(space);
}

static enum smart_argument_place
text_place(const struct smart_normalizer *normalizer, Datum argument, Oid argtype, Datum *value, Datum *high)
{
	if (argtype != NAMEOID)
		elog(ERROR, "type %u cannot be compared with text", argtype);
	*value = CStringGetTextDatum(NameStr(*DatumGetName(argument)));
	return SMART_ARGUMENT_AT;
}

/*
 * Text, name and bpchar (rtrim): the prefix of a pattern as the beginning of a normalized key.  Sort keys tell nothing
 * about the beginnings of strings.
 */
static uint8 *
string_pattern(const struct smart_normalizer *normalizer, int strategy, Datum pattern, uint8 *out, uint8 *limit,
			   bool *exact, bool *recheck)
{
	struct smart_prefix prefix;
	uint8 *end;

	smart_pattern_prefix(strategy, PG_DETOAST_DATUM_PACKED(pattern), normalizer->collation, &prefix);
	*exact = prefix.whole;
	*recheck = !prefix.whole && !prefix.open;

	/* A bpchar's blanks are matched by the pattern, but they are not in the normalized key */
	if (normalizer->type == BPCHAROID)
	{
		int trimmed = bpchartruelen((char *) prefix.bytes, prefix.length);

		*recheck = *recheck || prefix.whole || trimmed < prefix.length;
		prefix.length = trimmed;
	}

	if (prefix.whole && makeup_of(normalizer)->has_bytes)
		end = put_normalized(normalizer, out, limit, (char *) prefix.bytes, prefix.length);
	else if (makeup_of(normalizer)->has_key)
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
	smart_assert(end == NULL || (end >= out && end <= limit));
	return end == NULL ? limit : end;
}

static uint8 *
name_encode(const struct smart_normalizer *normalizer, Datum value, uint8 *out, uint8 *limit)
{
	const char *name = NameStr(*DatumGetName(value));

	return put_normalized(normalizer, out, limit, name, strnlen(name, NAMEDATALEN - 1));
}

static Datum
name_decode(const struct smart_normalizer *normalizer, const uint8 *bytes, int length, const uint8 *residue,
			char *space)
{
	uint8 guess[SMART_GUESS_MAX];
	const uint8 *string = get_string(normalizer, bytes, length, guess, &length);

	memset(space, 0, NAMEDATALEN);
	memcpy(space, string, Min(length, NAMEDATALEN - 1));
	return PointerGetDatum(space);
}

/* A text too long for a name lies right behind the name that it begins with, where bytes are compared */
static enum smart_argument_place
name_place(const struct smart_normalizer *normalizer, Datum argument, Oid argtype, Datum *value, Datum *high)
{
	struct varlena *text = PG_DETOAST_DATUM_PACKED(argument);
	Size length = VARSIZE_ANY_EXHDR(text);
	Name name = palloc0(NAMEDATALEN);

	if (argtype != TEXTOID)
		elog(ERROR, "type %u cannot be compared with a name", argtype);
	memcpy(NameStr(*name), VARDATA_ANY(text), Min(length, NAMEDATALEN - 1));
	*value = NameGetDatum(name);
	if (length < NAMEDATALEN)
		return SMART_ARGUMENT_AT;
	return makeup_of(normalizer)->has_key ? SMART_ARGUMENT_UNKNOWN : SMART_ARGUMENT_ABOVE;
}

static uint8 *
bpchar_encode(const struct smart_normalizer *normalizer, Datum value, uint8 *out, uint8 *limit)
{
	struct varlena *text = PG_DETOAST_DATUM_PACKED(value);
	int length = bpchartruelen(VARDATA_ANY(text), VARSIZE_ANY_EXHDR(text));

	out = put_normalized(normalizer, out, limit, VARDATA_ANY(text), length);
	smart_free_copy(text, value);
	return out;
}

/* bpchar(n) always has n characters, so the blanks can be put back */
static Datum
bpchar_decode(const struct smart_normalizer *normalizer, const uint8 *bytes, int length, const uint8 *residue,
			  char *space)
{
	uint8 guess[SMART_GUESS_MAX];
	int used;
	const uint8 *string = get_string(normalizer, bytes, length, guess, &used);
	int blanks = normalizer->typmod - VARHDRSZ - pg_mbstrlen_with_len((const char *) string, used);
	char *data;

	blanks = Max(blanks, 0);
	smart_assert(blanks <= normalizer->decode_extra);
	data = smart_begin_varlena(space, used + blanks);
	memcpy(data, string, used);
	memset(data + used, ' ', blanks);
	return PointerGetDatum(space);
}

static uint8 *
citext_encode(const struct smart_normalizer *normalizer, Datum value, uint8 *out, uint8 *limit)
{
	struct varlena *text = PG_DETOAST_DATUM_PACKED(value);
	char *lower = str_tolower(VARDATA_ANY(text), VARSIZE_ANY_EXHDR(text), DEFAULT_COLLATION_OID);

	out = put_normalized(normalizer, out, limit, lower, strlen(lower));
	pfree(lower);
	smart_free_copy(text, value);
	return out;
}

/* The operator classes that a type of strings has */
enum string_class
{
	CLASS_DEFAULT,
	CLASS_PATTERN, /* the operators compare bytes */
	CLASS_LIBC     /* sort keys of the C library are trusted */
};

/* Sets what the order of a column's strings depends on */
static void
set_order(struct smart_normalizer *normalizer, enum string_class class)
{
	Oid collation = normalizer->collation;
	enum smart_collation_order order = class == CLASS_PATTERN ? SMART_ORDER_BYTES : smart_collation_order(collation);
	const struct makeup *makeup = order == SMART_ORDER_KEYS ? &key_and_guess : &key_and_bytes;

	if (order == SMART_ORDER_KEYS)
		normalizer->version = smart_sort_key_version(collation);
	if (order == SMART_ORDER_KEYS && get_collation_isdeterministic(collation))
		normalizer->version ^= GUESS_FORM;
	if (order == SMART_ORDER_UNKNOWN && class == CLASS_LIBC &&
		smart_collation_keys_hold(collation, &normalizer->refusal))
	{
		normalizer->version = smart_libc_version();
		order = SMART_ORDER_KEYS;
	}
	normalizer->unordered = order == SMART_ORDER_UNKNOWN;
	normalizer->no_patterns = order == SMART_ORDER_KEYS;
	normalizer->details = &bytes_only;
	if (order == SMART_ORDER_KEYS)
		normalizer->details = get_collation_isdeterministic(collation) ? makeup : &key_only;
	normalizer->forgets = normalizer->forgets || normalizer->details == &key_only;
	normalizer->verbatim = normalizer->details == &bytes_only && normalizer->decode == text_decode;
}

/* What keys are made of under the column's collation; the errors are those that the comparisons would raise later */
static void
finish_string(struct smart_normalizer *normalizer, enum string_class class)
{
	if (!OidIsValid(normalizer->collation))
		ereport(ERROR, errcode(ERRCODE_INDETERMINATE_COLLATION),
				errmsg("could not determine the collation of a column of index \"%s\"", normalizer->index_name),
				errhint("Name it with the COLLATE clause."));
	if (class == CLASS_PATTERN && !get_collation_isdeterministic(normalizer->collation))
		ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("a pattern operator class of index \"%s\" cannot have a nondeterministic collation",
					   normalizer->index_name),
				errdetail("The operators of the class compare bytes, which does not tell that different strings are "
						  "equal."),
				errhint("Use the default operator class, or a deterministic collation."));

	set_order(normalizer, class);

	/* The blanks of bpchar(n) are put back, if n is known. */
	if (normalizer->encode == bpchar_encode &&
		(normalizer->typmod < VARHDRSZ || normalizer->typmod - VARHDRSZ > BPCHAR_RETURNABLE_MAX))
		normalizer->forgets = true;
	else if (normalizer->encode == bpchar_encode && !normalizer->forgets)
		normalizer->decode_extra = normalizer->typmod - VARHDRSZ;
	if (normalizer->forgets)
		normalizer->decode = NULL;
	smart_assert(normalizer->forgets || makeup_of(normalizer)->has_bytes);
}

static void
finish_collated(struct smart_normalizer *normalizer)
{
	finish_string(normalizer, CLASS_DEFAULT);
}

static void
finish_pattern(struct smart_normalizer *normalizer)
{
	finish_string(normalizer, CLASS_PATTERN);
}

static void
finish_libc(struct smart_normalizer *normalizer)
{
	finish_string(normalizer, CLASS_LIBC);
}

/* Its "=" compares bytes under every collation, and tells apart what a nondeterministic one does not */
static void
finish_citext(struct smart_normalizer *normalizer)
{
	if (OidIsValid(normalizer->collation) && !get_collation_isdeterministic(normalizer->collation))
		ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("a column of type citext in index \"%s\" cannot have a nondeterministic collation",
					   normalizer->index_name),
				errhint("Use type text under that collation, or citext under a deterministic one."));
	finish_string(normalizer, CLASS_DEFAULT);
}

#define STRING(type) .encode = type##_encode, .end = string_end, .decode = type##_decode, .pattern = string_pattern
#define LONG(type)   STRING(type), .squeezable = true
#define CITEXT       .forgets = true, .encode = citext_encode, .end = string_end, .squeezable = true

SMART_NORMALIZER(text, finish_collated, LONG(text), .place = text_place);
SMART_NORMALIZER(text_pattern, finish_pattern, LONG(text), .place = text_place);
SMART_NORMALIZER(text_libc, finish_libc, LONG(text));
SMART_NORMALIZER(name, finish_collated, STRING(name), .place = name_place);
SMART_NORMALIZER(bpchar, finish_collated, LONG(bpchar));
SMART_NORMALIZER(bpchar_pattern, finish_pattern, LONG(bpchar));
SMART_NORMALIZER(bpchar_libc, finish_libc, LONG(bpchar));
SMART_NORMALIZER(citext, finish_citext, CITEXT);
SMART_NORMALIZER(citext_pattern, finish_pattern, CITEXT);
