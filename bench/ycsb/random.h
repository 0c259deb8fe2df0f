/*
 * random.h
 *	  Pseudo-random numbers from a state of one's own (splitmix64): uniform, and ranks by Zipf's law.
 */
#ifndef YCSB_RANDOM_H
#define YCSB_RANDOM_H

#include <stdint.h>

#include "base/assert.h"

/* Another number for every number, far from those of its neighbours. */
static inline uint64_t
ycsb_mix(uint64_t word)
{
	word = (word ^ (word >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	word = (word ^ (word >> 27)) * UINT64_C(0x94d049bb133111eb);
	return word ^ (word >> 31);
}

static inline uint64_t
ycsb_random(uint64_t *state)
{
	return ycsb_mix(*state += UINT64_C(0x9e3779b97f4a7c15));
}

/* 0 .. n - 1, n at least 1. */
static inline uint64_t
ycsb_random_below(uint64_t *state, uint64_t n)
{
	smart_assert(n >= 1);
	return (uint64_t) (((unsigned __int128) ycsb_random(state) * n) >> 64);
}

/* In [0, 1), with 53 bits. */
static inline double
ycsb_random_fraction(uint64_t *state)
{
	return (double) (ycsb_random(state) >> 11) * 0x1p-53;
}

/*
 * Ranks by Zipf's law: rank i of 0 .. n - 1 comes with a probability proportional to 1 / (i + 1)^exponent.
 *
 * Exact, and ready at once for any n: rejection-inversion (Hoermann and Derflinger, "Rejection-inversion to generate
 * variates from monotone discrete distributions", 1996) needs no table and no sum over the ranks.
 */
struct ycsb_zipf
{
	uint64_t n;
	double exponent;
	double low; /* of the area under the hat, which is drawn from [low, high) */
	double high;
	double sure; /* a draw that lies so near above its rank needs no further test */
};

/* n at least 1; exponent above 0, not 1. */
extern void ycsb_zipf_init(struct ycsb_zipf *zipf, uint64_t n, double exponent);

/* A rank from the state of ycsb_random. */
extern uint64_t ycsb_zipf_draw(const struct ycsb_zipf *zipf, uint64_t *random);

#endif /* YCSB_RANDOM_H */
