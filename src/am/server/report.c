/*
 * report.c
 *	  A status becomes an error, with what a DBA can do about it.
 *
 * A memory node that cannot be reached, or does not answer in time, is connection_failure (08006), as postgres_fdw
 * has it for its servers: a client may try the statement again, and need not know how the connection failed. (57014
 * and 57P05 tell that the statement was to end.)
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/rel.h"

#include "am/server/report.h"
#include "am/server/settings.h"
#include "am/server/shared.h"
#include "base/assert.h"
#include "rdma/tcp/stream.h"
#include "tree/layout.h"

static int
about(Relation index)
{
	return index != NULL ? errcontext("smart index \"%s\"", RelationGetRelationName(index)) : 0;
}

/* What the fabric says about the last failure, or nothing. */
static const char *
fabric_problem(void)
{
	return smart_server.client == NULL ? "" : smart_server.client->fabric->problem;
}

static int
fabric_detail(void)
{
	const char *problem = fabric_problem();

	return problem[0] == '\0' ? 0 : errdetail_internal("%c%s.", pg_toupper((unsigned char) problem[0]), problem + 1);
}

/* A wait that came to nothing; a cancel or a shutdown says so itself. */
static void
raise_wait(smart_status status, Relation index)
{
	smart_assert(status == SMART_INTERRUPTED || status == SMART_TIMEOUT || status == SMART_UNREACHABLE ||
				 status == SMART_STALE);
	CHECK_FOR_INTERRUPTS();
	if (status == SMART_INTERRUPTED)
		ereport(ERROR, errcode(ERRCODE_QUERY_CANCELED), errmsg("an operation on a smart index was interrupted"),
				about(index));
	if (smart_status_is_of_node(status) && status == SMART_TIMEOUT)
		ereport(ERROR, errcode(ERRCODE_CONNECTION_FAILURE),
				errmsg("a memory node did not answer within %d ms", smart_settings.fabric_timeout_ms), fabric_detail(),
				errhint("Try again; smart_memory_nodes shows how the nodes are, smart.fabric_timeout is the limit."),
				about(index));
	if (smart_status_is_of_node(status))
		ereport(
			ERROR, errcode(ERRCODE_CONNECTION_FAILURE), errmsg("could not reach a memory node"), fabric_detail(),
			stream_problem_is_of_secret(fabric_problem())
				? errhint("The server and its memory nodes need the same key: look at smart.secret_file here, and at "
						  "secret-file there. Or try again; smart_memory_nodes shows how the nodes are.")
				: errhint("Try again when the memory node is back; smart_memory_nodes shows how the nodes are. If its "
						  "memory is gone for good, rebuild its indexes with REINDEX."),
			about(index));
	if (status == SMART_TIMEOUT)
		ereport(ERROR, errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				errmsg("an operation on a smart index came to its time limit"), about(index));
	if (smart_server.region.grow_errno == 0)
		ereport(ERROR, errcode(ERRCODE_IO_ERROR), errmsg("could not reach the region of smart"), about(index));
	ereport(ERROR, errcode(ERRCODE_IO_ERROR),
			errmsg("could not reach the region of smart: %s", strerror(smart_server.region.grow_errno)), about(index));
}

bool
smart_status_is_of_node(smart_status status)
{
	return smart_server.remote && (status == SMART_TIMEOUT || status == SMART_UNREACHABLE || status == SMART_STALE) &&
		   (fabric_problem()[0] != '\0' || smart_server.region.grow_errno == 0);
}

void
smart_raise_status(smart_status status, Relation index)
{
	smart_assert(status != SMART_OK);
	switch (status)
	{
		case SMART_NO_MEMORY:
			ereport(ERROR, errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory"), about(index));
			break;
		case SMART_NO_SPACE:
			if (smart_server.remote)
				ereport(ERROR, errcode(ERRCODE_OUT_OF_MEMORY), errmsg("the memory nodes have no room left"),
						fabric_detail(),
						errhint("Add a memory node to smart.memory_nodes, or delete rows and run VACUUM; "
								"smart_memory_nodes shows what each of them has."),
						about(index));
			ereport(ERROR, errcode(ERRCODE_OUT_OF_MEMORY), errmsg("the region of smart has reached its greatest size"),
					errhint("Increase smart.embedded_max_size and restart the server, or delete rows and run VACUUM."),
					about(index));
			break;
		case SMART_DISK_FULL:
			ereport(ERROR, errcode(ERRCODE_DISK_FULL),
					errmsg("could not extend the region of smart: %s",
						   strerror(smart_server.region.grow_errno != 0 ? smart_server.region.grow_errno : ENOSPC)),
					smart_server.in_shared_memory
						? errhint("Free memory in /dev/shm, or set smart.embedded_path to a directory with more room.")
						: errhint("Free disk space, or set smart.embedded_path to a directory with more of it."),
					about(index));
			break;
		case SMART_INTERRUPTED:
		case SMART_TIMEOUT:
		case SMART_UNREACHABLE:
		case SMART_STALE:
			raise_wait(status, index);
			break;
		case SMART_CORRUPT:
			ereport(ERROR, errcode(ERRCODE_INDEX_CORRUPTED),
					index != NULL ? errmsg("smart index \"%s\" is corrupt", RelationGetRelationName(index))
								  : errmsg("the region of smart is corrupt"),
					fabric_detail(), errhint("Rebuild it with REINDEX."));
			break;
		case SMART_TOO_LONG:
			ereport(ERROR, errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("an entry is too long for a smart index"),
					errdetail("The key is limited to %d bytes and the whole entry to %d bytes, as encoded.",
							  SMART_KEY_MAX, SMART_ENTRY_MAX),
					about(index));
			break;
		default:
			break;
	}
	elog(ERROR, "unexpected status from a smart tree: %s", smart_status_text(status));
}
