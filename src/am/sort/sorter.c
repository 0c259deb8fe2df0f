/*
 * sorter.c
 *	  The sorter's memory: one chunk, filled from both ends.
 *
 * Entries of one short length are items of a few words, big-endian loads of their bytes, in one flat
 * array.  All others lie as records at the end of the chunk, growing downwards, and items with their
 * first bytes point to them.  When both meet, the chunk is made larger, up to the budget; then it is
 * sorted and written as a run.
 *
 * As long as entries arrive in ascending order nothing needs to be sorted: a table that was filled in key
 * order costs one comparison per row.
 */
#include "postgres.h"

#include <sys/mman.h>

#include "miscadmin.h"
#include "utils/memutils.h"

#include "am/sort/sorter.h"
#include "am/sort/sorter_runs.h"
#include "base/assert.h"
#include "base/sort.h"

#define MEMORY_MIN ((Size) 64 * 1024) /* room for a few of the longest entries */
#define HUGE_FROM  ((Size) 4 << 20)   /* bytes of a chunk that is worth huge pages */
#define AHEAD      8                  /* records to prefetch */

struct smart_sorter
{
	struct smart_env *env;
	MemoryContext context;
	int entry_length;
	unsigned int words; /* of an item; 0: items point to records */
	Size item_size;

	char *memory;   /* the chunk: items from its start, records at its end */
	Size size;      /* bytes of it now */
	Size limit;     /* bytes that it may have */
	Size count;     /* items in it */
	char *records;  /* the lowest record */
	bool ascending; /* the items in memory are in order */

	struct smart_runs *runs; /* NULL: all entries fit into memory */
	Size merge_memory;       /* the part of the budget that is kept for the merge */
	SharedFileSet *files;    /* for the runs, if they are to be handed over; else NULL */
	int worker;              /* by the worker of this number */

	/* What comes next from memory (NULL: nothing) and from the runs. */
	Size position; /* of the item behind it */
	const uint8 *from_memory;
	int memory_length;
	const uint8 *from_runs;
	int runs_length;
	const uint8 **returned; /* which of both was returned last, or NULL */
	uint8 words_entry[SMART_SORT_WORDS_MAX * 8];
};

static inline uint64 *
words_item(struct smart_sorter *sorter, Size i)
{
	return (uint64 *) (sorter->memory + i * sorter->item_size);
}

static inline struct smart_sort_item *
record_item(struct smart_sorter *sorter, Size i)
{
	return (struct smart_sort_item *) (sorter->memory + i * sorter->item_size);
}

/* A chunk, of huge pages where those are for who asks: the first touch of each small one costs as much as some comparisons. */
static char *
allocate(MemoryContext context, Size size)
{
	char *memory = MemoryContextAllocHuge(context, size);
	Size page = (Size) sysconf(_SC_PAGESIZE);
	char *begin = (char *) TYPEALIGN(page, memory);
	char *end = (char *) TYPEALIGN_DOWN(page, memory + size);

	if (size >= HUGE_FROM)
		(void) madvise(begin, (Size) (end - begin), MADV_HUGEPAGE);
	return memory;
}

struct smart_sorter *
smart_sorter_begin(int entry_length, Size memory, Size expected, struct smart_env *env)
{
	struct smart_sorter *sorter = palloc0(sizeof(*sorter));

	smart_assert(entry_length >= 0 && entry_length <= SMART_SORTER_MAX);
	sorter->env = env;
	sorter->context = CurrentMemoryContext;
	sorter->entry_length = entry_length;
	if (entry_length > 0 && entry_length <= SMART_SORT_WORDS_MAX * 8)
		sorter->words = (unsigned int) (entry_length + 7) / 8;
	sorter->item_size = sorter->words > 0 ? sorter->words * 8 : sizeof(struct smart_sort_item);
	sorter->merge_memory = memory / 16;
	sorter->limit = MAXALIGN_DOWN(Max(memory - sorter->merge_memory, MEMORY_MIN));
	sorter->size = MAXALIGN(Min(Max(expected, MEMORY_MIN), sorter->limit));
	sorter->memory = allocate(sorter->context, sorter->size);
	sorter->records = sorter->memory + sorter->size;
	sorter->ascending = true;
	smart_assert(sorter->item_size > 0 && sorter->size <= sorter->limit && sorter->size >= MEMORY_MIN);
	return sorter;
}

/* Doubles the chunk within the budget; false if it is all taken. */
static bool
enlarge(struct smart_sorter *sorter)
{
	Size size = Min(sorter->size * 2, sorter->limit);
	Size records = (Size) (sorter->memory + sorter->size - sorter->records);
	char *memory;

	/* While the old chunk is copied both are there. */
	if (sorter->size + size > sorter->limit)
		return false;
	memory = allocate(sorter->context, size);
	memcpy(memory, sorter->memory, sorter->count * sorter->item_size);
	memcpy(memory + size - records, sorter->records, records);
	if (sorter->words == 0)
	{
		for (Size i = 0; i < sorter->count; i++)
		{
			struct smart_sort_item *item = (struct smart_sort_item *) memory + i;

			item->record = (const uint8 *) memory + size - records + ((const char *) item->record - sorter->records);
		}
	}
	pfree(sorter->memory);
	sorter->memory = memory;
	sorter->size = size;
	sorter->records = memory + size - records;
	smart_assert(sorter->size <= sorter->limit &&
				 sorter->memory + sorter->count * sorter->item_size <= sorter->records);
	return true;
}

void
smart_sorter_share(struct smart_sorter *sorter, SharedFileSet *files, int worker)
{
	smart_assert(sorter->count == 0 && sorter->runs == NULL);
	sorter->files = files;
	sorter->worker = worker;
}

void
smart_sorter_prepare(struct smart_sorter *sorter)
{
	smart_status status = SMART_OK;

	if (sorter->ascending)
		return;
	if (sorter->words > 0)
		status = smart_sort_words(words_item(sorter, 0), sorter->count, sorter->words, sorter->env);
	else
		status = smart_sort_strings(record_item(sorter, 0), sorter->count, sorter->env);
	if (status != SMART_OK)
	{
		CHECK_FOR_INTERRUPTS();
		ereport(ERROR, errcode(ERRCODE_QUERY_CANCELED), errmsg("the sort of an index build was interrupted"));
	}
	sorter->ascending = true;
}

/* The entry of item i; of words it is made in sorter->words_entry. */
static inline const uint8 *
entry_at(struct smart_sorter *sorter, Size i, int *length)
{
	if (sorter->words > 0)
	{
		const uint64 *item = words_item(sorter, i);

		for (unsigned int w = 0; w < sorter->words; w++)
		{
			uint64 bytes = __builtin_bswap64(item[w]);

			memcpy(sorter->words_entry + w * 8, &bytes, 8);
		}
		*length = sorter->entry_length;
		return sorter->words_entry;
	}
	else
	{
		const uint8 *record = record_item(sorter, i)->record;

		if (i + AHEAD < sorter->count)
			__builtin_prefetch(record_item(sorter, i + AHEAD)->record);
		*length = (int) smart_sort_length(record);
		return smart_sort_bytes(record);
	}
}

static struct smart_runs *
runs_of(struct smart_sorter *sorter)
{
	if (sorter->runs == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(sorter->context);

		sorter->runs =
			smart_runs_begin(sorter->entry_length, sorter->merge_memory, sorter->limit, sorter->files, sorter->worker);
		MemoryContextSwitchTo(old);
	}
	return sorter->runs;
}

/* Sorts what is in memory and writes it as a run. */
static void
spill(struct smart_sorter *sorter)
{
	struct smart_runs *runs = runs_of(sorter);

	smart_sorter_prepare(sorter);
	smart_assert(sorter->position == 0);
	smart_runs_start(runs);
	for (Size i = 0; i < sorter->count; i++)
	{
		int length;
		const uint8 *entry = entry_at(sorter, i, &length);

		if (i % 1024 == 0)
			CHECK_FOR_INTERRUPTS();
		smart_runs_write(runs, entry, length);
	}
	smart_runs_finish(runs);
	sorter->count = 0;
	sorter->records = sorter->memory + sorter->size;
	sorter->ascending = true;
}

/* The bytes of a short entry from its last word on, and zeros behind them. */
static inline uint64
last_word(const uint8 *entry, unsigned int length, unsigned int last)
{
	uint8 rest[8] = {0};

	if (length >= sizeof(rest))
		return smart_load_be64(entry + length - sizeof(rest)) << (8 * ((last + 1) * sizeof(rest) - length));
	memcpy(rest, entry, length);
	return smart_load_be64(rest);
}

static inline void
add_words(struct smart_sorter *sorter, const uint8 *entry, int length)
{
	uint64 *item = words_item(sorter, sorter->count);
	const uint64 *before = item - sorter->words;
	unsigned int last = sorter->words - 1;

	for (unsigned int w = 0; w < last; w++)
		item[w] = smart_load_be64(entry + w * 8);
	item[last] = last_word(entry, (unsigned int) length, last);
	if (sorter->ascending && sorter->count > 0)
	{
		unsigned int w = 0;

		while (w < last && item[w] == before[w])
			w++;
		sorter->ascending = item[w] > before[w];
	}
}

static inline void
add_record(struct smart_sorter *sorter, const uint8 *entry, int length)
{
	struct smart_sort_item *item = record_item(sorter, sorter->count);
	uint16 stored = (uint16) length;

	sorter->records -= sizeof(stored) + (Size) length;
	memcpy(sorter->records, &stored, sizeof(stored));
	smart_copy_short((uint8 *) sorter->records + sizeof(stored), entry, (Size) length);
	item->record = (const uint8 *) sorter->records;
	item->head = smart_sort_head(item->record, 0);
	if (sorter->ascending && sorter->count > 0)
	{
		const uint8 *before = (item - 1)->record;

		sorter->ascending =
			(item - 1)->head < item->head ||
			((item - 1)->head == item->head &&
			 smart_compare_bytes(smart_sort_bytes(before), smart_sort_length(before), entry, (Size) length) < 0);
	}
}

void
smart_sorter_add(struct smart_sorter *sorter, const uint8 *entry, int length)
{
	Size need = sorter->item_size + (sorter->words > 0 ? 0 : sizeof(uint16) + (Size) length);

	smart_assert(length > 0 && length <= SMART_SORTER_MAX);
	smart_assert(sorter->entry_length == 0 || sorter->entry_length == length);
	smart_assert(sorter->position == 0 && sorter->memory != NULL);
	while (unlikely((Size) (sorter->records - sorter->memory) - sorter->count * sorter->item_size < need))
	{
		if (!enlarge(sorter))
			spill(sorter);
	}
	if (sorter->words > 0)
		add_words(sorter, entry, length);
	else
		add_record(sorter, entry, length);
	sorter->count++;
	smart_assert(sorter->memory + sorter->count * sorter->item_size <= sorter->records);
}

void
smart_sorter_hand_over(struct smart_sorter *sorter, BufFile *notes)
{
	smart_assert(sorter->files != NULL);
	if (sorter->count > 0)
		spill(sorter);
	pfree(sorter->memory);
	sorter->memory = NULL;
	smart_runs_hand_over(runs_of(sorter), notes);
}

void
smart_sorter_take_over(struct smart_sorter *sorter, SharedFileSet *files, int worker, BufFile *notes, Size memory)
{
	smart_assert(sorter->files == NULL && sorter->position == 0);
	smart_runs_take_over(runs_of(sorter), files, worker, notes, memory);
}

/* Goes to what comes next from memory. */
static void
advance_memory(struct smart_sorter *sorter)
{
	sorter->from_memory = NULL;
	if (sorter->position < sorter->count)
		sorter->from_memory = entry_at(sorter, sorter->position++, &sorter->memory_length);
}

void
smart_sorter_perform(struct smart_sorter *sorter)
{
	smart_sorter_prepare(sorter);
	if (sorter->runs != NULL)
	{
		/* What is in memory can stay there if the merge needs no more than its part. */
		if (!smart_runs_fit(sorter->runs))
		{
			spill(sorter);
			pfree(sorter->memory);
			sorter->memory = NULL;
		}
		smart_runs_merge(sorter->runs, sorter->memory == NULL);
		sorter->from_runs = smart_runs_next(sorter->runs, &sorter->runs_length);
	}
	advance_memory(sorter);
}

const uint8 *
smart_sorter_next(struct smart_sorter *sorter, int *length)
{
	if (sorter->returned == &sorter->from_memory)
		advance_memory(sorter);
	else if (sorter->returned == &sorter->from_runs)
		sorter->from_runs = smart_runs_next(sorter->runs, &sorter->runs_length);
	if (sorter->from_runs != NULL &&
		(sorter->from_memory == NULL || smart_compare_bytes(sorter->from_runs, (Size) sorter->runs_length,
															sorter->from_memory, (Size) sorter->memory_length) < 0))
	{
		sorter->returned = &sorter->from_runs;
		*length = sorter->runs_length;
		return sorter->from_runs;
	}
	sorter->returned = &sorter->from_memory;
	*length = sorter->memory_length;
	return sorter->from_memory;
}

void
smart_sorter_end(struct smart_sorter *sorter)
{
	if (sorter->runs != NULL)
		smart_runs_end(sorter->runs);
	if (sorter->memory != NULL)
		pfree(sorter->memory);
	pfree(sorter);
}
