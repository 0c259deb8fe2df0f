/*
 * index_stat.c
 *	  SQL functions about an index: smart_index_stats(); its state, its size and what is known about its loss and its
 *	  rebuild, smart_index_condition(); and the bytes under which it orders values, smart_normalized_key().
 *
 * The errors of rebuilds are for the table's owner and for members of pg_read_all_stats.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xlog.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "parser/parse_coerce.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "am/codec/encode.h"
#include "am/compat.h"
#include "am/index/backend.h"
#include "am/index/options.h"
#include "am/index/relation.h"
#include "am/index/trees.h"
#include "am/journal/carry.h"
#include "am/journal/promote.h"
#include "am/journal/standby.h"
#include "am/monitor/stat_row.h"
#include "am/server/rebuild_table.h"
#include "am/server/shared.h"
#include "am/server/validity.h"
#include "base/assert.h"

PG_FUNCTION_INFO_V1(smart_index_stats);
PG_FUNCTION_INFO_V1(smart_index_condition);
PG_FUNCTION_INFO_V1(smart_normalized_key);

/* Bytes of memory that the delta takes of an index whose pages answer; 0 if nobody has asked it yet. */
static uint64
delta_bytes(Relation index)
{
	struct smart_tree_info info;
	struct smart_meta meta;

	smart_meta_read(index, &meta);
	return smart_tree_of_delta(index, &meta, &info) ? smart_space_tree_bytes(smart_tree_space(info.id), info.id) : 0;
}

/* Those of its own tree; 0 if it has none. */
static uint64
tree_bytes(Relation index)
{
	uint64 tree = smart_relation_tree(index);

	return tree == 0 || tree == SMART_TREE_NOWHERE ? 0 : smart_space_tree_bytes(smart_tree_space(tree), tree);
}

/* Those of the tree on memory nodes that follows the journal of one that writes back; 0 if there is none. */
static uint64
follower_bytes(Relation index)
{
	uint64 tree = smart_carry_tree(index);

	return tree == 0 ? 0 : smart_space_tree_bytes(smart_tree_space(tree), tree);
}

/* The tree of an index: its own, or the one on memory nodes that follows, which is brought up to date.  Errors: it has none. */
static struct smart_relation *
open_tree(Relation index)
{
	struct smart_relation *follower = NULL;
	struct smart_meta meta;

	smart_server_require();
	if (smart_carry_all(index))
	{
		smart_meta_read(index, &meta);
		follower = smart_carry_open(index, smart_codec_make(index, CurrentMemoryContext), &meta);
	}
	return follower != NULL ? follower : smart_journal_open(index, false);
}

/* Walks the whole tree and counts. */
PGDLLEXPORT Datum
smart_index_stats(PG_FUNCTION_ARGS)
{
	Relation index = smart_index_open(PG_GETARG_OID(0));
	struct smart_relation *self = open_tree(index);
	struct smart_verify_report report = {0};
	char message[256];
	struct smart_row row;
	uint64 nodes = 0;
	smart_status status = SMART_OK;

	if (self->tree != NULL)
		status = smart_relation_verify(self, &report, message, sizeof(message));
	if (status == SMART_CORRUPT)
		ereport(ERROR, errcode(ERRCODE_INDEX_CORRUPTED),
				errmsg("index \"%s\" is corrupt", RelationGetRelationName(index)), errdetail_internal("%s", message));
	smart_check_status(status, index);
	relation_close(index, AccessShareLock);
	smart_assert(report.bytes_used <= report.bytes_blocks);
	for (int kind = 1; kind <= SMART_NODE_KINDS; kind++)
		nodes += report.nodes[kind];
	smart_row_begin(&row, fcinfo);
	smart_row_count(&row, report.entries);
	smart_row_count(&row, report.leaves);
	smart_row_count(&row, nodes);
	smart_row_count(&row, report.bytes_used);
	smart_row_count(&row, smart_relation_bytes(self));
	/* The share of the blocks' bytes that hold something; an empty tree has no blocks. */
	smart_row_value(&row, Float8GetDatum((double) report.bytes_used / (double) Max(report.bytes_blocks, 1)),
					report.bytes_blocks != 0);
	smart_row_value(&row, Int32GetDatum((int32) report.height), true);
	smart_row_counts(&row, report.nodes + 1, SMART_NODE_KINDS);
	return smart_row_return(&row);
}

/* ---- its state ---- */

enum state
{
	READY,
	EMPTY,
	INVALID,
	PAGED,
	CARRIED,
	LOST,
	UNREACHABLE,
	LOADING,
	REBUILDING,
	UNAVAILABLE,
	LOCKED
};

static const char *const state_names[] = {
	[READY] = "ready",
	[EMPTY] = "empty",
	[INVALID] = "invalid",
	[PAGED] = "paged",
	[CARRIED] = "carried",
	[LOST] = "lost",
	[UNREACHABLE] = "unreachable",
	[LOADING] = "loading",
	[REBUILDING] = "rebuilding",
	[UNAVAILABLE] = "unavailable",
	[LOCKED] = "locked",
};

/*
 * Opens an index for a view, which waits for nobody.  NULL: it was dropped a moment ago, or, *locked, another session keeps
 * all others out.
 */
static Relation
open_at_once(Oid oid, bool *locked)
{
	Relation index;

	*locked = !ConditionalLockRelationOid(oid, AccessShareLock);
	if (*locked)
		return NULL;
	index = smart_index_try_open(oid);
	UnlockRelationOid(oid, AccessShareLock);
	return index;
}

/* Of an index whose pages are to answer; *reason: why. */
static enum state
find_paged_state(Relation index, const char **reason)
{
	bool carried;

	if (!smart_relation_writes_back(index))
	{
		*reason = smart_options_resident(index) == SMART_RESIDENT_NEVER ? "Its option \"resident\" says so"
																		: "There is no room for its tree";
		return PAGED;
	}
	carried = follower_bytes(index) > 0;
	/* Nobody may have planned with it since its file is another one, say. */
	if (!carried && smart_relation_wants_follower(index))
		smart_validity_notice(index);
	*reason = carried ? "It writes back, and has a tree on memory nodes that follows" : "It writes back";
	return carried ? CARRIED : PAGED;
}

/*
 * The state of an index, and in *reason the reason for it, or NULL; *rebuild is what the table of rebuilds has about the index, or has
 * the state 0.
 */
static enum state
find_state(Relation index, const char **reason, struct smart_rebuild *rebuild)
{
	struct smart_glance glance;
	enum smart_loss absence;
	enum smart_loss loss;

	*reason = NULL;
	memset(rebuild, 0, sizeof(*rebuild));
	if (!index->rd_index->indisvalid)
		return INVALID; /* there may be no metapage yet */
	if (!smart_server_available() || (index->rd_rel->relpersistence == RELPERSISTENCE_UNLOGGED && RecoveryInProgress()))
		return UNAVAILABLE;
	(void) smart_rebuild_find(smart_relation_database(index), RelationGetRelid(index), rebuild);
	smart_assert(rebuild->state <= SMART_REBUILD_DONE);
	loss = smart_relation_loss(index);
	if (loss != SMART_LOSS_NONE && smart_promote(index))
		loss = smart_relation_loss(index);
	absence = smart_relation_absence(index);
	if (absence != SMART_LOSS_NONE)
		loss = absence;
	if (loss == SMART_LOSS_NONE)
		return smart_relation_glance(index, &glance) && !glance.paged && glance.bytes != 0 ? READY : EMPTY;
	*reason = smart_loss_text(loss);
	smart_assert(**reason != '\0');
	*reason = pnstrdup(*reason, strlen(*reason) - 1); /* a column has no full stop */
	if (rebuild->state == SMART_REBUILD_RUNNING)
		return rebuild->side == 0 ? LOADING : REBUILDING;
	if (absence != SMART_LOSS_NONE)
		return UNREACHABLE;
	return smart_relation_is_to_answer(index) ? find_paged_state(index, reason) : LOST;
}

/*
 * Puts the bytes of memory that the index takes in this state: of its tree, or of what it has beside its pages.  pg_relation_size()
 * returns those of the pages.  NULL in other states.
 */
static void
put_bytes(struct smart_row *row, Relation index, enum state state)
{
	smart_assert(state != LOCKED);
	if (state == PAGED || state == CARRIED)
		smart_row_count(row, delta_bytes(index) + follower_bytes(index));
	else if (state == READY || state == EMPTY)
		smart_row_count(row, tree_bytes(index));
	else
		smart_row_value(row, (Datum) 0, false);
}

static Datum
locked_row(FunctionCallInfo fcinfo)
{
	struct smart_row row;

	smart_row_begin(&row, fcinfo);
	smart_row_text(&row, state_names[LOCKED]);
	smart_row_value(&row, (Datum) 0, false);
	smart_row_text(&row, NULL);
	smart_row_value(&row, (Datum) 0, false);
	smart_row_value(&row, (Datum) 0, false);
	smart_row_text(&row, NULL);
	smart_row_value(&row, (Datum) 0, false);
	return smart_row_return(&row);
}

/*
 * smart_index_condition(index regclass) returns record
 *
 * A row: state, bytes, reason, since, failures, last_error, next_attempt; NULL if the index was dropped a moment ago.  States:
 * 'ready'; 'empty': without a tree, which the first insert makes; 'invalid': its concurrent build runs or has failed;
 * 'paged': it has no tree, as the pages of its journal are to answer; 'carried': nor has this, but a tree on memory nodes follows
 * what is written; 'lost': its tree is gone; 'unreachable': a memory node that has a part of it is away; 'loading'; 'rebuilding';
 * 'unavailable': this server runs without the library, or has no region, or no unlogged tables while it is a standby;
 * 'locked': another session keeps all others out of the index, and the state is not known.
 */
PGDLLEXPORT Datum
smart_index_condition(PG_FUNCTION_ARGS)
{
	bool locked;
	Relation index = open_at_once(PG_GETARG_OID(0), &locked);
	struct smart_rebuild rebuild;
	struct smart_row row;
	enum state state;
	const char *reason;
	bool private;
	bool knows_since; /* the table tells when the index came into this state */

	if (locked)
		return locked_row(fcinfo);
	if (index == NULL)
		PG_RETURN_NULL();
	private = !has_privs_of_role(GetUserId(), index->rd_rel->relowner) &&
			  !has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
	smart_row_begin(&row, fcinfo);
	state = find_state(index, &reason, &rebuild);
	smart_row_text(&row, state_names[state]);
	put_bytes(&row, index, state);
	smart_row_text(&row, reason);
	knows_since = reason == NULL ? rebuild.state == SMART_REBUILD_DONE
								 : rebuild.state == SMART_REBUILD_WAITING || rebuild.state == SMART_REBUILD_RUNNING;
	smart_row_value(&row, TimestampTzGetDatum(rebuild.since), knows_since);
	smart_row_value(&row, Int32GetDatum((int32) rebuild.failures), true);
	smart_row_text(&row, private || rebuild.error[0] == '\0' ? NULL : rebuild.error);
	smart_row_value(&row, TimestampTzGetDatum(rebuild.due),
					reason != NULL && rebuild.state == SMART_REBUILD_WAITING && rebuild.due != DT_NOEND);
	relation_close(index, AccessShareLock);
	return smart_row_return(&row);
}

/* ---- normalized keys ---- */

static void
check_types(Relation index, int count, const Oid *types, const bool *isnull)
{
	smart_assert(count > 0);
	if (count > IndexRelationGetNumberOfKeyAttributes(index))
		ereport(ERROR, errcode(ERRCODE_TOO_MANY_ARGUMENTS),
				errmsg("index \"%s\" has only %d key columns", RelationGetRelationName(index),
					   IndexRelationGetNumberOfKeyAttributes(index)));
	for (int i = 0; i < count; i++)
	{
		Oid column_type = TupleDescAttr(RelationGetDescr(index), i)->atttypid;
		Oid class_type = index->rd_opcintype[i];
		bool fits = IsPolymorphicType(class_type) ? getBaseType(types[i]) == getBaseType(column_type)
												  : IsBinaryCoercible(types[i], class_type);

		/* An untyped NULL is a NULL of any type; any other literal comes as unknown and cannot be read as a value */
		if (isnull[i] && types[i] == UNKNOWNOID)
			continue;
		if (!fits)
			ereport(ERROR, errcode(ERRCODE_DATATYPE_MISMATCH),
					errmsg("column %d of index \"%s\" is of type %s but the value is of type %s", i + 1,
						   RelationGetRelationName(index), format_type_be(column_type), format_type_be(types[i])),
					errhint("Cast the value to the column's type."));
	}
}

/*
 * smart_normalized_key(index regclass, VARIADIC columns "any") returns bytea
 *
 * The encoding of the given values of the first key columns: comparing two of them as bytea is comparing the rows in
 * the order of the index.  Values must be of the columns' types.  NULL if there is no such relation.  Errors: those of
 * smart_index_try_open(), TOO_MANY_ARGUMENTS, DATATYPE_MISMATCH, PROGRAM_LIMIT_EXCEEDED (no such entry could be
 * stored).
 */
PGDLLEXPORT Datum
smart_normalized_key(PG_FUNCTION_ARGS)
{
	Relation index;
	struct smart_codec *codec;
	Datum *values;
	Oid *types;
	bool *isnull;
	bytea *result = palloc(VARHDRSZ + SMART_COLUMNS_MAX);
	int count = extract_variadic_args(fcinfo, 1, false, &values, &types, &isnull);

	if (PG_ARGISNULL(0) || count <= 0)
		PG_RETURN_NULL();
	index = smart_index_try_open(PG_GETARG_OID(0));
	if (index == NULL)
		PG_RETURN_NULL();
	check_types(index, count, types, isnull);
	codec = smart_codec_make(index, CurrentMemoryContext);
	SET_VARSIZE(result, VARHDRSZ + smart_codec_encode_columns(codec, count, values, isnull, (uint8 *) VARDATA(result)));
	relation_close(index, AccessShareLock);
	PG_RETURN_BYTEA_P(result);
}
