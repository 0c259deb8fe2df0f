/*
 * spent.c
 *	  The spent tombstones of deltas.
 */
#include "postgres.h"

#include "storage/spin.h"

#include "am/index/backend.h"
#include "am/index/pin.h"
#include "am/index/trees.h"
#include "am/journal/spent.h"
#include "am/server/shared.h"
#include "base/assert.h"

#define PASSED_MIN 256 /* that are worth a walk over the delta, which passes by all that it has */

static struct smart_spent *
place_of(uint64 delta)
{
	smart_assert(delta != 0);
	return &smart_server.shared->spent[delta % SMART_SPENT];
}

/* What is known of a delta; false: nothing. */
static bool
get(uint64 delta, struct smart_spent *copy)
{
	struct smart_spent *place = place_of(delta);

	SpinLockAcquire(&place->lock);
	*copy = *place;
	SpinLockRelease(&place->lock);
	return copy->delta == delta;
}

static bool
is_there(uint64 delta)
{
	struct smart_tree_info info;

	return delta != 0 && smart_space_tree_info(&smart_delta_client()->space, delta, &info);
}

bool
smart_spent_begin(uint64 delta)
{
	struct smart_spent *place = place_of(delta);
	struct smart_spent copy;
	bool done;

	if (get(delta, &copy))
		return true;
	/* It is another one's. */
	if (is_there(copy.delta))
		return false;
	SpinLockAcquire(&place->lock);
	done = place->delta == copy.delta;
	if (done)
	{
		place->delta = delta;
		place->state = SMART_SPENT_IDLE;
		place->turn = 0;
		place->least[0] = place->least[1] = 0;
		place->passed = place->others = 0;
	}
	SpinLockRelease(&place->lock);
	return done;
}

static void
put_words(uint64 words[2], const struct smart_chain_place *place)
{
	words[0] = place->serial;
	words[1] = (uint64) place->block << 32 | place->offset;
}

static bool
has_come_to(const struct smart_chain_place *place, const uint64 words[2])
{
	const struct smart_chain_place other = {.serial = words[0],
											.block = (BlockNumber) (words[1] >> 32),
											.offset = (uint32) words[1]};

	return smart_place_has_come_to(place, &other);
}

int
smart_spent_turn(uint64 delta)
{
	struct smart_spent copy;

	return get(delta, &copy) ? (int) (copy.turn % 2) : 0;
}

static bool
would_pay(const struct smart_spent *spent)
{
	return spent->passed > PASSED_MIN && spent->passed > spent->others;
}

uint64
smart_spent_pass(uint64 delta, uint64 entries, bool *pays)
{
	struct smart_spent *place = place_of(delta);
	uint64 sum = entries; /* of a delta that has no place */

	*pays = false;
	SpinLockAcquire(&place->lock);
	if (place->delta == delta)
	{
		*pays = !would_pay(place);
		sum = place->passed += entries;
		*pays = *pays && would_pay(place);
	}
	SpinLockRelease(&place->lock);
	return sum;
}

uint64
smart_spent_passed(uint64 delta)
{
	struct smart_spent copy;

	return get(delta, &copy) ? copy.passed : 0;
}

bool
smart_spent_allows(uint64 delta, const struct smart_chain_place *follower)
{
	struct smart_spent copy;

	return !get(delta, &copy) || has_come_to(follower, copy.least);
}

static void
begin_turn(struct smart_spent *spent, const struct smart_chain_place *place)
{
	if (spent->state != SMART_SPENT_IDLE || !would_pay(spent))
		return;
	/* What is spent from now on stands behind this place. */
	spent->turn++;
	put_words(spent->begin, place);
	spent->passed = 0;
	spent->state = SMART_SPENT_WAITS;
}

static bool
end_waiting(struct smart_spent *spent, const struct smart_chain_place *follower)
{
	if (spent->state != SMART_SPENT_WAITS || !has_come_to(follower, spent->begin))
		return false;
	memcpy(spent->least, spent->begin, sizeof(spent->least));
	spent->state = SMART_SPENT_PINS;
	spent->pins = PG_UINT64_MAX;
	return true;
}

void
smart_spent_turn_on(uint64 delta, const struct smart_chain_place *place, const struct smart_chain_place *follower)
{
	struct smart_spent *spent = place_of(delta);
	bool ended;

	if (!smart_spent_begin(delta))
		return;
	/* If the delta has left by now, the place may be another one's. */
	SpinLockAcquire(&spent->lock);
	if (spent->delta == delta)
		begin_turn(spent, place);
	ended = spent->delta == delta && end_waiting(spent, follower);
	SpinLockRelease(&spent->lock);
	/* Who pins the delta from now on compares his follower's place. */
	if (ended)
	{
		uint64 moment = smart_pin_moment();

		SpinLockAcquire(&spent->lock);
		if (spent->delta == delta)
			spent->pins = moment;
		SpinLockRelease(&spent->lock);
	}
}

bool
smart_spent_is_over(uint64 delta)
{
	struct smart_spent copy;

	return get(delta, &copy) && copy.state == SMART_SPENT_PINS && smart_pin_is_over(delta, copy.pins);
}

bool
smart_spent_are_in_the_way(uint64 delta)
{
	struct smart_spent copy;

	return get(delta, &copy) &&
		   (copy.state == SMART_SPENT_WAITS || (copy.state == SMART_SPENT_IDLE && copy.passed > 0));
}

void
smart_spent_removed(uint64 delta, uint64 others)
{
	struct smart_spent *spent = place_of(delta);

	SpinLockAcquire(&spent->lock);
	if (spent->delta == delta)
	{
		spent->state = SMART_SPENT_IDLE;
		spent->others = others;
	}
	SpinLockRelease(&spent->lock);
}
