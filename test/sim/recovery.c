/*
 * recovery.c
 *	  The server has died with all its clients: what no slot leads to is free then.
 *
 * The walk is the server's own (src/tree/read/mark.c); what is in use and what is free is
 * kept by the store.
 */
#include "sim/watch.h"
#include "sim/world.h"
#include "tree/read/mark.h"

static smart_status
meet_block(void *argument, smart_slot link)
{
	return store_mark(smart_slot_class(link), smart_slot_address(link)) ? SMART_OK : SMART_CORRUPT;
}

void
recovery_run(struct client *client)
{
	char message[160] = "";
	struct smart_mark mark = {
		.fabric = client->tree->fabric,
		.env = &client->env,
		.root = store_root(),
		.tiny_nodes = world.plan.tiny_nodes,
		.mark = meet_block,
		.message = message,
		.message_size = sizeof(message),
	};
	uint64_t before = world.allocated;
	smart_status status;

	world_trace("recovery begins");
	store_begin_marks();
	status = smart_tree_mark(&mark);
	if (status != SMART_OK)
		world_violation("recovery: %s: %s", smart_status_text(status), message);
	store_end_marks();
	watch_counts[WATCH_RECOVERED] += before - world.allocated;
	world_trace("recovery ends: %llu blocks of %llu are in use", (unsigned long long) world.allocated,
				(unsigned long long) before);
}
