/*
 * common.h
 *	  What both sides of an RDMA connection do: choose a device, a port and an
 *	  address, and connect a queue pair.
 *
 * A queue pair is a reliable connection.  A peer that is gone is found out after
 * VERBS_RETRIES repetitions of VERBS_TIMEOUT, about a second on a device that keeps
 * to it and four on one that takes its liberty; far below the ten seconds that a
 * client grants a batch.  Atomics have to be there, so iWARP will not do.
 */
#ifndef SMART_RDMA_VERBS_COMMON_H
#define SMART_RDMA_VERBS_COMMON_H

#include <infiniband/verbs.h>

#include "rdma/wire.h"

#define VERBS_TIMEOUT    15 /* 4.096 µs · 2^15 = 134 ms */
#define VERBS_RETRIES    6  /* not 7, which Soft-RoCE takes as for ever */
#define VERBS_DEVICE_MAX 64
#define VERBS_VENDOR_RXE 0xffffff /* as rxe calls itself */

/* What the operator asks for. */
struct verbs_choice
{
	const char *device; /* NULL: the first that will do */
	int port;           /* 0: the first that is up */
	int gid_index;      /* -1: found by itself */
};

/* An open device, and the port and address of it that are used. */
struct verbs_device
{
	struct ibv_context *context;
	struct ibv_pd *domain;
	uint8_t port;
	bool global;        /* addressed by gid (always so on Ethernet), not by lid */
	int gid_index;      /* if global */
	union ibv_gid gid;  /* zero unless global */
	uint16_t lid;       /* 0 on Ethernet */
	uint8_t mtu;        /* enum ibv_mtu */
	uint8_t reads_out;  /* READs and atomics that a queue pair may have under way, at least 1 */
	uint8_t reads_in;   /* … that it serves at a time, at least 1 */
	uint32_t queue_max; /* work requests of a queue pair */
	bool soft;          /* Linux's rxe, whose fences cannot be relied on (batch.c) */
};

/* SMART_UNREACHABLE: no device, or not this one; problem[] tells why. */
extern smart_status
verbs_device_open(const struct verbs_choice *choice, struct verbs_device *device, char problem[FABRIC_PROBLEM_MAX]);
extern void verbs_device_close(struct verbs_device *device);

/* A queue pair of this device as the other side has to know it; base, limit and rkey are the caller's. */
extern void
verbs_pair_describe(const struct verbs_device *device, const struct ibv_qp *pair, struct wire_queue_pair *mine);

/*
 * Takes a new queue pair into service.  access: what the other side may do here (IBV_ACCESS_REMOTE_…).
 * SMART_UNREACHABLE: it cannot be reached from this port; problem[] tells.
 */
extern smart_status verbs_pair_connect(const struct verbs_device *device, struct ibv_qp *pair, unsigned int access,
									   const struct wire_queue_pair *mine, const struct wire_queue_pair *theirs,
									   char problem[FABRIC_PROBLEM_MAX]);

/* problem[] of a call of the library that failed with this errno; says so where the limit of locked memory may be why. */
extern smart_status verbs_failed(const char *what, int error, char problem[FABRIC_PROBLEM_MAX]);

#endif /* SMART_RDMA_VERBS_COMMON_H */
