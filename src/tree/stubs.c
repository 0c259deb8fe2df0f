/*
 * stubs.c
 *	  Stubs of leaves: appends in one round trip.
 *
 * An insert READs a leaf for few things: whether the leaf is the one for the key,
 * whether the key is there, and meta, which tells where the next entry goes and is
 * what the CAS compares.  A stub has all of it in the compute node's memory, in a
 * fifth of the bytes.  It has the greatest key: one above it is not there.  And if
 * there is room it has a fingerprint of each key: one that is not among them
 * proves that the key is not.
 *
 * A stub is kept as an answer (A1-A3) of which the leaf's address and length are the
 * point.  What it says is changed by a CAS
 * on meta, or by the leaf's end, which begins with one (SEAL); whoever posts one blocks the
 * stub.  So a stub that is found under the leaf's local lock, within an epoch, tells
 * of a leaf that was live at that moment, and its `used` stays true until the lock is
 * let go, since only the lock's holder appends (I4).  If the leaf is sealed meanwhile
 * by a merge, which has no lock, the entry's bytes land above used, where nobody
 * looks, in a block that is not used again within the epoch; and the CAS is lost.
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "tree/internal.h"

#define POINT_LENGTH (8 + SMART_POINT_STUB)
#define STUB_MAX     (SMART_ANSWER_BYTES_MAX - 8)

typedef uint16_t fingerprint;

/* Ahead of the leaf's prefix, the greatest key behind that prefix, and the fingerprints. */
struct stub_head
{
	uint64_t prefix; /* hash of the key's bytes before the leaf's depth */
	uint64_t header;
	uint64_t meta;
	uint8_t greatest; /* bytes */
	bool complete;    /* there is a fingerprint of each key */
	uint8_t unused[6];
};

/* A stub and the leaf that it stands for, without its entries. */
struct stub
{
	struct smart_answer answer;
	struct stub_head head;
	struct smart_leaf leaf;
};

static inline uint64_t
point_of(smart_slot link)
{
	return smart_slot_with_pk(link, 0) & ~SMART_SLOT_FROZEN;
}

bool
smart_stubs_wanted(const struct smart_tree *tree)
{
	return !tree->direct && !tree->options.shared && tree->options.stubs && tree->services->find_answer != NULL;
}

/* Of a key's bytes behind the leaf's prefix. */
static inline fingerprint
make_fingerprint(const uint8_t *bytes, unsigned int length)
{
	return (fingerprint) XXH3_64bits(bytes, length);
}

/* ---- changes of meta ---- */

/* The leaf's meta is about to change: it has no stub from here on. */
struct smart_blocked
smart_stub_block(struct smart_tree *tree, smart_slot link)
{
	uint64_t point = point_of(link);

	if (!tree->stubs)
		return (struct smart_blocked){.gate = SMART_GATE_NONE};
	return tree->services->block_point(tree->services, tree->options.id, (const uint8_t *) &point, POINT_LENGTH);
}

/* The change has come about, or not; a ticket for a stub of the leaf as it is now, or 0. */
uint64_t
smart_stub_unblock(struct smart_tree *tree, const struct smart_blocked *blocked)
{
	return blocked->gate == SMART_GATE_NONE ? 0 : tree->services->unblock_point(tree->services, blocked);
}

/* ---- making stubs ---- */

static void
keep(struct smart_tree *tree, smart_slot link, const struct smart_answer *answer)
{
	uint64_t point = point_of(link);

	tree->services->keep_answer(tree->services, tree->options.id, (const uint8_t *) &point, POINT_LENGTH, answer);
}

static bool
put(struct smart_answer *answer, const void *bytes, unsigned int length)
{
	if (answer->length + length > STUB_MAX)
		return false;
	memcpy(answer->tails + answer->length, bytes, length);
	answer->length += length;
	return true;
}

/* Order of two keys' bytes behind the prefix; neither is a prefix of the other. */
static int
compare(const uint8_t *a, unsigned int a_length, const uint8_t *b, unsigned int b_length)
{
	return memcmp(a, b, a_length < b_length ? a_length : b_length);
}

/* The greatest key; false: malformed, or there is none. */
static bool
find_greatest(const struct smart_tree *tree, const struct smart_leaf *leaf, const uint8_t **greatest,
			  unsigned int *greatest_length)
{
	const uint8_t *suffix;
	unsigned int length;

	*greatest = NULL;
	for (unsigned int offset = leaf->start; offset < leaf->used;)
	{
		offset = smart_leaf_next_entry(leaf, offset, &suffix, &length);
		if (offset == 0 || length <= tree->options.payload)
			return false;
		length -= tree->options.payload;
		if (*greatest == NULL || compare(suffix, length, *greatest, *greatest_length) > 0)
			*greatest = suffix, *greatest_length = length;
	}
	return *greatest != NULL;
}

/* A fingerprint of each key; false: they find no room. */
static bool
put_fingerprints(const struct smart_tree *tree, struct smart_answer *answer, const struct smart_leaf *leaf)
{
	unsigned int before = answer->length;

	for (unsigned int offset = leaf->start; offset < leaf->used;)
	{
		const uint8_t *suffix;
		unsigned int length;
		fingerprint value;

		offset = smart_leaf_next_entry(leaf, offset, &suffix, &length);
		value = make_fingerprint(suffix, length - tree->options.payload);
		if (put(answer, &value, sizeof(value)))
			continue;
		answer->length = before;
		return false;
	}
	return true;
}

/*
 * After an append: keeps a stub of the leaf, whose copy holds all entries now that
 * the CAS to `meta` has published.  ticket: of the block around that CAS.
 */
void
smart_stub_keep(struct smart_tree *tree, const struct smart_leaf *before, const struct smart_key *key, uint64_t meta,
				uint64_t ticket)
{
	struct smart_answer answer = {.ticket = ticket, .hot = false};
	struct stub_head head = {.meta = meta};
	struct smart_leaf leaf;
	const uint8_t *greatest;
	unsigned int length;

	if (ticket == 0 || !smart_leaf_parse(tree, before->link, before->block, meta, &leaf) ||
		!find_greatest(tree, &leaf, &greatest, &length) || sizeof(head) + leaf.prefix_length + length > STUB_MAX)
		return;
	head.prefix = smart_prefix_hash(tree, key, leaf.depth);
	head.header = leaf.header;
	head.greatest = (uint8_t) length;
	answer.length = (unsigned int) sizeof(head);
	put(&answer, smart_leaf_prefix(&leaf), leaf.prefix_length);
	put(&answer, greatest, length);
	head.complete = put_fingerprints(tree, &answer, &leaf);
	memcpy(answer.tails, &head, sizeof(head));
	keep(tree, leaf.link, &answer);
}

/*
 * Keeps a stub of the leaf that was made last and is linked now, live as it soon will be:
 * until then the CAS of who appends by the stub fails.  blocked: of this leaf, since
 * before it was linked.
 */
void
smart_stub_begin(struct smart_tree *tree, smart_slot link, const struct smart_key *key, struct smart_blocked *blocked)
{
	struct smart_leaf leaf = {.link = link, .block = tree->build_buffer};

	smart_stub_keep(tree, &leaf, key, smart_meta_with_state(tree->built_meta, SMART_LIVE),
					smart_stub_unblock(tree, blocked));
}

/* ---- using stubs ---- */

/* The stub of the leaf that link leads to; false: there is none. */
static bool
find(struct smart_tree *tree, smart_slot link, struct stub *stub)
{
	uint64_t point = point_of(link);
	struct smart_leaf *leaf = &stub->leaf;
	struct stub_head *head = &stub->head;

	if (!tree->services->find_answer(tree->services, tree->options.id, (const uint8_t *) &point, POINT_LENGTH,
									 &stub->answer))
		return false;
	memcpy(head, stub->answer.tails, sizeof(*head));
	*leaf = (struct smart_leaf){.address = smart_slot_address(link),
								.link = link,
								.units = smart_slot_size(link),
								.header = head->header,
								.meta = head->meta,
								.depth = smart_leaf_depth(head->header),
								.lo = smart_leaf_lo(head->header),
								.hi = smart_meta_hi(head->meta),
								.prefix_length = smart_leaf_prefix_length(head->header),
								.used = smart_meta_used(head->meta),
								.state = smart_meta_state(head->meta)};
	leaf->start = SMART_LEAF_HEADER_BYTES + leaf->prefix_length;
	smart_assert(leaf->state == SMART_LIVE &&
				 sizeof(*head) + leaf->prefix_length + head->greatest <= stub->answer.length);
	return true;
}

/* The greatest key's bytes behind the prefix. */
static uint8_t *
greatest_of(struct stub *stub)
{
	return stub->answer.tails + sizeof(struct stub_head) + stub->leaf.prefix_length;
}

static bool
is_above(struct stub *stub, const uint8_t *rest, unsigned int length)
{
	return compare(rest, length, greatest_of(stub), stub->head.greatest) > 0;
}

/* Is a key, of which rest is what follows the leaf's prefix, certainly not there? */
static bool
lacks(struct stub *stub, const uint8_t *rest, unsigned int length)
{
	const uint8_t *end = stub->answer.tails + stub->answer.length;
	fingerprint mine;

	if (is_above(stub, rest, length) || SMART_FAULT(blindstub))
		return true;
	if (!stub->head.complete)
		return false;
	mine = make_fingerprint(rest, length);
	for (const uint8_t *other = greatest_of(stub) + stub->head.greatest; other < end; other += sizeof(mine))
	{
		if (memcmp(other, &mine, sizeof(mine)) == 0)
			return false;
	}
	return true;
}

/* Is it the key's leaf, has it room, and is the key certainly not there? */
static bool
takes(const struct smart_tree *tree, struct stub *stub, const struct smart_place *place, const struct smart_key *key,
	  size_t length)
{
	const struct smart_leaf *leaf = &stub->leaf;
	unsigned int consumed = leaf->depth + leaf->prefix_length;

	return leaf->depth == place->depth && key->length > consumed && smart_leaf_covers(leaf, key) &&
		   memcmp(stub->answer.tails + sizeof(struct stub_head), key->bytes + leaf->depth, leaf->prefix_length) == 0 &&
		   smart_stored_bytes(tree, (unsigned int) length - consumed) <= smart_leaf_room(leaf) &&
		   smart_prefix_hash(tree, key, leaf->depth) == stub->head.prefix &&
		   lacks(stub, key->bytes + consumed, key->length - consumed);
}

/* Another greatest key: what follows it moves. */
static bool
replace_greatest(struct stub *stub, const uint8_t *rest, unsigned int length)
{
	struct smart_answer *answer = &stub->answer;
	uint8_t *greatest = greatest_of(stub);
	unsigned int behind = (unsigned int) (answer->tails + answer->length - (greatest + stub->head.greatest));

	if (answer->length - stub->head.greatest + length > STUB_MAX)
		return false;
	memmove(greatest + length, greatest + stub->head.greatest, behind);
	memcpy(greatest, rest, length);
	answer->length += length - stub->head.greatest;
	stub->head.greatest = (uint8_t) length;
	return true;
}

/* Keeps the stub with the entry that was appended. */
static void
renew(struct smart_tree *tree, struct stub *stub, const struct smart_key *key, uint64_t meta)
{
	struct smart_answer *answer = &stub->answer;
	unsigned int consumed = stub->leaf.depth + stub->leaf.prefix_length;
	const uint8_t *rest = key->bytes + consumed;
	unsigned int length = key->length - consumed;
	fingerprint value = make_fingerprint(rest, length);

	stub->head.meta = meta;
	if (stub->head.complete && !put(answer, &value, sizeof(value)))
	{
		answer->length = (unsigned int) (greatest_of(stub) + stub->head.greatest - answer->tails);
		stub->head.complete = false;
	}
	if (is_above(stub, rest, length) && !replace_greatest(stub, rest, length))
		return;
	memcpy(answer->tails, &stub->head, sizeof(stub->head));
	keep(tree, stub->leaf.link, answer);
}

/* C5 under the leaf's local lock, as the stub says; the stub goes on with the entry. */
static smart_status
append(struct smart_tree *tree, struct stub *stub, const struct smart_key *key, size_t length, bool *appended)
{
	const struct smart_leaf *leaf = &stub->leaf;
	unsigned int consumed = leaf->depth + leaf->prefix_length;
	struct smart_leaf_lock lock = {.leaf = leaf->address};
	unsigned int stored = smart_leaf_put_entry(tree, leaf, tree->build_buffer, key, length);
	uint32_t crc = smart_crc32c(smart_meta_crc(leaf->meta), tree->build_buffer, stored);
	/* What ascends goes on ascending. */
	uint64_t sorted =
		is_above(stub, key->bytes + consumed, key->length - consumed) ? leaf->meta & SMART_META_SORTED : 0;
	uint64_t desired = smart_meta_make(leaf->used + stored, SMART_LIVE, leaf->hi, crc) | sorted;
	struct smart_blocked blocked = smart_stub_block(tree, leaf->link);
	smart_status status = smart_leaf_publish_bytes(tree, &lock, leaf, tree->build_buffer, stored, desired, appended);

	stub->answer.ticket = smart_stub_unblock(tree, &blocked);
	if (status == SMART_OK && *appended && stub->answer.ticket != 0)
		renew(tree, stub, key, desired);
	return status;
}

/*
 * Appends the key's entry of length bytes to the leaf that place leads to, if there is
 * a stub that says that this can be done.  *appended false: nothing was done.
 */
smart_status
smart_append_by_stub(struct smart_tree *tree, const struct smart_place *place, const struct smart_key *key,
					 size_t length, bool *appended)
{
	struct smart_services *services = tree->services;
	fabric_address address = smart_slot_address(place->slot);
	struct stub stub;
	smart_status status;

	*appended = false;
	if (!find(tree, place->slot, &stub) || !takes(tree, &stub, place, key, length))
		return SMART_OK;
	status = services->lock_leaf(services, address);
	if (status != SMART_OK)
		return status;
	/* Now it stays what it is, but for merges. */
	if (find(tree, place->slot, &stub) && takes(tree, &stub, place, key, length))
		status = append(tree, &stub, key, length, appended);
	services->unlock_leaf(services, address);
	return status;
}
