/*
 * rdwc_parts.h
 *	  What lies in a table of read delegation and write combining, for its own
 *	  files.
 *
 *	  table       header | a line per client | places
 *
 * Who may change what:
 *
 *	  place       under its lock word, all of it.  Its lists go through the lines of
 *	              those who wait, who put themselves in and take themselves out;
 *	              a leader, or the holder of the leaf's lock, takes others out.
 *	  line.state  by its client: IDLE to READS or HANDED, into a place's list, and
 *	              back, out of it, both under the place's lock.  By who takes it out
 *	              of the list: to TAKEN, under that lock.  Then by a CAS from TAKEN:
 *	              the taker's to an outcome, with release, so that the client, who
 *	              loads it with acquire, sees what came with it; or the client's own to
 *	              GONE, when it gives up, and the taker, whose CAS fails, stores IDLE.
 *	              By the client: an outcome to IDLE.
 *	  line.next   by who may change the state, before it does.
 *	  line.waits  those who wait for the client's READ: by the client, under the lock of
 *	              the place that it READs for.
 *	  line.copy   by its client when nobody takes it; who was told DELIVERED takes it
 *	              and counts takers down, with release.
 *	  line.entry, line.handed
 *	              by its client when the state is IDLE.
 */
#ifndef SMART_COMPUTE_RDWC_PARTS_H
#define SMART_COMPUTE_RDWC_PARTS_H

#include "base/assert.h"
#include "compute/rdwc.h"

#define RDWC_ALIGNMENT 128
#define RDWC_COPIES    2 /* of a client: while one is being taken, it may READ for others again */

/* Clients in lists are counted from 1, so that 0 is nobody. */
struct rdwc_place
{
	uint32_t lock;       /* 1: somebody changes something */
	uint32_t flying;     /* who READs the leaf */
	uint32_t readers;    /* first of those who wait for the next READ */
	uint32_t handed;     /* first of those who handed an entry in */
	fabric_address leaf; /* 0: nobody uses the place */
	uint64_t unused[5];
};

enum rdwc_state
{
	RDWC_IDLE,
	RDWC_READS,  /* waits in a place's list of readers */
	RDWC_HANDED, /* waits in a place's list of entries */
	RDWC_TAKEN,  /* out of the list; who took it will tell */
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
	uint32_t takers; /* who have yet to take it */
	uint64_t unused[7];
	uint8_t bytes[SMART_RDWC_COPY_BYTES];
};

struct rdwc_line
{
	/* what others look at while the client waits */
	uint32_t state;
	uint32_t next;              /* in the list */
	uint32_t from;              /* DELIVERED: who has READ it */
	uint32_t copy_from;         /* and which of its copies it is */
	struct smart_handed handed; /* bytes is not set */
	uint64_t padding[2];
	/* what the client itself uses */
	uint32_t waits;   /* first of those who wait for the READ that it has in the air */
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
	/* Acquire: what came with an outcome.  Partner: rdwc_tell. */
	return __atomic_load_n(&line->state, __ATOMIC_ACQUIRE);
}

/* The place of a leaf, not locked. */
extern struct rdwc_place *rdwc_place_of(struct smart_rdwc *rdwc, fabric_address leaf);

/* Locks a place. */
extern void rdwc_place_lock(struct rdwc_place *place, struct smart_env *env);
/* Unlocks it, and frees it if nobody uses it. */
extern void rdwc_place_unlock(struct rdwc_place *place);
/* Locks it for a leaf; false: it is another leaf's, and not locked. */
extern bool rdwc_place_claim(struct rdwc_place *place, fabric_address leaf, struct smart_env *env);

/* Puts a client's line into a list of a place that is locked, or takes it out. */
extern void rdwc_push(struct smart_rdwc *rdwc, uint32_t *list, uint32_t client, enum rdwc_state state);
extern void rdwc_unlink(struct smart_rdwc *rdwc, uint32_t *list, uint32_t client);

/* Tells a client whose line was taken; false: it has given up. */
extern bool rdwc_tell(struct rdwc_line *line, uint32_t outcome);
/* The client of a line that was taken gives up; false: it has been told just now. */
extern bool rdwc_give_up(struct rdwc_line *line);

#endif /* SMART_COMPUTE_RDWC_PARTS_H */
