/*
 * sorted.h
 *	  The records of a load in the order of their keys.
 */
#ifndef YCSB_SORTED_H
#define YCSB_SORTED_H

#include "base/env.h"
#include "base/status.h"
#include "keys.h"

typedef smart_status (*ycsb_record_fn)(void *argument, const uint8_t *key, size_t key_length, uint64_t record);

/* Calls visit for records 0 .. count - 1 by ascending keys, until it returns an error, which is returned.  SMART_NO_MEMORY. */
extern smart_status
ycsb_sorted(enum ycsb_keys type, uint64_t count, struct smart_env *env, ycsb_record_fn visit, void *argument);

#endif /* YCSB_SORTED_H */
