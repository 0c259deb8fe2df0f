/*
 * image_network.c - images of inet (and cidr), macaddr and macaddr8
 *
 * The hardware addresses are their bytes.  An inet compares by family, then by network, a shorter one before those
 * inside it, then by address.  Hence its image: family, address with zeros behind the network's bits, number of these
 * bits, and the bytes of the address that are not wholly of the network.
 */
#include "postgres.h"

#include <sys/socket.h>

#include "utils/inet.h"

#include "am/image.h"

#define ADDRESS_MAX 16 /* bytes, as in family 6 */

SMART_IMAGE_FUNCTION(smart_image_inet);
SMART_IMAGE_FUNCTION(smart_image_macaddr);
SMART_IMAGE_FUNCTION(smart_image_macaddr8);

/* Copies size bytes of an address, with zeros behind the first bits of them */
static void
mask_address(uint8 *out, const uint8 *address, int size, int bits)
{
	int whole = bits / BITS_PER_BYTE;

	memset(out, 0, size);
	memcpy(out, address, whole);
	if (bits % BITS_PER_BYTE != 0)
		out[whole] = address[whole] & (0xFF << (BITS_PER_BYTE - bits % BITS_PER_BYTE));
}

static uint8 *
inet_encode(const struct smart_image *image, Datum value, uint8 *out, uint8 *limit)
{
	inet *given = DatumGetInetPP(value);
	int size = ip_addrsize(given);
	int bits = ip_bits(given);
	int whole = bits / BITS_PER_BYTE;
	uint8 bytes[2 + 2 * ADDRESS_MAX];

	bytes[0] = ip_family(given);
	mask_address(bytes + 1, ip_addr(given), size, bits);
	bytes[1 + size] = bits;
	memcpy(bytes + 2 + size, ip_addr(given) + whole, size - whole);
	if (unlikely(InetPGetDatum(given) != value))
		pfree(given);
	return smart_put_bytes(out, limit, bytes, 2 + size + size - whole);
}

static const uint8 *
inet_end(const struct smart_image *image, const uint8 *bytes, const uint8 *limit, uint8 flip)
{
	int length = limit - bytes;
	int size;
	int whole;

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
inet_decode(const struct smart_image *image, const uint8 *bytes, int length, const uint8 *residue, char *space)
{
	int size = bytes[0] == PGSQL_AF_INET ? 4 : ADDRESS_MAX;
	int bits = bytes[1 + size];
	int whole = bits / BITS_PER_BYTE;
	inet_struct given = {.family = bytes[0], .bits = bits};

	memcpy(given.ipaddr, bytes + 1, whole);
	memcpy(given.ipaddr + whole, bytes + 2 + size, size - whole);
	return smart_make_varlena(space, &given, offsetof(inet_struct, ipaddr) + size);
}

/* What lies in a network begins with its whole bytes; the operator asks for the bits behind them, and for longer masks */
static uint8 *
inet_pattern(const struct smart_image *image, int strategy, Datum pattern, uint8 *out, uint8 *limit, bool *exact,
			 bool *recheck)
{
	inet *network = DatumGetInetPP(pattern);
	int whole = ip_bits(network) / BITS_PER_BYTE;
	uint8 bytes[1 + ADDRESS_MAX];
	uint8 *end;

	Assert(strategy == SMART_STRATEGY_SUBNET || strategy == SMART_STRATEGY_SUBNET_EQ);
	*exact = false;
	*recheck = true;
	bytes[0] = ip_family(network);
	memcpy(bytes + 1, ip_addr(network), whole);
	end = smart_put_bytes(out, limit, bytes, 1 + whole);
	return end == NULL ? limit : end;
}

static uint8 *
macaddr_encode(const struct smart_image *image, Datum value, uint8 *out, uint8 *limit)
{
	memcpy(out, DatumGetMacaddrP(value), sizeof(macaddr));
	return out + sizeof(macaddr);
}

static Datum
macaddr_decode(const struct smart_image *image, const uint8 *bytes, int length, const uint8 *residue, char *space)
{
	memcpy(space, bytes, sizeof(macaddr));
	return PointerGetDatum(space);
}

static uint8 *
macaddr8_encode(const struct smart_image *image, Datum value, uint8 *out, uint8 *limit)
{
	memcpy(out, DatumGetMacaddr8P(value), sizeof(macaddr8));
	return out + sizeof(macaddr8);
}

static Datum
macaddr8_decode(const struct smart_image *image, const uint8 *bytes, int length, const uint8 *residue, char *space)
{
	memcpy(space, bytes, sizeof(macaddr8));
	return PointerGetDatum(space);
}

Datum
smart_image_inet(PG_FUNCTION_ARGS)
{
	static const struct smart_image form = {.encode = inet_encode,
											.end = inet_end,
											.decode = inet_decode,
											.pattern = inet_pattern};

	return smart_image_set(fcinfo, &form);
}

Datum
smart_image_macaddr(PG_FUNCTION_ARGS)
{
	static const struct smart_image form = {.width = sizeof(macaddr),
											.encode = macaddr_encode,
											.decode = macaddr_decode};

	return smart_image_set(fcinfo, &form);
}

Datum
smart_image_macaddr8(PG_FUNCTION_ARGS)
{
	static const struct smart_image form = {.width = sizeof(macaddr8),
											.encode = macaddr8_encode,
											.decode = macaddr8_decode};

	return smart_image_set(fcinfo, &form);
}
