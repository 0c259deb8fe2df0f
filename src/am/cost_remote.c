/*
 * cost_remote.c
 *	  What it costs, in the planner's unit, to wait for memory nodes.
 *
 * The unit is what a page costs that is read in sequence.  A page of 8 kB comes from a
 * disk of today, or from the operating system and through our own
 * memory, in about ten microseconds; so that is what a unit is taken for.
 *
 * A session that has used memory nodes has measured its READs (offload.c).  One that has not
 * goes by the requests of the server's own connections: by the fastest, since the others may
 * have waited for something else.
 */
#include "postgres.h"

#include <math.h>

#include "access/xact.h"
#include "utils/timestamp.h"

#include "am/cost_remote.h"
#include "am/peers.h"
#include "am/server.h"
#include "am/settings.h"
#include "am/shared.h"
#include "tree/readahead.h"

#define NS_PER_UNIT   10000.0
#define NS_NOT_KNOWN  50000.0 /* of a round trip, until one has been made */
#define LOOK_AGAIN_MS 1000
#define FIRST_BATCH   4 /* leaves that a scan READs at first; then twice as many each time */

/* The mean of what this session has measured, 0: nothing. */
static double
measured_by_us(void)
{
	const struct smart_client *client = smart_backend_client_if_any();
	double sum = 0;
	int count = 0;

	for (int i = 0; client != NULL && i < FABRIC_NODES_MAX; i++)
	{
		sum += (double) client->offload.node[i].trip_ns;
		count += client->offload.node[i].trip_ns > 0;
	}
	return count > 0 ? sum / count : 0;
}

static double
measured_by_server(void)
{
	double least = 0;

	for (unsigned int i = 0; smart_server.peers != NULL && i < FABRIC_NODES_MAX; i++)
	{
		struct smart_peer peer;

		if (!smart_peer_get(smart_server.peers, i, &peer) || peer.state != SMART_PEER_UP || peer.round_trip_ns == 0)
			continue;
		if (least == 0 || (double) peer.round_trip_ns < least)
			least = (double) peer.round_trip_ns;
	}
	return least;
}

double
smart_round_trip_price(void)
{
	static TimestampTz looked = 0;
	static double measured_ns;
	TimestampTz now = GetCurrentStatementStartTimestamp();

	if (smart_settings.round_trip_cost >= 0)
		return smart_settings.round_trip_cost;
	if (looked == 0 || TimestampDifferenceExceeds(looked, now, LOOK_AGAIN_MS))
	{
		measured_ns = measured_by_us();
		if (measured_ns == 0)
			measured_ns = measured_by_server();
		looked = now;
	}
	return (measured_ns > 0 ? measured_ns : NS_NOT_KNOWN) / NS_PER_UNIT;
}

/* A range is READ in batches that grow. */
static double
trips_of_range(double leaves)
{
	double trips = 1;

	leaves -= FIRST_BATCH;
	for (double batch = 2 * FIRST_BATCH; batch < SMART_READAHEAD_MAX && leaves > 0; batch *= 2)
	{
		leaves -= batch;
		trips++;
	}
	return trips + Max(ceil(leaves / SMART_READAHEAD_MAX), 0);
}

double
smart_round_trips_of_ranges(double ranges, double leaves)
{
	/* Many points are looked for together. */
	return leaves > 1 ? ranges * trips_of_range(leaves) : ceil(ranges / SMART_READAHEAD_MAX);
}

double
smart_round_trips_of_groups(double groups, double leaves)
{
	return groups * (1 + trips_of_range(leaves));
}
