/*
 * leaf_build.c
 *	  Making leaves from lists of entries.
 *
 * A list names entries where they lie, in two parts each (the prefix of the
 * leaf they came from, and their suffix), so that leaves with different
 * prefixes can be written into one another without copying twice.
 */
#include "tree/block/access.h"
#include "tree/block/leaf_build.h"

#define RANKED_ONE_IN 8 /* fewer appended entries than this part of a leaf are sorted without ranks */

unsigned int
smart_ref_common(const struct smart_ref *a, const struct smart_ref *b)
{
	unsigned int shorter = smart_ref_length(a) < smart_ref_length(b) ? smart_ref_length(a) : smart_ref_length(b);
	unsigned int i = 0;

	if (a->head == b->head && a->head_length == b->head_length)
		return a->head_length + (unsigned int) smart_common_prefix(a->tail, a->tail_length, b->tail, b->tail_length);
	while (i < shorter && smart_ref_byte(a, i) == smart_ref_byte(b, i))
		i++;
	return i;
}

smart_status
smart_list_reserve(struct smart_tree *tree, struct smart_list *list, uint32_t count)
{
	uint32_t capacity = list->capacity ? list->capacity : 64;
	struct smart_ref *refs;

	if (count <= list->capacity)
		return SMART_OK;
	while (capacity < count)
		capacity *= 2;
	refs = tree->env->allocate(tree->env, capacity * sizeof(*refs));
	if (refs == NULL)
		return SMART_NO_MEMORY;
	if (list->count > 0)
		memcpy(refs, list->refs, list->count * sizeof(*refs));
	smart_release(tree->env, list->refs);
	list->refs = refs;
	list->capacity = capacity;
	return SMART_OK;
}

/* Entries of one leaf differ in their tails only, mostly in the first bytes. */
static inline bool
sorts_before(const struct smart_ref *a, const struct smart_ref *b)
{
	unsigned int common;

	if (a->head == b->head && a->rank != b->rank)
		return a->rank < b->rank;
	if (a->head == b->head && a->head_length == b->head_length)
		return smart_compare_bytes(a->tail, a->tail_length, b->tail, b->tail_length) < 0;
	common = smart_ref_common(a, b);
	if (common == smart_ref_length(a) || common == smart_ref_length(b))
		return smart_ref_length(a) < smart_ref_length(b);
	return smart_ref_byte(a, common) < smart_ref_byte(b, common);
}

/* Sorts entries [sorted..count) into the ascending ones before them: a tail is short. */
static void
sort_tail(struct smart_list *list, uint32_t sorted)
{
	for (uint32_t i = sorted; i < list->count; i++)
	{
		struct smart_ref ref = list->refs[i];
		uint32_t low = 0;
		uint32_t high = i;

		if (i == 0 || sorts_before(&list->refs[i - 1], &ref))
			continue;
		while (low < high)
		{
			uint32_t middle = (low + high) / 2;

			if (sorts_before(&list->refs[middle], &ref))
				low = middle + 1;
			else
				high = middle;
		}
		memmove(&list->refs[low + 1], &list->refs[low], (i - low) * sizeof(ref));
		list->refs[low] = ref;
	}
}

/* I7: of entries [first..count), which ascend and come from one leaf, each key's first one stays. */
static void
drop_duplicates(const struct smart_tree *tree, struct smart_list *list, uint32_t first)
{
	uint32_t kept = first + 1;

	if (SMART_FAULT(duplicates))
		return;
	for (uint32_t i = first + 1; i < list->count; i++)
	{
		struct smart_ref *last = &list->refs[kept - 1];
		const struct smart_ref *ref = &list->refs[i];
		size_t length = ref->tail_length;

		if (length != last->tail_length || length <= tree->options.payload ||
			memcmp(last->tail, ref->tail, length - tree->options.payload) != 0)
			list->refs[kept++] = *ref;
		else if (ref->tail < last->tail)
			*last = *ref;
	}
	list->count = kept;
}

/* The reference to an entry of a leaf. */
static inline struct smart_ref
make_ref(const struct smart_tree *tree, const struct smart_leaf *leaf, const uint8_t *suffix, unsigned int length)
{
	return (struct smart_ref){.head = smart_leaf_prefix(leaf),
							  .head_length = (uint16_t) leaf->prefix_length,
							  .tail = suffix,
							  .tail_length = (uint16_t) length,
							  .value = tree->options.value ? smart_value_distance(leaf, suffix) : 0,
							  .rank = smart_rank(suffix, length)};
}

/*
 * Entries of one length: [offset..end) of those whose first byte lies in lo..hi, or all.  Their ranks are wanted where many
 * have to be sorted.
 */
static void
collect_strided(struct smart_tree *tree, struct smart_list *list, const struct smart_leaf *leaf, unsigned int offset,
				unsigned int end, bool all, unsigned int lo, unsigned int hi, bool ranked)
{
	const struct smart_ref common = {.head = smart_leaf_prefix(leaf),
									 .head_length = (uint16_t) leaf->prefix_length,
									 .tail_length = (uint16_t) leaf->stride};
	bool valued = tree->options.value;
	struct smart_ref *ref = &list->refs[list->count];

	smart_assert(leaf->stride != 0 && end <= leaf->used);
	smart_assert(list->count + (end - offset) / leaf->stride <= list->capacity);
	for (const uint8_t *suffix = leaf->block + offset; suffix < leaf->block + end; suffix += leaf->stride)
	{
		if (!all && (suffix[0] < lo || suffix[0] > hi))
			continue;
		*ref = common;
		ref->tail = suffix;
		if (valued)
			ref->value = smart_value_distance(leaf, suffix);
		if (ranked)
			ref->rank = smart_rank(suffix, leaf->stride);
		ref++;
	}
	list->count = (uint32_t) (ref - list->refs);
}

/* Appends the leaf's entries to the list, unsorted; *sorted: up to where they ascend.  SMART_CORRUPT: malformed. */
static smart_status
collect_entries(struct smart_tree *tree, struct smart_list *list, const struct smart_leaf *leaf, bool all,
				unsigned int lo, unsigned int hi, uint32_t *sorted)
{
	unsigned int offset = leaf->start;
	smart_status status = SMART_OK;

	*sorted = list->count;
	if (leaf->stride != 0)
	{
		unsigned int run = leaf->sorted_end > offset ? leaf->sorted_end : offset;
		bool ranked = leaf->used - run > (leaf->used - offset) / RANKED_ONE_IN;

		if ((leaf->used - offset) % leaf->stride != 0 || (run - offset) % leaf->stride != 0)
			return SMART_CORRUPT;
		status = smart_list_reserve(tree, list, list->count + (leaf->used - offset) / leaf->stride);
		if (status != SMART_OK)
			return status;
		collect_strided(tree, list, leaf, offset, run, all, lo, hi, ranked);
		*sorted = list->count;
		collect_strided(tree, list, leaf, run, leaf->used, all, lo, hi, ranked);
		return SMART_OK;
	}
	while (offset < leaf->used && status == SMART_OK)
	{
		bool in_run = offset < leaf->sorted_end;
		const uint8_t *suffix;
		unsigned int length;

		offset = smart_leaf_next_entry(leaf, offset, &suffix, &length);
		if (offset == 0)
			return SMART_CORRUPT;
		if (!all && (suffix[0] < lo || suffix[0] > hi))
			continue;
		status = smart_list_reserve(tree, list, list->count + 1);
		if (status == SMART_OK)
			list->refs[list->count++] = make_ref(tree, leaf, suffix, length);
		if (in_run)
			*sorted = list->count;
	}
	return status;
}

smart_status
smart_list_collect(struct smart_tree *tree, struct smart_list *list, const struct smart_leaf *leaf, unsigned int lo,
				   unsigned int hi)
{
	/* Entries that share a prefix share their first byte. */
	bool all = leaf->prefix_length > 0 || (lo == 0 && hi == 255);
	uint32_t first = list->count;
	uint32_t sorted;
	smart_status status;

	smart_assert(list->count == 0 || list->base == leaf->depth);
	list->base = leaf->depth;
	if (leaf->prefix_length > 0 && (smart_leaf_prefix(leaf)[0] < lo || smart_leaf_prefix(leaf)[0] > hi))
		return SMART_OK;
	status = collect_entries(tree, list, leaf, all, lo, hi, &sorted);
	if (status != SMART_OK)
		return status;
	sort_tail(list, sorted);
	/* In the sorted run there are none; by pointers none is made. */
	if (!tree->direct && list->count > sorted && list->count > first)
		drop_duplicates(tree, list, first);
	return SMART_OK;
}

smart_status
smart_list_add(struct smart_tree *tree, struct smart_list *list, const struct smart_key *key, size_t length)
{
	smart_status status = smart_list_reserve(tree, list, list->count + 1);

	smart_assert(length > list->base);
	if (status != SMART_OK)
		return status;
	list->refs[list->count++] = (struct smart_ref){.head = key->bytes + list->base,
												   .tail = key->bytes + length,
												   .head_length = (uint16_t) (length - list->base)};
	smart_assert(list->count <= list->capacity);
	sort_tail(list, list->count - 1);
	return SMART_OK;
}

void
smart_list_take_out(struct smart_list *list, const struct smart_key *key, size_t length)
{
	uint32_t at = 0;

	smart_assert(list->count > 0);
	while (list->refs[at].tail != key->bytes + length)
		at++;
	list->count--;
	memmove(&list->refs[at], &list->refs[at + 1], (list->count - at) * sizeof(list->refs[0]));
}

smart_status
smart_list_try_add(struct smart_tree *tree, struct smart_list *list, const struct smart_key *key, size_t length,
				   bool *added)
{
	smart_status status = smart_list_add(tree, list, key, length);

	if (status != SMART_OK)
		return status;
	*added = smart_leaf_fits(tree, list, 0, list->count, 0);
	if (!*added)
		smart_list_take_out(list, key, length);
	return SMART_OK;
}

/* The prefix that a leaf of entries [from..to) stores behind skip bytes: a lone entry's would only have to be cut again. */
static unsigned int
leaf_prefix_for(const struct smart_list *list, uint32_t from, uint32_t to, unsigned int skip)
{
	unsigned int common;

	if (to - from < 2)
		return 0;
	/* They ascend: what the first and the last share, all share. */
	common = smart_ref_common(&list->refs[from], &list->refs[to - 1]);
	return common > skip ? common - skip : 0;
}

size_t
smart_leaf_bytes_for(const struct smart_tree *tree, const struct smart_list *list, uint32_t from, uint32_t to,
					 unsigned int skip)
{
	unsigned int prefix = leaf_prefix_for(list, from, to, skip);
	size_t bytes = SMART_LEAF_HEADER_BYTES + prefix + SMART_LEAF_REAR_BYTES;

	if (tree->options.fixed_length != 0 && from < to)
		return bytes + (to - from) * smart_stored_bytes(tree, smart_ref_length(&list->refs[from]) - skip - prefix);
	if (tree->options.value)
		bytes += (to - from) * SMART_VALUE_BYTES;
	for (uint32_t i = from; i < to; i++)
	{
		unsigned int length = smart_ref_length(&list->refs[i]) - skip - prefix;

		bytes += length + smart_length_bytes(length);
	}
	return bytes;
}

size_t
smart_leaf_most(const struct smart_tree *tree, unsigned int prefix)
{
	unsigned int half = tree->options.leaf_size / 2;

	return tree->options.leaf_size + (prefix > half ? prefix - half : 0);
}

bool
smart_leaf_fits(const struct smart_tree *tree, const struct smart_list *list, uint32_t from, uint32_t to,
				unsigned int skip)
{
	size_t most = smart_leaf_most(tree, leaf_prefix_for(list, from, to, skip));

	return to - from < 2 || smart_leaf_bytes_for(tree, list, from, to, skip) <= most;
}

unsigned int
smart_ref_put(uint8_t *target, const struct smart_ref *ref, unsigned int skip)
{
	unsigned int head = skip < ref->head_length ? ref->head_length - skip : 0;
	unsigned int tail_skip = skip > ref->head_length ? skip - ref->head_length : 0;

	if (head > 0)
		smart_copy_short(target, ref->head + skip, head);
	smart_copy_short(target + head, ref->tail + tail_skip, ref->tail_length - tail_skip);
	return head + ref->tail_length - tail_skip;
}

/* Fills a block with entries [from..to); returns the bytes used. */
static unsigned int
put_entries(const struct smart_tree *tree, uint8_t *block, const struct smart_list *list, uint32_t from, uint32_t to,
			unsigned int skip, unsigned int prefix)
{
	unsigned int used = SMART_LEAF_HEADER_BYTES;

	for (unsigned int i = 0; i < prefix; i++)
		block[used++] = (uint8_t) smart_ref_byte(&list->refs[from], skip + i);
	for (uint32_t i = from; i < to; i++)
	{
		if (tree->options.fixed_length == 0)
			used += smart_put_length(block + used, smart_ref_length(&list->refs[i]) - skip - prefix);
		used += smart_ref_put(block + used, &list->refs[i], skip + prefix);
	}
	return used;
}

/* The word of an entry of a list: of a leaf's, or of one that was handed over with its value behind it. */
static uint64_t
value_of(const struct smart_ref *ref)
{
	uint64_t word;

	memcpy(&word, ref->tail + ref->value, sizeof(word));
	if (ref->value == 0)
		word = smart_value_word(word);
	smart_assert(smart_value_written(word) || SMART_FAULT(unwritten));
	return word & ~SMART_VALUE_FROZEN;
}

/* Puts the words of entries [from..to) of the list where they belong in a block whose meta lies at rear. */
static void
put_values(uint8_t *block, unsigned int rear, const struct smart_list *list, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
	{
		uint64_t word = value_of(&list->refs[i]);

		rear -= SMART_VALUE_BYTES;
		memcpy(block + rear, &word, sizeof(word));
	}
}

unsigned int
smart_leaf_units_for(const struct smart_tree *tree, const struct smart_list *list, uint32_t from, uint32_t to,
					 unsigned int skip, size_t reserve)
{
	size_t needed = smart_leaf_bytes_for(tree, list, from, to, skip);
	size_t most = smart_leaf_most(tree, leaf_prefix_for(list, from, to, skip));
	size_t wanted = needed + reserve;

	if (wanted > most)
		wanted = needed > most ? needed : most;
	return (unsigned int) SMART_UNITS_FOR(wanted);
}

smart_status
smart_leaf_build(struct smart_tree *tree, const struct smart_key *key, unsigned int depth, unsigned int lo,
				 unsigned int hi, const struct smart_list *list, uint32_t from, uint32_t to, size_t reserve,
				 smart_slot *link)
{
	unsigned int units = smart_leaf_units_for(tree, list, from, to, depth - list->base, reserve);
	fabric_address address;
	smart_status status;

	if (units > SMART_LEAF_UNITS_MAX)
		return SMART_TOO_LONG;
	status = smart_allocate(tree, SMART_CLASS_LEAF(units), &address);
	if (status != SMART_OK)
		return status;
	return smart_leaf_build_in(tree, key, depth, lo, hi, list, from, to, smart_slot_make_leaf(lo, units, address),
							   tree->born, link);
}

smart_status
smart_leaf_build_in(struct smart_tree *tree, const struct smart_key *key, unsigned int depth, unsigned int lo,
					unsigned int hi, const struct smart_list *list, uint32_t from, uint32_t to, smart_slot room,
					enum smart_block_state state, smart_slot *link)
{
	unsigned int skip = depth - list->base;
	unsigned int prefix = leaf_prefix_for(list, from, to, skip);
	fabric_address address = smart_slot_address(room);
	unsigned int rear = smart_slot_size(room) * SMART_UNIT - SMART_LEAF_REAR_BYTES; /* offset of meta */
	uint8_t *block = tree->build_buffer;
	unsigned int values = tree->options.value ? (to - from) * SMART_VALUE_BYTES : 0;
	unsigned int used;
	uint64_t hash;
	uint64_t header;
	uint64_t meta;
	smart_status status;

	smart_assert(from < to && to <= list->count && depth >= list->base && lo <= hi && hi <= 255);
	smart_assert(smart_slot_is_leaf(room) && !smart_slot_frozen(room));
	hash = smart_prefix_hash(tree, key, depth);
	used = put_entries(tree, block, list, from, to, skip, prefix);
	smart_assert(used + values + SMART_LEAF_REAR_BYTES == smart_leaf_bytes_for(tree, list, from, to, skip));
	smart_assert(used + values <= rear);
	header = smart_leaf_header_make(depth, lo, prefix, used, (uint32_t) (hash >> 45));
	memcpy(block, &header, sizeof(header));
	meta = smart_meta_make(used, state, hi, smart_crc32c((uint32_t) (hash ^ (hash >> 32)), block, used)) |
		   SMART_META_SORTED;
	tree->built_meta = meta;
	*link = smart_slot_with_pk(room, lo);
	/*
	 * Meta is the last word of the block.  A leaf that is almost full goes as one piece, meta included; so does one with
	 * values, since a word that no entry has yet must not look like a value (V4).
	 */
	if (rear - used < SMART_UNIT || values > 0)
	{
		memset(block + used, 0, rear - used);
		if (values > 0)
			put_values(block, rear, list, from, to);
		memcpy(block + rear, &meta, sizeof(meta));
		status = smart_block_write(tree, address, block, rear + sizeof(meta));
	}
	else
	{
		status = smart_block_write(tree, address, block, used);
		if (status == SMART_OK)
			status = smart_block_write(tree, address + rear, &meta, sizeof(meta));
	}
	if (status != SMART_OK)
		smart_retire_slot(tree, *link);
	else if (state != SMART_SEALED)
		smart_post_birth(tree, address + rear, meta);
	return status;
}

smart_status
smart_leaf_build_one(struct smart_tree *tree, const struct smart_key *key, size_t length, unsigned int depth,
					 unsigned int lo, unsigned int hi, size_t reserve, smart_slot *link)
{
	struct smart_ref ref = {.head = key->bytes + depth,
							.tail = key->bytes + length,
							.head_length = (uint16_t) (length - depth)};
	struct smart_list list = {.base = depth, .count = 1, .capacity = 1, .refs = &ref};

	return smart_leaf_build(tree, key, depth, lo, hi, &list, 0, 1, reserve, link);
}
