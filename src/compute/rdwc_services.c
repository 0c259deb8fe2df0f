/*
 * rdwc_services.c
 *	  What the tree asks of read delegation and write combining.
 */
#include "compute/rdwc_services.h"
#include "base/assert.h"

static smart_status
lock_leaf(struct smart_services *services, fabric_address leaf)
{
	const struct smart_rdwc_member *member = services->member;

	return smart_leaf_lock_take(member->locks, member->lock_of(leaf), member->caller.client, member->caller.env,
								member->caller.timeout_ms);
}

static void
unlock_leaf(struct smart_services *services, fabric_address leaf)
{
	const struct smart_rdwc_member *member = services->member;

	smart_leaf_lock_drop(member->locks, member->lock_of(leaf), member->caller.client);
}

static smart_status
read_begin(struct smart_services *services, fabric_address leaf, uint8_t *buffer, uint32_t length,
		   enum smart_delegation *delegation)
{
	*delegation = SMART_READ_ALONE;
	if (services->member->alone)
		return SMART_OK;
	return smart_rdwc_read_begin(&services->member->caller, leaf, buffer, length, delegation);
}

static void
read_end(struct smart_services *services, const uint8_t *copy, uint32_t length)
{
	smart_rdwc_read_end(&services->member->caller, copy, length);
}

static smart_status
lock_or_combine(struct smart_services *services, fabric_address leaf, const struct smart_handed *entry,
				enum smart_combined *combined)
{
	const struct smart_rdwc_member *member = services->member;

	*combined = SMART_COMBINED_NOT;
	if (member->alone)
		return lock_leaf(services, leaf);
	return smart_rdwc_lock_or_combine(&member->caller, member->locks, member->lock_of(leaf), leaf, entry, combined);
}

static bool
is_awaited(struct smart_services *services, fabric_address leaf)
{
	return smart_rdwc_is_awaited(&services->member->caller, leaf);
}

/* Also who takes no part takes what others have handed in: it costs little. */
static unsigned int
take_handed(struct smart_services *services, fabric_address leaf, uint64_t tree, struct smart_handed *entries,
			unsigned int most)
{
	return smart_rdwc_take(&services->member->caller, leaf, tree, entries, most);
}

static void
settle_handed(struct smart_services *services, const struct smart_handed *entry, enum smart_combined combined)
{
	smart_rdwc_settle(&services->member->caller, entry, combined);
}

void
smart_rdwc_services_init(struct smart_services *services, struct smart_rdwc_member *member)
{
	smart_assert(member->locks != NULL && member->lock_of != NULL);
	services->member = member;
	services->lock_leaf = lock_leaf;
	services->unlock_leaf = unlock_leaf;
	if (member->caller.rdwc == NULL)
		return;
	services->read_begin = read_begin;
	services->read_end = read_end;
	services->lock_or_combine = lock_or_combine;
	services->is_awaited = is_awaited;
	services->take_handed = take_handed;
	services->settle_handed = settle_handed;
}
