/*
 * dead_rows.c
 *	  Rows that scans have found dead for all transactions, remembered until VACUUM comes.
 *
 * A page of rows has one place, which others may want, too: the last one gets it.  Nobody waits: a place that another
 * process writes at this moment has nothing to tell, and takes nothing.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "storage/ipc.h"
#include "storage/shmem.h"

#include "am/server/database_birth.h"
#include "am/server/dead_rows.h"
#include "am/server/shared.h"
#include "am/server/shared_file.h"
#include "base/assert.h"

#define GENERATIONS 1024
#define PAGES       16384 /* a power of two */

/* Rows of a page.  Everything is loaded and stored whole. */
struct page
{
	uint32 version; /* odd: it is being written */
	BlockNumber block;
	struct smart_shared_file file; /* the index's */
	uint64 tree;                   /* its name */
	uint64 generation;
	uint64 bits[SMART_DEAD_ROWS_WORDS]; /* of offsets from 1 on */
};

struct dead_rows
{
	struct smart_dead_rows_generation generations[GENERATIONS];
	/* Of each page a byte that tells most others from it: most questions are about pages without dead rows. */
	uint8 tags[PAGES];
	struct page pages[PAGES];
};

static struct dead_rows *shared;

void
smart_dead_rows_request(void)
{
	RequestAddinShmemSpace(sizeof(struct dead_rows));
}

void
smart_dead_rows_make(void)
{
	shared = smart_shared_make("smart dead rows", sizeof(*shared));
	/* 0 is no generation. */
	for (int i = 0; i < GENERATIONS; i++)
		shared->generations[i].now = 1;
}

static struct smart_dead_rows_generation *
place_of_file(const smart_file *file)
{
	return &shared->generations[hash_bytes((const unsigned char *) file, sizeof(*file)) % GENERATIONS];
}

/* Pages that follow one another have places that do, too. */
static uint32
number_of(const struct smart_dead_rows *self, BlockNumber block)
{
	return (self->hash + block) % PAGES;
}

static uint8
tag_of(const struct smart_dead_rows *self, BlockNumber block)
{
	return (uint8) ((self->hash >> 24) + block / PAGES + self->generation);
}

/* Is it about rows of this index's tree? */
static bool
is_of_tree(const struct page *page, const struct smart_dead_rows *self)
{
	return smart_shared_file_is(&page->file, &self->file) &&
		   __atomic_load_n(&page->tree, __ATOMIC_RELAXED) == self->name;
}

/* The caller has made the version odd. */
static void
set_tree(struct page *page, const struct smart_dead_rows *self)
{
	smart_assert(page->version % 2 != 0);
	smart_shared_file_set(&page->file, &self->file);
	__atomic_store_n(&page->tree, self->name, __ATOMIC_RELAXED);
}

void
smart_dead_rows_begin(struct smart_dead_rows *self, Relation index)
{
	self->file = smart_relation_locator(index);
	self->tree = 0;
	self->block = InvalidBlockNumber;
	self->noted = false;
	self->place = NULL;
	if (shared == NULL)
		return;
	self->place = place_of_file(&self->file);
	/* Acquire: the tree is read afterwards. */
	self->generation = __atomic_load_n(&self->place->now, __ATOMIC_ACQUIRE);
	smart_assert(self->generation != 0);
}

void
smart_dead_rows_choose(struct smart_dead_rows *self, uint64 tree)
{
	smart_assert(!self->noted && self->block == InvalidBlockNumber);
	self->tree = self->place == NULL ? 0 : tree;
	self->name = tree ^ smart_database_birth();
	self->hash = murmurhash32((uint32) tree);
}

/* Reads a place that is told by its tag to have rows of the page. */
static void
read_place(struct smart_dead_rows *self, const struct page *page, BlockNumber block)
{
	uint32 version = __atomic_load_n(&page->version, __ATOMIC_ACQUIRE);

	smart_assert(self->block == block && !self->noted);
	if (version % 2 != 0 || __atomic_load_n(&page->block, __ATOMIC_RELAXED) != block || !is_of_tree(page, self) ||
		__atomic_load_n(&page->generation, __ATOMIC_RELAXED) != self->generation)
		return;
	for (int i = 0; i < SMART_DEAD_ROWS_WORDS; i++)
		self->bits[i] = __atomic_load_n(&page->bits[i], __ATOMIC_RELAXED);
	/* The loads come before the second look at the version; the partner is the fence of smart_dead_rows_publish(). */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (__atomic_load_n(&page->version, __ATOMIC_RELAXED) != version)
		memset(self->bits, 0, sizeof(self->bits));
}

void
smart_dead_rows_read(struct smart_dead_rows *self, BlockNumber block)
{
	uint32 number = number_of(self, block);

	smart_dead_rows_end(self);
	smart_assert(!self->noted);
	self->block = block;
	memset(self->bits, 0, sizeof(self->bits));
	if (__atomic_load_n(&shared->tags[number], __ATOMIC_RELAXED) == tag_of(self, block))
		read_place(self, &shared->pages[number], block);
}

/* Does a place have nothing, or rows of this page, or what nobody asks for any more? */
static bool
is_vacant(const struct smart_dead_rows *self, const struct page *page, BlockNumber block)
{
	smart_file file;

	if (__atomic_load_n(&page->tree, __ATOMIC_RELAXED) == 0 ||
		(is_of_tree(page, self) && __atomic_load_n(&page->block, __ATOMIC_RELAXED) == block))
		return true;
	smart_shared_file_get(&page->file, &file);
	return __atomic_load_n(&page->generation, __ATOMIC_RELAXED) !=
		   __atomic_load_n(&place_of_file(&file)->now, __ATOMIC_RELAXED);
}

bool
smart_dead_rows_note(struct smart_dead_rows *self, const ItemPointerData *tid)
{
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(tid);
	uint32 bit = (uint32) ItemPointerGetOffsetNumberNoCheck(tid) - FirstOffsetNumber;

	if (self->tree == 0 || bit >= MaxHeapTuplesPerPage)
		return false;
	if (block != self->block)
		smart_dead_rows_read(self, block);
	if (!self->noted)
	{
		self->noted = true;
		self->vacant = is_vacant(self, &shared->pages[number_of(self, block)], block);
	}
	self->bits[bit / 64] |= UINT64CONST(1) << (bit % 64);
	smart_assert(self->block == block && self->noted);
	return self->vacant;
}

/* Adds the rows to those that others have noted in the meantime. */
void
smart_dead_rows_publish(struct smart_dead_rows *self)
{
	uint32 number = number_of(self, self->block);
	struct page *page = &shared->pages[number];
	uint32 version = __atomic_load_n(&page->version, __ATOMIC_RELAXED);
	bool same;

	smart_assert(self->noted && self->tree != 0 && self->block != InvalidBlockNumber);
	smart_assert(self->place >= shared->generations && self->place < shared->generations + GENERATIONS);
	self->noted = false;
	/* After a VACUUM nobody asks for them any more. */
	if (__atomic_load_n(&self->place->now, __ATOMIC_RELAXED) != self->generation || version % 2 != 0 ||
		!__atomic_compare_exchange_n(&page->version, &version, version + 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	/* Who sees one of the stores below sees the odd version; the partner is the fence of read_place(). */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	same = page->block == self->block && is_of_tree(page, self) && page->generation == self->generation;
	__atomic_store_n(&page->block, self->block, __ATOMIC_RELAXED);
	set_tree(page, self);
	__atomic_store_n(&page->generation, self->generation, __ATOMIC_RELAXED);
	for (int i = 0; i < SMART_DEAD_ROWS_WORDS; i++)
		__atomic_store_n(&page->bits[i], (same ? page->bits[i] : 0) | self->bits[i], __ATOMIC_RELAXED);
	__atomic_store_n(&shared->tags[number], tag_of(self, self->block), __ATOMIC_RELAXED);
	__atomic_store_n(&page->version, version + 2, __ATOMIC_RELEASE);
	__atomic_store_n(&shared->generations[self->place - shared->generations].noted, self->generation, __ATOMIC_RELAXED);
}

void
smart_dead_rows_forget(const smart_file *file)
{
	/* The entries are gone, and the places are not free yet: both show to whoever sees either. */
	if (shared != NULL)
		__atomic_add_fetch(&place_of_file(file)->now, 1, __ATOMIC_SEQ_CST);
}
