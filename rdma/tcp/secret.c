/*
 * secret.c
 *	  Reads the key that a compute node and its memory nodes share.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/crypto.h>

#include "rdma/tcp/stream.h"

#define LINE_BYTES_MAX (2 * STREAM_SECRET_MAX + 2) /* digits, and an end of line of at most two bytes */

static int
digit_value(uint8_t digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	if (digit >= 'a' && digit <= 'f')
		return digit - 'a' + 10;
	if (digit >= 'A' && digit <= 'F')
		return digit - 'A' + 10;
	return -1;
}

/* Is the file closed to all users but this one and root? */
static bool
is_private(int descriptor, const char *path, char *problem, size_t size)
{
	struct stat about;

	if (fstat(descriptor, &about) != 0)
		snprintf(problem, size, "could not look at secret file \"%s\": %s", path, strerror(errno));
	else if (!S_ISREG(about.st_mode))
		snprintf(problem, size, "secret file \"%s\" is not a regular file", path);
	else if (about.st_uid != geteuid() && about.st_uid != 0)
		snprintf(problem, size, "secret file \"%s\" must belong to the user who runs this, or to root", path);
	else if ((about.st_mode & (S_IRWXG | S_IRWXO)) != 0)
		snprintf(problem, size, "secret file \"%s\" can be reached by other users: chmod it to 0600", path);
	else
		return true;
	return false;
}

/* The whole file, as far as a key can be long; one byte more shows that it is too long. */
static bool
read_line(int descriptor, uint8_t *line, size_t *length)
{
	size_t got = 0;

	while (got <= LINE_BYTES_MAX)
	{
		ssize_t more = read(descriptor, line + got, LINE_BYTES_MAX + 1 - got);

		if (more < 0 && errno == EINTR)
			continue;
		if (more < 0)
			return false;
		if (more == 0)
			break;
		got += (size_t) more;
	}
	while (got > 0 && (line[got - 1] == '\n' || line[got - 1] == '\r'))
		got--;
	*length = got;
	return true;
}

static bool
parse_line(const uint8_t *line, size_t length, struct stream_secret *secret)
{
	if (length % 2 != 0 || length < 2 * STREAM_SECRET_MIN || length > 2 * STREAM_SECRET_MAX)
		return false;
	for (size_t i = 0; i < length; i += 2)
	{
		int high = digit_value(line[i]);
		int low = digit_value(line[i + 1]);

		if (high < 0 || low < 0)
			return false;
		secret->key[i / 2] = (uint8_t) (high << 4 | low);
	}
	secret->length = length / 2;
	return true;
}

smart_status
stream_secret_read(const char *path, struct stream_secret *secret, char *problem, size_t size)
{
	uint8_t line[LINE_BYTES_MAX + 1];
	struct stream_secret found = {.length = 0};
	size_t length = 0;
	smart_status status = SMART_UNREACHABLE;
	int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (descriptor < 0)
	{
		snprintf(problem, size, "could not open secret file \"%s\": %s", path, strerror(errno));
		return SMART_UNREACHABLE;
	}
	if (is_private(descriptor, path, problem, size))
	{
		if (!read_line(descriptor, line, &length))
			snprintf(problem, size, "could not read secret file \"%s\": %s", path, strerror(errno));
		else if (!parse_line(line, length, &found))
			snprintf(problem, size,
					 "secret file \"%s\" must hold one line of %d to %d hexadecimal digits, two per byte", path,
					 2 * STREAM_SECRET_MIN, 2 * STREAM_SECRET_MAX);
		else
			status = SMART_OK;
	}
	if (status == SMART_OK)
		*secret = found;
	OPENSSL_cleanse(line, sizeof(line));
	OPENSSL_cleanse(&found, sizeof(found));
	close(descriptor);
	return status;
}
