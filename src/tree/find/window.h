/*
 * window.h
 *	  Blocks that are READ in one batch: leaves ahead of a walk, and those of many keys.
 */
#ifndef SMART_TREE_WINDOW_H
#define SMART_TREE_WINDOW_H

#include "tree/block/handle.h"
#include "tree/block/leaf.h"

#define SMART_WINDOW_MAX       256
#define SMART_WINDOW_FRONT_MAX 48

/* Blocks that were read in one batch. */
struct smart_window
{
	uint32_t count;
	uint32_t served; /* the last one that was asked for: the next one is near */
	struct
	{
		smart_slot link; /* 0: used up */
		uint64_t ticket; /* of a leaf that was READ, for its copy (A5); 0: it is not to be kept */
		uint8_t *copy;   /* NULL: never used */
		uint32_t room;   /* bytes there */
	} blocks[SMART_WINDOW_MAX];
};

/* A window that is under way, with requests in front, while its owner is busy with another one. */
struct smart_window_flight
{
	struct fabric_flight flight;
	struct fabric_request reads[SMART_WINDOW_FRONT_MAX + SMART_WINDOW_MAX];
	struct smart_window window; /* its leaves, when the flight has landed with SMART_OK */
	int front_count;
	void *front[SMART_WINDOW_FRONT_MAX]; /* where the requests in front want their bytes */
	uint8_t *bytes;                      /* where they have them until then; NULL: never used */
	uint32_t room;
	uint64_t moment; /* of the operation that began it */
};

/*
 * READs what the slots lead to, at most SMART_WINDOW_MAX blocks, in one batch, with at most SMART_WINDOW_FRONT_MAX
 * requests in front.
 */
extern smart_status
smart_window_read(struct smart_tree *tree, struct smart_window *window, const struct fabric_request *front,
				  int front_count, const smart_slot *slots, unsigned int count);
/*
 * The same of leaves, but that those which have a copy (A5) come from there.  *posted: there was a batch; without one the
 * requests in front were not executed either.
 */
extern smart_status
smart_window_fill(struct smart_tree *tree, struct smart_window *window, const struct fabric_request *front,
				  int front_count, const smart_slot *slots, unsigned int count, bool *posted);
/* Begins the same, as a flight; SMART_OK without one if there is nothing to READ. */
extern smart_status
smart_window_depart(struct smart_tree *tree, struct smart_window_flight *flight, const struct fabric_request *front,
					int front_count, const smart_slot *slots, unsigned int count);
/*
 * It has landed: takes what the requests in front have brought to where they want it.  Within an epoch.  False: nothing was brought, or
 * blocks may have been used again meanwhile, since this operation was told another moment than that which began it.
 */
extern bool smart_window_take_front(const struct smart_tree *tree, struct smart_window_flight *flight);
extern void smart_window_flight_done(struct smart_tree *tree, struct smart_window_flight *flight);
/* The copy of what link leads to, once, and its ticket if that is asked for; NULL: it is not there. */
extern uint8_t *smart_window_take(struct smart_window *window, smart_slot link, uint64_t *ticket);
/* The same, and it may be taken later. */
extern const uint8_t *smart_window_look(struct smart_window *window, smart_slot link);
extern void smart_window_done(struct smart_window *window, struct smart_env *env);

/* A window of one block, which was brought otherwise. */
extern smart_status
smart_window_put(struct smart_tree *tree, struct smart_window *window, smart_slot link, const uint8_t *bytes);
/* The same of a leaf that the search was brought by a memory node (offload.c), if it was. */
extern smart_status smart_offload_window(struct smart_tree *tree, smart_slot link, struct smart_window *window);
/* The node that a key was led through last, and how many bytes of the key lead to it. */
struct smart_above
{
	smart_slot link; /* 0: the root's slot leads to the key's place */
	unsigned int arrived;
};

/*
 * Where count keys lead, as the cache shows it, and by READs of what it does not have; level by level, with a batch for
 * each.  Of a place its kind, slot and depth are set: hints.  above: NULL, or for each key the node with that slot.
 * SMART_NO_MEMORY, errors of the fabric.
 */
extern smart_status smart_points_find(struct smart_tree *tree, const struct smart_key *keys, unsigned int count,
									  struct smart_place *places, struct smart_above *above);
/* The same, and READs the leaves there, each once, in one batch. */
extern smart_status smart_points_read(struct smart_tree *tree, const struct smart_key *keys, unsigned int count,
									  struct smart_window *window);

#endif /* SMART_TREE_WINDOW_H */
