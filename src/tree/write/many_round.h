/*
 * many_round.h
 *	  A round of many inserts: its entries and its leaves.
 *
 * many.c chooses, locks and READs the leaves, and has round follow round; many_fill.c fills their copies, and many_publish.c
 * writes them.
 */
#ifndef SMART_TREE_MANY_ROUND_H
#define SMART_TREE_MANY_ROUND_H

#include "tree/block/access.h"
#include "tree/block/leaf.h"
#include "tree/cached/results.h"
#include "tree/find/find.h"
#include "tree/find/window.h"
#include "tree/write/append.h"
#include "tree/write/divide.h"

#define SMART_MANY_MAX         2048 /* entries */
#define SMART_MANY_TARGETS_MAX 128
#define SMART_MANY_VIEWS_MAX   64
#define SMART_MANY_COPIES_MAX  (64 * SMART_LEAF_BYTES_MAX) /* bytes of all leaves */
#define SMART_MANY_BORN_MAX    (32 * SMART_LEAF_BYTES_MAX) /* bytes of leaves that are made, whose copies are kept */
#define SMART_MANY_BATCH_MAX   (3 * SMART_MANY_TARGETS_MAX + 2 * SMART_MANY_VIEWS_MAX)

/* What a round made of an entry. */
enum smart_fate
{
	SMART_FATE_OPEN,  /* nothing: the leaf's lock, or its CAS, was another client's, or the round had no room for it */
	SMART_FATE_ALONE, /* it has to go by itself */
	SMART_FATE_THERE, /* its key is in the leaf */
	SMART_FATE_PUT,   /* it is among those that the leaf's append publishes */
	SMART_FATE_GUEST  /* it comes with the leaf's division */
};

/* A leaf of the round, or an empty range. */
struct smart_target
{
	smart_slot link;
	struct smart_above above;
	unsigned int depth;
	unsigned int first; /* its entries, which follow each other */
	unsigned int count;
	unsigned int put;
	bool locked;
	bool holds;  /* the lock; as above, but for a planted fault */
	bool copied; /* the leaf's copy is in block */
	bool born;   /* as it was made: it is to become live, or is */
	bool published;
	bool written;            /* the batch has ended well */
	unsigned int values_low; /* bytes of the leaf's values that change */
	unsigned int values_end; /* 0: none do */
	int append;              /* request, -1: none */
	int birth;               /* likewise, of the batch that READs */
	int begin;               /* of the division */
	struct smart_leaf read;
	struct smart_grown grown;
	struct smart_blocked hint;
	uint64_t desired; /* meta, if anything was put */
	uint8_t *block;
	struct smart_division division;
};

struct smart_many
{
	struct smart_tree *tree;
	unsigned int count; /* entries of this round, ascending */
	unsigned int targets;
	unsigned int views;
	unsigned int guests;
	unsigned int bytes; /* of copies */
	int requests;
	struct smart_addition *additions[SMART_MANY_MAX];
	struct smart_key keys[SMART_MANY_MAX];
	smart_slot slots[SMART_MANY_MAX]; /* where the keys lead; 0: not known */
	enum smart_fate fates[SMART_MANY_MAX];
	struct smart_blocked blocked[SMART_MANY_MAX];
	struct smart_guest guest[SMART_MANY_MAX];
	unsigned int entry_of[SMART_MANY_MAX]; /* the guest's */
	struct smart_view view[SMART_MANY_VIEWS_MAX];
	struct smart_target target[SMART_MANY_TARGETS_MAX];
	struct smart_place places[SMART_POINTS_MAX];
	struct smart_above above[SMART_POINTS_MAX];
	struct fabric_request batch[SMART_MANY_BATCH_MAX];
	uint8_t copies[SMART_MANY_COPIES_MAX] __attribute__((aligned(SMART_UNIT)));
	struct smart_born born;
	uint8_t born_bytes[SMART_MANY_BORN_MAX];
};

/* Executes what is in the batch, in order. */
static inline smart_status
smart_many_execute(struct smart_many *many)
{
	smart_status status = SMART_OK;

	smart_assert(many->requests <= SMART_MANY_BATCH_MAX);
	for (int i = 0; i < many->requests && status == SMART_OK; i += SMART_EXECUTE_MAX)
	{
		int left = many->requests - i;

		status = smart_execute(many->tree, &many->batch[i], left < SMART_EXECUTE_MAX ? left : SMART_EXECUTE_MAX);
	}
	return status;
}

/*
 * The leaves have been READ, under their locks: puts their entries into their copies, as far as there is room, and plans how
 * the others are to divide them, or to fill empty ranges.
 */
extern smart_status smart_many_fill(struct smart_many *many);

/* Publishes what was put into the copies, and carries out the divisions.  Entries of which that is certain are settled. */
extern smart_status smart_many_publish(struct smart_many *many);

#endif /* SMART_TREE_MANY_ROUND_H */
