/*
 * client.h
 *	  What simulated clients do.
 */
#ifndef SIM_CLIENT_H
#define SIM_CLIENT_H

#include "sim/history.h"
#include "sim/world.h"

enum operation_kind
{
	OPERATION_LOOKUP,
	OPERATION_INSERT,
	OPERATION_REMOVE,
	OPERATION_SCAN,
	OPERATION_ERASE,    /* bulk delete */
	OPERATION_MAINTAIN, /* merge, drop, compress */
	OPERATION_PRIME,    /* look up every key: fills the cache */
	OPERATION_UPDATE,   /* of a value */
	OPERATIONS
};

struct range
{
	const uint8_t *from;
	const uint8_t *to;
	size_t from_length;
	size_t to_length; /* 0: no end */
};

/* operations.c */
extern void client_single(struct client *client, enum event_kind kind, unsigned int key);
/* Several keys by one call. */
extern void client_insert_many(struct client *client);
/* Everything that shares a key's point. */
extern void client_point(struct client *client, unsigned int key);
extern void client_maintain(struct client *client, unsigned int key_number);
/* Nothing may be held between two operations. */
extern void client_after(struct client *client, const char *what);

/* ranges.c */
extern void client_choose_range(struct range *range);
extern void client_scan(struct client *client, const struct range *range, bool backward, unsigned int batches_max);
extern void client_erase(struct client *client);

#endif /* SIM_CLIENT_H */
