/*
 * team.h
 *	  The processes of a benchmark: one that leads, which is the program itself,
 *	  and others that do what it tells them; and the memory that they share.
 */
#ifndef YCSB_TEAM_H
#define YCSB_TEAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "options.h"

struct ycsb_team
{
	unsigned int size; /* processes; 0: not yet parted */
	unsigned int self; /* this one's number; 0 leads */
	int leader;        /* the leader's other end, of one that does not lead */
	int member[YCSB_NODES_MAX];
	pid_t pid[YCSB_NODES_MAX];
};

/*
 * Makes the other processes; all of them return, with their own numbers.  False,
 * in the leader: the system did not let it, and perror has told.
 */
extern bool ycsb_team_part(struct ycsb_team *team, unsigned int size);

/* The leader tells all members; each answers once.  False: one of them has ended. */
extern bool ycsb_team_tell(const struct ycsb_team *team, const void *order, size_t length);
extern bool ycsb_team_answer(const struct ycsb_team *team, unsigned int member, void *answer, size_t length);

/* A member's side of it.  False: the leader has ended. */
extern bool ycsb_team_listen(const struct ycsb_team *team, void *order, size_t length);
extern bool ycsb_team_reply(const struct ycsb_team *team, const void *answer, size_t length);

/* The leader waits until the members have seen that it tells them nothing more, and have ended. */
extern void ycsb_team_dismiss(struct ycsb_team *team);

/*
 * Memory that the processes share.  It is mapped before they part, hence at one place in all of them, and
 * nothing of it is given back before the end.
 */
struct ycsb_shared
{
	uint8_t *base;
	size_t size;
	size_t used;
};

/* At most so many bytes; what is not used takes none.  False: the system has no room. */
extern bool ycsb_shared_open(struct ycsb_shared *shared, size_t bytes);

/* Zeroed, aligned to 128.  NULL: no more room. */
extern void *ycsb_shared_allocate(struct ycsb_shared *shared, size_t bytes);

extern void ycsb_shared_close(struct ycsb_shared *shared);

#endif /* YCSB_TEAM_H */
