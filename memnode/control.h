/*
 * control.h
 *	  The socket on which a running daemon serves its own user: tells how it is,
 *	  by the text of status.h or the page of page.h, and forgets an owner.
 *
 * It lies at /dev/shm/smart-memnode.NAME:status, beside the shared memory of that name,
 * and only its user, and root, can reach it.
 */
#ifndef MEMNODE_CONTROL_H
#define MEMNODE_CONTROL_H

#include "report.h"
#include "source.h"

struct memnode_control;

/* Has a node of these settings a name, by which it can be asked?  Not if it has just any port. */
extern bool memnode_control_has_name(const struct memnode_options *options);

/*
 * node: the report's, which requests may change.  port: that it has got.  What a process before has left is removed.
 * NULL: problem[] says why not.
 */
extern struct memnode_control *memnode_control_open(const struct memnode_report *report, struct memnode *node,
													const char *port, char problem[MEMNODE_PROBLEM_MAX]);

/* For the loop. */
extern struct memnode_source memnode_control_source(struct memnode_control *control);

extern void memnode_control_close(struct memnode_control *control);

/*
 * The other side: asks the daemon that these options mean for its status, or to forget an owner, and prints its answer.
 * False: problem[] says why not.
 */
extern bool memnode_control_ask(const struct memnode_options *options, char problem[MEMNODE_PROBLEM_MAX]);

#endif /* MEMNODE_CONTROL_H */
