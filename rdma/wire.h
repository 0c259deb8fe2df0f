/*
 * wire.h
 *	  The protocol between a compute node and a memory node: messages on a
 *	  stream, and their checks.
 *
 * The client asks, the memory node answers, in order; a client may send several
 * requests before it reads the first answer.  Numbers are little-endian.
 *
 *	  frame     length 4 · type 1 · 0 1 · status 2 · number 8 · payload (length bytes)
 *	  answer    type + WIRE_REPLY, the request's number, a status, and a payload
 *	            that is empty unless the status is WIRE_OK
 *
 * The first request of a connection is HELLO, and only that one.  A connection
 * belongs to an owner, named by the identity of a server's data directory, and to one
 * incarnation of it (a start of its server).  Any number of owners use a memory node side by
 * side, each with chunks, trees and a lease of its own: a server, its standbys, and other
 * clusters.  Two servers that claim one identity are a data directory and its copy.
 *
 *	  HELLO        the client                       what this memory node is
 *	  LEASE        takes the owner's lease          -
 *	  CHUNKS_TAKE  how many                         their numbers
 *	  CHUNKS_GIVE  their numbers                    -
 *	  CHUNKS_LIST  from which number on             the owner's chunks, ascending, at most WIRE_LIST_MAX
 *	  TREE_MAKE    id, description                  where the root slot lies; the same again if it is there already
 *	  TREE_DROP    id                               - (also if there is none)
 *	  TREES_LIST   cursor                           the owner's trees, at most WIRE_LIST_MAX, and the next cursor
 *	  STATUS       -                                sizes and counts
 *	  VERBS        a batch of verbs                 what they read
 *	  CONNECT      the client's queue pair          the memory node's queue pair
 *	  DESCEND      where to begin, and a key        the blocks on its path (descent.h)
 *
 * Lease.  An owner has one incarnation at a time.  LEASE of another one is
 * refused (WIRE_HELD) while a connection of the present one is open, which is ended
 * some seconds later if its host does not answer the kernel's probes; else it
 * closes what is left of older ones and destroys their queue pairs before it is
 * answered.  LEASE names the owner's extent map (whose chunks these are): with another
 * extent map than before, all chunks and trees of the owner are freed first.  And it
 * names whose lease it continues: the incarnation that, as the extent map knows, had the
 * lease here last.  If another one had it, of this extent map or another, or if the owner is not
 * known here, extent map and memory have not gone the same way, because one of them is a copy, or
 * came back from one, or what was here has been freed; then the lease is refused
 * (WIRE_FOREIGN), and a LEASE that names none has all of the owner's chunks and trees freed first.  Before
 * its lease an incarnation may send HELLO, LEASE and STATUS only (else
 * WIRE_FENCED).
 *
 * Generations.  A connection for verbs carries a generation.  When HELLO brings a
 * higher one than any of this owner before, the memory node closes the owner's
 * connections for verbs of lower ones, destroys their queue pairs, forgets what they
 * sent, and answers then; a lower one is refused (WIRE_STALE).  So a client that does not
 * know whether its verbs took effect raises the generation, and no client of its
 * compute node can see a memory node on which these verbs may still come.
 *
 * Versions.  Magic and version come first in HELLO in every version.  HELLO names the version of
 * all that the client sends, and a memory node answers in it.  Both sides know this version and the
 * one before, so that either may be upgraded first.  A memory node refuses other versions
 * (WIRE_UNSUPPORTED); a client that is refused connects again and speaks the version before.
 *
 *	  5   an owner is an identity, and HELLO tells the system identifier besides
 *	  4   an owner is a system identifier, which serves as its identity, too; all else is the same
 */
#ifndef SMART_RDMA_WIRE_H
#define SMART_RDMA_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rdma/fabric.h"

#define WIRE_MAGIC          UINT32_C(0x54524d53) /* "SMRT" */
#define WIRE_VERSION        5
#define WIRE_VERSION_BEFORE (WIRE_VERSION - 1)

/* Where a memory node is, as text, and why something with it failed. */
#define SESSION_HOST_MAX    256
#define SESSION_PORT_MAX    8
#define SESSION_PROBLEM_MAX FABRIC_PROBLEM_MAX

#define WIRE_REPLY        0x80
#define WIRE_HEADER_BYTES 16
#define WIRE_PAYLOAD_MAX  (1u << 20) /* of a request and of an answer */
#define WIRE_BATCH_MAX    1024       /* verbs in a VERBS request */
#define WIRE_LIST_MAX     1024
#define WIRE_OWNER_BYTES  48 /* of a tree's description, which the memory node does not look at */
#define WIRE_CHUNK_BYTES  (2u << 20)
#define WIRE_VERB_BYTES   32 /* verb 1 · fence 1 · 0 2 · length 4 · offset 8 · compare 8 · operand 8 */

enum wire_type
{
	WIRE_HELLO = 1,
	WIRE_LEASE,
	WIRE_CHUNKS_TAKE,
	WIRE_CHUNKS_GIVE,
	WIRE_CHUNKS_LIST,
	WIRE_TREE_MAKE,
	WIRE_TREE_DROP,
	WIRE_TREES_LIST,
	WIRE_STATUS,
	WIRE_VERBS,
	WIRE_CONNECT,
	WIRE_DESCEND,
	WIRE_TYPES
};

enum wire_status
{
	WIRE_OK = 0,
	WIRE_BAD,         /* not a request of this protocol; the connection is closed after this answer */
	WIRE_UNSUPPORTED, /* an unknown version, or a transport that this node does not have */
	WIRE_HELD,        /* another incarnation has the lease */
	WIRE_FENCED,      /* this incarnation has not, or no longer, the lease */
	WIRE_STALE,       /* a lower generation than another connection's */
	WIRE_FULL,        /* no chunk left, or no room in the directory */
	WIRE_OUTSIDE, /* an address that is not in the region (READ) or in a chunk of this owner (others), or not aligned */
	WIRE_BUSY,    /* as many connections as this node allows */
	WIRE_FOREIGN, /* an incarnation that the extent map does not know of had the lease */
	WIRE_STATUS_COUNT
};

/* Bits of wire_welcome.transports, numbers elsewhere. */
enum wire_transport
{
	WIRE_TCP = 1,
	WIRE_RDMA = 2
};

struct wire_header
{
	uint32_t length; /* of the payload */
	uint8_t type;
	uint16_t status;
	uint64_t number;
};

/*
 * The payloads lie in messages as these structs lie in memory, but for HELLO and its answer, which have more.
 */

/* 48 bytes: magic 4 · version 4 · and these; in the version before without the last */
struct wire_hello
{
	uint64_t owner;       /* the identity of the server's data directory, random */
	uint64_t incarnation; /* of the server's start, random */
	uint32_t generation;
	uint32_t client; /* among the compute node's clients; a new connection for verbs closes the client's older one */
	uint32_t pid;    /* for the operator */
	uint8_t verbs;   /* 1: VERBS, CONNECT or DESCEND will follow; 0: control only */
	uint8_t unused[3];
	uint64_t system; /* the cluster's system identifier, for the operator */
};

/* 40 bytes: node 8 · capacity 8 · allocated 8 · chunk_bytes 4 · transports 4 · version 4 · 0 4 */
struct wire_welcome
{
	uint64_t node;      /* the region's incarnation: another number is another memory */
	uint64_t capacity;  /* bytes in chunks */
	uint64_t allocated; /* bytes in chunks that have an owner */
	uint32_t transports;
	uint32_t version; /* HELLO's */
};

struct wire_lease
{
	uint64_t extents;
	uint64_t heir_of;   /* the incarnation whose lease this one continues, or 0 */
	uint32_t transport; /* the one transport of this owner's verbs: a tree lives in one atomics domain */
	uint32_t unused;
};

struct wire_tree
{
	uint64_t id;
	uint64_t root; /* offset in the region; in TREE_MAKE's request 0 */
	uint8_t description[WIRE_OWNER_BYTES];
};

struct wire_node_status
{
	uint64_t capacity;
	uint64_t allocated;
	uint64_t trees;
	uint64_t connections;
	uint64_t own_chunks;
	uint64_t own_trees;
	uint64_t uptime_ms;
	uint64_t requests; /* VERBS requests served since start */
};

/* A queue pair, as CONNECT carries it both ways. */
struct wire_queue_pair
{
	uint8_t gid[16];
	uint64_t base;  /* answer: the address that offset 0 of the region has */
	uint64_t limit; /* answer: offsets that may be reached end here */
	uint32_t number;
	uint32_t psn;
	uint32_t rkey; /* answer */
	uint16_t lid;
	uint8_t mtu;   /* enum ibv_mtu */
	uint8_t reads; /* READs and atomics that it serves at a time, at least 1 */
};

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers lie in messages as in memory");
_Static_assert(sizeof(struct wire_hello) == 40 && offsetof(struct wire_hello, system) == 32, "a message's layout");
_Static_assert(sizeof(struct wire_lease) == 24 && offsetof(struct wire_lease, transport) == 16, "a message's layout");
_Static_assert(sizeof(struct wire_tree) == 64 && offsetof(struct wire_tree, description) == 16, "a message's layout");
_Static_assert(sizeof(struct wire_node_status) == 64, "a message's layout");
_Static_assert(sizeof(struct wire_queue_pair) == 48 && offsetof(struct wire_queue_pair, number) == 32 &&
				   offsetof(struct wire_queue_pair, lid) == 44,
			   "a message's layout");

/* ---- frames ---- */

extern void wire_put_header(uint8_t *bytes, const struct wire_header *header);

/* False: no frame of this protocol begins like this (type, length, unused bits); the connection is lost. */
extern bool wire_get_header(const uint8_t *bytes, bool answer, struct wire_header *header);

/* ---- payloads: put returns the bytes written, get tells whether the payload is one ---- */

/* Is this a version that is spoken here? */
static inline bool
wire_knows(uint32_t version)
{
	return version == WIRE_VERSION || version == WIRE_VERSION_BEFORE;
}

/* A HELLO of a version that is not known here is one, too, but nothing else of it is looked at. */
extern uint32_t wire_put_hello(uint8_t *bytes, uint32_t version, const struct wire_hello *hello);
extern bool wire_get_hello(const uint8_t *bytes, uint32_t length, uint32_t *version, struct wire_hello *hello);
extern uint32_t wire_put_welcome(uint8_t *bytes, const struct wire_welcome *welcome);
extern bool wire_get_welcome(const uint8_t *bytes, uint32_t length, struct wire_welcome *welcome);
extern uint32_t wire_put_lease(uint8_t *bytes, const struct wire_lease *lease);
extern bool wire_get_lease(const uint8_t *bytes, uint32_t length, struct wire_lease *lease);
extern uint32_t wire_put_node_status(uint8_t *bytes, const struct wire_node_status *status);
extern bool wire_get_node_status(const uint8_t *bytes, uint32_t length, struct wire_node_status *status);
extern uint32_t wire_put_queue_pair(uint8_t *bytes, const struct wire_queue_pair *pair);
extern bool wire_get_queue_pair(const uint8_t *bytes, uint32_t length, struct wire_queue_pair *pair);

/* One number of 4 bytes (CHUNKS_TAKE, CHUNKS_LIST) or 8 (TREE_DROP, TREES_LIST). */
extern uint32_t wire_put_u32(uint8_t *bytes, uint32_t number);
extern bool wire_get_u32(const uint8_t *bytes, uint32_t length, uint32_t *number);
extern uint32_t wire_put_u64(uint8_t *bytes, uint64_t number);
extern bool wire_get_u64(const uint8_t *bytes, uint32_t length, uint64_t *number);

/* Chunk numbers: count 4, then 4 each; at most WIRE_LIST_MAX. */
extern uint32_t wire_put_chunks(uint8_t *bytes, const uint32_t *chunks, uint32_t count);
extern bool wire_get_chunks(const uint8_t *bytes, uint32_t length, uint32_t *chunks, uint32_t *count);

/* One tree (TREE_MAKE, both ways), and TREES_LIST's answer: cursor 8 (0: that was all), count 4, 0 4, 64 each. */
extern uint32_t wire_put_tree(uint8_t *bytes, const struct wire_tree *tree);
extern bool wire_get_tree(const uint8_t *bytes, uint32_t length, struct wire_tree *tree);
extern uint32_t wire_put_trees(uint8_t *bytes, uint64_t cursor, const struct wire_tree *trees, uint32_t count);
extern bool
wire_get_trees(const uint8_t *bytes, uint32_t length, uint64_t *cursor, struct wire_tree *trees, uint32_t *count);

/*
 * VERBS: count 4, 0 4, then WIRE_VERB_BYTES for each, then the bytes of the WRITEs in order.
 * Its answer: for each verb in order what it brings, the bytes of a READ or the
 * 8 bytes that an atomic found.  Neither may exceed WIRE_PAYLOAD_MAX.
 */

/* Bytes that a verb adds to the request and to the answer. */
extern uint32_t wire_verb_request_bytes(const struct fabric_request *request);
extern uint32_t wire_verb_reply_bytes(const struct fabric_request *request);

/*
 * Writes a VERBS payload of those of requests[0..count) that picked[] names, in order; remote addresses
 * become offsets.  Returns its bytes.
 */
extern uint32_t wire_put_verbs(uint8_t *bytes, struct fabric_request *const *picked, uint32_t count);

/*
 * Parses a VERBS payload into requests[0..*count), *count <= WIRE_BATCH_MAX; remote is the offset,
 * local of a WRITE points into bytes, local of a READ is NULL.  *result_bytes: what
 * the answer takes, at most WIRE_PAYLOAD_MAX.  False: not a VERBS payload.  Whether
 * an offset may be reached is the caller's business; offset + length does not overflow.
 */
extern bool wire_get_verbs(const uint8_t *bytes, uint32_t length, struct fabric_request *requests, uint32_t *count,
						   uint32_t *result_bytes);

/* An English phrase for a status; never NULL. */
extern const char *wire_status_text(enum wire_status status);

#endif /* SMART_RDMA_WIRE_H */
