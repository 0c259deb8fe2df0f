/*
 * shared_file.h
 *	  The name of a file in shared memory, which is stored and loaded without a lock: word by word, each of them whole.
 *
 * Whether they belong together, a version beside them tells (dead_rows.c, key_filter.c).
 */
#ifndef SMART_AM_SHARED_FILE_H
#define SMART_AM_SHARED_FILE_H

#include "am/compat.h"

#define SMART_FILE_WORDS (sizeof(smart_file) / sizeof(uint32))

StaticAssertDecl(sizeof(smart_file) == SMART_FILE_WORDS * sizeof(uint32), "a file's name as words");

struct smart_shared_file
{
	uint32 word[SMART_FILE_WORDS];
};

static inline bool
smart_shared_file_is(const struct smart_shared_file *shared, const smart_file *file)
{
	uint32 word[SMART_FILE_WORDS];

	memcpy(word, file, sizeof(word));
	for (size_t i = 0; i < SMART_FILE_WORDS; i++)
	{
		if (__atomic_load_n(&shared->word[i], __ATOMIC_RELAXED) != word[i])
			return false;
	}
	return true;
}

static inline void
smart_shared_file_set(struct smart_shared_file *shared, const smart_file *file)
{
	uint32 word[SMART_FILE_WORDS];

	memcpy(word, file, sizeof(word));
	for (size_t i = 0; i < SMART_FILE_WORDS; i++)
		__atomic_store_n(&shared->word[i], word[i], __ATOMIC_RELAXED);
}

static inline void
smart_shared_file_get(const struct smart_shared_file *shared, smart_file *file)
{
	uint32 word[SMART_FILE_WORDS];

	for (size_t i = 0; i < SMART_FILE_WORDS; i++)
		word[i] = __atomic_load_n(&shared->word[i], __ATOMIC_RELAXED);
	memcpy(file, word, sizeof(word));
}

#endif /* SMART_AM_SHARED_FILE_H */
