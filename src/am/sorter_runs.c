/*
 * sorter_runs.c
 *	  Sorted runs in a temporary file, and their merge by a binary heap.
 *
 * A run is its entries one behind the other; entries that differ in length are
 * preceded by two bytes of it.  When there are more runs than buffers fit into
 * the memory, the oldest are merged into a new run at the end of the file.
 *
 * Where several processes share a build, each has its runs in a file of a set that they
 * share, and the leader reads those of the others from there: nobody writes
 * a file that was handed over.
 */
#include "postgres.h"

#include <fcntl.h>

#include "commands/tablespace.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "storage/buffile.h"

#include "am/compat.h"
#include "am/sorter_runs.h"
#include "base/bytes.h"
#include "tree/layout.h"

#define BUFFER_MIN ((Size) 32 * 1024) /* a few of the longest entries */
#define BUFFER_MAX ((Size) 1024 * 1024)
#define FAN_IN_MIN 6
#define FAN_IN_MAX 512

struct place
{
	int file;
	off_t offset;
};

struct run
{
	BufFile *file;
	struct place place;
	uint64 bytes;
};

/* A run that is being read. */
struct source
{
	struct run rest; /* what was not read yet */
	char *buffer;
	Size position;
	Size filled;
	const uint8 *entry; /* the entry that is next, in buffer */
	int length;
	uint64 head; /* its first eight bytes, in order */
};

struct smart_runs
{
	BufFile *file;    /* our own; NULL: nothing was written yet */
	List *others;     /* BufFile: those that were taken over */
	FileSet *set;     /* our own file goes there, */
	const char *name; /* by this name; NULL: it is nobody else's affair */
	MemoryContext context;
	int entry_length;
	Size memory;      /* for the buffers of the merge */
	Size more_memory; /* the same, when the sorter has given up its own */
	Size buffer_size; /* of each source */
	struct run *runs;
	int count;
	int capacity;

	struct place end; /* of the file: where the next bytes go */
	struct run writing;
	char *buffer; /* to be written */
	Size filled;

	struct source *sources; /* a heap: the smallest entry first; NULL: nothing is read */
	int live;               /* sources in the heap */
	bool advance;           /* the first source's entry was returned */
};

static void
seek(BufFile *file, struct place place)
{
	if (BufFileSeek(file, place.file, place.offset, SEEK_SET) != 0)
		ereport(ERROR, (errcode_for_file_access(), errmsg("could not seek in a temporary file of an index build: %m")));
}

struct smart_runs *
smart_runs_begin(int entry_length, Size memory, Size more_memory, FileSet *set, const char *name)
{
	struct smart_runs *runs = palloc0(sizeof(*runs));

	Assert(entry_length <= SMART_ENTRY_MAX);
	runs->set = set;
	runs->name = name;
	runs->context = CurrentMemoryContext;
	runs->entry_length = entry_length;
	runs->memory = memory;
	runs->more_memory = more_memory;
	runs->capacity = 64;
	runs->runs = palloc(sizeof(struct run) * runs->capacity);
	runs->buffer = palloc(BUFFER_MIN);
	return runs;
}

/* ---- writing ---- */

static void
create_file(struct smart_runs *runs)
{
	MemoryContext old = MemoryContextSwitchTo(runs->context);

	if (runs->set != NULL)
		runs->file = BufFileCreateFileSet(runs->set, runs->name);
	else
	{
		PrepareTempTablespaces();
		runs->file = BufFileCreateTemp(false);
	}
	MemoryContextSwitchTo(old);
}

static void
flush(struct smart_runs *runs)
{
	if (runs->filled == 0)
		return;
	seek(runs->file, runs->end);
	BufFileWrite(runs->file, runs->buffer, runs->filled);
	BufFileTell(runs->file, &runs->end.file, &runs->end.offset);
	runs->writing.bytes += runs->filled;
	runs->filled = 0;
}

void
smart_runs_start(struct smart_runs *runs)
{
	Assert(runs->filled == 0);
	if (runs->file == NULL)
		create_file(runs);
	runs->writing.file = runs->file;
	runs->writing.place = runs->end;
	runs->writing.bytes = 0;
}

void
smart_runs_write(struct smart_runs *runs, const uint8 *entry, int length)
{
	uint16 stored = (uint16) length;

	Assert(length > 0 && length <= SMART_ENTRY_MAX);
	if (runs->filled + sizeof(stored) + (Size) length > BUFFER_MIN)
		flush(runs);
	if (runs->entry_length == 0)
	{
		memcpy(runs->buffer + runs->filled, &stored, sizeof(stored));
		runs->filled += sizeof(stored);
	}
	memcpy(runs->buffer + runs->filled, entry, (Size) length);
	runs->filled += (Size) length;
}

static void
add_run(struct smart_runs *runs, struct run run)
{
	if (runs->count == runs->capacity)
	{
		runs->capacity *= 2;
		runs->runs = repalloc(runs->runs, sizeof(struct run) * runs->capacity);
	}
	runs->runs[runs->count++] = run;
}

void
smart_runs_finish(struct smart_runs *runs)
{
	flush(runs);
	add_run(runs, runs->writing);
}

/* ---- handing over ---- */

void
smart_runs_hand_over(struct smart_runs *runs, BufFile *notes)
{
	Assert(runs->set != NULL && runs->others == NIL && runs->sources == NULL);
	BufFileWrite(notes, &runs->count, sizeof(runs->count));
	for (int i = 0; i < runs->count; i++)
	{
		BufFileWrite(notes, &runs->runs[i].place, sizeof(struct place));
		BufFileWrite(notes, &runs->runs[i].bytes, sizeof(runs->runs[i].bytes));
	}
	if (runs->file != NULL)
		BufFileExportFileSet(runs->file);
}

void
smart_runs_take_over(struct smart_runs *runs, FileSet *set, const char *name, BufFile *notes, Size memory)
{
	MemoryContext old = MemoryContextSwitchTo(runs->context);
	struct run run = {0};
	int count;

	Assert(runs->sources == NULL);
	smart_read_exactly(notes, &count, sizeof(count));
	if (count > 0)
	{
		run.file = BufFileOpenFileSet(set, name, O_RDONLY, false);
		runs->others = lappend(runs->others, run.file);
	}
	for (int i = 0; i < count; i++)
	{
		smart_read_exactly(notes, &run.place, sizeof(run.place));
		smart_read_exactly(notes, &run.bytes, sizeof(run.bytes));
		add_run(runs, run);
	}
	runs->memory += memory;
	runs->more_memory += memory;
	MemoryContextSwitchTo(old);
}

/* ---- reading ---- */

static void
fill(struct smart_runs *runs, struct source *source)
{
	Size kept = source->filled - source->position;
	Size want = Min(runs->buffer_size - kept, source->rest.bytes);

	CHECK_FOR_INTERRUPTS();
	memmove(source->buffer, source->buffer + source->position, kept);
	seek(source->rest.file, source->rest.place);
	smart_read_exactly(source->rest.file, source->buffer + kept, want);
	BufFileTell(source->rest.file, &source->rest.place.file, &source->rest.place.offset);
	source->rest.bytes -= want;
	source->position = 0;
	source->filled = kept + want;
}

/* Goes to the source's next entry; false behind its last one. */
static bool
advance(struct smart_runs *runs, struct source *source)
{
	uint8 start[8] = {0};
	uint16 length = (uint16) runs->entry_length;

	/* A whole entry with its length is at hand, or all that there is. */
	if (source->filled - source->position < SMART_ENTRY_MAX + sizeof(length) && source->rest.bytes > 0)
		fill(runs, source);
	if (source->position == source->filled)
		return false;
	if (runs->entry_length == 0)
	{
		memcpy(&length, source->buffer + source->position, sizeof(length));
		source->position += sizeof(length);
	}
	Assert(source->position + length <= source->filled);
	source->entry = (const uint8 *) source->buffer + source->position;
	source->length = length;
	source->position += length;
	memcpy(start, source->entry, Min(length, sizeof(start)));
	source->head = smart_load_be64(start);
	return true;
}

static inline bool
before(const struct source *a, const struct source *b)
{
	if (a->head != b->head)
		return a->head < b->head;
	return smart_compare_bytes(a->entry, (Size) a->length, b->entry, (Size) b->length) < 0;
}

/* Moves the source at i down to where it belongs. */
static void
sift_down(struct smart_runs *runs, int i)
{
	struct source source = runs->sources[i];

	for (;;)
	{
		int child = 2 * i + 1;

		if (child + 1 < runs->live && before(&runs->sources[child + 1], &runs->sources[child]))
			child++;
		if (child >= runs->live || !before(&runs->sources[child], &source))
			break;
		runs->sources[i] = runs->sources[child];
		i = child;
	}
	runs->sources[i] = source;
}

/* Begins to read the first count runs. */
static void
open_sources(struct smart_runs *runs, int count)
{
	runs->sources = palloc0(sizeof(struct source) * count);
	runs->live = 0;
	runs->advance = false;
	for (int i = 0; i < count; i++)
	{
		struct source *source = &runs->sources[runs->live];

		source->rest = runs->runs[i];
		source->buffer = palloc(runs->buffer_size);
		if (advance(runs, source))
			runs->live++;
	}
	for (int i = runs->live / 2 - 1; i >= 0; i--)
		sift_down(runs, i);
}

const uint8 *
smart_runs_next(struct smart_runs *runs, int *length)
{
	struct source *first = &runs->sources[0];

	if (runs->live == 0)
		return NULL;
	if (runs->advance)
	{
		if (!advance(runs, first))
		{
			pfree(first->buffer);
			runs->live--;
			*first = runs->sources[runs->live];
		}
		if (runs->live == 0)
			return NULL;
		sift_down(runs, 0);
	}
	runs->advance = true;
	*length = first->length;
	return first->entry;
}

bool
smart_runs_fit(const struct smart_runs *runs)
{
	return (Size) runs->count * BUFFER_MIN <= runs->memory;
}

void
smart_runs_merge(struct smart_runs *runs, bool take_more_memory)
{
	Size memory = take_more_memory ? runs->more_memory : runs->memory;
	int fan_in = (int) Min(Max(memory / (2 * BUFFER_MIN), FAN_IN_MIN), FAN_IN_MAX);

	Assert(runs->sources == NULL);
	if (!take_more_memory)
		fan_in = runs->count;
	runs->buffer_size = Min(Max(memory / (Size) (Min(fan_in, runs->count) + 1), BUFFER_MIN), BUFFER_MAX);
	while (runs->count > fan_in)
	{
		const uint8 *entry;
		int length;

		open_sources(runs, fan_in);
		smart_runs_start(runs);
		while ((entry = smart_runs_next(runs, &length)) != NULL)
			smart_runs_write(runs, entry, length);
		pfree(runs->sources);
		runs->count -= fan_in;
		memmove(runs->runs, runs->runs + fan_in, sizeof(struct run) * runs->count);
		smart_runs_finish(runs);
	}
	open_sources(runs, runs->count);
}

void
smart_runs_end(struct smart_runs *runs)
{
	ListCell *cell;

	if (runs->file != NULL)
		BufFileClose(runs->file);
	foreach (cell, runs->others)
		BufFileClose(lfirst(cell));
	list_free(runs->others);
	for (int i = 0; i < runs->live; i++)
		pfree(runs->sources[i].buffer);
	if (runs->sources != NULL)
		pfree(runs->sources);
	pfree(runs->runs);
	pfree(runs->buffer);
	pfree(runs);
}
