/*
 * refuse.c
 *	  What is refused of ALTER TABLE and ALTER INDEX, since a smart index would stand in its way.
 *
 * - ATTACH PARTITION, where the primary keys of table and partition are of different access methods.  The server finds
 *   that they do not match, and would fail when it makes the table's a second one of the partition.
 * - RESET (smart) on the index of a constraint, which a dump would take for a btree from then on.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/pg_class.h"
#include "commands/defrem.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "am/constraint/refuse.h"
#include "am/index/options.h"
#include "am/index/relation.h"
#include "base/assert.h"

/* Is the primary key's index smart?  *found: is there one? */
static bool
has_smart_key(Relation table, bool *found)
{
	List *indexes = RelationGetIndexList(table);
	ListCell *cell;
	bool is_smart = false;

	*found = false;
	foreach (cell, indexes)
	{
		Relation index = index_open(lfirst_oid(cell), AccessShareLock);

		if (index->rd_index->indisprimary)
		{
			*found = true;
			is_smart = smart_is_our_index(index);
		}
		index_close(index, AccessShareLock);
	}
	smart_assert(*found || !is_smart);
	list_free(indexes);
	return is_smart;
}

static void
check_partition(Oid parent, const PartitionCmd *command)
{
	Relation table = table_open(parent, NoLock);
	Relation partition = table_openrv_extended(command->name, AccessExclusiveLock, true);
	bool table_has;
	bool partition_has;

	smart_assert(table->rd_rel->relkind == RELKIND_PARTITIONED_TABLE);
	if (partition != NULL)
	{
		bool differ = has_smart_key(table, &table_has) != has_smart_key(partition, &partition_has);

		if (differ && table_has && partition_has)
			ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					errmsg("the primary keys of \"%s\" and \"%s\" have indexes of different access methods",
						   RelationGetRelationName(table), RelationGetRelationName(partition)),
					errhint("Drop that of \"%s\": ATTACH PARTITION makes it anew, as that of \"%s\" is.",
							RelationGetRelationName(partition), RelationGetRelationName(table)));
		table_close(partition, NoLock);
	}
	table_close(table, NoLock);
}

static void
check_reset(Oid oid, const List *options)
{
	Relation index;
	ListCell *cell;
	bool found = false;

	foreach (cell, options)
		found |= strcmp(lfirst_node(DefElem, cell)->defname, SMART_OPTION) == 0;
	if (!found || get_rel_relkind(oid) != RELKIND_INDEX || !OidIsValid(get_index_constraint(oid)))
		return;
	index = index_open(oid, NoLock);
	if (smart_is_our_index(index) && index->rd_index->indisunique)
		ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("option \"%s\" of a constraint's index cannot be reset", SMART_OPTION),
				errdetail("A restored dump would give the constraint a btree."),
				errhint("Drop the constraint, and add it again without the option."));
	index_close(index, NoLock);
}

void
smart_constraint_check_commands(Oid relation, const AlterTableStmt *statement)
{
	ListCell *cell;

	smart_assert(OidIsValid(relation));
	foreach (cell, statement->cmds)
	{
		const AlterTableCmd *command = lfirst_node(AlterTableCmd, cell);

		if (command->subtype == AT_AttachPartition && get_rel_relkind(relation) == RELKIND_PARTITIONED_TABLE)
			check_partition(relation, castNode(PartitionCmd, command->def));
		else if (command->subtype == AT_ResetRelOptions)
			check_reset(relation, (const List *) command->def);
	}
}
