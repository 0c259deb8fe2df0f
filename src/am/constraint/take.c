/*
 * take.c
 *	  ALTER TABLE ... ADD CONSTRAINT ... USING INDEX, where the index is smart.
 *
 * The parser refuses any index that is not a btree; what carries the command out does not mind.  So the command
 * is handed to the latter in the form that the parser gives it, after the parser's own conditions have been looked at
 * here: the constraint has to be the one that PRIMARY KEY or UNIQUE would have made.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/relation.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "commands/defrem.h"
#include "nodes/makefuncs.h"
#include "tcop/dest.h"
#include "tcop/utility.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "am/constraint/take.h"
#include "am/index/options.h"
#include "am/index/relation.h"
#include "base/assert.h"

/* Is the column of an index what a constraint would have made of its table's column? */
static bool
is_plain_column(Relation index, int column)
{
	Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(index), column);
	Oid default_class = GetDefaultOpClass(attribute->atttypid, index->rd_rel->relam);
	Oid table = index->rd_index->indrelid;
	Oid type;
	int32 typmod;
	Oid collation;

	smart_assert(column >= 0 && column < IndexRelationGetNumberOfKeyAttributes(index));
	smart_assert(index->rd_index->indkey.values[column] != InvalidAttrNumber);
	get_atttypetypmodcoll(table, index->rd_index->indkey.values[column], &type, &typmod, &collation);
	return OidIsValid(default_class) && index->rd_opfamily[column] == get_opclass_family(default_class) &&
		   index->rd_opcintype[column] == get_opclass_input_type(default_class) &&
		   index->rd_indcollation[column] == collation && index->rd_indoption[column] == 0;
}

static void
refuse(Relation index, const char *what)
{
	ereport(ERROR, errcode(ERRCODE_WRONG_OBJECT_TYPE),
			errmsg("index \"%s\" cannot become a constraint's", RelationGetRelationName(index)), errdetail("%s", what),
			errhint("Add the constraint without USING INDEX, or with a unique index on its columns alone."));
}

static void
check_index(Oid table, Relation index)
{
	smart_assert(smart_is_our_index(index) && index->rd_rel->relkind == RELKIND_INDEX);
	if (index->rd_index->indrelid != table)
		ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("index \"%s\" does not belong to table \"%s\"", RelationGetRelationName(index),
					   get_rel_name(table)));
	if (OidIsValid(get_index_constraint(RelationGetRelid(index))))
		ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("index \"%s\" is already associated with a constraint", RelationGetRelationName(index)));
	if (!index->rd_index->indisvalid)
		ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				errmsg("index \"%s\" is not valid", RelationGetRelationName(index)));
	if (!index->rd_index->indisunique)
		refuse(index, "It is not unique.");
	if (RelationGetIndexExpressions(index) != NIL)
		refuse(index, "It has expressions.");
	if (RelationGetIndexPredicate(index) != NIL)
		refuse(index, "It is partial.");
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		if (!is_plain_column(index, i))
			refuse(index, "A column has another operator class, collation or order than a constraint's.");
	}
}

/* For pg_dump, which knows the constraint only: ALTER INDEX ... SET (smart = on) */
static void
set_option(Oid index, const char *query)
{
	AlterTableStmt *statement = makeNode(AlterTableStmt);
	AlterTableCmd *command = makeNode(AlterTableCmd);
	PlannedStmt *planned = makeNode(PlannedStmt);

	smart_assert(OidIsValid(index));
	command->subtype = AT_SetRelOptions;
	command->def = (Node *) list_make1(makeDefElem(SMART_OPTION, (Node *) makeString("on"), -1));
	statement->objtype = OBJECT_INDEX;
	statement->relation = makeRangeVar(get_namespace_name(get_rel_namespace(index)), get_rel_name(index), -1);
	statement->cmds = list_make1(command);
	planned->commandType = CMD_UTILITY;
	planned->utilityStmt = (Node *) statement;
	planned->stmt_location = -1;
	ProcessUtility(planned, query, false, PROCESS_UTILITY_SUBCOMMAND, NULL, NULL, None_Receiver, NULL);
}

/* What the parser makes of such a command where the index is a btree. */
static IndexStmt *
make_statement(const Constraint *constraint, const AlterTableStmt *statement, Relation index)
{
	IndexStmt *made = makeNode(IndexStmt);

	smart_assert(constraint->contype == CONSTR_PRIMARY || constraint->contype == CONSTR_UNIQUE);
	smart_assert(index->rd_index->indisunique);
	made->idxname = constraint->conname;
	made->relation = copyObject(statement->relation);
	made->accessMethod = pstrdup("smart");
	made->indexOid = RelationGetRelid(index);
	made->unique = true;
	made->nulls_not_distinct = index->rd_index->indnullsnotdistinct;
	made->primary = constraint->contype == CONSTR_PRIMARY;
	made->isconstraint = true;
	made->deferrable = constraint->deferrable;
	made->initdeferred = constraint->initdeferred;
	made->transformed = true;
	return made;
}

/* The columns of a primary key get NOT NULL, as commands of the same statement. */
static List *
not_null_commands(Oid table, Relation index)
{
	List *commands = NIL;

	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		AlterTableCmd *command = makeNode(AlterTableCmd);

		command->subtype = AT_SetNotNull;
		command->name = get_attname(table, index->rd_index->indkey.values[i], false);
		commands = lappend(commands, command);
	}
	smart_assert(list_length(commands) == IndexRelationGetNumberOfKeyAttributes(index));
	return commands;
}

/* The command's index, open and locked, if it is smart; else NULL, and the server judges. */
static Relation
open_index(Oid table, const Constraint *constraint)
{
	Oid oid = get_relname_relid(constraint->indexname, get_rel_namespace(table));
	Relation index = OidIsValid(oid) ? try_relation_open(oid, AccessShareLock) : NULL;

	smart_assert(OidIsValid(table));
	if (index == NULL || (smart_is_our_index(index) && index->rd_rel->relkind == RELKIND_INDEX))
		return index;
	relation_close(index, AccessShareLock);
	return NULL;
}

bool
smart_constraint_take_indexes(Oid table, AlterTableStmt *statement, const char *query)
{
	List *more = NIL;
	bool taken = false;
	ListCell *cell;

	foreach (cell, statement->cmds)
	{
		AlterTableCmd *command = lfirst_node(AlterTableCmd, cell);
		Constraint *constraint = (Constraint *) command->def;
		Relation index;
		Oid oid;

		if (command->subtype != AT_AddConstraint || constraint->indexname == NULL ||
			(index = open_index(table, constraint)) == NULL)
			continue;
		check_index(table, index);
		command->subtype = AT_AddIndexConstraint;
		command->def = (Node *) make_statement(constraint, statement, index);
		if (constraint->contype == CONSTR_PRIMARY)
			more = list_concat(more, not_null_commands(table, index));
		oid = RelationGetRelid(index);
		relation_close(index, NoLock);
		set_option(oid, query);
		taken = true;
	}
	smart_assert(taken || more == NIL);
	statement->cmds = list_concat(statement->cmds, more);
	return taken;
}
