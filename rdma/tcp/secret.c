/*
 * secret.c
 *	  Reads the keys that a compute node and its memory nodes share, and names them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/assert.h"
#include "rdma/tcp/stream.h"

#define FILE_BYTES_MAX (STREAM_KEYS_MAX * (2 * STREAM_SECRET_MAX + 2) + 256) /* keys, ends of lines, empty lines */

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

/* The whole file, as far as keys can be long; one byte more shows that it is too long. */
static bool
read_all(int descriptor, uint8_t *text, size_t *length)
{
	size_t got = 0;

	while (got <= FILE_BYTES_MAX)
	{
		ssize_t more = read(descriptor, text + got, FILE_BYTES_MAX + 1 - got);

		if (more < 0 && errno == EINTR)
			continue;
		if (more < 0)
			return false;
		if (more == 0)
			break;
		got += (size_t) more;
	}
	smart_assert(got <= FILE_BYTES_MAX + 1);
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
	smart_assert(secret->length >= STREAM_SECRET_MIN && secret->length <= STREAM_SECRET_MAX);
	return true;
}

/* Each line that is not empty has to be a key. */
static bool
parse_lines(const uint8_t *text, size_t length, struct stream_keys *keys)
{
	size_t start = 0;

	smart_assert(keys->count == 0);
	for (size_t end = 0; end <= length; end++)
	{
		size_t line = end - start;

		smart_assert(start <= end);
		if (end < length && text[end] != '\n')
			continue;
		while (line > 0 && text[start + line - 1] == '\r')
			line--;
		if (line > 0 && (keys->count == STREAM_KEYS_MAX || !parse_line(text + start, line, &keys->key[keys->count++])))
			return false;
		start = end + 1;
	}
	return keys->count > 0 && length <= FILE_BYTES_MAX;
}

smart_status
stream_keys_read(const char *path, struct stream_keys *keys, char *problem, size_t size)
{
	uint8_t text[FILE_BYTES_MAX + 1];
	struct stream_keys found = {.count = 0};
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
		if (!read_all(descriptor, text, &length))
			snprintf(problem, size, "could not read secret file \"%s\": %s", path, strerror(errno));
		else if (!parse_lines(text, length, &found))
			snprintf(
				problem, size,
				"secret file \"%s\" must hold a line of %d to %d hexadecimal digits, two per byte, or up to %d of them",
				path, 2 * STREAM_SECRET_MIN, 2 * STREAM_SECRET_MAX, STREAM_KEYS_MAX);
		else
			status = SMART_OK;
	}
	if (status == SMART_OK)
		*keys = found;
	OPENSSL_cleanse(text, sizeof(text));
	OPENSSL_cleanse(&found, sizeof(found));
	close(descriptor);
	return status;
}

smart_status
stream_secret_read(const char *path, struct stream_secret *secret, char *problem, size_t size)
{
	struct stream_keys keys;
	smart_status status = stream_keys_read(path, &keys, problem, size);

	if (status == SMART_OK)
		*secret = keys.key[0];
	OPENSSL_cleanse(&keys, sizeof(keys));
	return status;
}

uint64_t
stream_key_name(const struct stream_secret *secret)
{
	static const uint8_t purpose[] = "smart key name";
	uint8_t digest[EVP_MAX_MD_SIZE];
	unsigned int length = 0;
	uint64_t name = 0;

	smart_assert(secret->length >= STREAM_SECRET_MIN && secret->length <= STREAM_SECRET_MAX);
	if (HMAC(EVP_sha256(), secret->key, (int) secret->length, purpose, sizeof(purpose) - 1, digest, &length) != NULL)
		memcpy(&name, digest, sizeof(name));
	return name != 0 ? name : 1;
}
