/*
 * addresses.h
 *	  Where memory nodes may be: the settings' list, and those announced in
 *	  memcached.
 *
 * Include postgres.h first.
 */
#ifndef SMART_AM_ADDRESSES_H
#define SMART_AM_ADDRESSES_H

#include "rdma/session.h"

struct smart_address
{
	char host[SESSION_HOST_MAX];
	char port[SESSION_PORT_MAX];
};

/*
 * All of them, each once; returns how many, at most FABRIC_NODES_MAX.  Asks memcached, for
 * some tenths of a second at most; when that fails, those that it named last stay.
 */
extern unsigned int smart_addresses_find(struct smart_address addresses[FABRIC_NODES_MAX]);

#endif /* SMART_AM_ADDRESSES_H */
