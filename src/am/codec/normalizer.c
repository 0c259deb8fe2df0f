/*
 * normalizer.c
 *	  What all normalized keys have in common: how they are made, of which parts, and how these are written.
 *
 * An array is the normalized keys of its elements, a range those of its bounds, and so on.  Which class has the
 * normalizer of a part is asked for when an index is opened; what comes out is kept as long as the backend lives,
 * since a codec must be one chunk that can be copied.  There is no more of it than there are types of columns.
 *
 * This file calls no type's normalizer by name: it finds them in the catalog, by the operator class.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "parser/parse_coerce.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/regproc.h"
#include "utils/syscache.h"

#include "am/codec/normalizer.h"

/* What smart_normalizer_keep() has kept */
struct kept
{
	struct kept *next;
	Size size;
	uint64 bytes[FLEXIBLE_ARRAY_MEMBER];
};

/* A function that normalized keys are made by (support function 12) */
struct function
{
	struct function *next;
	FmgrInfo call;
};

static struct kept *all_kept = NULL;
static struct function *all_functions = NULL;

const void *
smart_normalizer_keep(const void *bytes, Size size)
{
	struct kept *kept;

	for (kept = all_kept; kept != NULL; kept = kept->next)
	{
		if (kept->size == size && memcmp(kept->bytes, bytes, size) == 0)
			return kept->bytes;
	}
	kept = MemoryContextAlloc(TopMemoryContext, offsetof(struct kept, bytes) + size);
	kept->next = all_kept;
	kept->size = size;
	memcpy(kept->bytes, bytes, size);
	all_kept = kept;
	smart_assert(memcmp(all_kept->bytes, bytes, size) == 0);
	return kept->bytes;
}

/* ---- making ---- */

Datum
smart_normalizer_set(void *normalizer, const struct smart_normalizer *form,
					 void (*finish)(struct smart_normalizer *normalizer))
{
	const Size out = offsetof(struct smart_normalizer, width);

	smart_assert(form->encode != NULL && form->index_name == NULL && form->type == InvalidOid);
	memcpy((char *) normalizer + out, (const char *) form + out, sizeof(*form) - out);
	if (finish != NULL)
		finish(normalizer);
	return PointerGetDatum(normalizer);
}

/* The normalized key by support function 12: what the function returns, escaped */
static uint8 *
function_encode(const struct smart_normalizer *normalizer, Datum value, uint8 *out, uint8 *limit)
{
	const struct function *function = normalizer->details;
	LOCAL_FCINFO(call, 1);
	Datum result;
	struct varlena *bytes;

	InitFunctionCallInfoData(*call, unconstify(FmgrInfo *, &function->call), 1, normalizer->collation, NULL, NULL);
	call->args[0].value = value;
	call->args[0].isnull = false;
	result = FunctionCallInvoke(call);
	if (call->isnull)
		ereport(ERROR, errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				errmsg("function %s gives no bytes for a value of an index", format_procedure(function->call.fn_oid)));
	bytes = PG_DETOAST_DATUM_PACKED(result);
	out = smart_put_escaped(out, limit, (uint8 *) VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes));
	out = smart_put_bytes(out, limit, SMART_ESCAPED_END, 2);
	smart_free_copy(bytes, result);
	return out;
}

/* Support function 12 as it is called: looked up once in a backend */
static const struct function *
find_function(Oid oid)
{
	struct function *function = all_functions;

	while (function != NULL && function->call.fn_oid != oid)
		function = function->next;
	if (function == NULL)
	{
		function = MemoryContextAllocZero(TopMemoryContext, sizeof(*function));
		fmgr_info_cxt(oid, &function->call, TopMemoryContext);
		function->next = all_functions;
		all_functions = function;
	}
	smart_assert(function->call.fn_oid == oid);
	return function;
}

void
smart_normalizer_make(struct smart_normalizer *normalizer, Oid bytes, Oid describe)
{
	smart_assert(OidIsValid(bytes) || OidIsValid(describe));
	if (OidIsValid(bytes))
	{
		normalizer->forgets = true;
		normalizer->details = find_function(bytes);
		normalizer->encode = function_encode;
		normalizer->end = smart_escaped_end;
	}
	else
		OidFunctionCall1(describe, PointerGetDatum(normalizer));
	if (normalizer->encode == NULL || normalizer->width < 0 || normalizer->width > SMART_NORMALIZED_WIDTH_MAX ||
		(normalizer->width == 0) != (normalizer->end != NULL) || (normalizer->decode == NULL && !normalizer->forgets) ||
		normalizer->residue_width < 0 || (normalizer->residue_width > 0) != (normalizer->residue != NULL) ||
		normalizer->decode_extra < 0)
		ereport(ERROR, errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
				errmsg("normalizer for type %s in index \"%s\" does not describe a normalized key",
					   format_type_be(normalizer->value_type), normalizer->index_name));
	normalizer->index_name = NULL;
}

/* ---- parts ---- */

/* Sets *class to the operator class that orders values of type by compare: a default one, or else the first */
static bool
find_class(Oid method, Oid type, Oid compare, FormData_pg_opclass *class)
{
	CatCList *classes = SearchSysCacheList1(CLAAMNAMENSP, ObjectIdGetDatum(method));
	bool found = false;

	memset(class, 0, sizeof(*class));
	for (int i = 0; i < classes->n_members && !(found && class->opcdefault); i++)
	{
		Form_pg_opclass one = (Form_pg_opclass) GETSTRUCT(&classes->members[i]->tuple);

		if ((found && !one->opcdefault) || !IsBinaryCoercible(type, one->opcintype) ||
			get_opfamily_proc(one->opcfamily, one->opcintype, one->opcintype, SMART_COMPARE_PROC) != compare)
			continue;
		*class = *one;
		found = true;
	}
	ReleaseCatCacheList(classes);
	return found;
}

void
smart_normalizer_add_part(struct smart_normalizer *whole, Oid type, Oid collation, Oid compare)
{
	struct smart_normalizer part;
	FormData_pg_opclass class;
	Oid bytes;
	Oid describe;

	smart_assert(whole->index_name != NULL && OidIsValid(whole->method));
	check_stack_depth();
	type = getBaseType(type);
	if (!OidIsValid(compare) || !find_class(whole->method, type, compare, &class))
		ereport(ERROR, errcode(ERRCODE_UNDEFINED_OBJECT),
				errmsg("values of type %s cannot be in index \"%s\"", format_type_be(whole->value_type),
					   whole->index_name),
				errdetail("No operator class of access method \"smart\" orders values of type %s as they are compared "
						  "there.",
						  format_type_be(type)));
	bytes = get_opfamily_proc(class.opcfamily, class.opcintype, class.opcintype, SMART_BYTES_PROC);
	describe = get_opfamily_proc(class.opcfamily, class.opcintype, class.opcintype, SMART_NORMALIZER_PROC);
	if (!OidIsValid(bytes) && !OidIsValid(describe))
		elog(ERROR, "operator class %u has no normalizer", class.oid);

	/* Padding is cleared, too, since equal normalized keys are told by their bytes. */
	memset(&part, 0, sizeof(part));
	part.index_name = whole->index_name;
	part.method = whole->method;
	part.type = class.opcintype;
	part.value_type = type;
	part.collation = collation;
	part.typmod = -1;
	smart_normalizer_make(&part, bytes, describe);
	part.next = whole->part;

	smart_assert(part.index_name == NULL && part.encode != NULL);
	whole->part = smart_normalizer_keep(&part, sizeof(part));
	whole->unordered = whole->unordered || part.unordered;
	whole->forgets = whole->forgets || part.forgets || part.residue_width > 0;
	whole->version = part.version;
	if (part.refusal != NULL)
		whole->refusal = part.refusal;
}

List *
smart_normalizer_enums(const struct smart_normalizer *normalizer)
{
	List *types = NIL;

	for (; normalizer != NULL; normalizer = normalizer->next)
	{
		if (normalizer->by_catalog)
			types = lappend_oid(types, normalizer->value_type);
		types = list_concat(types, smart_normalizer_enums(normalizer->part));
	}
	return types;
}

bool
smart_normalizer_alterable(const struct smart_normalizer *normalizer)
{
	for (; normalizer != NULL; normalizer = normalizer->next)
	{
		if (normalizer->current != NULL || smart_normalizer_alterable(normalizer->part))
			return true;
	}
	return false;
}

bool
smart_normalizer_current(const struct smart_normalizer *normalizer)
{
	for (; normalizer != NULL; normalizer = normalizer->next)
	{
		if ((normalizer->current != NULL && !normalizer->current(normalizer)) ||
			!smart_normalizer_current(normalizer->part))
			return false;
	}
	return true;
}

uint8 *
smart_put_normalized(const struct smart_normalizer *normalizer, Datum value, uint8 *out, uint8 *limit)
{
	uint8 fixed[SMART_NORMALIZED_WIDTH_MAX];

	if (out == NULL || normalizer->width == 0 || normalizer->width <= limit - out)
		return out == NULL ? NULL : normalizer->encode(normalizer, value, out, limit);
	smart_assert(normalizer->width <= SMART_NORMALIZED_WIDTH_MAX);
	(void) normalizer->encode(normalizer, value, fixed, fixed + normalizer->width);
	return smart_put_bytes(out, limit, fixed, normalizer->width);
}

const uint8 *
smart_escaped_end(const struct smart_normalizer *normalizer, const uint8 *bytes, const uint8 *limit, uint8 flip)
{
	return smart_find_escaped_end(bytes, limit, flip);
}

const uint8 *
smart_normalizer_end(const struct smart_normalizer *normalizer, const uint8 *bytes, const uint8 *limit, uint8 flip)
{
	if (normalizer->width > 0 || bytes == NULL)
		return smart_skip(bytes, limit, normalizer->width);
	return normalizer->end(normalizer, bytes, limit, flip);
}
