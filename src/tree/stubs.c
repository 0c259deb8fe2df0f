/*
 * stubs.c
 *	  Stubs of leaves: appends in one round trip.
 *
 * An insert READs a leaf for few things: whether the leaf is the one for the key,
 * whether the key is there, and meta, which tells where the next entry goes and is
 * what the CAS compares.  A stub has all but the second in the compute node's memory, in
 * a tenth of the bytes.  Where a leaf's entries ascend it has the greatest key, too: one
 * above it is not there.  Of any other key the READ tells, which goes with the WRITE
 * and the CAS in one batch: what lies below used is the same before and after them.  So it is
 * known only afterwards whether the key was there; then the leaf has it twice (I7), and
 * the insert has added nothing.
 *
 * A stub is kept true as an answer is (A1-A4).  What it says is changed by a CAS
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

/* READs of a leaf whose CAS has come about, before what they bring is called wrong. */
#define READS_MAX 3

/* A stub, and the leaf that it stands for, as far as it tells. */
struct view
{
	struct smart_stub stub;
	struct smart_leaf leaf;
	unsigned int consumed; /* bytes of the key before the entry's suffix */
	bool above;            /* the key lies above all that are there */
};

bool
smart_stubs_wanted(const struct smart_tree *tree)
{
	return !tree->direct && !tree->options.shared && tree->options.stubs && tree->services->find_stub != NULL;
}

/* Of the leaf whose range begins with lo at depth, for keys that share key's bytes ahead of it, and this prefix from there on. */
static uint64_t
identity_of(const struct smart_tree *tree, const struct smart_key *key, unsigned int depth, unsigned int lo,
			const uint8_t *prefix, unsigned int prefix_length)
{
	return XXH3_64bits_withSeed(prefix, prefix_length, smart_prefix_hash(tree, key, depth) ^ (uint64_t) lo << 56);
}

/* ---- changes of meta ---- */

/* The leaf's meta is about to change: it has no stub from here on. */
struct smart_blocked
smart_stub_block(struct smart_tree *tree, smart_slot link)
{
	if (!tree->stubs)
		return (struct smart_blocked){.gate = SMART_GATE_NONE};
	return tree->services->block_stub(tree->services, link);
}

/* The change has come about, or not; a ticket for a stub of the leaf as it is now, or 0. */
uint64_t
smart_stub_unblock(struct smart_tree *tree, const struct smart_blocked *blocked)
{
	return blocked->gate == SMART_GATE_NONE ? 0 : tree->services->unblock_point(tree->services, blocked);
}

/* ---- making stubs ---- */

static void
put_greatest(struct smart_stub *stub, const uint8_t *rest, unsigned int length)
{
	stub->greatest_length = (uint8_t) (length < sizeof(stub->greatest) ? length : sizeof(stub->greatest));
	memcpy(stub->greatest, rest, stub->greatest_length);
}

/* The last entry's key, if all ascend. */
static void
find_greatest(const struct smart_tree *tree, const struct smart_leaf *leaf, struct smart_stub *stub)
{
	const uint8_t *suffix = NULL;
	unsigned int length = 0;
	unsigned int offset = leaf->start;

	if (leaf->stride != 0 && leaf->used > leaf->start)
		offset = leaf->used - leaf->stride;
	while ((leaf->meta & SMART_META_SORTED) != 0 && offset != 0 && offset < leaf->used)
		offset = smart_leaf_next_entry(leaf, offset, &suffix, &length);
	if (suffix != NULL && length > tree->options.payload)
		put_greatest(stub, suffix, length - tree->options.payload);
}

/*
 * After an append: keeps a stub of the leaf, whose copy holds all entries now that
 * the CAS to `meta` has published.  ticket: of the block around that CAS.
 */
void
smart_stub_keep(struct smart_tree *tree, const struct smart_leaf *before, const struct smart_key *key, uint64_t meta,
				uint64_t ticket)
{
	struct smart_stub stub = {.meta = meta};
	struct smart_leaf leaf;

	if (ticket == 0 || !smart_leaf_parse(tree, before->link, before->block, meta, &leaf))
		return;
	stub.prefix_length = (uint16_t) leaf.prefix_length;
	stub.identity = identity_of(tree, key, leaf.depth, leaf.lo, smart_leaf_prefix(&leaf), leaf.prefix_length);
	find_greatest(tree, &leaf, &stub);
	tree->services->keep_stub(tree->services, leaf.link, &stub, ticket, false);
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

/* Does a key whose bytes behind the leaf's prefix these are lie above all that are there?  false: not for sure. */
static bool
is_above(const struct smart_stub *stub, const uint8_t *rest, unsigned int length)
{
	return stub->greatest_length > 0 &&
		   memcmp(rest, stub->greatest, length < stub->greatest_length ? length : stub->greatest_length) > 0;
}

/*
 * The stub of the leaf that place leads to, if it is the key's leaf and has room for its entry of length bytes.
 * *full: there is a stub, but it says otherwise.
 */
static bool
find(struct smart_tree *tree, const struct smart_place *place, const struct smart_key *key, size_t length,
	 struct view *view, bool *full)
{
	struct smart_stub *stub = &view->stub;
	struct smart_leaf *leaf = &view->leaf;

	*full = tree->services->find_stub(tree->services, place->slot, stub);
	if (!*full)
		return false;
	*leaf = (struct smart_leaf){.address = smart_slot_address(place->slot),
								.link = place->slot,
								.units = smart_slot_size(place->slot),
								.meta = stub->meta,
								.depth = place->depth,
								.lo = smart_slot_pk(place->slot),
								.hi = smart_meta_hi(stub->meta),
								.prefix_length = stub->prefix_length,
								.used = smart_meta_used(stub->meta),
								.state = smart_meta_state(stub->meta)};
	view->consumed = leaf->depth + leaf->prefix_length;
	smart_assert(leaf->state == SMART_LIVE);
	if (key->length <= view->consumed || !smart_leaf_covers(leaf, key) ||
		smart_stored_bytes(tree, (unsigned int) length - view->consumed) > smart_leaf_room(leaf) ||
		identity_of(tree, key, leaf->depth, leaf->lo, key->bytes + leaf->depth, leaf->prefix_length) != stub->identity)
		return false;
	view->above = is_above(stub, key->bytes + view->consumed, key->length - view->consumed);
	return true;
}

/*
 * Was the key there before the append?  The READ of what lay below used is in the leaf's
 * buffer; it goes once more if it does not fit the meta that the CAS has met.
 */
static smart_status
look_back(struct smart_tree *tree, const struct view *view, const struct smart_key *key, bool *there)
{
	const struct smart_leaf *leaf = &view->leaf;
	struct smart_leaf before;
	smart_status status = SMART_OK;

	*there = false;
	if (SMART_FAULT(blindstub))
		return SMART_OK;
	for (int i = 0; i < READS_MAX && status == SMART_OK; i++)
	{
		if (smart_leaf_parse(tree, leaf->link, tree->leaf_buffer, leaf->meta, &before) &&
			smart_leaf_checksum_ok(tree, &before, key))
		{
			*there = smart_leaf_contains(&before, key);
			return SMART_OK;
		}
		status = smart_block_read(tree, leaf->address, tree->leaf_buffer, leaf->used);
	}
	return status == SMART_OK ? SMART_CORRUPT : status;
}

/* C5 under the leaf's local lock, as the stub says; the stub goes on with the entry, unless it was there. */
static smart_status
append(struct smart_tree *tree, struct view *view, const struct smart_key *key, size_t length,
	   enum smart_appended *appended)
{
	const struct smart_leaf *leaf = &view->leaf;
	struct smart_leaf_lock lock = {.leaf = leaf->address};
	unsigned int stored = smart_leaf_put_entry(tree, leaf, tree->build_buffer, key, length);
	uint32_t crc = smart_crc32c(smart_meta_crc(leaf->meta), tree->build_buffer, stored);
	/* What ascends goes on ascending. */
	uint64_t sorted = view->above ? leaf->meta & SMART_META_SORTED : 0;
	uint64_t desired = smart_meta_make(leaf->used + stored, SMART_LIVE, leaf->hi, crc) | sorted;
	struct smart_blocked blocked = smart_stub_block(tree, leaf->link);
	bool published;
	bool there = false;
	smart_status status = smart_leaf_publish_bytes(tree, &lock, leaf, tree->build_buffer, stored, desired,
												   view->above ? NULL : tree->leaf_buffer, &published);
	uint64_t ticket = smart_stub_unblock(tree, &blocked);

	if (status == SMART_OK && published && !view->above)
		status = look_back(tree, view, key, &there);
	if (status != SMART_OK || !published)
		return status;
	*appended = there ? SMART_APPENDED_TWICE : SMART_APPENDED_ADDED;
	if (there || ticket == 0)
		return SMART_OK;
	view->stub.meta = desired;
	if (sorted != 0)
		put_greatest(&view->stub, key->bytes + view->consumed, key->length - view->consumed);
	else
		view->stub.greatest_length = 0;
	tree->services->keep_stub(tree->services, leaf->link, &view->stub, ticket, true);
	return SMART_OK;
}

/*
 * Appends the key's entry of length bytes to the leaf that place leads to, if there is
 * a stub that says that this can be done.  The leaf's local lock is held, so that it
 * stays what the stub says, but for merges.
 */
smart_status
smart_append_by_stub(struct smart_tree *tree, const struct smart_place *place, const struct smart_key *key,
					 size_t length, enum smart_appended *appended)
{
	struct view view;
	bool full;
	bool found = find(tree, place, key, length, &view, &full);

	*appended = full && !found ? SMART_APPENDED_FULL : SMART_APPENDED_NOT;
	return found ? append(tree, &view, key, length, appended) : SMART_OK;
}
