/*
 * common.c
 *	  Choosing an RDMA device, and connecting queue pairs.
 *
 * Addresses.  On Ethernet (RoCE) a port has a table of GIDs, one for each IP
 * address and version of RoCE.  Version 2 over IPv4 comes first, since every
 * network routes it; a link-local address is the last resort.  On InfiniBand
 * the LID that the subnet manager gave the port does, unless the operator
 * names a GID.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/assert.h"
#include "rdma/verbs/common.h"

#define HOPS      64  /* routers that a packet may cross */
#define GID_MAX   256 /* entries of a port's table that an address can name */
#define RNR_TIMER 12  /* 0.64 ms: when a side that is busy wants a verb again … */
#define RNR_TRIES 6   /* … and how often; 7 would be for ever */

smart_status
verbs_failed(const char *what, int error, char problem[FABRIC_PROBLEM_MAX])
{
	snprintf(problem, FABRIC_PROBLEM_MAX, "RDMA: %s: %s%s", what, strerror(error),
			 error == ENOMEM || error == EAGAIN || error == EPERM
				 ? " (is the limit of locked memory too low? ulimit -l, LimitMEMLOCK= of systemd)"
				 : "");
	return SMART_UNREACHABLE;
}

/* ---- a device ---- */

/* How good an address of the port is; 0: of no use. */
static unsigned int
gid_rank(const struct ibv_gid_entry *entry)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	const uint8_t *bytes = entry->gid.raw;

	if (entry->gid_type == IBV_GID_TYPE_ROCE_V1)
		return 1;
	if (entry->gid_type != IBV_GID_TYPE_ROCE_V2)
		return 0;
	if (memcmp(bytes, mapped, sizeof(mapped)) == 0)
		return 4;
	return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80 ? 2 : 3;
}

/* The best address of an Ethernet port; a table has holes. */
static smart_status
gid_find(struct verbs_device *device, int entries, const char *name, char problem[FABRIC_PROBLEM_MAX])
{
	unsigned int best = 0;

	for (int i = 0; i < entries && i < GID_MAX && best < 4; i++)
	{
		struct ibv_gid_entry entry;
		unsigned int rank;

		if (ibv_query_gid_ex(device->context, device->port, (uint32_t) i, &entry, 0) != 0)
			continue;
		rank = gid_rank(&entry);
		if (rank > best)
		{
			best = rank;
			device->gid_index = i;
			device->gid = entry.gid;
		}
	}
	smart_assert(best == 0 || (device->gid_index >= 0 && device->gid_index < GID_MAX));
	if (best > 0)
		return SMART_OK;
	snprintf(problem, FABRIC_PROBLEM_MAX, "RDMA device %s: port %u has no address (GID)", name, device->port);
	return SMART_UNREACHABLE;
}

/* Decides how the port is addressed. */
static smart_status
address_find(const struct verbs_choice *choice, const struct ibv_port_attr *port, const char *name,
			 struct verbs_device *device, char problem[FABRIC_PROBLEM_MAX])
{
	int error;

	device->lid = port->lid;
	device->mtu = (uint8_t) port->active_mtu;
	device->global = port->link_layer == IBV_LINK_LAYER_ETHERNET || choice->gid_index >= 0;
	if (!device->global)
		return SMART_OK;
	if (choice->gid_index < 0)
		return gid_find(device, port->gid_tbl_len, name, problem);
	device->gid_index = choice->gid_index;
	error = choice->gid_index < GID_MAX ? ibv_query_gid(device->context, device->port, choice->gid_index, &device->gid)
										: EINVAL;
	/* A hole in the table is found as an address of zeros. */
	if (error == 0 && (device->gid.global.interface_id != 0 || device->gid.global.subnet_prefix != 0))
		return SMART_OK;
	snprintf(problem, FABRIC_PROBLEM_MAX, "RDMA device %s: port %u has no address (GID) with index %d", name,
			 device->port, choice->gid_index);
	return SMART_UNREACHABLE;
}

static smart_status
port_find(const struct verbs_choice *choice, uint8_t ports, const char *name, struct verbs_device *device,
		  char problem[FABRIC_PROBLEM_MAX])
{
	struct ibv_port_attr port;

	for (uint8_t i = 1; i <= ports; i++)
	{
		if ((choice->port != 0 && choice->port != i) || ibv_query_port(device->context, i, &port) != 0 ||
			port.state != IBV_PORT_ACTIVE)
			continue;
		device->port = i;
		return address_find(choice, &port, name, device, problem);
	}
	if (choice->port == 0)
		snprintf(problem, FABRIC_PROBLEM_MAX, "RDMA device %s has no port that is up", name);
	else if (choice->port > ports)
		snprintf(problem, FABRIC_PROBLEM_MAX, "RDMA device %s has no port %d", name, choice->port);
	else
		snprintf(problem, FABRIC_PROBLEM_MAX, "RDMA device %s: port %d is not up", name, choice->port);
	return SMART_UNREACHABLE;
}

static uint8_t
reads_clamp(int reads)
{
	return (uint8_t) (reads < 1 ? 1 : reads > UINT8_MAX ? UINT8_MAX : reads);
}

static smart_status
device_try(struct ibv_device *candidate, const struct verbs_choice *choice, struct verbs_device *device,
		   char problem[FABRIC_PROBLEM_MAX])
{
	const char *name = ibv_get_device_name(candidate);
	struct verbs_device found = {.gid_index = -1};
	struct ibv_device_attr attributes;
	smart_status status;
	int error;

	if (candidate->transport_type != IBV_TRANSPORT_IB)
	{
		snprintf(problem, FABRIC_PROBLEM_MAX, "%s is %s device, which has no atomic operations", name,
				 candidate->transport_type == IBV_TRANSPORT_IWARP ? "an iWARP" : "not an InfiniBand or RoCE");
		return SMART_UNREACHABLE;
	}
	found.context = ibv_open_device(candidate);
	if (found.context == NULL)
		return verbs_failed(name, errno, problem);
	error = ibv_query_device(found.context, &attributes);
	if (error != 0)
		status = verbs_failed("asking the device", error, problem);
	else if (attributes.atomic_cap == IBV_ATOMIC_NONE)
	{
		snprintf(problem, FABRIC_PROBLEM_MAX, "RDMA device %s has no atomic operations", name);
		status = SMART_UNREACHABLE;
	}
	else
	{
		found.reads_out = reads_clamp(attributes.max_qp_init_rd_atom);
		found.reads_in = reads_clamp(attributes.max_qp_rd_atom);
		found.queue_max = (uint32_t) attributes.max_qp_wr;
		found.soft = attributes.vendor_id == VERBS_VENDOR_RXE;
		status = port_find(choice, attributes.phys_port_cnt, name, &found, problem);
	}
	if (status == SMART_OK)
	{
		found.domain = ibv_alloc_pd(found.context);
		if (found.domain == NULL)
			status = verbs_failed("making a protection domain", errno, problem);
	}
	if (status != SMART_OK)
	{
		ibv_close_device(found.context);
		return status;
	}
	smart_assert(found.port > 0 && found.reads_out >= 1 && found.reads_in >= 1);
	*device = found;
	return SMART_OK;
}

smart_status
verbs_device_open(const struct verbs_choice *choice, struct verbs_device *device, char problem[FABRIC_PROBLEM_MAX])
{
	int count = 0;
	struct ibv_device **list = ibv_get_device_list(&count);
	smart_status status = SMART_UNREACHABLE;

	if (choice->device == NULL)
		snprintf(problem, FABRIC_PROBLEM_MAX, "this host has no RDMA device");
	else
		snprintf(problem, FABRIC_PROBLEM_MAX, "this host has no RDMA device \"%.*s\"", VERBS_DEVICE_MAX,
				 choice->device);
	for (int i = 0; i < count && list != NULL && status != SMART_OK; i++)
	{
		if (choice->device == NULL || strcmp(choice->device, ibv_get_device_name(list[i])) == 0)
			status = device_try(list[i], choice, device, problem);
	}
	if (list != NULL)
		ibv_free_device_list(list);
	return status;
}

void
verbs_device_close(struct verbs_device *device)
{
	ibv_dealloc_pd(device->domain);
	ibv_close_device(device->context);
	*device = (struct verbs_device){0};
}

/* ---- a queue pair ---- */

void
verbs_pair_describe(const struct verbs_device *device, const struct ibv_qp *pair, struct wire_queue_pair *mine)
{
	uint32_t psn = 0;

	/* By chance, so that a late packet of an earlier connection does not fit into this one. */
	if (getrandom(&psn, sizeof(psn), 0) != (ssize_t) sizeof(psn))
		psn = pair->qp_num * UINT32_C(2654435761) >> 8;
	*mine = (struct wire_queue_pair){
		.number = pair->qp_num,
		.psn = psn & 0xffffff,
		.lid = device->lid,
		.mtu = device->mtu,
		.reads = device->reads_in,
	};
	memcpy(mine->gid, device->gid.raw, sizeof(mine->gid));
}

/* The way to the other side. */
static bool
route(const struct verbs_device *device, const struct wire_queue_pair *theirs, struct ibv_ah_attr *route)
{
	static const uint8_t none[16];
	bool has_gid = memcmp(theirs->gid, none, sizeof(none)) != 0;

	*route = (struct ibv_ah_attr){.dlid = theirs->lid, .port_num = device->port};
	if (device->global && has_gid)
	{
		route->is_global = 1;
		memcpy(route->grh.dgid.raw, theirs->gid, sizeof(theirs->gid));
		smart_assert(device->gid_index >= 0 && device->gid_index < GID_MAX);
		route->grh.sgid_index = (uint8_t) device->gid_index;
		route->grh.hop_limit = HOPS;
		return true;
	}
	return device->lid != 0 && theirs->lid != 0;
}

smart_status
verbs_pair_connect(const struct verbs_device *device, struct ibv_qp *pair, unsigned int access,
				   const struct wire_queue_pair *mine, const struct wire_queue_pair *theirs,
				   char problem[FABRIC_PROBLEM_MAX])
{
	struct ibv_qp_attr initial = {
		.qp_state = IBV_QPS_INIT,
		.port_num = device->port,
		.qp_access_flags = access,
	};
	struct ibv_qp_attr receiving = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = device->mtu < theirs->mtu ? device->mtu : theirs->mtu,
		.dest_qp_num = theirs->number,
		.rq_psn = theirs->psn,
		.max_dest_rd_atomic = device->reads_in,
		.min_rnr_timer = RNR_TIMER,
	};
	struct ibv_qp_attr sending = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = mine->psn,
		.timeout = VERBS_TIMEOUT,
		.retry_cnt = VERBS_RETRIES,
		.rnr_retry = RNR_TRIES,
		.max_rd_atomic = device->reads_out < theirs->reads ? device->reads_out : theirs->reads,
	};
	int error;

	smart_assert(mine->psn >> 24 == 0 && device->reads_out >= 1 && device->reads_in >= 1);
	if (!route(device, theirs, &receiving.ah_attr))
	{
		snprintf(problem, FABRIC_PROBLEM_MAX,
				 "RDMA: the two sides are on different networks (one has an address of Ethernet or a GID, "
				 "the other one of InfiniBand)");
		return SMART_UNREACHABLE;
	}
	error = ibv_modify_qp(pair, &initial, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (error == 0)
		error = ibv_modify_qp(pair, &receiving,
							  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
								  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (error == 0)
		error = ibv_modify_qp(pair, &sending,
							  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
								  IBV_QP_MAX_QP_RD_ATOMIC);
	return error == 0 ? SMART_OK : verbs_failed("connecting the queue pair", error, problem);
}
