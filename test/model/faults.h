/*
 * faults.h
 *	  Rules of the model that a run can switch off, to prove that it finds what each of them prevents.
 *
 *  	X(name, rule, what is done instead, histories within which it is found, options that it needs)
 */
#ifndef MODEL_FAULTS_H
#define MODEL_FAULTS_H

#include <stdbool.h>

#define FAULTS(X)                                                                                                      \
	X(chainfirst, "J2-add", "the chain before the tree", 10000, "--theme any")                                         \
	X(recheck, "J2-add", "the counter is not compared under the tail's lock", 10000, "--theme loss")                   \
	X(openlate, "J2-add", "the counter is read after the tree that goes with it", 10000, "--theme loss")               \
	X(reundo, "J2-add", "no undo record for a second tree", 100000, "--theme stale")                                   \
	X(uniqueagain, "J2-unique", "an entry goes into a second tree unchecked", 200000, "--theme loss --unique")         \
	X(uniqueload, "J2-unique", "a tree that is not opened for reads is asked", 10000, "--theme loss --unique")         \
	X(foretoldnot, "J2-foretold", "nobody looks at the slots", 200000, "--theme behind --unique")                      \
	X(foretoldswap, "J2-foretold", "who looks clears the slot when he has raised the counter", 500000,                 \
	  "--theme behind --unique --runs-from journal")                                                                   \
	X(foretoldclear, "J2-foretold", "who looks clears the slot before he raises the counter", 500000,                  \
	  "--theme behind --unique --runs-from journal")                                                                   \
	X(foretoldlate, "J2-foretold", "a tree is foretold after the mark", 200000, "--theme behind --unique")             \
	X(undo, "J2-undo", "undo records are not looked at after a crash", 10000, "--theme loss")                          \
	X(giveup, "J2-giveup", "a tree that is given up is not marked in its record", 10000, "--theme loss")               \
	X(wordfirst, "J2-word", "no removal is under way, although the chain lacks it", 10000, "--theme stale")            \
	X(noflush, "J2-remove", "no flush behind the chain", 10000, "--theme stale")                                       \
	X(openbefore, "J2-remove", "a remover looks for the tree before it has the removers' lock", 50000,                 \
	  "--theme stale")                                                                                                 \
	X(lostanswer, "J2-remove", "no victims, says lost memory", 10000, "--theme loss")                                  \
	X(freefirst, "J2-remove", "VACUUM frees TIDs and does not go through the tree", 10000, "--theme any")              \
	X(killlook, "J2-kill", "a worker does not look whether the entry is in the tree", 10000, "--theme dead")           \
	X(killlock, "J2-kill", "a worker does not take the removers' lock", 10000, "--theme dead")                         \
	X(prune, "J2-kill", "a worker does not wait for heap's prune record", 10000, "--theme any")                        \
	X(onemark, "J2-stale", "a journal that is stale is not marked again", 10000, "--theme stale")                      \
	X(markblind, "J2-stale", "a mark although the index has a tree by then", 10000, "--theme stale")                   \
	X(oldtail, "J3-tail", "a tail that was remembered is not looked at", 10000, "--theme walk")                        \
	X(serial, "J3-walk", "a walker does not compare serials", 10000, "--theme walk")                                   \
	X(runpage, "J3-walk", "a walker does not compare runs' ids", 10000, "--theme walk")                                \
	X(runid, "J3-run", "ids of runs are used again", 10000, "--theme walk")                                            \
	X(early, "J3-free", "pages are used again after one switch", 50000, "--theme walk")                                \
	X(letgo, "J3-free", "pages are let go while a loader reads them", 100000, "--theme loss")                          \
	X(newer, "J3-free", "pages of an unknown newer run are taken for free", 10000, "--theme walk")                     \
	X(keptfree, "J3-free", "free by its id is a page of any run but the current one and the previous one", 10000,      \
	  "--theme keep")                                                                                                  \
	X(keptleast, "J5-keep", "a run that has kept pages tells its own id as the least one", 10000, "--theme keep")      \
	X(keptchanged, "J5-keep", "a page is kept although an operation concerns its range", 10000, "--theme keep")        \
	X(keptback, "J3-back", "pages are given back although the previous run has not been let go", 10000,                \
	  "--theme keep")                                                                                                  \
	X(keptlist, "J3-back", "pages of other ids than the run's are given back, be they in its list or not", 10000,      \
	  "--theme keep")                                                                                                  \
	X(keptmerged, "J5-keep", "pages are kept, and pages are merged", 300000, "--theme keep")                           \
	X(keptlooks, "J3-back", "by the list of one look and the ids of another, without the lock of compactions", 50000,  \
	  "--theme keep")                                                                                                  \
	X(publate, "J4-load", "the tail is read before the tree takes adds", 10000, "--theme loss")                        \
	X(counterfirst, "J4-load", "the counter is raised before the tree takes adds", 10000, "--theme loss")              \
	X(removes, "J4-load", "removals are carried out in a tree that takes adds", 100000, "--theme loss")                \
	X(loadlock, "J4-load", "a loader does not take the removers' lock", 10000, "--theme loss")                         \
	X(rebuildlock, "J4-rebuild", "a rebuild does not take the removers' lock", 300000, "--theme stale")                \
	X(rebuildlate, "J4-rebuild", "the table is read before the tree takes adds", 10000, "--theme stale")               \
	X(openflush, "J4-open", "no flush before the tree is opened for reads", 10000, "--theme stale --kept-by record")   \
	X(openstale, "J4-open", "a loaded tree is opened although the journal is stale", 10000, "--theme stale")           \
	X(openspoiled, "J4-open", "a loaded tree is opened although an add has given it up", 10000, "--theme stale")       \
	X(keptpart, "J4-kept", "a tree is kept that was never opened for reads", 10000, "--theme loss --kept-by record")   \
	X(cutlock, "J5-cut", "the removers' lock is not taken at the cut", 10000, "--theme walk --runs-from tree")         \
	X(scanfirst, "J5-cut", "the tree is scanned before the cut", 10000, "--theme walk --runs-from tree")               \
	X(switchcheck, "J5-switch", "nobody looks at the switch whether the tree is the index's", 10000,                   \
	  "--theme runs --runs-from tree")                                                                                 \
	X(switchcounter, "J5-switch", "the counter alone is compared at the switch", 200000,                               \
	  "--theme runs --runs-from tree")                                                                                 \
	X(switchmarks, "J5-switch", "marks of a stale journal are not counted at the switch", 10000,                       \
	  "--theme stale --runs-from tree")                                                                                \
	X(base, "J5-base", "a standby keeps its tree beyond a run that was written from a tree", 20000, "--theme standby") \
	X(underway, "J2-word", "the word 'removal under way' is not looked at", 50000,                                     \
	  "--theme standby --runs-from tree --as-drafted")                                                                 \
	X(earlytail, "J6-read", "the tail is read before the snapshot is taken", 20000, "--theme any")                     \
	X(readstale, "J6-read", "a query in recovery does not ask whether the journal is stale", 100000, "--theme any")    \
	X(unapplied, "J6-read", "a parallel worker trusts that its leader has applied", 10000, "--theme standby")          \
	X(onlymap, "J6-only", "the visibility map is believed, whatever has been replayed", 10000, "--theme standby")      \
	X(onlylate, "J6-only", "the place is looked at behind the entries", 50000, "--theme standby")                      \
	X(onlystale, "J6-only", "nobody looks whether the journal has become stale", 20000, "--theme stale")               \
	X(applylock, "J6-apply", "two processes apply to a tree at a time", 10000, "--theme standby")                      \
	X(placefirst, "J6-apply", "the place is stored before the changes", 20000, "--theme standby")                      \
	X(promoted, "J6-apply", "a session in recovery applies to a tree that was promoted", 10000, "--theme standby")     \
	X(nolast, "J6-promote", "no last apply", 10000, "--theme standby")                                                 \
	X(promoteonce, "J6-promote", "one apply, before the tree takes adds", 10000, "--theme standby")                    \
	X(promoteopen, "J6-promote", "one apply, while the tree takes adds", 100000, "--theme standby")                    \
	X(promoteflush, "J6-promote", "no flush", 150000, "--theme standby --kept-by record")                              \
	X(moveundo, "J11-both", "no undo record for the new tree", 100000, "--theme move")                                 \
	X(movecounter, "J11-both", "the counter is raised before the new tree takes adds", 10000, "--theme move")          \
	X(movelast, "J11-both", "what adders have appended that did not know is not applied", 10000, "--theme move")       \
	X(moveremovers, "J11-both", "a mover does not take the removers' lock", 10000, "--theme move")                     \
	X(moveflush, "J11-name", "no flush before the new tree is named", 100000, "--theme move --kept-by record")         \
	X(movespoiled, "J11-name", "nobody looks whether the new tree has taken all adds", 10000, "--theme move")          \
	X(movegone, "J11-name", "the new tree is named though the index has lost its own", 100000, "--theme move")         \
	X(movestale, "J11-name", "the new tree is named though the journal has become stale", 100000, "--theme move")      \
	X(movebase, "J11-name", "the new tree is named though a run was written from the older one meanwhile", 100000,     \
	  "--theme move")                                                                                                  \
	X(movesilent, "J11-switch", "the counter is not raised", 100000, "--theme move --unique")                          \
	X(moveafter, "J11-switch", "all come to the new tree before the counter is raised", 500000,                        \
	  "--theme move --unique")                                                                                         \
	X(pagedcut, "J13-open", "run and cut of a view come from two looks at the metapage", 100000, "--theme paged")      \
	X(pagedopen, "J13-open", "nobody looks whether the view's run is there still when it is opened", 100000,           \
	  "--theme paged")                                                                                                 \
	X(pagedswitch, "J13-pages", "runs are switched although the index's view has the run before", 100000,              \
	  "--theme paged")                                                                                                 \
	X(pagedrelease, "J13-pages", "a run is let go that the index's view has", 100000, "--theme paged")                 \
	X(pagedgone, "J13-remove", "a removal leaves no tombstone in the delta", 100000, "--theme paged")                  \
	X(chaincut, "J13-chain", "the chain is read from the cut of now, whatever run the view has", 100000,               \
	  "--theme carry")                                                                                                 \
	X(chainend, "J13-chain", "the chain is read as far as the metapage told before", 10000, "--theme carry")           \
	X(chainpart, "J13-chain", "what is behind the part that was kept of a range is taken for all", 10000,              \
	  "--theme carry")                                                                                                 \
	X(chainorder, "J13-chain", "of one entry an earlier operation of the chain counts", 10000, "--theme carry")        \
	X(leanblind, "J13-lean", "nothing is left of a removal, whatever the run has", 100000, "--theme paged")            \
	X(leannow, "J13-lean", "the run of now is looked into, and not the delta's own", 200000, "--theme paged")          \
	X(leanmerge, "J13-lean", "pages of the run are merged although the delta is lean", 200000, "--theme paged")        \
	X(pagedid, "J13-read", "a reader does not compare the page's run", 200000, "--theme marks")                        \
	X(pagedleft, "J13-read", "a reader whose run has gone takes the page for empty", 100000, "--theme marks")          \
	X(marklook, "J13-mark", "whether a run is being written is looked at before the mark", 200000, "--theme paged")    \
	X(markwritten, "J13-mark", "a mark alone, although a run is being written", 100000, "--theme paged")               \
	X(markrun, "J13-mark", "a mark alone, in a run that is not the current one any more", 100000, "--theme paged")     \
	X(markmover, "J13-mark", "a mark alone, although a tree is being filled from the journal", 100000,                 \
	  "--theme paged")                                                                                                 \
	X(markfed, "J13-standby", "a standby keeps a whole tree, although its primary marks", 100000, "--theme marks")     \
	X(fedrun, "J13-standby", "a standby goes on with a view of the run before", 200000, "--theme marks")               \
	X(fedcut, "J13-standby", "a standby goes on with a view of a cut before", 400000, "--theme marks")                 \
	X(mergecut, "J13-merge", "the cut moves behind what a page of the run lacks", 100000, "--theme paged")             \
	X(behindplace, "J14-catch", "the chain is applied from where it ends now", 100000, "--theme behind")               \
	X(behindsure, "J14-catch", "a tree catches up before the counter was raised", 500000,                              \
	  "--theme behind --unique --runs-from journal")                                                                   \
	X(behindopen, "J14-catch", "one apply, while the tree takes adds", 200000, "--theme behind")                       \
	X(behindonce, "J14-catch", "one apply, before the tree takes adds", 100000, "--theme behind")                      \
	X(behindremove, "J14-remove", "removals by the journal leave a tree for later", 200000, "--theme behind")          \
	X(behindkept, "J14-leave", "a tree that was left behind is kept after a crash", 100000,                            \
	  "--theme behind --kept-by record")                                                                               \
	X(carryflush, "J15-carry", "no flush before a piece is carried out", 10000, "--theme carry")                       \
	X(carrynote, "J15-carry", "the place is noted before the piece is carried out", 10000, "--theme carry")            \
	X(carryorder, "J15-carry", "in the order of keys, and of one entry an earlier operation last", 10000,              \
	  "--theme carry")                                                                                                 \
	X(carryhalf, "J15-place", "the two words of a place, whatever the block was before", 1000000, "--theme carry")     \
	X(carryfirst, "J15-load", "no flush before the first place is noted", 10000, "--theme carry")                      \
	X(carrypromoted, "J15-promoted", "who applies when a standby is promoted goes on without a flush", 500000,         \
	  "--theme carry")                                                                                                 \
	X(carrylosses, "J15-found", "the count of losses is not compared", 50000, "--theme carry")                         \
	X(carrycut, "J15-read", "a follower is read although its place is before the cut", 50000, "--theme carry")         \
	X(carrywhole, "J15-read", "a follower alone is read although its place is not at the end", 10000, "--theme carry") \
	X(carryleft, "J15-read", "the delta as it is when a follower fails that needed none", 200000, "--theme carry")     \
	X(carryalone, "J15-read", "the delta as it is when a follower is not wanted that needed none", 100000,             \
	  "--theme carry")                                                                                                 \
	X(carryahead, "J15-ahead", "what was read ahead stays when the follower begins to need no delta", 200000,          \
	  "--theme carry")                                                                                                 \
	X(carryrenewed, "J15-ahead", "what was read ahead stays when the run is switched", 300000, "--theme carry")        \
	X(carrypin, "J15-pin", "VACUUM does not wait for who has a pin", 10000, "--theme carry")                           \
	X(leanfollower, "J15-lean", "a lean delta is read together with a follower", 300000, "--theme carry")              \
	X(purgeearly, "J15-purge", "tombstones go before the follower has come so far, which nobody compares", 200000,     \
	  "--theme carry")                                                                                                 \
	X(purgeturn, "J15-purge", "tombstones of this turn go, too", 200000, "--theme carry")                              \
	X(purgepin, "J15-purge", "they go although somebody has read the follower before", 300000, "--theme carry")        \
	X(killfirst, "J2-kill", "the line pointer is looked at before the entry", 200000, "--theme carry")                 \
	X(stagedlate, "J2-staged", "adds are written out behind the commit record", 10000, "--theme carry --unique")       \
	X(stagedvacuum, "J2-staged", "VACUUM does not write out areas before it looks", 100000, "--theme carry --unique")  \
	X(filterlate, "J2-filter", "the bit is set when the key's lock has been let go", 100000, "--theme carry --unique") \
	X(filterfirst, "J2-filter", "the filter is cleared before the add is in the chain", 100000,                        \
	  "--theme carry --unique")                                                                                        \
	X(filterleft, "J2-filter", "the filter is cleared when the first add leaves", 500000, "--theme carry --unique")    \
	X(filtertree, "J2-filter", "no bit is set where the index has a tree, which it may lose", 500000,                  \
	  "--theme carry --unique")                                                                                        \
	X(filterearly, "J2-filter", "filters are read before the key is locked", 100000, "--theme carry --unique")         \
	X(filterown, "J2-filter", "a check does not look at its own area", 100000, "--theme carry --unique")               \
	X(bloomkept, "J16-add", "a new filter lacks the keys of pages that are kept", 10000, "--theme filter")             \
	X(bloomadd, "J16-add", "a filter goes on, and the new run's keys are not added", 10000, "--theme filter")          \
	X(bloomlate, "J16-add", "the keys are added when the filter has the new run's name", 10000, "--theme filter")      \
	X(bloomplain, "J16-add", "bits are loaded and stored, in two steps", 50000, "--theme filter")                      \
	X(bloomgone, "J16-name", "nobody looks whether a filter that went on has been thrown away", 50000,                 \
	  "--theme filter")                                                                                                \
	X(bloomcrash, "J16-crash", "filters survive the processes", 50000, "--theme filter")                               \
	X(bloomother, "J16-look", "the filter of another run is asked", 10000, "--theme filter")                           \
	X(bloomagain, "J16-look", "a reader does not look at the name again", 50000, "--theme filter")                     \
	X(bloomclear, "J16-memory", "bits are cleared before the name is taken away", 10000, "--theme filter")             \
	X(bloomstays, "J16-same", "what the filter of one run has said is taken for the next one's", 50000,                \
	  "--theme filter")                                                                                                \
	X(answernow, "J17-fill", "an answer is remembered for the run of now", 10000, "--theme answers")                   \
	X(answerbehind, "J17-fill", "what was read before pages were gone is remembered", 10000, "--theme answers")        \
	X(answermixed, "J17-fill", "what was read of the run before is remembered for the next one", 10000,                \
	  "--theme answers")                                                                                               \
	X(answerfollower, "J17-fill", "what the follower has is remembered for the run", 10000, "--theme answers")         \
	X(answerpart, "J17-fill", "an answer is remembered although the reading was broken off", 10000, "--theme answers") \
	X(answerplace, "J17-number", "a run gets the place of another one in the table, and its number", 10000,            \
	  "--theme answers")                                                                                               \
	X(answernumber, "J17-number", "a view that takes another run goes on with its number", 10000, "--theme answers")   \
	X(answerlock, "J17-memory", "an answer is remembered without the lock", 10000, "--theme answers")                  \
	X(answerearly, "J17-memory", "who remembers looks at the range before he has the lock", 10000, "--theme answers")  \
	X(answertaken, "J17-memory", "a filter has memory that is still in the range", 10000, "--theme answers")           \
	X(answerclear, "J17-memory", "memory is cleared for a filter before the range is changed", 10000,                  \
	  "--theme answers")                                                                                               \
	X(answerbits, "J17-memory", "what filters have given back is not cleared", 10000, "--theme answers")               \
	X(answeradder, "J17-memory", "a filter is thrown away to which somebody adds keys", 10000, "--theme answers")      \
	X(answermark, "J17-fill", "who remembers does not mark the set", 10000, "--theme answers")                         \
	X(answerswap, "J17-fill", "two remember in one set", 10000, "--theme answers")                                     \
	X(answerrange, "J17-look", "a reader does not look at the range again", 10000, "--theme answers")                  \
	X(answerset, "J17-look", "a reader does not look at the set's version again", 10000, "--theme answers")            \
	X(answerodd, "J17-look", "a reader takes a set that is being written", 10000, "--theme answers")                   \
	X(answerorder, "J17-look", "a reader looks at the range again before he does at the set", 100000,                  \
	  "--theme answers")                                                                                               \
	X(answerbounds, "J17-look", "a range of two moments is taken for one", 10000, "--theme answers")                   \
	X(answerstays, "J17-same", "the answer of one run is taken for the next one's", 10000, "--theme answers")          \
	X(answeralone, "J17-same", "what the chain has does not matter", 10000, "--theme answers")                         \
	X(answercrash, "J17-crash", "answers survive the processes", 10000, "--theme answers")

enum fault
{
#define FAULT_NUMBER(name, rule, text, histories, options) FAULT_##name,
	FAULTS(FAULT_NUMBER)
#undef FAULT_NUMBER
	FAULTS_COUNT
};

extern bool faults_active[FAULTS_COUNT];

#define FAULT(name) (faults_active[FAULT_##name])

#endif /* MODEL_FAULTS_H */
