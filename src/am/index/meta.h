/*
 * meta.h
 *	  The metapage: block 0 of the main fork, and all that an init fork has.
 */
#ifndef SMART_AM_META_H
#define SMART_AM_META_H

#include "access/xlogdefs.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "am/server/run_name.h"

struct smart_codec;

#define SMART_META_BLOCK   0
#define SMART_META_MAGIC   0x534d5254 /* "SMRT" */
#define SMART_META_VERSION 6

enum smart_meta_state
{
	SMART_META_EMPTY = 1, /* no tree yet: the first insert makes it */
	SMART_META_READY = 2, /* tree is the content of the index */
	SMART_META_STALE = 3  /* tree is missing entries, or has too many: it is only waiting to be replaced */
};

/* Is there a journal, and does it hold what the table does?  (src/am/journal) */
enum smart_journal_state
{
	SMART_JOURNAL_NONE,  /* the index is not logged: its tree is all there is */
	SMART_JOURNAL_WHOLE, /* a tree can be loaded from it */
	SMART_JOURNAL_STALE  /* operations are missing or damaged: a new run makes it whole again */
};

/* An operation's place: the log page by its serial, where that is, and the offset on the page. */
struct smart_chain_place
{
	uint64 serial;
	BlockNumber block;
	uint32 offset;
};

/* Is a place of a chain not before the other one?  Half of one (trees.h) is not, or it is behind the other one's page. */
static inline bool
smart_place_has_come_to(const struct smart_chain_place *place, const struct smart_chain_place *other)
{
	return place->serial > other->serial ||
		   (place->serial == other->serial && place->block == other->block && place->offset >= other->offset);
}

/* Where the tail of the chain was when a process saw it last.  It belongs to one content of the file. */
struct smart_tail
{
	uint64 journal; /* 0: not known */
	uint64 serial;  /* 0: there was no chain */
	BlockNumber block;
	Buffer buffer; /* where that was found, or InvalidBuffer */
};

/*
 * In the place of a tree's id: the index was built without a tree, or has given it up, and its journal answers
 * (src/am/journal/view.h).  No directory has this id, so the index counts as lost.
 */
#define SMART_TREE_NOWHERE PG_UINT64_MAX

/* The content of the metapage; integers in the server's byte order. */
struct smart_meta
{
	uint32 magic;
	uint32 version;
	uint64 tree;          /* 0: none */
	uint64 region;        /* the region's incarnation in which the tree lives */
	uint64 encoding;      /* fingerprint of the codec: how entries are made */
	uint32 state;         /* enum smart_meta_state */
	uint32 leaf_size;     /* bytes, as the tree was made with */
	uint32 fixed_length;  /* bytes of every entry, or 0 */
	uint32 database;      /* that the tree was made in: a copy of the database names it too, but may not use it */
	uint32 journal_state; /* enum smart_journal_state */
	uint32 losses;        /* how often the journal became stale: no tree of before goes on with it afterwards */

	/* The journal's pages; all but its id is 0 or InvalidBlockNumber without one. */
	uint64 journal;      /* random: which content the pages and trees are of; 0 if not logged */
	uint64 run;          /* id of the run, or 0: there is none */
	uint64 previous_run; /* the one before, or 0: its pages may still be read */
	uint64 last_run;     /* the last id that was given to a run, valid or not */
	uint64 run_kept;     /* pages of the run have this id, or one up to its own: it may have kept some of runs before */
	uint64 previous_kept;         /* likewise of the run before */
	uint64 run_entries;           /* of the run */
	uint32 run_borders;           /* pages of the run that may be half empty, since others behind them were kept */
	uint32 run_pages;             /* of the run, all with entries */
	BlockNumber run_root;         /* the page where a search in the run begins: a fence page, unless it has one page */
	uint32 run_fences;            /* fence pages of the run */
	int64 run_made;               /* a TimestampTz; 0: never */
	struct smart_chain_place cut; /* operations from here on count over the run; on the chain's first page */
	uint64 previous_serial;       /* of the chain's first page that may still be read: those before are free */
	uint64 adds;                  /* entries, on pages of the chain that have a next one */
	uint64 removals;              /* likewise */
	uint64 tail_serial;           /* of the chain's last page, 0: there is no chain yet */
	BlockNumber tail_block;       /* where that is */
	uint32 let_go;                /* pages that were let go since free pages were looked for last */
	uint32 crc;                   /* crc32c of the bytes before it */
};

StaticAssertDecl(offsetof(struct smart_meta, crc) == 192 && sizeof(struct smart_meta) == 200, "metapage format");

/* A run that has been written (run.h); without pages there are no entries. */
struct smart_run
{
	uint64 journal; /* 0: the index is not logged */
	uint64 id;      /* 0 without pages */
	TimestampTz made;
	uint64 entries;
	uint32 pages;
	uint32 kept;      /* of them: of runs before */
	uint32 borders;   /* pages behind which others were kept, and which are more than half empty */
	BlockNumber root; /* InvalidBlockNumber without pages */
	uint32 fences;
};

/*
 * Writes the metapage of an index that has none, in a fork without blocks but a run's, and WAL-logs it where the fork is
 * logged (the init fork always is).  tree 0: an empty index whose tree the first insert makes; SMART_TREE_NOWHERE: one whose
 * run answers.  Called last in a build: from then on the tree belongs to the index.
 */
extern void smart_meta_create(Relation index, ForkNumber fork, const struct smart_codec *codec, uint64 tree,
							  const struct smart_run *run);

/* Is an index of this persistence and with these options to have a journal, when it is built? */
extern bool smart_meta_wants_journal(Relation index);

/* The hint to rebuild an index, in an ereport(). */
extern int smart_hint_reindex(Relation index);

/*
 * Reads and checks the metapage.  INDEX_CORRUPTED: none there, or not one of ours; FEATURE_NOT_SUPPORTED: another
 * format version.
 */
extern void smart_meta_read(Relation index, struct smart_meta *meta);

/* The same for who has read it before, with the locks that he has now: the file is not asked for its length. */
extern void smart_meta_read_again(Relation index, struct smart_meta *meta);

/* The same for who has what he read then in meta, or zeros: what is as it was then need not be checked. */
extern void smart_meta_refresh(Relation index, struct smart_meta *meta);

/* The name of the run that the metapage of this file tells of. */
extern struct smart_run_name smart_meta_run_name(const smart_file *file, const struct smart_meta *meta);

/*
 * Which tree a metapage names (0: none), and which journal, from a copy of the page.  False: it is no metapage that this
 * version understands.  No error, and nothing of the relation is needed.
 */
extern bool smart_meta_named_tree(Page page, uint64 *tree, uint64 *journal);

/* Could a tree be loaded from the journal? */
static inline bool
smart_meta_is_loadable(const struct smart_meta *meta)
{
	return meta->journal_state == SMART_JOURNAL_WHOLE;
}

#define SMART_CHAIN_SHORT 128  /* pages that are worth no compaction */
#define SMART_CHAIN_LONG  4096 /* pages (32 MB) that take no time to speak of to load */

/*
 * Is it time to write a new run?  It is if the journal is stale, or two fifths of what it holds are superfluous: removals,
 * and the adds that they have undone.  Not before the chain is three quarters as long as the run: two compactions in a row
 * leave behind a standby that has not read what came before the first.  Where rows are updated again and again, both come
 * about at the same time, and the file has the run, the next one, and three quarters of one.  What was only added takes
 * little more room in the chain than in a run; so a chain that only grows is written anew when it is large, and half as long
 * as its run.  Then what the first reader after a power loss has to apply (J13) is no more than that.
 */
static inline bool
smart_meta_wants_compaction(const struct smart_meta *meta)
{
	uint64 chain = meta->tail_serial - meta->cut.serial;
	uint64 superfluous = 2 * meta->removals;
	uint64 all = meta->run_entries + meta->adds + meta->removals;

	if (meta->journal_state != SMART_JOURNAL_WHOLE)
		return meta->journal_state == SMART_JOURNAL_STALE;
	return (chain > SMART_CHAIN_LONG && chain > meta->run_pages / 2) ||
		   (chain > SMART_CHAIN_SHORT && 4 * chain > 3 * (uint64) meta->run_pages && 5 * superfluous >= 2 * all);
}

/*
 * May what the chain had before the current run's cut be let go?  A standby that has not read that yet has time until the
 * new chain is half as long as the run.
 */
static inline bool
smart_meta_wants_release(const struct smart_meta *meta)
{
	/* Serials begin with 1: before that there is nothing. */
	return meta->journal_state == SMART_JOURNAL_WHOLE && Max(meta->previous_serial, 1) < meta->cut.serial &&
		   meta->tail_serial - meta->cut.serial > Max(SMART_CHAIN_SHORT, meta->run_pages / 2);
}

/* Has the run more than twice as many entries as the tree, which has about so many? */
static inline bool
smart_meta_run_is_sparse(const struct smart_meta *meta, double entries)
{
	return smart_meta_is_loadable(meta) && meta->run_pages > SMART_CHAIN_SHORT &&
		   2 * entries < (double) meta->run_entries;
}

/* The journal, if it is whole, is so no more. */
static inline void
smart_meta_lose_journal(struct smart_meta *meta)
{
	if (meta->journal_state != SMART_JOURNAL_WHOLE)
		return;
	meta->journal_state = SMART_JOURNAL_STALE;
	meta->losses++;
}

/*
 * Locks the metapage exclusively, and reads and checks it.  Errors: see smart_meta_read().  The caller must not use state.h before it
 * has released the lock: that may read the metapage, and would wait for the caller itself.
 */
extern Buffer smart_meta_lock(Relation index, struct smart_meta *meta);

/* Does this process hold such a lock?  For assertions. */
extern bool smart_meta_is_locked(void);

/* Puts a changed content, whose crc is set now, on a metapage that the caller has locked and WAL-logs. */
extern void smart_meta_put(Page page, struct smart_meta *meta);

/* Puts it on the locked metapage, WAL-logs that, and unlocks it; returns where WAL says so (0 if it is not logged). */
extern XLogRecPtr smart_meta_change(Relation index, Buffer buffer, struct smart_meta *meta);

/* This region's incarnation: trees of any other are gone. */
extern uint64 smart_meta_region(void);

/* And that of the region which deltas lie in: the same without memory nodes. */
extern uint64 smart_meta_delta_region(void);

/* Were the entries made as codec would make them? */
extern bool smart_meta_fits(const struct smart_meta *meta, const struct smart_codec *codec);

/*
 * May the tree that a metapage names be looked for in this region?  Not if it was made in another one, nor if the
 * metapage came here with a copy of a database (CREATE DATABASE ... TEMPLATE): the tree belongs to the original.
 */
extern bool smart_meta_tree_is_here(Relation index, const struct smart_meta *meta);

/* Names this tree in the metapage unless that names one already, false then; *meta: what it says now.  WAL-logged. */
extern bool smart_meta_name_tree(Relation index, const struct smart_codec *codec, uint64 tree, struct smart_meta *meta);

/*
 * Says in the metapage that this tree is stale, and the journal, too, unless another one is named there by now: false
 * then.  WAL-logged.
 */
extern bool smart_meta_mark_stale(Relation index, uint64 tree);

/*
 * Names another tree in the metapage.  WAL-logged, and flushed.  if_loadable: only if the journal is not stale; false: it
 * is.
 */
extern bool smart_meta_replace_tree(Relation index, const struct smart_codec *codec, uint64 tree, bool if_loadable);

/*
 * Names the tree to in the place of the tree from, which is the content of the index.  WAL-logged, and flushed.  losses: of
 * the journal when it began to be made from that, or NULL: it was not.  False: the metapage names another tree, or says that
 * this one is stale, or that the journal is, or has been since.
 */
extern bool
smart_meta_move_tree(Relation index, const struct smart_codec *codec, uint64 from, uint64 to, const uint32 *losses);

/* Sets what the metapage of an index says about its tree (0: none), which is made with this codec; the rest stays. */
extern void smart_meta_fill(Relation index, const struct smart_codec *codec, uint64 tree, struct smart_meta *meta);

/* Drops what the relcache keeps of an index (relation.c), as each change of its metapage does. */
extern void smart_meta_forget(Relation index);

#endif /* SMART_AM_META_H */
