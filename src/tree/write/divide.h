/*
 * divide.h
 *	  DIVIDE: a leaf without room gives way to as many as its entries and those that come need, many leaves at a time.
 */
#ifndef SMART_TREE_DIVIDE_H
#define SMART_TREE_DIVIDE_H

#include "tree/block/handle.h"

#define SMART_PARTS_MAX  16
#define SMART_BLOCKS_MAX 64

/* The bytes of leaves that were made, as far as there is room, to be kept as copies when they are linked (A5). */
struct smart_born
{
	uint32_t used;
	uint32_t size;
	uint8_t *bytes;
};

/* An entry that comes, of which length bytes are stored. */
struct smart_guest
{
	struct smart_key key;
	uint32_t length;
	bool placed; /* it is in the tree */
};

/* A node with slots of the leaves that are divided. */
struct smart_view
{
	struct smart_node node;      /* the cache's copy; from smart_view_finish on as it was READ */
	const struct smart_key *key; /* that leads through it */
	unsigned int planned;        /* slots that are going to be used */
	bool wanted;                 /* a division goes on with it */
	bool full;                   /* a slot was wanted, and there is none: the node should be replaced */
	bool strict;                 /* it was READ since the leaves were locked, and is live */
};

/* What comes for the bytes lo..hi of a leaf's range: a leaf, an empty range or, for one byte, a node. */
struct smart_part
{
	unsigned int lo;
	unsigned int hi;
	uint32_t from; /* its entries in the list, while the division is planned */
	uint32_t to;
	smart_slot link;
	unsigned int guest; /* the first of its guests */
	unsigned int guests;
	unsigned int block; /* the first of its blocks */
	unsigned int blocks;
};

enum smart_division_step
{
	SMART_DIVISION_NONE,    /* there is nothing to do, or no more: it is lost, or was not planned */
	SMART_DIVISION_NARROW,  /* D1: the leaf is to end before parts[at] */
	SMART_DIVISION_INSTALL, /* D2: it does; the slot of parts[at] comes next */
	SMART_DIVISION_SEAL,    /* the leaf lies on another memory node than its slot, and is sealed first */
	SMART_DIVISION_REPLACE  /* what is left of it gives way to parts[0], and so does an empty range */
};

struct smart_division
{
	struct smart_leaf leaf;      /* whose lock is held; an empty range: link, depth, lo and hi alone */
	struct smart_view *view;     /* the node with its slot */
	const struct smart_key *key; /* that leads to it */
	struct smart_guest *guests;  /* ascending, none twice, none in the leaf */
	unsigned int guest_count;
	enum smart_division_step step;
	bool stays; /* the leaf is what parts[0] would be */
	unsigned int at;
	unsigned int count;
	struct smart_part parts[SMART_PARTS_MAX];
	struct smart_born *born; /* where leaves' bytes go; NULL: nowhere */
	unsigned int block_count;
	smart_slot blocks[SMART_BLOCKS_MAX];            /* that were made; 0: this one is linked, or may be */
	const uint8_t *copies[SMART_BLOCKS_MAX];        /* their bytes; NULL: these are not known */
	struct smart_blocked blocked[SMART_BLOCKS_MAX]; /* copies, from before the batch that links them until its end */
};

/* Does the view show the leaf's slot, or the empty range's, and that what this covers ends at hi? */
extern bool smart_divide_shows(const struct smart_division *division, unsigned int hi);

/*
 * Plans the division, and makes its blocks, of which nobody knows yet.  step is NONE afterwards where it cannot be
 * done so: there is no room, no slot (view->full), or too much of it is below one byte.  All else is set by the caller:
 * the leaf as it will be when the requests ahead of D1 have taken effect, and the view from the cache.
 * SMART_NO_MEMORY, SMART_CORRUPT, errors of the fabric.
 */
extern smart_status smart_divide_plan(struct smart_tree *tree, struct smart_division *division);

/* The division's first request, to go behind those that make the leaf what it was planned from: D1, or none (0). */
extern int smart_divide_begin(struct smart_division *division, struct fabric_request *request);
/* It has met what the request says; the view has been READ in the same batch, or the step was none. */
extern void smart_divide_began(struct smart_division *division, const struct fabric_request *request);

/*
 * Takes the divisions, which have begun, to their ends, in as many batches as the one with most steps needs.  What another
 * client is met at is left as it is, for whoever comes there next.
 */
extern smart_status smart_divide(struct smart_tree *tree, struct smart_division **divisions, unsigned int count);
/* What was made, and is certainly not linked, goes back. */
extern void smart_divide_end(struct smart_tree *tree, struct smart_division *division);

#endif /* SMART_TREE_DIVIDE_H */
