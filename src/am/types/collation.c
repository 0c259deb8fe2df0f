/*
 * collation.c
 *	  In what order a collation has strings, as far as bytes can tell.
 *
 * The server knows that of C, POSIX, its builtin collations and those of ICU.  Of the C library it knows nothing but
 * how two strings compare, and what is said here of such a collation is tried out on samples (samples.c) before anything
 * relies on it: each string is compared with each other one as the server would compare them.
 *
 * "C.UTF-8" has the order of code points since version 2.35 of glibc, and that is the order of bytes in UTF-8.  (Before,
 * distributions had orders of their own under this name.)
 */
#include "postgres.h"

#include <ctype.h>
#include <gnu/libc-version.h>

#include "catalog/pg_collation.h"
#include "catalog/pg_database.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

#include "am/types/collation.h"
#include "am/types/samples.h"
#include "base/assert.h"
#include "base/bytes.h"

#define VERSION(major, minor) (((uint32) (major) << 16) | (uint32) (minor))

/* From here on "C.UTF-8" is that of glibc itself */
#define CODE_POINTS_SINCE VERSION(2, 35)

/* Bytes of the longest sort key of a sample: several for each character, of which a sample has up to 110 */
#define SAMPLE_KEY_ROOM 4096

/* What was found out in this process */
struct known
{
	struct known *next;
	Oid collation;
	enum smart_collation_order order;
	bool keys_tried;
	const char *refusal; /* if they do not hold; else NULL */
};

/* A string and the bytes that are to have its place */
struct sample
{
	const char *string;
	const char *bytes;
	Size length; /* of bytes */
};

static struct known *all_known = NULL;

uint32
smart_libc_version(void)
{
	unsigned int major = 0;
	unsigned int minor = 0;

	if (sscanf(gnu_get_libc_version(), "%u.%u", &major, &minor) != 2)
		elog(ERROR, "the C library's version \"%s\" is not understood", gnu_get_libc_version());
	smart_assert(major > 0 && minor <= PG_UINT16_MAX);
	return VERSION(major, minor);
}

/* ---- trying out ---- */

/* Do the bytes of all pairs compare as their strings do?  If not, *wrong is set to the two strings that do not. */
static bool
try_samples(const struct sample *samples, int count, Oid collation, const char *wrong[2])
{
	for (int i = 0; i < count; i++)
	{
		for (int j = 0; j < i; j++)
		{
			const char *left = samples[i].string;
			const char *right = samples[j].string;
			int sign = varstr_cmp(left, (int) strlen(left), right, (int) strlen(right), collation);
			int by_bytes = smart_compare_bytes((const uint8 *) samples[i].bytes, samples[i].length,
											   (const uint8 *) samples[j].bytes, samples[j].length);

			smart_assert(by_bytes != 0);
			if (sign != 0 && (sign < 0) == (by_bytes < 0))
				continue;
			wrong[0] = left;
			wrong[1] = right;
			return false;
		}
	}
	return true;
}

static bool
has_order_of_bytes(Oid collation)
{
	struct sample *samples = palloc(smart_sample_characters_count * sizeof(struct sample));
	const char *wrong[2];
	bool good;

	for (int i = 0; i < smart_sample_characters_count; i++)
	{
		samples[i].string = samples[i].bytes = smart_sample_characters[i];
		samples[i].length = strlen(samples[i].string);
	}
	good = try_samples(samples, smart_sample_characters_count, collation, wrong);
	if (!good)
		ereport(LOG,
				errmsg("collation \"%s\" does not have the order of code points, as its name says",
					   get_collation_name(collation)),
				errdetail("It compares \"%s\" with \"%s\" otherwise.  Indexes of access method \"smart\" under it "
						  "have no order.",
						  wrong[0], wrong[1]));
	pfree(samples);
	return good;
}

/* A sample whose bytes are its sort key, a 00, and itself: as text.c makes a normalized key */
static void
set_keyed(struct sample *sample, const char *string, Oid collation)
{
	char *bytes = palloc(SAMPLE_KEY_ROOM + strlen(string) + 1);
	Size size = smart_sort_key(collation, string, strlen(string), bytes, SAMPLE_KEY_ROOM);

	if (size >= SAMPLE_KEY_ROOM)
		elog(ERROR, "a sort key of collation %u has %zu bytes", collation, size);
	strcpy(bytes + size + 1, string);
	sample->string = string;
	sample->bytes = bytes;
	sample->length = size + 1 + strlen(string);
}

/* Do sort keys, and then the strings' bytes, compare as the strings?  As try_samples() otherwise. */
static bool
has_order_of_keys(Oid collation, const char *wrong[2])
{
	int count = smart_sample_characters_count + smart_sample_words_count;
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "smart samples", ALLOCSET_DEFAULT_SIZES);
	MemoryContext before = MemoryContextSwitchTo(context);
	struct sample *samples = palloc(count * sizeof(struct sample));
	bool good;

	for (int i = 0; i < smart_sample_characters_count; i++)
		set_keyed(&samples[i], smart_sample_characters[i], collation);
	for (int i = 0; i < smart_sample_words_count; i++)
		set_keyed(&samples[smart_sample_characters_count + i], smart_sample_words[i], collation);
	good = try_samples(samples, count, collation, wrong);
	MemoryContextSwitchTo(before);
	MemoryContextDelete(context);
	return good;
}

/* ---- collations of the C library ---- */

/* "C.UTF-8" in any spelling that the C library takes: it leaves out what is no letter or digit, and the case */
static bool
is_c_utf8(const char *locale)
{
	char codeset[sizeof("utf8")];
	Size length = 0;

	if (strncmp(locale, "C.", 2) != 0)
		return false;
	for (locale += 2; *locale != '\0'; locale++)
	{
		if (!isalnum((unsigned char) *locale))
			continue;
		if (length == sizeof(codeset) - 1)
			return false;
		codeset[length++] = pg_ascii_tolower((unsigned char) *locale);
	}
	smart_assert(length < sizeof(codeset));
	codeset[length] = '\0';
	return strcmp(codeset, "utf8") == 0;
}

/* Is a catalog's row about "C.UTF-8" of the C library? */
static bool
row_is_c_utf8(int cache, HeapTuple row, char provider, AttrNumber locale_column)
{
	bool isnull;
	Datum locale;

	if (provider != COLLPROVIDER_LIBC)
		return false;
	locale = SysCacheGetAttr(cache, row, locale_column, &isnull);
	return !isnull && is_c_utf8(TextDatumGetCString(locale));
}

/* Is a collation, or that of the database, "C.UTF-8" of the C library? */
static bool
is_libc_c_utf8(Oid collation)
{
	bool of_database = collation == DEFAULT_COLLATION_OID;
	int cache = of_database ? DATABASEOID : COLLOID;
	HeapTuple row = SearchSysCache1(cache, ObjectIdGetDatum(of_database ? MyDatabaseId : collation));
	bool is;

	if (!HeapTupleIsValid(row))
		elog(ERROR, "cache lookup failed for collation %u", collation);
	if (of_database)
		is =
			row_is_c_utf8(cache, row, ((Form_pg_database) GETSTRUCT(row))->datlocprovider, Anum_pg_database_datcollate);
	else
		is = row_is_c_utf8(cache, row, ((Form_pg_collation) GETSTRUCT(row))->collprovider,
						   Anum_pg_collation_collcollate);
	ReleaseSysCache(row);
	return is;
}

static enum smart_collation_order
find_order(Oid collation)
{
	if (smart_orders_by_bytes(collation))
		return SMART_ORDER_BYTES;
	if (smart_has_sort_keys(collation))
		return SMART_ORDER_KEYS;
	if (GetDatabaseEncoding() == PG_UTF8 && smart_libc_version() >= CODE_POINTS_SINCE && is_libc_c_utf8(collation) &&
		has_order_of_bytes(collation))
		return SMART_ORDER_BYTES;
	return SMART_ORDER_UNKNOWN;
}

/* ---- the whole ---- */

static struct known *
know(Oid collation)
{
	struct known *known = all_known;
	enum smart_collation_order order;

	while (known != NULL && known->collation != collation)
		known = known->next;
	if (known != NULL)
		return known;
	order = find_order(collation);
	known = MemoryContextAllocZero(TopMemoryContext, sizeof(*known));
	known->collation = collation;
	known->order = order;
	known->next = all_known;
	all_known = known;
	return known;
}

enum smart_collation_order
smart_collation_order(Oid collation)
{
	smart_assert(OidIsValid(collation));
	return know(collation)->order;
}

/* Tries out the sort keys of a collation; returns why they cannot be relied on, in memory that stays, or NULL */
static const char *
find_refusal(Oid collation)
{
	const char *wrong[2];
	char *refusal;

	if (GetDatabaseEncoding() != PG_UTF8)
		refusal = psprintf("The database's encoding is %s, and sort keys of the C library are tried out in UTF8 only.",
						   GetDatabaseEncodingName());
	else if (!has_order_of_keys(collation, wrong))
		refusal = psprintf(
			"Under collation \"%s\" the C library's sort keys (strxfrm) of \"%s\" and \"%s\" compare otherwise "
			"than these strings do (strcoll).",
			get_collation_name(collation), wrong[0], wrong[1]);
	else
		return NULL;
	return MemoryContextStrdup(TopMemoryContext, refusal);
}

bool
smart_collation_keys_hold(Oid collation, const char **refusal)
{
	struct known *known = know(collation);

	smart_assert(known->order == SMART_ORDER_UNKNOWN);
	if (!known->keys_tried)
		known->refusal = find_refusal(collation);
	known->keys_tried = true;
	if (known->refusal != NULL)
		*refusal = known->refusal;
	return known->refusal == NULL;
}
