/*
 * orphans_stat.c
 *	  What a user sees of trees that no index names: smart_stat_space() shows them,
 *	  smart_collect_orphans() frees them.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "commands/dbcommands.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "am/maintenance/orphans.h"
#include "am/monitor/stat_row.h"
#include "am/server/shared.h"

PG_FUNCTION_INFO_V1(smart_stat_space);
PG_FUNCTION_INFO_V1(smart_collect_orphans);

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

static void
survey_server(struct smart_survey *survey)
{
	smart_server_require();
	smart_survey(survey, false);
}

/* A row for each database with trees, and for this one. */
PGDLLEXPORT Datum
smart_stat_space(PG_FUNCTION_ARGS)
{
	struct smart_row row;
	struct smart_survey survey;
	List *shares = NIL;
	ListCell *cell;

	smart_rows_begin(&row, fcinfo);
	survey_server(&survey);
	(void) share_of(&shares, MyDatabaseId);
	for (uint64 i = 0; i < survey.count; i++)
	{
		const struct smart_surveyed_tree *tree = &survey.tree[i];
		Oid database = tree->info.owner.database;
		bool exists = list_member_oid(survey.databases, database);
		struct share *share = share_of(&shares, exists ? database : InvalidOid);

		smart_assert(tree->fate <= SMART_TREE_LEAKED);
		share->trees++;
		share->bytes += tree->info.bytes;
		share->fate[tree->fate]++;
		if (tree->fate == SMART_TREE_LEAKED)
			share->leaked_bytes += tree->info.bytes;
	}
	foreach (cell, shares)
	{
		const struct share *share = lfirst(cell);
		bool gone = !OidIsValid(share->database);
		bool decided = gone || (share->database == MyDatabaseId && !survey.undecided);

		smart_assert(share->fate[SMART_TREE_LEAKED] <= share->trees && share->leaked_bytes <= share->bytes);
		smart_row_text(&row, gone ? NULL : get_database_name(share->database));
		smart_row_count(&row, share->trees);
		smart_row_count(&row, share->bytes);
		smart_row_count(&row, share->fate[SMART_TREE_TEMPORARY]);
		smart_row_count(&row, share->fate[SMART_TREE_UNFINISHED]);
		smart_row_value(&row, Int64GetDatum((int64) share->fate[SMART_TREE_LEAKED]), decided);
		smart_row_value(&row, Int64GetDatum((int64) share->leaked_bytes), decided);
		smart_rows_add(&row);
	}
	return (Datum) 0;
}

/*
 * Frees the trees of this database, of dropped databases and of temporary tables of
 * this session that no index names: how many, and their bytes.
 */
PGDLLEXPORT Datum
smart_collect_orphans(PG_FUNCTION_ARGS)
{
	struct smart_survey survey;
	struct smart_row row;
	uint64 bytes = 0;
	uint64 freed;

	survey_server(&survey);
	freed = smart_orphans_free(&survey, &bytes);
	smart_survey_report(&survey, WARNING);
	smart_assert(freed <= survey.count && (freed > 0 || bytes == 0));
	smart_row_begin(&row, fcinfo);
	smart_row_count(&row, freed);
	smart_row_count(&row, bytes);
	return smart_row_return(&row);
}
