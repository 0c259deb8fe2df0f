/*
 * options.h
 *	  The daemon's settings, from the command line and a file.
 */
#ifndef MEMNODE_OPTIONS_H
#define MEMNODE_OPTIONS_H

#include "log.h"
#include "rdma/discovery.h"

enum memnode_memory_kind
{
	MEMNODE_MEMORY_SHM,
	MEMNODE_MEMORY_HUGETLB,
	MEMNODE_MEMORY_PATH
};

/* What is to be asked of the daemon that runs. */
enum memnode_status_form
{
	MEMNODE_STATUS_NONE,
	MEMNODE_STATUS_TEXT,
	MEMNODE_STATUS_HTML
};

enum memnode_choice
{
	MEMNODE_NO,
	MEMNODE_YES,
	MEMNODE_IF_POSSIBLE
};

struct memnode_options
{
	char host[SESSION_HOST_MAX]; /* empty: every address */
	char port[SESSION_PORT_MAX];
	uint64_t size; /* bytes, whole chunks */
	enum memnode_memory_kind memory;
	char path[PATH_MAX]; /* for MEMNODE_MEMORY_PATH */
	char name[64];       /* of shared memory; empty: after the port */
	bool tcp;
	enum memnode_choice verbs;
	char device[64]; /* empty: any */
	int gid_index;   /* -1: found by itself */
	char secret_file[PATH_MAX];
	char memcached[1024];
	char cluster[DISCOVERY_CLUSTER_MAX + 1];
	char advertise_host[SESSION_HOST_MAX];
	char advertise_port[SESSION_PORT_MAX];
	uint32_t ttl_s;
	char snapshot[PATH_MAX];
	char metrics_host[SESSION_HOST_MAX]; /* empty: every address */
	char metrics_port[SESSION_PORT_MAX]; /* empty: no metrics */
	uint32_t max_connections;
	uint32_t forget_after_s; /* 0: never */
	enum smart_log_level log_level;
	char config[PATH_MAX];
	bool help;
	enum memnode_status_form status;
	uint64_t forget; /* that daemon is to forget the owner of this identity; 0: none */
	bool version;
};

/*
 * Reads the file that --config names, then the arguments, which win over it.
 * False: problem[] says what is wrong.
 */
extern bool
memnode_options_read(struct memnode_options *options, int argc, char *const *argv, char problem[MEMNODE_PROBLEM_MAX]);

/* The text of --help. */
extern void memnode_options_help(void);

#endif /* MEMNODE_OPTIONS_H */
