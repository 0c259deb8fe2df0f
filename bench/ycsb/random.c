/*
 * random.c
 *	  Ranks by Zipf's law, by rejection-inversion.
 *
 * The hat over the weights w(k) = k^-exponent, k from 1, is the function itself
 * between the integers.  Its area up to x is H(x), of which the inverse is known: a
 * uniform draw u of area gives x = H^-1(u), and k = x rounded.  The area of k's
 * share of the hat exceeds w(k) a little; the excess is rejected.
 *
 * Powers are computed here, by additions and multiplications alone: the C
 * library's differ in the last bit from machine to machine, and with it a
 * simulated run would.
 */
#include <math.h>

#include "base/assert.h"
#include "random.h"

#define LN_2      0.693147180559945309417
#define SQUARE_2  1.41421356237309504880
#define LOG_TERMS 12 /* of the series: the rest is below 1e-17 */
#define EXP_TERMS 15

/* The natural logarithm of a positive number: x = m 2^k, log m = 2 artanh((m - 1) / (m + 1)). */
static double
logarithm(double x)
{
	int k;
	double m = 2 * frexp(x, &k);
	double s;
	double sum = 0;

	smart_assert(x > 0);
	k--;
	if (m > SQUARE_2)
	{
		m /= 2;
		k++;
	}
	s = (m - 1) / (m + 1);
	for (int i = LOG_TERMS; i >= 0; i--)
		sum = sum * (s * s) + 1.0 / (2 * i + 1);
	return 2 * s * sum + k * LN_2;
}

static double
exponential(double y)
{
	double k = floor(y / LN_2 + 0.5);
	double rest = y - k * LN_2;
	double sum = 1;

	for (int i = EXP_TERMS; i >= 1; i--)
		sum = 1 + sum * rest / i;
	return ldexp(sum, (int) k);
}

static double
power(double x, double exponent)
{
	return exponential(exponent * logarithm(x));
}

static double
weight(const struct ycsb_zipf *zipf, double k)
{
	return power(k, -zipf->exponent);
}

static double
area(const struct ycsb_zipf *zipf, double x)
{
	return power(x, 1 - zipf->exponent) / (1 - zipf->exponent);
}

static double
place(const struct ycsb_zipf *zipf, double area)
{
	return power(area * (1 - zipf->exponent), 1 / (1 - zipf->exponent));
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
	smart_assert(zipf->low < zipf->high);
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
