/*
 * staging.c
 *	  Adds that are not in the chain yet, and the filters that tell a unique check of them: J2-staged, J2-filter.
 *
 * Who writes out has the area locked until the record is in WAL and the add has left the area, and serves no interrupt
 * meanwhile.  In between he lets go of the lock, as one does who needs another page first.
 */
#include "model/world.h"

static unsigned int
own_number(const struct actor *self)
{
	unsigned int role = (unsigned int) (self - world.actors);

	smart_assert(role <= WRITER_2 || role == WRITER_3);
	return role == WRITER_3 ? AREAS - 1 : role;
}

/* Keys may share one. */
static unsigned int
filter_bit(unsigned int entry)
{
	return 1u << KEY_OF(entry) % world.plan.filter_bits;
}

/* Under the area's lock. */
static void
write_first(struct actor *self, struct area *area)
{
	bool held = self->held;

	self->held = true;
	if (FAULT(filterfirst))
		area->filter = 0;
	(void) append(self, (struct op){.entry = area->adds[0]}, false);
	step(self, "J2-staged: the add leaves the area");
	area->count--;
	for (unsigned int i = 0; i < area->count; i++)
		area->adds[i] = area->adds[i + 1];
	if (area->count == 0 || FAULT(filterleft))
		area->filter = 0;
	self->held = held;
}

static void
write_out(struct actor *self, unsigned int number)
{
	struct area *area = &self->server->areas[number];
	bool left;

	do
	{
		step_lock(self, LOCK_AREA + number, "J2-staged: locks an area to write it out");
		if (area->count > 0)
			write_first(self, area);
		left = area->count > 0;
		unlock(self, LOCK_AREA + number);
	} while (left);
}

void
staging_write_out_own(struct actor *self)
{
	if (world.plan.stages && self->server->areas[own_number(self)].count > 0)
		write_out(self, own_number(self));
}

/* What was staged before the caller learned of something is found: an area that looks empty need not be locked. */
void
staging_write_out_all(struct actor *self)
{
	for (unsigned int i = 0; i < AREAS && world.plan.stages; i++)
	{
		step(self, "J2-staged: looks whether an area is empty");
		if (self->server->areas[i].count > 0)
			write_out(self, i);
	}
}

unsigned int
staging_perhaps(struct actor *self, unsigned int entry)
{
	unsigned int areas = 0;

	for (unsigned int i = 0; i < AREAS && world.plan.stages; i++)
	{
		step(self, "J2-filter: reads an area's filter");
		if ((self->server->areas[i].filter & filter_bit(entry)) != 0 && !(FAULT(filterown) && i == own_number(self)))
			areas |= 1u << i;
	}
	return areas;
}

void
staging_write_out(struct actor *self, unsigned int areas)
{
	for (unsigned int i = 0; i < AREAS; i++)
	{
		if ((areas >> i & 1) != 0)
			write_out(self, i);
	}
}

bool
staging_add(struct actor *self, unsigned int entry)
{
	unsigned int number = own_number(self);
	struct area *area = &self->server->areas[number];
	bool current;

	/* Nobody else adds to it. */
	if (area->count == AREA_ADDS)
		write_out(self, number);
	step_lock(self, LOCK_AREA + number, "J2-staged: stages an add, and compares the counter");
	current = self->changes == self->server->changes;
	if (current)
	{
		area->adds[area->count++] = (uint8_t) entry;
		if (!FAULT(filterlate) && !(FAULT(filtertree) && self->tree != NONE))
			area->filter |= filter_bit(entry);
	}
	unlock(self, LOCK_AREA + number);
	return current;
}

/* With the fault alone. */
void
staging_set_filter(struct actor *self, unsigned int entry)
{
	unsigned int number = own_number(self);
	struct area *area = &self->server->areas[number];

	step_lock(self, LOCK_AREA + number, "J2-filter: sets the bit");
	if (area->count > 0)
		area->filter |= filter_bit(entry);
	unlock(self, LOCK_AREA + number);
}

void
staging_drop(struct actor *self)
{
	unsigned int number = own_number(self);

	if (!world.plan.stages || self->server->areas[number].count == 0)
		return;
	step_lock(self, LOCK_AREA + number, "J2-staged: drops what an aborted transaction had staged");
	self->server->areas[number] = (struct area){.count = 0};
	unlock(self, LOCK_AREA + number);
}
