/*
 * options.c
 *	  Storage parameters of an index: leaf_size, fillfactor, logged and resident, one of btree's, and the mark of constraints.
 */
#include "postgres.h"

#include "access/reloptions.h"
#include "utils/rel.h"

#include "am/index/options.h"
#include "base/assert.h"
#include "tree/tree.h"

#define FILLFACTOR_MIN     10
#define FILLFACTOR_DEFAULT 100

/* rd_options of an index. */
struct smart_options
{
	int32 vl_len_; /* varlena header (do not touch directly!) */
	int leaf_size;
	int fillfactor;
	bool logged;            /* with a journal */
	int resident;           /* enum smart_resident */
	bool deduplicate_items; /* ignored: entries share what they have in common anyway */
	bool smart;             /* never false */
};

static relopt_kind option_kind;

static relopt_enum_elt_def resident_values[] = {{"auto", SMART_RESIDENT_AUTO},
												{"always", SMART_RESIDENT_ALWAYS},
												{"never", SMART_RESIDENT_NEVER},
												{NULL, 0}};

void
smart_options_init(void)
{
	option_kind = add_reloption_kind();
	add_int_reloption(option_kind, "leaf_size", "Bytes up to which a leaf grows, a multiple of 64",
					  SMART_LEAF_SIZE_DEFAULT, SMART_LEAF_SIZE_MIN, SMART_LEAF_SIZE_MAX, AccessExclusiveLock);
	add_int_reloption(option_kind, "fillfactor", "Percentage to which CREATE INDEX fills leaves", FILLFACTOR_DEFAULT,
					  FILLFACTOR_MIN, 100, ShareUpdateExclusiveLock);
	/* The metapage decides, so a change counts from the next REINDEX on. */
	add_bool_reloption(option_kind, "logged", "Keeps the index in WAL and in its file, too", true, AccessExclusiveLock);
	add_enum_reloption(option_kind, "resident", "Keeps the index in memory, or answers from the pages of its file",
					   resident_values, SMART_RESIDENT_AUTO, "Valid values are \"auto\", \"always\" and \"never\".",
					   ShareUpdateExclusiveLock);
	/* So that a definition of a btree needs no other change than its method. */
	add_bool_reloption(option_kind, "deduplicate_items", "Accepted as btree's option, without an effect", true,
					   ShareUpdateExclusiveLock);
	/* Constraints are declared, and dumped, without an access method: this says that theirs is smart (src/am/constraint). */
	add_bool_reloption(option_kind, SMART_OPTION, "Gives the index of a constraint access method smart", true,
					   ShareUpdateExclusiveLock);
}

bytea *
smart_am_options(Datum reloptions, bool validate)
{
	static const relopt_parse_elt elements[] = {
		{.optname = "leaf_size", .opttype = RELOPT_TYPE_INT, .offset = offsetof(struct smart_options, leaf_size)},
		{.optname = "fillfactor", .opttype = RELOPT_TYPE_INT, .offset = offsetof(struct smart_options, fillfactor)},
		{.optname = "logged", .opttype = RELOPT_TYPE_BOOL, .offset = offsetof(struct smart_options, logged)},
		{.optname = "resident", .opttype = RELOPT_TYPE_ENUM, .offset = offsetof(struct smart_options, resident)},
		{.optname = "deduplicate_items",
		 .opttype = RELOPT_TYPE_BOOL,
		 .offset = offsetof(struct smart_options, deduplicate_items)},
		{.optname = SMART_OPTION, .opttype = RELOPT_TYPE_BOOL, .offset = offsetof(struct smart_options, smart)},
	};
	struct smart_options *options;

	options = (struct smart_options *) build_reloptions(reloptions, validate, option_kind, sizeof(struct smart_options),
														elements, lengthof(elements));
	/* reloptions know no step; what is not a multiple is refused before it is stored. */
	if (validate && options != NULL && options->leaf_size % SMART_UNIT != 0)
		ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("value %d out of bounds for option \"%s\"", options->leaf_size, "leaf_size"),
				errdetail("Valid values are multiples of %d between %d and %d.", SMART_UNIT, SMART_LEAF_SIZE_MIN,
						  SMART_LEAF_SIZE_MAX));
	if (validate && options != NULL && !options->smart)
		ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				errmsg("an index of access method \"smart\" cannot have option \"%s\" turned off", SMART_OPTION),
				errhint("It chooses the access method where a constraint is declared."));
	return (bytea *) options;
}

int
smart_options_leaf_size(Relation index)
{
	const struct smart_options *options = (const struct smart_options *) index->rd_options;
	int bytes = options == NULL ? SMART_LEAF_SIZE_DEFAULT : options->leaf_size;

	smart_assert(bytes >= SMART_LEAF_SIZE_MIN && bytes <= SMART_LEAF_SIZE_MAX);
	smart_assert(bytes % SMART_UNIT == 0);
	return bytes;
}

int
smart_options_fillfactor(Relation index)
{
	const struct smart_options *options = (const struct smart_options *) index->rd_options;
	int percent = options == NULL ? FILLFACTOR_DEFAULT : options->fillfactor;

	smart_assert(percent >= FILLFACTOR_MIN && percent <= 100);
	return percent;
}

bool
smart_options_logged(Relation index)
{
	const struct smart_options *options = (const struct smart_options *) index->rd_options;

	return options == NULL || options->logged;
}

enum smart_resident
smart_options_resident(Relation index)
{
	const struct smart_options *options = (const struct smart_options *) index->rd_options;

	smart_assert(options == NULL ||
				 (options->resident >= SMART_RESIDENT_AUTO && options->resident <= SMART_RESIDENT_NEVER));
	return options == NULL ? SMART_RESIDENT_AUTO : (enum smart_resident) options->resident;
}
