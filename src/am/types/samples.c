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

const char *const smart_sample_words[] = {
	/* English, and names */
	"co-op", "coop", "CO-OP", "Coop", "re\u0301sume\u0301", "r\u00e9sum\u00e9", "resume", "Resume", "O'Neill", "ONeill",
	"Oneill", "de Luge", "de-luge", "deluge", "de-Luge", "Deluge", "MacArthur", "Macarthur", "St. John", "1st", "12th",
	/* German, Dutch, Danish, Norwegian, Swedish, Finnish, Icelandic */
	"M\u00fcller", "Mueller", "Muller", "Stra\u00dfe", "Strasse", "\u00c4pfel", "Apfel", "IJsland", "ijs", "\u00c5rhus",
	"Aarhus", "\u00d8re", "\u00c6re", "Z\u00fcrich", "\u00f6re", "\u00e5r", "\u00e4r", "wadi", "vad", "\u00deing",
	"\u00f0", "d", "\u00e1r",
	/* French, Spanish, Portuguese, Italian, Catalan, Romanian */
	"cote", "cot\u00e9", "c\u00f4te", "c\u00f4t\u00e9", "llama", "luz", "lluz", "ni\u00f1o", "nino", "nz", "chico",
	"cz", "\u00e7a", "ca", "col\u00b7legi", "\u0219i", "\u015fi", "\u021bar\u0103", "\u00een",
	/* Czech, Slovak, Polish, Hungarian, Croatian, Lithuanian, Latvian, Estonian, Welsh, Albanian */
	"chata", "hrad", "cihla", "\u010de\u0161tina", "\u0159eka", "\u0141\u00f3d\u017a", "Lodz", "\u017baba", "\u017aba",
	"csak", "cukor", "ccs", "cscs", "gyors", "\u0151si", "d\u017eep", "d\u017e", "\u017d", "ljeto", "yra", "i\u0161",
	"\u0137", "\u00f5un", "\u00fcks", "llan", "lwc", "ddraig", "xhep", "zh",
	/* Turkish, Azerbaijani, Vietnamese */
	"\u0131\u015f\u0131k", "isik", "I\u015eIK", "\u0130stanbul", "Istanbul", "\u0259", "\u0111\u01b0\u1eddng", "duong",
	"\u1ea3nh",
	/* Greek, Russian, Ukrainian, Serbian, Hebrew, Arabic, Persian */
	"\u0391\u03b8\u03ae\u03bd\u03b1", "\u03b1\u03b8\u03b7\u03bd\u03b1", "\u0451\u043b\u043a\u0430",
	"\u0435\u043b\u043a\u0430", "\u0401\u043b\u043a\u0430", "\u0457\u0436\u0430\u043a", "\u0491", "\u0452", "\u0439",
	"\u0438\u0306", "\u05e9\u05dc\u05d5\u05dd", "\u05e9\u05c1", "\u0633\u0644\u0627\u0645",
	"\u0633\u064e\u0644\u0627\u0645", "\u0622", "\u0627\u0653", "\u067e", "\u06cc",
	/* Hindi, Bengali, Tamil, Thai, Burmese, Khmer */
	"\u0928\u092e\u0938\u094d\u0924\u0947", "\u0915\u094d\u0937", "\u0995\u09cd\u09b7",
	"\u0ba4\u0bae\u0bbf\u0bb4\u0bcd", "\u0e44\u0e17\u0e22", "\u0e40\u0e01\u0e48\u0e32", "\u0e40\u0e01\u0e49\u0e32",
	"\u0e40\u0e01\u0e32", "\u1019\u103c\u1014\u103a", "\u1781\u17d2\u1798\u17c2\u179a",
	/* Chinese, Japanese, Korean */
	"\u4e2d\u6587", "\u4e2d\u570b", "\u65e5\u672c", "\u6771\u4eac", "\u304b", "\u304c", "\u304b\u3099", "\u30ab",
	"\uff76", "\u30ab\u30fc", "\u306f\u3063", "\u306f\u3064", "\ud55c\uad6d", "\ud55c\uae00",
	"\u1112\u1161\u11ab\uae00"};

const int smart_sample_words_count = lengthof(smart_sample_words);
