/*
 * memnode_options_test.c
 *	  The settings of a memory node: a file, arguments that win over it, and what is wrong with either.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memnode/log.h"
#include "memnode/options.h"
#include "support/check.h"

#define ARGUMENTS_MAX 8

static struct memnode_options options;
static char problem[MEMNODE_PROBLEM_MAX];

/* Reads the arguments, up to a NULL, after the name of the program. */
static bool
reads(const char *const *arguments)
{
	char *argv[ARGUMENTS_MAX + 1] = {"smart-memnode"};
	int argc = 1;

	problem[0] = '\0';
	for (; arguments[argc - 1] != NULL; argc++)
		argv[argc] = (char *) arguments[argc - 1];
	return memnode_options_read(&options, argc, argv, problem);
}

#define READS(...) reads((const char *const[ARGUMENTS_MAX]){__VA_ARGS__})

static void
test_defaults(void)
{
	CHECK(READS(NULL));
	CHECK(strcmp(options.host, "127.0.0.1") == 0 && strcmp(options.port, "7471") == 0);
	CHECK(options.size == (uint64_t) 4 << 30 && options.memory == MEMNODE_MEMORY_SHM);
	CHECK(options.tcp && options.verbs == MEMNODE_IF_POSSIBLE && options.gid_index == -1);
	CHECK(options.ttl_s == 30 && options.max_connections == 4096 && options.forget_after_s == 86400);
	CHECK(strcmp(options.cluster, "smart") == 0 && options.advertise_host[0] == '\0');
	CHECK(options.log_level == SMART_LOG_INFO && !options.help && !options.version && options.forget == 0);
	CHECK(options.status == MEMNODE_STATUS_NONE);
}

static void
test_arguments(void)
{
	CHECK(READS("--listen=[::1]:99", "--size=512M", "--transport=verbs", "--gid-index=0", "--forget-after=0"));
	CHECK(strcmp(options.host, "::1") == 0 && strcmp(options.port, "99") == 0 && options.size == (uint64_t) 512 << 20);
	CHECK(!options.tcp && options.verbs == MEMNODE_YES && options.gid_index == 0 && options.forget_after_s == 0);
	CHECK(READS("--memory=hugetlb", "--log-level=warning", "--metrics=9"));
	CHECK(options.memory == MEMNODE_MEMORY_HUGETLB && options.log_level == SMART_LOG_WARNING);
	CHECK(strcmp(options.metrics_host, "127.0.0.1") == 0 && strcmp(options.metrics_port, "9") == 0);
	/* The last one of a name counts. */
	CHECK(READS("--ttl=3", "--ttl=86400") && options.ttl_s == 86400);
	CHECK(READS("--forget=00000000000000fF") && options.forget == 255);
	CHECK(READS("--status") && options.status == MEMNODE_STATUS_TEXT);
	CHECK(READS("--status=html") && options.status == MEMNODE_STATUS_HTML);
	CHECK(READS("-V") && options.version && READS("-h") && options.help);
}

/* A later one without a port means the port of --listen, not that of an earlier one. */
static void
test_advertise(void)
{
	CHECK(READS("--advertise=a.example:5") && strcmp(options.advertise_host, "a.example") == 0);
	CHECK(strcmp(options.advertise_port, "5") == 0);
	CHECK(READS("--advertise=a.example:5", "--advertise=b.example") &&
		  strcmp(options.advertise_host, "b.example") == 0);
	CHECK(options.advertise_port[0] == '\0');
}

static void
test_refusals(void)
{
	static const struct
	{
		const char *argument;
		const char *says;
	} wrong[] = {
		{"size=1G", "not an option"},
		{"--nothing=1", "no setting \"nothing\""},
		{"--siz=1G", "no setting \"siz\""},
		{"--size", "--size=SIZE"},
		{"--size=15M", "16M to 1T"},
		{"--size=1.5G", "such as 512M"},
		{"--size=-1", "such as 512M"},
		{"--size=", "such as 512M"},
		{"--transport=", "tcp,verbs"},
		{"--transport=tcp,", "tcp,verbs"},
		{"--ttl=2", "3 to 86400"},
		{"--ttl=86401", "3 to 86400"},
		{"--ttl=99999999999999999999", "3 to 86400"},
		{"--ttl=9x", "3 to 86400"},
		{"--gid-index=-1", "0 to 65535"},
		{"--name=a/b", "letters"},
		{"--cluster=a b", "letters"},
		{"--advertise=a:b", "HOST:PORT"},
		{"--metrics=70000", "metrics"},
		{"--log-level=loud", "debug, info or warning"},
		{"--forget=0000000000000000", "no owner 0"},
		{"--forget=ff", "16 hexadecimal digits"},
		{"--status=xml", "neither text nor html"},
		{"--config=/none/such", "cannot read /none/such"},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
	{
		bool good = READS(wrong[i].argument);

		CHECK(!good);
		if (strstr(problem, wrong[i].says) == NULL)
			fprintf(stderr, "%s: %s\n", wrong[i].argument, problem);
		CHECK(strstr(problem, wrong[i].says) != NULL && strchr(problem, '\n') == NULL);
	}
}

/* A value that is too long is refused. */
static void
test_long_values(void)
{
	static const char *const names[] = {"listen",    "memory",  "name",      "device",   "secret-file",
										"memcached", "cluster", "advertise", "snapshot", "metrics",
										"config",    "size",    "transport", "log-level"};
	static char argument[3 * PATH_MAX];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
	{
		int begin = snprintf(argument, sizeof(argument), "--%s=/", names[i]);

		memset(argument + begin, 'x', sizeof(argument) - (size_t) begin - 1);
		argument[sizeof(argument) - 1] = '\0';
		CHECK(!READS(argument) && problem[0] != '\0');
	}
}

static void
put(FILE *file, const char *text)
{
	rewind(file);
	CHECK(ftruncate(fileno(file), 0) == 0 && fputs(text, file) >= 0 && fflush(file) == 0);
}

static void
test_file(void)
{
	char path[] = "/tmp/memnode_options_test.XXXXXX";
	char config[64];
	int descriptor = mkstemp(path);
	FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "w");

	CHECK(file != NULL);
	if (file == NULL)
		return;
	(void) snprintf(config, sizeof(config), "--config=%s", path);
	put(file, "# of this host\n\n  size = 64M # in chunks\nttl = 60\nadvertise = a.example:5\n");
	CHECK(READS(config) && options.size == (uint64_t) 64 << 20 && options.ttl_s == 60);
	/* Arguments win, wherever they stand. */
	CHECK(READS("--ttl=90", config, "--advertise=b.example") && options.ttl_s == 90);
	CHECK(strcmp(options.advertise_host, "b.example") == 0 && options.advertise_port[0] == '\0');
	/* Within a word # begins no comment, and a name must not have one. */
	put(file, "ttl = 60\n\nname=node#1\n");
	CHECK(!READS(config) && strstr(problem, "line 3") != NULL);
	put(file, "ttl = 60\nconfig = other\n");
	CHECK(!READS(config) && strstr(problem, "line 2: a file cannot name another one") != NULL);
	put(file, "ttl\n");
	CHECK(!READS(config) && strstr(problem, "line 1: not NAME = VALUE") != NULL);
	fclose(file);
	unlink(path);
}

int
main(void)
{
	test_defaults();
	test_arguments();
	test_advertise();
	test_refusals();
	test_long_values();
	test_file();
	return check_finish();
}
