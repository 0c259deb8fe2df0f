/*
 * meta.h
 *	  The metapage: block 0 of the main fork, and all that an init fork has.
 */
#ifndef SMART_AM_META_H
#define SMART_AM_META_H

#include "storage/bufpage.h"
#include "utils/rel.h"

struct smart_codec;

#define SMART_META_BLOCK   0
#define SMART_META_MAGIC   0x534d5254 /* "SMRT" */
#define SMART_META_VERSION 1

enum smart_meta_state
{
	SMART_META_EMPTY = 1, /* no tree yet: the first insert makes it */
	SMART_META_READY = 2, /* tree is the content of the index */
	SMART_META_STALE = 3  /* tree is missing entries, or has too many: it is only waiting to be replaced */
};

/* The content of the metapage; integers in the server's byte order. */
struct smart_meta
{
	uint32 magic;
	uint32 version;
	uint64 tree;         /* 0: none */
	uint64 region;       /* the region's incarnation in which the tree lives */
	uint64 encoding;     /* fingerprint of the codec: how entries are made */
	uint32 state;        /* enum smart_meta_state */
	uint32 leaf_size;    /* bytes, as the tree was made with */
	uint32 fixed_length; /* bytes of every entry, or 0 */
	uint32 database;     /* that the tree was made in: a copy of the database names it too, but may not use it */
	uint32 unused;
	uint32 crc; /* crc32c of the bytes before it */
};

StaticAssertDecl(offsetof(struct smart_meta, crc) == 52 && sizeof(struct smart_meta) == 56, "metapage format");

/*
 * Writes the metapage of an index that has none, in a fork without blocks, and WAL-logs it where the fork is logged
 * (the init fork always is).  tree 0: an empty index whose tree the first insert makes.  Called last in a build: from
 * then on the tree belongs to the index.
 */
extern void smart_meta_create(Relation index, ForkNumber fork, const struct smart_codec *codec, uint64 tree);

/* The hint to rebuild an index, in an ereport(). */
extern int smart_hint_reindex(Relation index);

/*
 * Reads and checks the metapage.  INDEX_CORRUPTED: none there, or not one of ours; FEATURE_NOT_SUPPORTED: another
 * format version.
 */
extern void smart_meta_read(Relation index, struct smart_meta *meta);

/*
 * Which tree a metapage names (0: none), from a copy of the page.  False: it is no metapage that this version
 * understands.  No error, and nothing of the relation is needed.
 */
extern bool smart_meta_named_tree(Page page, uint64 *tree);

/* Were the entries made as codec would make them? */
extern bool smart_meta_fits(const struct smart_meta *meta, const struct smart_codec *codec);

/*
 * May the tree that a metapage names be looked for in this region?  Not if it was made in another one, nor if the
 * metapage came here with a copy of a database (CREATE DATABASE ... TEMPLATE): the tree belongs to the original.
 */
extern bool smart_meta_tree_is_here(Relation index, const struct smart_meta *meta);

/* Names this tree in the metapage unless that names one already, false then; *meta: what it says now.  WAL-logged. */
extern bool smart_meta_name_tree(Relation index, const struct smart_codec *codec, uint64 tree, struct smart_meta *meta);

/* Says in the metapage that this tree is stale, unless another one is named there by now.  WAL-logged. */
extern void smart_meta_mark_stale(Relation index, uint64 tree);

/* Names another tree in the metapage, whatever it said.  WAL-logged, and flushed. */
extern void smart_meta_replace_tree(Relation index, const struct smart_codec *codec, uint64 tree);

/* The metapage that an index with this codec and this tree (0: none) has. */
extern void smart_meta_fill(Relation index, const struct smart_codec *codec, uint64 tree, struct smart_meta *meta);

/* Drops what the relcache keeps of an index (relation.c), as each change of its metapage does. */
extern void smart_meta_forget(Relation index);

#endif /* SMART_AM_META_H */
