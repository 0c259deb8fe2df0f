/*
 * peers.c
 *	  Which model --index names.
 */
#include "base/assert.h"
#include "peer.h"
#include "peers.h"

static const struct
{
	const struct peer *peer;
	enum peer_variant variant;
} peers[YCSB_INDEXES] = {
	[YCSB_PEER_SMART] = {&peer_smart, PEER_WHOLE},
	[YCSB_PEER_ART] = {&peer_art, PEER_WHOLE},
	[YCSB_PEER_ART_LOCKED] = {&peer_art, PEER_LOCKED},
	[YCSB_PEER_DART] = {&peer_dart, PEER_WHOLE},
	[YCSB_PEER_DART_UNSKIPPED] = {&peer_dart, PEER_UNSKIPPED},
	[YCSB_PEER_SHERMAN] = {&peer_sherman, PEER_WHOLE},
	[YCSB_PEER_SHERMAN_OPTIMISTIC] = {&peer_sherman, PEER_OPTIMISTIC},
	[YCSB_PEER_SHERMAN_PARTITIONED] = {&peer_sherman, PEER_PARTITIONED},
	[YCSB_PEER_SMART_PARTITIONED] = {&peer_smart, PEER_PARTITIONED},
	[YCSB_PEER_DEX] = {&peer_dex, PEER_WHOLE},
	[YCSB_PEER_DEX_ONESIDED] = {&peer_dex, PEER_ONESIDED},
	[YCSB_PEER_DEX_EAGER] = {&peer_dex, PEER_EAGER},
	[YCSB_PEER_CANRT] = {&peer_canrt, PEER_WHOLE},
	[YCSB_PEER_WORT] = {&peer_wort, PEER_WHOLE},
	[YCSB_PEER_CHIME] = {&peer_chime, PEER_WHOLE},
};

struct ycsb_cluster *
ycsb_peer_open(const struct ycsb_options *options)
{
	smart_assert(options->index != YCSB_TREE && peers[options->index].peer != NULL);
	return peer_cluster_open(options, peers[options->index].peer, peers[options->index].variant);
}
