/*
 * statement.c
 *	  Gives PRIMARY KEY and UNIQUE constraints smart indexes: their statements pass here before the server carries
 *	  them out.
 *
 * The server makes a constraint's index by the access method that its node in the statement's tree names; the grammar
 * lets only EXCLUDE name one.  CREATE TABLE, with LIKE too, has a statement of its own for each index, which comes by
 * when the table is there.  ALTER TABLE makes its indexes without a statement, so there the constraint itself gets the
 * name.  Partitions take their indexes from their table, with the method.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "commands/defrem.h"
#include "commands/tablecmds.h"
#include "nodes/parsenodes.h"
#include "parser/parse_type.h"
#include "tcop/utility.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "am/compat.h"
#include "am/constraint/choice.h"
#include "am/constraint/reference.h"
#include "am/constraint/refuse.h"
#include "am/constraint/retype.h"
#include "am/constraint/statement.h"
#include "am/constraint/take.h"
#include "am/index/replica.h"
#include "base/assert.h"

#define METHOD "smart"

static ProcessUtility_hook_type next_hook = NULL;

/* ---- CREATE TABLE: an index of its own statement ---- */

static bool
is_constraint_index(const IndexStmt *statement)
{
	return statement->isconstraint && statement->unique && statement->excludeOpNames == NIL &&
		   (strcmp(statement->accessMethod, DEFAULT_INDEX_TYPE) == 0 || strcmp(statement->accessMethod, METHOD) == 0);
}

/*
 * LIKE has the method of the other table's index in its statement already, and its options.  It stays as it is: a table
 * may be made like a partitioned one to become its partition.
 */
static void
choose_index(IndexStmt *statement)
{
	Oid table = RangeVarGetRelid(statement->relation, NoLock, true);
	List *types = NIL;
	ListCell *cell;

	smart_assert(statement->isconstraint && statement->unique);
	if (!OidIsValid(table))
		return;
	if (statement->transformed)
	{
		if (strcmp(statement->accessMethod, METHOD) == 0)
			smart_constraint_check_table(table);
		return;
	}
	foreach (cell, statement->indexParams)
	{
		const char *name = lfirst_node(IndexElem, cell)->name;
		AttrNumber column = name == NULL ? InvalidAttrNumber : get_attnum(table, name);

		types = lappend_oid(types, column > 0 ? get_atttype(table, column) : InvalidOid);
	}
	if (smart_constraint_choose(table, types, &statement->options))
		statement->accessMethod = pstrdup(METHOD);
	list_free(types);
}

/* ---- ALTER TABLE ---- */

/* The type that a column of this name has when all commands were carried out; InvalidOid if that is not known. */
static Oid
column_type(Oid table, const List *commands, const char *name)
{
	AttrNumber column = get_attnum(table, name);
	Oid type = column > 0 ? get_atttype(table, column) : InvalidOid;
	ListCell *cell;

	smart_assert(OidIsValid(table));
	foreach (cell, commands)
	{
		AlterTableCmd *command = lfirst_node(AlterTableCmd, cell);
		bool adds = command->subtype == AT_AddColumn && strcmp(((ColumnDef *) command->def)->colname, name) == 0;

		/* "serial" and what does not exist have no row; the server knows better. */
		if (adds || (command->subtype == AT_AlterColumnType && strcmp(command->name, name) == 0))
		{
			Type row = LookupTypeName(NULL, ((ColumnDef *) command->def)->typeName, NULL, true);

			type = row == NULL ? InvalidOid : typeTypeId(row);
			if (row != NULL)
				ReleaseSysCache(row);
		}
	}
	return type;
}

static bool
is_unique_constraint(const Node *node)
{
	const Constraint *constraint = (const Constraint *) node;

	return IsA(node, Constraint) && (constraint->contype == CONSTR_PRIMARY || constraint->contype == CONSTR_UNIQUE) &&
		   !smart_constraint_is_of_ranges(constraint);
}

/* Is it smart?  column: the one that it was written behind, or NULL. */
static bool
choose_constraint(Oid table, const List *commands, Constraint *constraint, const char *column)
{
	List *types = NIL;
	ListCell *cell;

	smart_assert(constraint->contype == CONSTR_PRIMARY || constraint->contype == CONSTR_UNIQUE);
	if (constraint->indexname != NULL)
		return false;
	if (column != NULL)
		types = list_make1_oid(column_type(table, commands, column));
	foreach (cell, constraint->keys)
		types = lappend_oid(types, column_type(table, commands, strVal(lfirst(cell))));
	if (smart_constraint_choose(table, types, &constraint->options))
		constraint->access_method = pstrdup(METHOD);
	list_free(types);
	return constraint->access_method != NULL;
}

/* Is one of those that the statement adds smart? */
static bool
choose_constraints(Oid table, const AlterTableStmt *statement)
{
	bool chosen = false;
	ListCell *cell;
	ListCell *inner;

	smart_assert(OidIsValid(table));
	foreach (cell, statement->cmds)
	{
		AlterTableCmd *command = lfirst_node(AlterTableCmd, cell);

		if (command->subtype == AT_AddConstraint && is_unique_constraint(command->def))
			chosen |= choose_constraint(table, statement->cmds, (Constraint *) command->def, NULL);
		else if (command->subtype == AT_AddColumn)
		{
			ColumnDef *column = castNode(ColumnDef, command->def);

			foreach (inner, column->constraints)
			{
				if (is_unique_constraint(lfirst(inner)))
					chosen |= choose_constraint(table, statement->cmds, lfirst(inner), column->colname);
			}
		}
	}
	return chosen;
}

/* Can a statement have something to do with constraints' indexes at all? */
static bool
concerns_constraints(const AlterTableStmt *statement)
{
	ListCell *cell;

	foreach (cell, statement->cmds)
	{
		AlterTableType type = lfirst_node(AlterTableCmd, cell)->subtype;

		if (type == AT_AddConstraint || type == AT_AddColumn || type == AT_AttachPartition ||
			type == AT_ResetRelOptions || smart_alters_values(type))
			return true;
	}
	return false;
}

/* ---- the hook ---- */

/* What ProcessUtility is told. */
struct call
{
	PlannedStmt *planned;
	const char *query;
	bool read_only;
	ProcessUtilityContext context;
	ParamListInfo params;
	QueryEnvironment *environment;
	DestReceiver *destination;
	QueryCompletion *completion;
};

static void
carry_out(const struct call *call)
{
	ProcessUtility_hook_type run = next_hook != NULL ? next_hook : standard_ProcessUtility;

	run(call->planned, call->query, call->read_only, call->context, call->params, call->environment, call->destination,
		call->completion);
}

/* The statement may be in a cache of plans: what is changed is a copy. */
static void
make_own(struct call *call)
{
	if (call->read_only)
		call->planned = copyObject(call->planned);
	call->read_only = false;
}

static void
carry_out_with_references(const struct call *call)
{
	List *held = smart_references_begin();

	PG_TRY();
	{
		carry_out(call);
	}
	PG_FINALLY();
	{
		smart_references_end(held);
	}
	PG_END_TRY();
}

static void
alter_table(struct call *call)
{
	AlterTableStmt *statement = castNode(AlterTableStmt, call->planned->utilityStmt);
	/* As the server is about to do it, and with its errors. */
	Oid table = AlterTableLookupRelation(statement, AlterTableGetLockLevel(statement->cmds));
	List *renewed = NIL;
	bool adds = false;

	smart_assert(!call->read_only);
	if (OidIsValid(table))
	{
		smart_constraint_check_commands(table, statement);
		smart_references_check(table, statement);
		adds = choose_constraints(table, statement);
		adds |= smart_constraint_take_indexes(table, statement, call->query);
		renewed = smart_constraint_make_anew(table, statement);
	}
	if (smart_references_come_from(statement))
		carry_out_with_references(call);
	else
		carry_out(call);
	smart_assert(OidIsValid(table) || (!adds && renewed == NIL));
	if (!adds && renewed == NIL)
		return;
	CommandCounterIncrement();
	smart_constraint_describe(table, renewed);
	smart_replica_look_at(table);
}

static void
at_utility(PlannedStmt *planned, const char *query, bool read_only, ProcessUtilityContext context, ParamListInfo params,
		   QueryEnvironment *environment, DestReceiver *destination, QueryCompletion *completion)
{
	struct call call = {planned, query, read_only, context, params, environment, destination, completion};
	Node *statement = planned->utilityStmt;

	if (IsA(statement, AlterTableStmt) && concerns_constraints((AlterTableStmt *) statement))
	{
		make_own(&call);
		alter_table(&call);
		return;
	}
	if (IsA(statement, IndexStmt) && is_constraint_index((IndexStmt *) statement))
	{
		make_own(&call);
		choose_index((IndexStmt *) call.planned->utilityStmt);
	}
	carry_out(&call);
}

void
smart_constraint_init(void)
{
	smart_assert(ProcessUtility_hook != at_utility);
	next_hook = ProcessUtility_hook;
	ProcessUtility_hook = at_utility;
}
