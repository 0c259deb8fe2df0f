/*
 * lifecycle.h
 *	  What happens when the server starts and stops.
 */
#ifndef SMART_AM_LIFECYCLE_H
#define SMART_AM_LIFECYCLE_H

/*
 * Defines the settings and, if the library is being preloaded, asks for shared memory and sets the hooks that make it
 * and map the region.  Once, from _PG_init.
 */
extern void smart_server_init(void);

#endif /* SMART_AM_LIFECYCLE_H */
