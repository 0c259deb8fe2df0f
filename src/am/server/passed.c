/*
 * passed.c
 *	  How many entries of runs scans have passed by.
 */
#include "postgres.h"

#include "am/server/passed.h"
#include "am/server/shared.h"
#include "base/assert.h"

static struct smart_passed *
place_of(uint64 delta)
{
	return &smart_server.shared->passed[delta % SMART_PASSED];
}

uint64
smart_passed_add(uint64 delta, uint64 entries)
{
	struct smart_passed *place = place_of(delta);
	uint64 found = pg_atomic_read_u64(&place->delta);

	smart_assert(delta != 0);
	if (found != delta && pg_atomic_compare_exchange_u64(&place->delta, &found, delta))
		pg_atomic_write_u64(&place->entries, 0);
	return pg_atomic_fetch_add_u64(&place->entries, entries) + entries;
}

uint64
smart_passed(uint64 delta)
{
	struct smart_passed *place = place_of(delta);

	return pg_atomic_read_u64(&place->delta) == delta ? pg_atomic_read_u64(&place->entries) : 0;
}
