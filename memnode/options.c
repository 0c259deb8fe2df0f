/*
 * options.c
 *	  Reading the daemon's settings.
 *
 * --NAME=VALUE on the command line, NAME = VALUE in the file.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "options.h"
#include "region.h"

#define LINE_MAX_BYTES     2048
#define DEFAULT_SIZE       ((uint64_t) 4 << 30)
#define DEFAULT_HOST       "127.0.0.1"
#define DEFAULT_CLUSTER    "smart"
#define DEFAULT_TTL_S      30u
#define DEFAULT_CONNECTION 4096u
#define DEFAULT_FORGET_S   86400u
#define TIME_MAX_S         (1000u * 86400u)

typedef bool (*setter)(struct memnode_options *options, const char *value, char *problem);

static bool
set_text(char *text, size_t size, const char *value, char *problem)
{
	smart_assert(size > 0);
	if (strlen(value) >= size)
		return memnode_refuse(problem, "\"%.60s…\" is too long", value);
	strcpy(text, value);
	return true;
}

static bool
set_number(uint32_t *number, const char *value, uint32_t from, uint32_t to, char *problem)
{
	char *end;
	unsigned long long parsed;

	smart_assert(from <= to);
	errno = 0;
	parsed = strtoull(value, &end, 10);
	if (!isdigit((unsigned char) value[0]) || *end != '\0' || errno != 0 || parsed < from || parsed > to)
		return memnode_refuse(problem, "\"%.60s\" is not a number from %u to %u", value, from, to);
	*number = (uint32_t) parsed;
	return true;
}

/* ---- one function per setting ---- */

/* ":PORT" and "*:PORT" are all addresses of the machine. */
static bool
set_address(char host[SESSION_HOST_MAX], char port_text[SESSION_PORT_MAX], const char *value, char *problem)
{
	bool every = value[0] == ':' || value[0] == '*';
	const char *port = value[0] == '*' ? value + 1 : value;
	char any[SESSION_HOST_MAX];
	char address[SESSION_HOST_MAX + SESSION_PORT_MAX];

	if (snprintf(address, sizeof(address), "%s%s", every ? "any" : "", every ? port : value) >= (int) sizeof(address) ||
		!discovery_parse_address(address, DISCOVERY_PORT, any, port_text))
		return memnode_refuse(problem, "\"%.60s\" is not HOST:PORT, [IPV6]:PORT or :PORT", value);
	return set_text(host, SESSION_HOST_MAX, every ? "" : any, problem);
}

static bool
set_listen(struct memnode_options *options, const char *value, char *problem)
{
	return set_address(options->host, options->port, value, problem);
}

/* A port alone is one of the loopback address. */
static bool
set_metrics(struct memnode_options *options, const char *value, char *problem)
{
	char address[sizeof(DEFAULT_HOST) + SESSION_PORT_MAX];
	uint32_t port;

	if (value[strspn(value, "0123456789")] != '\0')
		return set_address(options->metrics_host, options->metrics_port, value, problem);
	if (!set_number(&port, value, 0, 65535, problem))
		return false;
	snprintf(address, sizeof(address), DEFAULT_HOST ":%u", port);
	return set_address(options->metrics_host, options->metrics_port, address, problem);
}

static bool
set_size(struct memnode_options *options, const char *value, char *problem)
{
	static const char units[] = "KMGT";
	char *end;
	unsigned long long size;
	const char *unit;

	errno = 0;
	size = strtoull(value, &end, 10);
	unit = *end != '\0' ? strchr(units, toupper((unsigned char) *end)) : NULL;
	if (!isdigit((unsigned char) value[0]) || errno != 0 || (*end != '\0' && unit == NULL))
		return memnode_refuse(problem, "\"%.60s\" is not a size such as 512M or 4G", value);
	if (unit != NULL)
	{
		unsigned int shift = 10 * (unsigned int) (unit - units + 1);

		smart_assert(shift >= 10 && shift <= 40);
		end++;
		size = size <= MEMNODE_SIZE_MAX >> shift ? size << shift : UINT64_MAX;
		if (toupper((unsigned char) *end) == 'B')
			end++;
	}
	if (*end != '\0')
		return memnode_refuse(problem, "\"%.60s\" is not a size such as 512M or 4G", value);
	if (size < MEMNODE_SIZE_MIN || size > MEMNODE_SIZE_MAX)
		return memnode_refuse(problem, "\"%.60s\" is not a size from 16M to 1T", value);
	options->size = size / WIRE_CHUNK_BYTES * WIRE_CHUNK_BYTES;
	smart_assert(options->size >= MEMNODE_SIZE_MIN && options->size % WIRE_CHUNK_BYTES == 0);
	return true;
}

static bool
set_memory(struct memnode_options *options, const char *value, char *problem)
{
	options->memory = strcmp(value, "shm") == 0       ? MEMNODE_MEMORY_SHM
					  : strcmp(value, "hugetlb") == 0 ? MEMNODE_MEMORY_HUGETLB
													  : MEMNODE_MEMORY_PATH;
	if (options->memory == MEMNODE_MEMORY_PATH && strchr(value, '/') == NULL)
		return memnode_refuse(problem,
							  "\"%.60s\" is not shm, hugetlb, or the path of a file or DAX device (with a slash)",
							  value);
	return set_text(options->path, sizeof(options->path), value, problem);
}

/* Seconds, or with a unit: 90s, 30m, 12h, 7d. */
static bool
set_forget_after(struct memnode_options *options, const char *value, char *problem)
{
	static const char units[] = "smhd";
	static const uint32_t seconds[] = {1, 60, 3600, 86400};
	char *end;
	unsigned long long number;
	const char *unit;
	uint32_t factor;

	errno = 0;
	number = strtoull(value, &end, 10);
	unit = *end != '\0' ? strchr(units, *end) : units;
	factor = unit != NULL ? seconds[unit - units] : 0;
	if (!isdigit((unsigned char) value[0]) || errno != 0 || factor == 0 || (*end != '\0' && end[1] != '\0') ||
		number > TIME_MAX_S / factor)
		return memnode_refuse(problem, "\"%.60s\" is not a time such as 12h or 1d, up to 1000d", value);
	options->forget_after_s = (uint32_t) number * factor;
	smart_assert(options->forget_after_s <= TIME_MAX_S);
	return true;
}

/* Letters, digits, '-', '_' and '.'. */
static bool
is_plain_name(const char *value)
{
	return value[0] != '\0' &&
		   value[strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")] == '\0';
}

static bool
set_name(struct memnode_options *options, const char *value, char *problem)
{
	if (!is_plain_name(value))
		return memnode_refuse(problem, "\"%.60s\" is not a name of letters, digits, '-', '_' and '.'", value);
	return set_text(options->name, sizeof(options->name), value, problem);
}

static bool
set_transport(struct memnode_options *options, const char *value, char *problem)
{
	if (strcmp(value, "tcp") == 0 || strcmp(value, "verbs") == 0)
	{
		options->tcp = value[0] == 't';
		options->verbs = options->tcp ? MEMNODE_NO : MEMNODE_YES;
		return true;
	}
	if (strcmp(value, "tcp,verbs") != 0 && strcmp(value, "verbs,tcp") != 0)
		return memnode_refuse(problem, "\"%.60s\" is not tcp, verbs or tcp,verbs", value);
	options->tcp = true;
	options->verbs = MEMNODE_YES;
	return true;
}

static bool
set_cluster(struct memnode_options *options, const char *value, char *problem)
{
	if (!is_plain_name(value) || strchr(value, '.') != NULL)
		return memnode_refuse(problem, "\"%.60s\" is not a name of letters, digits, '-' and '_'", value);
	return set_text(options->cluster, sizeof(options->cluster), value, problem);
}

static bool
set_advertise(struct memnode_options *options, const char *value, char *problem)
{
	/* Without a port it is that of --listen, whatever was set before. */
	options->advertise_port[0] = '\0';
	if (!discovery_parse_address(value, "", options->advertise_host, options->advertise_port))
		return memnode_refuse(problem, "\"%.60s\" is not HOST, HOST:PORT or [IPV6]:PORT", value);
	return true;
}

static bool
set_log_level(struct memnode_options *options, const char *value, char *problem)
{
	static const char *const names[] = {"debug", "info", "warning"};

	for (unsigned int level = 0; level < sizeof(names) / sizeof(names[0]); level++)
	{
		if (strcmp(value, names[level]) == 0)
		{
			options->log_level = (enum smart_log_level) level;
			return true;
		}
	}
	return memnode_refuse(problem, "\"%.60s\" is not debug, info or warning", value);
}

#define TEXT(name) \
	.field = offsetof(struct memnode_options, name), .room = sizeof(((struct memnode_options *) NULL)->name)
#define NUMBER(name, least, most) .field = offsetof(struct memnode_options, name), .from = (least), .to = (most)

/* A setting has a function of its own, or is a text or a number of 32 bits that is taken as it comes. */
static const struct
{
	const char *name;
	const char *value;
	const char *help;
	setter set;
	size_t field;  /* of the text or number */
	size_t room;   /* bytes of the text, its zero byte included */
	uint32_t from; /* of the number */
	uint32_t to;
} settings[] = {
	{"listen", "HOST:PORT", "where clients connect; :PORT for all addresses, port 0 for any free one (127.0.0.1:7471)",
	 .set = set_listen},
	{"size", "SIZE", "memory to hand out, such as 512M or 4G (4G)", .set = set_size},
	{"memory", "KIND", "shm, hugetlb, or the path of a file or a DAX device (shm)", .set = set_memory},
	{"name", "NAME", "name of the shared memory (the port)", .set = set_name},
	{"transport", "LIST", "tcp, verbs or tcp,verbs (tcp, and verbs if there is a device)", .set = set_transport},
	{"device", "DEVICE", "RDMA device (the first that can be used)", TEXT(device)},
	{"gid-index", "N", "index in the port's GID table (found by itself)", NUMBER(gid_index, 0, 65535)},
	{"secret-file", "FILE",
	 "keys for TLS, up to 4 lines of 32 to 128 hexadecimal digits; needed for other than loopback addresses",
	 TEXT(secret_file)},
	{"memcached", "LIST", "HOST[:PORT],… of the memcached servers to announce this node in", TEXT(memcached)},
	{"cluster", "NAME", "under which name to announce it (smart)", .set = set_cluster},
	{"advertise", "HOST:PORT", "address to announce (that of --listen)", .set = set_advertise},
	{"ttl", "SECONDS", "how long an announcement lives; it is made anew three times as often (30)",
	 NUMBER(ttl_s, 3, 86400)},
	{"snapshot", "FILE", "write the memory there at a clean stop, and load it at the next start",
	 TEXT(snapshot) - 8 /* for ".new" */},
	{"metrics", "HOST:PORT", "where GET /metrics is answered, in OpenMetrics; PORT alone for 127.0.0.1 (nowhere)",
	 .set = set_metrics},
	{"max-connections", "N", "refuse more connections (4096)", NUMBER(max_connections, 1, 100000)},
	{"forget-after", "TIME",
	 "where memory is short, forget servers that have not been connected for so long; 0: never (1d)",
	 .set = set_forget_after},
	{"log-level", "LEVEL", "debug, info or warning (info)", .set = set_log_level},
	{"config", "FILE", "read settings from a file of lines NAME = VALUE; SIGHUP reads it again", TEXT(config)},
};

#define SETTINGS (sizeof(settings) / sizeof(settings[0]))

static bool
set_one(struct memnode_options *options, const char *name, size_t name_length, const char *value, char *problem)
{
	char why[MEMNODE_PROBLEM_MAX];
	bool good;

	for (size_t i = 0; i < SETTINGS; i++)
	{
		if (strlen(settings[i].name) != name_length || strncmp(settings[i].name, name, name_length) != 0)
			continue;
		if (value == NULL)
			return memnode_refuse(problem, "--%s needs a value: --%s=%s", settings[i].name, settings[i].name,
								  settings[i].value);
		smart_assert(settings[i].set != NULL || settings[i].field + settings[i].room <= sizeof(*options));
		if (settings[i].set != NULL)
			good = settings[i].set(options, value, why);
		else if (settings[i].room > 0)
			good = set_text((char *) options + settings[i].field, settings[i].room, value, why);
		else
			good = set_number((uint32_t *) (void *) ((char *) options + settings[i].field), value, settings[i].from,
							  settings[i].to, why);
		if (!good)
			return memnode_refuse(problem, "%s: %.*s", settings[i].name, MEMNODE_PROBLEM_MAX - 64, why);
		return true;
	}
	return memnode_refuse(problem, "there is no setting \"%.*s\", see --help",
						  name_length < 60 ? (int) name_length : 60, name);
}

/* ---- command line and file ---- */

/* An identity, as --status shows it. */
static bool
set_forget(struct memnode_options *options, const char *value, char *problem)
{
	if (strlen(value) != 16 || value[strspn(value, "0123456789abcdefABCDEF")] != '\0')
		return memnode_refuse(problem, "forget: \"%.60s\" is not the identity of an owner, 16 hexadecimal digits",
							  value);
	options->forget = strtoull(value, NULL, 16);
	return options->forget != 0 || memnode_refuse(problem, "forget: there is no owner 0");
}

static bool
set_status(struct memnode_options *options, const char *value, char *problem)
{
	if (strcmp(value, "html") != 0 && strcmp(value, "text") != 0)
		return memnode_refuse(problem, "status: \"%.60s\" is neither text nor html", value);
	options->status = strcmp(value, "html") == 0 ? MEMNODE_STATUS_HTML : MEMNODE_STATUS_TEXT;
	return true;
}

static bool
set_argument(struct memnode_options *options, const char *argument, char *problem)
{
	static const char forget[] = "--forget=";
	static const char status[] = "--status=";
	const char *equals;

	if (strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0)
		return options->help = true;
	if (strcmp(argument, "--status") == 0)
		return set_status(options, "text", problem);
	if (strncmp(argument, status, strlen(status)) == 0)
		return set_status(options, argument + strlen(status), problem);
	if (strncmp(argument, forget, strlen(forget)) == 0)
		return set_forget(options, argument + strlen(forget), problem);
	if (strcmp(argument, "--version") == 0 || strcmp(argument, "-V") == 0)
		return options->version = true;
	if (strncmp(argument, "--", 2) != 0)
		return memnode_refuse(problem, "\"%.60s\" is not an option, see --help", argument);
	equals = strchr(argument, '=');
	if (equals == NULL)
		return set_one(options, argument + 2, strlen(argument + 2), NULL, problem);
	smart_assert(equals >= argument + 2);
	return set_one(options, argument + 2, (size_t) (equals - argument - 2), equals + 1, problem);
}

/* Cuts blanks off both ends. */
static char *
trim(char *text)
{
	size_t length;

	while (isspace((unsigned char) *text))
		text++;
	length = strlen(text);
	while (length > 0 && isspace((unsigned char) text[length - 1]))
		length--;
	text[length] = '\0';
	return text;
}

/* A comment begins a line, or follows a blank. */
static void
cut_comment(char *line)
{
	for (char *at = line; *at != '\0'; at++)
	{
		if (*at == '#' && (at == line || isspace((unsigned char) at[-1])))
		{
			*at = '\0';
			return;
		}
	}
}

static bool
read_file(struct memnode_options *options, char *problem)
{
	FILE *file = fopen(options->config, "re");
	char line[LINE_MAX_BYTES];
	char why[MEMNODE_PROBLEM_MAX];
	unsigned int number = 0;
	bool good = true;

	smart_assert(options->config[0] != '\0');
	if (file == NULL)
		return memnode_refuse(problem, "config: cannot read %.*s: %s", PATH_MAX, options->config, strerror(errno));
	while (good && fgets(line, sizeof(line), file) != NULL)
	{
		char *equals;
		char *name;

		number++;
		cut_comment(line);
		equals = strchr(line, '=');
		name = trim(line);
		if (*name == '\0')
			continue;
		if (equals == NULL)
		{
			good = memnode_refuse(why, "not NAME = VALUE");
			continue;
		}
		*equals = '\0';
		name = trim(line);
		if (strcmp(name, "config") == 0)
			good = memnode_refuse(why, "a file cannot name another one");
		else
			good = set_one(options, name, strlen(name), trim(equals + 1), why);
	}
	if (good && ferror(file))
		good = memnode_refuse(problem, "config: cannot read %.*s: %s", PATH_MAX, options->config, strerror(errno));
	else if (!good)
		memnode_refuse(problem, "%.2048s, line %u: %.2048s", options->config, number, why);
	fclose(file);
	return good;
}

bool
memnode_options_read(struct memnode_options *options, int argc, char *const *argv, char problem[MEMNODE_PROBLEM_MAX])
{
	static const char config[] = "--config=";

	memset(options, 0, sizeof(*options));
	strcpy(options->host, DEFAULT_HOST);
	strcpy(options->port, DISCOVERY_PORT);
	strcpy(options->cluster, DEFAULT_CLUSTER);
	options->size = DEFAULT_SIZE;
	options->tcp = true;
	options->verbs = MEMNODE_IF_POSSIBLE;
	options->gid_index = -1;
	options->ttl_s = DEFAULT_TTL_S;
	options->max_connections = DEFAULT_CONNECTION;
	options->forget_after_s = DEFAULT_FORGET_S;
	options->log_level = SMART_LOG_INFO;
	for (int i = 1; i < argc; i++)
	{
		if (strncmp(argv[i], config, strlen(config)) == 0 &&
			!set_text(options->config, sizeof(options->config), argv[i] + strlen(config), problem))
			return false;
	}
	if (options->config[0] != '\0' && !read_file(options, problem))
		return false;
	for (int i = 1; i < argc; i++)
	{
		if (!set_argument(options, argv[i], problem))
			return false;
	}
	smart_assert(options->size >= MEMNODE_SIZE_MIN && options->size <= MEMNODE_SIZE_MAX &&
				 options->max_connections > 0);
	smart_assert(options->tcp || options->verbs == MEMNODE_YES);
	return true;
}

void
memnode_options_help(void)
{
	char option[64];

	printf("smart-memnode: memory for smart indexes of PostgreSQL servers\n\n");
	printf("Usage: smart-memnode [OPTION]…\n\n");
	for (size_t i = 0; i < SETTINGS; i++)
	{
		snprintf(option, sizeof(option), "--%s=%s", settings[i].name, settings[i].value);
		printf("  %-24s %s\n", option, settings[i].help);
	}
	printf("  %-24s how the daemon is that runs with these settings (--name, or --listen's port, tell which)\n",
		   "--status");
	printf("  %-24s the same as a page for a browser, with a map of the memory, on standard output\n", "--status=html");
	printf("  %-24s let that daemon forget a server that is not connected, by the identity that --status shows\n",
		   "--forget=OWNER");
	printf("  %-24s this text\n  %-24s the version\n", "--help", "--version");
}
