/*
 * main.c
 *	  smart-memnode: starting, stopping, reading the settings again.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/assert.h"
#include "announce.h"
#include "control.h"
#include "door.h"
#include "http.h"
#include "lease.h"
#include "log.h"
#include "loop.h"
#include "memory.h"
#include "snapshot.h"
#include "supervisor.h"

/* Those that are no connections of clients that are served; some that have ended are closed a little later. */
#define DESCRIPTORS_BESIDE (128 + MEMNODE_GUESTS_MAX)

struct daemon
{
	int argc;
	char *const *argv;
	struct memnode_options options;
	struct stream_keys keys;
	struct memnode_listeners listeners;
	struct memnode_memory memory;
	struct memnode_loop_options loop_options;
	struct memnode_report report;
	struct memnode_control *control; /* NULL: none */
	struct memnode_http *http;       /* NULL: none */
	struct memnode_source sources[2];
	char place[SESSION_HOST_MAX + SESSION_PORT_MAX + 4];
	char metrics[SESSION_HOST_MAX + SESSION_PORT_MAX + 32];
	struct memnode_loop *loop;
	struct memnode_announcer *announcer; /* NULL: none */
};

static struct memnode node;

/* ---- settings that may change while it runs ---- */

static bool
read_keys(const struct memnode_options *options, struct stream_keys *keys, const struct memnode_listeners *listeners,
		  char *problem)
{
	char why[FABRIC_PROBLEM_MAX];

	memset(keys, 0, sizeof(*keys));
	if (options->secret_file[0] == '\0')
		return listeners->loopback ||
			   memnode_refuse(problem, "listen: %s is no loopback address, which needs a --secret-file",
							  listeners->host[0] != '\0' ? listeners->host : "every address");
	if (stream_keys_read(options->secret_file, keys, why, sizeof(why)) != SMART_OK)
		return memnode_refuse(problem, "secret-file: %s", why);
	smart_assert(keys->count > 0 && keys->count <= STREAM_KEYS_MAX);
	return true;
}

/* Looked at in time: at the stop it would be too late. */
static bool
check_snapshot(const struct memnode_options *options, char *problem)
{
	char why[MEMNODE_PROBLEM_MAX];

	return options->snapshot[0] == '\0' || memnode_snapshot_possible(options->snapshot, why) ||
		   memnode_refuse(problem, "snapshot: %.4096s", why);
}

/* Every connection needs a descriptor; fewer than asked for is better than none. */
static void
raise_descriptors(struct memnode_options *options)
{
	struct rlimit limit;
	rlim_t wanted = (rlim_t) options->max_connections + DESCRIPTORS_BESIDE;

	smart_assert(options->max_connections > 0);
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
		return;
	limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur >= wanted || limit.rlim_cur <= DESCRIPTORS_BESIDE)
		return;
	smart_assert(limit.rlim_cur - DESCRIPTORS_BESIDE < options->max_connections);
	options->max_connections = (uint32_t) (limit.rlim_cur - DESCRIPTORS_BESIDE);
	memnode_log(SMART_LOG_WARNING, "max-connections is %u: the limit of open files (ulimit -n) allows no more",
				options->max_connections);
}

static bool
start_announcing(struct daemon *daemon, char *problem)
{
	const struct memnode_options *options = &daemon->options;
	struct discovery_node announced = {.incarnation = node.region.header->incarnation};
	const char *host = options->advertise_host[0] != '\0' ? options->advertise_host : daemon->listeners.host;
	const char *port = options->advertise_port[0] != '\0' ? options->advertise_port : daemon->listeners.port;

	smart_assert(daemon->announcer == NULL && port[0] != '\0');
	daemon->announcer = NULL;
	if (options->memcached[0] == '\0')
		return true;
	if (host[0] == '\0' || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0)
		return memnode_refuse(problem, "advertise: say by --advertise=HOST:PORT how clients reach this node");
	strcpy(announced.host, host);
	strcpy(announced.port, port);
	return memnode_announcer_start(options, &announced, &daemon->announcer, problem);
}

static void
stop_announcing(struct daemon *daemon)
{
	if (daemon->announcer != NULL)
		memnode_announcer_stop(daemon->announcer);
	daemon->announcer = NULL;
}

static bool
same_announcement(const struct memnode_options *a, const struct memnode_options *b)
{
	return strcmp(a->memcached, b->memcached) == 0 && strcmp(a->cluster, b->cluster) == 0 && a->ttl_s == b->ttl_s &&
		   strcmp(a->advertise_host, b->advertise_host) == 0 && strcmp(a->advertise_port, b->advertise_port) == 0;
}

/* Says whether new settings wait for the next start, and keeps the old ones. */
static void
keep_fixed(const struct memnode_options *old, struct memnode_options *new)
{
	struct memnode_options wanted;

	memcpy(&wanted, new, sizeof(wanted));
	strcpy(new->host, old->host);
	strcpy(new->port, old->port);
	new->size = old->size;
	new->memory = old->memory;
	strcpy(new->path, old->path);
	strcpy(new->name, old->name);
	new->tcp = old->tcp;
	new->verbs = old->verbs;
	strcpy(new->device, old->device);
	new->gid_index = old->gid_index;
	strcpy(new->metrics_host, old->metrics_host);
	strcpy(new->metrics_port, old->metrics_port);
	if (memcmp(&wanted, new, sizeof(wanted)) != 0)
		memnode_log(
			SMART_LOG_WARNING,
			"listen, size, memory, name, transport, device, gid-index and metrics change with the next start only");
}

static void
note_keys(struct daemon *daemon)
{
	smart_assert(daemon->keys.count <= STREAM_KEYS_MAX);
	daemon->report.key_count = daemon->keys.count;
	for (unsigned int i = 0; i < daemon->keys.count; i++)
		daemon->report.keys[i] = stream_key_name(&daemon->keys.key[i]);
	daemon->report.keys_read = time(NULL);
}

static void
reload(void *argument)
{
	struct daemon *daemon = argument;
	struct memnode_options old = daemon->options;
	struct memnode_options options;
	struct stream_keys keys;
	unsigned int old_keys;
	char problem[MEMNODE_PROBLEM_MAX];

	if (!memnode_options_read(&options, daemon->argc, daemon->argv, problem) ||
		!read_keys(&options, &keys, &daemon->listeners, problem) || !check_snapshot(&options, problem))
	{
		node.counters.reloads[0]++;
		memnode_log(SMART_LOG_WARNING, "the settings stay as they are: %s", problem);
		return;
	}
	keep_fixed(&old, &options);
	raise_descriptors(&options);
	daemon->options = options;
	daemon->keys = keys;
	note_keys(daemon);
	node.counters.reloads[1]++;
	node.client_max = options.max_connections;
	node.forget_after_s = options.forget_after_s;
	memnode_log_set_level(options.log_level);
	if (!same_announcement(&old, &options))
	{
		stop_announcing(daemon);
		if (!start_announcing(daemon, problem))
			memnode_log(SMART_LOG_WARNING, "this node is not announced: %s", problem);
	}
	memnode_log(SMART_LOG_INFO, "settings and keys have been read again");
	old_keys = memnode_report_sessions_of_key(&daemon->report, 0);
	if (old_keys > 0)
		memnode_log(SMART_LOG_INFO, "%u sessions go on that were made with a key which is not accepted any more",
					old_keys);
}

static void
look(void *argument)
{
	struct daemon *daemon = argument;

	memnode_lease_see(&node);
	if (daemon->report.removed || !memnode_memory_is_removed(&daemon->memory))
		return;
	daemon->report.removed = true;
	memnode_log(SMART_LOG_WARNING, "somebody has removed %s: this node goes on, but what is in its memory %s",
				daemon->memory.label,
				daemon->options.snapshot[0] != '\0' ? "outlives a clean stop only, by the snapshot"
													: "is lost when it stops; indexes are loaded anew then");
}

/* ---- start and stop ---- */

static bool
open_target(struct daemon *daemon, char *problem)
{
	const struct memnode_options *options = &daemon->options;
	struct verbs_target_options target = {.device = options->device[0] != '\0' ? options->device : NULL,
										  .gid_index = options->gid_index,
										  .base = node.region.base,
										  .from = (uint64_t) node.region.first_chunk * WIRE_CHUNK_BYTES,
										  .limit = node.region.size};
	char why[FABRIC_PROBLEM_MAX];

	smart_assert(node.target == NULL && target.from < target.limit);
	if (options->verbs == MEMNODE_NO || (options->verbs == MEMNODE_IF_POSSIBLE && !verbs_target_available()))
		return true;
	if (verbs_target_open(&target, &node.target, why) == SMART_OK)
	{
		node.transports |= WIRE_RDMA;
		return true;
	}
	if (options->verbs == MEMNODE_YES)
		return memnode_refuse(problem, "transport: %s", why);
	memnode_log(SMART_LOG_WARNING, "no RDMA: %s", why);
	return true;
}

static void
put_address(char *text, size_t size, const char *host, const char *port)
{
	bool v6 = strchr(host, ':') != NULL;

	smart_assert(port[0] != '\0');
	snprintf(text, size, "%s%s%s:%s", v6 ? "[" : "", host[0] != '\0' ? host : "*", v6 ? "]" : "", port);
}

static const char *
transports_text(void)
{
	smart_assert(node.transports != 0 && (node.transports & ~(uint32_t) (WIRE_TCP | WIRE_RDMA)) == 0);
	return node.transports == (WIRE_TCP | WIRE_RDMA) ? "tcp,verbs" : node.transports == WIRE_TCP ? "tcp" : "verbs";
}

/* What the operator can ask.  That --status finds nobody is no reason not to serve; that --metrics does not work is one. */
static bool
start_reporting(struct daemon *daemon, char *problem)
{
	char address[SESSION_HOST_MAX + SESSION_PORT_MAX + 4];
	char why[MEMNODE_PROBLEM_MAX];

	smart_assert(daemon->http == NULL && daemon->control == NULL && daemon->loop_options.source_count == 0);
	put_address(daemon->place, sizeof(daemon->place), daemon->listeners.host, daemon->listeners.port);
	daemon->report = (struct memnode_report){.node = &node,
											 .options = &daemon->options,
											 .version = SMART_VERSION,
											 .place = daemon->place,
											 .memory = daemon->memory.label,
											 .metrics = daemon->metrics,
											 .started = time(NULL)};
	note_keys(daemon);
	if (daemon->options.metrics_port[0] != '\0')
	{
		daemon->http = memnode_http_open(&daemon->report, problem);
		if (daemon->http == NULL)
			return false;
		put_address(address, sizeof(address), daemon->options.metrics_host, memnode_http_port(daemon->http));
		snprintf(daemon->metrics, sizeof(daemon->metrics), "http://%s/metrics", address);
		daemon->sources[daemon->loop_options.source_count++] = memnode_http_source(daemon->http);
		memnode_log(SMART_LOG_INFO, "metrics: %s", daemon->metrics);
	}
	if (!memnode_control_has_name(&daemon->options))
		return true;
	daemon->control = memnode_control_open(&daemon->report, &node, daemon->listeners.port, why);
	if (daemon->control != NULL)
		daemon->sources[daemon->loop_options.source_count++] = memnode_control_source(daemon->control);
	else
		memnode_log(SMART_LOG_WARNING, "this node cannot be asked for its --status: %s", why);
	return true;
}

static void
stop_reporting(struct daemon *daemon)
{
	if (daemon->http != NULL)
		memnode_http_close(daemon->http);
	if (daemon->control != NULL)
		memnode_control_close(daemon->control);
}

/* From the region on; what was opened before is the caller's. */
static bool
start_serving(struct daemon *daemon, char *problem)
{
	smart_assert(daemon->loop == NULL && node.clients == NULL);
	node.client_max = daemon->options.max_connections;
	node.forget_after_s = daemon->options.forget_after_s;
	daemon->loop_options = (struct memnode_loop_options){.node = &node,
														 .listeners = &daemon->listeners,
														 .keys = &daemon->keys,
														 .sources = daemon->sources,
														 .reload = reload,
														 .look = look,
														 .argument = daemon};
	if (!open_target(daemon, problem) || !start_reporting(daemon, problem) ||
		!memnode_listeners_start(&daemon->listeners, problem))
		return false;
	daemon->loop = memnode_loop_open(&daemon->loop_options, problem);
	return daemon->loop != NULL && start_announcing(daemon, problem);
}

/* Leaves the region as one that any later process may go on with.  False: it is not, as the log says. */
static bool
stop_serving(struct daemon *daemon)
{
	char problem[MEMNODE_PROBLEM_MAX];
	bool good = true;

	stop_announcing(daemon);
	if (daemon->loop != NULL)
		memnode_loop_close(daemon->loop);
	stop_reporting(daemon);
	if (node.target != NULL)
		verbs_target_close(node.target);
	/* No client is left that could change the region. */
	smart_assert(node.clients == NULL && node.client_count == 0);
	if (daemon->options.snapshot[0] != '\0')
	{
		good = memnode_snapshot_write(&node.region, daemon->options.snapshot, problem);
		if (good)
			memnode_log(SMART_LOG_INFO, "wrote the snapshot %s", daemon->options.snapshot);
		else
			memnode_log(SMART_LOG_WARNING, "no snapshot: %s", problem);
	}
	if (memnode_memory_sync(&daemon->memory))
	{
		/* Clean only after all of it is in storage. */
		memnode_region_release(&node.region);
		good = memnode_memory_sync(&daemon->memory) && good;
	}
	else
	{
		memnode_log(SMART_LOG_WARNING, "cannot write the region to %s: %s", daemon->memory.label, strerror(errno));
		good = false;
	}
	memnode_close(&node);
	return good;
}

static void
say_ready(const struct daemon *daemon)
{
	printf("smart-memnode: ready on %s, %llu MB, %s\n", daemon->place, (unsigned long long) daemon->options.size >> 20,
		   transports_text());
	fflush(stdout);
	memnode_log(SMART_LOG_INFO, "ready on port %s, incarnation %016llx, memory: %s", daemon->listeners.port,
				(unsigned long long) node.region.header->incarnation, daemon->memory.label);
}

/* Starts, serves, and stops.  False: problem[] says why it did not start, or is empty. */
static bool
run(struct daemon *daemon, char *problem)
{
	bool good;

	memnode_log_set_level(daemon->options.log_level);
	raise_descriptors(&daemon->options);
	if (!memnode_listeners_bind(&daemon->listeners, &daemon->options, problem))
		return false;
	good = read_keys(&daemon->options, &daemon->keys, &daemon->listeners, problem) &&
		   check_snapshot(&daemon->options, problem) &&
		   memnode_memory_open(&daemon->memory, &daemon->options, daemon->listeners.port, problem);
	if (good)
	{
		good = memnode_adopt(&node, &daemon->memory, daemon->options.snapshot,
							 daemon->options.tcp ? (uint32_t) WIRE_TCP : 0, problem);
		if (good)
		{
			good = start_serving(daemon, problem);
			if (good)
			{
				say_ready(daemon);
				memnode_supervisor_tell("READY=1");
				memnode_loop_run(daemon->loop);
				memnode_supervisor_tell("STOPPING=1");
				problem[0] = '\0';
				memnode_log(SMART_LOG_INFO, "stopping");
			}
			good = stop_serving(daemon) && good;
		}
		memnode_memory_close(&daemon->memory);
	}
	memnode_listeners_close(&daemon->listeners);
	return good;
}

int
main(int argc, char **argv)
{
	struct daemon daemon = {.argc = argc, .argv = argv};
	char problem[MEMNODE_PROBLEM_MAX] = "";

	if (!memnode_options_read(&daemon.options, argc, argv, problem))
	{
		fprintf(stderr, "smart-memnode: %s\n", problem);
		return 1;
	}
	if (daemon.options.help)
	{
		memnode_options_help();
		return 0;
	}
	if (daemon.options.version)
	{
		puts("smart-memnode " SMART_VERSION);
		return 0;
	}
	if (daemon.options.status != MEMNODE_STATUS_NONE || daemon.options.forget != 0
			? memnode_control_ask(&daemon.options, problem)
			: run(&daemon, problem))
		return 0;
	if (problem[0] != '\0')
		fprintf(stderr, "smart-memnode: %s\n", problem);
	return 1;
}
