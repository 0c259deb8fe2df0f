/*
 * fault.c
 *	  The fault that is switched on; test programs are built with SMART_FAULTS,
 *	  the product is not.
 */
#include "tree/fault.h"

enum smart_fault smart_fault_active = SMART_FAULT_none;
