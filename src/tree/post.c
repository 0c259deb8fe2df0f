/*
 * post.c
 *	  Requests of a change that wait for the next batch, so that it costs few
 *	  round trips.
 *
 * Two sorts wait: WRITEs of blocks that are not linked yet, and the CASes that
 * make linked blocks live.  They go ahead of the next batch that the operation
 * has to post anyway, or are posted when it ends.
 *
 * Order.  A block's WRITE has to be complete before the CAS that links it takes
 * effect: they share a batch if they go to one memory node, where a batch's WRITEs
 * stay ahead of its atomics; otherwise the WRITEs come in a batch of their own
 * (smart_link_cas).  When a block becomes live does not matter: until then whoever
 * finds it makes it live himself.
 *
 * Everything is posted, or given up, before the operation leaves its epoch.  So
 * the WRITE of a block that was retired unlinked comes before that block can be
 * another's (I6).
 */
#include "tree/internal.h"

#define WAITING_MAX 64
#define BYTES_MAX   (32 * 1024)
#define BIRTHS_MAX  16

_Static_assert(BYTES_MAX >= SMART_LEAF_BYTES_MAX, "every block finds room when all others have been posted");

/* A block that this operation made: its state's word, as written. */
struct birth
{
	fabric_address word;
	uint64_t value;
};

struct smart_post
{
	int count;
	uint32_t used; /* bytes */
	unsigned int births;
	struct birth birth[BIRTHS_MAX]; /* the last ones */
	struct fabric_request waiting[WAITING_MAX];
	uint8_t bytes[BYTES_MAX];
};

struct smart_post *
smart_post_open(struct smart_env *env)
{
	struct smart_post *post = env->allocate(env, sizeof(*post));

	if (post != NULL)
		post->count = 0, post->used = 0, post->births = 0;
	return post;
}

/* A batch, behind what waits; results are set in requests. */
smart_status
smart_execute(struct smart_tree *tree, struct fabric_request *requests, int count)
{
	struct smart_post *post = tree->post;
	struct fabric_request batch[WAITING_MAX + SMART_EXECUTE_MAX];
	int waiting = post->count;
	smart_status status;

	smart_assert(count <= SMART_EXECUTE_MAX);
	if (waiting == 0)
		return fabric_execute(tree->fabric, requests, count);
	memcpy(batch, post->waiting, (size_t) waiting * sizeof(batch[0]));
	memcpy(batch + waiting, requests, (size_t) count * sizeof(batch[0]));
	post->count = 0;
	post->used = 0;
	status = fabric_execute(tree->fabric, batch, waiting + count);
	for (int i = 0; i < count; i++)
		requests[i].result = batch[waiting + i].result;
	return status;
}

bool
smart_post_waits(const struct smart_tree *tree)
{
	return tree->post->count > 0;
}

/* Posts what waits. */
smart_status
smart_post_flush(struct smart_tree *tree)
{
	struct smart_post *post = tree->post;
	int count;

	if (tree->direct || post->count == 0)
		return SMART_OK;
	count = post->count;
	post->count = 0;
	post->used = 0;
	return fabric_execute(tree->fabric, post->waiting, count);
}

/* A WRITE of a block that nobody can reach. */
smart_status
smart_post_write(struct smart_tree *tree, fabric_address remote, const void *bytes, size_t length)
{
	struct smart_post *post = tree->post;
	smart_status status = SMART_OK;

	smart_assert(length > 0 && length <= SMART_LEAF_BYTES_MAX);
	if (post->count == WAITING_MAX || post->used + length > BYTES_MAX)
		status = smart_post_flush(tree);
	if (status != SMART_OK)
		return status;
	memcpy(post->bytes + post->used, bytes, length);
	post->waiting[post->count++] = (struct fabric_request){.verb = FABRIC_WRITE,
														   .remote = remote,
														   .local = post->bytes + post->used,
														   .length = (uint32_t) length};
	post->used += (uint32_t) length;
	return SMART_OK;
}

/* Remembers how the state's word of a block was written. */
void
smart_post_birth(struct smart_tree *tree, fabric_address word, uint64_t value)
{
	if (!tree->direct)
		tree->post->birth[tree->post->births++ % BIRTHS_MAX] = (struct birth){word, value};
}

/* Makes a block live that this operation made and linked; *known false: it was made too many blocks ago. */
smart_status
smart_post_activation(struct smart_tree *tree, fabric_address word, uint64_t (*live)(uint64_t value), bool *known)
{
	struct smart_post *post = tree->post;
	unsigned int first = post->births > BIRTHS_MAX ? post->births - BIRTHS_MAX : 0;
	smart_status status = SMART_OK;

	*known = false;
	for (unsigned int i = post->births; i-- > first && !*known;)
	{
		const struct birth *birth = &post->birth[i % BIRTHS_MAX];

		*known = birth->word == word;
		if (!*known)
			continue;
		if (post->count == WAITING_MAX)
			status = smart_post_flush(tree);
		/* Losing means that somebody else did it, and perhaps changed it since. */
		post->waiting[post->count++] = (struct fabric_request){.verb = FABRIC_CAS,
															   .remote = word,
															   .compare = birth->value,
															   .operand = live(birth->value)};
	}
	return status;
}

/*
 * CAS of a slot that is to lead to blocks that were made just now; *seen as in
 * smart_word_cas.
 */
smart_status
smart_link_cas(struct smart_tree *tree, fabric_address word, uint64_t expected, uint64_t desired, uint64_t *seen)
{
	bool together = true;
	smart_status status = SMART_OK;

	for (int i = 0; !tree->direct && i < tree->post->count; i++)
		together &= tree->post->waiting[i].verb != FABRIC_WRITE ||
					fabric_node(tree->post->waiting[i].remote) == fabric_node(word);
	if (!together)
		status = smart_post_flush(tree);
	return status == SMART_OK ? smart_word_cas(tree, word, expected, desired, seen) : status;
}

/* Ends an operation: posts what waits, if it went well, and leaves the epoch. */
smart_status
smart_leave(struct smart_tree *tree, smart_status status)
{
	if (!tree->direct)
	{
		if (status == SMART_OK)
			status = smart_post_flush(tree);
		tree->post->count = 0;
		tree->post->used = 0;
		tree->post->births = 0;
	}
	tree->services->leave(tree->services);
	return status;
}
