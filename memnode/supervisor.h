/*
 * supervisor.h
 *	  What a service manager and the daemon tell each other: sockets that are
 *	  there already, and how far it is (the protocols of systemd's sd_listen_fds(3)
 *	  and sd_notify(3)).  Where there is none, nothing happens.
 */
#ifndef MEMNODE_SUPERVISOR_H
#define MEMNODE_SUPERVISOR_H

/* Listening sockets that the manager has opened: their number, 0 if there are none; *first is the first descriptor. */
extern unsigned int memnode_supervisor_sockets(int *first);

/* Tells the manager a state, such as "READY=1". */
extern void memnode_supervisor_tell(const char *state);

#endif /* MEMNODE_SUPERVISOR_H */
