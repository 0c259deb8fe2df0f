/*
 * guess.c
 *	  What string a sort key of ICU was made of, most likely.
 *
 * A sort key has three levels, with 01 between them.  The first one has the weights of the letters, one or two bytes
 * each for a character of ASCII; the second one their accents; the third one mostly whether they are capitals.  The
 * usual weights of the third level are not written one by one: a byte tells how many of them there are.
 *
 * The weights of the characters of ASCII are learned from the sort keys of strings of one character.  A string that has
 * others, or some that belong together in its language, is not guessed, or guessed wrong.  Nothing but its entry's length
 * depends on that.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "am/compat.h"
#include "am/types/guess.h"
#include "base/assert.h"

#define LEVEL_END  0x01
#define USUAL      0x05 /* 1 usual weight, at the end of its level or before a lower one; up to USUAL_MANY */
#define USUAL_MANY 0x65 /* as many usual weights as one byte can tell */
#define USUAL_LAST 0xc5 /* 1 usual weight before a higher one; downwards to USUAL_MANY */

#define FIRST_CHARACTER ' '
#define LAST_CHARACTER  '~'
#define KEY_ROOM        64 /* bytes, of a sort key of one character */
#define LEADS           32 /* first bytes of two */

struct smart_guesser
{
	struct smart_guesser *next;
	Oid collation;
	uint8 lead_count;
	uint8 single[256];                 /* the character whose weight this byte is, or 0 */
	uint8 lead[256];                   /* the number of this first byte of two, or 0 */
	uint8 pair[LEADS][256];            /* by that number and the second byte: the character, or 0 */
	uint8 capital[LAST_CHARACTER + 1]; /* the other character of the same weight on the first level, or 0 */
	uint8 rare[LAST_CHARACTER + 1];    /* the weight on the third level of that one */
};

/* The levels of a sort key of one character */
struct levels
{
	int width; /* bytes of the first one */
	uint8 weight[2];
	uint8 third;
};

static struct smart_guesser *all_guessers = NULL;

/* ---- learning ---- */

/* False: the character's sort key has another form. */
static bool
get_levels(Oid collation, char character, struct levels *levels)
{
	static const uint8 middle[] = {LEVEL_END, USUAL, LEVEL_END};
	uint8 key[KEY_ROOM];
	Size size = smart_sort_key(collation, &character, 1, (char *) key, KEY_ROOM);

	for (levels->width = 1; levels->width <= 2; levels->width++)
	{
		if (size == levels->width + sizeof(middle) + 1 && memcmp(key + levels->width, middle, sizeof(middle)) == 0 &&
			memchr(key, LEVEL_END, levels->width) == NULL)
		{
			memcpy(levels->weight, key, levels->width);
			levels->third = key[size - 1];
			return true;
		}
	}
	return false;
}

/* Where the character of a weight of one byte, or of two, is noted; NULL: there is no place. */
static uint8 *
place_of(struct smart_guesser *guesser, const struct levels *levels)
{
	uint8 *lead = &guesser->lead[levels->weight[0]];

	if (levels->width == 1)
		return &guesser->single[levels->weight[0]];
	if (*lead == 0 && guesser->lead_count + 1 < LEADS)
		*lead = ++guesser->lead_count;
	return *lead == 0 ? NULL : &guesser->pair[*lead][levels->weight[1]];
}

/* Notes a character, unless another one has its place: first those of usual weights on the third level, then others. */
static void
learn(struct smart_guesser *guesser, char character, bool usual)
{
	struct levels levels;
	uint8 *place;

	if (!get_levels(guesser->collation, character, &levels) || (levels.third == USUAL) != usual)
		return;
	place = place_of(guesser, &levels);
	if (place != NULL && usual && *place == 0)
		*place = (uint8) character;
	else if (place != NULL && !usual && levels.third > USUAL_LAST && *place != 0 && guesser->capital[*place] == 0)
	{
		guesser->capital[*place] = (uint8) character;
		guesser->rare[*place] = levels.third;
	}
}

const struct smart_guesser *
smart_guesser_of(Oid collation)
{
	struct smart_guesser *guesser = all_guessers;

	while (guesser != NULL && guesser->collation != collation)
		guesser = guesser->next;
	if (guesser != NULL)
		return guesser;
	guesser = MemoryContextAllocZero(TopMemoryContext, sizeof(*guesser));
	guesser->collation = collation;
	for (char c = FIRST_CHARACTER; c <= LAST_CHARACTER; c++)
		learn(guesser, c, true);
	for (char c = FIRST_CHARACTER; c <= LAST_CHARACTER; c++)
		learn(guesser, c, false);
	guesser->next = all_guessers;
	all_guessers = guesser;
	return guesser;
}

/* ---- guessing ---- */

/*
 * Most characters have weights of one byte.  Decodes those that come next, in fours: then there is one branch for four.  Moves *level
 * behind them; returns where their characters end.
 */
static inline uint8 *
guess_fours(const struct smart_guesser *guesser, const uint8 **level, const uint8 *end, uint8 *next)
{
	const uint8 *single = guesser->single;
	const uint8 *at;

	for (at = *level; end - at >= (int) sizeof(uint32); at += sizeof(uint32))
	{
		uint32 four =
			single[at[0]] | (uint32) single[at[1]] << 8 | (uint32) single[at[2]] << 16 | (uint32) single[at[3]] << 24;

		/* A byte that is 0 borrows from its highest bit; characters have none of that. */
		if (((four - 0x01010101) & 0x80808080) != 0)
			break;
		memcpy(next, &four, sizeof(four));
		next += sizeof(four);
	}
	smart_assert(at <= end);
	*level = at;
	return next;
}

/*
 * Decodes the first level into characters, none of them a capital, up to the first byte that stands for none.  Returns where that is;
 * *length: how many characters.
 */
static const uint8 *
guess_letters(const struct smart_guesser *guesser, const uint8 *level, const uint8 *end, uint8 *string, int *length)
{
	uint8 *next = guess_fours(guesser, &level, end, string);

	while (level < end)
	{
		uint8 character = guesser->single[*level];

		if (character != 0)
		{
			*next++ = character;
			level++;
			continue;
		}
		if (guesser->lead[*level] == 0 || end - level < 2)
			break;
		character = guesser->pair[guesser->lead[*level]][level[1]];
		if (character == 0)
			break;
		*next++ = character;
		level += 2;
		next = guess_fours(guesser, &level, end, next);
	}
	smart_assert(level <= end && next >= string);
	*length = (int) (next - string);
	return level;
}

/* The third level: which of them are capitals; false: it does not belong to so many. */
static bool
guess_capitals(const struct smart_guesser *guesser, const uint8 *level, const uint8 *end, uint8 *string, int length)
{
	int at = 0;

	for (; level < end && at < length; level++)
	{
		if (*level < USUAL)
			return false;
		if (*level <= USUAL_LAST)
			at += 1 + (*level <= USUAL_MANY ? *level - USUAL : USUAL_LAST - *level);
		else if (guesser->rare[string[at]] == *level)
		{
			string[at] = guesser->capital[string[at]];
			at++;
		}
		else
			return false;
	}
	return level == end && at == length;
}

int
smart_guess(const struct smart_guesser *guesser, const uint8 *key, Size length, uint8 *string)
{
	const uint8 *end = key + length;
	const uint8 *level;
	int guessed;

	if (length > SMART_GUESS_MAX)
		return -1;
	level = guess_letters(guesser, key, end, string, &guessed);
	smart_assert(guessed <= (int) length);
	if (level == end || *level++ != LEVEL_END)
		return -1;
	/* The second level is short. */
	while (level < end && *level != LEVEL_END)
		level++;
	return level < end && guess_capitals(guesser, level + 1, end, string, guessed) ? guessed : -1;
}
