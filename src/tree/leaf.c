/*
 * leaf.c
 *	  Leaves: reading, checking, searching.
 */
#include "tree/internal.h"

/* READs of one leaf that may come torn before the descent turns strict (B2). */
#define TORN_READS_MAX 3

static uint32_t
leaf_checksum(const struct smart_tree *tree, const struct smart_key *key, unsigned int depth, const uint8_t *block,
			  unsigned int used)
{
	uint64_t hash = smart_prefix_hash(tree, key, depth);

	return smart_crc32c((uint32_t) (hash ^ (hash >> 32)), block, used);
}

/*
 * Takes a block apart.  meta was loaded, with acquire, before anything else of
 * the block.  Result: is it a leaf whose parts lie within the block?
 */
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

/* Is this the content that was written for key's prefix in this tree? */
bool
smart_leaf_checksum_ok(const struct smart_tree *tree, const struct smart_leaf *leaf, const struct smart_key *key)
{
	return leaf_checksum(tree, key, leaf->depth, leaf->block, leaf->used) == smart_meta_crc(leaf->meta);
}

/* Takes a copy of the leaf that link leads to apart, as a READ has brought it.  Result: is it whole, and right for key? */
bool
smart_leaf_from_copy(const struct smart_tree *tree, smart_slot link, const uint8_t *copy, const struct smart_key *key,
					 struct smart_leaf *leaf)
{
	uint64_t meta;

	memcpy(&meta, copy + smart_slot_size(link) * SMART_UNIT - SMART_LEAF_REAR_BYTES, sizeof(meta));
	return smart_leaf_parse(tree, link, copy, meta, leaf) &&
		   (SMART_FAULT(torn) || smart_leaf_checksum_ok(tree, leaf, key));
}

typedef smart_status (*read_fn)(struct smart_tree *tree, fabric_address block, void *buffer, size_t length);

static inline smart_status
leaf_read(struct smart_tree *tree, smart_slot link, const struct smart_key *key, uint8_t *buffer,
		  struct smart_leaf *leaf, bool *good, read_fn read)
{
	unsigned int length = smart_slot_size(link) * SMART_UNIT;

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
		smart_status status = read(tree, smart_slot_address(link), buffer, length);

		if (status != SMART_OK)
			return status;
		*good = smart_leaf_from_copy(tree, link, buffer, key, leaf);
	}
	return SMART_OK;
}

/*
 * Reads the leaf that link leads to.  *good: its parts make sense, and on a
 * remote provider its checksum is right for key.  In place on a direct
 * provider: meta is loaded with acquire, so that all bytes below used, which
 * never change (I4), are visible.
 */
smart_status
smart_leaf_read(struct smart_tree *tree, smart_slot link, const struct smart_key *key, uint8_t *buffer,
				struct smart_leaf *leaf, bool *good)
{
	return leaf_read(tree, link, key, buffer, leaf, good, smart_leaf_read_together);
}

smart_status
smart_leaf_read_alone(struct smart_tree *tree, smart_slot link, const struct smart_key *key, uint8_t *buffer,
					  struct smart_leaf *leaf, bool *good)
{
	return leaf_read(tree, link, key, buffer, leaf, good, smart_block_read);
}

/* Does the leaf answer for key's byte?  Its prefix before depth has been proved otherwise. */
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

/*
 * The entry at offset: its suffix and that suffix's length.  Returns the offset
 * of the next one; 0: the leaf is malformed.
 */
unsigned int
smart_leaf_next_entry(const struct smart_leaf *leaf, unsigned int offset, const uint8_t **suffix, unsigned int *length)
{
	const uint8_t *bytes = leaf->block + offset;
	unsigned int head = 0;
	unsigned int size = leaf->stride;

	if (size == 0)
	{
		head = bytes[0] < 0x80 ? 1 : 2;
		size = head == 1 ? bytes[0] : ((bytes[0] & 0x7fu) << 8) | bytes[1];
	}
	if (smart_unlikely(size == 0 || offset + head + size > leaf->used))
		return 0;
	*suffix = bytes + head;
	*length = size;
	return offset + head + size;
}

/*
 * Order of an entry (whose prefix is known to match) and a key: an entry that
 * begins with all of a complete key equals it; against a bound, padding counts.
 */
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

/* Offset of the first entry of the sorted run that is not below key; fixed-length suffixes only. */
unsigned int
smart_leaf_lower_bound(const struct smart_leaf *leaf, const struct smart_key *key)
{
	unsigned int low = 0;
	unsigned int count = (leaf->sorted_end - leaf->start) / leaf->stride;

	smart_assert(leaf->stride != 0);
	while (count > 0)
	{
		unsigned int half = count / 2;
		const uint8_t *middle = leaf->block + leaf->start + (low + half) * leaf->stride;

		if (smart_leaf_compare(leaf, middle, leaf->stride, key) < 0)
		{
			low += half + 1;
			count -= half + 1;
		}
		else
			count = half;
	}
	return leaf->start + low * leaf->stride;
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

/*
 * Do all entries ascend, and does the key, which shares the leaf's prefix, lie
 * above the last one?  Told for suffixes of one length only.
 */
bool
smart_leaf_ends_below(const struct smart_leaf *leaf, const struct smart_key *key)
{
	return leaf->stride != 0 && leaf->sorted_end == leaf->used && leaf->used > leaf->start &&
		   smart_leaf_compare(leaf, leaf->block + leaf->used - leaf->stride, leaf->stride, key) < 0;
}

/* Is a complete key among the leaf's entries, in range or not? */
bool
smart_leaf_contains(const struct smart_leaf *leaf, const struct smart_key *key)
{
	unsigned int offset = leaf->start;

	smart_assert(key->pad == 0);
	if (!smart_leaf_prefix_matches(leaf, key) || key->length <= leaf->depth + leaf->prefix_length)
		return false;
	if (leaf->stride != 0)
	{
		offset = smart_leaf_lower_bound(leaf, key);
		if (offset < leaf->sorted_end && smart_leaf_compare(leaf, leaf->block + offset, leaf->stride, key) == 0)
			return true;
		offset = leaf->sorted_end;
	}
	return appended_contains(leaf, key, offset);
}

/* ACTIVATE: new -> live, for a leaf that this operation linked or saw linked in a strict descent. */
smart_status
smart_leaf_activate(struct smart_tree *tree, const struct smart_leaf *leaf)
{
	uint64_t seen;

	smart_assert(leaf->state == SMART_NEW);
	/* Losing means that somebody else activated it, and perhaps changed it since. */
	return smart_word_cas(tree, smart_leaf_meta_address(leaf->address, leaf->units), leaf->meta,
						  smart_meta_with_state(leaf->meta, SMART_LIVE), &seen);
}

static uint64_t
live_meta(uint64_t meta)
{
	return smart_meta_with_state(meta, SMART_LIVE);
}

/*
 * ACTIVATE for a block that this operation has just linked: on a remote provider
 * with its next batch, by the value that it wrote.
 */
smart_status
smart_slot_activate(struct smart_tree *tree, smart_slot link)
{
	bool node = smart_slot_is_node(link);
	fabric_address word;
	uint64_t meta;
	uint64_t seen;
	bool known = false;
	smart_status status = SMART_OK;

	if (smart_slot_is_empty(link))
		return SMART_OK;
	word = node ? smart_slot_address(link) : smart_leaf_meta_address(smart_slot_address(link), smart_slot_size(link));
	if (!tree->direct && tree->born == SMART_NEW)
		status = smart_post_activation(tree, word, node ? smart_node_live : live_meta, &known);
	if (status != SMART_OK || known)
		return status;
	if (node)
		return smart_node_activate(tree, word);
	status = smart_word_read(tree, word, &meta);
	if (status != SMART_OK || smart_meta_state(meta) != SMART_NEW)
		return status;
	return smart_word_cas(tree, word, meta, live_meta(meta), &seen);
}
