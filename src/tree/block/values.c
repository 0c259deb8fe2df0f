/*
 * values.c
 *	  Values of a leaf's entries: where their words lie, marking a leaf, freezing it.
 *
 * A value is changed by a CAS of its word, by clients that hold no lock.  So whoever copies a leaf freezes the words
 * first, unless the leaf's meta says that no value was ever changed there (V2, V3).
 */
#include "tree/block/access.h"
#include "tree/block/values.h"

/* CASes of one batch. */
#define FREEZE_MAX 128

/* The same among entries that carry their length, all of which are looked at. */
static int
find_by_walk(const struct smart_leaf *leaf, const struct smart_key *key)
{
	unsigned int offset = leaf->start;

	for (int entry = 0; offset != 0 && offset < leaf->used; entry++)
	{
		const uint8_t *suffix;
		unsigned int length;

		offset = smart_leaf_next_entry(leaf, offset, &suffix, &length);
		if (offset != 0 && smart_leaf_compare(leaf, suffix, length, key) == 0)
			return entry;
	}
	return -1;
}

int
smart_leaf_find(const struct smart_leaf *leaf, const struct smart_key *key)
{
	unsigned int consumed = leaf->depth + leaf->prefix_length;
	unsigned int offset;

	smart_assert(key->pad == 0);
	if (!smart_leaf_prefix_matches(leaf, key) || key->length <= consumed)
		return -1;
	if (leaf->stride == 0)
		return find_by_walk(leaf, key);
	offset = smart_leaf_lower_bound(leaf, key->bytes + consumed, key->length - consumed);
	/* Behind the run in any order. */
	if (offset >= leaf->sorted_end || smart_leaf_compare(leaf, leaf->block + offset, leaf->stride, key) != 0)
		offset = leaf->sorted_end;
	while (offset < leaf->used && smart_leaf_compare(leaf, leaf->block + offset, leaf->stride, key) != 0)
		offset += leaf->stride;
	return offset < leaf->used ? (int) ((offset - leaf->start) / leaf->stride) : -1;
}

smart_status
smart_values_mark(struct smart_tree *tree, struct smart_leaf *leaf, bool *marked)
{
	uint64_t desired = leaf->meta | SMART_META_UPDATED;
	uint64_t seen = 0;
	smart_status status;

	smart_assert(leaf->state == SMART_LIVE && !smart_meta_locked(leaf->meta) && desired != leaf->meta);
	status = smart_word_cas(tree, smart_leaf_meta_address(leaf->address, leaf->units), leaf->meta, desired, &seen);
	*marked = status == SMART_OK && (seen == leaf->meta || seen == desired);
	if (*marked)
		leaf->meta = desired;
	return status;
}

/*
 * CASes for words that the copy has not frozen, as many as a batch takes, of entries whose byte at the leaf's depth is from
 * or above; entry_of[] says whose.
 */
static int
prepare_freezing(const struct smart_leaf *leaf, unsigned int from, struct fabric_request *batch, unsigned int *entry_of)
{
	unsigned int offset = leaf->start;
	int count = 0;

	for (unsigned int entry = 0; offset != 0 && offset < leaf->used && count < FREEZE_MAX; entry++)
	{
		uint64_t word = smart_value_at(leaf, entry);
		const uint8_t *suffix;
		unsigned int length;

		offset = smart_leaf_next_entry(leaf, offset, &suffix, &length);
		if (offset == 0 || smart_value_frozen(word) ||
			(leaf->prefix_length > 0 ? smart_leaf_prefix(leaf) : suffix)[0] < from)
			continue;
		entry_of[count] = entry;
		batch[count++] =
			smart_cas_request(leaf->address + smart_value_offset(leaf, entry), word, word | SMART_VALUE_FROZEN, false);
	}
	return count;
}

smart_status
smart_values_freeze(struct smart_tree *tree, const struct smart_leaf *leaf, unsigned int from, bool *gone)
{
	uint8_t *copy = (uint8_t *) (uintptr_t) leaf->block;
	struct fabric_request batch[FREEZE_MAX];
	unsigned int entry_of[FREEZE_MAX];
	smart_status status = SMART_OK;
	int count;

	*gone = false;
	if ((leaf->meta & SMART_META_UPDATED) == 0 || SMART_FAULT(nofreeze))
		return SMART_OK;
	smart_assert(tree->options.value && !tree->direct && tree->entered);
	while (status == SMART_OK && !*gone && (count = prepare_freezing(leaf, from, batch, entry_of)) > 0)
	{
		status = smart_execute(tree, batch, count);
		for (int i = 0; i < count && status == SMART_OK; i++)
		{
			uint64_t word = batch[i].result == batch[i].compare ? batch[i].operand : batch[i].result;

			/* Zeros: what is to be copied has been copied. */
			*gone |= !smart_value_written(word);
			/* If an update came first the word is not frozen: again, with what that left. */
			memcpy(copy + smart_value_offset(leaf, entry_of[i]), &word, sizeof(word));
		}
	}
	return status;
}
