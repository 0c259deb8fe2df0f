/*
 * choice.c
 *	  Which constraints get smart indexes: the option of each, WITH (smart = on) or off, and otherwise smart.constraints.
 *
 * The option is an order, and what stands in its way is an error.  The setting is a wish: where a smart index cannot be,
 * or would be in the way of what works with a btree, the constraint gets a btree.  An index that was chosen has the
 * option in any case, since this is how pg_dump hands the choice on.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "utils/lsyscache.h"

#include "am/build/build.h"
#include "am/compat.h"
#include "am/constraint/choice.h"
#include "am/index/options.h"
#include "am/server/settings.h"
#include "base/assert.h"

Oid
smart_constraint_method(void)
{
	return get_index_am_oid("smart", true);
}

void
smart_constraint_check_table(Oid table)
{
	smart_assert(OidIsValid(table));
	if (!SMART_UNIQUE_PARTITIONS && get_rel_relkind(table) == RELKIND_PARTITIONED_TABLE)
		ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("a constraint of partitioned table \"%s\" cannot have a smart index", get_rel_name(table)),
				errhint("Leave option \"%s\" out, or use PostgreSQL 18 or newer.", SMART_OPTION));
}

/* The operator that a class has for equality of a type that is maybe not its own; InvalidOid: none but its own type's. */
static Oid
equality_of(Oid type, Oid class)
{
	return OidIsValid(class) ? get_opfamily_member(get_opclass_family(class), type, type, BTEqualStrategyNumber)
							 : InvalidOid;
}

/*
 * Can the method index columns of this type by its default class, and do conditions find them that would find them in a
 * btree?  Operators may have been added to btree's family only.
 */
static bool
takes_type(Oid type, Oid method)
{
	Oid base = getBaseType(type);
	Oid class = GetDefaultOpClass(base, method);

	smart_assert(OidIsValid(base) && OidIsValid(method));
	return OidIsValid(class) && smart_build_takes_class(base, get_opclass_input_type(class), method) &&
		   equality_of(base, class) == equality_of(base, GetDefaultOpClass(base, BTREE_AM_OID));
}

/* May the constraint have a smart index without being asked for it by name? */
static bool
suits(Oid table, const List *types)
{
	Oid method = smart_constraint_method();
	ListCell *cell;

	/* pg_upgrade brings the old cluster's files, which are of what its dump says. */
	if (!OidIsValid(method) || IsBinaryUpgrade)
		return false;
	/* Partitions are as their table; and INSERT ... ON CONFLICT through it is not to fail because of them. */
	if (!SMART_UNIQUE_PARTITIONS &&
		(get_rel_relkind(table) == RELKIND_PARTITIONED_TABLE || get_rel_relispartition(table)))
		return false;
	foreach (cell, types)
	{
		if (OidIsValid(lfirst_oid(cell)) && !takes_type(lfirst_oid(cell), method))
			return false;
	}
	return true;
}

/* The option in a WITH clause, NULL if there is none. */
static DefElem *
find_option(const List *options)
{
	DefElem *found = NULL;
	ListCell *cell;

	foreach (cell, options)
	{
		DefElem *option = lfirst_node(DefElem, cell);

		if (option->defnamespace != NULL || strcmp(option->defname, SMART_OPTION) != 0)
			continue;
		if (found != NULL)
			ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					errmsg("parameter \"%s\" specified more than once", SMART_OPTION));
		found = option;
	}
	return found;
}

bool
smart_constraint_choose(Oid table, const List *types, List **options)
{
	DefElem *option = find_option(*options);

	smart_assert(OidIsValid(table));
	if (option != NULL && defGetBoolean(option))
	{
		if (!OidIsValid(smart_constraint_method()))
			ereport(ERROR, errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("access method \"smart\" does not exist"),
					errhint("CREATE EXTENSION smart makes it."));
		smart_constraint_check_table(table);
		return true;
	}
	if (option != NULL)
	{
		*options = list_delete_ptr(*options, option);
		return false;
	}
	if (!smart_settings.constraints || !suits(table, types))
		return false;
	*options = lappend(*options, makeDefElem(SMART_OPTION, (Node *) makeString("on"), -1));
	return true;
}
