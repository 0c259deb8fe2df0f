/*
 * report.h
 *	  What the operator is told of a running node: what --status and --metrics
 *	  have in common.
 */
#ifndef MEMNODE_REPORT_H
#define MEMNODE_REPORT_H

#include <time.h>

#include "node.h"
#include "options.h"
#include "rdma/tcp/stream.h"
#include "text.h"

/* The node, and what is known of the process around it.  The daemon's; may change between turns of its loop. */
struct memnode_report
{
	const struct memnode *node;
	const struct memnode_options *options;
	const char *version;
	const char *place;   /* where clients connect */
	const char *memory;  /* where the region is */
	const char *metrics; /* where metrics are; empty: nowhere */
	time_t started;
	unsigned int key_count;         /* of keys that are accepted; 0: none is needed */
	uint64_t keys[STREAM_KEYS_MAX]; /* their names */
	time_t keys_read;
	bool removed; /* somebody has removed the memory */
};

enum memnode_session_state
{
	MEMNODE_SESSION_GREETING, /* has not said HELLO */
	MEMNODE_SESSION_CONTROL,
	MEMNODE_SESSION_VERBS,
	MEMNODE_SESSION_LEAVING, /* refused, or shut out */
	MEMNODE_SESSION_STATES
};

/* Words for label values and for people. */
extern const char *const memnode_session_words[MEMNODE_SESSION_STATES];
extern const char *const memnode_refusal_words[MEMNODE_REFUSALS];
extern const char *const memnode_request_words[WIRE_TYPES];       /* from WIRE_HELLO on */
extern const char *const memnode_answer_words[WIRE_STATUS_COUNT]; /* of refusals: WIRE_OK has none */
extern const char *const memnode_verb_words[FABRIC_VERBS];

extern void memnode_report_sessions(const struct memnode_report *report, uint64_t sessions[MEMNODE_SESSION_STATES]);

/* Sessions that were made with this key; 0: with one that is not accepted any more. */
extern unsigned int memnode_report_sessions_of_key(const struct memnode_report *report, uint64_t key);

/* Sessions that speak this version of the protocol. */
extern unsigned int memnode_report_sessions_of_version(const struct memnode_report *report, uint32_t version);

/* Bytes that can be handed out, and those that have been. */
extern uint64_t memnode_report_size(const struct memnode_report *report);
extern uint64_t memnode_report_used(const struct memnode_report *report);

/* The next owner of whom anything is known, not below this number; MEMNODE_OWNERS: there is none. */
extern uint32_t memnode_report_owner(const struct memnode_report *report, uint32_t from);
extern uint64_t memnode_report_owner_used(const struct memnode_report *report, uint32_t owner);

/* The system identifier of the owner's cluster. */
extern uint64_t memnode_report_owner_system(const struct memnode_report *report, uint32_t owner);

/* Since when the incarnation has the owner's lease; since the node's start, where it had it before. */
extern uint64_t memnode_report_lease_ns(const struct memnode_report *report, uint32_t owner);

#define MEMNODE_WHEN_BYTES 64

/* A time of the machine's calendar, as text. */
extern void memnode_report_put_time(char text[MEMNODE_WHEN_BYTES], time_t when);

/* A stretch of time: "02:03:04", or with days before it. */
extern void memnode_report_put_stretch(char text[MEMNODE_WHEN_BYTES], uint64_t seconds);

#endif /* MEMNODE_REPORT_H */
