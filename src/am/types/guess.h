/*
 * guess.h
 *	  What string a sort key of ICU was made of, most likely.
 *
 * The guess depends on the sort key and on the collation's rules alone.  So who stores a sort key need not store the
 * string, too, if that is what would be guessed.
 */
#ifndef SMART_AM_GUESS_H
#define SMART_AM_GUESS_H

#include "am/codec/normalizer.h"

/* Longer sort keys are not guessed. */
#define SMART_GUESS_MAX 512

struct smart_guesser;

/* Found out once in a process for each collation, which is one of ICU; lives as long as the process. */
extern const struct smart_guesser *smart_guesser_of(Oid collation);

/*
 * Writes the string that this sort key, without its final 00, was made of, most likely.  Returns its length, which is not
 * above that of the key; or -1: no guess.
 */
extern int smart_guess(const struct smart_guesser *guesser, const uint8 *key, Size length, uint8 *string);

#endif /* SMART_AM_GUESS_H */
