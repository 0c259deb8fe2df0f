/*
 * sorted_keys.h
 *	  Keys in ascending order, beside which a walk over the entries of a tree goes (smart_tree_remove_many()).
 */
#ifndef SMART_AM_JOURNAL_SORTED_KEYS_H
#define SMART_AM_JOURNAL_SORTED_KEYS_H

struct smart_sorted_key
{
	const uint8 *bytes;
	uint32 length;
	uint32 number; /* the caller's */
};

struct smart_sorted_keys
{
	struct smart_sorted_key *keys;
	uint32 count;
	uint32 next; /* the first one that has not been passed */
	uint32 at;   /* that was looked at last */
};

/* Puts them in order, which is mostly that in which they come. */
extern void smart_sorted_keys_sort(struct smart_sorted_keys *keys);

/* The first one that is not below from, which never falls; false: there is none.  As smart_next_key_fn. */
extern bool smart_sorted_keys_next(struct smart_sorted_keys *keys, const uint8 *from, size_t from_length,
								   const uint8 **key, size_t *key_length);

/*
 * Where this key stands among them, or NULL.  Fast for keys that ascend, as those of a leaf do; the next leaf may begin anywhere.
 */
extern const struct smart_sorted_key *
smart_sorted_keys_find(struct smart_sorted_keys *keys, const uint8 *key, size_t key_length);

#endif /* SMART_AM_JOURNAL_SORTED_KEYS_H */
