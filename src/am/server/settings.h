/*
 * settings.h
 *	  The server's settings, smart.*.
 */
#ifndef SMART_AM_SETTINGS_H
#define SMART_AM_SETTINGS_H

#include "rdma/link.h"

/* As they are now; strings are never NULL once the settings are defined. */
struct smart_settings
{
	char *embedded_path;
	int embedded_max_size_mb;
	const char *memory_nodes; /* addresses: smart_settings_next_address() */
	const char *cluster;      /* name@addresses, of the same setting; empty: none */
	char *secret_file;
	char *rdma_device; /* SMART_RDMA_NONE, or smart_settings_rdma_device(); empty: if there is one */
	bool batching;     /* of inserts, and of a nested loop's lookups */
	int fabric_timeout_ms;
	int node_down_after_s;  /* 0: never */
	int node_lost_after_s;  /* 0: never */
	int spread_above_mb;    /* 0: every index */
	int cache_size_mb;      /* of the cache of nodes, and for keys; 0: nothing is cached */
	double round_trip_cost; /* in the planner's unit; below 0: measured */
	bool answer_from_pages; /* while an index is loaded, or if they are in shared buffers */
	bool write_back;        /* writers do not wait for memory nodes */
	int carry_above_mb;     /* -1: a share of the shared buffers */
	int wait_timeout_ms;    /* -1: SMART_LOADING_WAIT_MS, and not at all for memory nodes */
	bool auto_rebuild;
	bool constraints; /* new PRIMARY KEY and UNIQUE constraints get smart indexes */
};

#define SMART_DIRECTORY "smart" /* below the data directory */

#define SMART_RDMA_NONE "none"

#define SMART_RDMA_NAME_MAX 64

#define SMART_PAGES_A_MB (1048576u / 4096u)

#define SMART_LOADING_WAIT_MS 60000

extern struct smart_settings smart_settings;

/* The longest wait for an index that is being loaded, or for room for its changes. */
static inline int
smart_settings_loading_wait_ms(void)
{
	return smart_settings.wait_timeout_ms < 0 ? SMART_LOADING_WAIT_MS : smart_settings.wait_timeout_ms;
}

/* The longest wait for a memory node that is down. */
static inline int
smart_settings_node_wait_ms(void)
{
	return smart_settings.wait_timeout_ms < 0 ? 0 : smart_settings.wait_timeout_ms;
}

/* Defines them.  Once, from _PG_init, while the library is being preloaded. */
extern void smart_settings_init(void);

/*
 * The next address of a list "host:port, ...": *list is moved behind it.  False at the end of the list; at an element
 * that is no address *list is NULL.
 */
extern bool smart_settings_next_address(const char **list, char host[SESSION_HOST_MAX], char port[SESSION_PORT_MAX]);

/*
 * Splits "device:port:gid_index": whatever is not there is "", port 0 or GID index -1, as for verbs_set_device().  False: it
 * is none.
 */
extern bool smart_settings_rdma_device(const char *value, char device[SMART_RDMA_NAME_MAX], int *port, int *gid_index);

#endif /* SMART_AM_SETTINGS_H */
