/*
 * journal.c
 *	  A model of the journal: what a tree in memory holds is also kept in the index's pages, by WAL.
 *
 * usage: journal                          the whole test; the last line is "N passed, N failed"
 *        journal --runs M [--seed N] ...  histories; exit status 1 if one of them was wrong, 2 for wrong usage
 *
 *   --fault NAME             without a rule of faults.h, more than once for several
 *   --theme NAME             what is frequent: any, loss, stale, runs, dead, standby, walk, move, paged, marks, behind,
 *                            carry, keep, filter, answers (a history's own choice)
 *   --unique                 the index is unique (a history's own choice)
 *   --runs-from tree|journal what a whole journal's runs are written from (a history's own choice)
 *   --kept-by record|name    what tells after a crash that a tree is whole (a history's own choice)
 *   --as-drafted             standbys keep their trees beyond any run; nothing dies between tree and chain, no WAL is
 *                            lost, no journal becomes stale
 *   --enough K               ends with the K-th wrong history (3)
 *   --shortest               ends with the last history, and tells of wrong ones that are shorter than those before
 *   --trace                  shows every step
 *
 * The same seed and options make the same history.  One table of three TIDs with rows of two keys; two writers, VACUUM,
 * a worker that removes the entries of dead rows which scans have met, two loaders, a compaction, two readers, a
 * carrier; another index that wants memory; a standby that replays WAL as far behind as it likes, with a worker that applies;
 * crashes, power losses, promotions.
 * An entry is a key with a TID.  One step is one group of stores or loads of shared memory, one page under its lock,
 * one WAL record with the changes of its pages, one flush, or one change of a tree.  Processes make them in any order,
 * stop for long, and fail before any step at which they serve interrupts.
 *
 * Words.  An *operation* adds an entry or removes one.  A *run* is a set of entries, on pages that the metapage lists.  The
 * *chain* is the log pages, linked in the order of their *serials*, with the operations in the order in which they came;
 * the last page is the *tail*.  A *place* is a page of the chain with its serial, and an offset.  Operations behind the
 * *cut*, a place, count over the run.  The *journal* is both; what it says is the run with those operations applied.
 * The *counter* is smart_changes().  A tree's *record* is that of the directory: like the tree it survives the
 * processes, and not the machine.
 *
 * The rules; each has faults in faults.h, and the text tells what goes wrong without it.
 *
 * J2-add     The adder reads the counter and then looks which tree takes adds.  It writes an undo record (U1), adds the
 *            entry to the tree, and appends the operation.  Under the lock of the tail's page it compares the counter.
 *            If it has changed the adder unlocks, opens the index anew, and does the same with the tree that takes adds
 *            now, undo record included.  Where no tree takes adds it only appends.
 * J2-unique  A unique index is asked under a lock of the key, in a tree that is opened for reads, and gets the entry
 *            under the same lock, under which the counter is compared, too.  An adder who has to take another tree asks that one, too: a row of the same key may
 *            have come into it, whose adder did not find this entry there.
 * J2-staged  An add for the journal waits in its process's area, in shared memory, where the counter is compared under
 *            the area's lock.  Anyone may write an area out: under its lock an add goes into the chain, and then
 *            leaves the area, without an interrupt in between.  Its process does so before its commit record, since
 *            areas are lost with the processes.  What an aborted transaction had staged is dropped, but that comes
 *            when it is over for others: VACUUM may have found its rows dead by then, and free their TIDs.  So a
 *            remover writes out all areas, before it looks into the journal, and before it appends.  An area that
 *            looks empty then need not be locked: what was staged was so before the row's end could be seen.  A
 *            rebuild writes out all areas when the counter has been raised, before the tree is opened for reads: it
 *            lacks rows that were pruned, whose entries no VACUUM would find in it.  What is in the chain by then is
 *            before the cut of the next run.
 * J2-filter  A unique check of an index without a tree has to find staged adds, too.  Under the key's lock it reads
 *            each area's filter, not under the area's lock; then it writes out the areas that perhaps have the key,
 *            its own one, too; and then it reads the chain.  An adder sets the bit in the step that stages the add,
 *            and has the key locked.  All bits go in the step in which the last add leaves, which the chain has, or
 *            which is dropped.
 * J2-undo    After a crash, undo records with a position behind the end of WAL are carried out before any use.
 * J2-giveup  A tree that lacks an entry, or cannot be reached, is marked in its record first, so that no crash brings it
 *            back; then it is the index's tree no more; then the counter is raised.
 * J2-foretold  Before a tree is marked, or the place is noted where it is left (J14-leave), its number is written into
 *            a slot of the process.  The process clears it when it has raised the counter.  In between, who opens the
 *            index finds no tree, and the counter as it was, and would ask the journal; another, who has the tree, and
 *            the same counter, asks that; and the two miss each other.  So who adds to a unique index that has no tree
 *            which answers looks at all slots.  If one has the number of the index's tree he raises the counter
 *            himself.  If nobody else has raised it since he read it he goes on with what he has made of it; else he
 *            opens the index anew.  Others need not look.  He leaves the slot alone.  It may be that of one who has yet
 *            to mark the tree, which has come back meanwhile (J14-catch): were the slot cleared, the mark would come
 *            unforetold.  Who fails in between raises the counter and clears his slot.
 * J2-remove  A remover takes the removers' lock, and looks only then which tree the index has: it could have been
 *            replaced meanwhile.  It finds the victims in the tree; lost memory is an error and no answer.  It appends
 *            the removals, flushes WAL, and removes the entries from the tree, without an interrupt in between.  VACUUM
 *            frees the TIDs of dead rows when it has done so for all of the tree.
 * J2-word    From before its first record to after the tree's change, "removal under way" stands in the tree's record. A
 *            tree that is found with it by a start or by the next holder of the removers' lock is given up.  With
 *            J5-base nothing goes wrong without this rule; see --as-drafted.
 * J2-kill    A worker that removes single entries has heap prune the row first.  Under the removers' lock it then looks
 *            whether the entry is in the tree, and only afterwards whether the line pointer is dead.  So VACUUM, which
 *            would have taken the entry away, has yet to free the TID; and heap's record with its conflict horizon
 *            stands in WAL before the removal, so that no snapshot of a standby misses the row.  Where no tree answers (J15) it
 *            pins, looks into run and delta, which have all that the chain has under the removers' lock, and appends; no flush.
 * J2-stale   Removals that cannot be journaled are replaced by a mark, in WAL: the journal is stale.  Each such batch
 *            makes a mark of its own, also if the journal is stale already (J5-switch).  VACUUM that finds no tree and
 *            may not wait makes one under the metapage's lock, unless the index has a tree by then.
 * J3-tail    A page is appended to under its lock if it is a log page with the serial that was expected and has no
 *            successor.  A candidate for a new page is locked before the tail, and the tail before the metapage.
 * J3-walk    A walker takes a page for one of the run only if its id is none above the run's, nor below the least one that
 *            the run's pages may have, which the metapage tells with the list; and of the chain only the page of the next
 *            serial.  Otherwise it was left behind: a block that is used again is new, or has a higher id.
 * J3-run     Ids of runs only grow, and serials do.
 * J3-free    Free are new pages; run pages with ids below the least one that the previous run's pages may have, or the
 *            current one's if that was let go; log pages with serials below the first one of the previous run's chain.
 *            Pages of a newer run are not, except to a compaction whose own run it is not.  None of this ever becomes less,
 *            so it may be told from an older copy of the metapage; and whoever reads a run is not left behind before the
 *            second switch.
 *            The previous run and its chain may be let go sooner, under the removers' lock: then no loader of the
 *            primary reads them, and a standby loads its tree anew.
 * J3-back    Other run pages that no run has any more do not tell so by their ids: those that were not kept (J5-keep), and
 *            those of a run that was given up before its switch.  They are given back by a compaction, under its lock, if
 *            the previous run has been let go: it looks at all blocks, and makes a page a new one, in one record under the
 *            page's lock, if it may be the current run's by its id, and is not in its list.  Both come from one look at the
 *            metapage; which then may be an old one, since what no run has no later one comes to have.
 * J4-load    A loader holds the removers' lock.  It publishes the tree that takes adds, and then raises the counter, and
 *            reads the chain to its tail afterwards.  So an operation behind what it has read was appended by an adder
 *            who had put the entry into this tree.  No removal is carried out in a tree that takes adds, since it could
 *            hit an entry that was added for a new row and is not in the chain yet.  So either the loader merges
 *            run and chain elsewhere and adds what is left, or it loads before it publishes and applies the rest
 *            afterwards, in which there are no removals because of the removers' lock.
 * J4-open    The loader flushes WAL, since what it has read has no undo records here.  Under the metapage's lock it then
 *            looks whether the journal is stale, and whether an adder has given the tree up, and opens it for reads.
 *            The flush can be left out if a tree is kept only because the metapage names it: the record that does so
 *            is behind all that was read.
 * J4-rebuild A stale journal's index is rebuilt from the table, under VACUUM's lock of the table and the removers' lock,
 *            which keeps out loaders: the tree takes adds, the counter is raised, the table is read.  Writers need not be
 *            waited for: a row whose adder has not seen the tree is in the table before the counter is raised.
 * J4-kept    A tree is used again after a crash of the processes if it is whole, not given up, and the server's own.
 * J5-cut     A run is written from the journal, up to any place: run and chain merged.  What the journal says does not
 *            change with it.  Where it is written from a tree, which a stale journal needs, the cut is taken under the
 *            removers' lock and the lock of the tail's page, and the tree is scanned after it.
 * J5-switch  One record under the metapage's lock makes the run valid and moves the chain's first page.  A run from a
 *            tree is given up there if the index has another tree by then, or none, or if a mark was made since the cut.
 *            The counter does not tell that, since it is raised after the tree was given up.
 * J5-keep    A run that is written from the journal may keep pages of the run before, if no operation between the two cuts
 *            concerns a page's range of keys.  Such a page stays as it is, and has the id that it had; so if there is one,
 *            the least id of the run's pages is what it was for the run before, and else the run's own.  The other ranges
 *            are written anew.  A page with marks is not kept, and none is where pages are merged (J13).
 * J5-base    A run from a tree may have entries that no operation tells of: of an add whose process died before it
 *            appended, or whose append was lost with the end of WAL.  And removals are missing in the chain of a journal
 *            that was stale.  So it is a new base.  A tree that apply feeds and that was loaded from an older base is
 *            loaded anew.
 * J6-read    A query in recovery takes its snapshot, then finds the tail, and reads a tree that has all up to there;
 *            unless the journal is stale.  A parallel worker does so, too: its leader may not have begun to scan.
 * J6-only    A scan on a standby believes the visibility map only if all that has been replayed of the journal was in its tree
 *            before it read there: a TID is freed, and its page marked, behind the removal or the mark in WAL.  So it takes
 *            the place up to which the tree has all, reads, looks at the map, and then whether the chain still ends there
 *            and the journal has not become stale.  If not, it looks at the row.
 * J6-apply   One process at a time applies to a tree, under a lock that members of a parallel query's lock group do not
 *            share.  For each piece of the chain it makes the changes and stores the place afterwards.  Under the lock
 *            it looks whether the tree was promoted.
 * J6-promote A standby's tree becomes a primary's as in J4-load, and never in one apply: the first one comes before the
 *            tree takes adds, since it carries out removals; the second one after, since there may be adds without it.
 *
 * J11-both   A tree that the index moves to is filled unseen, as by a loader.  Under the removers' lock the chain is applied
 *            to its end, removals too; then the tree takes adds beside the index's own, the counter is raised, and what
 *            adders have appended that did not know is applied.  An adder who has seen the counter adds to both trees, the
 *            index's own one first, with an undo record for each.  If the new tree cannot take an add, the move fails.
 * J11-name   The mover flushes WAL, looks whether the new tree has taken all adds, and lets nobody say otherwise from
 *            then on.  Under the metapage's lock, if the index has its older tree, and the journal is whole and was so all
 *            the time (J5-base), the new tree is named there.  All go on with the older tree.
 * J11-switch The counter is raised, and all come to the new tree, in one.  Only then are there removals again.  Who reads
 *            the older tree with a snapshot goes on with it.  Moves of indexes without a whole journal are not modelled.
 *
 * The server has views, but neither marks nor merged pages: the model comes first.  A *view* answers from the pages of
 * a run and from a tree, the *delta*, that has the operations behind the run's cut.  Theme "paged" has views wherever a
 * tree is loaded or moved to.
 * J13-open   A view is opened as a tree is: J4-load, J11, or a standby's.  Its run and its cut come from one look at the
 *            metapage.  Under the metapage's lock, where it is opened or named, its run must be the current one or the one
 *            before.  Later both could be gone.
 * J13-pages  Runs are not switched as long as the index has a view of the run before, and no run is let go that the index
 *            has a view of.  So the index comes to a view of the current run, or to a whole tree, before the next switch.
 * J13-read   A reader looks into the delta, and then at the run's pages, which tell their run.  If a page is another run's
 *            the index has another tree by now, and the reader goes on in that.
 * J13-remove A removal of what the run has leaves a tombstone in the delta.
 * J13-lean   In a lean delta a removal of what was added leaves a tombstone only if the run has the entry, too; else
 *            nothing is left.  It is the delta's own run that is looked into, and not the run of now.  If its pages have gone the
 *            tombstone is left.  Such a run's pages must not be merged (J13-merge): the add may come into the run after
 *            somebody has looked, and before the removal does.  In half of the histories of paged themes deltas are lean.
 * J13-mark   Or the removal is a mark on the run's page, and no operation.  Then nobody may be reading the run into
 *            something else: under the metapage's lock, which is held until the mark is made, the view's run is the current
 *            one, no newer one has been claimed, and no tree is being filled.
 * J13-merge  A page of the run may take in the operations of its range from where it is merged to the chain's end, in one
 *            record under its lock, which drops what is marked.  The cut moves to the least of the places up to which pages
 *            are merged.  Operations that a page has already may be applied again, since all that follow are, too.
 * J13-standby  A standby's tree would not learn of marks, so it has a view, too, of the current run and the current cut.
 *            An entry may be in an older run or delta that was merged since, and then removed by a mark alone.
 *
 * J14-leave  A tree that cannot be reached for a moment is left behind, by who could not add to it: he looks where the chain
 *            ends, and notes this place in the tree's record, if it is the index's tree, is not being moved, no removal is
 *            under way, and the journal is whole; else he gives it up.  (Runs of a stale journal are written from the tree.)  Then it is the index's tree no more, and the counter is raised.  What the
 *            chain has before that place is in the tree.  A start of the server does not use such a tree.
 * J14-catch  A loader may bring it up to date and open it, as a standby's tree is promoted: it applies the chain from the place on,
 *            removals, too; then the tree takes adds, the counter is raised, and the rest is applied.
 *            Before, he looks at the slots, and raises the counter if one has the tree's number (J2-foretold): adders who
 *            still have the tree ask it, and would miss what a removal takes away for a moment.
 * J14-remove VACUUM of an index without a tree removes what the journal has.  A tree that was left behind is given up before:
 *            it may have an entry of an adder who did not come to append it, and which nobody would find there.
 *
 * In theme "carry" the index has no tree of its own: who inserts only appends, VACUUM and unique checks ask run and chain.  It
 * has a *follower*, a tree on memory nodes that no metapage names, and which outlives crashes and power losses of the server.
 * J15-found  A follower is found by its journal and the count of losses, that is, of marks (J2-stale): the chain of a journal
 *            that was stale lacks removals.  It is found when its first place has been noted, until it is given up.
 * J15-load   It is loaded from run and chain; the losses are those of the metapage that was read before.  WAL is flushed
 *            before the first place is noted, since after a crash it would have what the chain lacks.
 * J15-carry  Under the lock of applying the carrier takes a piece of the chain, of one page or more; flushes WAL; carries out
 *            of each entry the last operation, all removals before all adds; and notes the place afterwards.  An entry
 *            that was removed and added again takes part in both.  If the carrier dies in its piece, all of it is carried
 *            out again.  If the chain's page has gone the follower is given up, and loaded anew.
 * J15-place  A place is two words.  A look, or a crash, may come between them.  Half of a place fits no page, as long as the
 *            two are of different blocks.  But the piece may end on the block that it began on, if that was let go and
 *            used again meanwhile; so a block that is no log page is noted in between.
 * J15-promoted  A promoted standby's tree goes on as the follower.  Who was applying to it goes on to the end of the chain,
 *            which is a new primary's: he flushes WAL before each piece if he is not in recovery when he has read it,
 *            and so does who was loading it before he notes the place.
 * J15-delta  The delta has the last operation on each entry behind the run's cut.  It is of one start of the server, and is
 *            brought up to date by readers, one at a time, until runs are switched.  An earlier operation on an entry
 *            goes in a step of its own.
 * J15-lean   As long as the index is not carried it has no follower, and deltas are made lean (J13-lean), and are so for good.
 *            A follower may have an entry that has come and gone since the run was written, of which a lean delta does not
 *            tell; so who has a lean delta reads the run, or the follower alone.  When a follower has been loaded all
 *            deltas are let go, also one that is being made.  Not all processes know at once that the index is carried.
 * J15-purge  In another delta such a tombstone is *spent*, and is left until no follower has the entry.  Spent tombstones are of two
 *            turns.  Under the delta's lock the carrier begins the next turn and keeps the delta's place: what was spent before
 *            stands before that in the chain.  When the follower has come there, the delta says so: it is not read any more
 *            together with one that has not, as one that is loaded anew.  Who had the delta pinned at that moment may have read
 *            the follower before.  When all of these have gone, the spent tombstones of the turn before go, and the next one
 *            may begin.  A reader pins the delta before he reads the follower, or he forgets what he has read ahead.
 * J15-read   A reader takes the run and the cut of one look at the metapage.  The follower may take the run's place if its
 *            place is not before that cut; then delta and follower are merged, in any order, and the delta counts.  Or
 *            the follower is read alone, if the chain ends at its place; that is looked at after the snapshot was taken.
 *            Then nobody has brought the delta up to date.  So if the follower fails or is not wanted from then on, the
 *            view begins anew, as it does if pages of the run have gone.
 * J15-ahead  What was read of the follower ahead may be used if the delta is merged then, and its cut is the same; or if the
 *            follower needed none when it was read.  So it is forgotten when the run is switched, and when the follower
 *            begins to need none.
 * J15-pin    Who has no snapshot pins first and then looks whether the index has no tree.  VACUUM waits for the pins before
 *            it frees TIDs.  It need not flush WAL.
 *
 * In theme "filter" the index is one of theme "carry", unique, without a follower, and its runs keep pages.  A *filter* of keys
 * has the keys of a run's entries, and perhaps others.  It lies in shared memory, under the run's *name*, or none.
 * J16-lacks  A filter that has the name of a run has the keys of all entries that the run's pages hold, kept ones included.
 * J16-begin  Who writes a run goes on with the filter that has the name of the run before, if there is one.  Else he takes
 *            memory for a new one, which has no name, and is his until it gets one or he ends.
 * J16-add    He adds the keys of each page that he writes, and to a new one also those of pages that the run keeps.  Nothing
 *            is taken out of a filter.  If it was thrown away meanwhile the bits go to another one, which they do not harm, as
 *            bits are set in one step.
 * J16-name   When runs have been switched, and all keys have been added, the filter gets the new run's name: one that went on if
 *            it still has the name of the run before, which is looked at in the same step; or a new one.  If the run is given
 *            up, or its writer fails, the one that went on has the older name, and more keys.  A name before the switch would do no harm, since no view has that run; it is not modelled.
 * J16-memory A filter may be thrown away at any moment, for another one, unless it has no name yet.  First the name is taken
 *            away, and then bits are cleared.  Pages of a run that has a filter must not be merged (J13-merge).
 * J16-look   Who asks looks for the name of his view's run, reads the bits, and looks at the name again.  If that has changed
 *            he has been told nothing.
 * J16-same   If the key is absent, the chain behind the run's cut is asked alone.  When the view takes another run, its
 *            filter is asked anew.  So a unique check finds the same as one that has read the run's pages.
 * J16-crash  Filters die with the processes.  A run whose switch was lost with the end of WAL may be written again, under the same
 *            id, with other entries.
 *
 * In theme "answers" the index is one of theme "filter", and its readers are on a standby, too.  An *answer* is what a run's pages
 * hold under a key, perhaps nothing.  Who has read it remembers it, in *sets* of records, in the memory that no filter has: the
 * *range*.  A run never changes, so an answer is true for good: removals, rollback and VACUUM are operations of the chain, which
 * counts as always.  The lock of memory is one lock, which is taken alone or shared.
 * J17-says   In a set of the range that nobody is writing there is a record of what its run has under its key, or none.  So pages
 *            of the run must be neither marked (J13-mark) nor merged (J13-merge).
 * J17-fill   A reader remembers what he has read if he has read all that the run may have of the key, from pages of one run, each
 *            of which has told so (J3-walk).  It is remembered for that run, and not for that of now.  What a follower has is not what
 *            the run has.  He takes the lock of
 *            memory shared, or does not remember if it is not free; then he looks at the range.  He marks the set by its
 *            version, from even to odd in one step, unless it is odd; writes; and makes the version even again, another one
 *            than before.  He serves no interrupt in between.
 * J17-number Runs have numbers in shared memory, and records have numbers of runs.  There is room for few: another run takes the
 *            place of one, and gets a new number; and so does the one that had the place when somebody asks for it again.  Who
 *            has an older number of the same run may use it all the same.  A view asks whenever it takes a run.
 * J17-memory Filters take memory, and give it back, with the lock held alone, so that nobody is writing records.  What comes to
 *            the range is cleared before.  What leaves it is a filter's when the range has been changed: only then it is cleared for that
 *            one.  Who adds keys to a filter, also to one that goes on, owns it until he ends; what has an owner is not thrown
 *            away.  Otherwise bits that come late (J16-add) would go to records.
 * J17-look   Who asks takes no lock.  He looks at the range's version, at the range, which may be two halves of different
 *            ranges and lead anywhere, and at the set's version; copies the record; looks at the set's version again, and then at the
 *            range's.  If one was odd, or has changed, he has been told nothing.  In the other order the range could change between the
 *            two: the set's memory is cleared, and its version what it was at the beginning, when the copy was made while somebody wrote.
 * J17-same   An answer takes the place of the run's pages, and the chain behind the run's cut is merged over it.  When the view
 *            takes another run, it asks anew.  So a lookup finds what it finds in the pages.
 * J17-crash  Answers and numbers die with the processes, as filters do (J16-crash), and for the same reason.  They survive a
 *            promotion: a standby has read no run whose switch is not in the new primary's WAL.
 *
 * What is checked after every step, on the primary (check.c):
 * - The tree has what the journal says, but for entries of which a process has done one of two steps.
 * - A committed row that a snapshot may see has its entry in both, and is the only one of its key where that is unique.
 * - No entry of either leads to a TID that is free, or that serves a row with another key.  Since WAL makes the pages,
 *   what is true of the journal now is true of each tree that is ever loaded from this WAL.
 * - The follower, if its place is not before the cut, and the operations behind the cut together are what the journal says;
 *   so is the follower alone, if the chain ends at its place.  Half of a place fits no page.
 * - No filter of the current run lacks a key of it, and no set says of a run what it has not (also on a standby).
 * Further: a query sees exactly the rows of its snapshot, on either server (reader.c); no walker takes a page that is
 * used for something else, and none is left behind early (walk.c).
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/world.h"

struct world world;
bool faults_active[FAULTS_COUNT];

static const struct
{
	const char *name;
	const char *rule;
	const char *text;
	uint64_t histories;
	const char *options;
} faults[FAULTS_COUNT] = {
#define FAULT_ENTRY(name, rule, text, histories, options) {#name, rule, text, histories, options},
	FAULTS(FAULT_ENTRY)
#undef FAULT_ENTRY
};

struct run
{
	uint64_t seed;
	uint64_t runs; /* 0: the whole test */
	uint64_t enough;
	bool shortest;

	uint64_t histories;
	uint64_t violations;
	uint64_t found; /* the seed of the last one */
	uint64_t steps;
};

static const struct run run_start = {.seed = 1, .enough = 3};
static const struct settings settings_start = {.theme = THEMES};

void
violation(const char *format, ...)
{
	va_list arguments;

	if (world.violation[0] != '\0')
		return;
	va_start(arguments, format);
	vsnprintf(world.violation, sizeof(world.violation), format, arguments);
	va_end(arguments);
	trace("VIOLATION", world.violation);
}

/* ---- options ---- */

/* The number of a word in a list that ends with NULL; false: it is not there. */
static bool
choose(const char *const *words, const char *word, int *number)
{
	for (*number = 0; words[*number] != NULL; ++*number)
	{
		if (strcmp(words[*number], word) == 0)
			return true;
	}
	return false;
}

static bool
choose_fault(const char *name)
{
	for (int i = 0; i < FAULTS_COUNT; i++)
	{
		if (strcmp(faults[i].name, name) == 0)
		{
			faults_active[i] = true;
			return true;
		}
	}
	return false;
}

static bool
take_flag(struct run *run, const char *flag)
{
	if (strcmp(flag, "--trace") == 0)
		world.settings.trace = true;
	else if (strcmp(flag, "--as-drafted") == 0)
		world.settings.drafted = true;
	else if (strcmp(flag, "--unique") == 0)
		world.settings.unique = true;
	else if (strcmp(flag, "--shortest") == 0)
		run->shortest = true;
	else
		return false;
	return true;
}

static bool
take_option(struct run *run, const char *option, const char *value)
{
	static const char *const themes[] = {"any",   "loss",  "stale",  "runs",  "dead", "standby", "walk",    "move",
										 "paged", "marks", "behind", "carry", "keep", "filter",  "answers", NULL};
	static const char *const sources[] = {"either", "tree", "journal", NULL};
	static const char *const keepers[] = {"either", "record", "name", NULL};
	int number = 0;

	if (strcmp(option, "--seed") == 0)
		run->seed = strtoull(value, NULL, 10);
	else if (strcmp(option, "--runs") == 0)
		run->runs = strtoull(value, NULL, 10);
	else if (strcmp(option, "--enough") == 0)
		run->enough = strtoull(value, NULL, 10);
	else if (strcmp(option, "--fault") == 0)
		return choose_fault(value);
	else if (strcmp(option, "--theme") == 0 && choose(themes, value, &number))
		world.settings.theme = (enum theme) number;
	else if (strcmp(option, "--runs-from") == 0 && choose(sources, value, &number))
		world.settings.source = (enum source) number;
	else if (strcmp(option, "--kept-by") == 0 && choose(keepers, value, &number))
		world.settings.keeper = (enum keeper) number;
	else
		return false;
	return true;
}

/* The first word that is no option, or whose value is wrong; NULL: all are good. */
static const char *
take_options(struct run *run, char **words, int count)
{
	for (int i = 0; i < count; i++)
	{
		if (take_flag(run, words[i]))
			continue;
		if (i + 1 == count || !take_option(run, words[i], words[i + 1]))
			return words[i];
		i++;
	}
	return NULL;
}

/* The same from one line. */
static void
take_line(struct run *run, const char *line)
{
	char copy[100];
	char *words[16];
	int count = 0;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *word = strtok(copy, " "); word != NULL && count < 16; word = strtok(NULL, " "))
		words[count++] = word;
	if (take_options(run, words, count) != NULL)
		abort();
}

/* ---- histories ---- */

static void
run_all(struct run *run, bool tells)
{
	unsigned int shortest = UINT32_MAX;

	for (uint64_t i = 0; i < run->runs && run->violations < run->enough; i++)
	{
		history_run(run->seed + i);
		run->histories++;
		run->steps += world.now;
		if (world.violation[0] == '\0' || (run->shortest && world.work >= shortest))
			continue;
		shortest = world.work;
		run->found = world.seed;
		run->violations += run->shortest ? 0 : 1;
		if (tells)
			printf("seed %" PRIu64 ": after %u steps: %s\n", world.seed, world.work, world.violation);
	}
	if (run->shortest && shortest != UINT32_MAX)
		run->violations = 1;
	if (tells)
		printf("journal: %" PRIu64 " histories, %" PRIu64 " violations, seeds %" PRIu64 "..%" PRIu64 ", %" PRIu64
			   " steps\n",
			   run->histories, run->violations, run->seed, run->seed + run->histories - 1, run->steps);
}

/* ---- the whole test ---- */

/* With all rules, no history is wrong. */
static bool
test_clean(const char *options)
{
	struct run run = run_start;

	world.settings = settings_start;
	take_line(&run, options);
	run_all(&run, false);
	if (run.violations == 0)
		printf("ok    %" PRIu64 " histories, %s\n", run.histories, options);
	else
		printf("FAIL  %s: seed %" PRIu64 "\n", options, run.found);
	return run.violations == 0;
}

/* Without one rule a violation is found, and the history that shows it is right with the rule. */
static bool
test_fault(int fault)
{
	struct run run = run_start;
	const char *mistake = "it is not found";
	char message[sizeof(world.violation)] = "";

	world.settings = settings_start;
	take_line(&run, faults[fault].options);
	run.runs = faults[fault].histories;
	run.enough = 1;
	faults_active[fault] = true;
	run_all(&run, false);
	faults_active[fault] = false;
	if (run.violations != 0)
	{
		memcpy(message, world.violation, sizeof(message));
		history_run(run.found);
		mistake = world.violation[0] == '\0' ? NULL : "but its history is wrong with the rule, too";
	}
	printf("%s  without %s (%s: %s), history %" PRIu64 ": %s\n", mistake == NULL ? "ok  " : "FAIL", faults[fault].rule,
		   faults[fault].name, faults[fault].text, run.histories, mistake == NULL ? message : mistake);
	return mistake == NULL;
}

static int
test_all(void)
{
	static const char *const clean[] = {"--runs 200000",
										"--runs 20000 --as-drafted --runs-from tree",
										"--runs 50000 --theme paged",
										"--runs 50000 --theme marks",
										"--runs 100000 --theme behind",
										"--runs 200000 --theme carry",
										"--runs 50000 --theme keep",
										"--runs 50000 --theme filter",
										"--runs 50000 --theme answers"};
	int passed = 0;
	int failed = 0;

	for (size_t i = 0; i < sizeof(clean) / sizeof(clean[0]); i++)
		test_clean(clean[i]) ? passed++ : failed++;
	for (int i = 0; i < FAULTS_COUNT; i++)
		test_fault(i) ? passed++ : failed++;
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}

int
main(int argc, char **argv)
{
	struct run run = run_start;
	const char *wrong;

	setvbuf(stdout, NULL, _IOLBF, 0);
	world.settings = settings_start;
	wrong = take_options(&run, argv + 1, argc - 1);
	if (wrong != NULL || (argc > 1 && run.runs == 0))
	{
		fprintf(stderr, "journal: '%s' is not an option, or its value is wrong\n", wrong != NULL ? wrong : "--runs");
		return 2;
	}
	if (run.runs == 0)
		return test_all();
	run_all(&run, true);
	return run.violations != 0;
}
