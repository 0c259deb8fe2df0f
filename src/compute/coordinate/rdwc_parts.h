/*
 * rdwc_parts.h
 *	  What lies in a table of read delegation and write combining, for rdwc.c and the tests that look into it.
 *
 *	  table       header | a line per client | places
 *
 * Which client may change what:
 *
 *	  place       Under its lock word, all of it.  Its lists go through the lines of the clients that wait.  They put
 *	              themselves in and take themselves out; a leader, or the holder of the leaf's lock, takes others out.
 *	  line.state  IDLE to READS or HANDED, into a place's list, and back, out of it: by the line's client, under the
 *	              place's lock.
 *	              To TAKEN, out of the list: by the client that takes it (the taker), under that lock.
 *	              From TAKEN by a CAS: the taker's to an outcome, with release, so that the line's client, which loads
 *	              it with acquire, sees what came with it; or the line's client's to GONE, when it gives up.  Then the
 *	              taker's CAS fails, and the taker stores IDLE.
 *	              An outcome to IDLE: by the line's client.
 *	  line.next   By the client that may change the state, before it does.
 *	  line.waits  The clients that wait for this one's READ: by this client, under the lock of the place that it READs
 *	              for.
 *	  line.copy   By its client when no other client takes it.  A client that was told DELIVERED takes it and counts
 *	              takers down, with release.
 *	  line.entry, line.handed
 *	              By its client when the state is IDLE.
 */
#ifndef SMART_COMPUTE_RDWC_PARTS_H
#define SMART_COMPUTE_RDWC_PARTS_H

#include "base/assert.h"
#include "compute/coordinate/rdwc.h"

#define RDWC_ALIGNMENT 128
#define RDWC_COPIES    2 /* of a client: while one is being taken, it may READ for others again */

/* Clients in lists are counted from 1, so that 0 is none. */
struct rdwc_place
{
	uint32_t lock;       /* 1: a client changes something */
	uint32_t flying;     /* the client that READs the leaf */
	uint32_t readers;    /* first of those that wait for the next READ */
	uint32_t handed;     /* first of those that handed an entry in */
	fabric_address leaf; /* 0: no client uses the place */
	uint64_t unused[5];
};

enum rdwc_state
{
	RDWC_IDLE,
	RDWC_READS,  /* waits in a place's list of readers */
	RDWC_HANDED, /* waits in a place's list of entries */
	RDWC_TAKEN,  /* out of the list; the client that took it will tell */
	RDWC_GONE,   /* taken, but the client has given up */
	/* outcomes of a READ */
	RDWC_DELIVERED, /* in a copy, line.from and line.copy_from */
	RDWC_UNCOPIED,  /* there was no room for a copy */
	RDWC_FAILED,
	/* outcomes of an entry: the first plus an enum smart_combined */
	RDWC_SETTLED
};

/* What a client has READ for others. */
struct rdwc_copy
{
	uint32_t length;
	uint32_t takers; /* clients that have yet to take it */
	uint64_t unused[7];
	uint8_t bytes[SMART_RDWC_COPY_BYTES];
};

struct rdwc_line
{
	/* what others look at while the client waits */
	uint32_t state;
	uint32_t next;              /* in the list */
	uint32_t from;              /* DELIVERED: the client that has READ it */
	uint32_t copy_from;         /* and which of its copies it is */
	struct smart_handed handed; /* bytes is not set */
	uint64_t padding[2];
	/* what the client itself uses */
	uint32_t waits;   /* first of those that wait for the READ that it has in the air */
	uint32_t place;   /* that it READs for */
	uint64_t unknown; /* outcomes of its entries that were not known */
	uint64_t more_unused[6];
	struct smart_rdwc_counters counters;
	uint64_t last_unused[8];
	uint8_t entry[SMART_RDWC_ENTRY_BYTES];
	struct rdwc_copy copy[RDWC_COPIES];
};

struct smart_rdwc
{
	uint32_t places; /* a power of two, less 1 */
	uint32_t clients;
	uint64_t places_offset;
	uint64_t unused[14];
	struct rdwc_line line[];
};

_Static_assert(sizeof(struct rdwc_place) == 64, "a place is a cache line");
_Static_assert(offsetof(struct rdwc_line, waits) == 64 && offsetof(struct rdwc_line, counters) == 128,
			   "what others look at has a cache line of its own");
_Static_assert(sizeof(struct rdwc_line) % RDWC_ALIGNMENT == 0 && sizeof(struct smart_rdwc) == RDWC_ALIGNMENT,
			   "lines are aligned");

static inline struct rdwc_line *
rdwc_line(struct smart_rdwc *rdwc, uint32_t client)
{
	smart_assert(client < rdwc->clients);
	return &rdwc->line[client];
}

static inline struct rdwc_place *
rdwc_places(struct smart_rdwc *rdwc)
{
	return (struct rdwc_place *) (void *) ((char *) rdwc + rdwc->places_offset);
}

/* By its client only; others may read it meanwhile. */
static inline void
rdwc_count(uint64_t *counter)
{
	__atomic_store_n(counter, *counter + 1, __ATOMIC_RELAXED);
}

/* A member of a place; some are looked at without its lock. */
static inline void
rdwc_store(uint32_t *member, uint32_t value)
{
	__atomic_store_n(member, value, __ATOMIC_RELAXED);
}

static inline uint32_t
rdwc_state(const struct rdwc_line *line)
{
	/* Acquire: what came with an outcome.  Partner: tell. */
	return __atomic_load_n(&line->state, __ATOMIC_ACQUIRE);
}

/* For assertions. */
static inline bool
rdwc_place_is_locked(const struct rdwc_place *place)
{
	return __atomic_load_n(&place->lock, __ATOMIC_RELAXED) == 1;
}

/* The place of a leaf, not locked. */
extern struct rdwc_place *rdwc_place_of(struct smart_rdwc *rdwc, fabric_address leaf);
/* Locks it for a leaf; false: it is another leaf's, and not locked. */
extern bool rdwc_place_claim(struct rdwc_place *place, fabric_address leaf, struct smart_env *env);
/* Unlocks it, and frees it if no client uses it. */
extern void rdwc_place_unlock(struct rdwc_place *place);

/* Puts a client's line into a list of a place that is locked. */
extern void rdwc_push(struct smart_rdwc *rdwc, uint32_t *list, uint32_t client, enum rdwc_state state);

/* The client of a line that was taken gives up; false: it has been told just now. */
extern bool rdwc_give_up(struct rdwc_line *line);

#endif /* SMART_COMPUTE_RDWC_PARTS_H */
