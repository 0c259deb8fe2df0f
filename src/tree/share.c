/*
 * share.c
 *	  READs of leaves that several clients of a compute node want at once (read
 *	  delegation): one of them READs, after all of them have asked.
 *
 * What is delivered was READ after this call began, as by a READ of one's own, so it
 * may be used for whatever such a READ may be used for.
 */
#include "tree/internal.h"

smart_status
smart_leaf_read_together(struct smart_tree *tree, fabric_address leaf, void *buffer, size_t length)
{
	struct smart_services *services = tree->services;
	enum smart_delegation delegation = SMART_READ_ALONE;
	smart_status status = SMART_OK;

	smart_assert(!tree->direct);
	/* What waits to be posted changes blocks that this operation may look at: it goes ahead of the READ. */
	if (services->read_begin != NULL && !smart_post_waits(tree))
		status = services->read_begin(services, leaf, buffer, (uint32_t) length, &delegation);
	if (status != SMART_OK || delegation == SMART_READ_DELIVERED)
		return status;
	status = smart_block_read(tree, leaf, buffer, length);
	if (delegation == SMART_READ_LEADS)
		services->read_end(services, status == SMART_OK ? buffer : NULL, (uint32_t) length);
	return status;
}
