/*
 * leaving.h
 *	  Trees that no index names any more are freed when their last users have gone.
 */
#ifndef SMART_AM_LEAVING_H
#define SMART_AM_LEAVING_H

/* Frees those of this database whose users have all gone; returns whether there are others.  Outside of transactions. */
extern bool smart_leaving_free(void);

#endif /* SMART_AM_LEAVING_H */
