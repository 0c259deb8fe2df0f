/*
 * rdwc.h
 *	  What tests ask a table of read delegation and write combining.
 */
#ifndef TEST_RDWC_H
#define TEST_RDWC_H

#include "compute/coordinate/rdwc_parts.h"

/* How many times a client has learned, up to now, that the outcome of an entry is unknown. */
static inline uint64_t
test_rdwc_unknown(const struct smart_rdwc *rdwc, uint32_t client)
{
	smart_assert(client < rdwc->clients);
	return rdwc->line[client].unknown;
}

/* A client of a table, as a tree knows it. */
struct test_rdwc_client
{
	struct smart_services services;
	struct smart_rdwc_member member;
};

static inline void
test_rdwc_open(struct test_rdwc_client *client, const struct smart_rdwc_member *member)
{
	*client = (struct test_rdwc_client){.member = *member};
	smart_rdwc_services_init(&client->services, &client->member);
}

static inline smart_status
test_read_begin(struct test_rdwc_client *client, fabric_address leaf, uint8_t *buffer, uint32_t length,
				enum smart_delegation *delegation)
{
	return client->services.read_begin(&client->services, leaf, buffer, length, delegation);
}

static inline void
test_read_end(struct test_rdwc_client *client, const uint8_t *copy, uint32_t length)
{
	client->services.read_end(&client->services, copy, length);
}

static inline smart_status
test_lock_or_combine(struct test_rdwc_client *client, fabric_address leaf, const struct smart_handed *entry,
					 enum smart_combined *combined)
{
	return client->services.lock_or_combine(&client->services, leaf, entry, combined);
}

static inline unsigned int
test_take_handed(struct test_rdwc_client *client, fabric_address leaf, uint64_t tree, struct smart_handed *entries,
				 unsigned int most)
{
	return client->services.take_handed(&client->services, leaf, tree, entries, most);
}

static inline void
test_tell_handed(struct test_rdwc_client *client, const struct smart_handed *entry, enum smart_combined combined)
{
	client->services.tell_handed(&client->services, entry, combined);
}

#endif /* TEST_RDWC_H */
