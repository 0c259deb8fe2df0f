/*
 * encode.h
 *	  How rows become entries, and conditions become byte ranges.
 *
 * An entry of an index is a byte string, compared with memcmp:
 *
 *	entry   = column ... column  TID  payload
 *	column  = null byte  normalized key		one per key column
 *	TID     = compact if entries differ in length, else plain: see base/tid.h
 *	payload = residues  included columns  [length]
 *
 * - The null byte is SMART_NOT_NULL, or for a NULL 0x00 (NULLS FIRST) or 0x02 (NULLS LAST).
 * - The type's normalizer (support function 11 of the operator class) makes the normalized key.  Values that are equal
 *   in SQL have the same one, none is a prefix of another one, and if the type can say so they sort like the values.  A
 *   descending column holds the complement of each of its bytes.  A NULL has zero bytes in place of a normalized key of
 *   fixed width, and nothing in place of another one.
 * - "columns, TID" is the key: it is unique and no key is a prefix of another one.
 * - Long normalized keys of some types are squeezed, without a change of all that (squeeze.h).
 * - Residues: what the normalized keys of lossy types forget (the sign of a zero, say), fixed width.  Included columns:
 *   one byte (0 NULL, 1 value), then a fixed-length type's bytes as PostgreSQL stores them (zeros for NULL) or the
 *   varlena with its header, compressed if it is long and its column's storage allows it.  The same row may have
 *   another payload later, since a column's method of compression can change: so entries are told apart by their keys.
 *   If the payload has no fixed width, its last two bytes are its length without them, big-endian.
 *
 * So an index whose columns are all of fixed width has entries of one length, and no length need be stored.
 */
#ifndef SMART_ENCODE_H
#define SMART_ENCODE_H

#include "access/itup.h"
#include "access/stratnum.h"
#include "storage/itemptr.h"
#include "utils/rel.h"

#include "base/tid.h"
#include "tree/layout.h" /* SMART_KEY_MAX (columns and TID), SMART_ENTRY_MAX */

#define SMART_COLUMNS_MAX (SMART_KEY_MAX - SMART_TID_LONGEST)

#define SMART_NOT_NULL 0x01 /* null byte of a column that has a value */

/* Strategies beyond btree's five */
#define SMART_STRATEGY_LIKE      6  /* column ~~ pattern */
#define SMART_STRATEGY_STARTS    7  /* column ^@ prefix */
#define SMART_STRATEGY_SUBNET    8  /* column << network */
#define SMART_STRATEGY_SUBNET_EQ 9  /* column <<= network */
#define SMART_STRATEGY_REGEX     10 /* column ~ regular expression */
#define SMART_STRATEGY_ROW       10 /* and one of btree's five but =: this column and those behind it, against a row */
#define SMART_STRATEGIES         15

#define SMART_NORMALIZED_WIDTH_MAX 256 /* bytes of a fixed-width normalized key */

/*
 * Support functions: 1 to 3 are btree's comparison, sort support and in_range, under btree's numbers; the normalized
 * key is our own, made by the callbacks that 11 names or by calling 12.  A class has one of the two.
 */
#define SMART_COMPARE_PROC     1
#define SMART_SORTSUPPORT_PROC 2
#define SMART_INRANGE_PROC     3
#define SMART_NORMALIZER_PROC  11
#define SMART_BYTES_PROC       12
#define SMART_PROCS            12

/*
 * Normalized keys: what a type brings
 *
 * The support function 11 of an operator class has the SQL signature (internal) returns internal.  It is called once
 * when an index is opened, with a zeroed smart_normalizer in which the fields under "in" are set; it sets those under
 * "out" and returns the same pointer.  It may raise an error ("this collation is not supported").  The callbacks are
 * then called directly for each row and must not keep state between calls.
 *
 * The support function 12 has the SQL signature (type) returns bytea, in any language, and must be immutable.  What it
 * returns is escaped as bytea is.  Index-only scans cannot return such a column.
 */
struct smart_normalizer;

/* Where an argument of another type lies among the values of the column's type */
enum smart_argument_place
{
	SMART_ARGUMENT_AT,     /* the argument equals *value */
	SMART_ARGUMENT_BELOW,  /* it lies below *value, and no value of the type lies between them */
	SMART_ARGUMENT_ABOVE,  /* it lies above *value, and no value of the type lies between them */
	SMART_ARGUMENT_UNSURE, /* somewhere from *value to *high: the operator must be asked again */
	SMART_ARGUMENT_UNKNOWN /* nothing can be said: the operator must be asked about every value */
};

/*
 * Writes the normalized key of value (never NULL, may be toasted) at out, at most up to limit, and returns its end.  If
 * it does not fit, fills out up to limit with its beginning and returns NULL; one of fixed width always fits.
 */
typedef uint8 *(*smart_normalizer_encode_fn)(const struct smart_normalizer *normalizer, Datum value, uint8 *out,
											 uint8 *limit);

/*
 * Returns the end of the variable-width normalized key that starts at bytes, or NULL if it does not end before limit.
 * In a descending column flip is 0xFF and the bytes are complemented, else it is 0.  Raises no error: it is also called
 * from within the tree.
 */
typedef const uint8 *(*smart_normalizer_end_fn)(const struct smart_normalizer *normalizer, const uint8 *bytes,
												const uint8 *limit, uint8 flip);

/*
 * Gives back the value of a normalized key of length bytes.  residue points to residue_width bytes.  A type that is not
 * passed by value is built at space (aligned for any type; room for length + decode_extra bytes, or for the type's
 * length): a varlena may have a short header.
 */
typedef Datum (*smart_normalizer_decode_fn)(const struct smart_normalizer *normalizer, const uint8 *bytes, int length,
											const uint8 *residue, char *space);

/* Writes residue_width bytes: what the normalized key of value forgets */
typedef void (*smart_normalizer_residue_fn)(const struct smart_normalizer *normalizer, Datum value, uint8 *residue);

/* Places an argument of type argtype (another one than the column's) among the values of the column's type */
typedef enum smart_argument_place (*smart_normalizer_place_fn)(const struct smart_normalizer *normalizer,
															   Datum argument, Oid argtype, Datum *value, Datum *high);

/*
 * Writes what the normalized key of each value that satisfies "value strategy pattern" (6 and above) begins with, at
 * most up to limit (shortened if it does not fit), and returns its end.  *exact: all of the key was written.  *recheck:
 * not every value whose key begins so satisfies the condition.
 */
typedef uint8 *(*smart_normalizer_pattern_fn)(const struct smart_normalizer *normalizer, int strategy, Datum pattern,
											  uint8 *out, uint8 *limit, bool *exact, bool *recheck);

/* Would the normalizer be made again as it is?  Else its type was altered since then. */
typedef bool (*smart_normalizer_current_fn)(const struct smart_normalizer *normalizer);

struct smart_normalizer
{
	/* in */
	const char *index_name; /* for its error messages, NULL afterwards */
	Oid method;             /* the access method */
	Oid type;               /* input type of the operator class */
	Oid value_type; /* of the column, or what a domain there is over: tells more than type if that is anyarray */
	Oid collation;  /* of the column, or InvalidOid */
	int32 typmod;   /* of the column, or -1 */

	/* out */
	int width;        /* bytes of each normalized key, or 0 if they differ */
	bool unordered;   /* normalized keys tell equality only: they do not sort like the values */
	bool no_patterns; /* strategies beyond btree's select all values, unless the pattern is a whole string */
	bool squeezable;  /* normalized keys may have any length, and long ones are squeezed (long_key.h): a varlena's */
	bool verbatim;    /* a normalized key is the bytes of the value, which is a varlena, and a 00 */
	bool forgets;     /* decode (with the residue) cannot give the value back */
	bool by_catalog;  /* of an enum: the order of its values is read from the catalog (enum_order.c) */
	uint32 version;   /* of what decides on the order outside of the server; 0: nothing does */
	const char
		*refusal;      /* why no index is to be built with it: a sentence that lives as long as the backend; or NULL */
	int residue_width; /* bytes in the payload, 0 if nothing is forgotten or nothing is kept */
	int decode_extra;  /* bytes by which a decoded value may be longer than its normalized key (header aside) */
	/* Of elements, bounds or the first column, and of the next column; or NULL.  They live as long as the backend. */
	const struct smart_normalizer *part;
	const struct smart_normalizer *next;
	const void *details; /* for the callbacks, or NULL; lives as long, too */
	smart_normalizer_encode_fn encode;
	smart_normalizer_end_fn end;         /* NULL if width > 0 */
	smart_normalizer_decode_fn decode;   /* NULL if forgets */
	smart_normalizer_residue_fn residue; /* NULL if residue_width = 0 */
	smart_normalizer_place_fn place;     /* NULL if the family has no other types */
	smart_normalizer_pattern_fn pattern; /* NULL if there are no strategies beyond btree's */
	smart_normalizer_current_fn current; /* NULL if the type, parts aside, stays as it is */
};

/*
 * The codec of one index.  Read its fields, do not change them.  It is one palloc'ed chunk of size bytes without
 * pointers into itself: memcpy can copy it, and it may be an rd_amcache.
 */
struct smart_column
{
	struct smart_normalizer normalizer; /* key columns only */
	uint8 null_byte;                    /* of a NULL: 0x00 or 0x02; key columns only */
	uint8 flip;                         /* 0xFF in a descending column, else 0 */
	bool returnable;                    /* an index-only scan can return the column */
	bool byval;
	char align;
	char storage;     /* TYPSTORAGE_PLAIN: neither short headers nor compression */
	char compression; /* method for long values of an included column, or InvalidCompressionMethod: the server's */
	int16 attlen;
	int32 tuple_offset; /* in an IndexTuple without NULLs, or -1 if it is not the same in all */
};

struct smart_codec
{
	Size size;            /* bytes of this chunk */
	Oid index;            /* for error messages */
	int nkeys;            /* key columns */
	int ncolumns;         /* key and included columns */
	int fixed_length;     /* bytes of every entry, or 0 if they differ */
	int fixed_key_length; /* bytes of every key (columns and TID), or 0 if fixed_length is 0 */
	bool compact_tids;    /* entries differ in length, so TIDs may */
	int payload_width;    /* bytes of every payload, or -1 if they differ */
	int residue_width;    /* bytes of all residues */
	int entry_max;        /* what still can be returned as an IndexTuple, and has room in a delta (journal/apply.h) */
	bool ordered;         /* the normalized keys of all key columns sort like the values */
	bool returnable;      /* all columns can be returned */
	bool alterable;       /* types can be altered so that the codec is out of date: smart_codec_current() */
	bool flat;            /* IndexTuples without NULLs have all columns at their tuple_offset */
	int32 tuple_size;     /* bytes of such an IndexTuple */
	Size space;           /* bytes that decode and form_tuple need; MAXALIGNed */
	struct smart_column columns[FLEXIBLE_ARRAY_MEMBER];
};

/*
 * Makes the codec of an index, in context.  Errors: those of the normalizers, e.g. FEATURE_NOT_SUPPORTED for a
 * nondeterministic collation, INDETERMINATE_COLLATION; call it in ambuild before anything else.
 */
extern struct smart_codec *smart_codec_make(Relation index, MemoryContext context);

/* FEATURE_NOT_SUPPORTED if no index is to be built with this codec: to be called before one is. */
extern void smart_codec_check_refusal(const struct smart_codec *codec);

/*
 * Would the codec be made again as it is, as far as types can be altered without touching the index?  Finding out may
 * read the catalogs, and a codec in a relation cache be gone afterwards.
 */
extern bool smart_codec_current(const struct smart_codec *codec);

/*
 * Encodes a row.  values and isnull have ncolumns elements; out has room for SMART_ENTRY_MAX bytes.  Returns the length
 * of the entry and sets *key_length (columns and TID).  PROGRAM_LIMIT_EXCEEDED if the key or the entry is too long.
 */
extern int smart_codec_encode(const struct smart_codec *codec, const Datum *values, const bool *isnull, ItemPointer tid,
							  uint8 *out, int *key_length);

/* Encodes the key alone (columns and TID); out has room for SMART_KEY_MAX bytes.  Errors: as above, of the key. */
extern int smart_codec_encode_key(const struct smart_codec *codec, const Datum *values, const bool *isnull,
								  ItemPointer tid, uint8 *out);

/*
 * Encodes the first count key columns without a TID, e.g. the normalized key of a unique key.  out has room for
 * SMART_COLUMNS_MAX bytes.  Returns the length.  PROGRAM_LIMIT_EXCEEDED if it is too long.
 */
extern int smart_codec_encode_columns(const struct smart_codec *codec, int count, const Datum *values,
									  const bool *isnull, uint8 *out);

/*
 * Where the first count key columns of an entry (or of encoded columns) end, length bytes being there: an offset.
 * DATA_CORRUPTED if they do not end.
 */
extern int smart_codec_columns_end(const struct smart_codec *codec, const uint8 *entry, int length, int count);

/* The same without an error: -1 if they do not end, and then *column says which one it is, from 0. */
extern int
smart_codec_find_columns_end(const struct smart_codec *codec, const uint8 *entry, int length, int count, int *column);

/*
 * Gives back the columns of an entry.  values and isnull have ncolumns elements; what is not passed by value is built
 * in space (codec->space bytes, MAXALIGNed) and lives as long.  A column that is not returnable comes as NULL.
 */
extern void smart_codec_decode(const struct smart_codec *codec, const uint8 *entry, int length, Datum *values,
							   bool *isnull, char *space);

/*
 * Forms the IndexTuple of an entry for xs_itup, in space (codec->space bytes, MAXALIGNed) and with its TID.  A column
 * that is not returnable is NULL in it.
 */
extern IndexTuple smart_codec_form_tuple(const struct smart_codec *codec, const uint8 *entry, int length, char *space);

/* Bytes of columns and TID of an entry of length bytes */
static inline int
smart_codec_key_length(const struct smart_codec *codec, const uint8 *entry, int length)
{
	int payload = codec->payload_width;

	if (unlikely(payload < 0))
		payload = ((entry[length - 2] << 8) | entry[length - 1]) + 2;
	return length - payload;
}

/* Writes a TID behind the columns that end at out; returns where the key ends */
static inline uint8 *
smart_entry_put_tid(const struct smart_codec *codec, uint8 *out, const ItemPointerData *tid)
{
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(tid);
	OffsetNumber offset = ItemPointerGetOffsetNumberNoCheck(tid);

	return codec->compact_tids ? smart_tid_put_compact(out, block, offset) : smart_tid_put_plain(out, block, offset);
}

/* Bytes of the TID whose last byte is given */
static inline int
smart_entry_tid_width(const struct smart_codec *codec, uint8 last)
{
	return codec->compact_tids ? (int) smart_tid_length_by_last(last) : SMART_TID_PLAIN;
}

/* Bytes of the columns of an entry whose key has key_length bytes */
static inline int
smart_entry_columns_length(const struct smart_codec *codec, const uint8 *entry, int key_length)
{
	return key_length - smart_entry_tid_width(codec, entry[key_length - 1]);
}

/* The TID of a key that ends at end */
static inline void
smart_entry_tid(const struct smart_codec *codec, const uint8 *end, ItemPointer tid)
{
	BlockNumber block;
	OffsetNumber offset;

	if (codec->compact_tids)
		smart_tid_get_compact(end, &block, &offset);
	else
		smart_tid_get_plain(end, &block, &offset);
	ItemPointerSet(tid, block, offset);
}

/* The TID that eight bytes, as a big-endian number, begin with. */
static inline void
smart_entry_tid_at(const struct smart_codec *codec, uint64 bytes, ItemPointer tid)
{
	BlockNumber block;
	OffsetNumber offset;

	if (codec->compact_tids)
		smart_tid_from_compact(bytes >> (64 - 8 * smart_tid_length_by_first((uint8) (bytes >> 56))), &block, &offset);
	else
		smart_tid_from_plain(bytes >> (64 - 8 * SMART_TID_PLAIN), &block, &offset);
	ItemPointerSet(tid, block, offset);
}

/*
 * Conditions
 *
 * A condition on one key column becomes a bound: the set of that column's encodings (null byte and normalized key,
 * complemented in a descending column) that it selects.  Everything is in the order of bytes, so no caller needs to
 * think of DESC or of NULLS FIRST.  Bounds of the first columns are put one behind the other: EQUAL ones make a longer
 * prefix, the first other one closes it.
 */
enum smart_bound_kind
{
	SMART_BOUND_NEVER,  /* no entry can satisfy the condition; no bytes */
	SMART_BOUND_EQUAL,  /* the column is these bytes; the next column's begin behind them */
	SMART_BOUND_PREFIX, /* the column begins with these bytes; {SMART_NOT_NULL} alone: any value */
	/* The column has a value, and it sorts so against these bytes: intersect with the PREFIX {SMART_NOT_NULL} */
	SMART_BOUND_LESS,          /* column < bytes */
	SMART_BOUND_LESS_EQUAL,    /* column < bytes or column begins with bytes */
	SMART_BOUND_GREATER_EQUAL, /* column >= bytes */
	SMART_BOUND_GREATER        /* column > bytes and column does not begin with bytes */
};

struct smart_bound
{
	enum smart_bound_kind kind;
	bool recheck; /* the executor must check the condition: the bound selects more than it */
	int length;   /* bytes written at out */
};

/*
 * The bound of "column strategy argument".  column counts from 0; strategy is 1..10; argument is not NULL; argtype is
 * the operator's right-hand type (sk_subtype; InvalidOid or the column's own type: no conversion).  Writes at most room
 * bytes at out; room must be at least SMART_COLUMNS_MAX less the bytes of the columns before.  An argument whose
 * normalized key is longer than any entry is no error: it is cut, and the bound is right nevertheless.
 */
extern void smart_codec_bound(const struct smart_codec *codec, int column, int strategy, Datum argument, Oid argtype,
							  uint8 *out, int room, struct smart_bound *bound);

/* The bound of "column IS NULL" (isnull) or "column IS NOT NULL"; out and room as above */
extern void smart_codec_null_bound(const struct smart_codec *codec, int column, bool isnull, uint8 *out, int room,
								   struct smart_bound *bound);

/* Does such a condition select a part of a column's values?  Else the operator must be asked about each of them. */
static inline bool
smart_codec_narrows(const struct smart_codec *codec, int column, int strategy)
{
	const struct smart_normalizer *normalizer = &codec->columns[column].normalizer;

	if (strategy > BTGreaterStrategyNumber)
		return !normalizer->no_patterns;
	return !normalizer->unordered || strategy == BTEqualStrategyNumber;
}

/* amvalidate */
extern bool smart_validate(Oid opclassoid);

#endif /* SMART_ENCODE_H */
