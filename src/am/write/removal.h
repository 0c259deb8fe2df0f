/*
 * removal.h
 *	  Removing entries from a tree and its journal.
 *
 * The journal comes first, and durable (but for swept.h): else an entry would stay in the journal alone after a crash, where no VACUUM
 * finds it, and a later loading would bring it back when its TID serves another row.
 */
#ifndef SMART_AM_REMOVAL_H
#define SMART_AM_REMOVAL_H

#include "utils/relcache.h"

#include "am/codec/encode.h"
#include "am/write/dead_tids.h"

struct smart_relation;

/* Keys of entries that are to be removed, collected in memory of the context in which it was begun. */
struct smart_removal
{
	struct smart_relation *relation;
	Relation index;
	MemoryContext context;
	uint32 count;
	uint32 room; /* of start, less one */
	Size size;   /* of bytes */
	uint8 *bytes;
	uint32 *start;
	uint64 removed;     /* entries, from the tree */
	bool out_of_memory; /* a key could not be collected */
	const struct smart_dead_tids
		*dead; /* the keys are all that entries of these rows have up to the last key; NULL: not known */
};

/* The caller holds the lock of removers (lock.h) until all is removed.  The relation has a tree, or a view. */
extern void smart_removal_begin(struct smart_removal *removal, struct smart_relation *relation, Relation index);

/* Where there is no memory for another one, out_of_memory is set: the caller may be where no error can be raised. */
extern void smart_removal_add(struct smart_removal *removal, const uint8 *key, int key_length);

/* Frees the memory of the keys; those that have not been removed are forgotten. */
extern void smart_removal_end(struct smart_removal *removal);

/*
 * Does an entry belong to a dead row?  For an entry's last bytes, at least smart_removal_tail() of them (0: all of them),
 * which a codec's entries have the TID and what comes behind it in.
 */
static inline size_t
smart_removal_tail(const struct smart_codec *codec)
{
	return codec->payload_width < 0 ? 0 : (size_t) codec->payload_width + SMART_TID_LONGEST;
}

static inline bool
smart_removal_is_dead(const struct smart_codec *codec, const struct smart_dead_tids *dead, const uint8 *bytes,
					  size_t length)
{
	const uint8 *end = bytes + smart_codec_key_length(codec, bytes, (int) length);
	BlockNumber block;
	OffsetNumber offset;

	if (codec->compact_tids)
		smart_tid_get_compact(end, &block, &offset);
	else
		smart_tid_get_plain(end, &block, &offset);
	return smart_dead_tids_have(dead, block, offset);
}

/* Are there so many that it is worth removing them? */
extern bool smart_removal_is_full(const struct smart_removal *removal);

/*
 * Removes what has been collected: journal, flush, tree.  No interrupt is served in between.  If the tree cannot be
 * changed it is given up, and the index is lost until it has been loaded again: false.  Errors: those of WAL.
 */
extern bool smart_removal_perform(struct smart_removal *removal);

/* The same where there is no tree: the removals are in the journal then.  Errors as above. */
extern void smart_removal_journal(struct smart_removal *removal);

/*
 * Does nothing but a removal stand in the tree's note?  Asked by who removes whatever is dead, with the lock of removers, before he
 * looks for that: where something else stands, others may have gone by that, and have put entries into the journal alone,
 * though the counter has not been raised yet.
 */
extern bool smart_removal_may_begin(const struct smart_relation *relation);

/* Puts down with the tree that entries are being removed, or that they are gone from the journal, too, and durably. */
extern void smart_removal_note(const struct smart_relation *relation, bool begins);

/*
 * The tree of a journal that is whole is not used any more, by any process, and the index is lost until it has been
 * loaded again: the tree may have entries that the journal has not, or cannot be walked.
 */
extern void smart_removal_give_up(const struct smart_relation *relation, Relation index);

#endif /* SMART_AM_REMOVAL_H */
