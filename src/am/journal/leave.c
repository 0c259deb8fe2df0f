/*
 * leave.c
 *	  An index gives up its tree.
 *
 * The tree is one that is lost from now on: who has it open goes on with it until he looks at the counter of changes, and what
 * he adds then is in the journal alone (src/README, J1).
 */
#include "postgres.h"

#include "utils/rel.h"

#include "am/compat.h"
#include "am/index/backend.h"
#include "am/index/relation.h"
#include "am/index/trees.h"
#include "am/journal/chain.h"
#include "am/journal/leave.h"
#include "am/server/launcher_requests.h"
#include "am/server/leaving_table.h"
#include "am/server/rebuild_table.h"
#include "am/server/tree_changes.h"
#include "am/server/validity.h"
#include "base/assert.h"

static bool
is_there(uint64 tree)
{
	fabric_address root;

	return smart_space_find_tree(&smart_backend_client()->space, tree, &root);
}

/* Notes where; false: it cannot be left there, so that it has to be given up. */
static bool
leave_behind(Relation index, struct smart_tail *tail, uint64 tree)
{
	struct smart_chain_place end;
	struct smart_rebuild move;
	struct smart_meta meta;

	smart_assert(tree != 0);
	smart_meta_read(index, &meta);
	if (meta.tree != tree || !smart_meta_is_loadable(&meta) ||
		smart_rebuild_find_move(smart_relation_database(index), RelationGetRelid(index), &move))
		return false;
	/* Before the note: what others append who have seen that stands behind this place. */
	smart_chain_end(index, tail, &end);
	smart_changes_foretell();
	return smart_tree_leave_behind(tree, &end, meta.losses);
}

void
smart_leave_behind(Relation index, struct smart_tail *tail, uint64 tree)
{
	struct smart_chain_place place;
	uint32 losses;

	smart_assert(tree != 0);
	if (smart_tree_is_behind(tree, &place, &losses) || smart_tree_is_given_up(tree))
		return;
	if (leave_behind(index, tail, tree))
		smart_validity_announce(index);
	else if (!smart_tree_is_behind(tree, &place, &losses))
		smart_tree_give_up(index, tree);
	else
		(void) smart_changes_announce(); /* it was foretold */
}

bool
smart_leave_memory(Relation index, uint64 tree, const char *why)
{
	struct smart_meta meta;

	smart_assert(tree != 0 && tree != SMART_TREE_NOWHERE);
	smart_meta_read(index, &meta);
	if (meta.tree != tree)
		return true;
	if (!smart_meta_is_loadable(&meta) || !smart_relation_may_answer(index))
		return false;
	smart_tree_give_up(index, tree);
	/* VACUUM waits for who reads the tree, as long as the metapage names it, or it stands in the table of those that leave. */
	if (is_there(tree) && !smart_leaving_add(smart_relation_database(index), RelationGetRelid(index), tree))
		return true;
	if (smart_meta_move_tree(index, smart_relation_codec(index), tree, SMART_TREE_NOWHERE, &meta.losses))
		ereport(LOG, errmsg("smart index \"%s\" has left memory: %s", RelationGetRelationName(index), why),
				errdetail("The pages of its journal answer."));
	smart_validity_announce(index);
	smart_launcher_wake();
	return true;
}
