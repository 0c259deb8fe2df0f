/*
 * retype.c
 *	  ALTER TABLE ... ALTER COLUMN ... TYPE, where the column belongs to a constraint with a smart index.
 *
 * The server makes the constraints of such a column anew from their definitions, in which no access method is named, and
 * no one is asked in between.  So the statement itself is told to drop and to add them, which it does before and after
 * the column changes; this time the method is named.  What hangs on the old index is taken over: that it is the
 * replica identity, that the table is clustered by it, comments.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_inherits.h"
#include "commands/comment.h"
#include "commands/tablecmds.h"
#include "parser/parser.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"
#include "utils/syscache.h"

#include "am/compat.h"
#include "am/constraint/retype.h"
#include "am/index/relation.h"
#include "base/assert.h"

/* A constraint that is made anew. */
struct renewed
{
	char *name;
	char *comment;       /* of the constraint, or NULL */
	char *index_comment; /* or NULL */
};

static AlterTableCmd *
make_command(AlterTableType type, char *name, Node *definition)
{
	AlterTableCmd *command = makeNode(AlterTableCmd);

	smart_assert(name != NULL || definition != NULL);
	command->subtype = type;
	command->name = name;
	command->def = definition;
	command->behavior = DROP_RESTRICT;
	return command;
}

/* Does the statement itself drop the constraint? */
static bool
is_dropped(const List *commands, const char *name)
{
	ListCell *cell;

	foreach (cell, commands)
	{
		const AlterTableCmd *command = lfirst_node(AlterTableCmd, cell);

		if (command->subtype == AT_DropConstraint && strcmp(command->name, name) == 0)
			return true;
	}
	return false;
}

static bool
has_column(Relation index, AttrNumber column)
{
	/* An expression has it in the place of a number. */
	smart_assert(column != InvalidAttrNumber);
	for (int i = 0; i < index->rd_index->indnatts; i++)
	{
		if (index->rd_index->indkey.values[i] == column)
			return true;
	}
	return false;
}

/* The name of a PRIMARY KEY or UNIQUE constraint, which is not that of a table above; else NULL. */
static char *
constraint_name(Oid constraint)
{
	HeapTuple row = SearchSysCache1(CONSTROID, ObjectIdGetDatum(constraint));
	char *name = NULL;

	smart_assert(OidIsValid(constraint));
	if (HeapTupleIsValid(row))
	{
		Form_pg_constraint form = (Form_pg_constraint) GETSTRUCT(row);

		if ((form->contype == CONSTRAINT_PRIMARY || form->contype == CONSTRAINT_UNIQUE) &&
			!OidIsValid(form->conparentid))
			name = pstrdup(NameStr(form->conname));
		ReleaseSysCache(row);
	}
	return name;
}

/* Raises an error if a foreign key refers to an index. */
static void
check_references(Relation index, const char *constraint)
{
	Relation catalog = table_open(DependRelationId, AccessShareLock);
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple row;

	smart_assert(smart_is_our_index(index));
	ScanKeyInit(&keys[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(RelationRelationId));
	ScanKeyInit(&keys[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(RelationGetRelid(index)));
	scan = systable_beginscan(catalog, DependReferenceIndexId, true, NULL, 2, keys);
	while (HeapTupleIsValid(row = systable_getnext(scan)))
	{
		Form_pg_depend form = (Form_pg_depend) GETSTRUCT(row);

		if (form->classid == ConstraintRelationId)
			ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					errmsg("cannot alter the values of a column of constraint \"%s\"", constraint),
					errdetail("Foreign key constraint \"%s\" refers to its index, which is smart.",
							  get_constraint_name(form->objid)),
					errhint("Drop the foreign key, alter the column, and add the foreign key again."));
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
}

/* The commands that make the constraint of an index anew. */
static List *
commands_for(Relation index, Oid constraint, char *name)
{
	RawStmt *raw = linitial_node(RawStmt, raw_parser(pg_get_constraintdef_command(constraint), RAW_PARSE_DEFAULT));
	AlterTableCmd *adds = linitial_node(AlterTableCmd, castNode(AlterTableStmt, raw->stmt)->cmds);
	Constraint *made = castNode(Constraint, adds->def);
	List *commands = list_make2(make_command(AT_DropConstraint, name, NULL), adds);

	smart_assert(adds->subtype == AT_AddConstraint);
	smart_assert(made->contype == CONSTR_PRIMARY || made->contype == CONSTR_UNIQUE);
	made->access_method = pstrdup("smart");
	made->reset_default_tblspc = true;
	if (index->rd_index->indisclustered)
		commands = lappend(commands, make_command(AT_ClusterOn, name, NULL));
	if (index->rd_index->indisreplident)
	{
		ReplicaIdentityStmt *identity = makeNode(ReplicaIdentityStmt);

		identity->identity_type = REPLICA_IDENTITY_INDEX;
		identity->name = name;
		commands = lappend(commands, make_command(AT_ReplicaIdentity, NULL, (Node *) identity));
	}
	return commands;
}

/* An index on a column whose values change. */
static List *
renew(Relation index, AlterTableStmt *statement, List *renewed)
{
	Oid constraint = get_index_constraint(RelationGetRelid(index));
	char *name = OidIsValid(constraint) ? constraint_name(constraint) : NULL;
	struct renewed *one;

	/* Another command may be about another column of it. */
	if (name == NULL || is_dropped(statement->cmds, name))
		return renewed;
	check_references(index, name);
	one = palloc(sizeof(*one));
	one->name = name;
	one->comment = GetComment(constraint, ConstraintRelationId, 0);
	one->index_comment = GetComment(RelationGetRelid(index), RelationRelationId, 0);
	statement->cmds = list_concat(statement->cmds, commands_for(index, constraint, name));
	return lappend(renewed, one);
}

/* A table that inherits the column: its constraints are not of this statement. */
static void
check_heir(Relation heir, Relation index)
{
	Oid constraint = get_index_constraint(RelationGetRelid(index));
	char *name = OidIsValid(constraint) ? constraint_name(constraint) : NULL;

	smart_assert(index->rd_index->indrelid == RelationGetRelid(heir));
	if (name != NULL)
		ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("cannot alter the values of a column of constraint \"%s\" of table \"%s\"", name,
					   RelationGetRelationName(heir)),
				errdetail("Its index is smart, and the column is inherited."),
				errhint("Drop the constraint, alter the column, and add the constraint again."));
}

/* Goes through the smart indexes of a table that have the column. */
static List *
look_at(Oid oid, const char *column, AlterTableStmt *statement, bool is_heir, List *renewed)
{
	Relation table = relation_open(oid, NoLock);
	List *indexes = RelationGetIndexList(table);
	AttrNumber number = get_attnum(oid, column);
	ListCell *cell;

	foreach (cell, indexes)
	{
		Relation index = index_open(lfirst_oid(cell), AccessShareLock);

		if (smart_is_our_index(index) && number != InvalidAttrNumber && has_column(index, number))
		{
			if (is_heir)
				check_heir(table, index);
			else
				renewed = renew(index, statement, renewed);
		}
		index_close(index, AccessShareLock);
	}
	list_free(indexes);
	relation_close(table, NoLock);
	return renewed;
}

List *
smart_constraint_make_anew(Oid table, AlterTableStmt *statement)
{
	LOCKMODE lock = AlterTableGetLockLevel(statement->cmds);
	List *given = list_copy(statement->cmds);
	List *renewed = NIL;
	ListCell *cell;
	ListCell *inner;

	smart_assert(OidIsValid(table));
	if (get_rel_relkind(table) != RELKIND_RELATION && get_rel_relkind(table) != RELKIND_PARTITIONED_TABLE)
		return NIL;
	foreach (cell, given)
	{
		const AlterTableCmd *command = lfirst_node(AlterTableCmd, cell);
		List *tables;

		if (!smart_alters_values(command->subtype))
			continue;
		tables = statement->relation->inh ? find_all_inheritors(table, lock, NULL) : list_make1_oid(table);
		foreach (inner, tables)
			renewed = look_at(lfirst_oid(inner), command->name, statement, lfirst_oid(inner) != table, renewed);
		list_free(tables);
	}
	smart_assert(list_length(statement->cmds) >= list_length(given));
	list_free(given);
	return renewed;
}

void
smart_constraint_describe(Oid table, const List *renewed)
{
	ListCell *cell;

	smart_assert(OidIsValid(table) || renewed == NIL);
	foreach (cell, renewed)
	{
		const struct renewed *one = lfirst(cell);
		Oid constraint = get_relation_constraint_oid(table, one->name, false);

		if (one->comment != NULL)
			CreateComments(constraint, ConstraintRelationId, 0, one->comment);
		if (one->index_comment != NULL)
			CreateComments(get_constraint_index(constraint), RelationRelationId, 0, one->index_comment);
	}
}
