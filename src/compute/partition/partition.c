/*
 * partition.c
 *	  Ranges of keys and their owners: the table, routing, turns, handing over (src/README, P1-P5, L3, L4).
 *
 * The table in remote memory is a line that says what it is, one for each range, and a word for each range.  In a line
 * only the owner's word changes, by CAS:
 *
 *	  owner's word   tenure 32 | owner 32 (highest bits first)
 *	  logged word    the same, of the owner whose log may have changes that the range's tree lacks; 0: nobody's (L3)
 *
 * The logged word changes by WRITE, of who has the gate in its hands.
 *
 * A compute node knows by itself whether it owns a range: its gate is open.  Gates change by CAS in the memory that its
 * clients share:
 *
 *	  gate           tenure 32 | changes 30 | state 2: shut, open, giving, or taking
 *
 * Each change counts, so that a gate that was given away and has come back is not taken for what it was.
 *
 * Why no turn outlives the gate.  A client stores the range in its line, with a full fence, and looks at the gate then.
 * A giver CASes the gate away from open, which is a full fence, and looks at all lines then.  So either the client
 * finds the gate not open, and has no turn; or the giver finds the range in the client's line, and waits.  Only when it
 * has seen each line without the range does it CAS the owner's word.
 */
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "compute/partition/partition.h"
#include "tree/fault.h"

#define TABLE_MAGIC  UINT64_C(0x31656c6261747073) /* "sptable1" */
#define OWNER_MASK   UINT64_C(0xffffffff)
#define TENURE_SHIFT 32
#define GATE_STATE   UINT64_C(3)
#define GATE_CHANGE  UINT64_C(4)
#define WRITES_MAX   64 /* lines of a batch */

enum gate_state
{
	GATE_SHUT,
	GATE_OPEN,
	GATE_GIVING,
	GATE_TAKING
};

/* In remote memory. */
struct table_head
{
	uint64_t magic;
	uint64_t ranges;
	uint64_t unused[6];
};

struct table_line
{
	uint64_t owner;
	struct smart_range range;
};

_Static_assert(sizeof(struct table_head) == 64 && sizeof(struct table_line) == 64, "the table consists of lines");

/* A client's line: the range of its turn + 1, or 0. */
struct client_line
{
	uint64_t turn;
	uint64_t unused[7];
};

struct smart_partition
{
	fabric_address table;
	uint32_t ranges;
	uint32_t clients;
	uint32_t owner;
	uint32_t unused[3];
	uint64_t lines_at; /* of clients; in bytes, as the next one */
	uint64_t gates_at;
	struct table_line line[]; /* as it was READ; nobody looks at the owners */
};

static inline struct client_line *
line_of(const struct smart_partition *partition, unsigned int client)
{
	smart_assert(client < partition->clients);
	return (struct client_line *) (void *) ((uint8_t *) (uintptr_t) partition + partition->lines_at) + client;
}

static inline uint64_t *
gate_of(const struct smart_partition *partition, unsigned int range)
{
	smart_assert(range < partition->ranges);
	return (uint64_t *) (void *) ((uint8_t *) (uintptr_t) partition + partition->gates_at) + range;
}

/* What comes after a gate, with this tenure. */
static inline uint64_t
next_gate(uint64_t gate, uint64_t tenure, enum gate_state state)
{
	smart_assert(tenure <= UINT32_MAX && state <= GATE_STATE);
	return tenure << TENURE_SHIFT | ((gate + GATE_CHANGE) & OWNER_MASK & ~GATE_STATE) | state;
}

static inline enum gate_state
gate_state(uint64_t gate)
{
	return (enum gate_state)(gate & GATE_STATE);
}

static inline fabric_address
owner_address(const struct smart_partition *partition, unsigned int range)
{
	smart_assert(range < partition->ranges);
	return partition->table + sizeof(struct table_head) + range * sizeof(struct table_line);
}

static inline fabric_address
logged_address(const struct smart_partition *partition, unsigned int range)
{
	smart_assert(range < partition->ranges);
	return partition->table + sizeof(struct table_head) + partition->ranges * sizeof(struct table_line) +
		   range * sizeof(uint64_t);
}

size_t
smart_partition_table_bytes(unsigned int ranges)
{
	return sizeof(struct table_head) + ranges * (sizeof(struct table_line) + sizeof(uint64_t));
}

size_t
smart_partition_size(unsigned int ranges, unsigned int clients)
{
	return sizeof(struct smart_partition) + ranges * (sizeof(struct table_line) + sizeof(uint64_t)) +
		   clients * sizeof(struct client_line);
}

/* ---- the table ---- */

unsigned int
smart_range_bound(const uint8_t *lower, size_t lower_length, const uint8_t *upper, size_t upper_length)
{
	size_t same = 0;

	while (same < lower_length && same < upper_length && lower[same] == upper[same])
		same++;
	smart_assert(same < upper_length && (same == lower_length || lower[same] < upper[same]));
	return same < SMART_RANGE_BOUND_MAX ? (unsigned int) same + 1 : 0;
}

static bool
ascends(const struct smart_range *ranges, unsigned int count)
{
	smart_assert(count > 0);
	for (unsigned int i = 1; i < count; i++)
	{
		const struct smart_range *lower = &ranges[i - 1];

		if (smart_compare_bytes(lower->bound, lower->bound_length, ranges[i].bound, ranges[i].bound_length) >= 0)
			return false;
	}
	return ranges[0].bound_length == 0;
}

static smart_status
clear_logged(struct fabric *fabric, fabric_address words, unsigned int count)
{
	uint64_t zeros[WRITES_MAX] = {0};
	smart_status status = SMART_OK;

	for (unsigned int first = 0; first < count && status == SMART_OK; first += WRITES_MAX)
	{
		unsigned int some = count - first < WRITES_MAX ? count - first : WRITES_MAX;
		struct fabric_request request = {.verb = FABRIC_WRITE,
										 .remote = words + first * sizeof(zeros[0]),
										 .local = zeros,
										 .length = some * (uint32_t) sizeof(zeros[0])};

		status = fabric_execute(fabric, &request, 1);
	}
	return status;
}

smart_status
smart_partition_create(struct fabric *fabric, fabric_address table, const struct smart_range *ranges,
					   unsigned int count)
{
	const struct table_head head = {.magic = TABLE_MAGIC, .ranges = count};
	struct fabric_request request = {.verb = FABRIC_WRITE,
									 .remote = table,
									 .local = (void *) (uintptr_t) &head,
									 .length = sizeof(head)};
	struct table_line lines[WRITES_MAX];
	smart_status status = SMART_OK;

	smart_assert(count >= 1 && count <= SMART_RANGES_MAX && table % sizeof(head) == 0);
	if (!ascends(ranges, count))
		return SMART_UNSORTED;
	for (unsigned int first = 0; first < count && status == SMART_OK; first += WRITES_MAX)
	{
		unsigned int some = count - first < WRITES_MAX ? count - first : WRITES_MAX;
		struct fabric_request batch = {.verb = FABRIC_WRITE,
									   .remote = table + sizeof(head) + first * sizeof(lines[0]),
									   .local = lines,
									   .length = some * (uint32_t) sizeof(lines[0])};

		for (unsigned int i = 0; i < some; i++)
			lines[i] = (struct table_line){.range = ranges[first + i]};
		status = fabric_execute(fabric, &batch, 1);
	}
	if (status == SMART_OK)
		status = clear_logged(fabric, table + sizeof(head) + count * sizeof(lines[0]), count);
	/* The head last: a table that is not whole is none. */
	return status == SMART_OK ? fabric_execute(fabric, &request, 1) : status;
}

smart_status
smart_partition_open(struct smart_partition *partition, struct fabric *fabric, fabric_address table,
					 unsigned int ranges, unsigned int clients, uint32_t owner)
{
	struct table_head head = {.magic = 0};
	struct fabric_request request = {.verb = FABRIC_READ, .remote = table, .local = &head, .length = sizeof(head)};
	smart_status status;

	smart_assert(ranges >= 1 && ranges <= SMART_RANGES_MAX && clients >= 1 && owner != SMART_OWNER_NONE);
	memset(partition, 0, smart_partition_size(ranges, clients));
	partition->table = table;
	partition->ranges = ranges;
	partition->clients = clients;
	partition->owner = owner;
	partition->lines_at = sizeof(*partition) + ranges * sizeof(struct table_line);
	partition->gates_at = partition->lines_at + clients * sizeof(struct client_line);
	status = fabric_execute(fabric, &request, 1);
	if (status == SMART_OK && (head.magic != TABLE_MAGIC || head.ranges != ranges))
		return SMART_CORRUPT;
	request = (struct fabric_request){.verb = FABRIC_READ,
									  .remote = table + sizeof(head),
									  .local = partition->line,
									  .length = ranges * (uint32_t) sizeof(struct table_line)};
	return status == SMART_OK ? fabric_execute(fabric, &request, 1) : status;
}

/* ---- routing ---- */

unsigned int
smart_partition_ranges(const struct smart_partition *partition)
{
	return partition->ranges;
}

const struct smart_range *
smart_partition_range(const struct smart_partition *partition, unsigned int range)
{
	smart_assert(range < partition->ranges);
	return &partition->line[range].range;
}

unsigned int
smart_partition_find(const struct smart_partition *partition, const uint8_t *key, size_t length)
{
	unsigned int low = 0;
	unsigned int high = partition->ranges;

	while (high - low > 1)
	{
		unsigned int middle = (low + high) / 2;
		const struct smart_range *range = &partition->line[middle].range;

		if (smart_compare_bytes(range->bound, range->bound_length, key, length) <= 0)
			low = middle;
		else
			high = middle;
	}
	smart_assert(low < partition->ranges);
	return low;
}

/* ---- owners' words ---- */

static smart_status
execute_word(struct fabric *fabric, enum fabric_verb verb, fabric_address address, uint64_t *word)
{
	struct fabric_request request = {.verb = verb, .remote = address, .local = word, .length = sizeof(*word)};

	smart_assert(verb == FABRIC_READ || verb == FABRIC_WRITE);
	return fabric_execute(fabric, &request, 1);
}

static smart_status
read_word(const struct smart_partition *partition, struct fabric *fabric, unsigned int range, uint64_t *word)
{
	smart_assert(range < partition->ranges);
	return execute_word(fabric, FABRIC_READ, owner_address(partition, range), word);
}

/* From a word that was READ, or is known, to the next tenure.  *won: it was that, and has another owner now. */
static smart_status
change_word(const struct smart_partition *partition, struct fabric *fabric, unsigned int range, uint64_t word,
			uint32_t to, uint64_t *changed, bool *won)
{
	uint64_t desired = (((word >> TENURE_SHIFT) + 1) << TENURE_SHIFT) | to;
	struct fabric_request request = {.verb = FABRIC_CAS,
									 .remote = owner_address(partition, range),
									 .compare = word,
									 .operand = desired};
	smart_status status = fabric_execute(fabric, &request, 1);

	smart_assert(to != SMART_OWNER_NONE);
	*won = status == SMART_OK && request.result == word;
	*changed = desired;
	return status;
}

smart_status
smart_partition_owner(const struct smart_partition *partition, struct fabric *fabric, unsigned int range,
					  uint32_t *owner, uint32_t *tenure)
{
	uint64_t word = 0;
	smart_status status = read_word(partition, fabric, range, &word);

	if (status == SMART_OK)
	{
		*owner = (uint32_t) (word & OWNER_MASK);
		*tenure = (uint32_t) (word >> TENURE_SHIFT);
	}
	return status;
}

/* ---- turns ---- */

bool
smart_partition_enter(struct smart_partition *partition, unsigned int client, unsigned int range, uint64_t *tenure)
{
	struct client_line *line = line_of(partition, client);
	uint64_t gate;

	smart_assert(__atomic_load_n(&line->turn, __ATOMIC_RELAXED) == 0);
	/* A full fence: the line is visible before the gate is looked at.  Partner: the CAS in give. */
	__atomic_exchange_n(&line->turn, (uint64_t) range + 1, __ATOMIC_SEQ_CST);
	gate = __atomic_load_n(gate_of(partition, range), __ATOMIC_SEQ_CST);
	if (gate_state(gate) != GATE_OPEN)
	{
		__atomic_store_n(&line->turn, 0, __ATOMIC_RELEASE);
		return false;
	}
	*tenure = gate >> TENURE_SHIFT;
	return true;
}

void
smart_partition_leave(struct smart_partition *partition, unsigned int client)
{
	struct client_line *line = line_of(partition, client);

	smart_assert(__atomic_load_n(&line->turn, __ATOMIC_RELAXED) != 0);
	/* Release: what the turn did was before the line is seen at 0.  Partner: await_turns. */
	__atomic_store_n(&line->turn, 0, __ATOMIC_RELEASE);
}

/* ---- owners ---- */

/* The owner's word becomes this compute node's, or is.  *won: so it is now. */
static smart_status
take_word(const struct smart_partition *partition, struct fabric *fabric, unsigned int range, uint32_t fenced,
		  uint64_t *word, bool *won)
{
	smart_status status = read_word(partition, fabric, range, word);

	*won = status == SMART_OK && (*word & OWNER_MASK) == partition->owner;
	if (status == SMART_OK && !*won && (*word & OWNER_MASK) == fenced)
		status = change_word(partition, fabric, range, *word, partition->owner, word, won);
	return status;
}

/* L3: what an earlier owner's log has of the range is in its tree before the first turn. */
static smart_status
settle(const struct smart_partition *partition, struct fabric *fabric, unsigned int range, uint64_t word,
	   const struct smart_handover *handover)
{
	uint64_t logged = 0;
	smart_status status = execute_word(fabric, FABRIC_READ, logged_address(partition, range), &logged);

	smart_assert((word & OWNER_MASK) == partition->owner);
	if (status == SMART_OK && logged != 0 && logged != word && !SMART_FAULT(unreplayed))
		status = handover->settle(handover->argument, range, (uint32_t) (logged & OWNER_MASK),
								  (uint32_t) (logged >> TENURE_SHIFT), (uint32_t) (word >> TENURE_SHIFT));
	return status == SMART_OK ? execute_word(fabric, FABRIC_WRITE, logged_address(partition, range), &word) : status;
}

smart_status
smart_partition_take(struct smart_partition *partition, struct fabric *fabric, unsigned int range, uint32_t fenced,
					 const struct smart_handover *handover, bool *mine)
{
	uint64_t *gate = gate_of(partition, range);
	uint64_t seen = __atomic_load_n(gate, __ATOMIC_SEQ_CST);
	uint64_t taking = next_gate(seen, seen >> TENURE_SHIFT, GATE_TAKING);
	uint64_t word = 0;
	bool won = false;
	smart_status status;

	smart_assert(fenced != partition->owner);
	*mine = gate_state(seen) == GATE_OPEN;
	/* One taker, whose change of the gate also tells that no other has opened it, and perhaps given the range away, since. */
	if (gate_state(seen) != GATE_SHUT ||
		!__atomic_compare_exchange_n(gate, &seen, taking, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return SMART_OK;
	status = take_word(partition, fabric, range, fenced, &word, &won);
	if (status == SMART_OK && won && handover != NULL)
		status = settle(partition, fabric, range, word, handover);
	*mine = status == SMART_OK && won;
	__atomic_store_n(gate, next_gate(taking, word >> TENURE_SHIFT, *mine ? GATE_OPEN : GATE_SHUT), __ATOMIC_SEQ_CST);
	return status;
}

/* Every turn in the range that is under way has ended, or this has lasted too long. */
static smart_status
await_turns(struct smart_partition *partition, struct smart_env *env, unsigned int range, uint32_t timeout_ms)
{
	uint64_t deadline_ns = smart_deadline_ns(env, timeout_ms);

	smart_assert(gate_state(__atomic_load_n(gate_of(partition, range), __ATOMIC_RELAXED)) == GATE_GIVING);
	for (unsigned int client = 0; client < partition->clients && !SMART_FAULT(hastygift); client++)
	{
		/* Acquire: what the turn did is there.  Partner: leave. */
		for (unsigned int attempt = 0;
			 __atomic_load_n(&line_of(partition, client)->turn, __ATOMIC_SEQ_CST) == (uint64_t) range + 1; attempt++)
		{
			if (env->interrupted(env))
				return SMART_INTERRUPTED;
			if (env->now_ns(env) >= deadline_ns)
				return SMART_TIMEOUT;
			env->pause(env, attempt);
		}
	}
	return SMART_OK;
}

/* L4: the log of this compute node has nothing any more that the tree lacks. */
static smart_status
flush(const struct smart_partition *partition, struct fabric *fabric, unsigned int range, uint64_t word,
	  const struct smart_handover *handover)
{
	uint64_t nobody = 0;
	smart_status status = SMART_OK;

	smart_assert((word & OWNER_MASK) == partition->owner);
	if (!SMART_FAULT(unflushed))
		status = handover->flush(handover->argument, range, (uint32_t) (word >> TENURE_SHIFT));
	return status == SMART_OK ? execute_word(fabric, FABRIC_WRITE, logged_address(partition, range), &nobody) : status;
}

smart_status
smart_partition_give(struct smart_partition *partition, struct fabric *fabric, struct smart_env *env,
					 unsigned int range, uint32_t to, uint32_t timeout_ms, const struct smart_handover *handover)
{
	uint64_t *gate = gate_of(partition, range);
	uint64_t seen = __atomic_load_n(gate, __ATOMIC_SEQ_CST);
	uint64_t tenure = seen >> TENURE_SHIFT;
	uint64_t giving = next_gate(seen, tenure, GATE_GIVING);
	uint64_t word = tenure << TENURE_SHIFT | partition->owner;
	bool won;
	smart_status status;

	smart_assert(to != SMART_OWNER_NONE && to != partition->owner);
	/* One giver; from here on no turn begins.  A full fence.  Partner: the exchange in enter. */
	if (gate_state(seen) != GATE_OPEN ||
		!__atomic_compare_exchange_n(gate, &seen, giving, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return SMART_STALE;
	status = await_turns(partition, env, range, timeout_ms);
	if (status != SMART_OK)
	{
		__atomic_store_n(gate, next_gate(giving, tenure, GATE_OPEN), __ATOMIC_SEQ_CST);
		return status;
	}
	if (handover != NULL)
		status = flush(partition, fabric, range, word, handover);
	won = false;
	if (status == SMART_OK)
		status = change_word(partition, fabric, range, word, to, &word, &won);
	/* If it was not given, taking it again settles what the flush has left. */
	__atomic_store_n(gate, next_gate(giving, tenure, GATE_SHUT), __ATOMIC_SEQ_CST);
	/* P3: else it was taken from an owner that was not fenced, since this one goes on. */
	return status == SMART_OK && !won ? SMART_STALE : status;
}
