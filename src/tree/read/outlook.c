/*
 * outlook.c
 *	  Remote providers: what a walk will come to, as far as nodes tell that it knows.
 */
#include "tree/read/outlook.h"

#define LOOKS_MAX    128 /* descents for one window */
#define COLD_WINDOWS 16  /* without a node that is not known, until the walk looks for none any more */

smart_status
smart_outlook_init(struct smart_outlook *outlook, struct smart_route *route)
{
	struct smart_env *env = route->tree->env;

	*outlook = (struct smart_outlook){.route = route};
	if (smart_cursor_init(&outlook->at, env) != SMART_OK || smart_cursor_init(&outlook->end, env) != SMART_OK)
		return SMART_NO_MEMORY;
	return SMART_OK;
}

void
smart_outlook_done(struct smart_outlook *outlook, struct smart_env *env)
{
	smart_cursor_done(&outlook->at, env);
	smart_cursor_done(&outlook->end, env);
}

void
smart_outlook_start(struct smart_outlook *outlook, const uint8_t *to, uint32_t to_length)
{
	outlook->to = to;
	outlook->to_length = to_length;
	outlook->cold = outlook->leaves = outlook->nodes = 0;
}

void
smart_outlook_begin(struct smart_outlook *outlook, const struct smart_node *node)
{
	outlook->leaves = smart_node_leaves(node);
	outlook->nodes = 1;
}

void
smart_outlook_missed(struct smart_outlook *outlook)
{
	outlook->cold = COLD_WINDOWS;
}

void
smart_outlook_window(struct smart_outlook *outlook)
{
	if (outlook->cold > 0)
		outlook->cold--;
}

/* Do all keys below the node with bytes lo..hi lie beyond the walk's end? */
static bool
beyond(const struct smart_outlook *outlook, const struct smart_cursor *cursor, unsigned int depth, unsigned int lo,
	   unsigned int hi)
{
	struct smart_key key = smart_cursor_key(cursor);

	/* An end that the node's prefix does not reach lies behind all of the node. */
	if (outlook->to_length <= depth)
		return false;
	for (unsigned int i = 0; i < depth; i++)
	{
		if (smart_key_byte(&key, i) != outlook->to[i])
			return false;
	}
	if (cursor->backward)
		return hi < outlook->to[depth];
	return lo > outlook->to[depth] || (lo == outlook->to[depth] && outlook->to_length == depth + 1);
}

static void
copy_cursor(struct smart_cursor *at, const struct smart_cursor *cursor)
{
	memcpy(at->bytes, cursor->bytes, cursor->length);
	at->length = cursor->length;
	at->pad = cursor->pad;
	at->backward = cursor->backward;
	at->end = cursor->end;
}

static bool
looks_on(const struct smart_outlook *outlook, const struct smart_look *look)
{
	return !look->full || (outlook->cold > 0 && look->count + look->behind < look->reach);
}

/*
 * Counts slot and the leaves that follow it in its node, up to the next child node, in one go: the walk only has to know
 * how many there are.  Returns the last byte before that node.
 */
static unsigned int
count_through(const struct smart_outlook *outlook, struct smart_look *look, const struct smart_node *node,
			  smart_slot slot)
{
	const uint64_t *slots = node->words + SMART_NODE_HEAD_WORDS;
	bool backward = outlook->at.backward;
	unsigned int lo = backward ? 0 : smart_slot_pk(slot);
	unsigned int hi = backward ? smart_slot_pk(slot) : 255;

	for (unsigned int i = 0; i < node->slots; i++)
	{
		unsigned int pk = smart_slot_pk(slots[i]);

		if (!smart_slot_is_node(slots[i]) || pk < lo || pk > hi)
			continue;
		if (backward)
			lo = pk + 1;
		else
			hi = pk - 1;
	}
	for (unsigned int i = 0; i < node->slots; i++)
		look->behind += smart_slot_is_leaf(slots[i]) && smart_slot_pk(slots[i]) >= lo && smart_slot_pk(slots[i]) <= hi;
	smart_assert(lo <= hi);
	return backward ? lo : hi;
}

static void
take(struct smart_outlook *outlook, struct smart_look *look, const struct smart_node *node, smart_slot slot)
{
	smart_assert(look->count <= look->most && look->most <= SMART_WINDOW_MAX);
	if (smart_slot_is_leaf(slot))
	{
		look->slots[look->count++] = slot;
		smart_assert(look->count <= look->most);
		look->full = look->count == look->most;
	}
	else if (look->behind == 0) /* as far as the window goes */
	{
		struct smart_key key = smart_cursor_key(&outlook->at);

		smart_route_want(outlook->route, &key, node);
	}
}

/* Takes slot and the leaves that follow it in its node, up to the next child node; or counts them. */
static smart_status
look_through(struct smart_outlook *outlook, struct smart_look *look, const struct smart_node *node, smart_slot slot)
{
	bool backward = outlook->at.backward;
	unsigned int edge; /* the last byte that has been looked at */
	smart_status status = SMART_OK;

	for (;;)
	{
		unsigned int pk = smart_slot_pk(slot);
		int index;

		if (look->full && smart_slot_is_leaf(slot))
		{
			edge = count_through(outlook, look, node, slot);
			break;
		}
		take(outlook, look, node, slot);
		edge = backward ? pk : smart_node_next_pk(node, pk) - 1;
		if (look->full && look->behind == 0)
		{
			copy_cursor(&outlook->end, &outlook->at);
			status = smart_cursor_pass(&outlook->end, node->depth, edge);
		}
		index = edge == (backward ? 0 : 255) ? -1 : smart_node_cover_index(node, backward ? edge - 1 : edge + 1);
		slot = index < 0 ? 0 : node->words[SMART_NODE_HEAD_WORDS + index] & ~SMART_SLOT_FROZEN;
		if (!smart_slot_is_range(slot) || look->done)
			break;
		look->done = beyond(outlook, &outlook->at, node->depth, smart_slot_pk(slot), edge - 1) ||
					 (smart_slot_is_leaf(slot) && !looks_on(outlook, look));
		if (look->done)
			break;
	}
	return status == SMART_OK ? smart_cursor_pass(&outlook->at, node->depth, edge) : status;
}

/* The outlook has come to a node that is not known: the next batch READs it, unless it lies beyond the walk's end. */
static smart_status
look_behind(struct smart_outlook *outlook, struct smart_look *look, const struct smart_key *key,
			const struct smart_place *place)
{
	unsigned int pk = smart_slot_pk(place->slot);

	smart_assert(place->kind == SMART_PLACE_NODE);
	if (!look->full)
		copy_cursor(&outlook->end, &outlook->at);
	look->full = true;
	outlook->cold = COLD_WINDOWS;
	look->done = (place->node != NULL && beyond(outlook, &outlook->at, place->depth, pk, pk)) ||
				 !smart_route_want_ahead(outlook->route, key, place) || place->node == NULL;
	/* It may lead to as many leaves as those before did. */
	look->behind += outlook->leaves > outlook->nodes ? (outlook->leaves + outlook->nodes - 1) / outlook->nodes : 1;
	return look->done ? SMART_OK : smart_cursor_pass(&outlook->at, place->depth, pk);
}

/* No key lies between the outlook and the keys below a node: as far as the window goes, the next batch brings what shows it. */
static smart_status
look_past(struct smart_outlook *outlook, struct smart_look *look, const struct smart_key *key,
		  const struct smart_place *place)
{
	smart_assert(place->kind == SMART_PLACE_MISMATCH);
	if (look->behind == 0 && !smart_route_shows_mismatch(outlook->route, key, place))
		(void) smart_route_want_mismatch(outlook->route, key, place);
	return smart_cursor_skip(&outlook->at, place);
}

/* Looks on behind what has been looked at. */
static smart_status
look_on(struct smart_outlook *outlook, struct smart_look *look)
{
	smart_status status = SMART_OK;

	for (int i = 0; i < LOOKS_MAX && status == SMART_OK; i++)
	{
		struct smart_key key = smart_cursor_key(&outlook->at);
		unsigned int leaves = look->count + look->behind;
		struct smart_place next;

		if (look->done || smart_cursor_past(&outlook->at, outlook->to, outlook->to_length))
			break;
		smart_route_descend(outlook->route, &key, &next);
		if (next.kind == SMART_PLACE_MISMATCH)
			status = look_past(outlook, look, &key, &next);
		else if (!looks_on(outlook, look))
			break;
		else if (next.kind == SMART_PLACE_NODE)
			status = look_behind(outlook, look, &key, &next);
		else if (next.node == NULL || next.kind == SMART_PLACE_UNKNOWN)
			break;
		else
		{
			status = look_through(outlook, look, next.node, next.slot);
			outlook->leaves += look->count + look->behind - leaves;
			/* The last ones tell most of those to come. */
			if (++outlook->nodes >= SMART_WINDOW_MAX)
			{
				outlook->leaves /= 2;
				outlook->nodes /= 2;
			}
		}
	}
	return status;
}

smart_status
smart_outlook_from(struct smart_outlook *outlook, const struct smart_cursor *cursor, struct smart_look *look)
{
	copy_cursor(&outlook->at, cursor);
	return look_on(outlook, look);
}

smart_status
smart_outlook_behind(struct smart_outlook *outlook, struct smart_look *look)
{
	return smart_outlook_from(outlook, &outlook->end, look);
}

smart_status
smart_outlook_from_leaf(struct smart_outlook *outlook, const struct smart_cursor *cursor,
						const struct smart_place *place, struct smart_look *look)
{
	smart_status status;

	smart_assert(place->kind == SMART_PLACE_LEAF && look->count == 0 && look->most > 0);
	if (place->node == NULL)
	{
		look->slots[look->count++] = place->slot;
		return SMART_OK;
	}
	copy_cursor(&outlook->at, cursor);
	status = look_through(outlook, look, place->node, place->slot);
	smart_assert(look->count >= 1 && look->slots[0] == place->slot);
	return status == SMART_OK ? look_on(outlook, look) : status;
}
