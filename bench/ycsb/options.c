/*
 * options.c
 *	  The command line of ycsb.
 */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "compute/cache/cache.h"
#include "compute/partition/partition.h"
#include "tree/tree.h"
#include "keys.h"
#include "options.h"

const char *const ycsb_provider_names[YCSB_PROVIDERS] = {"sim", "local", "tcp", "verbs"};
const char *const ycsb_index_names[YCSB_INDEXES] = {"tree",
													"smart",
													"art",
													"art-locked",
													"dart",
													"dart-unskipped",
													"sherman",
													"sherman-optimistic",
													"sherman-partitioned",
													"smart-partitioned",
													"dex",
													"dex-onesided",
													"dex-eager",
													"canrt",
													"wort",
													"chime"};
const char *const ycsb_key_names[YCSB_KEY_TYPES] = {"integer", "string", "randint", "email"};
const char *const ycsb_workload_names[YCSB_WORKLOADS] = {"load", "a", "b", "c", "d", "e", "f", "insert", "update"};

static const char *const offload_names[] =
	{[SMART_OFFLOAD_AUTO] = "auto", [SMART_OFFLOAD_ON] = "on", [SMART_OFFLOAD_OFF] = "off"};

static const char help[] =
	"ycsb: YCSB's load and workloads A to F, and inserts, on a SMART tree, without PostgreSQL.\n"
	"\n"
	"  --workload=LIST          load, a, b, c, d, e, f, insert, update, separated by commas, or all [load,c]\n"
	"  --keys=N                 records that are loaded first [200k]\n"
	"  --load=inserts|sorted    by inserts in random order, or all at once from a sorted run, out of time [inserts]\n"
	"  --operations=N           of each workload [200k]\n"
	"  --warmup=N               operations ahead of each workload that are not counted [half of --operations]\n"
	"  --key-type=TYPE          integer (8 bytes, scrambled), string (e-mail addresses), randint (8 bytes, 63 bits)\n"
	"                           or email (e-mail addresses, the domain first) [integer]\n"
	"  --distribution=NAME      zipf (exponent 0.99, scrambled) or uniform; D reads the latest by zipf [zipf]\n"
	"  --scan-length=[MIN-]MAX  entries of a scan of E, uniform [1-100]\n"
	"  --seed=N                 of every choice [1]\n"
	"\n"
	"  --provider=NAME          sim: a cluster in virtual time, one thread; local: this program's memory;\n"
	"                           tcp, verbs: the memory nodes of --nodes [sim]\n"
	"  --index=NAME             sim: tree, this project's, or a model: smart (OSDI'23), art, art-locked (as SMART and\n"
	"                           DART have it), dart, dart-unskipped (SIGMOD'26), sherman (SIGMOD'22),\n"
	"                           sherman-optimistic, sherman-partitioned, smart-partitioned (as DEX has them), dex,\n"
	"                           dex-onesided, dex-eager (VLDB'24), canrt, wort (as CANRT has it), chime (SOSP'24) [tree]\n"
	"  --value-size=BYTES       of an entry of a model, but smart's [8]\n"
	"  --nodes=HOST:PORT,…      running smart-memnode daemons; this program takes a lease of its own there\n"
	"  --secret-file=FILE       the key of the memory nodes\n"
	"  --clients=N              of each compute node; threads, or simulated ones [1]\n"
	"  --compute-nodes=N        processes, or simulated ones [1]\n"
	"  --memory-nodes=N         sim only; the others have what they have [1]\n"
	"  --mode=MODE              shared (several compute nodes may write) or exclusive (one does) [shared]\n"
	"  --partitions=N           sim: the keys are divided into N ranges, each a tree of its own that one compute node owns\n"
	"                           and opens in exclusive mode; a client works with the cache and the locks of its key's\n"
	"                           owner, and with its own cores and NIC, as --index=dex does [0: one tree]\n"
	"  --log=BYTES              with --partitions: owners write changes into logs of so many bytes, and apply them later\n"
	"                           [0: none]\n"
	"  --log-copies=1|2         of each log, on different memory nodes [1]\n"
	"  --log-flights=N          WRITEs of a log at a time, at most [4]\n"
	"  --move                   in the first workload that is counted the last compute node gives its ranges to the others\n"
	"                           after a third of the operations, and gets them back after two; tells how long none could\n"
	"                           be used\n"
	"  --cache=BYTES            cache of internal nodes of each compute node, 0 for none [64M]\n"
	"  --offload=auto|on|off    tcp and verbs: searches whose way is not in the cache are left to the memory node [auto]\n"
	"  --rdwc=on|off            read delegation and write combining within each compute node, but for local [off]\n"
	"  --leaf-size=BYTES        up to which a leaf grows [512; with --log 1024]\n"
	"  --fill=PERCENT           of a leaf, when records are loaded from a sorted run [100]\n"
	"  --values=on|off          sim, shared or --partitions: entries of this project's tree have a value of eight bytes,\n"
	"                           which an update changes in place [off]\n"
	"  --promises=on|off        sim, shared, integers, no values: appends take no lock, but promise what they write, with an\n"
	"                           atomic less and a round trip more [off]\n"
	"  --check                  verify the whole tree at the end, and tell its bytes per entry\n"
	"\n"
	"  --timed                  sim: a curve of throughput and latency, with 1, 2, 4, … --clients\n"
	"  --copies=1|2             sim: what it would cost to keep every block on two memory nodes: each WRITE, and the word\n"
	"                           of each atomic as a WRITE, goes to the next memory node, too, in the same batch [1]\n"
	"  --colocated              sim: memory node i and compute node i are one machine with one NIC\n"
	"  and what things take on the simulated cluster, at the end of this text\n"
	"\n"
	"  --csv=FILE --svg=FILE    a line for each run; throughput and latency as a picture\n"
	"\n"
	"Numbers may end in k, M or G (thousand, million, billion).\n"
	"\n"
	"A: 50 % reads, 50 % updates.  B: 95 % reads, 5 % updates.  C: reads.  D: 95 % reads of the latest, 5 % inserts.\n"
	"E: 95 % scans, 5 % inserts.  F: 50 % reads, 50 % read-modify-writes.  A read is a lookup of a key.\n"
	"\n"
	"insert: new entries beside records, which are drawn like those that are read (--distribution).  An integer has the\n"
	"record's first four bytes, and a number of its own, scrambled, in the other four; a string is the record's address\n"
	"with +number in front of the @.  No entry is inserted twice, and no other workload asks for them.  update: updates.\n"
	"\n"
	"Without --values the tree is a set of byte strings, and an update is what an index has to do when a\n"
	"row gets another address: the entry is removed, and inserted again with another payload.  In between, a lookup\n"
	"by another client does not find it; such lookups are counted as absent.  A read-modify-write is a lookup and\n"
	"an update.  Where nothing is updated, an absent record is an error.\n"
	"\n"
	"The columns round_trips, reads, writes, atomics, read_bytes and write_bytes are averages per operation.  A round\n"
	"trip is one batch of requests that a client waits for.  A fenced request within a batch leaves when the READs and\n"
	"atomics before it have come back, which is another round trip; only the simulated cluster counts it.\n"
	"\n"
	"The simulated cluster's parameters, each with its source:\n";

static void refuse(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

static void
refuse(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fprintf(stderr, "ycsb: ");
	vfprintf(stderr, format, arguments);
	fprintf(stderr, " (see ycsb --help)\n");
	va_end(arguments);
	exit(2);
}

/* A number from low to high at the beginning of text; *end: what follows. */
static uint64_t
parse_prefix(const char *name, const char *text, uint64_t low, uint64_t high, const char **end)
{
	uint64_t factor = 1;
	unsigned long long number;
	char *stop;

	smart_assert(low <= high);
	errno = 0;
	number = strtoull(text, &stop, 10);
	if (stop == text || text[0] == '-' || errno != 0)
		refuse("--%s=%s is not a number", name, text);
	if (*stop == 'k')
		factor = 1000;
	else if (*stop == 'M')
		factor = 1000000;
	else if (*stop == 'G')
		factor = 1000000000;
	*end = stop + (factor > 1);
	if (number > high / factor || number * factor < low)
		refuse("--%s=%s is out of range (%llu to %llu)", name, text, (unsigned long long) low,
			   (unsigned long long) high);
	return number * factor;
}

static uint64_t
parse_number(const char *name, const char *text, uint64_t low, uint64_t high)
{
	const char *end;
	uint64_t number = parse_prefix(name, text, low, high, &end);

	if (*end != '\0')
		refuse("--%s=%s is not a number", name, text);
	return number;
}

static unsigned int
parse_name(const char *name, const char *text, size_t length, const char *const *names, unsigned int count)
{
	smart_assert(count > 0);
	for (unsigned int i = 0; i < count; i++)
	{
		if (strlen(names[i]) == length && strncmp(names[i], text, length) == 0)
			return i;
	}
	refuse("--%s=%s: there is no %.*s", name, text, (int) length, text);
}

static void
parse_workloads(struct ycsb_options *options, const char *name, const char *text)
{
	const char *word = text;

	for (int i = 0; i < YCSB_WORKLOADS; i++)
		options->wanted[i] = strcmp(text, "all") == 0;
	while (strcmp(text, "all") != 0)
	{
		size_t length = strcspn(word, ",");

		options->wanted[parse_name(name, word, length, ycsb_workload_names, YCSB_WORKLOADS)] = true;
		if (word[length] == '\0')
			break;
		word += length + 1;
	}
}

static void
parse_scan_length(struct ycsb_options *options, const char *name, const char *text)
{
	const char *end;

	options->scan_min = 1;
	options->scan_max = parse_prefix(name, text, 1, 1000000, &end);
	if (*end == '-')
	{
		options->scan_min = options->scan_max;
		options->scan_max = parse_number(name, end + 1, options->scan_min, 1000000);
	}
	else if (*end != '\0')
		refuse("--%s=%s is not a length", name, text);
}

/* One of the simulated cluster's, if there is one of that name. */
static bool
take_parameter(struct ycsb_options *options, const char *name, const char *text)
{
	for (int i = 0; i < SIM_PARAMETERS; i++)
	{
		const struct sim_parameter *parameter = &sim_parameters[i];

		if (strcmp(parameter->name, name) != 0)
			continue;
		*(uint64_t *) (void *) ((char *) &options->model + parameter->offset) =
			parse_number(name, text, parameter->low, parameter->high);
		return true;
	}
	return false;
}

static void
print_help(void)
{
	fputs(help, stdout);
	for (int i = 0; i < SIM_PARAMETERS; i++)
		printf("\n  --%s=N%*s%s [%llu %s]\n      %s", sim_parameters[i].name, 15 - (int) strlen(sim_parameters[i].name),
			   "", sim_parameters[i].meaning, (unsigned long long) sim_parameters[i].value, sim_parameters[i].unit,
			   sim_parameters[i].source);
	putchar('\n');
}

enum kind
{
	HELP,
	FLAG,
	TEXT,
	NUMBER,   /* uint64_t */
	NUMBER32, /* uint32_t */
	SWITCH,   /* bool: which of two names */
	NAME,     /* an enum: which of the names */
	WORKLOADS,
	SCAN_LENGTH,
};

static const char *const off_on[] = {"off", "on"};
static const char *const modes[] = {"exclusive", "shared"};
static const char *const loads[] = {"inserts", "sorted"};
static const char *const distributions[] = {"uniform", "zipf"};

#define FIELD(member)    .field = offsetof(struct ycsb_options, member)
#define RANGE(from, to)  .low = from, .high = to
#define LOGGED_LEAF_SIZE 1024
#define OPERATIONS_MAX   (YCSB_STRINGS_MAX / 16)

static const struct choice
{
	const char *name;
	enum kind kind;
	size_t field;
	uint64_t low; /* of a number */
	uint64_t high;
	const char *const *names;
	unsigned int names_count;
} choices[] = {
	{"help", .kind = HELP},
	{"provider", NAME, FIELD(provider), .names = ycsb_provider_names, .names_count = YCSB_PROVIDERS},
	{"index", NAME, FIELD(index), .names = ycsb_index_names, .names_count = YCSB_INDEXES},
	{"nodes", TEXT, FIELD(nodes)},
	{"secret-file", TEXT, FIELD(secret_file)},
	{"workload", .kind = WORKLOADS},
	{"keys", NUMBER, FIELD(keys), RANGE(1, YCSB_STRINGS_MAX / 2)},
	{"operations", NUMBER, FIELD(operations), RANGE(1, OPERATIONS_MAX)},
	{"warmup", NUMBER, FIELD(warmup), RANGE(0, OPERATIONS_MAX)},
	{"key-type", NAME, FIELD(key_type), .names = ycsb_key_names, .names_count = YCSB_KEY_TYPES},
	{"load", SWITCH, FIELD(sorted), .names = loads},
	{"value-size", NUMBER32, FIELD(value_bytes), RANGE(8, 1024)},
	{"copies", NUMBER32, FIELD(copies), RANGE(1, 2)},
	{"colocated", FLAG, FIELD(colocated)},
	{"distribution", SWITCH, FIELD(zipf), .names = distributions},
	{"scan-length", .kind = SCAN_LENGTH},
	{"cache", NUMBER, FIELD(cache_bytes), RANGE(0, SMART_CACHE_BYTES_MAX)},
	{"clients", NUMBER32, FIELD(clients), RANGE(1, YCSB_CLIENTS_MAX)},
	{"compute-nodes", NUMBER32, FIELD(compute_nodes), RANGE(1, YCSB_NODES_MAX)},
	{"memory-nodes", NUMBER32, FIELD(memory_nodes), RANGE(1, YCSB_NODES_MAX)},
	{"mode", SWITCH, FIELD(shared), .names = modes},
	{"partitions", NUMBER32, FIELD(partitions), RANGE(0, SMART_RANGES_MAX)},
	{"rdwc", SWITCH, FIELD(rdwc), .names = off_on},
	{"offload", NAME, FIELD(offload), .names = offload_names, .names_count = 3},
	{"values", SWITCH, FIELD(values), .names = off_on},
	{"promises", SWITCH, FIELD(promises), .names = off_on},
	{"leaf-size", NUMBER32, FIELD(leaf_size), RANGE(SMART_LEAF_SIZE_MIN, SMART_LEAF_SIZE_MAX)},
	{"fill", NUMBER32, FIELD(fill), RANGE(10, 100)},
	{"log", NUMBER32, FIELD(log_bytes), RANGE(0, UINT32_MAX / 2)},
	{"log-copies", NUMBER32, FIELD(log_copies), RANGE(1, SMART_LOG_COPIES_MAX)},
	{"log-flights", NUMBER32, FIELD(log_flights), RANGE(1, SMART_LOG_FLIGHTS_MAX)},
	{"move", FLAG, FIELD(move)},
	{"seed", NUMBER, FIELD(seed), RANGE(0, UINT64_MAX)},
	{"csv", TEXT, FIELD(csv)},
	{"svg", TEXT, FIELD(svg)},
	{"timed", FLAG, FIELD(timed)},
	{"check", FLAG, FIELD(check)},
};

#define CHOICES (sizeof(choices) / sizeof(choices[0]))

static void
take_option(struct ycsb_options *options, const struct choice *choice, const char *text)
{
	void *field = (char *) options + choice->field;

	smart_assert(choice->kind != NUMBER32 || choice->high <= UINT32_MAX);
	smart_assert(choice->kind != NAME || choice->names_count > 0);
	switch (choice->kind)
	{
		case FLAG:
			*(bool *) field = true;
			break;
		case TEXT:
			*(const char **) field = text;
			break;
		case NUMBER:
			*(uint64_t *) field = parse_number(choice->name, text, choice->low, choice->high);
			break;
		case NUMBER32:
			*(uint32_t *) field = (uint32_t) parse_number(choice->name, text, choice->low, choice->high);
			break;
		case SWITCH:
			*(bool *) field = parse_name(choice->name, text, strlen(text), choice->names, 2) == 1;
			break;
		case NAME:
			*(unsigned int *) field = parse_name(choice->name, text, strlen(text), choice->names, choice->names_count);
			break;
		case WORKLOADS:
			parse_workloads(options, choice->name, text);
			break;
		case SCAN_LENGTH:
			parse_scan_length(options, choice->name, text);
			break;
		case HELP:
			print_help();
			exit(0);
	}
}

/* What does not go together. */
static void
check_options(const struct ycsb_options *options)
{
	bool remote = options->provider == YCSB_TCP || options->provider == YCSB_VERBS;

	if (remote != (options->nodes != NULL))
		refuse(remote ? "this provider needs --nodes" : "--nodes is for tcp and verbs");
	if (options->provider != YCSB_SIM && (options->memory_nodes > 1 || options->timed))
		refuse("--memory-nodes and --timed are for the simulated cluster");
	if (options->partitions > 0 && (options->provider != YCSB_SIM || options->index != YCSB_TREE))
		refuse("--partitions is for this project's tree on the simulated cluster");
	if (options->partitions > 0 && options->partitions < options->compute_nodes)
		refuse("each compute node needs a range");
	if (options->log_bytes > 0 && options->partitions == 0)
		refuse("--log is for --partitions");
	if (options->log_bytes > 0 && (options->log_bytes < YCSB_LOG_BYTES_MIN || options->log_bytes % SMART_UNIT != 0))
		refuse("a log has a multiple of 64 bytes, and at least 16 kB");
	if (options->log_bytes > 0 && options->log_copies > options->memory_nodes)
		refuse("--log-copies needs so many memory nodes");
	if (options->move && (options->partitions == 0 || options->compute_nodes == 1))
		refuse("--move is for --partitions of several compute nodes");
	if (!options->shared && options->compute_nodes > 1 && options->partitions == 0)
		refuse("an exclusive tree is one compute node's");
	if (options->cache_bytes > 0 && options->cache_bytes < SMART_CACHE_BYTES_MIN)
		refuse("a cache has at least %zu bytes", SMART_CACHE_BYTES_MIN);
	if (options->index != YCSB_TREE && (options->provider != YCSB_SIM || options->check))
		refuse("other papers' indexes are on the simulated cluster, and have no check");
	if (options->index >= YCSB_PEER_SHERMAN && !ycsb_is_integer(options->key_type))
		refuse("the keys of %s are integers", ycsb_index_names[options->index]);
	if (options->index >= YCSB_PEER_DEX && options->index <= YCSB_PEER_DEX_EAGER &&
		options->compute_nodes > YCSB_DEX_NODES_MAX)
		refuse("DEX has a range for each compute node, at most %u", YCSB_DEX_NODES_MAX);
	if (options->copies > 1 && (options->provider != YCSB_SIM || options->index != YCSB_TREE))
		refuse("--copies is for this project's tree on the simulated cluster");
	if (options->promises &&
		(options->provider != YCSB_SIM || options->index != YCSB_TREE || !options->shared || options->values))
		refuse("--promises is for this project's tree on the simulated cluster, shared and without values");
	if (options->values && (options->provider != YCSB_SIM || options->index != YCSB_TREE ||
							(!options->shared && options->partitions == 0)))
		refuse("--values is for this project's tree on the simulated cluster, shared or partitioned");
	if (options->copies > options->memory_nodes)
		refuse("%u copies are on as many --memory-nodes", options->copies);
	if (options->colocated && options->memory_nodes > options->compute_nodes)
		refuse("each memory node needs a compute node to share a machine with");
	if (options->sorted && options->wanted[YCSB_LOAD])
		refuse("a load from a sorted run is not measured: leave load out of --workload");
	if (options->key_type == YCSB_EMAIL && options->keys + options->operations > YCSB_EMAILS_MAX)
		refuse("there are no more than %llu addresses", (unsigned long long) YCSB_EMAILS_MAX);
	if ((uint64_t) options->clients * options->compute_nodes > YCSB_CLIENTS_MAX)
		refuse("more than %d clients", YCSB_CLIENTS_MAX);
}

void
ycsb_options_default(struct ycsb_options *options)
{
	*options = (struct ycsb_options){
		.provider = YCSB_SIM,
		.wanted = {[YCSB_LOAD] = true, [YCSB_C] = true},
		.keys = 200000,
		.operations = 200000,
		.warmup = UINT64_MAX,
		.zipf = true,
		.cache_bytes = 64000000,
		.clients = 1,
		.compute_nodes = 1,
		.memory_nodes = 1,
		.copies = 1,
		.log_copies = 1,
		.log_flights = 4,
		.shared = true,
		.scan_min = 1,
		.scan_max = 100,
		.value_bytes = 8,
		.leaf_size = SMART_LEAF_SIZE_DEFAULT,
		.fill = 100,
		.seed = 1,
	};
	sim_model_default(&options->model);
}

void
ycsb_options_parse(struct ycsb_options *options, int argc, char **argv)
{
	struct option known[CHOICES + SIM_PARAMETERS + 1] = {{0}};
	int index = 0;
	int result;

	for (size_t i = 0; i < CHOICES; i++)
	{
		known[i].name = choices[i].name;
		known[i].has_arg = choices[i].kind == HELP || choices[i].kind == FLAG ? no_argument : required_argument;
	}
	for (size_t i = 0; i < SIM_PARAMETERS; i++)
	{
		known[CHOICES + i].name = sim_parameters[i].name;
		known[CHOICES + i].has_arg = required_argument;
	}
	ycsb_options_default(options);
	options->leaf_size = 0;
	while ((result = getopt_long(argc, argv, "", known, &index)) != -1)
	{
		if (result != 0)
			exit(2);
		if (!take_parameter(options, known[index].name, optarg))
			take_option(options, &choices[index], optarg);
	}
	if (optind < argc)
		refuse("what is %s?", argv[optind]);
	/* Owners with logs cache whole leaves, and change many keys of one together. */
	if (options->leaf_size == 0)
		options->leaf_size = options->log_bytes > 0 ? LOGGED_LEAF_SIZE : SMART_LEAF_SIZE_DEFAULT;
	options->leaf_size = options->leaf_size / SMART_UNIT * SMART_UNIT;
	/* Each range is one compute node's. */
	options->shared = options->shared && options->partitions == 0;
	if (options->warmup == UINT64_MAX)
		options->warmup = options->operations / 2;
	check_options(options);
	smart_assert(options->scan_min <= options->scan_max && options->clients >= 1);
	for (const char *rest = options->nodes; rest != NULL && (rest = strchr(rest, ',')) != NULL; rest++)
		options->memory_nodes++;
}
