/*
 * filters.h
 *	  Filters of keys whose index has been dropped, or has another file by now.
 */
#ifndef SMART_AM_FILTERS_H
#define SMART_AM_FILTERS_H

struct smart_job;

/* The launcher's job: throws away filters of files that have gone, so that their memory serves again. */
extern long smart_filters_tend(struct smart_job *job);

#endif /* SMART_AM_FILTERS_H */
