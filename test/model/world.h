/*
 * world.h
 *	  What a history of the model consists of: WAL, servers with pages and trees, processes that change them.
 */
#ifndef MODEL_WORLD_H
#define MODEL_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/assert.h"
#include "model/faults.h"
#include "rdma/sim/coroutine.h"
#include "sim/dice.h"

#define TIDS             3
#define KEYS             2
#define ENTRIES          (TIDS * KEYS)
#define BLOCKS           14 /* of the index's file; block 0 is the metapage */
#define OPS_PER_PAGE     2
#define ENTRIES_PER_PAGE 2
#define TREES            12  /* that one region sees in a history */
#define DELTAS           100 /* that one start of a server sees */
#define UNDO_MAX         24
#define XIDS             60
#define RECORDS_MAX      200
#define LATE_KINDS       32
#define AREAS            3 /* of the writers */
#define AREA_ADDS        2
#define FILTERS          2 /* of keys; two at a time are somebody's without a name */
#define MEMORY_WORDS     4 /* of a filter, or of a set of records */
#define NAMES            2 /* runs that have a number */
#define NUMBERS          400
#define RUNS             (UINT8_MAX + 1)
#define ANOTHERS_RUN     UINT8_MAX /* a run of another index, whose id is never one of this index's */
#define NONE             (-1)

typedef uint16_t entries; /* a set of them: bit key * TIDS + tid */

#define ENTRY(key, tid) ((unsigned int) ((key) *TIDS + (tid)))
#define BIT(entry)      ((entries) (1u << (entry)))
#define KEY_OF(entry)   ((entry) / TIDS)
#define TID_OF(entry)   ((entry) % TIDS)

static inline entries
entries_of_key(unsigned int key)
{
	return (entries) ((BIT(TIDS) - 1) << ENTRY(key, 0));
}

/* ---- what is in pages ---- */

enum line_state
{
	LINE_UNUSED,
	LINE_NORMAL,
	LINE_DEAD
};

/* A line pointer of the table, with its row. */
struct line
{
	uint8_t state; /* enum line_state */
	uint8_t key;
	uint8_t xmin;
	uint8_t xmax; /* 0: none */
};

struct op
{
	uint8_t entry;
	bool removes;
};

/* Where a page is, and for the checks alone which use of the block is meant: uses are numbered. */
struct link
{
	uint8_t block; /* 0: none */
	uint16_t use;
};

/* A place in the chain. */
struct place
{
	struct link page;
	uint8_t serial;
	uint8_t offset; /* operations before it */
};

/* The pages of a run, in the order of their ranges, which are disjoint, and none of which is empty. */
struct run_pages
{
	uint8_t count;
	struct link page[ENTRIES];
};

enum page_kind
{
	PAGE_NEW,
	PAGE_LOG,
	PAGE_RUN
};

struct page
{
	uint8_t kind; /* enum page_kind */
	uint8_t id;   /* a log page's serial, the run that a run page was written for */
	uint8_t count;
	struct op ops[OPS_PER_PAGE];
	entries content;
	entries dead;        /* of a run page's content: marked as removed */
	entries range;       /* a run page's */
	struct place merged; /* a run page's: it has the chain's operations before */
	struct link next;    /* a log page's */
	uint16_t use;
};

struct meta
{
	uint8_t run;
	uint8_t previous;       /* run */
	uint8_t claimed;        /* the highest id that a compaction has taken */
	uint8_t base;           /* the last run that was written from a tree */
	struct run_pages pages; /* the run's */
	uint8_t kept;           /* the least id that one of them may have */
	uint8_t previous_kept;  /* the same of the run before */
	struct place first;     /* the cut */
	uint8_t previous_first; /* the first serial of the chain that belongs to the previous run, unless that was let go */
	uint8_t before;         /* for the checks alone: as if nothing was ever let go */
	uint8_t before_first;
	struct place tail;
	uint8_t marks; /* how often the journal was marked stale */
	bool stale;
	int tree; /* region and number of the tree that it names, as tree_name() says */
};

/* What redo of WAL makes: all of a server that a standby has, too. */
struct pages
{
	struct line lines[TIDS];
	uint64_t committed; /* a bit for each transaction */
	struct meta meta;
	struct page blocks[BLOCKS];
};

/* ---- WAL ---- */

enum record_kind
{
	RECORD_INSERT,
	RECORD_DELETE,
	RECORD_PRUNE,
	RECORD_FREE,
	RECORD_COMMIT,
	RECORD_APPEND,
	RECORD_LINK,
	RECORD_CLAIM,
	RECORD_RUN_PAGE,
	RECORD_MARK,
	RECORD_SWITCH,
	RECORD_RELEASE,
	RECORD_GIVE_BACK,
	RECORD_REWRITE,
	RECORD_CUT,
	RECORD_NAME,
	RECORD_STALE
};

struct record
{
	uint8_t kind; /* enum record_kind */
	uint8_t tid, key, xid;
	struct op op;
	uint8_t block, tail;
	uint8_t run;
	bool from_tree;
	bool releases; /* the run before */
	uint16_t use;
	entries content;
	entries range;
	struct run_pages pages;
	uint8_t kept;
	struct place cut;
	int tree;
};

/* ---- a server ---- */

/* How far the tombstones of the turn before have come. */
enum purge
{
	PURGE_IDLE,  /* there are none */
	PURGE_WAITS, /* for the follower */
	PURGE_PINS   /* for readers who may have read it before */
};

/* A tree, and what its directory record says.  It survives the processes, not the machine. */
struct tree
{
	entries content;
	bool lost;      /* its memory is gone */
	bool whole;     /* was opened for reads */
	bool given_up;  /* must not be used any more */
	bool under_way; /* a removal is under way */
	bool behind;    /* was left behind: it lacks what the chain has from its place on */
	bool fed;       /* a standby's: apply alone has changed it since it was loaded */
	uint8_t base;   /* of the run that it was loaded from */
	struct place place;
	bool follows;   /* J15: a follower, which outlives the server; it is found when it is whole */
	uint8_t losses; /* a follower's: marks of the journal when it was loaded */

	/* A view (J13): the tree is a delta. */
	uint8_t run; /* whose pages it stands over; 0: the tree has all itself */
	uint8_t kept;
	struct run_pages pages;
	bool lean;        /* J13-lean */
	entries gone;     /* of the run: what was removed */
	struct place cut; /* operations from here on are in it */

	/* J15-purge: tombstones of what the run does not have either, of this turn and of the one before. */
	entries spent[2];
	unsigned int turn; /* which of them is this one */
	enum purge purge;
	struct place turned; /* operations up to here are none of this turn */
	struct place least;  /* the place of a follower that may be read with it; serial 0: any */
	unsigned int waits;  /* for pins up to this one */
};

struct undo
{
	int tree;
	unsigned int entry;
	unsigned int position;
};

struct region
{
	int number;
	struct tree trees[TREES];
	int tree_count;
	struct undo undo[UNDO_MAX];
	int undo_count;
	unsigned int durable; /* WAL is, up to here */
};

/* Adds of one process that are not in the chain yet (J2-staged). */
struct area
{
	uint8_t adds[AREA_ADDS]; /* entries */
	unsigned int count;
	unsigned int filter; /* bits of the keys that it has, and perhaps of others */
};

/* A set of records (J17), of one: the words of memory that is not a filter's. */
enum set_word
{
	SET_VERSION, /* odd: somebody writes */
	SET_NUMBER,  /* of the run; 0: there is no record */
	SET_KEY,
	SET_CONTENT
};

/* A filter of keys (J16), and the memory that it lies in, or where sets of records lie. */
struct filter
{
	uint8_t run;                      /* its name; 0: none */
	unsigned int words[MEMORY_WORDS]; /* a bit for each key, in each word */
	unsigned int own[MEMORY_WORDS];   /* for the checks alone: those of another index's filter */
	struct actor *owner;              /* who fills it, as long as it has no name yet; NULL: nobody */
};

/* What is remembered of runs (J17): where, and under which numbers. */
struct answers
{
	unsigned int version; /* of the range; odd: it is being changed */
	unsigned int first;   /* filter, of those whose memory has sets */
	unsigned int count;
	unsigned int shares; /* who holds the lock of memory shared: a bit for each process */
	struct
	{
		uint8_t run;
		unsigned int number;
	} names[NAMES];
	unsigned int number; /* the last one that was given */

	/* For the checks alone. */
	uint8_t run_of[NUMBERS];
	entries truth[RUNS]; /* what runs have */
};

enum lock
{
	LOCK_REMOVERS,
	LOCK_APPLY,
	LOCK_COMPACTION,
	LOCK_TABLE,                    /* VACUUM's */
	LOCK_DELTA,                    /* the delta's, as LOCK_APPLY */
	LOCK_MEMORY,                   /* of filters and answers; also shared, which struct answers tells */
	LOCK_KEY,                      /* + the key */
	LOCK_AREA = LOCK_KEY + KEYS,   /* + the area's number */
	LOCK_PAGE = LOCK_AREA + AREAS, /* + the block's number */
	LOCKS = LOCK_PAGE + BLOCKS
};

enum role
{
	WRITER_1,
	WRITER_2,
	VACUUM,
	WORKER,
	LOADER,
	SESSION, /* that needs a tree, and loads it itself */
	COMPACTION,
	READER_1,
	READER_2,
	APPLIER,
	MOVER,
	CARRIER,
	WRITER_3,  /* of a unique index */
	NEIGHBOUR, /* another index, that wants memory for filters */
	ACTORS
};

struct server
{
	struct pages pages;
	struct region region;
	bool recovery;         /* a standby */
	unsigned int replayed; /* a standby: records */

	/* Shared memory, which dies with the processes. */
	unsigned int changes; /* of which tree is to be used */
	int adds;             /* the tree that takes adds, or NONE */
	int reads;            /* the one that answers */
	int behind;           /* the one that did and was left behind, or NONE */
	int own;              /* the tree that was opened for reads last, be it given up or not: the metapage tells */
	int foretold[ACTORS]; /* of each process: the tree that it leaves, or NONE */
	int fed;              /* a standby's, also after the server's promotion until it is promoted, too */
	int also;             /* the tree that the index moves to, once that takes adds, too */
	int named;            /* the same when the metapage names it; processes have yet to come to it */
	bool spoiled;         /* it lacks an entry */
	bool sealed;          /* too late to say so */
	struct actor *mover;
	uint64_t running;           /* transactions */
	struct tree deltas[DELTAS]; /* theme "carry" */
	int delta_count;
	struct area areas[AREAS];
	struct filter filters[FILTERS];
	struct answers answers;
	struct actor *holder[LOCKS];
};

/* ---- processes ---- */

struct actor
{
	const char *name;
	void (*run)(struct actor *self); /* one operation */
	struct coroutine coroutine;
	struct server *server;
	bool busy;         /* within an operation */
	bool held;         /* serves no interrupt, raises no error */
	bool waiting;      /* its last step was none */
	unsigned int pace; /* its weight for the scheduler */
	unsigned int stalled_until;

	/* What others and the checks have to know about it. */
	bool looks;               /* has a snapshot */
	bool pinned;              /* VACUUM waits for it before it frees TIDs; theme "carry" */
	const struct tree *delta; /* which it has pinned; NULL: none */
	unsigned int delta_pin;   /* the number of this pin */
	bool watches;             /* what the journal has, */
	entries had;              /* and it has had this since */
	uint64_t snapshot;
	unsigned int xid; /* 0: none */
	entries between;  /* entries of which it has done one of two steps */

	/* What it remembers from one operation to the next. */
	unsigned int position; /* the end of its transaction's last record */
	unsigned int changes;  /* of the index as it has it open */
	int tree;
	int also;
	bool answers; /* the tree, and does not only take adds */
	bool open;
	struct meta meta;
	struct place tail;  /* page.block 0: not known */
	uint8_t kept_first; /* a loader's: the first serial that had not been let go when it took the removers' lock */
};

enum fate
{
	FATE_FLUSH,
	FATE_REPLAY,
	FATE_LOSE_TREE,
	FATE_RESTART_STANDBY,
	FATE_CRASH,
	FATE_POWER_LOSS,
	FATE_PROMOTE,
	FATES
};

/* What a history is about. */
enum theme
{
	THEME_ANY,
	THEME_LOSS,    /* trees are lost and loaded */
	THEME_STALE,   /* removals cannot be journaled */
	THEME_RUNS,    /* trees are given up while runs are written */
	THEME_DEAD,    /* dead rows */
	THEME_STANDBY, /* promotions */
	THEME_WALK,    /* runs are switched while pages are read */
	THEME_MOVE,    /* the index gets another tree while it has one */
	THEME_PAGED,   /* trees are views */
	THEME_MARKS,   /* the same, and a standby, while removals are marked in runs */
	THEME_BEHIND,  /* trees are left behind */
	THEME_CARRY,   /* the index has no tree, but a follower */
	THEME_KEEP,    /* runs of many pages keep some of them */
	THEME_FILTER,  /* unique checks ask filters of keys, in an index that has no tree */
	THEME_ANSWERS, /* the same, and what runs have under keys is remembered */
	THEMES
};

enum source
{
	FROM_EITHER,
	FROM_TREE,
	FROM_JOURNAL
};

enum keeper
{
	BY_EITHER,
	BY_RECORD,
	BY_NAME
};

/* What one history is like; all of it follows from its seed and the settings. */
struct plan
{
	unsigned int steps;
	unsigned int tids; /* that are used, of TIDS */
	unsigned int keys; /* of KEYS */
	bool unique;       /* is the index */
	unsigned int pace[ACTORS];
	unsigned int fate[FATES];
	unsigned int burst;            /* steps of one process, about */
	unsigned int stall_one_in;     /* steps */
	unsigned int late;             /* the kind of steps that come late, or LATE_KINDS and more: none */
	unsigned int error_one_in;     /* steps */
	unsigned int refuse_one_in;    /* adds to a tree */
	unsigned int unable_one_in;    /* removals from a tree */
	unsigned int full_one_in;      /* removals that cannot be journaled */
	unsigned int impatient_one_in; /* VACUUMs that find no tree */
	unsigned int filter_bits;      /* fewer than keys: a filter says "perhaps" wrongly */
	unsigned int asynchronous_one_in;
	bool runs_from_tree; /* also while the journal is whole */
	bool paged;          /* trees that are loaded may be views */
	bool merges;         /* pages of runs are merged with the chain more often than runs are switched */
	bool marks;          /* what is removed from a view's run is marked there */
	bool lean;           /* deltas of views are lean, and pages of runs are not merged */
	bool keeps;          /* runs keep pages of the run before, and pages are not merged */
	bool filters;        /* unique checks ask filters of keys: theme "filter" */
	bool answers;        /* and what was remembered of the run: theme "answers" */
	bool carries;        /* the index has no tree, but a follower; unless it has been rebuilt */
	unsigned int small;  /* steps after which the index is carried: before, it has no follower */
	bool stages;         /* adds wait in areas: theme "carry", unique */
	bool asks;           /* a unique index without a tree asks its journal, in other themes */
	bool misses;         /* trees cannot be reached for a moment */
	bool returns;        /* and all of these are left behind, and come back */
	bool leaves;         /* trees that do not take an add are left behind more often than given up */
	bool kept_by_name;   /* a tree is kept if the metapage names it, else if its record says that it is whole */
};

struct settings
{
	enum source source;
	enum keeper keeper;
	enum theme theme; /* THEMES: any of them */
	bool unique;      /* every index is */
	bool drafted;     /* standbys keep trees beyond any run; no add dies in the middle, no journal becomes stale */
	bool trace;
};

struct world
{
	uint64_t seed;
	struct dice dice;
	struct settings settings;
	struct plan plan;
	unsigned int now;  /* steps */
	unsigned int work; /* steps that were not waiting */
	bool exhausted;    /* room, ids or WAL are used up: the history ends, and was right */
	char violation[160];

	struct pages start; /* where WAL begins */
	struct record wal[RECORDS_MAX + 1];
	unsigned int inserted;
	unsigned int flushed;
	unsigned int xids;
	uint16_t uses;
	unsigned int pins; /* of deltas, that there have been */
	int regions;

	struct server servers[2];
	struct server *primary;
	struct server *standby; /* NULL: none */
	struct actor actors[ACTORS];
	struct actor *running;
	struct coroutine main;
};

extern struct world world;

/* journal.c: the first violation of a history is kept. */
extern void violation(const char *format, ...) __attribute__((format(printf, 1, 2)));

static inline bool
one_in(unsigned int n)
{
	return dice_one_in(&world.dice, n);
}

static inline unsigned int
below(unsigned int n)
{
	return dice_below(&world.dice, n);
}

/* ---- schedule.c ---- */

/* Each ends with the caller's next step being due; what a step does goes on until the caller's next call of one. */
extern void step(struct actor *self, const char *what);

/* Nothing could be done: the caller looks again when its turn comes. */
extern void step_wait(struct actor *self);

/* Waits for a lock and takes it: one step. */
extern void step_lock(struct actor *self, unsigned int lock, const char *what);
extern void unlock(struct actor *self, unsigned int lock);

/* Waits until no other process has the page locked, and reads it: one step. */
extern struct page step_read(struct actor *self, unsigned int block, const char *what);
extern struct meta step_read_meta(struct actor *self, const char *what);

/* Another process's operation ends in the middle: its locks are free, its transaction has failed. */
extern void actor_stop(struct actor *actor);

/* The caller's operation ends with an error. */
extern void actor_abort(struct actor *self) __attribute__((noreturn));

/* Room or numbers are used up: does not return. */
extern void actor_exhausted(struct actor *self) __attribute__((noreturn));

/* A line of the trace. */
extern void trace(const char *who, const char *what);

/* One history, from begin to end. */
extern void history_run(uint64_t seed);

/* ---- wal.c ---- */

/* Puts a record into the primary's WAL and changes its pages; returns where it ends. */
extern unsigned int wal_insert(const struct record *record);
extern void wal_redo(struct pages *pages, const struct record *record);
extern void wal_flush(void);

/* Pages as the first records make them. */
extern void wal_replay_all(struct pages *pages, unsigned int end);

/* ---- pages.c ---- */

/* May the page be used again, as far as this copy of the metapage tells?  own: the run that the caller writes, or 0. */
extern bool page_is_free(const struct meta *meta, const struct page *page, unsigned int own);

/* J3-walk: may this be a page of the run, of whose pages this is the least id? */
extern bool page_is_of_run(const struct page *page, unsigned int run, unsigned int kept);

/* What run and chain say; false: they cannot be read. */
extern bool journal_content(const struct pages *pages, entries *content);

extern bool row_is_visible(const struct line *line, uint64_t snapshot);
extern bool row_is_committed(const struct server *server, const struct line *line);

/* Does no snapshot of this server see the row, and will none? */
extern bool row_is_dead(const struct server *server, const struct line *line);

/* ---- trees.c ---- */

extern struct tree *tree_at(struct server *server, int tree);
extern int tree_make(struct actor *self);
extern int tree_name(const struct server *server, int tree);

/* J2-giveup. */
extern void tree_give_up(struct actor *self, int tree);

/* J14-leave. */
extern void tree_leave_behind(struct actor *self, int tree);

/* J2-foretold, J14-catch: nobody goes on with a tree that was left behind. */
extern void tree_make_sure_left(struct actor *self, int tree);

/* J2-add: self->changes, and then self->tree, which takes adds, and self->also, which takes them, too. */
extern void tree_open_to_add(struct actor *self);

/* No tree is moved to any more, whether or not that has come about. */
extern void move_end(struct server *server);

/* U1. */
extern void undo_note(struct actor *self, int tree, unsigned int entry);

/* ---- paged.c ---- */

/* A view of the run of this metapage, with a delta that begins at this place. */
extern struct tree view_make(const struct meta *meta, const struct place *cut);

/* J13-open: begins a view of the run and the cut that this copy of the metapage tells of, which has no operation yet. */
extern void view_begin(struct actor *self, struct tree *tree, const struct meta *meta);

/* Is the run of this tree, if it is a view, the current one or the one before, which has not been let go? */
extern bool view_is_readable(const struct server *server, const struct tree *tree);

/* J13-standby: is it of the current run and cut, so that it misses no mark? */
extern bool view_is_current(const struct server *server, const struct tree *tree);

/* Has the index, or will it have, a view of this run? */
extern bool view_has_run(const struct server *server, unsigned int run);

/* An operation is carried out in a tree. */
extern void tree_take(struct tree *tree, const struct op *op);

/* The same in one that may be lean, which takes steps then (J13-lean). */
extern void tree_carry_out(struct actor *self, struct tree *tree, const struct op *op);

/* J13-mark: marks the entry in the view's run.  False: it is not there, or may not be marked. */
extern bool view_mark(struct actor *self, const struct tree *tree, unsigned int entry);

/* What a tree has, its run included, at one moment; false: the run's pages have gone. */
extern bool tree_entries(const struct server *server, const struct tree *tree, entries *content);

/* The same of the tree that the index has. */
extern entries index_entries(const struct server *server, int tree);

/* A reader's look, in steps.  False: the run's pages have gone. */
extern bool tree_look(struct actor *self, int tree, unsigned int entry, bool *found);

/* ---- append.c ---- */

/* Locks the page at the chain's end: self->tail. */
extern void append_lock_tail(struct actor *self);

/*
 * One operation to the chain.  adds: the counter is compared with self->changes under the lock of the tail's page;
 * false then: nothing was written.
 */
extern bool append(struct actor *self, struct op op, bool adds);

/* Finds and locks a page that is free. */
extern unsigned int append_take_page(struct actor *self, const struct meta *meta, unsigned int own);

/* ---- staging.c ---- */

/* J2-staged: stages an add under the area's lock, and its key in the filter.  False: the counter has changed. */
extern bool staging_add(struct actor *self, unsigned int entry);

/* J2-filter: a bit for each area that perhaps has an add of the entry's key; and writing out those. */
extern unsigned int staging_perhaps(struct actor *self, unsigned int entry);
extern void staging_write_out(struct actor *self, unsigned int areas);
extern void staging_set_filter(struct actor *self, unsigned int entry);

/* J2-staged: before a commit record, before removals, and after an abort.  Nothing is done where nothing is staged. */
extern void staging_write_out_own(struct actor *self);
extern void staging_write_out_all(struct actor *self);
extern void staging_drop(struct actor *self);

/* ---- walk.c ---- */

/*
 * Reads run and chain as this copy of the metapage says, to *end, or to the tail if that is NULL.  False: left behind.
 */
extern bool
walk(struct actor *self, const struct meta *meta, const struct place *end, entries *content, struct place *place);

/* The run's pages alone, in the order in which the metapage lists them.  False: left behind. */
extern bool walk_run(struct actor *self, const struct meta *meta, struct page pages[ENTRIES]);

/* Applies the chain to a tree from the tree's place on, as far as walk() reads.  False: left behind. */
extern bool apply(struct actor *self, struct tree *tree, const struct place *end);

/*
 * The chain alone, from *place, which moves: of which entries the last operation is an add, and of which a removal.  False:
 * left behind.
 */
extern bool
walk_chain(struct actor *self, const struct place *end, entries *added, entries *removed, struct place *place);

extern bool place_is_behind(const struct place *place, const struct place *other);

/* A page that a walker takes for its own has to be the one that it means. */
extern void check_use(const struct page *page, const struct link *link);

/* ---- filter.c ---- */

/* The filter that one who writes a run adds its keys to. */
struct filling
{
	struct filter *filter; /* NULL: filters are not used */
	bool continues;        /* it has the name of the run before */
	uint8_t before;        /* that run */
	unsigned int late;     /* with a fault alone: keys that are to be added */
};

/* J16-begin: the filter of this metapage's run, or a new one. */
extern void filter_begin(struct actor *self, const struct meta *meta, struct filling *filling);

/* J16-add. */
extern void filter_add(struct actor *self, struct filling *filling, entries content);

/* The same for a page that is kept, if the filter does not have its keys. */
extern void filter_keep(struct actor *self, struct filling *filling, entries content);

/* J16-name: runs have been switched. */
extern void filter_publish(struct actor *self, struct filling *filling, unsigned int run);

/* Filters without a name that were the owner's are nobody's. */
extern void filter_release(struct server *server, const struct actor *owner);

/* J16-look: does a filter say that no page of the run has the key? */
extern bool filter_is_absent(struct actor *self, unsigned int run, unsigned int key);

/* J16-lacks. */
extern void filter_check(const struct server *server);

/* ---- answers.c ---- */

/* Memory and numbers as a server begins with them. */
extern void answers_begin(struct server *server);

/* J17-memory: memory for a filter without a name, which is the caller's; and the cache gets what no filter has. */
extern struct filter *answers_take_memory(struct actor *self);
extern void answers_get_memory(struct actor *self);

/* J17-number. */
extern unsigned int answers_number(struct actor *self, unsigned int run);

/* J17-look: what the run with this number has under the key.  False: nobody knows. */
extern bool answers_ask(struct actor *self, unsigned int number, unsigned int key, entries *content);

/* J17-fill. */
extern void answers_remember(struct actor *self, unsigned int number, unsigned int key, entries content);

/* All that an actor has of it is let go. */
extern void answers_release(struct actor *actor);

/* J17-says. */
extern void answers_check(struct server *server);

/* ---- lookup.c ---- */

/* The view of one who looks up keys in run and chain. */
struct key_view
{
	bool has_run;
	struct meta meta;    /* the run's */
	unsigned int number; /* the run's (J17) */
	bool partly;         /* may read no further than it likes */
	bool absent;         /* a filter has said so of the last key */

	entries truth; /* for the checks alone: what the run has */

	/* With faults alone: what was read of the run before, and of which entries; what others have remembered of one. */
	entries read;
	entries part;
	bool told;
	entries answer;
};

/*
 * What run and chain have of the key; the run is left out if a filter says so, or what is remembered counts.  False: the
 * journal is stale.
 */
extern bool lookup(struct actor *self, struct key_view *view, unsigned int key, entries *content);

/* This one and perhaps others, by one view. */
extern void lookup_some(struct actor *self, unsigned int key);

/* What the pages of the run of now have. */
extern entries lookup_run_content(const struct pages *pages, bool dead);

/* ---- keep.c ---- */

/* What a compaction has read of the journal, or of a tree, that it writes a run from. */
struct reading
{
	struct page pages[ENTRIES]; /* of the run before, as the metapage lists them */
	entries content;            /* up to the cut */
	entries touched;            /* since the cut before there was an operation on these */
	entries kept;               /* the ranges of those pages that the new run keeps */
	struct place cut;
};

/* J5-cut: run and chain, to *end or to the tail.  False: left behind. */
extern bool keep_read(struct actor *self, const struct meta *meta, const struct place *end, struct reading *reading);

/* J5-keep: chooses what is kept. */
extern void keep_choose(const struct meta *meta, struct reading *reading);

/* The new run's pages: those that are kept, and those that are written. */
extern struct run_pages keep_write(struct actor *self, const struct meta *meta, unsigned int run,
								   const struct reading *reading, struct filling *filling);

/* J3-back, under the lock of compactions. */
extern void keep_give_back(struct actor *self);

/* ---- carry.c ---- */

/* J15-place: is a place not before the other one?  Half of one is not, or it is behind its page. */
extern bool place_has_come_to(const struct place *place, const struct place *other);

/* J15-found: has the follower all that this metapage's run has?  Is it one of this journal that may be used at all? */
extern bool follower_has_run(const struct tree *tree, const struct meta *meta);
extern bool follower_is_known(const struct tree *tree, const struct meta *meta);

/* One that is known, or NONE. */
extern int follower_find(const struct server *server, const struct meta *meta);

/* Is the index carried, as this process knows it?  Settings, and a size, of which not all know at once. */
extern bool is_carried(void);

/* J15-delta: the one of this metapage's run, which may be made just now; NULL: it was let go meanwhile. */
extern struct tree *delta_open(struct actor *self, const struct meta *meta);

/* The one of this metapage's run that is there, or NULL. */
extern struct tree *delta_find(struct server *server, const struct meta *meta);

/* It has all that the chain has now.  False: its run is not the current one any more, or it was let go. */
extern bool delta_catch_up(struct actor *self, struct tree *delta);

/* ---- purge.c ---- */

/* J15-purge: pins a delta, in the place of another one. */
extern void purge_pin(struct actor *self, const struct tree *delta);

/* May the delta, which is pinned, be read together with this follower? */
extern bool purge_allows(struct actor *self, const struct tree *delta, const struct tree *follower);

/* A removal of what the delta has as added, and the run does not have. */
extern void purge_note(struct tree *delta, unsigned int entry);

/* The carrier goes on, where this follower has come to its place. */
extern void purge_go_on(struct actor *self, const struct meta *meta, const struct tree *follower);

/* ---- carried.c ---- */

/* To which TIDs follower, run and delta lead.  False: the index does not answer so any more. */
extern bool carried_scan(struct actor *self, unsigned int key, unsigned int *met);

/* The same for one who has no snapshot, but a pin. */
extern void carried_scan_pinned(struct actor *self, unsigned int key);

/* J2-kill: is an entry there, in run and delta, with all that the chain has now?  False: the index does not answer so. */
extern bool carried_look(struct actor *self, unsigned int entry, bool *found);

/* ---- one file each ---- */

extern void writer_run(struct actor *self);
extern void vacuum_run(struct actor *self);
extern void worker_run(struct actor *self);
extern void loader_run(struct actor *self);
extern void compaction_run(struct actor *self);
extern void merge_run(struct actor *self); /* by the compaction, under its lock */
extern void reader_run(struct actor *self);
extern void applier_run(struct actor *self);
extern void mover_run(struct actor *self);
extern void carrier_run(struct actor *self);
extern void neighbour_run(struct actor *self);

extern void fate_happen(enum fate fate);
extern void fate_begin(void);
extern void check_world(void);

#endif /* MODEL_WORLD_H */
