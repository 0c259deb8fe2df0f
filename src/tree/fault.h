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
	SMART_FAULT_stalecas,
	SMART_FAULT_nofreezeempty,
	SMART_FAULT_standsrule,
	SMART_FAULT_torn,
	SMART_FAULT_recent,
	SMART_FAULT_latejoin,
	SMART_FAULT_overwrite,
	SMART_FAULT_descent,
	SMART_FAULT_openfill,
	SMART_FAULT_lateblock,
	SMART_FAULT_freehint,
	SMART_FAULT_blindhint,
	SMART_FAULT_duplicates,
	SMART_FAULT_missmark,
	SMART_FAULT_keptview,
	SMART_FAULT_hasty,
	SMART_FAULT_nostandby,
	SMART_FAULT_nofreeze,
	SMART_FAULT_unmarked,
	SMART_FAULT_lostmark,
	SMART_FAULT_frozenlost,
	SMART_FAULT_unwritten,
	SMART_FAULT_nowipe,
	SMART_FAULT_latevalue,
	SMART_FAULT_unlocked
};

/*
 *	  rollback       a sealed leaf is made live again when its replacement fails
 *	  metawrite      an append publishes meta by WRITE
 *	  inplace        a lock that is held is taken over
 *	  nohi           an empty range's end is not looked at
 *	  slotonly       the content of a changed leaf is confirmed by its cached slot alone
 *	  trustempty     "not there" is concluded from a cache
 *	  anyempty       INSTALL takes any unused slot
 *	  zero           a slot goes back to 0
 *	  bornlive       blocks are live before they are linked
 *	  stalecas       strict descents go through cached nodes
 *	  nofreezeempty  unused slots are not frozen
 *	  standsrule     pending is decided by the absence of slot hi + 1
 *	  torn           checksums are not compared
 *	  recent         a remembered leaf is taken without a look at its node and slot
 *	  latejoin       a reader joins a READ that is in the air (by src/compute)
 *	  overwrite      of the entries that are appended together the last one stays
 *	  descent        an empty range that a memory node came to is believed, whatever shows it
 *	  openfill       a cached result is kept although a writer has come meanwhile
 *	  lateblock      an equality prefix is blocked after the change
 *	  freehint       a leaf is sealed, and its hint stays
 *	  blindhint      an append by a leaf hint does not look whether the key was there
 *	  duplicates     a key that is twice in a leaf is met twice
 *	  missmark       recovery does not see what the last slot of a node leads to
 *	  keptview       a node that was READ with a leaf is taken for strict by later attempts, too
 *	  hasty          a removal uses a leaf's block again at once
 *	  nostandby      a removal that finds no room fails
 *	  nofreeze       a leaf is copied without freezing its values
 *	  unmarked       a value is changed in a leaf that is not marked as updated
 *	  lostmark       an append takes the mark away
 *	  frozenlost     an update that meets a frozen value takes it for another update
 *	  unwritten      a value's word is believed, written or not
 *	  nowipe         a leaf is retired with its values in place
 *	  latevalue      an update that is lost counts for those that wait, too, whenever they came
 *	  unlocked       inserts that go together do not lock their leaves
 */
#ifdef SMART_FAULTS
extern enum smart_fault smart_fault_active;
#define SMART_FAULT(name) smart_unlikely(smart_fault_active == SMART_FAULT_##name)
#else
#define SMART_FAULT(name) 0
#endif

#endif /* SMART_TREE_FAULT_H */
