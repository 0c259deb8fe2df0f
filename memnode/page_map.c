/*
 * page_map.c
 *	  Who has most of a node's memory, and a map of it.
 *
 * A square of the map stands for as many chunks as it takes for all of them to have SQUARES_MAX squares.  Its colour is
 * that of whoever has most of them, and paler if some are free.  All squares of one look are one path, in which
 * neighbours go together: so the map of a terabyte is some ten kilobytes.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "page_map.h"

#define COLUMNS     64u
#define SQUARES_MAX (COLUMNS * 32)
#define SQUARE_PX   13u
#define LOOK_FREE   0
#define LOOKS       (1 + 2 * (MEMNODE_COLOURS + 1)) /* free; then for each colour: all used, and some free */

struct map
{
	uint32_t chunks_each; /* of a square; the last one may have fewer */
	uint32_t columns;
	uint32_t squares;
	uint8_t look[SQUARES_MAX];
};

/* ---- ranks ---- */

static int
compare_ranks(const void *a, const void *b)
{
	const struct memnode_rank *left = a;
	const struct memnode_rank *right = b;

	if (left->used != right->used)
		return left->used > right->used ? -1 : 1;
	return left->owner < right->owner ? -1 : left->owner > right->owner;
}

void
memnode_ranking_make(const struct memnode_report *report, struct memnode_ranking *ranking)
{
	ranking->count = 0;
	for (uint32_t owner = memnode_report_owner(report, 0); owner < MEMNODE_OWNERS;
		 owner = memnode_report_owner(report, owner + 1))
	{
		ranking->rank[ranking->count++] =
			(struct memnode_rank){.owner = owner, .used = memnode_report_owner_used(report, owner)};
	}
	smart_assert(ranking->count <= MEMNODE_OWNERS);
	qsort(ranking->rank, ranking->count, sizeof(ranking->rank[0]), compare_ranks);
	/* Of those that are not known, such as one that is being forgotten, too. */
	memset(ranking->colour, MEMNODE_COLOURS, sizeof(ranking->colour));
	for (uint32_t i = 0; i < ranking->count && i < MEMNODE_COLOURS; i++)
		ranking->colour[ranking->rank[i].owner] = (uint8_t) i;
}

/* ---- squares ---- */

static uint8_t
look_of(const struct memnode_region *region, const struct memnode_ranking *ranking, uint32_t from, uint32_t end)
{
	uint32_t chunks[MEMNODE_COLOURS + 1] = {0};
	uint32_t used = 0;
	unsigned int most = 0;

	smart_assert(from < end && end <= region->chunk_count);
	for (uint32_t chunk = from; chunk < end; chunk++)
	{
		uint32_t word = region->chunks[chunk];
		enum memnode_chunk_use use = memnode_chunk_use(word);

		if (use == MEMNODE_CHUNK_BLOCKS || use == MEMNODE_CHUNK_ROOTS)
		{
			chunks[ranking->colour[memnode_chunk_owner(word)]]++;
			used++;
		}
	}
	for (unsigned int colour = 1; colour <= MEMNODE_COLOURS; colour++)
	{
		if (chunks[colour] > chunks[most])
			most = colour;
	}
	return (uint8_t) (used == 0 ? LOOK_FREE : 1 + 2 * most + (used < end - from));
}

static void
make_map(const struct memnode_region *region, const struct memnode_ranking *ranking, struct map *map)
{
	uint32_t chunks = region->chunk_count - region->first_chunk;

	map->chunks_each = (chunks + SQUARES_MAX - 1) / SQUARES_MAX;
	map->squares = (chunks + map->chunks_each - 1) / map->chunks_each;
	map->columns = map->squares < COLUMNS ? map->squares : COLUMNS;
	smart_assert(map->squares > 0 && map->squares <= SQUARES_MAX);
	for (uint32_t square = 0; square < map->squares; square++)
	{
		uint32_t from = region->first_chunk + square * map->chunks_each;
		uint32_t end = from + map->chunks_each;

		map->look[square] = look_of(region, ranking, from, end < region->chunk_count ? end : region->chunk_count);
	}
}

/* ---- the picture ---- */

/* The squares of one look, by rows, neighbours as one rectangle. */
static void
write_squares(const struct map *map, unsigned int look, struct memnode_text *text)
{
	smart_assert(look < LOOKS);
	for (uint32_t square = 0, length; square < map->squares; square += length)
	{
		uint32_t column = square % map->columns;

		for (length = 1; square + length < map->squares && column + length < map->columns &&
						 (map->look[square + length] == look) == (map->look[square] == look);)
			length++;
		smart_assert(square + length <= map->squares && column + length <= map->columns);
		if (map->look[square] == look)
			memnode_text_add(text, "M%u %uh%uv1h-%uz", column, square / map->columns, length, length);
	}
}

/* What a path's title, and the legend, call a colour. */
static void
write_name(const struct memnode_report *report, const struct memnode_ranking *ranking, unsigned int colour,
		   struct memnode_text *text)
{
	smart_assert(colour >= MEMNODE_COLOURS || colour < ranking->count);
	if (colour < MEMNODE_COLOURS)
		memnode_text_add(text, "%016" PRIx64, report->node->region.owners[ranking->rank[colour].owner].id);
	else
		memnode_text_add(text, "others");
}

static void
write_paths(const struct memnode_report *report, const struct memnode_ranking *ranking, const struct map *map,
			struct memnode_text *text)
{
	bool there[LOOKS] = {false};

	for (uint32_t square = 0; square < map->squares; square++)
		there[map->look[square]] = true;
	for (unsigned int look = 0; look < LOOKS; look++)
	{
		unsigned int colour = (look - 1) / 2;

		if (!there[look])
			continue;
		smart_assert(look == LOOK_FREE || colour <= MEMNODE_COLOURS);
		if (look == LOOK_FREE)
			memnode_text_add(text, "<path class=\"free\" d=\"");
		else
			memnode_text_add(text, "<path class=\"c%u%s\" d=\"", colour, look % 2 == 0 ? " part" : "");
		write_squares(map, look, text);
		memnode_text_add(text, "\"><title>");
		if (look == LOOK_FREE)
			memnode_text_add(text, "free");
		else
			write_name(report, ranking, colour, text);
		memnode_text_add(text, "%s</title></path>\n", look != LOOK_FREE && look % 2 == 0 ? ", and free" : "");
	}
}

/* Lines between the squares, in the colour of the page. */
static void
write_grid(const struct map *map, uint32_t rows, struct memnode_text *text)
{
	smart_assert(rows > 0 && map->columns > 0);
	memnode_text_add(text, "<path class=\"grid\" d=\"");
	for (uint32_t column = 1; column < map->columns; column++)
		memnode_text_add(text, "M%u 0v%u", column, rows);
	for (uint32_t row = 1; row < rows; row++)
		memnode_text_add(text, "M0 %uh%u", row, map->columns);
	memnode_text_add(text, "\"/>\n");
}

static void
write_legend(const struct memnode_report *report, const struct memnode_ranking *ranking, struct memnode_text *text)
{
	memnode_text_add(text, "<p class=\"legend\">");
	for (unsigned int colour = 0; colour <= MEMNODE_COLOURS && colour < ranking->count; colour++)
	{
		memnode_text_add(text, "<span><i class=\"c%u\"></i>", colour);
		write_name(report, ranking, colour, text);
		memnode_text_add(text, "</span> ");
	}
	memnode_text_add(text, "<span><i class=\"free\"></i>free</span></p>\n");
}

void
memnode_page_map_write(const struct memnode_report *report, const struct memnode_ranking *ranking,
					   struct memnode_text *text)
{
	struct map map;
	uint32_t rows;

	make_map(&report->node->region, ranking, &map);
	rows = (map.squares + map.columns - 1) / map.columns;
	smart_assert(rows * map.columns >= map.squares);
	memnode_text_add(text, "<p>A square is %u chunk%s, %" PRIu64 " MB%s.</p>\n", map.chunks_each,
					 map.chunks_each == 1 ? "" : "s", (uint64_t) map.chunks_each * WIRE_CHUNK_BYTES >> 20,
					 map.chunks_each == 1
						 ? ""
						 : ", in the colour of the server that has most of it, pale where some is free");
	memnode_text_add(text,
					 "<svg class=\"map\" role=\"img\" aria-label=\"which server has which part of the memory\""
					 " width=\"%u\" viewBox=\"0 0 %u %u\">\n",
					 map.columns * SQUARE_PX, map.columns, rows);
	write_paths(report, ranking, &map, text);
	write_grid(&map, rows, text);
	memnode_text_add(text, "</svg>\n");
	write_legend(report, ranking, text);
}
