/*
 * reference.c
 *	  Foreign keys that refer to smart indexes, on servers that look for btrees.
 *
 * A foreign key's operators are those of equality in the operator families of the index that it refers to.  Before
 * version 18 the server asks there whether the operator classes are btree's, since it would not know the number of
 * equality otherwise.  Smart's families have the operators of btree's, and the numbers; and nothing of a foreign key
 * asks for the access method again: rows are looked up by queries.
 *
 * So while a statement runs that adds one, the rows of pg_opclass say "btree" where they say "smart": not in the
 * catalog, but in this process's cache of it, where they are held meanwhile.  Only the question above reads them there
 * (index builds and the relcache read the catalog itself, names are looked up in another cache), and the functions that
 * write an index's definition down, which would name its operator classes.  The server has them do so when a column gets
 * another type, for indexes which are to take another class then: so such statements get no help, and are refused where a
 * foreign key would have to be made anew.  Should a row be read anew, because of a
 * message of another process, it says "smart", and the foreign key is refused: the statement fails, as it would without
 * this.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_opclass.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "am/compat.h"
#include "am/constraint/choice.h"
#include "am/constraint/reference.h"
#include "base/assert.h"

/* A row in the cache, which is held. */
struct held
{
	HeapTuple row;
	Oid method; /* that it had */
};

static bool
has_foreign_key(const ColumnDef *column)
{
	ListCell *cell;

	smart_assert(IsA(column, ColumnDef));
	foreach (cell, column->constraints)
	{
		const Constraint *constraint = lfirst(cell);

		if (IsA(constraint, Constraint) && constraint->contype == CONSTR_FOREIGN)
			return true;
	}
	return false;
}

bool
smart_references_come_from(const AlterTableStmt *statement)
{
	bool adds = false;
	ListCell *cell;

	if (!SMART_REFERENCES_WANT_BTREE)
		return false;
	foreach (cell, statement->cmds)
	{
		const AlterTableCmd *command = lfirst_node(AlterTableCmd, cell);

		if (smart_alters_values(command->subtype))
			return false;
		adds |=
			(command->subtype == AT_AddConstraint && ((const Constraint *) command->def)->contype == CONSTR_FOREIGN) ||
			(command->subtype == AT_AddColumn && has_foreign_key((const ColumnDef *) command->def));
	}
	return adds;
}

/* ---- columns of foreign keys ---- */

static bool
is_smart(Oid index)
{
	HeapTuple row = SearchSysCache1(RELOID, ObjectIdGetDatum(index));
	bool is = HeapTupleIsValid(row) && ((Form_pg_class) GETSTRUCT(row))->relam == smart_constraint_method();

	if (HeapTupleIsValid(row))
		ReleaseSysCache(row);
	return is;
}

/* Does a foreign key refer from or to this column? */
static bool
has_column(HeapTuple row, Oid table, AttrNumber column)
{
	Form_pg_constraint form = (Form_pg_constraint) GETSTRUCT(row);
	AttrNumber from[INDEX_MAX_KEYS];
	AttrNumber to[INDEX_MAX_KEYS];
	int count;

	smart_assert(form->contype == CONSTRAINT_FOREIGN);
	DeconstructFkConstraintRow(row, &count, from, to, NULL, NULL, NULL, NULL, NULL);
	for (int i = 0; i < count; i++)
	{
		if ((form->conrelid == table && from[i] == column) || (form->confrelid == table && to[i] == column))
			return true;
	}
	return false;
}

/* The values of a column are to be altered. */
static void
check_column(Oid table, const char *name)
{
	AttrNumber column = get_attnum(table, name);
	Relation catalog = table_open(ConstraintRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(catalog, InvalidOid, false, NULL, 0, NULL);
	HeapTuple row;

	smart_assert(OidIsValid(table));
	while (HeapTupleIsValid(row = systable_getnext(scan)))
	{
		Form_pg_constraint form = (Form_pg_constraint) GETSTRUCT(row);

		if (form->contype == CONSTRAINT_FOREIGN && (form->conrelid == table || form->confrelid == table) &&
			has_column(row, table, column) && is_smart(form->conindid))
			ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					errmsg("cannot alter the values of a column of foreign key \"%s\"", NameStr(form->conname)),
					errdetail("It refers to a smart index."),
					errhint("Drop the foreign key, alter the column, and add the foreign key again."));
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
}

void
smart_references_check(Oid table, const AlterTableStmt *statement)
{
	ListCell *cell;

	smart_assert(OidIsValid(table));
	if (!SMART_REFERENCES_WANT_BTREE || !OidIsValid(smart_constraint_method()))
		return;
	foreach (cell, statement->cmds)
	{
		const AlterTableCmd *command = lfirst_node(AlterTableCmd, cell);

		if (smart_alters_values(command->subtype))
			check_column(table, command->name);
	}
}

/* ---- the help ---- */

/* The OIDs of an access method's operator classes. */
static List *
classes_of(Oid method)
{
	Relation catalog = table_open(OperatorClassRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(catalog, InvalidOid, false, NULL, 0, NULL);
	List *classes = NIL;
	HeapTuple row;

	smart_assert(OidIsValid(method));
	while (HeapTupleIsValid(row = systable_getnext(scan)))
	{
		Form_pg_opclass form = (Form_pg_opclass) GETSTRUCT(row);

		if (form->opcmethod == method)
			classes = lappend_oid(classes, form->oid);
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return classes;
}

List *
smart_references_begin(void)
{
	Oid method = smart_constraint_method();
	List *classes = OidIsValid(method) ? classes_of(method) : NIL;
	List *held = NIL;
	ListCell *cell;

	/* Memory and rows first: from the first change on nothing here may fail. */
	foreach (cell, classes)
	{
		HeapTuple row = SearchSysCache1(CLAOID, ObjectIdGetDatum(lfirst_oid(cell)));
		struct held *one;

		if (!HeapTupleIsValid(row))
			continue;
		one = palloc(sizeof(*one));
		one->row = row;
		one->method = ((Form_pg_opclass) GETSTRUCT(row))->opcmethod;
		/* The latter within another such statement. */
		smart_assert(one->method == method || one->method == BTREE_AM_OID);
		held = lappend(held, one);
	}
	foreach (cell, held)
		((Form_pg_opclass) GETSTRUCT(((struct held *) lfirst(cell))->row))->opcmethod = BTREE_AM_OID;
	list_free(classes);
	return held;
}

void
smart_references_end(List *held)
{
	ListCell *cell;

	foreach (cell, held)
	{
		const struct held *one = lfirst(cell);

		smart_assert(((Form_pg_opclass) GETSTRUCT(one->row))->opcmethod == BTREE_AM_OID);
		((Form_pg_opclass) GETSTRUCT(one->row))->opcmethod = one->method;
		ReleaseSysCache(one->row);
	}
	list_free_deep(held);
}
