/*
 * handle.c
 *	  The trees that this backend has open.
 *
 * There is one handle for each, however many users it has.  One without users
 * stays open for the next statement until there are many.
 */
#include "postgres.h"

#include "utils/hsearch.h"
#include "utils/memutils.h"

#include "am/server.h"
#include "am/encode.h"
#include "am/handle.h"
#include "am/meta.h"
#include "am/rebuild_table.h"
#include "am/report.h"
#include "base/assert.h"

#define HANDLES_FEW 128

static HTAB *handles = NULL;
static long handles_limit = HANDLES_FEW; /* with so many, those without pins are closed */

static void
close_handle(struct smart_handle *handle)
{
	smart_assert(handle->pins == 0);
	if (handle->idle_scan != NULL)
		smart_scan_close(handle->idle_scan);
	smart_tree_close(handle->tree);
	pfree(handle->codec);
	hash_search(handles, &handle->id, HASH_REMOVE, NULL);
}

/* Looks at all handles, hence not again before as many were opened as stay now. */
static void
close_idle_handles(void)
{
	HASH_SEQ_STATUS each;
	struct smart_handle *handle;

	hash_seq_init(&each, handles);
	while ((handle = hash_seq_search(&each)) != NULL)
	{
		if (handle->pins == 0)
			close_handle(handle);
	}
	handles_limit = HANDLES_FEW + 2 * hash_get_num_entries(handles);
}

/* The tree may have gone with a memory node that was given up. */
static bool
is_lost(struct smart_handle *handle)
{
	uint32 changes = smart_changes();

	if (likely(handle->changes == changes))
		return false;
	if (smart_space_tree_lost(&smart_backend_client()->space, handle->id))
		return true;
	handle->changes = changes;
	return false;
}

static void
make_handle_table(void)
{
	HASHCTL control = {.keysize = sizeof(uint64), .entrysize = sizeof(struct smart_handle), .hcxt = TopMemoryContext};

	handles = hash_create("smart trees", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/*
 * smart_point_fn: an entry's columns without the TID.  Of columns that do not end, which
 * no condition can name either, all is the point.
 */
static size_t
point_of(void *argument, const uint8_t *bytes, size_t length)
{
	const struct smart_codec *codec = argument;
	int column;
	int end;

	if (codec->fixed_key_length > 0)
		return (size_t) (codec->fixed_key_length - SMART_TID_PLAIN);
	end = smart_codec_find_columns_end(codec, bytes, (int) length, codec->nkeys, &column);
	return end > 0 ? (size_t) end : length;
}

/*
 * Opens the tree whose root slot lies at root.  Who changes entries of a tree has to open
 * it with stubs, and with points, if anybody does, as all do here; but for who undoes
 * inserts while nobody else is in (gate.c), when the cache is still empty.  codec: as
 * long as the tree is open.
 */
static smart_status
open_tree(struct smart_codec *codec, const struct smart_meta *meta, fabric_address root, struct smart_tree **tree)
{
	struct smart_client *client = smart_backend_client();
	struct smart_tree_options options = {
		.id = meta->tree,
		.root = root,
		.leaf_size = meta->leaf_size,
		.fixed_length = meta->fixed_length,
		.point = point_of,
		.point_argument = codec,
		.stubs = codec->payload_width >= 0,
		.payload = (uint32) Max(codec->payload_width, 0),
	};

	return smart_tree_open(client->fabric, client->env, &client->services, &options, tree);
}

/* The table's place is taken first: that may raise an error, while nothing is open yet. */
static struct smart_handle *
make_handle(Relation index, const struct smart_codec *codec, const struct smart_meta *meta, fabric_address root,
			uint32 changes)
{
	bool found;
	struct smart_handle *handle = hash_search(handles, &meta->tree, HASH_ENTER, &found);
	struct smart_codec *copy;
	struct smart_tree *tree = NULL;
	smart_status status = SMART_NO_MEMORY;

	smart_assert(!found);
	copy = MemoryContextAllocExtended(TopMemoryContext, codec->size, MCXT_ALLOC_NO_OOM);
	if (copy != NULL)
	{
		memcpy(copy, codec, codec->size);
		status = open_tree(copy, meta, root, &tree);
	}
	if (status != SMART_OK)
	{
		if (copy != NULL)
			pfree(copy);
		hash_search(handles, &meta->tree, HASH_REMOVE, NULL);
		smart_report_status(status, index);
	}
	*handle = (struct smart_handle){.id = meta->tree, .tree = tree, .codec = copy, .changes = changes};
	return handle;
}

struct smart_handle *
smart_handle_pin(Relation index, const struct smart_codec *codec, const struct smart_meta *meta)
{
	struct smart_handle *handle;
	fabric_address root;
	uint32 changes = smart_changes(); /* before the tree is looked for */

	if (handles == NULL)
		make_handle_table();
	handle = hash_search(handles, &meta->tree, HASH_FIND, NULL);
	if (handle != NULL && is_lost(handle))
		return NULL;
	if (handle == NULL)
	{
		if (!smart_meta_tree_is_here(index, meta) ||
			!smart_space_find_tree(&smart_backend_client()->space, meta->tree, &root))
			return NULL;
		if (hash_get_num_entries(handles) >= handles_limit)
			close_idle_handles();
		handle = make_handle(index, codec, meta, root, changes);
	}
	handle->pins++;
	return handle;
}

void
smart_handle_unpin(struct smart_handle *handle)
{
	smart_assert(handle->pins > 0);
	if (--handle->pins == 0 && handle->dropped)
		close_handle(handle);
}

void
smart_handle_drop(uint64 tree)
{
	struct smart_handle *handle = handles == NULL ? NULL : hash_search(handles, &tree, HASH_FIND, NULL);

	if (handle == NULL)
		return;
	handle->dropped = true;
	if (handle->pins == 0)
		close_handle(handle);
}
