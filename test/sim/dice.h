/*
 * dice.h
 *	  The one source of randomness of a history: everything follows from its seed.
 */
#ifndef SIM_DICE_H
#define SIM_DICE_H

#include <stdbool.h>
#include <stdint.h>

struct dice
{
	uint64_t state;
};

/* splitmix64 */
static inline uint64_t
dice_roll(struct dice *dice)
{
	uint64_t z = dice->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* 0 .. n - 1 */
static inline unsigned int
dice_below(struct dice *dice, unsigned int n)
{
	return (unsigned int) (((dice_roll(dice) >> 32) * n) >> 32);
}

static inline unsigned int
dice_between(struct dice *dice, unsigned int low, unsigned int high)
{
	return low + dice_below(dice, high - low + 1);
}

/* True one time in n; never for 0. */
static inline bool
dice_one_in(struct dice *dice, unsigned int n)
{
	return n != 0 && dice_below(dice, n) == 0;
}

#endif /* SIM_DICE_H */
