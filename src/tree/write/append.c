/*
 * append.c
 *	  C5: an entry is written at the end of a leaf, whose lock is held, and published
 *	  by one CAS of meta.
 *
 * By pointers the entry is copied into the leaf, and the CAS follows; with those behind it in a call for many (many.c) that
 * belong into the same leaf.  On a remote provider WRITE and CAS are one batch.  In shared mode the CAS unlocks, too.  There
 * are two ways:
 *
 * Together (write combining): the holder of the leaf's lock appends, with its own entry,
 * those that other clients of the compute node handed in while they waited for the lock.
 * All go by one WRITE at used.  An entry is looked for in the leaf, and among those in
 * front of it.  That its key was there may be told only if the CAS came about: it proves
 * that the leaf, as it was read, was the authority for the key after the entry had been
 * handed in.  What an entry must be like is what its owner would have had to find
 * (C3, C5): the key shares the bytes before the leaf's depth with the holder's, so that
 * the checksum speaks for it, too; it lies within lo..hi, shares the leaf's prefix, and
 * finds room.
 *
 * By a promise (C5a), in shared mode: the CAS of meta comes first, without a lock, and the entries' bytes follow.
 *
 * By a leaf hint (A4): what the hint says stands for the READ of the leaf, so that the
 * insert takes one round trip.  If the key does not lie above all entries, the READ of
 * what lies below used goes along in the same batch; those bytes are the same before and
 * after it.  So it is known only afterwards whether the key was there; then the leaf has
 * it twice (I7), and the insert has added nothing.
 */
#include "tree/block/access.h"
#include "tree/block/copies.h"
#include "tree/block/lock.h"
#include "tree/block/promise.h"
#include "tree/block/values.h"
#include "tree/cached/hints.h"
#include "tree/write/append.h"

/* Entries that are taken along, at most. */
#define TAKEN_MAX 64

/* READs of a leaf whose CAS has come about, before what they bring is called wrong. */
#define READS_MAX 3

smart_status
smart_leaf_lock_or_combine(struct smart_tree *tree, smart_slot link, const struct smart_key *key, size_t length,
						   enum smart_combined *combined)
{
	struct smart_services *services = tree->services;
	struct smart_handed entry = {.tree = tree->options.id,
								 .bytes = key->bytes,
								 .key_length = key->length,
								 .length = (uint32_t) length + (tree->options.value ? SMART_VALUE_BYTES : 0)};
	smart_status status;

	smart_assert(tree->entered && tree->locked == 0);
	*combined = SMART_COMBINED_NOT;
	if (services->lock_or_combine == NULL)
		return smart_lock_local(tree, link);
	status = services->lock_or_combine(services, smart_slot_address(link), &entry, combined);
	if (status == SMART_OK && *combined != SMART_COMBINED_ADDED && *combined != SMART_COMBINED_THERE)
		tree->locked = smart_slot_address(link);
	return status;
}

/* The key's entry of length bytes as it stands in the leaf; its bytes there. */
static unsigned int
put_entry(const struct smart_tree *tree, const struct smart_leaf *leaf, uint8_t *target, const struct smart_key *key,
		  size_t length)
{
	unsigned int consumed = leaf->depth + leaf->prefix_length;
	unsigned int suffix = (unsigned int) length - consumed;
	unsigned int head = tree->options.fixed_length == 0 ? smart_put_length(target, suffix) : 0;

	smart_assert(length > consumed && head + suffix <= smart_leaf_room(leaf));
	memcpy(target + head, key->bytes + consumed, suffix);
	return head + suffix;
}

/* Do all entries still ascend with this one behind them?  Told for suffixes of one length only, where it costs little. */
static bool
stays_sorted(const struct smart_leaf *leaf, const uint8_t *suffix)
{
	if (leaf->stride == 0 || leaf->sorted_end != leaf->used)
		return false;
	return leaf->used == leaf->start ||
		   smart_compare_equal_length(leaf->block + leaf->used - leaf->stride, suffix, leaf->stride) < 0;
}

/* How many entries so many bytes behind the others are, in the copy of the leaf. */
static unsigned int
count_appended(const struct smart_leaf *leaf, unsigned int length)
{
	struct smart_leaf grown = *leaf;

	smart_assert(length > 0);
	grown.used += length;
	smart_assert(grown.used + SMART_LEAF_REAR_BYTES <= leaf->units * SMART_UNIT);
	return smart_leaf_entries(&grown) - smart_leaf_entries(leaf);
}

/* The WRITE of the values of entries that were put behind the others, in the copy of the leaf; they take so many bytes. */
static struct fabric_request
write_values(const struct smart_leaf *leaf, unsigned int bytes)
{
	unsigned int last = smart_leaf_entries(leaf) + bytes / SMART_VALUE_BYTES - 1;
	unsigned int offset = smart_value_offset(leaf, last);

	smart_assert(bytes > 0 && bytes % SMART_VALUE_BYTES == 0);
	return (struct fabric_request){.verb = FABRIC_WRITE,
								   .remote = leaf->address + offset,
								   .local = (void *) (uintptr_t) (leaf->block + offset),
								   .length = bytes};
}

/*
 * One batch: WRITE the bytes at used, and CAS meta, from locked to unlocked in shared
 * mode.  before: NULL, or where a READ brings what lies below used; it goes in any order
 * with the others, since those bytes do not change (I4), and the block is not used again
 * within this epoch (I6).
 */
static smart_status
publish_bytes(struct smart_tree *tree, struct smart_leaf_lock *lock, const struct smart_leaf *leaf,
			  const uint8_t *bytes, unsigned int length, uint64_t desired, uint8_t *before, bool *published)
{
	unsigned int values = tree->options.value ? count_appended(leaf, length) * SMART_VALUE_BYTES : 0;
	struct fabric_request batch[4];
	int count = 0;
	int commit;
	smart_status status;

	/* I4: the lock's holder alone writes at used; I3: hi only falls, and not here. */
	smart_assert(tree->locked == leaf->address && lock->leaf == leaf->address && leaf->state == SMART_LIVE);
	smart_assert(length + values <= smart_leaf_room_for(leaf, tree->options.value) &&
				 smart_meta_used(desired) == leaf->used + length && smart_meta_hi(desired) == leaf->hi &&
				 smart_meta_state(desired) == SMART_LIVE);
	smart_assert(lock->meta == (tree->options.shared ? leaf->meta : 0) && !smart_meta_locked(desired));
	smart_assert(!tree->options.value || bytes == leaf->block + leaf->used);
	batch[count++] = (struct fabric_request){.verb = FABRIC_WRITE,
											 .remote = leaf->address + leaf->used,
											 .local = (void *) (uintptr_t) bytes,
											 .length = length};
	if (values > 0)
		batch[count++] = write_values(leaf, values);
	commit = count++;
	batch[commit] = smart_cas_request(smart_leaf_meta_address(leaf->address, leaf->units), leaf->meta, desired, false);
	if (before != NULL)
		batch[count++] = smart_read_request(leaf->address, before, leaf->used);
	if (SMART_FAULT(metawrite))
		batch[commit] = (struct fabric_request){.verb = FABRIC_WRITE,
												.remote = batch[commit].remote,
												.local = &desired,
												.length = sizeof(desired),
												.result = leaf->meta};
	status = smart_execute(tree, batch, count);
	/* Published and let go, or sealed, by which it is no client's any more. */
	lock->meta = 0;
	*published = status == SMART_OK && batch[commit].result == leaf->meta;
	return status;
}

/* ---- together ---- */

/* An append on its way. */
struct append
{
	struct smart_tree *tree;
	const struct smart_key *key;   /* the holder's */
	const struct smart_leaf *read; /* the leaf as it was READ */
	struct smart_grown grown;
	unsigned int count;
	struct smart_handed taken[TAKEN_MAX];
	enum smart_combined planned[TAKEN_MAX]; /* what each owner is told if the CAS comes about */
};

void
smart_grown_begin(struct smart_grown *grown, const struct smart_leaf *read)
{
	smart_assert(read->state == SMART_LIVE && read->start <= read->used);
	grown->leaf = *read;
	grown->crc = smart_meta_crc(read->meta);
	grown->sorted = true;
}

bool
smart_grown_fits(const struct smart_tree *tree, const struct smart_grown *grown, size_t length)
{
	const struct smart_leaf *leaf = &grown->leaf;

	smart_assert(length > leaf->depth + leaf->prefix_length);
	return smart_leaf_takes(leaf, smart_stored_bytes(tree, (unsigned int) length - leaf->depth - leaf->prefix_length),
							tree->options.value);
}

void
smart_grown_put(const struct smart_tree *tree, struct smart_grown *grown, const struct smart_key *key, size_t length,
				uint64_t value)
{
	struct smart_leaf *leaf = &grown->leaf;
	uint8_t *target = (uint8_t *) (uintptr_t) leaf->block + leaf->used;
	unsigned int stored = put_entry(tree, leaf, target, key, length);

	if (tree->options.value)
		memcpy((uint8_t *) (uintptr_t) leaf->block + smart_value_offset(leaf, smart_leaf_entries(leaf)), &value,
			   sizeof(value));
	grown->sorted = grown->sorted && stays_sorted(leaf, target);
	grown->crc = smart_crc32c(grown->crc, target, stored);
	leaf->used += stored;
	if (grown->sorted)
		leaf->sorted_end = leaf->used;
	smart_assert(leaf->sorted_end <= leaf->used && leaf->used + SMART_LEAF_REAR_BYTES <= leaf->units * SMART_UNIT);
}

uint64_t
smart_grown_meta(const struct smart_grown *grown)
{
	const struct smart_leaf *leaf = &grown->leaf;

	smart_assert(leaf->used < 1u << SMART_META_USED_BITS && leaf->lo <= leaf->hi);
	return smart_meta_make(leaf->used, SMART_LIVE, leaf->hi, grown->crc) | (grown->sorted ? SMART_META_SORTED : 0) |
		   (SMART_FAULT(lostmark) ? 0 : leaf->meta & SMART_META_UPDATED);
}

/* Does an entry belong into a leaf, which is the one for the holder's key? */
static bool
belongs(const struct smart_leaf *leaf, const struct smart_key *holder, const struct smart_key *key)
{
	return key->length > leaf->depth + leaf->prefix_length && memcmp(key->bytes, holder->bytes, leaf->depth) == 0 &&
		   (smart_leaf_covers(leaf, key) || SMART_FAULT(stowaway)) && smart_leaf_prefix_matches(leaf, key);
}

/* Puts an entry of another client there, if it belongs there. */
static enum smart_combined
put_taken(struct append *append, const struct smart_handed *entry)
{
	const struct smart_leaf *leaf = &append->grown.leaf;
	struct smart_key key = {.bytes = entry->bytes, .length = entry->key_length};
	bool values = append->tree->options.value;
	uint32_t length = values ? entry->key_length : entry->length;

	smart_assert(entry->tree == append->tree->options.id && entry->key_length <= entry->length);
	if (!belongs(leaf, append->key, &key))
		return SMART_COMBINED_NOT;
	if (smart_leaf_contains(leaf, &key))
		return SMART_COMBINED_THERE;
	if (!smart_grown_fits(append->tree, &append->grown, length))
		return SMART_COMBINED_NOT;
	if (SMART_FAULT(overwrite))
		smart_grown_begin(&append->grown, append->read);
	smart_grown_put(append->tree, &append->grown, &key, length,
					values ? smart_value_behind(entry->bytes, entry->key_length) : 0);
	return SMART_COMBINED_ADDED;
}

/* The client's own entry, and those that others have handed in, at most so many, go into the leaf's copy. */
static void
gather(struct append *append, struct smart_tree *tree, const struct smart_leaf *leaf, const struct smart_key *key,
	   size_t length, unsigned int most)
{
	struct smart_services *services = tree->services;

	smart_assert(leaf->block == tree->leaf_buffer && most <= TAKEN_MAX);
	append->tree = tree;
	append->key = key;
	append->read = leaf;
	append->count = 0;
	smart_grown_begin(&append->grown, leaf);
	smart_grown_put(tree, &append->grown, key, length,
					tree->options.value ? smart_value_behind(key->bytes, length) : 0);
	if (services->take_handed != NULL)
		append->count = services->take_handed(services, leaf->address, tree->options.id, append->taken, most);
	smart_assert(append->count <= most);
	for (unsigned int i = 0; i < append->count; i++)
		append->planned[i] = put_taken(append, &append->taken[i]);
}

/* The owners are told what became of their entries.  A batch that failed may have taken effect. */
static void
tell_owners(const struct append *append, smart_status status, bool published)
{
	struct smart_services *services = append->tree->services;

	smart_assert(append->count <= TAKEN_MAX);
	for (unsigned int i = 0; i < append->count; i++)
	{
		enum smart_combined outcome = published ? append->planned[i] : SMART_COMBINED_NOT;

		if (status != SMART_OK && append->planned[i] == SMART_COMBINED_ADDED)
			outcome = SMART_COMBINED_UNKNOWN;
		services->tell_handed(services, &append->taken[i], outcome);
	}
}

static smart_status
publish_together(struct smart_tree *tree, struct smart_leaf_lock *lock, const struct smart_leaf *leaf,
				 const struct smart_key *key, size_t length, bool *published)
{
	struct append append;
	struct smart_blocked blocked;
	uint64_t desired;
	uint64_t ticket;
	smart_status status;

	gather(&append, tree, leaf, key, length, TAKEN_MAX);
	desired = smart_grown_meta(&append.grown);
	blocked = smart_leaf_hint_block(tree, leaf->link);
	status = publish_bytes(tree, lock, leaf, leaf->block + leaf->used, append.grown.leaf.used - leaf->used, desired,
						   NULL, published);
	ticket = smart_leaf_hint_unblock(tree, &blocked);
	if (*published && tree->copies)
		smart_leaf_copy_changed(tree, leaf->link, leaf->block, desired, ticket);
	else if (*published)
		smart_leaf_hint_keep(tree, leaf->link, leaf->block, key, desired, ticket);
	tell_owners(&append, status, *published);
	smart_unlock_local(tree);
	return status;
}

/* ---- by a promise ---- */

/* The promise has come about: its entries are WRITTEN, and then *published tells whether they are in the leaf for good. */
static smart_status
keep_promise(struct smart_tree *tree, const struct append *append, uint64_t promised, bool *published)
{
	const struct smart_leaf *leaf = append->read;
	struct fabric_request write = {.verb = FABRIC_WRITE,
								   .remote = leaf->address + leaf->used,
								   .local = (void *) (uintptr_t) (leaf->block + leaf->used),
								   .length = smart_meta_used(promised) - leaf->used};
	smart_status status = smart_execute(tree, &write, 1);

	/* The leaf is whole again: who waits for the lock with an entry of its own may go on. */
	if (append->count == 0)
		smart_unlock_local(tree);
	return status == SMART_OK ? smart_promise_confirm(tree, leaf, promised, published) : status;
}

smart_status
smart_leaf_promise(struct smart_tree *tree, const struct smart_leaf *leaf, const struct smart_key *key, size_t length,
				   bool *published)
{
	struct append append;
	uint64_t promised;
	uint64_t met;
	smart_status status = smart_promise_prepare(tree);

	smart_assert(tree->locked == leaf->address && leaf->state == SMART_LIVE && !smart_meta_locked(leaf->meta));
	smart_assert(leaf->stride != 0 && smart_leaf_covers(leaf, key));
	*published = false;
	append.tree = tree;
	append.count = 0;
	if (status == SMART_OK)
	{
		gather(&append, tree, leaf, key, length, SMART_PROMISED_MAX - 1);
		promised = smart_meta_with_promise(smart_grown_meta(&append.grown),
										   count_appended(leaf, append.grown.leaf.used - leaf->used));
		/* From the exact meta that was READ, which makes final what was promised before. */
		status = smart_word_cas(tree, smart_leaf_meta_address(leaf->address, leaf->units), leaf->meta, promised, &met);
		if (status == SMART_OK && met == leaf->meta)
			status = keep_promise(tree, &append, promised, published);
	}
	tell_owners(&append, status, *published);
	if (tree->locked != 0)
		smart_unlock_local(tree);
	return status;
}

/* ---- by pointers ---- */

/* Puts an entry behind the others, in front of meta; returns the meta that publishes it. */
static uint64_t
put_one(const struct smart_tree *tree, const struct smart_leaf *leaf, const struct smart_key *key, size_t length)
{
	uint8_t *bytes = (uint8_t *) (uintptr_t) leaf->block + leaf->used;
	unsigned int stored = put_entry(tree, leaf, bytes, key, length);
	uint64_t meta = smart_meta_make(leaf->used + stored, SMART_LIVE, leaf->hi,
									smart_crc32c(smart_meta_crc(leaf->meta), bytes, stored));

	return stays_sorted(leaf, bytes) ? meta | SMART_META_SORTED : meta;
}

/* Mostly the next key belongs elsewhere, unless keys are close to one another. */
static bool
has_company(const struct smart_leaf *leaf, const struct smart_key *holder, const struct smart_company *company)
{
	struct smart_key next;

	if (company->count == 0)
		return false;
	next = (struct smart_key){.bytes = company->next->bytes, .length = company->next->key_length};
	return belongs(leaf, holder, &next);
}

/* Can the next entry go along?  The leaf must not have it. */
static bool
joins(const struct smart_tree *tree, const struct smart_grown *grown, const struct smart_key *holder,
	  const struct smart_addition *next)
{
	const struct smart_leaf *leaf = &grown->leaf;
	struct smart_key key = {.bytes = next->bytes, .length = next->key_length};

	return belongs(leaf, holder, &key) && smart_grown_fits(tree, grown, next->length) &&
		   (smart_leaf_ends_below(leaf, &key) || !smart_leaf_contains(leaf, &key));
}

/* The same with those that go along; *joined: so many. */
static uint64_t
put_with_company(const struct smart_tree *tree, const struct smart_leaf *leaf, const struct smart_key *key,
				 size_t length, const struct smart_company *company, unsigned int *joined)
{
	struct smart_grown grown;

	smart_assert(tree->direct && !tree->options.value);
	smart_grown_begin(&grown, leaf);
	smart_grown_put(tree, &grown, key, length, 0);
	for (*joined = 0; *joined < company->count && joins(tree, &grown, key, &company->next[*joined]); ++*joined)
	{
		const struct smart_addition *next = &company->next[*joined];
		struct smart_key other = {.bytes = next->bytes, .length = next->key_length};

		smart_grown_put(tree, &grown, &other, next->length, 0);
	}
	return smart_grown_meta(&grown);
}

smart_status
smart_leaf_publish(struct smart_tree *tree, struct smart_leaf_lock *lock, const struct smart_leaf *leaf,
				   const struct smart_key *key, size_t length, const struct smart_company *company, bool *published)
{
	unsigned int joined = 0;
	uint64_t desired;
	uint64_t seen;
	smart_status status;

	smart_assert(tree->locked == leaf->address && leaf->state == SMART_LIVE && smart_leaf_covers(leaf, key));
	if (!tree->direct)
		return publish_together(tree, lock, leaf, key, length, published);
	desired = has_company(leaf, key, company) ? put_with_company(tree, leaf, key, length, company, &joined)
											  : put_one(tree, leaf, key, length);
	/* Release: the entries' bytes become visible with meta, to smart_leaf_read's acquire. */
	status = smart_word_cas(tree, smart_leaf_meta_address(leaf->address, leaf->units), leaf->meta, desired, &seen);
	*published = status == SMART_OK && seen == leaf->meta;
	for (unsigned int i = 0; *published && i < joined; i++)
		company->next[i].settled = company->next[i].added = true;
	lock->meta = 0;
	smart_unlock_local(tree);
	return status;
}

/* ---- by a leaf hint ---- */

/*
 * Was the key there before the append?  The READ of what lay below used is in the leaf's
 * buffer; it goes once more if it does not fit the meta that the CAS has met.
 */
static smart_status
look_back(struct smart_tree *tree, const struct smart_leaf *leaf, const struct smart_key *key, bool *there)
{
	struct smart_leaf before;
	smart_status status = SMART_OK;

	smart_assert(tree->locked == leaf->address);
	*there = false;
	if (SMART_FAULT(blindhint))
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

smart_status
smart_append_by_leaf_hint(struct smart_tree *tree, const struct smart_place *place, const struct smart_key *key,
						  size_t length, enum smart_appended *appended)
{
	struct smart_leaf_lock lock = {.leaf = smart_slot_address(place->slot)};
	struct smart_leaf_hint_view view;
	const struct smart_leaf *leaf = &view.leaf;
	struct smart_blocked blocked;
	unsigned int stored;
	uint64_t desired;
	uint64_t ticket;
	bool published;
	bool there = false;
	bool full;
	smart_status status;

	smart_assert(tree->hints && tree->locked == lock.leaf);
	*appended = SMART_APPENDED_NOT;
	if (!smart_leaf_hint_find(tree, place, key, length, &view, &full))
	{
		if (full)
			*appended = SMART_APPENDED_FULL;
		return SMART_OK;
	}
	stored = put_entry(tree, leaf, tree->build_buffer, key, length);
	desired = smart_meta_make(leaf->used + stored, SMART_LIVE, leaf->hi,
							  smart_crc32c(smart_meta_crc(leaf->meta), tree->build_buffer, stored));
	/* What ascends goes on ascending. */
	if (view.above)
		desired |= leaf->meta & SMART_META_SORTED;
	blocked = smart_leaf_hint_block(tree, leaf->link);
	status = publish_bytes(tree, &lock, leaf, tree->build_buffer, stored, desired,
						   view.above ? NULL : tree->leaf_buffer, &published);
	ticket = smart_leaf_hint_unblock(tree, &blocked);
	if (status == SMART_OK && published && !view.above)
		status = look_back(tree, leaf, key, &there);
	if (status != SMART_OK || !published)
		return status;
	*appended = there ? SMART_APPENDED_TWICE : SMART_APPENDED_ADDED;
	if (!there)
		smart_leaf_hint_append(tree, &view, key, desired, ticket);
	return SMART_OK;
}

/* ---- by a leaf's copy ---- */

smart_status
smart_append_by_copy(struct smart_tree *tree, const struct smart_place *place, const struct smart_key *key,
					 size_t length, enum smart_appended *appended)
{
	struct smart_leaf_lock lock = {.leaf = smart_slot_address(place->slot)};
	struct smart_leaf leaf;
	bool published;
	smart_status status;

	smart_assert(tree->copies && tree->locked == smart_slot_address(place->slot));
	*appended = SMART_APPENDED_NOT;
	if (!smart_leaf_copy_find(tree, place->slot, key, tree->leaf_buffer, true, &leaf) || leaf.depth != place->depth ||
		!smart_leaf_covers(&leaf, key))
		return SMART_OK;
	if (smart_leaf_prefix_matches(&leaf, key) && smart_leaf_contains(&leaf, key))
	{
		*appended = SMART_APPENDED_TWICE;
		return SMART_OK;
	}
	*appended = SMART_APPENDED_FULL;
	if (!smart_leaf_prefix_matches(&leaf, key) ||
		!smart_leaf_takes(&leaf, smart_stored_bytes(tree, (unsigned int) length - leaf.depth - leaf.prefix_length),
						  tree->options.value))
		return SMART_OK;
	status = publish_together(tree, &lock, &leaf, key, length, &published);
	*appended = status == SMART_OK && published ? SMART_APPENDED_ADDED : SMART_APPENDED_NOT;
	return status;
}
