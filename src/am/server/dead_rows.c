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
static struct page *
page_of(const struct smart_dead_rows *self, BlockNumber block)
{
	return &shared->pages[(murmurhash32((uint32) self->tree) + block) % PAGES];
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
	smart_shared_file_set(&page->file, &self->file);
	__atomic_store_n(&page->tree, self->name, __ATOMIC_RELAXED);
}

void
smart_dead_rows_begin(struct smart_dead_rows *self, Relation index)
{
	self->file = smart_relation_locator(index);
	self->tree = 0;
	self->block = InvalidBlockNumber;
	self->place = NULL;
	if (shared == NULL)
		return;
	self->place = place_of_file(&self->file);
	/* Acquire: the tree is read afterwards. */
	self->generation = __atomic_load_n(&self->place->now, __ATOMIC_ACQUIRE);
}

void
smart_dead_rows_choose(struct smart_dead_rows *self, uint64 tree)
{
	self->tree = self->place == NULL ? 0 : tree;
	self->name = tree ^ smart_database_birth();
}

void
smart_dead_rows_read(struct smart_dead_rows *self, BlockNumber block)
{
	struct page *page = page_of(self, block);
	uint32 version = __atomic_load_n(&page->version, __ATOMIC_ACQUIRE);
	bool told = version % 2 == 0 && __atomic_load_n(&page->block, __ATOMIC_RELAXED) == block &&
				is_of_tree(page, self) && __atomic_load_n(&page->generation, __ATOMIC_RELAXED) == self->generation;

	for (int i = 0; i < SMART_DEAD_ROWS_WORDS; i++)
		self->bits[i] = told ? __atomic_load_n(&page->bits[i], __ATOMIC_RELAXED) : 0;
	/* The loads come before the second look at the version; the partner is the fence of smart_dead_rows_note(). */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (told && __atomic_load_n(&page->version, __ATOMIC_RELAXED) != version)
		memset(self->bits, 0, sizeof(self->bits));
	self->block = block;
}

/* Does the place that is to be written have nothing, or rows of this page, or what an older generation of the tree had? */
static bool
is_vacant(const struct smart_dead_rows *self, const struct page *page, BlockNumber block)
{
	return page->tree == 0 ||
		   (is_of_tree(page, self) && (page->block == block || page->generation != self->generation));
}

bool
smart_dead_rows_note(struct smart_dead_rows *self, const ItemPointerData *tid)
{
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(tid);
	uint32 bit = (uint32) ItemPointerGetOffsetNumberNoCheck(tid) - FirstOffsetNumber;
	struct page *page;
	uint32 version;
	bool vacant;
	bool same;

	if (self->tree == 0 || bit >= MaxHeapTuplesPerPage)
		return false;
	smart_assert(self->place >= shared->generations && self->place < shared->generations + GENERATIONS);
	page = page_of(self, block);
	version = __atomic_load_n(&page->version, __ATOMIC_RELAXED);
	if (version % 2 != 0 ||
		!__atomic_compare_exchange_n(&page->version, &version, version + 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return true;
	vacant = is_vacant(self, page, block);
	/* Who sees one of the stores below sees the odd version; the partner is the fence of smart_dead_rows_read(). */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	same = page->block == block && is_of_tree(page, self) && page->generation == self->generation;
	__atomic_store_n(&page->block, block, __ATOMIC_RELAXED);
	set_tree(page, self);
	__atomic_store_n(&page->generation, self->generation, __ATOMIC_RELAXED);
	for (uint32 i = 0; i < SMART_DEAD_ROWS_WORDS; i++)
	{
		uint64 bits = (same ? page->bits[i] : 0) | (i == bit / 64 ? UINT64CONST(1) << (bit % 64) : 0);

		__atomic_store_n(&page->bits[i], bits, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&page->version, version + 2, __ATOMIC_RELEASE);
	__atomic_store_n(&shared->generations[self->place - shared->generations].noted, self->generation, __ATOMIC_RELAXED);
	/* What was read of the page is older. */
	if (self->block == block)
		self->block = InvalidBlockNumber;
	return vacant;
}

void
smart_dead_rows_forget(Relation index)
{
	/* The entries are gone, and the places are not free yet: both show to whoever sees either. */
	if (shared != NULL)
		__atomic_add_fetch(&place_of_file(&smart_relation_locator(index))->now, 1, __ATOMIC_SEQ_CST);
}
