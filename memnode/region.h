/*
 * region.h
 *	  The region of a memory node: a private part that no verb reaches, then
 *	  chunks.
 *
 *	  offset                 bytes
 *	  0                       4096   header
 *	  4096                   65536   owners, 64 bytes each
 *	  69632          80 × trees      tree records
 *	  .           4 × all chunks     chunk words, with room for more
 *	  first chunk × 2 MiB            chunks, up to the region's size
 *
 * A chunk's number is its offset in the region divided by its size, so the
 * private part takes the lowest numbers.  A region can grow: chunks are added at
 * its end, and words for them in the room behind the others.
 *
 * The private part outlives the process.  A process that changes it keeps it such that
 * the next one can go on from every moment: what a record says is stored
 * before the one word that makes it valid (release), and that word is
 * taken back before the rest changes.  Only a machine that stops, whose memory may reach its
 * storage in any order, makes a region worthless; boot identification and clean
 * mark tell that.
 */
#ifndef MEMNODE_REGION_H
#define MEMNODE_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rdma/wire.h"

#define MEMNODE_MAGIC    UINT64_C(0x65646f6e6d656d01)
#define MEMNODE_VERSION  2
#define MEMNODE_CLEAN    UINT64_C(0x6e61656c63)
#define MEMNODE_OWNERS   1024u
#define MEMNODE_SIZE_MIN ((uint64_t) 16 << 20)
#define MEMNODE_SIZE_MAX ((uint64_t) 1 << 40)

/* The first page. */
struct memnode_header
{
	/* Fixed when the region is made; magic is stored last.  crc covers the others. */
	uint64_t magic;
	uint64_t size;
	uint64_t incarnation;
	uint32_t version;
	uint32_t chunk_bytes;
	uint32_t trees; /* tree records */
	uint32_t first_chunk;
	uint32_t unused0;
	uint32_t crc;
	uint64_t unused1[2];

	/* The machine's boot in which the region was last used, and MEMNODE_CLEAN while no process uses it. */
	uint64_t boot[2];
	uint64_t clean;
	uint64_t grown; /* to this size, stored last; 0: it has the size that it was made with */
	uint64_t unused2[4];
};

enum memnode_owner_state
{
	MEMNODE_OWNER_NONE = 0,
	MEMNODE_OWNER_KNOWN,
	MEMNODE_OWNER_EMPTYING /* its chunks and trees are being freed: nothing of it is to be kept */
};

struct memnode_owner_record
{
	uint64_t id; /* the identity */
	uint64_t extents;
	uint64_t incarnation; /* that has the lease */
	uint32_t transport;   /* of its verbs */
	uint32_t state;       /* enum memnode_owner_state */

	/* For the operator, and for who is forgotten: none of it decides what a client may do. */
	uint64_t system;     /* the cluster's system identifier; 0: it was not told, and is the identity */
	uint64_t seen;       /* when a client of it was connected last, in seconds since 1970-01-01; 0: not known */
	uint8_t address[16]; /* of that client, as IPv6 has it; zero: not known */
};

/* A chunk's word: what it is used for, and owner + 1 in the bits above. */
enum memnode_chunk_use
{
	MEMNODE_CHUNK_ZERO = 0, /* free, holds zeros */
	MEMNODE_CHUNK_FREE,     /* free, holds anything */
	MEMNODE_CHUNK_BLOCKS,   /* handed out */
	MEMNODE_CHUNK_ROOTS,    /* root slots of its owner's trees */
	MEMNODE_CHUNK_PRIVATE   /* this private part */
};

#define MEMNODE_CHUNK_OWNER_SHIFT 8

static inline uint32_t
memnode_chunk_word(enum memnode_chunk_use use, uint32_t owner)
{
	return (uint32_t) use | ((owner + 1) << MEMNODE_CHUNK_OWNER_SHIFT);
}

static inline enum memnode_chunk_use
memnode_chunk_use(uint32_t word)
{
	return (enum memnode_chunk_use)(word & ((1u << MEMNODE_CHUNK_OWNER_SHIFT) - 1));
}

/* Number of the owner's record; only if the chunk has one. */
static inline uint32_t
memnode_chunk_owner(uint32_t word)
{
	return (word >> MEMNODE_CHUNK_OWNER_SHIFT) - 1;
}

#define MEMNODE_ROOT_BYTES 64 /* a tree's place in a chunk of roots; the slot is in its first 8 */

struct memnode_tree_record
{
	uint64_t id;
	uint64_t root;  /* offset of the root slot */
	uint32_t owner; /* number of the owner's record */
	uint32_t used;  /* stored last when the tree is made, cleared first when it is dropped */
	uint8_t description[WIRE_OWNER_BYTES];
	uint64_t unused;
};

/* A process's view of a region. */
struct memnode_region
{
	uint8_t *base;
	uint64_t size; /* bytes, a multiple of WIRE_CHUNK_BYTES */
	struct memnode_header *header;
	struct memnode_owner_record *owners;
	uint32_t *chunks; /* words, by chunk number */
	struct memnode_tree_record *trees;
	uint32_t chunk_count; /* private ones included */
	uint32_t first_chunk;
	uint32_t tree_count;
};

/* Sets up the view of a region that is to be made; touches nothing.  size is in MEMNODE_SIZE_MIN..MEMNODE_SIZE_MAX. */
extern void memnode_region_plan(struct memnode_region *region, uint8_t *base, uint64_t size);

/* Sets up the view of the region that there is.  False: its header is damaged. */
extern bool memnode_region_view(struct memnode_region *region, uint8_t *base);

/* The machine's boot, as two numbers.  False: the system does not tell. */
extern bool memnode_region_boot(uint64_t boot[2]);

/* Makes an empty region.  zeroed: all memory behind the first page is known to hold zeros. */
extern void
memnode_region_format(struct memnode_region *region, uint64_t incarnation, const uint64_t boot[2], bool zeroed);

/* Stores the magic number: from now on the region is one.  The last step of formatting and of loading. */
extern void memnode_region_publish(struct memnode_region *region);

/* What a header says about the bytes that it begins. */
enum memnode_region_kind
{
	MEMNODE_REGION_NONE,    /* zero where a region has its magic number */
	MEMNODE_REGION_FOREIGN, /* something else */
	MEMNODE_REGION_OTHER_VERSION,
	MEMNODE_REGION_LARGER, /* than this size */
	MEMNODE_REGION_SAME    /* or it can grow to it */
};

extern enum memnode_region_kind memnode_region_kind(const struct memnode_header *header, uint64_t size);

/* The region's size; only of a header of this version. */
extern uint64_t memnode_region_size(const struct memnode_header *header);

/* The size to which it can grow. */
extern uint64_t memnode_region_size_max(const struct memnode_region *region);

/* Lets a region that nobody uses grow.  zeroed: what is behind it is known to hold zeros. */
extern void memnode_region_grow(struct memnode_region *region, uint64_t size, bool zeroed);

/*
 * May this process go on with a region of the same version?  NULL, or
 * an English phrase why not.  Reads the private part only.
 */
extern const char *memnode_region_fault(const struct memnode_region *region, const uint64_t boot[2]);

/* The region is in use in this boot from now on; and: it is complete, and not in use. */
extern void memnode_region_claim(struct memnode_region *region, const uint64_t boot[2]);
extern void memnode_region_release(struct memnode_region *region);

_Static_assert(sizeof(struct memnode_header) == 128, "fixed fields, then changing ones");
_Static_assert(offsetof(struct memnode_header, boot) == 64, "the changing fields have a line of their own");
_Static_assert(sizeof(struct memnode_owner_record) == 64, "an owner is a cache line");
_Static_assert(sizeof(struct memnode_tree_record) == 80, "tree records have no holes");

#endif /* MEMNODE_REGION_H */
