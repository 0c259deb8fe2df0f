/*
 * peer_dart.c
 *	  A model of DART (Zhang et al., SIGMOD'26): a radix tree of hashed nodes, and
 *	  a hash table of some of them.
 *
 * Layout (3.2, 3.3): a node is one bucket of 64 bytes, 1 to 8 buckets of 128 bytes, or
 * 256 words in the order of their bytes; the word that leads to it has its byte, the
 * length of the compressed path, the type and the address, so that a search READs one
 * bucket of 128 bytes of each node.  Paths are compressed optimistically.  A leaf is one
 * entry.
 *
 * The express skip table (3.1): nodes that have the prefix of a length from a list, by
 * that prefix, in buckets of 64 bytes with fingerprints of one byte, in segments that
 * every compute node's directory has.  A search begins at the node of the longest
 * length of the list that is shorter than the key, or of the next one, or at the root.  The
 * list is of powers of two; a load from a sorted run is followed by 3.1's adjustment: the
 * length that saves most, again and again.
 *
 * Operations (4.2, 4.3): WRITE of the new leaf with the first READ, CAS of one word; a
 * type switch freezes the word above and the skip table's, waits for a grace period, the
 * 95th percentile of operations' times, copies the node and CASes the word; a write that
 * took longer looks at the words above once more, and so does every type switch in the
 * end: the node with the word may have been copied while the word was frozen.
 *
 * Since neither table nor tree has the bytes of compressed paths, an insert READs a leaf
 * below the node to know them; what a search that began at the skip table does not find is
 * looked for from the root.
 *
 * dart-unskipped has no skip table: 5.3's factor analysis.
 *
 * Left out: deletion and nodes that shrink; growth of the skip table, which is as large
 * as it will have to be: what finds no room in its bucket is not in it; frequencies of
 * entries: the adjustment takes all as equal; recovery; torn READs.
 */
#include <stdlib.h>

#include "base/assert.h"
#include "peer_radix.h"
#include "random.h"

#define LEAF_HEAD   8
#define VALUE_MAX   1024
#define PATH_MAX    15 /* bytes of a compressed path: four bits */
#define CHAIN_MAX   (YCSB_KEY_MAX / (PATH_MAX + 1) + 1)
#define BUCKET      16 /* words */
#define LEVELS_MAX  (YCSB_KEY_MAX + 1)
#define LENGTHS_MAX 8

/* ---- words: address in bits 0..47, type 48..50, frozen 51, length of the path 52..55, byte or fingerprint 56..63 ---- */

enum type
{
	NONE,
	N8,
	N16,
	N32,
	N64,
	N128,
	N256,
	LEAF
};

#define FROZEN (UINT64_C(1) << 51)
#define COPIED UINT64_C(1) /* of a frozen entry of the skip table: by a type switch; addresses are multiples of 64 */

static const unsigned int type_words[] = {0, 8, 16, 32, 64, 128, 256};

static uint64_t
make_word(uint8_t byte, unsigned int length, enum type type, fabric_address address)
{
	smart_assert(length <= PATH_MAX && address >> 48 == 0);
	return (uint64_t) byte << 56 | (uint64_t) length << 52 | (uint64_t) type << 48 | address;
}

static fabric_address
word_address(uint64_t word)
{
	return word & ((UINT64_C(1) << 48) - 1);
}

static enum type
word_type(uint64_t word)
{
	return (enum type)((word >> 48) & 7);
}

static unsigned int
word_length(uint64_t word)
{
	return (unsigned int) (word >> 52) & 15;
}

static uint8_t
word_byte(uint64_t word)
{
	return (uint8_t) (word >> 56);
}

static bool
word_is_leaf(uint64_t word)
{
	return word_type(word) == LEAF;
}

static uint64_t
with_byte(uint64_t word, uint8_t byte, unsigned int length)
{
	return make_word(byte, length, word_type(word), word_address(word)) | (word & FROZEN);
}

static uint64_t
node_bytes(enum type type)
{
	smart_assert(type > NONE && type < LEAF);
	return type_words[type] * sizeof(uint64_t);
}

/* ---- nodes ---- */

/* The first word of a byte's bucket, and how many words a bucket has. */
static unsigned int
bucket_of(enum type type, uint8_t byte)
{
	unsigned int buckets = type_words[type] / BUCKET;

	smart_assert(type > NONE && type < LEAF);
	if (type == N256)
		return byte / BUCKET * BUCKET;
	return buckets <= 1 ? 0 : (unsigned int) (ycsb_mix(byte) % buckets) * BUCKET;
}

static unsigned int
bucket_words(enum type type)
{
	return type == N8 ? 8 : BUCKET;
}

/* The place of a byte in its bucket, or of the first word without a child; the bucket's length: it is full. */
static unsigned int
find_in_bucket(enum type type, const uint64_t *bucket, uint8_t byte)
{
	unsigned int place = 0;

	if (type == N256)
		return byte % BUCKET;
	while (place < bucket_words(type) && bucket[place] != 0 && word_byte(bucket[place]) != byte)
		place++;
	return place;
}

/* False: its bucket is full. */
static bool
add_child(enum type type, uint64_t *node, uint64_t word)
{
	uint64_t *bucket = node + bucket_of(type, word_byte(word));
	unsigned int place = find_in_bucket(type, bucket, word_byte(word));

	if (place == bucket_words(type))
		return false;
	smart_assert(bucket[place] == 0);
	bucket[place] = word;
	return true;
}

/* A node with these children, of the smallest type from one on that takes them. */
static enum type
fill_node(uint64_t node[256], const uint64_t *words, unsigned int count, enum type type)
{
	smart_assert(count <= 256 && type > NONE);
	for (;; type++)
	{
		unsigned int done = 0;

		smart_assert(type <= N256);
		memset(node, 0, node_bytes(type));
		while (done < count && (words[done] == 0 || add_child(type, node, words[done])))
			done++;
		if (done == count)
			return type;
	}
}

/* ---- the tree and the skip table ---- */

#define SEGMENT_BUCKETS 64
#define TABLE_BUCKET    8 /* words */
#define SEGMENT_BYTES   (SEGMENT_BUCKETS * TABLE_BUCKET * sizeof(uint64_t))
#define TABLE_FILL      50 /* percent */

#define GRACE_MIN_NS 1000
#define GRACE_MAX_NS 500000
#define CHANGE_NS    1000000 /* the grace period changes no more often */

struct tree
{
	uint64_t root;                    /* a node of type N256, for byte 0 */
	unsigned int length[LENGTHS_MAX]; /* of prefixes in the skip table, descending */
	unsigned int lengths;
	fabric_address *segment; /* NULL: there is no skip table */
	uint64_t segments;

	/*
	 * The grace period: an estimate of the 95th percentile, and what it was when it was taken over last and before
	 * that.  Of two values that a freezer and a writer may know the freezer waits for the longer one.
	 */
	double estimate_ns;
	uint64_t grace_ns[2];
	uint64_t changed_ns;
};

static struct tree *
tree_of(const struct peer_cluster *cluster)
{
	return cluster->state;
}

/* ---- leaves: head (frequency and lengths), key, value ---- */

struct leaf
{
	uint64_t head;
	uint8_t bytes[YCSB_KEY_MAX + VALUE_MAX];
};

static uint64_t
leaf_bytes(const struct peer_cluster *cluster, size_t key_length)
{
	return LEAF_HEAD + (key_length + 7) / 8 * 8 + cluster->options->value_bytes;
}

static void
fill_leaf(struct leaf *leaf, const uint8_t *key, size_t length, uint64_t value)
{
	memset(leaf, 0, LEAF_HEAD + YCSB_KEY_MAX + sizeof(value));
	leaf->head = length;
	memcpy(leaf->bytes, key, length);
	memcpy(leaf->bytes + (length + 7) / 8 * 8, &value, sizeof(value));
}

/* ---- a client ---- */

/* One node of a way: the word that leads to it, where that lies, and the bytes from where on it compresses and branches. */
struct level
{
	uint64_t word;
	fabric_address word_at; /* 0: the root's */
	unsigned int begins;
	unsigned int depth;
};

enum end
{
	END_LEAF,  /* a leaf is in the byte's place, and was READ */
	END_FREE,  /* there is room for one */
	END_FULL,  /* the bucket is full */
	END_FAILED /* status says why */
};

struct way
{
	struct level level[LEVELS_MAX];
	unsigned int levels;
	bool skipped; /* the first level is the skip table's */
	bool frozen;  /* one of the words was */
	bool beyond;  /* the last level branches behind the key's end, and was not READ */
	uint64_t bucket[BUCKET];
	unsigned int place;
	fabric_address word_at; /* of the place */
	uint64_t word;
	enum end end;
	smart_status status;
	uint64_t begin_ns;
};

/* What is too large for a client's stack. */
struct scratch
{
	struct way way;
	struct leaf leaf; /* that was READ */
	struct leaf mine; /* to be WRITTEN */
	fabric_address mine_address;
	struct fabric_request write; /* of mine, with the next READ */
	bool unwritten;
	uint64_t node[256];
	uint64_t larger[256];
	uint64_t chain[CHAIN_MAX][8];
	struct peer_radix_scratch scan;
};

static struct scratch *
scratch_of(struct peer_client *client)
{
	return client->state;
}

static uint64_t
now_ns(struct peer_client *client)
{
	return sim_timed_now_ns(&client->cluster->timed);
}

/* A READ, and the WRITE that waits for one. */
static smart_status
read_along(struct peer_client *client, fabric_address remote, void *local, uint64_t bytes)
{
	struct scratch *scratch = scratch_of(client);
	struct fabric_request requests[2] = {
		{.verb = FABRIC_READ, .length = (uint32_t) bytes, .remote = remote, .local = local},
		scratch->write,
	};
	int count = scratch->unwritten ? 2 : 1;

	scratch->unwritten = false;
	return fabric_execute(client->simulated.client.fabric, requests, count);
}

/* ---- the skip table ---- */

static bool
open_table(struct peer_cluster *cluster, uint64_t entries)
{
	struct tree *tree = tree_of(cluster);

	free(tree->segment);
	tree->segments = entries * 100 / (TABLE_FILL * TABLE_BUCKET * SEGMENT_BUCKETS) + 1;
	tree->segment = malloc(tree->segments * sizeof(*tree->segment));
	if (tree->segment == NULL)
		return false;
	for (uint64_t i = 0; i < tree->segments; i++)
	{
		tree->segment[i] = peer_allocate(cluster, SEGMENT_BYTES);
		if (tree->segment[i] == 0)
			return false;
	}
	return true;
}

static uint64_t
prefix_hash(const uint8_t *key, unsigned int length)
{
	return ycsb_mix(peer_hash(key, length));
}

static fabric_address
table_bucket(const struct tree *tree, uint64_t hash)
{
	smart_assert(tree->segment != NULL && tree->segments > 0);
	return tree->segment[(hash >> 32) % tree->segments] + hash % SEGMENT_BUCKETS * TABLE_BUCKET * sizeof(uint64_t);
}

static uint8_t
fingerprint(uint64_t hash)
{
	return (uint8_t) (hash >> 20);
}

/* A prefix's entry in its bucket, or the first free place, or TABLE_BUCKET. */
static unsigned int
find_entry(const uint64_t bucket[TABLE_BUCKET], uint64_t hash)
{
	unsigned int place = 0;

	while (place < TABLE_BUCKET && bucket[place] != 0 && word_byte(bucket[place]) != fingerprint(hash))
		place++;
	return place;
}

/* The prefix's node in the table, or the next shorter one's, as the way's first level. */
static bool
find_express(struct peer_client *client, struct way *way, const uint8_t *key, size_t length)
{
	const struct tree *tree = tree_of(client->cluster);
	uint64_t bucket[TABLE_BUCKET];

	smart_assert(tree->lengths <= LENGTHS_MAX);
	for (unsigned int i = 0; i < tree->lengths && way->status == SMART_OK; i++)
	{
		uint64_t hash = prefix_hash(key, tree->length[i]);
		fabric_address address = table_bucket(tree, hash);
		unsigned int place;

		if (tree->length[i] >= length)
			continue;
		way->status = read_along(client, address, bucket, sizeof(bucket));
		place = find_entry(bucket, hash);
		if (way->status != SMART_OK || place == TABLE_BUCKET || bucket[place] == 0 || (bucket[place] & FROZEN))
			continue;
		way->levels = 1;
		way->level[0] = (struct level){.word = bucket[place],
									   .word_at = address + place * sizeof(uint64_t),
									   .begins = tree->length[i],
									   .depth = tree->length[i] + word_length(bucket[place])};
		/* Two prefixes may have one fingerprint. */
		return way->level[0].depth < length;
	}
	return false;
}

/*
 * The table's entries of a node.  One that is not frozen leads to a node that is in the tree and takes new children:
 * who links a node has claimed its entries before, frozen; who copies one claims those, with another mark; and only
 * what one has claimed oneself does one release.
 */
struct entries
{
	const uint8_t *key; /* of something below the node */
	unsigned int begins;
	unsigned int depth;
	uint64_t claim; /* word, frozen */
};

static uint64_t
entry_word(const struct entries *entries, uint64_t word, unsigned int prefix, uint64_t hash)
{
	smart_assert(prefix > 0 && prefix >= entries->begins && prefix <= entries->depth);
	return with_byte(word, fingerprint(hash), entries->depth - prefix);
}

/* Whatever the entries were; a bucket without room has none. */
static smart_status
claim_entry(struct peer_client *client, const struct entries *entries, unsigned int prefix)
{
	uint64_t hash = prefix_hash(entries->key, prefix);
	fabric_address address = table_bucket(tree_of(client->cluster), hash);
	uint64_t bucket[TABLE_BUCKET];
	uint64_t found = 0;
	unsigned int place;
	smart_status status;

	smart_assert((entries->claim & FROZEN) != 0);
	do
	{
		status = peer_read(client, address, bucket, sizeof(bucket));
		place = find_entry(bucket, hash);
		if (status == SMART_OK && place < TABLE_BUCKET)
			status = peer_cas(client, address + place * sizeof(uint64_t), bucket[place],
							  entry_word(entries, entries->claim, prefix, hash), &found);
	} while (status == SMART_OK && place < TABLE_BUCKET && found != bucket[place]);
	return status;
}

/* To a word that is not frozen, if the claim still stands. */
static smart_status
release_entry(struct peer_client *client, const struct entries *entries, unsigned int prefix, uint64_t word)
{
	uint64_t hash = prefix_hash(entries->key, prefix);
	fabric_address address = table_bucket(tree_of(client->cluster), hash);
	uint64_t claim = entry_word(entries, entries->claim, prefix, hash);
	uint64_t bucket[TABLE_BUCKET];
	uint64_t found;
	smart_status status = peer_read(client, address, bucket, sizeof(bucket));

	smart_assert((entries->claim & FROZEN) != 0 && (word & FROZEN) == 0);
	for (unsigned int place = 0; place < TABLE_BUCKET && status == SMART_OK; place++)
	{
		if (bucket[place] == claim)
			status = peer_cas(client, address + place * sizeof(uint64_t), claim,
							  entry_word(entries, word, prefix, hash), &found);
	}
	return status;
}

static bool
has_entry(const struct entries *entries, unsigned int prefix)
{
	return prefix > 0 && prefix >= entries->begins && prefix <= entries->depth;
}

static smart_status
claim_entries(struct peer_client *client, const struct entries *entries)
{
	const struct tree *tree = tree_of(client->cluster);
	smart_status status = SMART_OK;

	smart_assert(entries->begins <= entries->depth);
	for (unsigned int i = 0; i < tree->lengths && tree->segment != NULL && status == SMART_OK; i++)
	{
		if (has_entry(entries, tree->length[i]))
			status = claim_entry(client, entries, tree->length[i]);
	}
	return status;
}

static smart_status
release_entries(struct peer_client *client, const struct entries *entries, uint64_t word)
{
	const struct tree *tree = tree_of(client->cluster);
	smart_status status = SMART_OK;

	for (unsigned int i = 0; i < tree->lengths && tree->segment != NULL && status == SMART_OK; i++)
	{
		if (has_entry(entries, tree->length[i]))
			status = release_entry(client, entries, tree->length[i], word);
	}
	return status;
}

/* ---- descent ---- */

/* READs the bucket of the last level's node for the key, and a leaf that is in its place; to the next level otherwise. */
static bool
take_step(struct peer_client *client, struct way *way, const uint8_t *key, size_t length)
{
	struct scratch *scratch = scratch_of(client);
	const struct level *level = &way->level[way->levels - 1];
	enum type type = word_type(level->word);
	uint8_t byte = key[level->depth];
	fabric_address address = word_address(level->word) + bucket_of(type, byte) * sizeof(uint64_t);

	smart_assert(level->depth < length);
	way->frozen |= (level->word & FROZEN) != 0;
	way->end = END_FAILED;
	way->status = read_along(client, address, way->bucket, bucket_words(type) * sizeof(uint64_t));
	if (way->status != SMART_OK)
		return false;
	way->place = find_in_bucket(type, way->bucket, byte);
	way->word_at = address + way->place * sizeof(uint64_t);
	way->end = END_FULL;
	if (way->place == bucket_words(type))
		return false;
	way->word = way->bucket[way->place];
	way->end = END_FREE;
	if (way->word == 0)
		return false;
	if (word_is_leaf(way->word))
	{
		way->status = read_along(client, word_address(way->word), &scratch->leaf, leaf_bytes(client->cluster, length));
		way->end = way->status == SMART_OK ? END_LEAF : END_FAILED;
		return false;
	}
	smart_assert(way->levels < LEVELS_MAX);
	way->level[way->levels] = (struct level){.word = way->word,
											 .word_at = way->word_at,
											 .begins = level->depth + 1,
											 .depth = level->depth + 1 + word_length(way->word)};
	/* More compressed bytes than this key has: it is not below. */
	way->beyond = way->level[way->levels++].depth >= length;
	return !way->beyond;
}

/* From the skip table, if it is to be asked and knows a node, or the root. */
static void
descend(struct peer_client *client, struct way *way, const uint8_t *key, size_t length, bool skips)
{
	const struct tree *tree = tree_of(client->cluster);

	way->status = SMART_OK;
	way->frozen = false;
	way->beyond = false;
	way->skipped = skips && tree->segment != NULL && find_express(client, way, key, length);
	way->end = END_FAILED;
	if (way->status != SMART_OK)
		return;
	if (!way->skipped)
	{
		way->levels = 1;
		way->level[0] = (struct level){.word = tree->root};
	}
	smart_assert(way->levels == 1);
	while (take_step(client, way, key, length))
		;
}

static bool
has_key(const struct way *way, const struct scratch *scratch, const uint8_t *key, size_t length)
{
	return way->end == END_LEAF && memcmp(scratch->leaf.bytes, key, length) == 0;
}

static smart_status
dart_lookup(struct ycsb_client *ycsb, const uint8_t *key, size_t length, bool *found)
{
	struct peer_client *client = peer_client_of(ycsb);
	struct scratch *scratch = scratch_of(client);
	struct way *way = &scratch->way;

	scratch->unwritten = false;
	descend(client, way, key, length, true);
	if (way->skipped && way->status == SMART_OK && !has_key(way, scratch, key, length))
		descend(client, way, key, length, false);
	*found = has_key(way, scratch, key, length);
	return way->status;
}

/* ---- writes ---- */

static smart_status
draft_leaf(struct peer_client *client, const uint8_t *key, size_t length, uint64_t value)
{
	struct scratch *scratch = scratch_of(client);
	uint64_t bytes = leaf_bytes(client->cluster, length);

	scratch->mine_address = peer_allocate(client->cluster, bytes);
	if (scratch->mine_address == 0)
		return SMART_NO_SPACE;
	fill_leaf(&scratch->mine, key, length, value);
	scratch->write = peer_write_of(scratch->mine_address, &scratch->mine, bytes);
	scratch->unwritten = true;
	scratch->way.begin_ns = now_ns(client);
	return SMART_OK;
}

static uint64_t
shorter_grace(const struct tree *tree)
{
	return tree->grace_ns[0] < tree->grace_ns[1] ? tree->grace_ns[0] : tree->grace_ns[1];
}

static uint64_t
longer_grace(const struct tree *tree)
{
	return tree->grace_ns[0] < tree->grace_ns[1] ? tree->grace_ns[1] : tree->grace_ns[0];
}

/* An operation has taken so long: the estimate goes up by 19 parts, or down by one. */
static void
note_latency(struct peer_client *client, uint64_t ns)
{
	struct tree *tree = tree_of(client->cluster);

	smart_assert(now_ns(client) >= tree->changed_ns);
	tree->estimate_ns += (double) ns > tree->estimate_ns ? 190 : -10;
	if (now_ns(client) - tree->changed_ns < CHANGE_NS)
		return;
	tree->changed_ns = now_ns(client);
	tree->grace_ns[1] = tree->grace_ns[0];
	tree->grace_ns[0] = tree->estimate_ns < GRACE_MIN_NS   ? GRACE_MIN_NS
						: tree->estimate_ns > GRACE_MAX_NS ? GRACE_MAX_NS
														   : (uint64_t) tree->estimate_ns;
	smart_assert(tree->grace_ns[0] >= GRACE_MIN_NS && tree->grace_ns[0] <= GRACE_MAX_NS);
}

/* Have the words to the first so many nodes of a way changed, or been frozen, since they were READ?  One round trip. */
static smart_status
look_again(struct peer_client *client, const struct way *way, unsigned int levels, bool *changed)
{
	struct fabric_request requests[LEVELS_MAX];
	uint64_t words[LEVELS_MAX];
	smart_status status = SMART_OK;
	int count = 0;

	smart_assert(levels <= way->levels && levels <= LEVELS_MAX);
	*changed = false;
	for (unsigned int i = 0; i < levels; i++)
	{
		words[i] = way->level[i].word;
		if (way->level[i].word_at != 0)
			requests[count++] = (struct fabric_request){.verb = FABRIC_READ,
														.length = sizeof(words[i]),
														.remote = way->level[i].word_at,
														.local = &words[i]};
	}
	if (count > 0)
		status = fabric_execute(client->simulated.client.fabric, requests, count);
	for (unsigned int i = 0; i < levels; i++)
		*changed |= words[i] != way->level[i].word;
	return status;
}

/* So late that who has frozen a word on the way since need not have waited for this. */
static bool
is_late(struct peer_client *client, const struct way *way)
{
	smart_assert(now_ns(client) >= way->begin_ns);
	return now_ns(client) - way->begin_ns > shorter_grace(tree_of(client->cluster));
}

/*
 * A CAS has succeeded in the last level's node.  *again: so late that the node may have been copied before, and a
 * word on the way says that its node is being copied, or was.  The word of the last level alone does not tell: it may
 * be in a node that was copied itself, where it stays as it was.
 */
static smart_status
validate(struct peer_client *client, const struct way *way, bool *again)
{
	uint64_t ns = now_ns(client) - way->begin_ns;
	smart_status status = SMART_OK;

	*again = false;
	if (is_late(client, way))
		status = look_again(client, way, way->levels, again);
	note_latency(client, ns);
	return status;
}

/* Somebody copies a node on the way: wait for that. */
static void
wait_for_switch(struct peer_client *client)
{
	client->simulated.env.env.pause(&client->simulated.env.env, 0);
	scratch_of(client)->way.begin_ns = now_ns(client);
}

static smart_status
dart_update(struct ycsb_client *ycsb, const uint8_t *entry, size_t key_length, size_t length)
{
	struct peer_client *client = peer_client_of(ycsb);
	struct scratch *scratch = scratch_of(client);
	struct way *way = &scratch->way;
	smart_status status = draft_leaf(client, entry, key_length, peer_value_of(entry, key_length, length));
	bool skips = true;
	bool again = true;

	while (status == SMART_OK && again)
	{
		uint64_t found;

		descend(client, way, entry, key_length, skips);
		status = way->status;
		if (status == SMART_OK && !has_key(way, scratch, entry, key_length))
		{
			if (!skips)
				return SMART_CORRUPT;
			skips = false;
			continue;
		}
		if (way->frozen)
		{
			wait_for_switch(client);
			continue;
		}
		/* A leaf's place has leaves of its key alone, until a node takes it. */
		for (found = way->word; status == SMART_OK && word_is_leaf(found);)
		{
			way->word = found;
			status = peer_cas(client, way->word_at, found, make_word(word_byte(found), 0, LEAF, scratch->mine_address),
							  &found);
			if (found == way->word)
				break;
		}
		again = found != way->word;
		if (status == SMART_OK && !again)
			status = validate(client, way, &again);
		if (again)
			scratch->way.begin_ns = now_ns(client);
	}
	return status;
}

/* ---- insert ---- */

/* Any leaf below the last level's node: its key tells the bytes that are compressed on the way there. */
static smart_status
read_some_leaf(struct peer_client *client, const struct way *way, size_t length, bool *found)
{
	struct scratch *scratch = scratch_of(client);
	uint64_t word = way->level[way->levels - 1].word;
	smart_status status = SMART_OK;
	const uint64_t *words = way->bucket;
	unsigned int count = way->beyond ? 0 : bucket_words(word_type(word));

	*found = false;
	while (status == SMART_OK && !*found)
	{
		uint64_t below = 0;

		for (unsigned int i = 0; i < count && !word_is_leaf(below); i++)
			below = words[i] != 0 ? words[i] : below;
		if (below == 0 && words != scratch->node)
			below = word; /* the bucket has none: the whole node */
		if (below == 0)
			return SMART_OK;
		*found = word_is_leaf(below);
		words = scratch->node;
		count = *found ? 0 : type_words[word_type(below)];
		status = *found ? peer_read(client, word_address(below), &scratch->leaf, leaf_bytes(client->cluster, length))
						: peer_read(client, word_address(below), scratch->node, node_bytes(word_type(below)));
	}
	return status;
}

/* The first bytes that a key and the leaf that was READ have in common. */
static unsigned int
common_bytes(const struct scratch *scratch, const uint8_t *key)
{
	unsigned int same = 0;

	while (same < YCSB_KEY_MAX && key[same] == scratch->leaf.bytes[same])
		same++;
	return same;
}

/*
 * Descends from the root to the node that begins at this byte of the key, which becomes the way's last level: while
 * nobody copies a node above it.
 */
static smart_status
find_again(struct peer_client *client, struct way *way, const uint8_t *key, size_t length, unsigned int begins)
{
	bool frozen;

	do
	{
		unsigned int last = 0;

		frozen = false;
		descend(client, way, key, length, false);
		if (way->status != SMART_OK)
			return way->status;
		for (; last < way->levels && way->level[last].begins < begins; last++)
			frozen |= (way->level[last].word & FROZEN) != 0;
		smart_assert(last < way->levels && way->level[last].begins == begins);
		way->levels = last + 1;
		if (frozen)
			wait_for_switch(client);
	} while (frozen);
	return SMART_OK;
}

/*
 * The word of the last level's node, in the node that is in the tree.  *frozen: it is, though by another client maybe;
 * then both copy, and the first CAS counts.
 */
static smart_status
freeze(struct peer_client *client, struct way *way, const uint8_t *key, size_t length, bool *frozen)
{
	const struct level *level = &way->level[way->levels - 1];
	uint64_t old = level->word;
	uint64_t found;
	bool changed = false;
	smart_status status = peer_cas(client, level->word_at, old, old | FROZEN, &found);

	smart_assert(level->word_at != 0 && (old & FROZEN) == 0);
	*frozen = found == old;
	if (status == SMART_OK && *frozen && is_late(client, way))
		status = look_again(client, way, way->levels - 1, &changed);
	if (status != SMART_OK || !changed)
		return status;
	/* The node above was copied; with the frozen word, or before that. */
	status = find_again(client, way, key, length, level->begins);
	*frozen = status == SMART_OK && way->level[way->levels - 1].word == (old | FROZEN);
	return status;
}

/* A copy of a node, with this word, of the next type that its children fit into; the type and the address are new. */
static smart_status
copy_node(struct peer_client *client, uint64_t old, uint64_t *copy)
{
	struct scratch *scratch = scratch_of(client);
	enum type type = word_type(old);
	fabric_address address;
	smart_status status = peer_read(client, word_address(old), scratch->node, node_bytes(type));

	smart_assert(type < N256);
	if (status != SMART_OK)
		return status;
	type = fill_node(scratch->larger, scratch->node, type_words[type], type + 1);
	address = peer_allocate(client->cluster, node_bytes(type));
	if (address == 0)
		return SMART_NO_SPACE;
	*copy = make_word(word_byte(old), word_length(old), type, address);
	return peer_write(client, address, scratch->larger, node_bytes(type));
}

/*
 * The copy's word for the frozen one: also there where the node above has been copied to, which has the frozen word for
 * ever otherwise.  Nodes above may be copied again and again; not so the root.  *replaced: by this copy.
 */
static smart_status
replace(struct peer_client *client, struct way *way, const uint8_t *key, size_t length, uint64_t frozen, uint64_t copy,
		bool *replaced)
{
	unsigned int begins = way->level[way->levels - 1].begins;
	bool changed = true;
	smart_status status = SMART_OK;

	smart_assert((frozen & FROZEN) != 0 && (copy & FROZEN) == 0);
	while (status == SMART_OK && changed)
	{
		uint64_t found;

		status = peer_cas(client, way->level[way->levels - 1].word_at, frozen, copy, &found);
		*replaced = found == frozen || found == copy;
		if (status == SMART_OK)
			status = look_again(client, way, way->levels - 1, &changed);
		if (status == SMART_OK && changed)
			status = find_again(client, way, key, length, begins);
	}
	return status;
}

/* A node of a type for the last level's: freeze, wait, copy, CAS (4.2).  *again is always so. */
static smart_status
switch_type(struct peer_client *client, struct way *way, const uint8_t *key, size_t length)
{
	const struct level level = way->level[way->levels - 1];
	struct entries entries = {key, level.begins, level.depth, level.word | FROZEN | COPIED};
	uint64_t copy = 0;
	bool frozen;
	bool replaced = false;
	smart_status status = freeze(client, way, key, length, &frozen);

	smart_assert(way->end == END_FULL);
	if (status != SMART_OK || !frozen)
		return status;
	status = claim_entries(client, &entries);
	sim_timed_pass(&client->simulated.timed, longer_grace(tree_of(client->cluster)));
	if (status == SMART_OK)
		status = copy_node(client, level.word, &copy);
	if (status == SMART_OK)
		status = replace(client, way, key, length, level.word | FROZEN, copy, &replaced);
	return status == SMART_OK && replaced ? release_entries(client, &entries, copy) : status;
}

/*
 * New nodes of eight for the bytes from .. to of a key: a chain if they are many, of which the last one has the
 * other's word and the leaf.  WRITES them, and CASes the word that led to the other, in the last level's node.
 */
static smart_status
put_between(struct peer_client *client, const struct way *way, const uint8_t *key, unsigned int from, unsigned int to,
			uint64_t other, fabric_address word_at, uint64_t old, bool *again)
{
	struct scratch *scratch = scratch_of(client);
	struct fabric_request requests[CHAIN_MAX];
	struct entries entries;
	uint64_t first = 0;
	uint64_t *link = &first;
	unsigned int begins = from;
	uint8_t byte = word_byte(old);
	int count = 0;
	uint64_t found;
	smart_status status;

	smart_assert(from <= to);
	for (;; begins += PATH_MAX + 1)
	{
		unsigned int length = to - begins < PATH_MAX ? to - begins : PATH_MAX;
		fabric_address address = peer_allocate(client->cluster, node_bytes(N8));
		uint64_t *node = scratch->chain[count];

		smart_assert(count < CHAIN_MAX);
		if (address == 0)
			return SMART_NO_SPACE;
		*link = make_word(byte, length, N8, address);
		memset(node, 0, node_bytes(N8));
		requests[count++] = peer_write_of(address, node, node_bytes(N8));
		link = node;
		byte = key[begins + length];
		if (begins + length == to)
			break;
	}
	link[0] = other;
	link[1] = make_word(key[to], 0, LEAF, scratch->mine_address);
	/* The table has the first of the new nodes alone; a longer prefix is found from there. */
	entries = (struct entries){key, from, from + word_length(first), first | FROZEN};
	status = fabric_execute(client->simulated.client.fabric, requests, count);
	if (status == SMART_OK)
		status = claim_entries(client, &entries);
	if (status == SMART_OK)
		status = peer_cas(client, word_at, old, first, &found);
	*again = status == SMART_OK && found != old;
	/* The entries of a node that may not have come into the tree stay frozen, and lead nowhere. */
	if (status == SMART_OK && !*again)
		status = validate(client, way, again);
	return status == SMART_OK && !*again ? release_entries(client, &entries, first) : status;
}

/* The key differs from the leaf's where a path on the way is compressed: a node comes there (4.2, node split). */
static smart_status
split_path(struct peer_client *client, struct way *way, const uint8_t *key, unsigned int same, bool *again)
{
	const struct scratch *scratch = scratch_of(client);
	const struct level *level = way->level;

	while (level->depth <= same)
		level++;
	smart_assert(level < way->level + way->levels && level->begins <= same && level->word_at != 0);
	way->levels = (unsigned int) (level - way->level); /* what validate looks at: the nodes above */
	return put_between(client, way, key, level->begins, same,
					   with_byte(level->word, scratch->leaf.bytes[same], level->depth - same - 1), level->word_at,
					   level->word, again);
}

/* Into the first free place of the bucket, or the next one if another client was there before. */
static smart_status
put_into_bucket(struct peer_client *client, struct way *way, const uint8_t *key, bool *again)
{
	const struct level *level = &way->level[way->levels - 1];
	enum type type = word_type(level->word);
	uint64_t mine = make_word(key[level->depth], 0, LEAF, scratch_of(client)->mine_address);
	uint64_t found = 0;
	smart_status status;

	smart_assert(way->end == END_FREE && way->place < bucket_words(type));
	for (;; way->place++, way->word_at += sizeof(uint64_t))
	{
		status = peer_cas(client, way->word_at, 0, mine, &found);
		if (status != SMART_OK || found == 0 || word_byte(found) == word_byte(mine) ||
			way->place + 1 == bucket_words(type))
			break;
	}
	*again = found != 0;
	return status == SMART_OK && !*again ? validate(client, way, again) : status;
}

/* One attempt without the key in the tree; *same: bytes that it has in common with the leaf READ, which is there if known. */
static smart_status
insert_here(struct peer_client *client, struct way *way, const uint8_t *key, size_t length, bool *skips, bool *again)
{
	struct scratch *scratch = scratch_of(client);
	unsigned int depth = way->level[way->levels - 1].depth;
	unsigned int same = depth;
	bool known = way->end == END_LEAF;
	smart_status status = SMART_OK;

	smart_assert(way->end != END_FAILED && way->levels > 0);
	*again = true;
	if (!known)
		status = read_some_leaf(client, way, length, &known);
	if (status == SMART_OK && known)
		same = common_bytes(scratch, key);
	if (status != SMART_OK)
		return status;
	/* What is above the skip table's node, or is to be above it, is seen from the root; so is the word of a full node. */
	if (*skips && way->skipped && (same < depth || (way->end == END_FULL && way->levels == 1) || !known))
	{
		*skips = false;
		return SMART_OK;
	}
	if (way->frozen)
	{
		wait_for_switch(client);
		return SMART_OK;
	}
	if (same < depth)
		return split_path(client, way, key, same, again);
	if (way->end == END_FULL)
		return switch_type(client, way, key, length);
	if (way->end == END_LEAF)
		return put_between(client, way, key, depth + 1, same, with_byte(way->word, scratch->leaf.bytes[same], 0),
						   way->word_at, way->word, again);
	return put_into_bucket(client, way, key, again);
}

static smart_status
dart_insert(struct ycsb_client *ycsb, const uint8_t *entry, size_t key_length, size_t length, bool *added)
{
	struct peer_client *client = peer_client_of(ycsb);
	struct scratch *scratch = scratch_of(client);
	struct way *way = &scratch->way;
	smart_status status = draft_leaf(client, entry, key_length, peer_value_of(entry, key_length, length));
	bool skips = true;
	bool again = true;
	bool tried = false;

	while (status == SMART_OK && again)
	{
		descend(client, way, entry, key_length, skips);
		status = way->status;
		if (status != SMART_OK)
			return status;
		*added = !has_key(way, scratch, entry, key_length);
		if (*added)
		{
			status = insert_here(client, way, entry, key_length, &skips, &again);
			tried = true;
			continue;
		}
		/* One's own leaf may have come into the copy after all: not if it is in what is being copied. */
		*added = tried && word_address(way->word) == scratch->mine_address;
		again = *added && way->frozen;
		if (again)
			wait_for_switch(client);
	}
	return status;
}

/* ---- scan ---- */

static uint64_t
word_bytes(const struct peer_cluster *cluster, uint64_t word, size_t key_length)
{
	return word_is_leaf(word) ? leaf_bytes(cluster, key_length) : node_bytes(word_type(word));
}

static int
compare_words(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *) a;
	uint64_t right = *(const uint64_t *) b;

	return left < right ? -1 : left > right;
}

/* Below a compressed path the bytes of prefixes are not known. */
static int
list_subtrees(const void *node, const struct peer_subtree *subtree, struct peer_subtree *children)
{
	unsigned int length = word_length(subtree->word);
	unsigned int slots = type_words[word_type(subtree->word)];
	struct peer_subtree child = *subtree;
	bool known = length == 0 && subtree->known == subtree->depth;
	uint64_t words[256];
	int count = 0;

	smart_assert(!word_is_leaf(subtree->word));
	memcpy(words, node, slots * sizeof(words[0]));
	qsort(words, slots, sizeof(words[0]), compare_words);
	child.depth = (uint16_t) (subtree->depth + length + 1);
	smart_assert(!known || child.depth <= YCSB_KEY_MAX);
	if (known)
		child.known = child.depth;
	for (unsigned int i = 0; i < slots; i++)
	{
		child.word = words[i];
		if (known)
			child.prefix[child.known - 1] = word_byte(words[i]);
		if (words[i] != 0)
			children[count++] = child;
	}
	return count;
}

static const uint8_t *
leaf_key(const void *leaf)
{
	return ((const struct leaf *) leaf)->bytes;
}

static const struct peer_radix radix = {
	.is_leaf = word_is_leaf,
	.bytes = word_bytes,
	.address = word_address,
	.children = list_subtrees,
	.leaf_key = leaf_key,
};

static smart_status
dart_scan(struct ycsb_client *ycsb, const uint8_t *key, size_t length, uint64_t wanted, uint64_t *seen)
{
	struct peer_client *client = peer_client_of(ycsb);

	return peer_radix_scan(client, &radix, &scratch_of(client)->scan, tree_of(client->cluster)->root, key, length,
						   wanted, seen);
}

/* ---- load ---- */

static uint64_t
load_leaf(const struct peer_keys *keys, uint64_t number, unsigned int depth)
{
	const uint8_t *key = peer_key_at(keys, number);
	size_t length = peer_key_length(keys, number);
	fabric_address address = peer_allocate(keys->cluster, leaf_bytes(keys->cluster, length));

	smart_assert(depth < length);
	if (address == 0)
		return 0;
	fill_leaf(peer_memory(keys->cluster, address), key, length, keys->value[number]);
	return make_word(key[depth], 0, LEAF, address);
}

/* The first key behind one that has another byte at a place, up to high. */
static uint64_t
next_byte(const struct peer_keys *keys, uint64_t low, uint64_t high, unsigned int depth)
{
	uint64_t next = low + 1;

	smart_assert(low < high);
	while (next < high && peer_key_at(keys, next)[depth] == peer_key_at(keys, low)[depth])
		next++;
	return next;
}

/* The word for keys low .. high - 1, which have so many bytes in common at least; 0: no space. */
static uint64_t
load_subtree(const struct peer_keys *keys, uint64_t low, uint64_t high, unsigned int begins, bool root)
{
	const uint8_t *first = peer_key_at(keys, low);
	const uint8_t *last = peer_key_at(keys, high - 1);
	unsigned int depth = begins;
	uint64_t node[256];
	uint64_t words[256];
	unsigned int count = 0;
	enum type type;
	fabric_address address;

	smart_assert(low < high && (root || begins > 0));
	if (high - low == 1 && !root)
		return load_leaf(keys, low, begins - 1);
	while (!root && depth - begins < PATH_MAX && first[depth] == last[depth])
		depth++;
	for (uint64_t next; low < high; low = next)
	{
		next = next_byte(keys, low, high, depth);
		smart_assert(count < 256);
		words[count] = load_subtree(keys, low, next, depth + 1, false);
		if (words[count++] == 0)
			return 0;
	}
	type = fill_node(node, words, count, root ? N256 : N8);
	address = root ? word_address(tree_of(keys->cluster)->root) : peer_allocate(keys->cluster, node_bytes(type));
	if (address == 0)
		return 0;
	memcpy(peer_memory(keys->cluster, address), node, node_bytes(type));
	return make_word(root ? 0 : first[begins - 1], depth - begins, type, address);
}

/* ---- the skip table after a load ---- */

#define SAMPLES     4096
#define BUDGET      2    /* keys for each entry of the table at least */
#define LEAST_SAVED 0.02 /* round trips of a search, for another length */

/* The nodes on the way to a key: where each begins, and branches. */
struct path
{
	uint8_t begins[LEVELS_MAX];
	uint8_t depth[LEVELS_MAX];
	unsigned int levels;
	unsigned int length; /* of the key */
};

static void
find_path(struct peer_cluster *cluster, const uint8_t *key, unsigned int length, struct path *path)
{
	uint64_t word = tree_of(cluster)->root;
	unsigned int begins = 0;

	*path = (struct path){.length = length};
	while (!word_is_leaf(word))
	{
		const uint64_t *node = peer_memory(cluster, word_address(word));
		unsigned int depth = begins + word_length(word);
		const uint64_t *bucket = node + bucket_of(word_type(word), key[depth]);

		smart_assert(path->levels < LEVELS_MAX && depth < length);
		path->begins[path->levels] = (uint8_t) begins;
		path->depth[path->levels++] = (uint8_t) depth;
		word = bucket[find_in_bucket(word_type(word), bucket, key[depth])];
		begins = depth + 1;
	}
}

/* Round trips of a search with these lengths, which descend, in the skip table. */
static unsigned int
search_cost(const struct path *path, const unsigned int *lengths, unsigned int count)
{
	unsigned int probes = 0;

	for (unsigned int i = 0; i < count; i++)
	{
		if (lengths[i] >= path->length)
			continue;
		probes++;
		for (unsigned int level = 0; level < path->levels; level++)
		{
			if (path->begins[level] <= lengths[i] && lengths[i] <= path->depth[level])
				return probes + path->levels - level + 1;
		}
	}
	return probes + path->levels + 1;
}

static double
mean_cost(const struct path *paths, const unsigned int *lengths, unsigned int count)
{
	double sum = 0;

	for (unsigned int i = 0; i < SAMPLES; i++)
		sum += search_cost(&paths[i], lengths, count);
	return sum / SAMPLES;
}

/* A length among those that descend. */
static void
insert_length(const unsigned int *from, unsigned int count, unsigned int length, unsigned int *to)
{
	unsigned int done = 0;

	smart_assert(count < LENGTHS_MAX);
	while (done < count && from[done] > length)
	{
		to[done] = from[done];
		done++;
	}
	to[done] = length;
	for (; done < count; done++)
		to[done + 1] = from[done];
}

/* Calls itself for all nodes below a word: counts of nodes by each length of a prefix, or their entries into the table. */
static void
visit_nodes(const struct peer_keys *keys, uint64_t word, uint64_t low, uint64_t high, unsigned int begins,
			uint64_t counts[YCSB_KEY_MAX + 1])
{
	const struct tree *tree = tree_of(keys->cluster);
	const uint64_t *node = peer_memory(keys->cluster, word_address(word));
	struct entries entries = {peer_key_at(keys, low), begins, begins + word_length(word), 0};

	smart_assert(word != 0 && low < high);
	if (word_is_leaf(word))
		return;
	for (unsigned int length = begins; length <= entries.depth && counts != NULL; length++)
		counts[length]++;
	for (unsigned int i = 0; i < tree->lengths && counts == NULL; i++)
	{
		uint64_t hash = prefix_hash(entries.key, tree->length[i]);
		uint64_t *bucket = peer_memory(keys->cluster, table_bucket(tree, hash));
		unsigned int place = find_entry(bucket, hash);

		if (has_entry(&entries, tree->length[i]) && place < TABLE_BUCKET && bucket[place] == 0)
			bucket[place] = entry_word(&entries, word, tree->length[i], hash);
	}
	for (uint64_t next; low < high; low = next)
	{
		uint8_t byte = peer_key_at(keys, low)[entries.depth];
		const uint64_t *bucket = node + bucket_of(word_type(word), byte);

		next = next_byte(keys, low, high, entries.depth);
		visit_nodes(keys, bucket[find_in_bucket(word_type(word), bucket, byte)], low, next, entries.depth + 1, counts);
	}
}

/* 3.1's adjustment.  How many entries the table will have. */
static uint64_t
choose_lengths(const struct peer_keys *keys, const struct path *paths, const uint64_t counts[YCSB_KEY_MAX + 1])
{
	struct tree *tree = tree_of(keys->cluster);
	uint64_t entries = 0;
	double cost;
	unsigned int best;

	tree->lengths = 0;
	cost = mean_cost(paths, tree->length, 0);
	do
	{
		double least = cost - LEAST_SAVED;

		best = 0;
		for (unsigned int length = 1; length <= YCSB_KEY_MAX; length++)
		{
			unsigned int lengths[LENGTHS_MAX + 1];
			double with;

			if (counts[length] == 0 || entries + counts[length] > keys->count / BUDGET)
				continue;
			insert_length(tree->length, tree->lengths, length, lengths);
			with = mean_cost(paths, lengths, tree->lengths + 1);
			if (with < least)
			{
				least = with;
				best = length;
			}
		}
		if (best != 0)
		{
			unsigned int lengths[LENGTHS_MAX + 1];

			insert_length(tree->length, tree->lengths, best, lengths);
			memcpy(tree->length, lengths, ++tree->lengths * sizeof(lengths[0]));
			entries += counts[best];
			cost = least;
		}
	} while (best != 0 && tree->lengths < LENGTHS_MAX);
	smart_assert(tree->lengths <= LENGTHS_MAX && entries <= keys->count / BUDGET);
	return entries;
}

static smart_status
load_table(const struct peer_keys *keys)
{
	struct tree *tree = tree_of(keys->cluster);
	uint64_t counts[YCSB_KEY_MAX + 1] = {0};
	struct path *paths = malloc(SAMPLES * sizeof(*paths));
	uint64_t random = keys->cluster->options->seed;
	bool opened;

	if (paths == NULL)
		return SMART_NO_MEMORY;
	for (unsigned int i = 0; i < SAMPLES; i++)
	{
		uint64_t number = ycsb_random_below(&random, keys->count);

		find_path(keys->cluster, peer_key_at(keys, number), (unsigned int) peer_key_length(keys, number), &paths[i]);
	}
	visit_nodes(keys, tree->root, 0, keys->count, 0, counts);
	opened = open_table(keys->cluster, choose_lengths(keys, paths, counts) + keys->cluster->options->operations / 4);
	free(paths);
	if (!opened)
		return SMART_NO_SPACE;
	visit_nodes(keys, tree->root, 0, keys->count, 0, NULL);
	return SMART_OK;
}

static smart_status
dart_load(struct ycsb_client *ycsb, const struct ycsb_options *options)
{
	struct peer_cluster *cluster = peer_client_of(ycsb)->cluster;
	struct peer_keys keys;
	smart_status status = peer_keys_collect(&keys, peer_client_of(ycsb), options);

	if (status == SMART_OK && load_subtree(&keys, 0, options->keys, 0, true) == 0)
		status = SMART_NO_SPACE;
	if (status == SMART_OK && cluster->variant != PEER_UNSKIPPED)
		status = load_table(&keys);
	peer_keys_free(&keys);
	return status;
}

/* ---- opening and closing ---- */

static bool
open_tree(struct peer_cluster *cluster)
{
	struct tree *tree = tree_of(cluster);

	tree->root = make_word(0, 0, N256, peer_allocate(cluster, node_bytes(N256)));
	smart_assert(word_address(tree->root) != 0);
	tree->grace_ns[0] = tree->grace_ns[1] = GRACE_MAX_NS / 10;
	tree->estimate_ns = GRACE_MAX_NS / 10;
	if (cluster->variant == PEER_UNSKIPPED)
		return true;
	/* Powers of two, until a load tells better. */
	for (unsigned int length = 32; length > 0; length /= 2)
		tree->length[tree->lengths++] = length;
	return cluster->options->sorted || open_table(cluster, (cluster->options->keys + cluster->options->operations) / 4);
}

static void
close_tree(struct peer_cluster *cluster)
{
	free(tree_of(cluster)->segment);
}

/* The directory alone. */
static void
use_of_cache(struct peer_compute *compute, struct ycsb_cache_use *use)
{
	use->node_bytes += tree_of(compute->cluster)->segments * sizeof(fabric_address);
}

const struct peer peer_dart = {
	.index =
		{
			.load = dart_load,
			.lookup = dart_lookup,
			.insert = dart_insert,
			.update = dart_update,
			.scan = dart_scan,
		},
	.cluster_bytes = sizeof(struct tree),
	.compute_bytes = 1,
	.client_bytes = sizeof(struct scratch),
	.open = open_tree,
	.close = close_tree,
	.cache_use = use_of_cache,
};
