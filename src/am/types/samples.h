/*
 * samples.h
 *	  Strings by which a collation of the C library is tried out (collation.c).
 */
#ifndef SMART_AM_SAMPLES_H
#define SMART_AM_SAMPLES_H

/* All are valid in UTF-8, and no two of a list are equal. */

/* What orders differ in: lengths of characters, signs, case, accents, characters that some orders pass over */
extern const char *const smart_sample_characters[];
extern const int smart_sample_characters_count;

/* Words of languages that have rules of their own */
extern const char *const smart_sample_words[];
extern const int smart_sample_words_count;

#endif /* SMART_AM_SAMPLES_H */
