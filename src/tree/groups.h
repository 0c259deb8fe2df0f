/*
 * groups.h
 *	  Packed entries in ascending order, in groups, so that one is looked for in one group instead of among all: how they
 *	  lie on the pages of a run (src/am/journal/page.h).
 *
 *	space      entries of group 0 | of group 1 | ... | unused | directory
 *	directory  words of groups 1, 2, ... | places of groups 1, 2, ... | shared | groups
 *
 *	word    4 bytes: of the group's first entry, what follows those bytes that the first entries of all groups share, as
 *	        a number that orders as they do
 *	place   2 bytes: where the group begins, from the first entry on
 *	shared  2 bytes: how many bytes these are
 *	groups  2 bytes: how many there are
 *
 * The words of all groups lie side by side, and a search compares the key with all of them before it looks at an entry.
 * The first entry of a group is packed (pack.h) as if the very first one of all came before it; so what all have in common
 * stands there once.  A group ends as soon as it has SMART_GROUP_BYTES: by bytes, not by entries, since a word and a place
 * weigh more beside short entries.
 *
 * Entries may end in a suffix that takes no part in their order: so a page of fences packs the blocks of its children.
 *
 * What is read comes from disk: every number is checked before it is used, and what is accepted lies within its bounds
 * whatever the bytes are.
 */
#ifndef SMART_TREE_GROUPS_H
#define SMART_TREE_GROUPS_H

#include "tree/pack.h"

#define SMART_GROUP_BYTES 128

/* Bytes of the directory for so many groups. */
#define SMART_GROUPS_DIRECTORY(groups) (4 + 6 * ((groups) -1))

/* Bytes of space in which an entry of this length fits alone. */
#define SMART_GROUPS_SPACE(length) (SMART_PACKED_MAX(length) + SMART_GROUPS_DIRECTORY(1))

#define SMART_GROUPS_SPACE_MAX 32768
#define SMART_GROUPS_MAX       (SMART_GROUPS_SPACE_MAX / SMART_GROUP_BYTES)

/* ---- writing ---- */

struct smart_groups_writer
{
	struct smart_packer packer; /* its end: where the directory begins */
	uint8_t *begin;
	uint8_t *group; /* where the last group begins */
	int suffix;     /* bytes at the end of each entry that take no part in the order */
	uint32_t count; /* of groups */
	uint16_t places[SMART_GROUPS_MAX];
	int first_length;
	uint8_t first[SMART_ENTRY_MAX];
};

/* Begins in the space from begin to end, at most SMART_GROUPS_SPACE_MAX bytes. */
extern void smart_groups_begin(struct smart_groups_writer *writer, uint8_t *begin, uint8_t *end, int suffix);

/* Adds the next entry, which is behind the one before.  False: there is no room for it, and nothing has changed. */
extern bool smart_groups_add(struct smart_groups_writer *writer, const uint8_t *entry, int length);

/* Writes the directory of one entry or more: from where on, to the end of the space.  Entries end where packer.at is. */
extern uint8_t *smart_groups_finish(struct smart_groups_writer *writer);

/* ---- reading ---- */

struct smart_groups
{
	const uint8_t *begin;
	const uint8_t *end;    /* of the entries */
	const uint8_t *words;  /* of group 1 */
	const uint8_t *places; /* of group 1 */
	uint32_t count;        /* of groups */
	int shared;
	int suffix;
	uint32_t group; /* that is being read */
};

/* Opens what lies from begin to end, and its directory.  False: there is none, or it is damaged. */
extern bool smart_groups_open(struct smart_groups *groups, const uint8_t *begin, const uint8_t *end,
							  const uint8_t *directory, const uint8_t *directory_end, int suffix);

/* Begins with the first entry; or with the first one of a group, false then: it is damaged. */
extern void smart_groups_rewind(struct smart_groups *groups, struct smart_unpacker *unpacker);
extern bool smart_groups_enter(struct smart_groups *groups, uint32_t group, struct smart_unpacker *unpacker);

/* As smart_unpacker_next(): at the end of all, unpacker->at == groups->end; else what is there is no entry. */
extern bool smart_groups_next(struct smart_groups *groups, struct smart_unpacker *unpacker);

/* The first entry that is not before the key: what smart_groups_next() says of it. */
extern bool
smart_groups_seek(struct smart_groups *groups, const uint8_t *key, int length, struct smart_unpacker *unpacker);

/* Begins with the last group whose first entry is before the key, or with the first one.  False: it is damaged. */
extern bool
smart_groups_enter_before(struct smart_groups *groups, const uint8_t *key, int length, struct smart_unpacker *unpacker);

/*
 * The suffix of the last entry that is not behind the key, or of the first one.  False: an entry is damaged.  What the
 * unpacker has found afterwards is another one.
 */
extern bool smart_groups_floor(struct smart_groups *groups, const uint8_t *key, int length,
							   struct smart_unpacker *unpacker, uint8_t *suffix);

#endif /* SMART_TREE_GROUPS_H */
