/*
 * options.h
 *	  Storage parameters of an index.
 */
#ifndef SMART_AM_OPTIONS_H
#define SMART_AM_OPTIONS_H

#include "utils/rel.h"

#define SMART_OPTION "smart" /* of constraints: WITH (smart = on) */

/* When an index has its tree in memory, if the pages of its journal can answer instead (src/am/journal/view.h). */
enum smart_resident
{
	SMART_RESIDENT_AUTO, /* while there is room */
	SMART_RESIDENT_ALWAYS,
	SMART_RESIDENT_NEVER
};

extern void smart_options_init(void);
extern int smart_options_leaf_size(Relation index);  /* bytes, a multiple of 64 */
extern int smart_options_fillfactor(Relation index); /* percent */
extern bool smart_options_logged(Relation index);    /* is it to have a journal? */
extern enum smart_resident smart_options_resident(Relation index);

/* amoptions */
extern bytea *smart_am_options(Datum reloptions, bool validate);

#endif /* SMART_AM_OPTIONS_H */
