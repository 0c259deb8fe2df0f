/*
 * purge.c
 *	  Tombstones of a delta that hide nothing any more: J15-purge.
 */
#include "model/world.h"

void
purge_pin(struct actor *self, const struct tree *delta)
{
	step(self, "J15-purge: pins the delta");
	self->delta = delta;
	self->delta_pin = ++world.pins;
}

bool
purge_allows(struct actor *self, const struct tree *delta, const struct tree *follower)
{
	step(self, "J15-purge: has the follower come as far as the delta says?");
	return delta->least.serial == 0 || place_has_come_to(&follower->place, &delta->least);
}

void
purge_note(struct tree *delta, unsigned int entry)
{
	delta->gone |= BIT(entry);
	delta->spent[FAULT(purgeturn) ? 0 : delta->turn] |= BIT(entry);
}

static bool
is_pinned(const struct server *server, const struct tree *delta)
{
	for (int i = 0; i < ACTORS; i++)
	{
		const struct actor *actor = &world.actors[i];

		if (actor->server == server && actor->delta == delta && actor->delta_pin <= delta->waits)
			return !FAULT(purgepin);
	}
	return false;
}

/* What the turn before has left leaves, in steps. */
static void
purge(struct actor *self, struct tree *delta)
{
	entries *spent = &delta->spent[FAULT(purgeturn) ? 0 : 1 - delta->turn];

	for (unsigned int entry = 0; entry < ENTRIES; entry++)
	{
		if ((*spent & BIT(entry)) == 0)
			continue;
		step(self, "J15-purge: a tombstone goes");
		/* Or it was another operation's meanwhile. */
		delta->gone &= (entries) ~(*spent & BIT(entry));
		*spent &= (entries) ~BIT(entry);
	}
	step(self, "J15-purge: is done");
	delta->purge = PURGE_IDLE;
}

/* Under the delta's lock: has another turn begun, or the one before come to its end? */
static void
turn(struct tree *delta, const struct tree *follower)
{
	if (delta->purge == PURGE_IDLE)
	{
		delta->turn = 1 - delta->turn;
		delta->turned = delta->place;
		delta->purge = PURGE_WAITS;
	}
	else if (delta->purge == PURGE_WAITS && (place_has_come_to(&follower->place, &delta->turned) || FAULT(purgeearly)))
	{
		if (!FAULT(purgeearly))
			delta->least = delta->turned;
		delta->waits = world.pins;
		delta->purge = PURGE_PINS;
	}
}

void
purge_go_on(struct actor *self, const struct meta *meta, const struct tree *follower)
{
	struct tree *delta;

	step(self, "J15-purge: looks for the delta");
	delta = delta_find(self->server, meta);
	if (delta == NULL || delta->lean)
		return;
	for (unsigned int times = below(4); times > 0; times--)
	{
		step_lock(self, LOCK_DELTA, "J15-purge: takes the delta's lock");
		turn(delta, follower);
		unlock(self, LOCK_DELTA);
		step(self, "J15-purge: looks at the pins");
		if (delta->purge == PURGE_PINS && !is_pinned(self->server, delta))
			purge(self, delta);
	}
}
