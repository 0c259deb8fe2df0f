/*
 * check_follower.c
 *	  smart_index_check() of an index that writes back: its tree on memory nodes.
 *
 * Two views are read side by side, one of the follower and one of the run, each with the delta.  They are not of the same moment, so
 * an entry that one of them does not have is looked for in two others that are newer, and again, since it may come and go meanwhile.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "am/codec/encode.h"
#include "am/index/relation.h"
#include "am/journal/follow.h"
#include "am/journal/view.h"
#include "am/monitor/check_entries.h"
#include "am/monitor/check_follower.h"
#include "base/assert.h"
#include "base/bytes.h"

#define LOOKS 5 /* at an entry that only one of them has */

/* A view that is read from its beginning on. */
struct side
{
	struct smart_relation *self;
	struct smart_batch batch;
	uint32 next;
	bool ended;
	int length;
	uint8 entry[SMART_ENTRY_MAX];
};

static struct smart_relation *
follower_of(const struct smart_relation *self)
{
	uint64 renewals;

	return smart_view_follower(self->view, &renewals);
}

static _Noreturn void
report(Relation index, uint64 tree, const char *detail)
{
	smart_follow_give_up(index, tree);
	ereport(ERROR, errcode(ERRCODE_INDEX_CORRUPTED),
			errmsg("the tree on memory nodes of index \"%s\" is corrupt", RelationGetRelationName(index)),
			errdetail_internal("%s", detail),
			errhint("The pages of its journal answer, and it is loaded anew from them."));
}

/* A view that has all there is; NULL: pages do not answer any more, or there is no follower and it is not to be alone. */
static struct smart_relation *
open_view(Relation index, bool alone)
{
	struct smart_relation *self = smart_relation_can_answer(index) ? smart_view_open(index, alone) : NULL;

	if (self == NULL || !smart_view_catch_up(self, index, true))
		return NULL;
	return alone || follower_of(self) != NULL ? self : NULL;
}

/* ---- one entry ---- */

/* Has the view the whole entry? */
static bool
has_entry(struct smart_relation *self, const uint8 *entry, int length)
{
	int key_length = smart_codec_key_length(self->codec, entry, length);
	uint8 behind[SMART_KEY_MAX + 1];
	struct smart_batch batch;
	const struct smart_item *item;

	memcpy(behind, entry, (Size) key_length);
	smart_view_seek(self->view, entry, (uint32) key_length, behind, (uint32) smart_successor(behind, (Size) key_length),
					false);
	if (smart_view_next(self->view, &batch) != SMART_FOUND)
		return false;
	smart_assert(batch.count > 0);
	item = &batch.items[0];
	return batch.prefix_length + item->length == (uint32) length &&
		   memcmp(entry, batch.prefix, batch.prefix_length) == 0 &&
		   memcmp(entry + batch.prefix_length, batch.bytes + item->offset, item->length) == 0;
}

/* One of the two sides has an entry that the other one does not have. */
static void
examine(Relation index, uint64 tree, const uint8 *entry, int length)
{
	smart_assert(tree != 0 && length > 0 && length <= SMART_ENTRY_MAX);
	for (int look = 0; look < LOOKS; look++)
	{
		struct smart_relation *run = open_view(index, true);
		struct smart_relation *follower = open_view(index, false);

		if (run == NULL || follower == NULL || follower_of(follower)->meta.tree != tree ||
			has_entry(run, entry, length) == has_entry(follower, entry, length))
			return;
	}
	report(index, tree, "It does not have what the journal says.");
}

/* ---- all of them ---- */

static void
advance(struct side *side, Relation index)
{
	const struct smart_batch *batch = &side->batch;

	smart_assert(side->next <= batch->count);
	if (side->next == batch->count)
	{
		enum smart_found found = smart_view_next(side->self->view, &side->batch);

		CHECK_FOR_INTERRUPTS();
		side->next = 0;
		side->ended = found == SMART_FOUND_END;
		if (found == SMART_FOUND_BEHIND)
			smart_check_report_used_anew(index);
		if (side->ended)
			return;
	}
	side->length = smart_batch_entry(batch, side->next++, side->entry);
}

static void
begin(struct side *side, struct smart_relation *self, Relation index)
{
	const uint8 nothing = 0;

	side->self = self;
	side->next = 0;
	side->batch.count = 0;
	smart_view_seek(self->view, &nothing, 0, &nothing, 0, false);
	advance(side, index);
}

static int
compare(const struct side *a, const struct side *b)
{
	smart_assert(!a->ended || !b->ended);
	if (a->ended || b->ended)
		return (int) a->ended - (int) b->ended;
	return smart_compare_bytes(a->entry, (size_t) a->length, b->entry, (size_t) b->length);
}

static void
compare_all(Relation index, struct smart_relation *run, struct smart_relation *follower, uint64 tree)
{
	struct side *a = palloc(sizeof(*a));
	struct side *b = palloc(sizeof(*b));

	smart_assert(run != follower && tree != 0);
	begin(a, run, index);
	begin(b, follower, index);
	while (!a->ended || !b->ended)
	{
		int order = compare(a, b);

		if (order != 0)
			examine(index, tree, order < 0 ? a->entry : b->entry, order < 0 ? a->length : b->length);
		if (order <= 0)
			advance(a, index);
		if (order >= 0)
			advance(b, index);
	}
}

void
smart_check_follower(Relation index)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "smart check", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	struct smart_relation *follower = open_view(index, false);
	struct smart_relation *run = follower == NULL ? NULL : open_view(index, true);
	struct smart_verify_report verified = {0};
	char message[256];

	if (run != NULL)
	{
		struct smart_relation *tree = follower_of(follower);

		if (smart_relation_verify(tree, &verified, message, sizeof(message)) == SMART_CORRUPT)
			report(index, tree->meta.tree, message);
		compare_all(index, run, follower, tree->meta.tree);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}
