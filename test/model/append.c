/*
 * append.c
 *	  J3-tail: one operation behind the others.
 */
#include "model/world.h"

void
append_lock_tail(struct actor *self)
{
	for (;;)
	{
		struct pages *pages = &self->server->pages;
		const struct page *page;
		unsigned int block;

		if (self->tail.page.block == 0)
		{
			self->meta = step_read_meta(self, "J3-tail: reads in the metapage where the tail is");
			self->tail = self->meta.tail;
		}
		block = self->tail.page.block;
		step_lock(self, LOCK_PAGE + block, "J3-tail: locks the tail's page");
		page = &pages->blocks[block];
		if ((page->kind != PAGE_LOG || page->id != self->tail.serial) && !FAULT(oldtail))
			self->tail.page.block = 0;
		else if (page->next.block != 0 && page->kind == PAGE_LOG)
			self->tail = (struct place){.page = page->next, .serial = (uint8_t) (self->tail.serial + 1)};
		else
			return;
		unlock(self, LOCK_PAGE + block);
	}
}

unsigned int
append_take_page(struct actor *self, const struct meta *meta, unsigned int own)
{
	unsigned int first = 1 + below(BLOCKS - 1);
	unsigned int block = first;

	step(self, "J3-free: takes a page");
	do
	{
		if (self->server->holder[LOCK_PAGE + block] == NULL &&
			page_is_free(meta, &self->server->pages.blocks[block], own))
		{
			self->server->holder[LOCK_PAGE + block] = self;
			return block;
		}
		block = block % (BLOCKS - 1) + 1;
	} while (block != first);
	actor_exhausted(self);
}

/* The tail is full: its successor. */
static void
link_page(struct actor *self, struct op op, unsigned int candidate)
{
	unsigned int tail = self->tail.page.block;
	struct record record = {.kind = RECORD_LINK, .op = op, .block = (uint8_t) candidate, .tail = (uint8_t) tail};

	step_lock(self, LOCK_PAGE + 0,
			  op.removes ? "J3-tail: links a page with a removal" : "J3-tail: links a page with an add");
	self->position = wal_insert(&record);
	self->tail = self->server->pages.meta.tail;
	unlock(self, LOCK_PAGE + 0);
	unlock(self, LOCK_PAGE + tail);
	unlock(self, LOCK_PAGE + candidate);
}

bool
append(struct actor *self, struct op op, bool adds)
{
	struct server *server = self->server;
	unsigned int candidate = 0;

	for (;;)
	{
		unsigned int tail;

		append_lock_tail(self);
		tail = self->tail.page.block;
		if (adds && !FAULT(recheck))
		{
			step(self, "J2-add: compares the counter");
			if (self->changes != server->changes)
			{
				unlock(self, LOCK_PAGE + tail);
				if (candidate != 0)
					unlock(self, LOCK_PAGE + candidate);
				return false;
			}
		}
		if (server->pages.blocks[tail].count < OPS_PER_PAGE)
		{
			struct record record = {.kind = RECORD_APPEND, .op = op, .block = (uint8_t) tail};

			step(self, op.removes ? "J2-remove: appends a removal" : "J2-add: appends an add");
			self->position = wal_insert(&record);
			unlock(self, LOCK_PAGE + tail);
			if (candidate != 0)
				unlock(self, LOCK_PAGE + candidate);
			return true;
		}
		if (candidate != 0)
		{
			link_page(self, op, candidate);
			return true;
		}
		/* A candidate is locked before the tail. */
		unlock(self, LOCK_PAGE + tail);
		candidate = append_take_page(self, &self->meta, 0);
	}
}
