/*
 * enum_order.h
 *	  Keeps the order of enums as indexes have it.
 */
#ifndef SMART_AM_ENUM_ORDER_H
#define SMART_AM_ENUM_ORDER_H

#include "utils/rel.h"

/* Watches ALTER TYPE ... ADD VALUE.  Once, while the library is being preloaded. */
extern void smart_enum_order_init(void);

/* Keeps other transactions from adding values to the enums in whose order this index is about to be built. */
extern void smart_enum_order_keep(Relation index);

#endif /* SMART_AM_ENUM_ORDER_H */
