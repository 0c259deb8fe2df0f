/*
 * samples.c
 *	  Strings by which a collation of the C library is tried out.
 */
#include "postgres.h"

#include "am/types/samples.h"

const char *const smart_sample_characters[] = {
	/* ASCII, also of one character the beginning of another one */
	"", "\x01", "\t", " ", "  ", "!", "\"", "#", "%", "'", "(", "*", "-", "--", ".", "/", "0", "00", "01", "1", "10",
	"2", ":", "@", "A", "AA", "Aa", "AB", "B", "Z", "[", "\\", "^", "_", "`", "a", "a ", "a  b", "a b", "a!b", "a'b",
	"a-b", "a.b", "a0", "a1", "a10", "a2", "a_b", "aA", "aB", "aa", "ab", "abc", "abd", "b", "z", "{", "~", "\x7f",
	/* The first and last characters of each length, those around what UTF-16 has for itself, and non-characters */
	"\xc2\x80", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\ufdd0", "\ufffd", "\ufffe", "\uffff", "\U00010000",
	"\U0001ffff", "\U0010ffff", "a\xc2\x80", "a\uffff", "a\U00010000",
	/* Accents, alone and composed, and in two orders */
	"\u0301", "\u0327\u0301", "\u0301\u0327", "e", "E", "\u00e9", "e\u0301", "\u00c9", "E\u0301", "\u00e8", "\u00ea",
	"\u00e9e", "e\u00e9", "ee",
	/* Characters that many orders pass over, that stand for several, or that are alike */
	"\u00a0", "\u00ad", "a\u00adb", "\u200b", "\u200d", "a\u200db", "\u2028", "\ufeff", "\u00df", "ss", "sS", "SS",
	"\u1e9e", "\ufb01", "fi", "\u00e6", "ae", "\u0153", "\uff21", "\u00b2", "\u00bd", "\u2163", "\u20ac", "\u263a",
	"\U0001f600", "\U0001d400",
	/* Other scripts */
	"\u03b1", "\u0391", "\u03ac", "\u03c3", "\u03c2", "\u0430", "\u0410", "\u0451", "\u05d0", "\u0627", "\u0905",
	"\u0e01", "\u0e40\u0e01", "\u1100\u1161", "\uac00", "\u3042", "\u30a2", "\u4e00", "\u4e2d", "\U00020000",
	/* Long ones */
	"The quick brown fox jumps over the lazy dog, and then over it again, and again, until the dog wakes up.",
	"The quick brown fox jumps over the lazy dog, and then over it again, and again, until the dog wakes up!",
	"the quick brown fox jumps over the lazy dog, and then over it again, and again, until the dog wakes up.",
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\u00e4"};

const int smart_sample_characters_count = lengthof(smart_sample_characters);
