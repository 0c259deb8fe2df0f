/*
 * validate.c
 *	  Checks operator classes of this access method (amvalidate).
 *
 * Each fault is told as a message of level INFO, so that one call finds all of them.
 */
#include "postgres.h"

#include "access/amvalidate.h"
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_amproc.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_opfamily.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/syscache.h"

#include "am/codec/encode.h"

#define BIT(number) (UINT64CONST(1) << (number))

/* btree's five strategies, which come together or not at all */
#define COMPARISONS                                                                            \
	(BIT(BTLessStrategyNumber) | BIT(BTLessEqualStrategyNumber) | BIT(BTEqualStrategyNumber) | \
	 BIT(BTGreaterEqualStrategyNumber) | BIT(BTGreaterStrategyNumber))

/* A validation in progress; in messages "operator family X" stands before each fault */
struct validation
{
	char *family_name;
	bool valid;
};

static void __attribute__((format(printf, 2, 3))) fault(struct validation *validation, const char *format, ...)
{
	char text[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	ereport(INFO, errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
			errmsg("operator family \"%s\" of access method \"smart\" %s", validation->family_name, text));
	validation->valid = false;
}

static void
check_function(struct validation *validation, Form_pg_amproc member)
{
	Oid left = member->amproclefttype;
	Oid right = member->amprocrighttype;
	bool good;

	switch (member->amprocnum)
	{
		case SMART_COMPARE_PROC:
			good = check_amproc_signature(member->amproc, INT4OID, true, 2, 2, left, right);
			break;
		case SMART_SORTSUPPORT_PROC:
			good = check_amproc_signature(member->amproc, VOIDOID, true, 1, 1, INTERNALOID);
			break;
		case SMART_INRANGE_PROC:
			good = check_amproc_signature(member->amproc, BOOLOID, true, 5, 5, left, left, right, BOOLOID, BOOLOID);
			break;
		case SMART_NORMALIZER_PROC:
			good = left == right && check_amproc_signature(member->amproc, INTERNALOID, true, 1, 1, INTERNALOID);
			break;
		case SMART_BYTES_PROC:
			good = left == right && check_amproc_signature(member->amproc, BYTEAOID, true, 1, 1, left);
			break;
		default:
			fault(validation, "contains function %s with invalid support number %d", format_procedure(member->amproc),
				  member->amprocnum);
			return;
	}
	if (!good)
		fault(validation, "contains function %s with wrong signature for support number %d",
			  format_procedure(member->amproc), member->amprocnum);
	/* Entries are found by what it returned for the rows that were inserted. */
	if (member->amprocnum == SMART_BYTES_PROC && func_volatile(member->amproc) != PROVOLATILE_IMMUTABLE)
		fault(validation, "contains function %s for support number %d, which is not immutable",
			  format_procedure(member->amproc), member->amprocnum);
}

static void
check_operator(struct validation *validation, Form_pg_amop member)
{
	int strategy = member->amopstrategy;
	bool takes_rows = member->amoplefttype == ANYOID && member->amoprighttype == RECORDOID;

	if (strategy < 1 || strategy > SMART_STRATEGIES || strategy == SMART_STRATEGY_ROW + BTEqualStrategyNumber)
		fault(validation, "contains operator %s with invalid strategy number %d", format_operator(member->amopopr),
			  strategy);
	else if ((strategy > SMART_STRATEGY_ROW) != takes_rows)
		fault(validation, "contains operator %s with wrong types for strategy number %d",
			  format_operator(member->amopopr), strategy);
	if (member->amoppurpose != AMOP_SEARCH || OidIsValid(member->amopsortfamily))
		fault(validation, "contains invalid ORDER BY specification for operator %s", format_operator(member->amopopr));
	if (!check_amop_signature(member->amopopr, BOOLOID, member->amoplefttype, member->amoprighttype))
		fault(validation, "contains operator %s with wrong signature", format_operator(member->amopopr));
}

/* Planner and scans take it for granted that all types of a family can be compared with each other */
static void
check_groups(struct validation *validation, List *groups, Form_pg_opclass class)
{
	List *types = NIL;
	int pairs = 0;
	ListCell *cell;

	foreach (cell, groups)
	{
		OpFamilyOpFuncGroup *group = (OpFamilyOpFuncGroup *) lfirst(cell);
		uint64 comparisons = group->operatorset & COMPARISONS;
		bool compared = (group->functionset & BIT(SMART_COMPARE_PROC)) != 0;
		bool normalized = (group->functionset & (BIT(SMART_NORMALIZER_PROC) | BIT(SMART_BYTES_PROC))) != 0;
		const char *left = format_type_be(group->lefttype);
		const char *right = format_type_be(group->righttype);

		/* A pair that has patterns or in_range alone claims no order */
		if (comparisons == 0 && !compared)
			continue;
		if (comparisons != COMPARISONS)
			fault(validation, "is missing comparison operators for types %s and %s", left, right);
		if (!compared)
			fault(validation, "is missing support function %d for types %s and %s", SMART_COMPARE_PROC, left, right);
		if (group->lefttype == group->righttype && !normalized)
			fault(validation, "is missing support function %d or %d for type %s", SMART_NORMALIZER_PROC,
				  SMART_BYTES_PROC, left);
		pairs++;
		types = list_append_unique_oid(types, group->lefttype);
		types = list_append_unique_oid(types, group->righttype);
	}
	if (!list_member_oid(types, class->opcintype))
		fault(validation, "has no comparison operators for the type of operator class \"%s\"", NameStr(class->opcname));
	if (pairs != list_length(types) * list_length(types))
		fault(validation, "is missing cross-type operators");
}

bool
smart_validate(Oid opclassoid)
{
	struct validation validation = {.valid = true};
	HeapTuple class_tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclassoid));
	HeapTuple family_tuple;
	Form_pg_opclass class;
	CatCList *operators;
	CatCList *functions;

	if (!HeapTupleIsValid(class_tuple))
		elog(ERROR, "cache lookup failed for operator class %u", opclassoid);
	class = (Form_pg_opclass) GETSTRUCT(class_tuple);
	family_tuple = SearchSysCache1(OPFAMILYOID, ObjectIdGetDatum(class->opcfamily));
	if (!HeapTupleIsValid(family_tuple))
		elog(ERROR, "cache lookup failed for operator family %u", class->opcfamily);
	validation.family_name = NameStr(((Form_pg_opfamily) GETSTRUCT(family_tuple))->opfname);

	/* Entries are made from the column itself, so there is nothing else that a class could store */
	if (OidIsValid(class->opckeytype))
		fault(&validation, "has operator class \"%s\" with a storage type", NameStr(class->opcname));
	operators = SearchSysCacheList1(AMOPSTRATEGY, ObjectIdGetDatum(class->opcfamily));
	functions = SearchSysCacheList1(AMPROCNUM, ObjectIdGetDatum(class->opcfamily));
	for (int i = 0; i < functions->n_members; i++)
		check_function(&validation, (Form_pg_amproc) GETSTRUCT(&functions->members[i]->tuple));
	for (int i = 0; i < operators->n_members; i++)
		check_operator(&validation, (Form_pg_amop) GETSTRUCT(&operators->members[i]->tuple));
	check_groups(&validation, identify_opfamily_groups(operators, functions), class);

	ReleaseCatCacheList(functions);
	ReleaseCatCacheList(operators);
	ReleaseSysCache(family_tuple);
	ReleaseSysCache(class_tuple);
	return validation.valid;
}
