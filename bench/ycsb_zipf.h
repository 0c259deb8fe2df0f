/*
 * ycsb_zipf.h
 *	  Ranks by Zipf's law: rank i of 0 .. n - 1 comes with a probability
 *	  proportional to 1 / (i + 1)^exponent.
 *
 * Exact, and ready at once for any n: rejection-inversion (Hoermann and
 * Derflinger, "Rejection-inversion to generate variates from monotone discrete
 * distributions", 1996) needs no table and no sum over the ranks.
 */
#ifndef YCSB_ZIPF_H
#define YCSB_ZIPF_H

#include <stdint.h>

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

/* A rank; random: the state of ycsb_random.h. */
extern uint64_t ycsb_zipf_draw(const struct ycsb_zipf *zipf, uint64_t *random);

#endif /* YCSB_ZIPF_H */
