/*
 * sorted.c
 *	  Sorting the keys of records.
 */
#include <stdlib.h>

#include "base/assert.h"
#include "base/sort.h"
#include "sorted.h"

#define RECORD_BYTES 8 /* of a string's record: the number, behind the key */

/* Integers: the key and the number as words. */
static smart_status
visit_integers(enum ycsb_keys type, uint64_t count, struct smart_env *env, ycsb_record_fn visit, void *argument)
{
	uint64_t *items = malloc(count * 2 * sizeof(*items));
	uint8_t key[YCSB_ENTRY_MAX];
	smart_status status = SMART_NO_MEMORY;

	smart_assert(ycsb_is_integer(type));
	if (items != NULL)
	{
		for (uint64_t i = 0; i < count; i++)
		{
			ycsb_key(type, i, key);
			items[2 * i] = smart_load_be64(key);
			items[2 * i + 1] = i;
		}
		status = smart_sort_words(items, count, 2, env);
	}
	for (uint64_t i = 0; i < count && status == SMART_OK; i++)
	{
		smart_assert(i == 0 || items[2 * (i - 1)] < items[2 * i]);
		smart_put_be64(key, items[2 * i]);
		status = visit(argument, key, YCSB_INTEGER_BYTES, items[2 * i + 1]);
	}
	free(items);
	return status;
}

/* Strings: length, key and number one behind the other, and an item for each; those that have been sorted. */
static smart_status
sort_strings(enum ycsb_keys type, uint64_t count, struct smart_env *env, uint8_t *arena, struct smart_sort_item *items)
{
	uint8_t *end = arena;

	smart_assert(!ycsb_is_integer(type));
	for (uint64_t i = 0; i < count; i++)
	{
		uint16_t length = (uint16_t) (ycsb_key(type, i, end + sizeof(length)) + RECORD_BYTES);

		smart_assert(length > RECORD_BYTES && length <= YCSB_KEY_MAX + RECORD_BYTES);
		memcpy(end, &length, sizeof(length));
		memcpy(end + sizeof(length) + length - RECORD_BYTES, &i, RECORD_BYTES);
		items[i] = (struct smart_sort_item){smart_sort_head(end, 0), end};
		end += sizeof(length) + length;
	}
	return smart_sort_strings(items, count, env);
}

static smart_status
visit_strings(enum ycsb_keys type, uint64_t count, struct smart_env *env, ycsb_record_fn visit, void *argument)
{
	uint8_t *arena = malloc(count * (sizeof(uint16_t) + RECORD_BYTES) + count * YCSB_KEY_MAX + YCSB_ENTRY_MAX);
	struct smart_sort_item *items = malloc(count * sizeof(*items));
	smart_status status = SMART_NO_MEMORY;

	if (arena != NULL && items != NULL)
		status = sort_strings(type, count, env, arena, items);
	for (uint64_t i = 0; i < count && status == SMART_OK; i++)
	{
		const uint8_t *key = smart_sort_bytes(items[i].record);
		size_t key_length = smart_sort_length(items[i].record) - RECORD_BYTES;
		uint64_t record;

		smart_assert(key_length > 0 && key_length <= YCSB_KEY_MAX);
		memcpy(&record, key + key_length, RECORD_BYTES);
		status = visit(argument, key, key_length, record);
	}
	free(items);
	free(arena);
	return status;
}

smart_status
ycsb_sorted(enum ycsb_keys type, uint64_t count, struct smart_env *env, ycsb_record_fn visit, void *argument)
{
	smart_assert(count > 0);
	return (ycsb_is_integer(type) ? visit_integers : visit_strings)(type, count, env, visit, argument);
}
