/*
 * random.c
 *	  Ranks by Zipf's law, by rejection-inversion.
 *
 * The hat over the weights w(k) = k^-exponent, k from 1, is the function itself
 * between the integers.  Its area up to x is H(x), of which the inverse is known: a
 * uniform draw u of area gives x = H^-1(u), and k = x rounded.  The area of k's
 * share of the hat exceeds w(k) a little; the excess is rejected.
 */
#include <math.h>

#include "base/assert.h"
#include "random.h"

static double
weight(const struct ycsb_zipf *zipf, double k)
{
	return pow(k, -zipf->exponent);
}

static double
area(const struct ycsb_zipf *zipf, double x)
{
	return pow(x, 1 - zipf->exponent) / (1 - zipf->exponent);
}

static double
place(const struct ycsb_zipf *zipf, double area)
{
	return pow(area * (1 - zipf->exponent), 1 / (1 - zipf->exponent));
}

void
ycsb_zipf_init(struct ycsb_zipf *zipf, uint64_t n, double exponent)
{
	smart_assert(n >= 1 && exponent > 0 && exponent != 1);
	zipf->n = n;
	zipf->exponent = exponent;
	/* The first rank's share is cut to its weight, so that it is never rejected. */
	zipf->low = area(zipf, 1.5) - 1;
	zipf->high = area(zipf, (double) n + 0.5);
	zipf->sure = 2 - place(zipf, area(zipf, 2.5) - weight(zipf, 2));
}

uint64_t
ycsb_zipf_draw(const struct ycsb_zipf *zipf, uint64_t *random)
{
	for (;;)
	{
		double drawn = zipf->low + ycsb_random_fraction(random) * (zipf->high - zipf->low);
		double x = place(zipf, drawn);
		double k = floor(x + 0.5);

		if (k < 1)
			k = 1;
		else if (k > (double) zipf->n)
			k = (double) zipf->n;
		if (k - x <= zipf->sure || drawn >= area(zipf, k + 0.5) - weight(zipf, k))
			return (uint64_t) k - 1;
	}
}
