/*
 * read.h
 *	  Reading a journal: the entries of its run, and the operations of its chain.
 *
 * A reader copies a page, or the group of entries that it has come for, and holds nothing afterwards, since a server that drops
 * the index waits for pins, on a standby in the process that replays WAL.  What it reads may be a moment old, and a page may
 * serve another purpose by then: the page itself says so.
 */
#ifndef SMART_AM_JOURNAL_READ_H
#define SMART_AM_JOURNAL_READ_H

#include "storage/bufmgr.h"

#include "am/codec/encode.h"
#include "am/index/meta.h"
#include "am/journal/page.h"

enum smart_found
{
	SMART_FOUND,       /* an entry, or an operation */
	SMART_FOUND_END,   /* there is no more; in the chain: now */
	SMART_FOUND_BEHIND /* the page was used again: there has been a newer run, and then another one */
};

/* Where a reader is; entry and length of the last one that was found are in unpacker. */
struct smart_reader
{
	Relation index;
	BufferAccessStrategy strategy; /* NULL: the buffers of everybody */
	uint64 journal;
	uint64 number;      /* of the page: its serial; of a run, the run's id */
	uint64 least;       /* run: the least id of its pages */
	BlockNumber block;  /* the page that is being read; InvalidBlockNumber: behind the last one */
	BlockNumber blocks; /* that the file has, at least */
	BlockNumber asked;  /* the last block that the operating system was asked for, or InvalidBlockNumber */
	bool loaded;        /* it is in page */
	bool only_group;    /* run: but of its entries those of the current group alone */
	bool ahead;         /* the operating system is asked for blocks behind it, too */
	uint32 pages;       /* that have been read */
	uint64 entries;     /* run: that have been read */
	uint64 expected_entries;
	uint32 expected_pages;
	BlockNumber root;           /* run: where a search begins */
	bool begun;                 /* run: block was found */
	bool sought;                /* run: it was not read from the beginning on */
	uint32 levels;              /* run: of fence pages above block */
	struct smart_groups groups; /* run: of page */
	uint32 offset;              /* chain: of the batch behind the current one */
	uint32 from;                /* chain: from here on the page has been copied */
	uint64 reaches;             /* chain: the page with this serial, at least */
	bool in_batch;
	enum smart_operation operation; /* chain: of the current batch */
	struct smart_unpacker unpacker;
	PGAlignedBlock page;
	BlockNumber path[SMART_FENCE_LEVELS]; /* run: fence pages above block, from the lowest one on */
	BlockNumber listed;                   /* run: the fence page whose children are these, or InvalidBlockNumber */
	uint32 children;
	uint32 child; /* that was found last */
	BlockNumber child_block[SMART_FENCE_CHILDREN];
};

/* Begins with the run that this metapage tells of; bulk: with a ring of buffers of its own.  There may be none. */
extern void
smart_reader_begin_run(struct smart_reader *reader, Relation index, const struct smart_meta *meta, bool bulk);

/* Begins with the chain of this metapage at this place; serial 0: there is no chain. */
extern void smart_reader_begin_chain(struct smart_reader *reader, Relation index, const struct smart_meta *meta,
									 const struct smart_chain_place *place, bool bulk);

/* Goes to the begin of a batch of the chain, which a reader that began with this metapage has passed. */
extern void smart_reader_move(struct smart_reader *reader, const struct smart_chain_place *place);

/*
 * The next entry of the run, or operation of the chain.  At the end of the chain it may be called again later.
 * INDEX_CORRUPTED; errors of reading a file.
 */
extern enum smart_found smart_reader_next_entry(struct smart_reader *reader);
extern enum smart_found smart_reader_next_operation(struct smart_reader *reader);

/* Chain: has the current batch been read to its end? */
extern bool smart_reader_at_batch_end(const struct smart_reader *reader);

/* Chain: where the next batch lies, at the end of one. */
extern struct smart_chain_place smart_reader_place(const struct smart_reader *reader);

/*
 * The first entry of the run that is not before this key, or beginning of one; the next ones follow as above.  Results and
 * errors likewise.
 */
extern enum smart_found smart_reader_seek_entry(struct smart_reader *reader, const uint8 *key, int length);

/* The same right after such a search, for a key that is not below that one's: fast if it is near. */
extern enum smart_found smart_reader_seek_ahead(struct smart_reader *reader, const uint8 *key, int length);

/*
 * Does a search for entries from one key up to another one need only one page of the run, and is that in shared buffers, as
 * whatever has to be read to find it?  The answer costs no read of a file.  Errors as above.
 */
extern bool
smart_reader_is_near(struct smart_reader *reader, const uint8 *from, int from_length, const uint8 *to, int to_length);

/*
 * Backward, a group of entries (tree/groups.h) at a time.  seek_group: the last group of the run that has entries before
 * this key, if any does; previous_group: the one before.  Then next_of_group gives the group's entries, which ascend all the
 * same; false: there are no more in it.
 */
extern enum smart_found smart_reader_seek_group(struct smart_reader *reader, const uint8 *key, int length);
extern enum smart_found smart_reader_previous_group(struct smart_reader *reader);
extern bool smart_reader_next_of_group(struct smart_reader *reader);

/*
 * The pages of a run, for who knows their blocks (run_walk.h).  open_fence: a copy of a fence page, open in reader->groups, and
 * the level that it says it is on.  go_to: to a run page, whose entries next_of_page then finds, to SMART_FOUND_END; ahead: the
 * blocks behind it are asked for, too.  Results and errors as above.
 */
extern enum smart_found smart_reader_open_fence(struct smart_reader *reader, BlockNumber block, uint32 *level);
extern void smart_reader_go_to(struct smart_reader *reader, BlockNumber block, bool ahead);
extern enum smart_found smart_reader_next_of_page(struct smart_reader *reader);

/* Have all pages been read but `skipped` of them, and all entries if none was skipped?  INDEX_CORRUPTED if not. */
extern void smart_reader_check_all(const struct smart_reader *reader, uint32 skipped);

/*
 * Is what was found last an entry as the codec makes them, or a key of one?  INDEX_CORRUPTED if it is not: the page is
 * damaged, although its checksum is right.
 */
extern void smart_reader_check(const struct smart_reader *reader, const struct smart_codec *codec, bool key_only);

#endif /* SMART_AM_JOURNAL_READ_H */
