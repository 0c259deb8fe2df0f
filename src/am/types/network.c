/*
 * network.c
 *	  Normalized keys of inet (and cidr).
 *
 * An inet compares by family, then by network, a shorter one before those inside it, then by address.  Hence its
 * normalized key: family, address with zeros behind the network's bits, number of these bits, and the bytes of the
 * address that are not wholly of the network.
 */
#include "postgres.h"

#include <sys/socket.h>

#include "utils/inet.h"

#include "am/codec/normalizer.h"
#include "base/assert.h"

#define ADDRESS_MAX 16 /* bytes, as in family 6 */

static uint8 *
inet_encode(const struct smart_normalizer *normalizer, Datum value, uint8 *out, uint8 *limit)
{
	inet *given = DatumGetInetPP(value);
	int size = ip_addrsize(given);
	int bits = ip_bits(given);
	int whole = bits / BITS_PER_BYTE;
	uint8 bytes[2 + 2 * ADDRESS_MAX];

	bytes[0] = ip_family(given);
	memset(bytes + 1, 0, size);
	memcpy(bytes + 1, ip_addr(given), whole);
	if (bits % BITS_PER_BYTE != 0)
		bytes[1 + whole] = ip_addr(given)[whole] & (0xFF << (BITS_PER_BYTE - bits % BITS_PER_BYTE));
	bytes[1 + size] = bits;
	memcpy(bytes + 2 + size, ip_addr(given) + whole, size - whole);
	smart_free_copy(given, value);
	return smart_put_bytes(out, limit, bytes, 2 + size + size - whole);
}

static const uint8 *
inet_end(const struct smart_normalizer *normalizer, const uint8 *bytes, const uint8 *limit, uint8 flip)
{
	int length = limit - bytes;
	int size;
	int whole;

	smart_assert(bytes <= limit && (flip == 0 || flip == 0xFF));
	if (length < 1)
		return NULL;
	size = (bytes[0] ^ flip) == PGSQL_AF_INET ? 4 : ADDRESS_MAX;
	if (length < 2 + size)
		return NULL;
	whole = (bytes[1 + size] ^ flip) / BITS_PER_BYTE;
	if (whole > size || length < 2 + size + size - whole)
		return NULL;
	return bytes + 2 + size + size - whole;
}

static Datum
inet_decode(const struct smart_normalizer *normalizer, const uint8 *bytes, int length, const uint8 *residue,
			char *space)
{
	int size = bytes[0] == PGSQL_AF_INET ? 4 : ADDRESS_MAX;
	int bits = bytes[1 + size];
	int whole = bits / BITS_PER_BYTE;
	inet_struct given = {.family = bytes[0], .bits = bits};

	smart_assert(whole <= size && length == 2 + size + size - whole);
	memcpy(given.ipaddr, bytes + 1, whole);
	memcpy(given.ipaddr + whole, bytes + 2 + size, size - whole);
	return smart_make_varlena(space, &given, offsetof(inet_struct, ipaddr) + size);
}

/* What lies in a network begins with its whole bytes; the operator asks for the bits behind them, and for longer masks */
static uint8 *
inet_pattern(const struct smart_normalizer *normalizer, int strategy, Datum pattern, uint8 *out, uint8 *limit,
			 bool *exact, bool *recheck)
{
	inet *network = DatumGetInetPP(pattern);
	int whole = ip_bits(network) / BITS_PER_BYTE;
	uint8 bytes[1 + ADDRESS_MAX];
	uint8 *end;

	smart_assert(strategy == SMART_STRATEGY_SUBNET || strategy == SMART_STRATEGY_SUBNET_EQ);
	*exact = false;
	*recheck = true;
	bytes[0] = ip_family(network);
	memcpy(bytes + 1, ip_addr(network), whole);
	end = smart_put_bytes(out, limit, bytes, 1 + whole);
	return end == NULL ? limit : end;
}

SMART_NORMALIZER(inet, NULL, .encode = inet_encode, .end = inet_end, .decode = inet_decode, .pattern = inet_pattern);
