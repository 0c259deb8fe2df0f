/*
 * image.c - images that are made of other images, or by functions of the user's own
 *
 * An array is the images of its elements, a range those of its bounds, and so on.  Which class has the image of a part is
 * asked for when an index is opened; what comes out is kept as long as the backend lives, since a codec must be one
 * chunk that can be copied.  There is no more of it than there are types of columns.
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

#include "am/image.h"

/* What smart_image_keep() has kept */
struct kept
{
	struct kept *next;
	Size size;
	uint64 bytes[FLEXIBLE_ARRAY_MEMBER];
};

/* A function that images are made by (support function 12) */
struct function
{
	struct function *next;
	FmgrInfo call;
};

static struct kept *all_kept = NULL;
static struct function *all_functions = NULL;

const void *
smart_image_keep(const void *bytes, Size size)
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
	return kept->bytes;
}

void
smart_image_check(const struct smart_image *image)
{
	if (image->encode == NULL || image->width < 0 || image->width > SMART_IMAGE_WIDTH_MAX ||
		(image->width == 0) != (image->end != NULL) || (image->decode == NULL && !image->forgets) ||
		image->residue_width < 0 || (image->residue_width > 0) != (image->residue != NULL) || image->decode_extra < 0)
		ereport(ERROR, errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
				errmsg("image function for type %s in index \"%s\" does not describe an image",
					   format_type_be(image->value_type), image->index_name));
}

/* ---- functions of the user's own ---- */

static uint8 *
function_encode(const struct smart_image *image, Datum value, uint8 *out, uint8 *limit)
{
	const struct function *function = image->details;
	LOCAL_FCINFO(call, 1);
	Datum result;
	struct varlena *bytes;
	uint8 *end;

	InitFunctionCallInfoData(*call, unconstify(FmgrInfo *, &function->call), 1, image->collation, NULL, NULL);
	call->args[0].value = value;
	call->args[0].isnull = false;
	result = FunctionCallInvoke(call);
	if (call->isnull)
		ereport(ERROR, errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				errmsg("function %s gives no bytes for a value of an index", format_procedure(function->call.fn_oid)));
	bytes = PG_DETOAST_DATUM_PACKED(result);
	end = smart_put_escaped(out, limit, (uint8 *) VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes));
	if (end != NULL)
		end = smart_put_bytes(end, limit, "\0\0", 2);
	if (PointerGetDatum(bytes) != result)
		pfree(bytes);
	return end;
}

void
smart_image_by_function(struct smart_image *image, Oid function)
{
	struct function *known = all_functions;

	while (known != NULL && known->call.fn_oid != function)
		known = known->next;
	if (known == NULL)
	{
		known = MemoryContextAllocZero(TopMemoryContext, sizeof(*known));
		fmgr_info_cxt(function, &known->call, TopMemoryContext);
		known->next = all_functions;
		all_functions = known;
	}
	image->forgets = true;
	image->details = known;
	image->encode = function_encode;
	image->end = smart_escaped_end;
}

/* ---- parts ---- */

/* Sets *class to the first operator class that orders values of type by compare */
static bool
find_class(Oid method, Oid type, Oid compare, FormData_pg_opclass *class)
{
	CatCList *classes = SearchSysCacheList1(CLAAMNAMENSP, ObjectIdGetDatum(method));
	bool found = false;

	for (int i = 0; i < classes->n_members && !found; i++)
	{
		Form_pg_opclass one = (Form_pg_opclass) GETSTRUCT(&classes->members[i]->tuple);

		found = IsBinaryCoercible(type, one->opcintype) &&
				get_opfamily_proc(one->opcfamily, one->opcintype, one->opcintype, SMART_COMPARE_PROC) == compare;
		if (found)
			*class = *one;
	}
	ReleaseCatCacheList(classes);
	return found;
}

const struct smart_image *
smart_image_of_part(const struct smart_image *whole, Oid type, Oid collation, Oid compare,
					const struct smart_image *next)
{
	struct smart_image image;
	FormData_pg_opclass class;
	Oid function;

	check_stack_depth();
	type = getBaseType(type);
	if (!OidIsValid(compare) || !find_class(whole->method, type, compare, &class))
		ereport(ERROR, errcode(ERRCODE_UNDEFINED_OBJECT),
				errmsg("values of type %s cannot be in index \"%s\"", format_type_be(whole->value_type),
					   whole->index_name),
				errdetail("No operator class of access method \"smart\" orders values of type %s as they are compared "
						  "there.",
						  format_type_be(type)));

	memset(&image, 0, sizeof(image));
	image.index_name = whole->index_name;
	image.method = whole->method;
	image.type = class.opcintype;
	image.value_type = type;
	image.collation = collation;
	image.typmod = -1;
	function = get_opfamily_proc(class.opcfamily, class.opcintype, class.opcintype, SMART_BYTES_PROC);
	if (OidIsValid(function))
		smart_image_by_function(&image, function);
	else
	{
		function = get_opfamily_proc(class.opcfamily, class.opcintype, class.opcintype, SMART_IMAGE_PROC);
		if (!OidIsValid(function))
			elog(ERROR, "operator class %u has no image function", class.oid);
		OidFunctionCall1(function, PointerGetDatum(&image));
	}
	smart_image_check(&image);
	image.index_name = NULL;
	image.next = next;
	return smart_image_keep(&image, sizeof(image));
}

List *
smart_image_enums(const struct smart_image *image)
{
	List *types = NIL;

	for (; image != NULL; image = image->next)
	{
		if (smart_image_is_enum(image))
			types = lappend_oid(types, image->value_type);
		types = list_concat(types, smart_image_enums(image->part));
	}
	return types;
}

bool
smart_image_alterable(const struct smart_image *image)
{
	for (; image != NULL; image = image->next)
	{
		if (image->current != NULL || smart_image_alterable(image->part))
			return true;
	}
	return false;
}

bool
smart_image_current(const struct smart_image *image)
{
	for (; image != NULL; image = image->next)
	{
		if ((image->current != NULL && !image->current(image)) || !smart_image_current(image->part))
			return false;
	}
	return true;
}

uint8 *
smart_put_image(const struct smart_image *image, Datum value, uint8 *out, uint8 *limit)
{
	uint8 fixed[SMART_IMAGE_WIDTH_MAX];

	if (image->width == 0 || image->width <= limit - out)
		return image->encode(image, value, out, limit);
	(void) image->encode(image, value, fixed, fixed + image->width);
	return smart_put_bytes(out, limit, fixed, image->width);
}

const uint8 *
smart_image_end(const struct smart_image *image, const uint8 *bytes, const uint8 *limit, uint8 flip)
{
	if (image->width == 0)
		return image->end(image, bytes, limit, flip);
	return image->width <= limit - bytes ? bytes + image->width : NULL;
}
