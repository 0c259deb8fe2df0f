/*
 * bytes.h
 *	  Byte strings that need not be aligned: words in their order, and comparisons; and shared words.
 */
#ifndef SMART_BASE_BYTES_H
#define SMART_BASE_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * Big-endian words at any address: the order of the numbers is the memcmp order of their bytes.  A put returns the end
 * of what it wrote.
 */
static inline uint16_t
smart_load_be16(const uint8_t *bytes)
{
	uint16_t word;

	memcpy(&word, bytes, sizeof(word));
	return __builtin_bswap16(word);
}

static inline uint32_t
smart_load_be32(const uint8_t *bytes)
{
	uint32_t word;

	memcpy(&word, bytes, sizeof(word));
	return __builtin_bswap32(word);
}

static inline uint64_t
smart_load_be64(const uint8_t *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return __builtin_bswap64(word);
}

static inline uint16_t
smart_get_be16(const uint8_t *bytes)
{
	return (uint16_t) (bytes[0] << 8 | bytes[1]);
}

static inline uint8_t *
smart_put_be16(uint8_t *out, uint16_t word)
{
	word = __builtin_bswap16(word);
	memcpy(out, &word, sizeof(word));
	return out + sizeof(word);
}

static inline uint8_t *
smart_put_be32(uint8_t *out, uint32_t word)
{
	word = __builtin_bswap32(word);
	memcpy(out, &word, sizeof(word));
	return out + sizeof(word);
}

static inline uint8_t *
smart_put_be64(uint8_t *out, uint64_t word)
{
	word = __builtin_bswap64(word);
	memcpy(out, &word, sizeof(word));
	return out + sizeof(word);
}

/* Numbers with a sign: the flipped sign bit moves the negative ones below the others. */
static inline uint8_t *
smart_put_int16(uint8_t *out, int16_t number)
{
	return smart_put_be16(out, (uint16_t) number ^ UINT16_C(0x8000));
}

static inline int16_t
smart_load_int16(const uint8_t *bytes)
{
	return (int16_t) (smart_load_be16(bytes) ^ UINT16_C(0x8000));
}

static inline uint8_t *
smart_put_int32(uint8_t *out, int32_t number)
{
	return smart_put_be32(out, (uint32_t) number ^ UINT32_C(0x80000000));
}

static inline int32_t
smart_load_int32(const uint8_t *bytes)
{
	return (int32_t) (smart_load_be32(bytes) ^ UINT32_C(0x80000000));
}

static inline uint8_t *
smart_put_int64(uint8_t *out, int64_t number)
{
	return smart_put_be64(out, (uint64_t) number ^ UINT64_C(0x8000000000000000));
}

static inline int64_t
smart_load_int64(const uint8_t *bytes)
{
	return (int64_t) (smart_load_be64(bytes) ^ UINT64_C(0x8000000000000000));
}

/*
 * IEEE numbers, which order like sign and magnitude: those without a sign get the bit, the others are complemented.  A
 * negative zero sorts below the other one, and a NaN beyond the infinity of its sign.
 */
static inline uint8_t *
smart_put_float32(uint8_t *out, float number)
{
	uint32_t word;

	memcpy(&word, &number, sizeof(word));
	return smart_put_be32(out, word & UINT32_C(0x80000000) ? ~word : word | UINT32_C(0x80000000));
}

static inline float
smart_load_float32(const uint8_t *bytes)
{
	uint32_t word = smart_load_be32(bytes);
	float number;

	word = word & UINT32_C(0x80000000) ? word & ~UINT32_C(0x80000000) : ~word;
	memcpy(&number, &word, sizeof(number));
	return number;
}

static inline uint8_t *
smart_put_float64(uint8_t *out, double number)
{
	uint64_t word;

	memcpy(&word, &number, sizeof(word));
	return smart_put_be64(out, word & UINT64_C(0x8000000000000000) ? ~word : word | UINT64_C(0x8000000000000000));
}

static inline double
smart_load_float64(const uint8_t *bytes)
{
	uint64_t word = smart_load_be64(bytes);
	double number;

	word = word & UINT64_C(0x8000000000000000) ? word & ~UINT64_C(0x8000000000000000) : ~word;
	memcpy(&number, &word, sizeof(number));
	return number;
}

/*
 * A shared word.  The acquire pairs with the release half of the CAS that
 * published the word: whatever was written before that CAS is visible after
 * this load.
 */
static inline uint64_t
smart_load_acquire(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* The first eight bytes of a string as a number in memcmp's order, as if zeros followed it. */
static inline uint64_t
smart_rank(const uint8_t *bytes, size_t length)
{
	uint64_t rank = 0;

	if (length >= sizeof(uint64_t))
		return smart_load_be64(bytes);
	if (length >= sizeof(uint32_t))
	{
		size_t rest = length - sizeof(uint32_t);

		rank = (uint64_t) smart_load_be32(bytes) << 32;
		if (rest > 0)
			rank |= ((uint64_t) smart_load_be32(bytes + rest) & ((UINT64_C(1) << (8 * rest)) - 1)) << (32 - 8 * rest);
		return rank;
	}
	for (size_t i = 0; i < length; i++)
		rank |= (uint64_t) bytes[i] << (56 - 8 * i);
	return rank;
}

/* memcmp of equal lengths, by words that may overlap: suffixes are short, and a call costs more than they do. */
static inline int
smart_compare_equal_length(const uint8_t *a, const uint8_t *b, size_t length)
{
	uint64_t left;
	uint64_t right;

	if (length >= sizeof(uint64_t))
	{
		left = smart_load_be64(a);
		right = smart_load_be64(b);
		if (left != right)
			return left < right ? -1 : 1;
		if (length > 2 * sizeof(uint64_t))
			return memcmp(a + sizeof(uint64_t), b + sizeof(uint64_t), length - sizeof(uint64_t));
		left = smart_load_be64(a + length - sizeof(uint64_t));
		right = smart_load_be64(b + length - sizeof(uint64_t));
		return (left > right) - (left < right);
	}
	if (length >= sizeof(uint32_t))
	{
		size_t last = length - sizeof(uint32_t);

		left = (uint64_t) smart_load_be32(a) << 32 | smart_load_be32(a + last);
		right = (uint64_t) smart_load_be32(b) << 32 | smart_load_be32(b + last);
		return (left > right) - (left < right);
	}
	for (size_t i = 0; i < length; i++)
	{
		if (a[i] != b[i])
			return (int) a[i] - (int) b[i];
	}
	return 0;
}

/* Are two strings of one length the same?  Looks at their ends first, where TIDs make them differ. */
static inline int
smart_equal_bytes(const uint8_t *a, const uint8_t *b, size_t length)
{
	uint64_t left;
	uint64_t right;

	if (length < sizeof(uint64_t))
		return smart_compare_equal_length(a, b, length) == 0;
	memcpy(&left, a + length - sizeof(uint64_t), sizeof(left));
	memcpy(&right, b + length - sizeof(uint64_t), sizeof(right));
	return left == right && (length == sizeof(uint64_t) || memcmp(a, b, length - sizeof(uint64_t)) == 0);
}

/* memcmp with lengths: a proper prefix sorts first.  Result <0, 0, >0. */
static inline int
smart_compare_bytes(const uint8_t *a, size_t a_length, const uint8_t *b, size_t b_length)
{
	int order = smart_compare_equal_length(a, b, a_length < b_length ? a_length : b_length);

	if (order != 0)
		return order;
	return (a_length > b_length) - (a_length < b_length);
}

/* How many leading bytes two strings share. */
static inline size_t
smart_common_prefix(const uint8_t *a, size_t a_length, const uint8_t *b, size_t b_length)
{
	size_t shorter = a_length < b_length ? a_length : b_length;
	size_t i = 0;

	for (; shorter - i >= sizeof(uint64_t); i += sizeof(uint64_t))
	{
		uint64_t left = smart_load_be64(a + i);
		uint64_t right = smart_load_be64(b + i);

		if (left != right)
			return i + (size_t) __builtin_clzll(left ^ right) / 8;
	}
	while (i < shorter && a[i] == b[i])
		i++;
	return i;
}

/*
 * memcpy of what is short as a rule, by words of which the last two may overlap.  A call costs more than that, and where the
 * length has a bound compilers put in string instructions, whose start costs still more.
 */
static inline void
smart_copy_short(uint8_t *target, const uint8_t *source, size_t length)
{
	uint64_t words[2];

	if (length >= sizeof(words))
	{
		for (size_t i = 0; i < length - sizeof(words); i += sizeof(words))
		{
			memcpy(words, source + i, sizeof(words));
			memcpy(target + i, words, sizeof(words));
		}
		memcpy(words, source + length - sizeof(words), sizeof(words));
		memcpy(target + length - sizeof(words), words, sizeof(words));
	}
	else if (length >= sizeof(uint64_t))
	{
		memcpy(&words[0], source, sizeof(uint64_t));
		memcpy(&words[1], source + length - sizeof(uint64_t), sizeof(uint64_t));
		memcpy(target, &words[0], sizeof(uint64_t));
		memcpy(target + length - sizeof(uint64_t), &words[1], sizeof(uint64_t));
	}
	else
	{
		for (size_t i = 0; i < length; i++)
			target[i] = source[i];
	}
}

#endif /* SMART_BASE_BYTES_H */
