/*
 * key_image.c - the SQL function smart_key_image: the bytes under which an index orders values
 */
#include "postgres.h"

#include "access/relation.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "parser/parse_coerce.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "am/encode.h"
#include "am/open.h"

extern PGDLLEXPORT Datum smart_key_image(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(smart_key_image);

/* May a value of this type be in a column of this class and type? */
static bool
fits_column(Oid type, Oid class_type, Oid column_type)
{
	if (IsPolymorphicType(class_type))
		return getBaseType(type) == getBaseType(column_type);
	return IsBinaryCoercible(type, class_type);
}

static void
check_types(Relation index, int count, const Oid *types, const bool *isnull)
{
	if (count > IndexRelationGetNumberOfKeyAttributes(index))
		ereport(ERROR, errcode(ERRCODE_TOO_MANY_ARGUMENTS),
				errmsg("index \"%s\" has only %d key columns", RelationGetRelationName(index),
					   IndexRelationGetNumberOfKeyAttributes(index)));
	for (int i = 0; i < count; i++)
	{
		Oid column_type = TupleDescAttr(RelationGetDescr(index), i)->atttypid;

		/* An untyped NULL is a NULL of any type; any other literal comes as unknown and cannot be read as a value */
		if (isnull[i] && types[i] == UNKNOWNOID)
			continue;
		if (!fits_column(types[i], index->rd_opcintype[i], column_type))
			ereport(ERROR, errcode(ERRCODE_DATATYPE_MISMATCH),
					errmsg("column %d of index \"%s\" is of type %s but the value is of type %s", i + 1,
						   RelationGetRelationName(index), format_type_be(column_type), format_type_be(types[i])),
					errhint("Cast the value to the column's type."));
	}
}

/*
 * smart_key_image(index regclass, VARIADIC columns "any") returns bytea
 *
 * The encoding of the given values of the first key columns: comparing two of them as bytea is comparing the rows in
 * the order of the index.  Values must be of the columns' types.  NULL if there is no such relation.  Errors: those of
 * smart_index_try_open(), TOO_MANY_ARGUMENTS, DATATYPE_MISMATCH, PROGRAM_LIMIT_EXCEEDED (no such entry could be stored).
 */
Datum
smart_key_image(PG_FUNCTION_ARGS)
{
	Relation index;
	struct smart_codec *codec;
	Datum *values;
	Oid *types;
	bool *isnull;
	bytea *result = palloc(VARHDRSZ + SMART_COLUMNS_MAX);
	int count = extract_variadic_args(fcinfo, 1, false, &values, &types, &isnull);

	if (PG_ARGISNULL(0) || count <= 0)
		PG_RETURN_NULL();
	index = smart_index_try_open(PG_GETARG_OID(0));
	if (index == NULL)
		PG_RETURN_NULL();
	check_types(index, count, types, isnull);
	codec = smart_codec_make(index, CurrentMemoryContext);
	SET_VARSIZE(result, VARHDRSZ + smart_codec_encode_columns(codec, count, values, isnull, (uint8 *) VARDATA(result)));
	relation_close(index, AccessShareLock);
	PG_RETURN_BYTEA_P(result);
}
