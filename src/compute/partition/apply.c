/*
 * apply.c
 *	  Changes of a log come into a tree, in the order of their keys: what a leaf gets comes together where the tree can do
 *	  that (many.c).
 */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "compute/partition/apply.h"

#define TOGETHER_MAX 2048 /* entries that go into the tree by one call */

struct apply
{
	struct smart_tree *tree;
	bool values;
	unsigned int count;
	struct smart_addition additions[TOGETHER_MAX];
};

/* qsort's: by key, and of one key the last record first. */
static int
compare_items(const void *left, const void *right)
{
	const struct smart_apply_item *a = left;
	const struct smart_apply_item *b = right;
	int order = smart_compare_bytes(smart_log_entry(a->record), a->record->key_length, smart_log_entry(b->record),
									b->record->key_length);

	return order != 0 ? order : a->order > b->order ? -1 : a->order < b->order;
}

static bool
same_key(const struct smart_log_record *a, const struct smart_log_record *b)
{
	return a->key_length == b->key_length && memcmp(smart_log_entry(a), smart_log_entry(b), a->key_length) == 0;
}

/* A key that is there, or perhaps, gets this entry.  An entry without a value is another one if its payload is. */
static smart_status
put_again(struct smart_tree *tree, const struct smart_log_record *record)
{
	bool flag;
	smart_status status = smart_tree_remove(tree, smart_log_entry(record), record->key_length, &flag);

	return status == SMART_OK
			   ? smart_tree_insert(tree, smart_log_entry(record), record->key_length, record->length, &flag)
			   : status;
}

/*
 * What has been gathered goes into the tree together.  Without values, a key that was there although it should not have been
 * gets its entry by itself.
 */
static smart_status
put_gathered(struct apply *apply)
{
	smart_status status = SMART_OK;

	smart_assert(apply->count <= TOGETHER_MAX);
	if (apply->count > 0)
		status = apply->values ? smart_tree_upsert_many(apply->tree, apply->additions, apply->count)
							   : smart_tree_insert_many(apply->tree, apply->additions, apply->count);
	for (unsigned int i = 0; i < apply->count && status == SMART_OK && !apply->values; i++)
	{
		if (!apply->additions[i].added)
			status =
				put_again(apply->tree, (const struct smart_log_record *) (const void *) apply->additions[i].bytes - 1);
	}
	apply->count = 0;
	return status;
}

static smart_status
apply_item(struct apply *apply, const struct smart_apply_item *item)
{
	const struct smart_log_record *record = item->record;
	bool flag;

	smart_assert(apply->count < TOGETHER_MAX);
	if (record->kind == SMART_LOG_REMOVE)
		return item->tree == SMART_APPLY_ABSENT
				   ? SMART_OK
				   : smart_tree_remove(apply->tree, smart_log_entry(record), record->key_length, &flag);
	if (!apply->values && item->tree == SMART_APPLY_THERE)
		return put_again(apply->tree, record);
	apply->additions[apply->count++] = (struct smart_addition){.bytes = smart_log_entry(record),
															   .key_length = record->key_length,
															   .length = record->length};
	return apply->count == TOGETHER_MAX ? put_gathered(apply) : SMART_OK;
}

void
smart_apply_sort(struct smart_apply_item *items, size_t count)
{
	qsort(items, count, sizeof(*items), compare_items);
}

smart_status
smart_apply(struct smart_tree *tree, struct smart_env *env, bool values, const struct smart_apply_item *items,
			size_t count)
{
	struct apply *apply = env->allocate(env, sizeof(*apply));
	smart_status status = SMART_OK;

	if (apply == NULL)
		return SMART_NO_MEMORY;
	apply->tree = tree;
	apply->values = values;
	apply->count = 0;
	for (size_t i = 0; i < count && status == SMART_OK; i++)
	{
		if (i == 0 || !same_key(items[i - 1].record, items[i].record))
			status = apply_item(apply, &items[i]);
	}
	if (status == SMART_OK)
		status = put_gathered(apply);
	smart_assert(status != SMART_OK || apply->count == 0);
	env->release(env, apply);
	return status;
}
