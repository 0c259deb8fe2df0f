/*
 * handle.c
 *	  The trees that this backend has open.
 *
 * Each tree has one handle, which counts the references of its users.  A handle without references stays open for the
 * next statement until there are many.
 */
#include "postgres.h"

#include "utils/hsearch.h"
#include "utils/memutils.h"

#include "am/compat.h"
#include "am/index/backend.h"
#include "am/index/handle.h"
#include "am/index/meta.h"
#include "am/server/report.h"
#include "am/server/shared.h"
#include "am/server/tree_changes.h"
#include "base/assert.h"

#define HANDLES_FEW 128

static HTAB *handles = NULL;
static long handles_limit = HANDLES_FEW; /* with so many, those without references are closed */

static void
close_handle(struct smart_handle *handle)
{
	smart_assert(handle->references == 0 && handle->tree != NULL && handle->codec != NULL);
	smart_assert(handle->idle <= SMART_IDLE_SCANS);
	while (handle->idle > 0)
		smart_scan_close(handle->idle_scans[--handle->idle]);
	smart_tree_close(handle->tree);
	pfree(handle->codec);
	hash_search(handles, &handle->id, HASH_REMOVE, NULL);
}

/*
 * smart_point_fn: the length of an entry's equality prefix, its key columns without the TID.  Where columns do not
 * end, which no condition can name either, it is all of the entry.
 */
static size_t
equality_prefix(void *argument, const uint8_t *bytes, size_t length)
{
	const struct smart_codec *codec = argument;
	int column;
	int end;

	if (codec->fixed_key_length > 0)
		return (size_t) (codec->fixed_key_length - SMART_TID_PLAIN);
	end = smart_codec_find_columns_end(codec, bytes, (int) length, codec->nkeys, &column);
	smart_assert(end <= (int) length);
	return end > 0 ? (size_t) end : length;
}

/*
 * Opens the tree whose root slot lies at root.  All processes that change entries of a tree have to open it with leaf
 * hints and equality prefixes if one does (src/README, A1 and A4); the one exception is in undo.c.  The place in the
 * hash table is taken first: that may raise an error, while nothing is open yet.
 */
static struct smart_handle *
make_handle(struct smart_client *client, Relation index, const struct smart_codec *codec, const struct smart_meta *meta,
			fabric_address root, uint32 changes)
{
	bool found;
	struct smart_handle *handle = hash_search(handles, &meta->tree, HASH_ENTER, &found);
	struct smart_codec *copy = MemoryContextAllocExtended(TopMemoryContext, codec->size, MCXT_ALLOC_NO_OOM);
	struct smart_tree_options options = {
		.id = meta->tree,
		.root = root,
		.leaf_size = meta->leaf_size,
		.fixed_length = meta->fixed_length,
		.point = equality_prefix,
		.point_argument = copy,
		.hints = codec->payload_width >= 0,
		.payload = (uint32) Max(codec->payload_width, 0),
	};
	struct smart_tree *tree = NULL;
	smart_status status = SMART_NO_MEMORY;

	smart_assert(!found && meta->tree != 0);
	if (copy != NULL)
	{
		memcpy(copy, codec, codec->size);
		status = smart_tree_open(client->fabric, client->env, &client->services, &options, &tree);
	}
	if (status != SMART_OK)
	{
		if (copy != NULL)
			pfree(copy);
		hash_search(handles, &meta->tree, HASH_REMOVE, NULL);
		smart_raise_status(status, index);
	}
	*handle = (struct smart_handle){.id = meta->tree, .tree = tree, .codec = copy, .changes = changes};
	return handle;
}

/* In whose region the tree is; NULL: in none of them. */
static struct smart_client *
client_of(Relation index, const struct smart_meta *meta)
{
	smart_assert(meta->tree != 0);
	if (smart_server.remote && smart_server.shared->deltas_made && meta->region == smart_meta_delta_region() &&
		meta->database == smart_relation_database(index))
		return smart_delta_client();
	return smart_meta_tree_is_here(index, meta) ? smart_backend_client() : NULL;
}

struct smart_handle *
smart_handle_pin(Relation index, const struct smart_codec *codec, const struct smart_meta *meta)
{
	struct smart_handle *handle;
	struct smart_client *client;
	fabric_address root;
	uint32 changes = smart_changes(); /* before the tree is looked for */

	if (handles == NULL)
	{
		HASHCTL control = {.keysize = sizeof(uint64),
						   .entrysize = sizeof(struct smart_handle),
						   .hcxt = TopMemoryContext};

		handles = hash_create("smart trees", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	handle = hash_search(handles, &meta->tree, HASH_FIND, NULL);
	if (handle != NULL && unlikely(handle->changes != changes))
	{
		/* The tree may have been lost with a memory node. */
		if (smart_space_tree_lost(smart_tree_space(handle->id), handle->id))
			return NULL;
		handle->changes = changes;
	}
	if (handle == NULL)
	{
		client = client_of(index, meta);
		if (client == NULL || !smart_space_find_tree(&client->space, meta->tree, &root))
			return NULL;
		/* Looks at all handles, hence not again before as many were opened as stay now. */
		if (hash_get_num_entries(handles) >= handles_limit)
		{
			HASH_SEQ_STATUS each;

			hash_seq_init(&each, handles);
			while ((handle = hash_seq_search(&each)) != NULL)
			{
				if (handle->references == 0)
					close_handle(handle);
			}
			handles_limit = HANDLES_FEW + 2 * hash_get_num_entries(handles);
		}
		handle = make_handle(client, index, codec, meta, root, changes);
	}
	smart_assert(handle->id == meta->tree && handle->tree != NULL);
	handle->references++;
	return handle;
}

void
smart_handle_unpin(struct smart_handle *handle)
{
	smart_assert(handle->references > 0 && handle->tree != NULL);
	smart_assert(hash_search(handles, &handle->id, HASH_FIND, NULL) == handle);
	if (--handle->references == 0 && handle->dropped)
		close_handle(handle);
}

void
smart_handle_drop(uint64 tree)
{
	struct smart_handle *handle = handles == NULL ? NULL : hash_search(handles, &tree, HASH_FIND, NULL);

	if (handle == NULL)
		return;
	smart_assert(!handle->dropped || handle->references > 0);
	handle->dropped = true;
	if (handle->references == 0)
		close_handle(handle);
}
