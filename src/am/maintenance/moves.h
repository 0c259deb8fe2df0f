/*
 * moves.h
 *	  The launcher's job for trees that have to move.
 */
#ifndef SMART_AM_MOVES_H
#define SMART_AM_MOVES_H

#include "am/maintenance/launcher.h"

/* A job of the launcher (launcher.h): has workers look for indexes whose trees have to move, in their databases. */
extern long smart_moves_tend(struct smart_job *job);

#endif /* SMART_AM_MOVES_H */
