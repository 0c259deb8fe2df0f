/*
 * segment.c
 *	  Persistent segments.
 *
 * A page of the region has the number of each segment's first page.  A number is stored with release when the segment
 * is zeros, and never changes; so a segment that a dying process was about to make is not there, and its pages are
 * free after recovery.
 */
#include "compute/allocate/pages.h"
#include "compute/allocate/segment.h"

#define KEPT_ORDER 4u

_Static_assert(SMART_SEGMENT_BYTES == SMART_PAGE_BYTES << KEPT_ORDER, "a piece is the longest run of pages");
_Static_assert(SMART_SEGMENT_MAX * sizeof(uint32_t) == SMART_PAGE_BYTES, "their numbers fill a page");

static uint32_t *
numbers_of(const struct smart_region *region)
{
	uint32_t page = __atomic_load_n(&smart_region_header(region)->kept_page, __ATOMIC_ACQUIRE);

	return page != 0 ? smart_page_memory(region, page) : NULL;
}

/* Makes a run, unless *number says that there is one; under the directory's lock. */
static smart_status
make_run(struct smart_space *space, unsigned int order, uint32_t *number)
{
	uint32_t page;
	smart_status status;

	if (*number != 0)
		return SMART_OK;
	status = smart_pages_take_home(space, order, &page);
	/* A number is stored once, and never changes. */
	smart_assert(*number == 0 && (status != SMART_OK || page != 0));
	if (status == SMART_OK)
		/* Release: zeros before the number.  Partners: numbers_of, smart_segment. */
		__atomic_store_n(number, page, __ATOMIC_RELEASE);
	return status;
}

smart_status
smart_space_segment(struct smart_space *space, unsigned int piece)
{
	smart_status status;

	smart_assert(piece < SMART_SEGMENT_MAX);
	space->locks->acquire(space->locks, SMART_LOCK_DIRECTORY);
	status = make_run(space, 0, &smart_region_header(space->region)->kept_page);
	if (status == SMART_OK)
		status = make_run(space, KEPT_ORDER, &numbers_of(space->region)[piece]);
	space->locks->release(space->locks, SMART_LOCK_DIRECTORY);
	return status;
}

void *
smart_segment(const struct smart_region *region, unsigned int piece)
{
	const uint32_t *numbers = numbers_of(region);
	uint32_t page;

	smart_assert(piece < SMART_SEGMENT_MAX);
	page = numbers != NULL ? __atomic_load_n(&numbers[piece], __ATOMIC_ACQUIRE) : 0;
	return page != 0 ? smart_page_memory(region, page) : NULL;
}

smart_status
smart_segment_runs(const struct smart_region *region, smart_segment_fn run, void *argument)
{
	const uint32_t *numbers = numbers_of(region);
	smart_status status;

	if (numbers == NULL)
		return SMART_OK;
	status = run(argument, smart_region_header(region)->kept_page, 0);
	for (unsigned int i = 0; i < SMART_SEGMENT_MAX && status == SMART_OK; i++)
		if (numbers[i] != 0)
			status = run(argument, numbers[i], KEPT_ORDER);
	return status;
}
