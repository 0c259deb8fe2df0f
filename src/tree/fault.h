/*
 * fault.h
 *	  Faults that tests switch on, to prove that the simulator finds them.
 */
#ifndef SMART_TREE_FAULT_H
#define SMART_TREE_FAULT_H

#include "base/assert.h"

enum smart_fault
{
	SMART_FAULT_none,
	SMART_FAULT_rollback,
	SMART_FAULT_metawrite,
	SMART_FAULT_inplace,
	SMART_FAULT_nohi,
	SMART_FAULT_slotonly,
	SMART_FAULT_trustempty,
	SMART_FAULT_anyempty,
	SMART_FAULT_zero,
	SMART_FAULT_bornlive,
	SMART_FAULT_onepool,
	SMART_FAULT_stalecas,
	SMART_FAULT_nofreezeempty,
	SMART_FAULT_standsrule,
	SMART_FAULT_torn
};

#ifdef SMART_FAULTS
extern enum smart_fault smart_fault_active;
#define SMART_FAULT(name) smart_unlikely(smart_fault_active == SMART_FAULT_##name)
#else
#define SMART_FAULT(name) 0
#endif

#endif							/* SMART_TREE_FAULT_H */
