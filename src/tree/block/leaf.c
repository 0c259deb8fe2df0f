/*
 * leaf.c
 *	  Leaves: reading, checking, searching.
 */
#include "tree/block/access.h"
#include "tree/block/leaf.h"

/* READs of one leaf that may come torn before the descent turns strict (B2). */
#define TORN_READS_MAX 3

bool
smart_leaf_parse(const struct smart_tree *tree, smart_slot link, const uint8_t *block, uint64_t meta,
				 struct smart_leaf *leaf)
{
	unsigned int length = smart_slot_size(link) * SMART_UNIT;
	unsigned int fixed = tree->options.fixed_length;

	leaf->address = smart_slot_address(link);
	leaf->link = link;
	leaf->units = smart_slot_size(link);
	leaf->block = block;
	leaf->header = *(const uint64_t *) (const void *) block;
	leaf->meta = meta;
	leaf->depth = smart_leaf_depth(leaf->header);
	leaf->lo = smart_leaf_lo(leaf->header);
	leaf->hi = smart_meta_hi(meta);
	leaf->prefix_length = smart_leaf_prefix_length(leaf->header);
	leaf->start = SMART_LEAF_HEADER_BYTES + leaf->prefix_length;
	leaf->sorted_end = smart_leaf_sorted_end(leaf->header);
	leaf->used = smart_meta_used(meta);
	if ((meta & SMART_META_SORTED) != 0)
		leaf->sorted_end = leaf->used;
	leaf->state = smart_meta_state(meta);
	leaf->stride = fixed == 0 ? 0 : fixed - leaf->depth - leaf->prefix_length;
	if (leaf->state < SMART_NEW || leaf->state > SMART_SEALED)
		return false;
	if (fixed != 0 && leaf->depth + leaf->prefix_length >= fixed)
		return false;
	return leaf->start <= leaf->sorted_end && leaf->sorted_end <= leaf->used &&
		   leaf->used + SMART_LEAF_REAR_BYTES <= length;
}

bool
smart_leaf_checksum_ok(const struct smart_tree *tree, const struct smart_leaf *leaf, const struct smart_key *key)
{
	uint64_t hash = smart_prefix_hash(tree, key, leaf->depth);

	return smart_crc32c((uint32_t) (hash ^ (hash >> 32)), leaf->block, leaf->used) == smart_meta_crc(leaf->meta);
}

unsigned int
smart_leaf_entries(const struct smart_leaf *leaf)
{
	unsigned int offset = leaf->start;
	unsigned int entries = 0;
	const uint8_t *suffix;
	unsigned int length;

	smart_assert(leaf->used >= leaf->start);
	if (leaf->stride != 0)
		return (leaf->used - leaf->start) / leaf->stride;
	for (; offset != 0 && offset < leaf->used; entries++)
		offset = smart_leaf_next_entry(leaf, offset, &suffix, &length);
	return entries;
}

unsigned int
smart_leaf_number(const struct smart_leaf *leaf, const uint8_t *suffix)
{
	unsigned int number = 0;
	const uint8_t *at;
	unsigned int length;
	unsigned int offset;

	if (leaf->stride != 0)
		return ((unsigned int) (suffix - leaf->block) - leaf->start) / leaf->stride;
	offset = smart_leaf_next_entry(leaf, leaf->start, &at, &length);
	while (offset != 0 && at != suffix)
	{
		number += !SMART_FAULT(miscounted) || at[0] <= leaf->hi;
		offset = smart_leaf_next_entry(leaf, offset, &at, &length);
	}
	smart_assert(offset != 0);
	return number;
}

/* V4: is there a word for each entry in the block, and do the copy's words hold values?  Else the copy is torn. */
static bool
has_values(const struct smart_leaf *leaf)
{
	unsigned int entries = smart_leaf_entries(leaf);

	if (leaf->used + entries * SMART_VALUE_BYTES + SMART_LEAF_REAR_BYTES > leaf->units * SMART_UNIT)
		return false;
	for (unsigned int entry = 0; entry < entries && !SMART_FAULT(unwritten); entry++)
	{
		if (!smart_value_written(smart_value_at(leaf, entry)))
			return false;
	}
	return true;
}

bool
smart_leaf_from_copy(const struct smart_tree *tree, smart_slot link, const uint8_t *copy, const struct smart_key *key,
					 struct smart_leaf *leaf)
{
	uint64_t meta;

	memcpy(&meta, copy + smart_slot_size(link) * SMART_UNIT - SMART_LEAF_REAR_BYTES, sizeof(meta));
	return smart_leaf_parse(tree, link, copy, meta, leaf) &&
		   (SMART_FAULT(torn) || smart_leaf_checksum_ok(tree, leaf, key)) && (!tree->options.value || has_values(leaf));
}

bool
smart_leaf_has_open_promise(const struct smart_tree *tree, const struct smart_leaf *leaf)
{
	struct smart_leaf parsed;

	return smart_meta_promised(leaf->meta) > 0 && smart_meta_state(leaf->meta) == SMART_LIVE &&
		   smart_leaf_parse(tree, leaf->link, leaf->block, leaf->meta, &parsed) && parsed.stride > 0 &&
		   parsed.used - parsed.start >= smart_meta_promised(parsed.meta) * parsed.stride;
}

/*
 * Read delegation: one of those that want the leaf READs, after all of them have asked.  What is
 * delivered was READ after this call began, as by a READ of this client's own, so it may be used for
 * whatever such a READ may be used for.
 */
smart_status
smart_leaf_read_together(struct smart_tree *tree, fabric_address leaf, void *buffer, size_t length, bool *delivered)
{
	struct smart_services *services = tree->services;
	enum smart_delegation delegation = SMART_READ_ALONE;
	smart_status status = SMART_OK;

	smart_assert(!tree->direct);
	/* What waits to be posted changes blocks that this operation may look at: it goes ahead of the READ. */
	if (services->read_begin != NULL && !tree->leads && !smart_post_waits(tree))
		status = services->read_begin(services, leaf, buffer, (uint32_t) length, &delegation);
	*delivered = status == SMART_OK && delegation == SMART_READ_DELIVERED;
	if (status != SMART_OK || *delivered)
		return status;
	status = smart_block_read(tree, leaf, buffer, length);
	if (delegation == SMART_READ_LEADS)
		services->read_end(services, status == SMART_OK ? buffer : NULL, (uint32_t) length);
	return status;
}

/* A5: what was READ since the leaf's copy was asked for, and no other leaf's. */
static void
keep_copy(struct smart_tree *tree, const struct smart_leaf *leaf)
{
	if (tree->copies && tree->asked_link == leaf->link && tree->asked_ticket != 0 && leaf->state == SMART_LIVE)
		tree->services->keep_leaf(tree->services, tree->cached_as, leaf->link, leaf->block, leaf->meta,
								  tree->asked_ticket, SMART_KEEP_READ);
}

static inline smart_status
leaf_read(struct smart_tree *tree, smart_slot link, const struct smart_key *key, uint8_t *buffer,
		  struct smart_leaf *leaf, bool *good, bool together)
{
	unsigned int length = smart_slot_size(link) * SMART_UNIT;
	bool delivered = !together;

	smart_assert(smart_slot_is_leaf(link));
	*good = false;
	if (tree->direct)
	{
		const uint8_t *block = fabric_direct(tree->fabric, smart_slot_address(link), length);

		if (block == NULL)
			return SMART_CORRUPT;
		*good = smart_leaf_parse(tree, link, block,
								 smart_load_acquire(
									 (const uint64_t *) (const void *) (block + length - SMART_LEAF_REAR_BYTES)),
								 leaf);
		return *good ? SMART_OK : SMART_CORRUPT;
	}
	for (int i = 0; i < TORN_READS_MAX && !*good; i++)
	{
		smart_status status = together
								  ? smart_leaf_read_together(tree, smart_slot_address(link), buffer, length, &delivered)
								  : smart_block_read(tree, smart_slot_address(link), buffer, length);

		if (status != SMART_OK)
			return status;
		*good = smart_leaf_from_copy(tree, link, buffer, key, leaf);
		/* Who has READ for others keeps it for them, too. */
		if (*good && !delivered)
			keep_copy(tree, leaf);
		/* Who is going to append waits for it as for a lock. */
		if (!*good && !together && smart_leaf_has_open_promise(tree, leaf))
			break;
	}
	return SMART_OK;
}

smart_status
smart_leaf_read(struct smart_tree *tree, smart_slot link, const struct smart_key *key, uint8_t *buffer,
				struct smart_leaf *leaf, bool *good)
{
	return leaf_read(tree, link, key, buffer, leaf, good, true);
}

smart_status
smart_leaf_read_alone(struct smart_tree *tree, smart_slot link, const struct smart_key *key, uint8_t *buffer,
					  struct smart_leaf *leaf, bool *good)
{
	return leaf_read(tree, link, key, buffer, leaf, good, false);
}

bool
smart_leaf_covers(const struct smart_leaf *leaf, const struct smart_key *key)
{
	unsigned int byte = smart_key_byte(key, leaf->depth);

	return leaf->lo <= byte && byte <= leaf->hi;
}

bool
smart_leaf_prefix_matches(const struct smart_leaf *leaf, const struct smart_key *key)
{
	const uint8_t *prefix = smart_leaf_prefix(leaf);

	if (leaf->depth + leaf->prefix_length <= key->length)
		return leaf->prefix_length == 0 || memcmp(prefix, key->bytes + leaf->depth, leaf->prefix_length) == 0;
	for (unsigned int i = 0; i < leaf->prefix_length; i++)
	{
		if (prefix[i] != smart_key_byte(key, leaf->depth + i))
			return false;
	}
	return true;
}

int
smart_leaf_compare(const struct smart_leaf *leaf, const uint8_t *suffix, unsigned int length,
				   const struct smart_key *key)
{
	unsigned int consumed = leaf->depth + leaf->prefix_length;
	unsigned int rest = key->length > consumed ? key->length - consumed : 0;
	int order;

	if (length >= rest)
	{
		order = smart_compare_equal_length(suffix, key->bytes + consumed, rest);
		if (order != 0 || key->pad == 0)
			return order;
		return length > rest ? -1 : 0;
	}
	order = smart_compare_equal_length(suffix, key->bytes + consumed, length);
	return order != 0 ? order : -1;
}

/* Is rest among the entries of one length from offset on?  Their last bytes, where TIDs differ, are compared first. */
static bool
strided_contains(const struct smart_leaf *leaf, const uint8_t *rest, unsigned int rest_length, unsigned int offset)
{
	const uint8_t *entry = leaf->block + offset;
	const uint8_t *end = leaf->block + leaf->used;
	unsigned int last = rest_length - (unsigned int) sizeof(uint32_t);
	uint32_t wanted = 0;

	if (rest_length >= sizeof(uint32_t))
		wanted = smart_load_be32(rest + last);
	for (; entry < end; entry += leaf->stride)
	{
		if (rest_length >= sizeof(uint32_t) && smart_load_be32(entry + last) != wanted)
			continue;
		if (smart_compare_equal_length(entry, rest, rest_length) == 0)
			return true;
	}
	return false;
}

/* Is the key among the entries behind the sorted run? */
static bool
appended_contains(const struct smart_leaf *leaf, const struct smart_key *key, unsigned int offset)
{
	unsigned int consumed = leaf->depth + leaf->prefix_length;
	const uint8_t *rest = key->bytes + consumed;
	unsigned int rest_length = key->length - consumed;

	if (leaf->stride != 0)
		return strided_contains(leaf, rest, rest_length, offset);
	while (offset != 0 && offset < leaf->used)
	{
		const uint8_t *suffix;
		unsigned int length;

		offset = smart_leaf_next_entry(leaf, offset, &suffix, &length);
		if (offset != 0 && length >= rest_length && smart_equal_bytes(suffix, rest, rest_length))
			return true;
	}
	return false;
}

bool
smart_leaf_ends_below(const struct smart_leaf *leaf, const struct smart_key *key)
{
	return leaf->stride != 0 && leaf->sorted_end == leaf->used && leaf->used > leaf->start &&
		   smart_leaf_compare(leaf, leaf->block + leaf->used - leaf->stride, leaf->stride, key) < 0;
}

bool
smart_leaf_contains(const struct smart_leaf *leaf, const struct smart_key *key)
{
	unsigned int consumed = leaf->depth + leaf->prefix_length;
	unsigned int offset = leaf->start;

	smart_assert(key->pad == 0);
	if (!smart_leaf_prefix_matches(leaf, key) || key->length <= consumed)
		return false;
	if (leaf->stride != 0)
	{
		offset = smart_leaf_lower_bound(leaf, key->bytes + consumed, key->length - consumed);
		if (offset < leaf->sorted_end && smart_leaf_compare(leaf, leaf->block + offset, leaf->stride, key) == 0)
			return true;
		offset = leaf->sorted_end;
	}
	return appended_contains(leaf, key, offset);
}

smart_status
smart_leaf_activate(struct smart_tree *tree, const struct smart_leaf *leaf)
{
	uint64_t seen;

	smart_assert(tree->entered && leaf->state == SMART_NEW && smart_meta_state(leaf->meta) == SMART_NEW);
	/* Losing means that another client activated it, and perhaps changed it since. */
	return smart_word_cas(tree, smart_leaf_meta_address(leaf->address, leaf->units), leaf->meta,
						  smart_meta_with_state(leaf->meta, SMART_LIVE), &seen);
}
