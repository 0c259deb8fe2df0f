/*
 * carry.c
 *	  The follower of an index that has no tree of its own, and who carries the chain to it: J15-found, J15-load,
 *	  J15-carry, J15-place.  And the delta, which is brought up to date in the same way: J15-delta, J15-lean.
 */
#include <string.h>

#include "model/world.h"

#define PIECE_MAX     6  /* operations */
#define UNKNOWN_STEPS 20 /* that it may take until all know that the index is carried */

/* Of which entries a piece has an operation, and what is done about them. */
struct piece
{
	struct op ops[PIECE_MAX];
	unsigned int count;
	struct place end;
	entries added;   /* the last operation of the piece adds it */
	entries removed; /* the last one removes it */
	entries anew;    /* the last one adds it, and one before had removed it */
};

/* ---- which tree it is ---- */

bool
is_carried(void)
{
	if (world.work < world.plan.small)
		return false;
	return world.plan.small == 0 || world.work >= world.plan.small + UNKNOWN_STEPS || one_in(2);
}

bool
place_has_come_to(const struct place *place, const struct place *other)
{
	return place->serial > other->serial ||
		   (place->serial == other->serial && place->page.block == other->page.block && place->offset >= other->offset);
}

bool
follower_has_run(const struct tree *tree, const struct meta *meta)
{
	return place_has_come_to(&tree->place, &meta->first);
}

bool
follower_is_known(const struct tree *tree, const struct meta *meta)
{
	return tree->follows && tree->whole && !tree->given_up && !tree->lost && !meta->stale &&
		   (tree->losses == meta->marks || FAULT(carrylosses));
}

int
follower_find(const struct server *server, const struct meta *meta)
{
	for (int i = 0; i < server->region.tree_count; i++)
	{
		if (follower_is_known(&server->region.trees[i], meta))
			return i;
	}
	return NONE;
}

/*
 * J15-place.  Two words, and a crash may come between them, or a look.  Half of a place fits no page, since the block is
 * another page's.  If it is the same one, which was used anew meanwhile, a block that is no log page comes in between.
 */
static void
note_place(struct actor *self, struct tree *tree, const struct place *place)
{
	if (tree->place.serial != place->serial)
	{
		if (tree->place.page.block == place->page.block && !FAULT(carryhalf))
		{
			step(self, "J15-place: notes no block");
			tree->place.page.block = 0;
		}
		step(self, "J15-place: notes the place's serial");
		tree->place.serial = place->serial;
	}
	step(self, "J15-place: notes the place");
	tree->place = *place;
	tree->whole = true;
}

static void
give_up(struct actor *self, struct tree *tree)
{
	step(self, "J15-carry: gives the follower up");
	tree->given_up = true;
	self->server->changes++;
}

/* ---- a piece of the chain ---- */

/* Of each entry the last operation counts. */
static void
take_into_piece(struct piece *piece, const struct op *op)
{
	entries bit = BIT(op->entry);

	piece->ops[piece->count++] = *op;
	if (op->removes)
	{
		piece->removed |= bit;
		piece->added &= (entries) ~bit;
		piece->anew |= bit;
		return;
	}
	piece->added |= bit;
	piece->removed &= (entries) ~bit;
}

/* Reads a piece, over one page or more; false: the pages have gone. */
static bool
read_piece(struct actor *self, const struct place *from, struct piece *piece)
{
	struct place *place = &piece->end;
	unsigned int most = 1 + below(PIECE_MAX);

	*piece = (struct piece){.end = *from};
	for (;;)
	{
		struct page page = step_read(self, place->page.block, "J15-carry: reads a page of the chain");

		if (page.kind != PAGE_LOG || page.id != place->serial)
			return false;
		check_use(&page, &place->page);
		while (place->offset < page.count && piece->count < most)
			take_into_piece(piece, &page.ops[place->offset++]);
		if (page.next.block == 0 || piece->count == most)
			break;
		*place = (struct place){.page = page.next, .serial = (uint8_t) (place->serial + 1)};
	}
	piece->anew &= piece->added;
	return true;
}

/* One entry; the memory node may have lost the tree. */
static void
change_follower(struct actor *self, struct tree *tree, unsigned int entry, bool removes)
{
	step(self, removes ? "J15-carry: removes an entry" : "J15-carry: adds an entry");
	if (tree->lost)
		actor_abort(self);
	tree_take(tree, &(struct op){.entry = (uint8_t) entry, .removes = removes});
}

/* In the order of keys, and of one entry all operations, the last one first. */
static void
carry_out_wrongly(struct actor *self, struct tree *tree, const struct piece *piece)
{
	for (unsigned int entry = 0; entry < ENTRIES; entry++)
	{
		for (unsigned int i = piece->count; i > 0; i--)
		{
			if (piece->ops[i - 1].entry == entry)
				change_follower(self, tree, entry, piece->ops[i - 1].removes);
		}
	}
}

/* All removals, and then all adds. */
static void
carry_out(struct actor *self, struct tree *tree, const struct piece *piece)
{
	if (FAULT(carryorder))
	{
		carry_out_wrongly(self, tree, piece);
		return;
	}
	for (unsigned int i = 0; i < 2 * ENTRIES; i++)
	{
		unsigned int entry = i % ENTRIES;
		bool removes = i < ENTRIES;

		if (((removes ? piece->removed | piece->anew : piece->added) & BIT(entry)) != 0)
			change_follower(self, tree, entry, removes);
	}
}

/* Under the lock of applying: from the follower's place to the chain's end.  False: left behind. */
static bool
carry_pieces(struct actor *self, struct tree *tree)
{
	struct piece piece;

	for (;;)
	{
		if (!read_piece(self, &tree->place, &piece))
			return false;
		if (piece.count == 0)
			return true;
		if (!FAULT(carryflush))
		{
			step(self, "J15-carry: flushes WAL");
			wal_flush();
		}
		if (FAULT(carrynote))
			note_place(self, tree, &piece.end);
		carry_out(self, tree, &piece);
		note_place(self, tree, &piece.end);
	}
}

/* ---- the carrier ---- */

static void
leave_others(struct server *server, const struct tree *tree)
{
	for (int i = 0; i < server->region.tree_count; i++)
	{
		struct tree *other = &server->region.trees[i];

		other->given_up = other->given_up || (other->follows && other != tree);
	}
}

/* J15-lean: all deltas, also one that is being made; they are of no use to the follower, which is found by now. */
static void
let_go_deltas(struct actor *self)
{
	struct server *server = self->server;

	step(self, "J15-lean: the deltas leave");
	for (int i = 0; i < server->delta_count; i++)
		server->deltas[i].given_up = true;
}

/* J15-load. */
static void
load_follower(struct actor *self)
{
	struct meta meta = step_read_meta(self, "J15-load: reads the metapage");
	struct tree *tree;
	struct place place;
	entries content;

	if (meta.stale)
		return;
	tree = tree_at(self->server, tree_make(self));
	*tree = (struct tree){.follows = true, .losses = meta.marks, .base = meta.base};
	if (!walk(self, &meta, NULL, &content, &place))
		return;
	tree->content = content;
	if (!FAULT(carryfirst))
	{
		step(self, "J15-load: flushes WAL");
		wal_flush();
	}
	note_place(self, tree, &place);
	step(self, "J15-load: older followers leave");
	leave_others(self->server, tree);
	self->server->changes++;
	let_go_deltas(self);
}

static void
carry(struct actor *self, struct tree *tree)
{
	struct meta meta;

	step_lock(self, LOCK_APPLY, "J15-carry: takes the lock of applying");
	meta = step_read_meta(self, "J15-carry: reads the metapage again");
	if (!tree->given_up && !tree->lost && (!follower_is_known(tree, &meta) || !carry_pieces(self, tree)))
		give_up(self, tree);
	unlock(self, LOCK_APPLY);
}

void
carrier_run(struct actor *self)
{
	struct server *server = self->server;
	struct meta meta;
	int number;

	/* An index that was rebuilt has a tree, until that has left. */
	if (server->reads != NONE || server->adds != NONE || !is_carried())
		return;
	meta = step_read_meta(self, "J15-carry: reads the metapage");
	number = follower_find(server, &meta);
	if (number != NONE && one_in(2))
		purge_go_on(self, &meta, tree_at(server, number));
	else if (number != NONE)
		carry(self, tree_at(server, number));
	else
		load_follower(self);
}

/* ---- the delta ---- */

struct tree *
delta_find(struct server *server, const struct meta *meta)
{
	for (int i = 0; i < server->delta_count; i++)
	{
		struct tree *delta = &server->deltas[i];

		if (delta->run == meta->run && delta->whole && !delta->given_up)
			return delta;
	}
	return NULL;
}

/* Whether it is lean is decided before it can be found, and for good. */
static void
make_delta(struct actor *self, const struct meta *meta)
{
	struct server *server = self->server;
	struct tree *delta;

	step(self, "J15-lean: begins a delta, lean if the index is not carried");
	if (server->delta_count == DELTAS)
		actor_exhausted(self);
	delta = &server->deltas[server->delta_count++];
	*delta = view_make(meta, &meta->first);
	delta->lean = !is_carried();
	step(self, "J15-delta: the delta is made");
	delta->whole = true;
}

struct tree *
delta_open(struct actor *self, const struct meta *meta)
{
	struct tree *delta;

	step(self, "J15-read: opens the delta");
	delta = delta_find(self->server, meta);
	if (delta == NULL)
	{
		step_lock(self, LOCK_DELTA, "J15-delta: takes the lock of deltas");
		if (delta_find(self->server, meta) == NULL)
			make_delta(self, meta);
		delta = delta_find(self->server, meta);
		unlock(self, LOCK_DELTA);
	}
	purge_pin(self, delta);
	return delta;
}

/* An earlier operation on the entry makes room first; if the delta had it as added, that is perhaps all. */
static void
change_delta(struct actor *self, struct tree *delta, unsigned int entry, bool removes)
{
	struct op op = {.entry = (uint8_t) entry, .removes = removes};
	bool leaves = removes && (delta->content & BIT(entry)) != 0;

	if (!leaves && ((delta->content | delta->gone) & BIT(entry)) != 0)
	{
		step(self, "J15-delta: an earlier operation goes");
		delta->content &= (entries) ~BIT(entry);
		delta->gone &= (entries) ~BIT(entry);
		delta->spent[0] &= (entries) ~BIT(entry);
		delta->spent[1] &= (entries) ~BIT(entry);
	}
	step(self, removes ? "J15-delta: notes a removal" : "J15-delta: notes an add");
	tree_carry_out(self, delta, &op);
}

static bool
is_of_now(struct actor *self, const struct tree *delta)
{
	struct meta meta = step_read_meta(self, "J15-delta: reads the metapage");

	return !meta.stale && meta.run == delta->run && !delta->given_up;
}

/* Under the delta's lock; false: left behind. */
static bool
bring_up_to_date(struct actor *self, struct tree *delta)
{
	struct piece piece;

	for (;;)
	{
		if (!read_piece(self, &delta->place, &piece))
			return false;
		if (piece.count == 0)
			return true;
		for (unsigned int entry = 0; entry < ENTRIES; entry++)
		{
			if (((piece.added | piece.removed) & BIT(entry)) != 0)
				change_delta(self, delta, entry, (piece.removed & BIT(entry)) != 0);
		}
		step(self, "J15-delta: notes the place");
		delta->place = piece.end;
	}
}

bool
delta_catch_up(struct actor *self, struct tree *delta)
{
	bool done;

	step_lock(self, LOCK_DELTA, "J15-delta: takes the delta's lock");
	done = is_of_now(self, delta) && bring_up_to_date(self, delta);
	unlock(self, LOCK_DELTA);
	return done;
}
