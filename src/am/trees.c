/*
 * trees.c
 *	  Making and freeing the trees of indexes.
 *
 * Only a metapage says which tree is in use, so a tree may be freed at once in
 * three cases only: the one who made it says that no metapage names it; the
 * file with the metapage that names it goes away with the (sub)transaction that
 * made both; it belongs to a temporary table of a backend that exits.  What is left
 * otherwise is found by a sweep (sweep.h).
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "am/server.h"
#include "am/handle.h"
#include "am/locate.h"
#include "am/meta.h"
#include "am/report.h"
#include "am/sweep.h"
#include "am/sweep_worker.h"
#include "am/worker.h"
#include "base/assert.h"

#define TEMPORARY_FEW 32 /* trees of temporary tables that may be leaked in a session */

/* A tree whose index's file goes away if the subtransaction is rolled back. */
struct young_tree
{
	uint64 id;
	SubTransactionId subtransaction;
	struct young_tree *next;
};

static struct young_tree *young_trees = NULL;

/* Frees the young trees of a subtransaction; InvalidSubTransactionId: of all. */
static void
free_young_trees(SubTransactionId subtransaction)
{
	struct young_tree **link = &young_trees;

	while (*link != NULL)
	{
		struct young_tree *young = *link;

		if (subtransaction != InvalidSubTransactionId && young->subtransaction != subtransaction)
		{
			link = &young->next;
			continue;
		}
		smart_am_tree_drop(young->id);
		*link = young->next;
		pfree(young);
	}
}

static void
forget_young_trees(void)
{
	while (young_trees != NULL)
	{
		struct young_tree *young = young_trees;

		young_trees = young->next;
		pfree(young);
	}
}

static void
at_transaction_end(XactEvent event, void *argument)
{
	if (event == XACT_EVENT_ABORT)
		free_young_trees(InvalidSubTransactionId);
	else if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_PREPARE)
		forget_young_trees();
}

static void
at_subtransaction_end(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *argument)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		free_young_trees(mine);
	else if (event == SUBXACT_EVENT_COMMIT_SUB)
	{
		for (struct young_tree *young = young_trees; young != NULL; young = young->next)
		{
			if (young->subtransaction == mine)
				young->subtransaction = parent;
		}
	}
}

/*
 * The subtransaction with whose rollback the index's file goes away: the current
 * one, or one around it when the first insert into an empty index comes later.
 * InvalidSubTransactionId: the file is older than this transaction.
 */
static SubTransactionId
birth_of_file(Relation index)
{
	SubTransactionId new_file = smart_relation_new_file_subid(index);

	return new_file != InvalidSubTransactionId ? new_file : index->rd_createSubid;
}

static void
remember_young_tree(uint64 id, SubTransactionId subtransaction)
{
	static bool registered = false;
	struct young_tree *young;

	if (!registered)
	{
		RegisterXactCallback(at_transaction_end, NULL);
		RegisterSubXactCallback(at_subtransaction_end, NULL);
		registered = true;
	}
	young = MemoryContextAlloc(TopMemoryContext, sizeof(struct young_tree));
	young->id = id;
	young->subtransaction = subtransaction;
	young->next = young_trees;
	young_trees = young;
}

/* Frees the trees of this backend's temporary tables. */
static void
free_temporary_trees(int code, Datum argument)
{
	struct smart_space *space = &smart_backend_client()->space;
	struct smart_tree_info info;
	uint64 cursor = 0;

	while (smart_space_next_tree(space, &cursor, &info))
	{
		if (info.owner.backend == smart_my_backend() && info.owner.incarnation == smart_server_incarnation())
			smart_space_drop_tree(space, info.id);
	}
}

static void
describe_owner(Relation index, struct smart_tree_owner *owner)
{
	static bool registered = false;

	*owner = (struct smart_tree_owner){
		.tablespace = smart_relation_tablespace(index),
		.database = smart_relation_database(index),
		.relation = smart_relation_file(index),
		.backend = SMART_NO_BACKEND,
		.creator = U64FromFullTransactionId(GetTopFullTransactionId()),
	};
	if (index->rd_rel->relpersistence != RELPERSISTENCE_TEMP)
		return;
	owner->backend = smart_my_backend();
	owner->incarnation = smart_server_incarnation();
	if (!registered)
	{
		/* After smart_backend_client() has registered its own end: callbacks run in reverse order. */
		(void) smart_backend_client();
		before_shmem_exit(free_temporary_trees, 0);
		registered = true;
	}
}

/*
 * A session may live for long and drop many temporary tables: looks for their
 * trees when as many were made as were left the last time, and some.
 */
static void
sweep_temporary_sometimes(void)
{
	static uint64 made = 0;
	static uint64 limit = TEMPORARY_FEW;

	if (++made < limit || IsInParallelMode())
		return;
	made = 0;
	limit = smart_sweep_temporary() + TEMPORARY_FEW;
}

uint64
smart_tree_make(Relation index)
{
	struct smart_tree_owner owner;
	fabric_address root;
	uint64 since_ns = 0;
	smart_status status;
	uint64 id;

	if (smart_server_is_remote())
		smart_locate_wait(); /* right after the server's start there may be no memory node yet to make it on */
	if (index->rd_rel->relpersistence == RELPERSISTENCE_TEMP)
		sweep_temporary_sometimes();
	smart_sweep_if_scarce();
	smart_sweep_note(SMART_SWEEP_IF_ABORTED);
	describe_owner(index, &owner);
	do
		status = smart_space_create_tree(&smart_backend_client()->space, &owner, &id, &root);
	while (smart_again_if_away(status, &since_ns));
	smart_check_status(status, index);
	if (birth_of_file(index) != InvalidSubTransactionId)
		remember_young_tree(id, birth_of_file(index));
	return id;
}

void
smart_am_tree_drop(uint64 tree)
{
	smart_assert(tree != 0);
	smart_handle_drop(tree);
	smart_space_drop_tree(&smart_backend_client()->space, tree);
	smart_worker_wake();
}

/*
 * Was the tree certainly made for the file that its index, whose owner is given,
 * has now?  Numbers of files are used again one day, and a tree may have moved
 * on with another file (SET TABLESPACE); but not within a transaction, nor
 * among the temporary tables of one backend.  A temporary table's file may have
 * the number of another backend's, or of a permanent one.
 */
static bool
made_for_file(const struct smart_tree_owner *owner, const struct smart_tree_owner *index)
{
	return owner->database == index->database && owner->tablespace == index->tablespace &&
		   owner->relation == index->relation && owner->backend == index->backend &&
		   owner->incarnation == index->incarnation &&
		   (owner->backend != SMART_NO_BACKEND || owner->creator == index->creator);
}

void
smart_am_tree_drop_older(Relation index, uint64 keep)
{
	struct smart_space *space = &smart_backend_client()->space;
	struct smart_tree_info info;
	struct smart_tree_owner owner;
	uint64 cursor = 0;

	describe_owner(index, &owner);
	/* An index that was there before: the tree of its old file has no name any more if this transaction commits. */
	if (smart_relation_new_file_subid(index) != InvalidSubTransactionId)
		smart_sweep_note(SMART_SWEEP_IF_COMMITTED);
	while (smart_space_next_tree(space, &cursor, &info))
	{
		if (info.id != keep && made_for_file(&info.owner, &owner))
			smart_am_tree_drop(info.id);
	}
}
