/*
 * sweep_stat.c
 *	  What a user sees of trees that no index names: smart_space() shows them,
 *	  smart_sweep() frees them.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "commands/dbcommands.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "am/server.h"
#include "am/sweep.h"
#include "base/assert.h"

#define SPACE_COLUMNS 7
#define SWEEP_COLUMNS 2

PG_FUNCTION_INFO_V1(smart_space);
PG_FUNCTION_INFO_V1(smart_sweep);

/* The trees of one database. */
struct share
{
	Oid database;
	uint64 trees;
	uint64 bytes;
	uint64 fate[SMART_TREE_LEAKED + 1];
	uint64 leaked_bytes;
};

/* The share of a database; of all that are gone there is one, for InvalidOid. */
static struct share *
share_of(List **shares, Oid database)
{
	struct share *share;

	for (int i = 0; i < list_length(*shares); i++)
	{
		share = list_nth(*shares, i);
		if (share->database == database)
			return share;
	}
	share = palloc0(sizeof(struct share));
	share->database = database;
	*shares = lappend(*shares, share);
	return share;
}

static List *
make_shares(const struct smart_survey *survey)
{
	List *shares = NIL;

	(void) share_of(&shares, MyDatabaseId);
	for (uint64 i = 0; i < survey->count; i++)
	{
		const struct smart_surveyed_tree *tree = &survey->tree[i];
		Oid database = tree->info.owner.database;
		bool exists = list_member_oid(survey->databases, database);
		struct share *share = share_of(&shares, exists ? database : InvalidOid);

		share->trees++;
		share->bytes += tree->info.bytes;
		share->fate[tree->fate]++;
		if (tree->fate == SMART_TREE_LEAKED)
			share->leaked_bytes += tree->info.bytes;
	}
	return shares;
}

static void
put_share(ReturnSetInfo *result, const struct share *share, bool decided)
{
	Datum values[SPACE_COLUMNS];
	bool isnull[SPACE_COLUMNS] = {false};
	char *name = OidIsValid(share->database) ? get_database_name(share->database) : NULL;
	int column = 0;

	isnull[column] = name == NULL;
	values[column++] = name == NULL ? 0 : CStringGetTextDatum(name);
	values[column++] = Int64GetDatum((int64) share->trees);
	values[column++] = Int64GetDatum((int64) share->bytes);
	values[column++] = Int64GetDatum((int64) share->fate[SMART_TREE_TEMPORARY]);
	values[column++] = Int64GetDatum((int64) share->fate[SMART_TREE_UNFINISHED]);
	isnull[column] = isnull[column + 1] = !decided;
	values[column++] = Int64GetDatum((int64) share->fate[SMART_TREE_LEAKED]);
	values[column++] = Int64GetDatum((int64) share->leaked_bytes);
	smart_assert(column == SPACE_COLUMNS);
	tuplestore_putvalues(result->setResult, result->setDesc, values, isnull);
}

static void
survey_primary(struct smart_survey *survey)
{
	smart_server_require();
	if (RecoveryInProgress())
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("recovery is in progress"),
						errdetail("A standby server has no trees of smart indexes.")));
	smart_survey(survey, false);
}

/* A row for each database with trees, and for this one. */
PGDLLEXPORT Datum
smart_space(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	struct smart_survey survey;
	List *shares;

	InitMaterializedSRF(fcinfo, 0);
	if (result->setDesc->natts != SPACE_COLUMNS)
		elog(ERROR, "smart_space is declared with other columns than this library returns");
	survey_primary(&survey);
	shares = make_shares(&survey);
	for (int i = 0; i < list_length(shares); i++)
	{
		const struct share *share = list_nth(shares, i);
		bool here = share->database == MyDatabaseId && !survey.undecided;

		put_share(result, share, here || !OidIsValid(share->database));
	}
	return (Datum) 0;
}

/*
 * Frees the trees of this database, of dropped databases and of temporary tables of
 * this session that no index names: how many, and their bytes.
 */
PGDLLEXPORT Datum
smart_sweep(PG_FUNCTION_ARGS)
{
	struct smart_survey survey;
	struct smart_swept swept = {0};
	TupleDesc descriptor;
	Datum values[SWEEP_COLUMNS];
	bool isnull[SWEEP_COLUMNS] = {false};

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE || descriptor->natts != SWEEP_COLUMNS)
		elog(ERROR, "smart_sweep is declared with other columns than this library returns");
	survey_primary(&survey);
	smart_sweep_surveyed(&survey, &swept);
	smart_survey_report(&survey, WARNING);
	values[0] = Int64GetDatum((int64) swept.trees);
	values[1] = Int64GetDatum((int64) swept.bytes);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(descriptor), values, isnull)));
}
