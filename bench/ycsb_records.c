/*
 * ycsb_records.c
 *	  Which records a tree has.
 */
#include "base/assert.h"
#include "ycsb_records.h"

static uint8_t *
mark_of(struct ycsb_records *records, uint64_t record)
{
	return &records->ended[record % YCSB_WINDOW];
}

uint64_t
ycsb_records_take(struct ycsb_records *records, struct smart_env *env)
{
	uint64_t record = __atomic_fetch_add(&records->next, 1, __ATOMIC_RELAXED);

	for (unsigned int attempt = 0; record - ycsb_records_present(records) >= YCSB_WINDOW; attempt++)
		env->pause(env, attempt);
	return record;
}

/* Passes all marks that follow; one client at a time. */
static void
advance(struct ycsb_records *records)
{
	uint64_t present = records->present;

	while (__atomic_load_n(mark_of(records, present), __ATOMIC_SEQ_CST) != 0)
	{
		__atomic_store_n(mark_of(records, present), 0, __ATOMIC_RELAXED);
		present++;
	}
	__atomic_store_n(&records->present, present, __ATOMIC_RELEASE);
}

void
ycsb_records_end(struct ycsb_records *records, uint64_t record)
{
	smart_assert(record - ycsb_records_present(records) < YCSB_WINDOW);
	__atomic_store_n(mark_of(records, record), 1, __ATOMIC_SEQ_CST);
	/* Who cannot advance leaves it to who does: that one looks at the marks again behind its turn. */
	do
	{
		if (__atomic_exchange_n(&records->advancing, 1, __ATOMIC_SEQ_CST) != 0)
			return;
		advance(records);
		__atomic_store_n(&records->advancing, 0, __ATOMIC_SEQ_CST);
	} while (__atomic_load_n(mark_of(records, ycsb_records_present(records)), __ATOMIC_SEQ_CST) != 0);
}
