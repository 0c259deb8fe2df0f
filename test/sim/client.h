/*
 * client.h
 *	  What simulated clients do.
 */
#ifndef SIM_CLIENT_H
#define SIM_CLIENT_H

enum operation_kind
{
	OPERATION_LOOKUP,
	OPERATION_INSERT,
	OPERATION_REMOVE,
	OPERATION_SCAN,
	OPERATION_ERASE,			/* bulk delete */
	OPERATION_MAINTAIN,			/* merge, drop, compress */
	OPERATION_PRIME,			/* look up every key: fills the cache */
	OPERATIONS
};

#endif							/* SIM_CLIENT_H */
