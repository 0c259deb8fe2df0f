/*
 * fault.h
 *	  Faults that tests switch on, to prove that the simulator finds them.
 */
#ifndef SMART_TREE_FAULT_H
#define SMART_TREE_FAULT_H

#include "base/assert.h"

/* X(name, what is done, or left out) */
#define SMART_FAULTS_LIST(X)                                                                     \
	X(rollback, "a sealed leaf is made live again when its replacement fails")                   \
	X(metawrite, "an append publishes meta by WRITE")                                            \
	X(inplace, "a lock that is held is taken over")                                              \
	X(nohi, "an empty range's end is not looked at")                                             \
	X(slotonly, "the content of a changed leaf is confirmed by its cached slot alone")           \
	X(trustempty, "\"not there\" is concluded from a cache")                                     \
	X(anyempty, "INSTALL takes any unused slot")                                                 \
	X(zero, "a slot goes back to 0")                                                             \
	X(bornlive, "blocks are live before they are linked")                                        \
	X(stalecas, "strict descents go through cached nodes")                                       \
	X(nofreezeempty, "unused slots are not frozen")                                              \
	X(standsrule, "pending is decided by the absence of slot hi + 1")                            \
	X(torn, "checksums are not compared")                                                        \
	X(keptparent, "a sweep goes on below a node that its cursor has left")                       \
	X(untold, "what a sweep removes is not told")                                                \
	X(strayed, "a sweep tells of what lies out of its leaf's range, too")                        \
	X(oldorder, "a leaf is put in order as a scan saw it, and not as it is under its lock")      \
	X(noturn, "a walk that leaves a chain of nodes passes by what lies beside it")               \
	X(recent, "a remembered leaf is taken without a look at its node and slot")                  \
	X(latejoin, "a reader joins a READ that is in the air (by src/compute)")                     \
	X(overwrite, "of the entries that are appended together the last one stays")                 \
	X(stowaway, "an entry goes along into a leaf that does not cover it")                        \
	X(descent, "an empty range that a memory node came to is believed, whatever shows it")       \
	X(openfill, "a cached result is kept although a writer has come meanwhile")                  \
	X(lateblock, "an equality prefix is blocked after the change")                               \
	X(freehint, "a leaf is sealed, and its hint stays")                                          \
	X(blindhint, "an append by a leaf hint does not look whether the key was there")             \
	X(duplicates, "a key that is twice in a leaf is met twice")                                  \
	X(missmark, "recovery does not see what the last slot of a node leads to")                   \
	X(keptview, "a node that was READ with a leaf is taken for strict by later attempts, too")   \
	X(staleahead, "a node that a scan READs ahead is taken out of the cache instead")            \
	X(oldflight, "a scan uses leaves that were READ for the one before")                         \
	X(apart, "a scan passes a prefix by that nodes show which were not READ together")           \
	X(hasty, "a removal uses a leaf's block again at once")                                      \
	X(nostandby, "a removal that finds no room fails")                                           \
	X(nofreeze, "a leaf is copied without freezing its values")                                  \
	X(unmarked, "a value is changed in a leaf that is not marked as updated")                    \
	X(lostmark, "an append takes the mark away")                                                 \
	X(frozenlost, "an update that meets a frozen value takes it for another update")             \
	X(unwritten, "a value's word is believed, written or not")                                   \
	X(nowipe, "a leaf is retired with its values in place")                                      \
	X(latevalue, "an update that is lost counts for those that wait, too, whenever they came")   \
	X(miscounted, "values are counted by the entries that are not above a leaf's hi")            \
	X(unlocked, "inserts that go together do not lock their leaves")                             \
	X(lostinstall, "a part of a leaf that is divided counts as put, whoever was first")          \
	X(cutold, "what stays in a leaf that is divided is cut as if it came with the others")       \
	X(openend, "leaves that end together are not locked")                                        \
	X(pendingend, "of leaves that end together a pending one is sealed, too")                    \
	X(latecopy, "a leaf's copy stays while a value is written")                                  \
	X(unborn, "a leaf that was made is taken for live when it is changed, and is not")           \
	X(lateticket, "what a scan has READ is kept with a ticket of afterwards")                    \
	X(leftvalue, "a value is put where an append that came to nothing has left another")         \
	X(hastygift, "a range is given away with turns under way (by src/compute)")                  \
	X(unlogged, "a change is answered for before it is in the log (by src/compute)")             \
	X(unreplayed, "what a dead owner's log has is left there (by src/compute)")                  \
	X(unflushed, "a range is given away with changes in the log alone (by src/compute)")         \
	X(unconfirmed, "who has WRITTEN what it promised does not look whether that was taken back") \
	X(uncounted, "a promise is taken back, and not counted")                                     \
	X(unsettled, "an entry that may be taken back is believed")                                  \
	X(halfround, "the log forgets what the first piece of a round has left (by src/compute)")    \
	X(stillbare, "a tree that was bare stays so, whatever is applied (by src/compute)")          \
	X(earlyspace, "the log's space is used again before the word that says so (by src/compute)") \
	X(partview, "a part of a node that was READ is taken for all of it by a strict descent")     \
	X(onepiece, "a node takes one READ, whatever led there")                                     \
	X(lastmoment, "a cached node's links are taken for those of this moment, whatever its moment")

enum smart_fault
{
	SMART_FAULT_none,
#define SMART_FAULT_NUMBER(name, text) SMART_FAULT_##name,
	SMART_FAULTS_LIST(SMART_FAULT_NUMBER)
#undef SMART_FAULT_NUMBER
};

#ifdef SMART_FAULTS
extern enum smart_fault smart_fault_active;
#define SMART_FAULT(name) smart_unlikely(smart_fault_active == SMART_FAULT_##name)
#else
#define SMART_FAULT(name) 0
#endif

#endif /* SMART_TREE_FAULT_H */
