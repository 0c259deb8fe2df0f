/*
 * peers.h
 *	  Models of other papers' indexes, by their names.
 */
#ifndef YCSB_PEERS_H
#define YCSB_PEERS_H

#include "cluster.h"

/*
 * The simulated cluster of options with the index that they name, which is not this project's.  NULL: what failed is told
 * on stderr.
 */
extern struct ycsb_cluster *ycsb_peer_open(const struct ycsb_options *options);

#endif /* YCSB_PEERS_H */
