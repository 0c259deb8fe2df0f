/*
 * stream_test.c
 *	  Streams over real sockets, plain and with TLS: what goes through, which peers are refused,
 *	  and what is said about it.  SIGPIPE keeps its default, which would end this program.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rdma/tcp/stream.h"
#include "support/check.h"
#include "support/env_thread.h"

#define LARGE      ((size_t) 5 << 20)
#define LIMIT_MS   20000 /* a wait that is longer is a hang */
#define CLIENT     0
#define SERVER     1
#define SHORT_TEXT "what no other may read"

static const struct stream_secret none = {.length = 0};

static struct stream_secret
make_secret(size_t length, uint8_t last)
{
	struct stream_secret secret = {.length = length};

	for (size_t i = 0; i < length; i++)
		secret.key[i] = (uint8_t) (i * 7 + 1);
	secret.key[length - 1] = last;
	return secret;
}

/* A connected, non-blocking pair of sockets. */
static void
connect_pair(bool tcp, int sockets[2])
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	int listener;

	if (!tcp)
	{
		CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets) == 0);
		return;
	}
	listener = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(bind(listener, (struct sockaddr *) &address, sizeof(address)) == 0 && listen(listener, 1) == 0);
	CHECK(getsockname(listener, (struct sockaddr *) &address, &length) == 0);
	sockets[CLIENT] = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(connect(sockets[CLIENT], (struct sockaddr *) &address, sizeof(address)) == 0);
	sockets[SERVER] = accept(listener, NULL, NULL);
	for (int i = 0; i < 2; i++)
		CHECK(sockets[i] >= 0 && fcntl(sockets[i], F_SETFL, O_NONBLOCK) == 0);
	close(listener);
}

static void
open_pair(bool tcp, const struct stream_secret *client, const struct stream_secret *server, struct stream *pair[2])
{
	struct stream_keys keys = {.count = server->length > 0, .key = {*server}};
	int sockets[2];

	connect_pair(tcp, sockets);
	pair[CLIENT] = stream_open(sockets[CLIENT], client);
	pair[SERVER] = stream_accept(sockets[SERVER], &keys);
	if (pair[CLIENT] == NULL || pair[SERVER] == NULL)
		abort();
}

static void
close_pair(struct stream *pair[2])
{
	stream_close(pair[CLIENT]);
	stream_close(pair[SERVER]);
}

/* Waits until one side may go on. */
static void
wait_pair(struct stream *pair[2], const enum stream_wait wait[2])
{
	struct pollfd wanted[2];

	for (int i = 0; i < 2; i++)
		wanted[i] = (struct pollfd){.fd = wait[i] == STREAM_WANT_READ || wait[i] == STREAM_WANT_WRITE
											  ? stream_descriptor(pair[i])
											  : -1,
									.events = wait[i] == STREAM_WANT_WRITE ? POLLIN | POLLOUT : POLLIN};
	if (poll(wanted, 2, LIMIT_MS) <= 0)
	{
		printf("a wait without end\n");
		abort();
	}
}

static bool
is_over(enum stream_wait wait)
{
	return wait == STREAM_DONE || wait == STREAM_CLOSED;
}

/* Both handshakes to their ends; a side that fails closes its socket, as a program would, if it is not wanted any more. */
static void
handshake_pair(struct stream *pair[2], enum stream_wait result[2])
{
	result[CLIENT] = result[SERVER] = STREAM_WANT_READ;
	for (;;)
	{
		for (int i = 0; i < 2; i++)
			if (!is_over(result[i]))
				result[i] = stream_handshake(pair[i]);
		for (int i = 0; i < 2; i++)
			if (result[i] == STREAM_CLOSED)
				shutdown(stream_descriptor(pair[i]), SHUT_RDWR);
		if (is_over(result[CLIENT]) && is_over(result[SERVER]))
			return;
		wait_pair(pair, result);
	}
}

static void
open_ready_pair(bool tcp, const struct stream_secret *secret, struct stream *pair[2])
{
	enum stream_wait result[2];

	open_pair(tcp, secret, secret, pair);
	handshake_pair(pair, result);
	CHECK(result[CLIENT] == STREAM_DONE && result[SERVER] == STREAM_DONE);
	if (result[CLIENT] != STREAM_DONE || result[SERVER] != STREAM_DONE)
		abort();
}

/* One side of a transfer both ways. */
struct side
{
	uint8_t *out;
	uint8_t *in;
	size_t written;
	size_t read;
};

/* Moves what goes; what it waits for then, STREAM_DONE: this side is through. */
static enum stream_wait
pump(struct stream *stream, struct side *side, uint64_t *random)
{
	enum stream_wait wait = STREAM_DONE;
	size_t moved;

	while (side->written < LARGE && wait == STREAM_DONE)
	{
		moved = 0;
		/* All that is left: after STREAM_WANT_WRITE it must not be less than before. */
		wait = stream_write(stream, side->out + side->written, LARGE - side->written, &moved);
		CHECK(wait != STREAM_CLOSED && (wait != STREAM_DONE || (moved > 0 && moved <= LARGE - side->written)));
		side->written += moved;
	}
	wait = STREAM_DONE;
	while (side->read < LARGE && wait == STREAM_DONE)
	{
		size_t most = 1 + test_random(random) % 70000;

		most = most < LARGE - side->read ? most : LARGE - side->read;
		moved = 0;
		wait = stream_read(stream, side->in + side->read, most, &moved);
		CHECK(wait != STREAM_CLOSED && (wait != STREAM_DONE || (moved > 0 && moved <= most)));
		side->read += moved;
	}
	if (side->written < LARGE)
		return STREAM_WANT_WRITE;
	return side->read < LARGE ? STREAM_WANT_READ : STREAM_DONE;
}

/* More than any buffer between them holds goes both ways at once. */
static void
test_both_ways(bool tcp, const struct stream_secret *secret)
{
	struct stream *pair[2];
	struct side side[2];
	enum stream_wait wait[2];
	uint64_t random = 1;

	open_ready_pair(tcp, secret, pair);
	for (int i = 0; i < 2; i++)
	{
		side[i] = (struct side){.out = malloc(LARGE), .in = calloc(1, LARGE)};
		for (size_t j = 0; j < LARGE; j++)
			side[i].out[j] = (uint8_t) test_random(&random);
	}
	for (;;)
	{
		for (int i = 0; i < 2; i++)
			wait[i] = pump(pair[i], &side[i], &random);
		if (wait[CLIENT] == STREAM_DONE && wait[SERVER] == STREAM_DONE)
			break;
		wait_pair(pair, wait);
	}
	CHECK(memcmp(side[CLIENT].in, side[SERVER].out, LARGE) == 0);
	CHECK(memcmp(side[SERVER].in, side[CLIENT].out, LARGE) == 0);
	for (int i = 0; i < 2; i++)
	{
		free(side[i].out);
		free(side[i].in);
	}
	close_pair(pair);
}

/* Keys are used in full, and both sides are told when they differ. */
static void
test_wrong_key(const struct stream_secret *client, const struct stream_secret *server)
{
	struct stream *pair[2];
	enum stream_wait result[2];

	open_pair(true, client, server, pair);
	handshake_pair(pair, result);
	CHECK(result[CLIENT] == STREAM_CLOSED && strstr(stream_problem(pair[CLIENT]), "same secret key") != NULL);
	CHECK(result[SERVER] == STREAM_CLOSED && strstr(stream_problem(pair[SERVER]), "same secret key") != NULL);
	/* A refused stream stays refused. */
	CHECK(stream_handshake(pair[CLIENT]) == STREAM_CLOSED && stream_handshake(pair[SERVER]) == STREAM_CLOSED);
	close_pair(pair);
}

/* A server accepts each of its keys, and knows which one it was; a client uses one. */
static void
test_choice(const struct stream_secret *keys[], unsigned int count, const struct stream_secret *other)
{
	struct stream_keys accepted = {.count = count};
	struct stream *pair[2];
	enum stream_wait result[2];
	int sockets[2];

	for (unsigned int i = 0; i < count; i++)
		accepted.key[i] = *keys[i];
	for (unsigned int i = 0; i <= count; i++)
	{
		bool good = i < count;

		connect_pair(true, sockets);
		pair[CLIENT] = stream_open(sockets[CLIENT], good ? keys[i] : other);
		pair[SERVER] = stream_accept(sockets[SERVER], &accepted);
		CHECK(stream_key_used(pair[SERVER]) == 0);
		handshake_pair(pair, result);
		CHECK(result[CLIENT] == (good ? STREAM_DONE : STREAM_CLOSED) && result[SERVER] == result[CLIENT]);
		CHECK(stream_key_used(pair[SERVER]) == (good ? stream_key_name(keys[i]) : 0));
		CHECK(stream_key_used(pair[CLIENT]) == stream_key_used(pair[SERVER]));
		CHECK(good || (strstr(stream_problem(pair[CLIENT]), "same secret key") != NULL &&
					   strstr(stream_problem(pair[SERVER]), "same secret key") != NULL));
		close_pair(pair);
	}
}

/* One waiting read, as long as it takes. */
static enum stream_wait
read_some(struct stream *stream, uint8_t *bytes, size_t length, size_t *moved)
{
	enum stream_wait wait;

	while ((wait = stream_read(stream, bytes, length, moved)) == STREAM_WANT_READ)
	{
		struct pollfd wanted = {.fd = stream_descriptor(stream), .events = POLLIN};

		if (poll(&wanted, 1, LIMIT_MS) <= 0)
			abort();
	}
	return wait;
}

/* A client with a key at a server without one, which understands nothing and closes. */
static void
test_tls_at_plain(const struct stream_secret *secret)
{
	struct stream *pair[2];
	uint8_t bytes[1024];
	size_t moved = 0;
	enum stream_wait wait;

	open_pair(true, secret, &none, pair);
	CHECK(stream_handshake(pair[CLIENT]) == STREAM_WANT_READ && stream_handshake(pair[SERVER]) == STREAM_DONE);
	CHECK(read_some(pair[SERVER], bytes, sizeof(bytes), &moved) == STREAM_DONE && bytes[0] == 0x16);
	shutdown(stream_descriptor(pair[SERVER]), SHUT_RDWR);
	while ((wait = stream_handshake(pair[CLIENT])) == STREAM_WANT_READ)
		wait_pair(pair, (enum stream_wait[]){wait, STREAM_DONE});
	CHECK(wait == STREAM_CLOSED && strstr(stream_problem(pair[CLIENT]), "no secret key") != NULL);
	close_pair(pair);

	/* The same, if the server answers in its own words. */
	open_pair(true, secret, &none, pair);
	CHECK(stream_handshake(pair[CLIENT]) == STREAM_WANT_READ);
	memset(bytes, 0x81, sizeof(bytes));
	CHECK(stream_write(pair[SERVER], bytes, 16, &moved) == STREAM_DONE);
	while ((wait = stream_handshake(pair[CLIENT])) == STREAM_WANT_READ)
		wait_pair(pair, (enum stream_wait[]){wait, STREAM_DONE});
	CHECK(wait == STREAM_CLOSED && strstr(stream_problem(pair[CLIENT]), "does not use TLS") != NULL);
	close_pair(pair);
}

/* A client without a key at a server with one, which understands nothing and closes. */
static void
test_plain_at_tls(const struct stream_secret *secret)
{
	struct stream *pair[2];
	uint8_t bytes[64] = {40, 0, 0, 0, 1};
	size_t moved = 0;
	enum stream_wait wait;

	open_pair(true, &none, secret, pair);
	CHECK(stream_handshake(pair[CLIENT]) == STREAM_DONE);
	CHECK(stream_write(pair[CLIENT], bytes, 56, &moved) == STREAM_DONE && moved == 56);
	while ((wait = stream_handshake(pair[SERVER])) == STREAM_WANT_READ)
		wait_pair(pair, (enum stream_wait[]){STREAM_DONE, wait});
	CHECK(wait == STREAM_CLOSED && strstr(stream_problem(pair[SERVER]), "does not use TLS") != NULL);
	stream_close(pair[SERVER]);
	CHECK(read_some(pair[CLIENT], bytes, sizeof(bytes), &moved) == STREAM_CLOSED);
	CHECK(strstr(stream_problem(pair[CLIENT]), "closed the connection") != NULL);
	stream_close(pair[CLIENT]);
}

/* What goes over the wire is not what was written. */
static void
test_nobody_reads(const struct stream_secret *secret)
{
	struct stream *pair[2];
	uint8_t seen[4096];
	uint8_t bytes[sizeof(SHORT_TEXT)];
	size_t moved = 0;
	ssize_t there;

	open_ready_pair(true, secret, pair);
	CHECK(stream_write(pair[CLIENT], (const uint8_t *) SHORT_TEXT, sizeof(SHORT_TEXT), &moved) == STREAM_DONE);
	CHECK(moved == sizeof(SHORT_TEXT));
	wait_pair(pair, (enum stream_wait[]){STREAM_DONE, STREAM_WANT_READ});
	there = recv(stream_descriptor(pair[SERVER]), seen, sizeof(seen), MSG_PEEK);
	CHECK(there >= (ssize_t) sizeof(SHORT_TEXT));
	CHECK((memmem(seen, (size_t) there, SHORT_TEXT, sizeof(SHORT_TEXT)) == NULL) == (secret->length > 0));
	CHECK(read_some(pair[SERVER], bytes, sizeof(bytes), &moved) == STREAM_DONE && moved == sizeof(SHORT_TEXT));
	CHECK(memcmp(bytes, SHORT_TEXT, sizeof(SHORT_TEXT)) == 0);
	close_pair(pair);
}

/* Last words arrive, then the end. */
static void
test_closed(const struct stream_secret *secret)
{
	struct stream *pair[2];
	uint8_t bytes[4096] = {0};
	size_t moved = 0;

	open_ready_pair(true, secret, pair);
	CHECK(stream_read(pair[CLIENT], bytes, sizeof(bytes), &moved) == STREAM_WANT_READ);
	CHECK(stream_write(pair[SERVER], (const uint8_t *) SHORT_TEXT, sizeof(SHORT_TEXT), &moved) == STREAM_DONE);
	stream_close(pair[SERVER]);
	CHECK(read_some(pair[CLIENT], bytes, sizeof(bytes), &moved) == STREAM_DONE && moved == sizeof(SHORT_TEXT));
	CHECK(read_some(pair[CLIENT], bytes, sizeof(bytes), &moved) == STREAM_CLOSED);
	CHECK(strstr(stream_problem(pair[CLIENT]), "closed the connection") != NULL);
	stream_close(pair[CLIENT]);
}

/* A writer without a reader is told, not killed. */
static void
test_written_to_nobody(const struct stream_secret *secret)
{
	struct stream *pair[2];
	uint8_t bytes[4096] = {0};
	size_t moved = 0;
	enum stream_wait wait = STREAM_DONE;

	open_ready_pair(true, secret, pair);
	stream_close(pair[SERVER]);
	/* The first write finds the connection half open, and only its reply makes a later one fail. */
	for (int i = 0; i < LIMIT_MS && wait != STREAM_CLOSED; i++)
	{
		wait = stream_write(pair[CLIENT], bytes, sizeof(bytes), &moved);
		usleep(1000);
	}
	CHECK(wait == STREAM_CLOSED && strstr(stream_problem(pair[CLIENT]), "closed the connection") != NULL);
	stream_close(pair[CLIENT]);
}

/* Closing drops what the other side has no room for. */
static void
test_dropped(const struct stream_secret *secret)
{
	struct stream *pair[2];
	static uint8_t bytes[1 << 16];
	size_t written = 0;
	size_t got = 0;
	size_t moved = 0;

	open_ready_pair(true, secret, pair);
	while (stream_write(pair[CLIENT], bytes, sizeof(bytes), &moved) == STREAM_DONE)
		written += moved;
	CHECK(written > 0);
	stream_close(pair[CLIENT]);
	while (read_some(pair[SERVER], bytes, sizeof(bytes), &moved) == STREAM_DONE)
		got += moved;
	CHECK(got < written);
	stream_close(pair[SERVER]);
}

/* ---- key files ---- */

static char path[] = "/tmp/smart-secret-XXXXXX";

static bool
secret_is(const char *content, mode_t mode, struct stream_secret *secret, const char *complaint)
{
	char problem[256] = "";
	bool writable = chmod(path, 0600) == 0;
	int descriptor = open(path, O_WRONLY | O_TRUNC);
	smart_status status;

	CHECK(writable && write(descriptor, content, strlen(content)) == (ssize_t) strlen(content));
	CHECK(fchmod(descriptor, mode) == 0 && close(descriptor) == 0);
	status = stream_secret_read(path, secret, problem, sizeof(problem));
	if (complaint == NULL)
		return status == SMART_OK;
	return status == SMART_UNREACHABLE && strstr(problem, complaint) != NULL && strstr(problem, path) != NULL;
}

/* A file of up to four lines, of which clients take the first. */
static void
test_several_keys(void)
{
	struct stream_secret secret;
	struct stream_keys keys;
	char text[1024];
	char problem[256];
	int length = 0;

	for (int line = 1; line <= STREAM_KEYS_MAX; line++)
	{
		length +=
			snprintf(text + length, sizeof(text) - (size_t) length, "%s%0126d%02d\r\n", line == 2 ? "\n" : "", 0, line);
		CHECK(secret_is(text, 0600, &secret, NULL) && secret.length == STREAM_SECRET_MAX && secret.key[63] == 1);
		CHECK(stream_keys_read(path, &keys, problem, sizeof(problem)) == SMART_OK && keys.count == (unsigned int) line);
		CHECK(keys.key[line - 1].key[63] == line);
	}
	CHECK(stream_key_name(&keys.key[0]) == stream_key_name(&secret) &&
		  stream_key_name(&keys.key[0]) != stream_key_name(&keys.key[1]));
	snprintf(text + length, sizeof(text) - (size_t) length, "%032d\n", 5);
	CHECK(secret_is(text, 0600, &secret, "up to 4"));
	snprintf(text, sizeof(text), "%032d\n%031d\n", 1, 2);
	CHECK(secret_is(text, 0600, &secret, "hexadecimal digits"));
	snprintf(text, sizeof(text), "%032d\n# a comment\n", 1);
	CHECK(secret_is(text, 0600, &secret, "hexadecimal digits"));
}

static void
test_secret_files(void)
{
	static const char digits[] = "000102030405060708090a0B0c0D0e0f";
	struct stream_secret secret = {.length = 0};
	char text[300];
	int descriptor = mkstemp(path);

	CHECK(descriptor >= 0 && close(descriptor) == 0);
	CHECK(secret_is(digits, 0600, &secret, NULL) && secret.length == 16);
	for (uint8_t i = 0; i < 16; i++)
		CHECK(secret.key[i] == i);
	snprintf(text, sizeof(text), "%s%s%s%s\r\n", digits, digits, digits, digits);
	CHECK(secret_is(text, 0400, &secret, NULL) && secret.length == STREAM_SECRET_MAX && secret.key[63] == 15);
	snprintf(text, sizeof(text), "%s%s%s%s00\n", digits, digits, digits, digits);
	CHECK(secret_is(text, 0600, &secret, "32 to 128 hexadecimal digits"));
	snprintf(text, sizeof(text), "%s%s%s%s%s%s\n", digits, digits, digits, digits, digits, digits);
	CHECK(secret_is(text, 0600, &secret, "hexadecimal digits"));
	test_several_keys();
	CHECK(secret_is("000102030405060708090a0b0c0d0e\n", 0600, &secret, "hexadecimal digits"));
	CHECK(secret_is("000102030405060708090a0b0c0d0e0f0\n", 0600, &secret, "hexadecimal digits"));
	CHECK(secret_is("000102030405060708090a0b0c0d0e0g\n", 0600, &secret, "hexadecimal digits"));
	CHECK(secret_is("", 0600, &secret, "hexadecimal digits"));
	CHECK(secret_is(digits, 0640, &secret, "other users") && secret_is(digits, 0604, &secret, "other users"));
	/* What was there stays when nothing came. */
	CHECK(secret.length == STREAM_SECRET_MAX);
	unlink(path);
	CHECK(stream_secret_read(path, &secret, text, sizeof(text)) == SMART_UNREACHABLE &&
		  strstr(text, "No such") != NULL);
	CHECK(stream_secret_read("/", &secret, text, sizeof(text)) == SMART_UNREACHABLE && strstr(text, "regular") != NULL);
}

int
main(void)
{
	struct stream_secret shortest = make_secret(STREAM_SECRET_MIN, 0);
	struct stream_secret longest = make_secret(STREAM_SECRET_MAX, 0);
	struct stream_secret other = make_secret(STREAM_SECRET_MAX, 1);
	struct stream_secret fourth = make_secret(STREAM_SECRET_MIN, 1);

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int tcp = 0; tcp < 2; tcp++)
	{
		test_both_ways(tcp == 1, &none);
		test_both_ways(tcp == 1, &shortest);
		test_both_ways(tcp == 1, &longest);
	}
	test_wrong_key(&longest, &other);
	test_wrong_key(&shortest, &longest);
	test_wrong_key(&longest, &shortest);
	test_choice((const struct stream_secret *[]){&longest, &shortest, &other}, 3, &fourth);
	test_choice((const struct stream_secret *[]){&fourth}, 1, &longest);
	test_tls_at_plain(&shortest);
	test_plain_at_tls(&shortest);
	test_nobody_reads(&none);
	test_nobody_reads(&longest);
	test_closed(&none);
	test_closed(&longest);
	test_written_to_nobody(&none);
	test_written_to_nobody(&longest);
	test_dropped(&none);
	test_dropped(&longest);
	test_secret_files();
	return check_finish();
}
