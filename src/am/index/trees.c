/*
 * trees.c
 *	  Making and freeing the trees of indexes.
 *
 * Only a metapage says which tree is in use, so a tree may be freed at once in three cases only: its maker says that
 * no metapage names it; the file with the metapage that names it goes away with the (sub)transaction that made both;
 * it belongs to a temporary table of a backend that exits.  What is left otherwise is found by a collection of
 * orphans (orphans.h), for which a transaction leaves a note (launcher_requests.h).
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "am/compat.h"
#include "am/index/backend.h"
#include "am/index/handle.h"
#include "am/index/trees.h"
#include "am/nodes/locate.h"
#include "am/nodes/peers.h"
#include "am/server/database_birth.h"
#include "am/server/dead_rows.h"
#include "am/server/launcher_requests.h"
#include "am/server/shared.h"
#include "am/server/tree_changes.h"
#include "am/server/validity.h"
#include "base/assert.h"

/* A tree whose index's file goes away if the subtransaction is rolled back. */
struct young_tree
{
	uint64 id;
	SubTransactionId subtransaction;
	struct young_tree *next;
};

static struct young_tree *young_trees = NULL;

void (*smart_make_room_hook)(bool temporary) = NULL;

/* Forgets the young trees of a subtransaction (InvalidSubTransactionId: of all), and frees them if drop. */
static void
end_young_trees(SubTransactionId subtransaction, bool drop)
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
		if (drop)
			smart_am_tree_drop(young->id);
		*link = young->next;
		pfree(young);
	}
	smart_assert(subtransaction != InvalidSubTransactionId || young_trees == NULL);
}

static void
at_transaction_end(XactEvent event, void *argument)
{
	if (event == XACT_EVENT_ABORT)
		end_young_trees(InvalidSubTransactionId, true);
	else if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_PREPARE)
		end_young_trees(InvalidSubTransactionId, false);
}

static void
at_subtransaction_end(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *argument)
{
	smart_assert(mine != InvalidSubTransactionId && mine != parent);
	if (event == SUBXACT_EVENT_ABORT_SUB)
		end_young_trees(mine, true);
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
 * The tree goes with the subtransaction with whose rollback the index's file goes away: the current one, or one
 * around it when the first insert into an empty index comes later.  If the file is older than this transaction, a
 * metapage may name the tree whatever becomes of the transaction.
 */
static void
remember_young_tree(Relation index, uint64 id)
{
	static bool registered = false;
	SubTransactionId birth = smart_relation_new_file_subid(index);
	struct young_tree *young;

	smart_assert(id != 0 && IsTransactionState());
	if (birth == InvalidSubTransactionId)
		birth = index->rd_createSubid;
	if (birth == InvalidSubTransactionId)
		return;
	if (!registered)
	{
		RegisterXactCallback(at_transaction_end, NULL);
		RegisterSubXactCallback(at_subtransaction_end, NULL);
		registered = true;
	}
	young = MemoryContextAlloc(TopMemoryContext, sizeof(struct young_tree));
	*young = (struct young_tree){.id = id, .subtransaction = birth, .next = young_trees};
	young_trees = young;
}

/* Frees the trees of this backend's temporary tables. */
static void
free_temporary_trees(int code, Datum argument)
{
	struct smart_space *space = &smart_backend_client()->space;
	struct smart_tree_info info;
	uint64 cursor = 0;

	/* It would be that of all tables which are not temporary. */
	smart_assert(smart_my_backend() != SMART_NO_BACKEND);
	while (smart_space_next_tree(space, &cursor, &info))
	{
		if (info.owner.backend == smart_my_backend() && info.owner.incarnation == smart_server_incarnation())
			smart_space_drop_tree(space, info.id);
	}
}

static void
describe_file(Relation index, struct smart_tree_owner *owner)
{
	*owner = (struct smart_tree_owner){
		.tablespace = smart_relation_tablespace(index),
		.database = smart_relation_database(index),
		.relation = smart_relation_file(index),
		.backend = SMART_NO_BACKEND,
	};
}

static void
describe_owner(Relation index, struct smart_tree_owner *owner)
{
	static bool registered = false;

	describe_file(index, owner);
	owner->creator = U64FromFullTransactionId(GetTopFullTransactionId());
	if (index->rd_rel->relpersistence != RELPERSISTENCE_TEMP)
		return;
	owner->backend = smart_my_backend();
	smart_assert(owner->backend != SMART_NO_BACKEND);
	owner->incarnation = smart_server_incarnation();
	if (!registered)
	{
		/* After smart_backend_client() has registered its own end: callbacks run in reverse order. */
		(void) smart_backend_client();
		before_shmem_exit(free_temporary_trees, 0);
		registered = true;
	}
}

void
smart_am_tree_make_room(bool temporary)
{
	smart_assert(IsTransactionState());
	if (smart_make_room_hook != NULL)
		smart_make_room_hook(temporary);
}

static smart_status
create(struct smart_space *space, const struct smart_tree_owner *owner, uint64 *id)
{
	fabric_address root;
	uint64 since_ns = 0;
	smart_status status;

	smart_assert(owner->creator != 0 && OidIsValid(owner->database));
	do
		status = smart_space_create_tree(space, owner, id, &root);
	while (smart_again_if_away(status, &since_ns));
	smart_assert(status != SMART_OK || *id != 0);
	return status;
}

smart_status
smart_tree_make(Relation index, uint64 *tree)
{
	struct smart_tree_owner owner;
	smart_status status;
	uint64 id;

	if (smart_server.remote)
		smart_locate_wait(); /* right after the server's start there may be no memory node yet to make it on */
	smart_am_tree_make_room(index->rd_rel->relpersistence == RELPERSISTENCE_TEMP);
	smart_orphans_note(SMART_ORPHANS_IF_ABORTED);
	describe_owner(index, &owner);
	status = create(&smart_backend_client()->space, &owner, &id);
	if (status != SMART_OK)
		return status;
	remember_young_tree(index, id);
	*tree = id;
	return SMART_OK;
}

uint64
smart_follower_incarnation(uint32 flags)
{
	/* What a primary reads of its own chain may be lost in a crash, and a delta is with it. */
	return smart_database_birth() ^ ((flags & SMART_TREE_IS_DELTA) != 0 ? smart_server_incarnation() : 0);
}

/* One that follows the journal of a metapage; base: what of that it is made from, losses or a run. */
static smart_status
make_follower(Relation index, const struct smart_meta *meta, uint32 flags, uint64 base, uint64 *tree)
{
	bool is_delta = (flags & SMART_TREE_IS_DELTA) != 0;
	struct smart_space *space = &(is_delta ? smart_delta_client() : smart_backend_client())->space;
	struct smart_tree_owner owner;
	FullTransactionId top;
	smart_status status;

	smart_assert(meta->journal != 0 && meta->journal != SMART_PROMOTED);
	smart_assert(is_delta != ((flags & SMART_TREE_IS_FOLLOWER) != 0));
	if (smart_server.remote && !is_delta)
		smart_locate_wait();
	smart_am_tree_make_room(false);
	describe_file(index, &owner);
	/*
	 * It is no transaction's: one that has ended, whenever it is asked for.  But the index's file may be new in this one, and until
	 * that has ended no other process sees which index has it.
	 */
	top = GetTopFullTransactionIdIfAny();
	owner.creator = FullTransactionIdIsValid(top) ? U64FromFullTransactionId(top) : BootstrapTransactionId;
	owner.flags = flags;
	owner.leaf_size = meta->leaf_size;
	owner.incarnation = smart_follower_incarnation(flags);
	status = create(space, &owner, tree);
	if (status != SMART_OK)
		return status;
	(void) smart_space_put_note(space, *tree, SMART_NOTE_LOSSES, base);
	/* Last: until then it is the tree of no journal, which the collection of orphans leaves alone. */
	(void) smart_space_put_note(space, *tree, SMART_NOTE_JOURNAL, meta->journal);
	return SMART_OK;
}

smart_status
smart_tree_make_follower(Relation index, const struct smart_meta *meta, uint64 *tree)
{
	return make_follower(index, meta, SMART_TREE_IS_FOLLOWER, meta->losses, tree);
}

smart_status
smart_tree_make_delta(Relation index, const struct smart_meta *meta, bool lean, uint64 *tree)
{
	return make_follower(index, meta, SMART_TREE_IS_DELTA | (lean ? SMART_TREE_IS_LEAN : 0), meta->run, tree);
}

/* What a tree is looked for by. */
struct wanted
{
	const struct smart_meta *meta;
	uint32 flags;
	uint64 base;
	uint64 incarnation;
	struct smart_tree_owner file;
	bool of_file; /* it is of this file alone */
};

static bool
is_wanted(const struct wanted *wanted, const struct smart_tree_info *info)
{
	const struct smart_tree_owner *owner = &info->owner;

	smart_assert((wanted->flags & SMART_TREE_IS_LEAN) == 0);
	return (owner->flags & ~SMART_TREE_IS_LEAN) == wanted->flags && owner->database == wanted->file.database &&
		   owner->incarnation == wanted->incarnation &&
		   (!wanted->of_file ||
			(owner->relation == wanted->file.relation && owner->tablespace == wanted->file.tablespace)) &&
		   info->note[SMART_NOTE_JOURNAL] == wanted->meta->journal && info->note[SMART_NOTE_LOSSES] == wanted->base &&
		   info->note[SMART_NOTE_PLACE] != 0 && info->note[SMART_NOTE_REMOVAL] == 0 && !info->lost;
}

/* Where this process has found trees before: one statement looks for the same ones again and again. */
#define FOUND 64 /* a power of two */

static uint64 *
found_before(const struct wanted *wanted)
{
	static uint64 found[FOUND];

	return &found[(wanted->meta->journal + wanted->flags) % FOUND];
}

static bool
find(struct smart_space *space, const struct wanted *wanted, struct smart_tree_info *info)
{
	uint64 *before = found_before(wanted);
	uint64 cursor = 0;

	/* 0 is that of trees which are being made. */
	smart_assert(wanted->meta->journal != 0);
	if (*before != 0 && smart_space_tree_info(space, *before, info) && is_wanted(wanted, info))
		return true;
	while (smart_space_next_tree(space, &cursor, info))
	{
		if (!is_wanted(wanted, info))
			continue;
		*before = info->id;
		return true;
	}
	return false;
}

bool
smart_tree_of_journal(Relation index, const struct smart_meta *meta, struct smart_tree_info *info)
{
	struct wanted wanted = {.meta = meta,
							.flags = SMART_TREE_IS_FOLLOWER,
							.base = meta->losses,
							.incarnation = smart_follower_incarnation(SMART_TREE_IS_FOLLOWER)};

	if (smart_server_recovers())
		return false;
	describe_file(index, &wanted.file);
	/* A copy of the file goes on as it likes; if it is rolled back, that was none of the file's.  A standby sees neither. */
	wanted.of_file = !RecoveryInProgress();
	return smart_meta_is_loadable(meta) && find(&smart_backend_client()->space, &wanted, info);
}

bool
smart_tree_of_delta(Relation index, const struct smart_meta *meta, struct smart_tree_info *info)
{
	struct wanted wanted = {.meta = meta,
							.flags = SMART_TREE_IS_DELTA,
							.base = meta->run,
							.incarnation = smart_follower_incarnation(SMART_TREE_IS_DELTA),
							.of_file = true};

	describe_file(index, &wanted.file);
	return smart_meta_is_loadable(meta) && find(&smart_delta_client()->space, &wanted, info);
}

void
smart_tree_give_up(Relation index, uint64 tree)
{
	smart_assert(tree != 0);
	smart_changes_foretell();
	(void) smart_space_put_note(&smart_backend_client()->space, tree, SMART_NOTE_REMOVAL, SMART_GIVEN_UP);
	/* Behind the note: who has seen the number sees that. */
	smart_validity_announce(index);
}

/* ---- trees that are left behind ---- */

/* Its place is being noted, or it catches up. */
static uint64
changing_word(void)
{
	return smart_server_incarnation() ^ 1;
}

uint64
smart_tree_behind_word(void)
{
	return smart_server_incarnation() ^ 2;
}

static bool
swap_word(uint64 tree, uint64 now, uint64 word)
{
	smart_assert(tree != 0 && now != word);
	return smart_space_swap_note(&smart_backend_client()->space, tree, SMART_NOTE_REMOVAL, now, word);
}

bool
smart_tree_is_given_up(uint64 tree)
{
	uint64 note;

	return smart_space_get_note(smart_tree_space(tree), tree, SMART_NOTE_REMOVAL, &note) &&
		   (note == SMART_GIVEN_UP || note == changing_word());
}

bool
smart_tree_leave_behind(uint64 tree, const struct smart_chain_place *place, uint32 losses)
{
	struct smart_space *space = &smart_backend_client()->space;

	if (!swap_word(tree, 0, changing_word()))
		return false;
	(void) smart_space_put_note(space, tree, SMART_NOTE_SERIAL, place->serial);
	(void) smart_space_put_note(space, tree, SMART_NOTE_PLACE, (uint64) place->block << 32 | place->offset);
	(void) smart_space_put_note(space, tree, SMART_NOTE_LOSSES, losses);
	return swap_word(tree, changing_word(), smart_tree_behind_word());
}

bool
smart_tree_is_behind(uint64 tree, struct smart_chain_place *place, uint32 *losses)
{
	struct smart_tree_info info;
	uint64 number;

	if (!smart_server.remote || tree == 0 || !smart_space_tree_info(&smart_backend_client()->space, tree, &info) ||
		info.note[SMART_NOTE_REMOVAL] != smart_tree_behind_word())
		return false;
	number = info.note[SMART_NOTE_PLACE];
	*place = (struct smart_chain_place){.serial = info.note[SMART_NOTE_SERIAL],
										.block = (BlockNumber) (number >> 32),
										.offset = (uint32) number};
	*losses = (uint32) info.note[SMART_NOTE_LOSSES];
	return true;
}

bool
smart_tree_begin_catching_up(uint64 tree)
{
	return swap_word(tree, smart_tree_behind_word(), changing_word());
}

bool
smart_tree_end_catching_up(uint64 tree)
{
	return swap_word(tree, changing_word(), 0);
}

/* ---- room ---- */

/* The memory that nobody has on memory nodes; UINT64_MAX: one of them is away, or none is known yet. */
static uint64
free_on_nodes(void)
{
	uint64 bytes = 0;
	bool any = false;
	struct smart_peer peer;

	smart_assert(smart_server.remote);
	for (unsigned int node = 0; node < FABRIC_NODES_MAX; node++)
	{
		if (!smart_peer_get(smart_server.peers, node, &peer) || peer.state == SMART_PEER_LOST)
			continue;
		if (peer.state != SMART_PEER_UP || peer.capacity == 0)
			return UINT64_MAX;
		any = true;
		if (!smart_space_node_is_closed(&smart_backend_client()->space, node))
			bytes += peer.capacity - Min(peer.allocated, peer.capacity);
	}
	return any ? bytes : UINT64_MAX;
}

bool
smart_tree_has_room(uint64 bytes)
{
	struct smart_space_usage usage;

	/* None can be made yet. */
	if (smart_server_recovers())
		return false;
	smart_space_usage(&smart_backend_client()->space, &usage);
	if (smart_server.remote)
	{
		uint64 rest = free_on_nodes();

		return rest == UINT64_MAX || bytes <= rest + (usage.size - usage.used);
	}
	return usage.used + bytes <= usage.max_size - usage.max_size / SMART_DELTA_SHARE;
}

bool
smart_tree_is_delta(uint64 tree)
{
	struct smart_tree_info info;

	return smart_space_tree_info(smart_tree_space(tree), tree, &info) && (info.owner.flags & SMART_TREE_IS_DELTA) != 0;
}

bool
smart_tree_is_lean(uint64 tree)
{
	struct smart_tree_info info;

	return smart_space_tree_info(smart_tree_space(tree), tree, &info) && (info.owner.flags & SMART_TREE_IS_LEAN) != 0;
}

/* Has the tree a part on a node of which that is true?  Only if it is away. */
static bool
has_part_on(uint64 tree, bool (*is)(struct smart_peers *peers, unsigned int node))
{
	struct smart_space *space;
	struct smart_tree_info info;
	uint64_t pages[FABRIC_NODES_MAX];
	bool has;

	if (!smart_server.remote || tree == 0 || tree == SMART_TREE_NOWHERE ||
		likely(!smart_peers_are_away(smart_server.peers)))
		return false;
	space = &smart_backend_client()->space;
	if (!smart_space_tree_info(space, tree, &info) || !smart_space_tree_nodes(space, tree, pages))
		return false;
	has = is(smart_server.peers, fabric_node(info.root));
	for (unsigned int node = 0; node < FABRIC_NODES_MAX && !has; node++)
		has = pages[node] != 0 && is(smart_server.peers, node);
	return has;
}

bool
smart_tree_is_missed(uint64 tree)
{
	return has_part_on(tree, smart_peer_is_missed);
}

bool
smart_tree_is_away(uint64 tree)
{
	return has_part_on(tree, smart_peer_is_away);
}

bool
smart_tree_has_to_move(const struct smart_tree_info *info)
{
	struct smart_space *space = &smart_backend_client()->space;
	uint64_t pages[FABRIC_NODES_MAX];
	bool closed = false;

	if (!smart_server.remote || info->lost)
		return false;
	if (smart_tree_is_chosen(info) || smart_space_node_is_closed(space, fabric_node(info->root)))
		return true;
	if (!smart_space_tree_nodes(space, info->id, pages))
		return false;
	for (unsigned int node = 0; node < FABRIC_NODES_MAX && !closed; node++)
		closed = pages[node] != 0 && smart_space_node_is_closed(space, node);
	return closed;
}

/* Dead rows are remembered under the tree whose entries lead to them; with a delta, under the journal, which stays. */
static void
forget_dead_rows(uint64 tree)
{
	struct smart_tree_info info;
	smart_file file;

	if (!smart_space_tree_info(smart_tree_space(tree), tree, &info) || (info.owner.flags & SMART_TREE_IS_DELTA) != 0)
		return;
	file = smart_make_file(info.owner.tablespace, info.owner.database, info.owner.relation);
	smart_dead_rows_forget(&file);
}

void
smart_am_tree_drop(uint64 tree)
{
	smart_assert(tree != 0 && smart_server.shared->made);
	forget_dead_rows(tree);
	smart_handle_drop(tree);
	smart_space_drop_tree(smart_tree_space(tree), tree);
	smart_launcher_wake();
}

/*
 * Was the tree certainly made for the file that its index, whose owner is given, has now?  Numbers of files are used
 * again one day, and a tree may have moved on with another file (SET TABLESPACE); but not within a transaction, nor
 * among the temporary tables of one backend.  A temporary table's file may have the number of another backend's, or
 * of a permanent one.
 */
static bool
made_for_file(const struct smart_tree_owner *owner, const struct smart_tree_owner *index)
{
	smart_assert(index->creator != 0);
	return owner->database == index->database && owner->tablespace == index->tablespace &&
		   owner->relation == index->relation && owner->backend == index->backend &&
		   owner->incarnation == index->incarnation &&
		   (owner->backend != SMART_NO_BACKEND || owner->creator == index->creator);
}

void
smart_am_tree_drop_older(Relation index, uint64 keep)
{
	struct smart_space *space;
	struct smart_tree_info info;
	struct smart_tree_owner owner;
	uint64 cursor = 0;

	smart_assert(IsTransactionState());
	/* Nobody has made a tree since this start of the server. */
	if (smart_server_recovers())
		return;
	space = &smart_backend_client()->space;
	describe_owner(index, &owner);
	/* An index that was there before: the tree of its old file has no name any more if this transaction commits. */
	if (smart_relation_new_file_subid(index) != InvalidSubTransactionId)
		smart_orphans_note(SMART_ORPHANS_IF_COMMITTED);
	while (smart_space_next_tree(space, &cursor, &info))
	{
		if (info.id != keep && made_for_file(&info.owner, &owner))
			smart_am_tree_drop(info.id);
	}
}
