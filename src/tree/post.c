/*
 * post.c
 *	  Requests of a change that wait for the next batch, so that it costs few
 *	  round trips.
 *
 * Three sorts wait: WRITEs of blocks that are not linked yet, the CASes that
 * make linked blocks live, and CASes of meta whose outcome is not needed before
 * the next batch (SEAL, D1).  They go ahead of the next batch that the operation
 * has to post anyway, or are posted when it ends.
 *
 * Order.  A block's WRITE has to be complete before the CAS that links it takes
 * effect, and a leaf has to be sealed before its slot goes over: they share a batch
 * if they go to one memory node, where a batch's WRITEs stay ahead of its atomics,
 * and a fence keeps SEAL ahead; otherwise they come in a batch of their own
 * (smart_link_and_unlock).  When a block becomes live does not matter: until then
 * whoever finds it makes it live himself.
 *
 * WRITEs and CASes of meta are posted, or given up, before the operation leaves its
 * epoch.  So the WRITE of a block that was retired unlinked comes before that block can
 * be another's (I6).  CASes that make blocks live may stay for the client's next
 * operation, if that is still true of them then: the compute node tells the same number
 * (services.h, moment) as before the first of these blocks was linked.  Else they are
 * given up; somebody will find these blocks.
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
	uint32_t used;   /* bytes */
	uint64_t moment; /* before any block was linked that waits to become live, or is in birth[] */
	bool carries;    /* the operation began with some that waited */
	unsigned int births;
	struct birth birth[BIRTHS_MAX]; /* the last ones */
	struct fabric_request waiting[WAITING_MAX];
	uint64_t *seen[WAITING_MAX]; /* where the result of a CAS is wanted, else NULL */
	uint8_t bytes[BYTES_MAX];
};

struct smart_post *
smart_post_open(struct smart_env *env)
{
	struct smart_post *post = env->allocate(env, sizeof(*post));

	if (post != NULL)
	{
		post->count = 0;
		post->used = 0;
		post->births = 0;
		post->moment = 0;
		post->carries = false;
	}
	return post;
}

static void
tell_results(const struct smart_post *post, const struct fabric_request *batch, int count)
{
	for (int i = 0; i < count; i++)
	{
		if (post->seen[i] != NULL)
			*post->seen[i] = batch[i].result;
	}
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
	tell_results(post, batch, waiting);
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
	smart_status status;
	int count;

	if (tree->direct || post->count == 0)
		return SMART_OK;
	count = post->count;
	post->count = 0;
	post->used = 0;
	status = fabric_execute(tree->fabric, post->waiting, count);
	tell_results(post, post->waiting, count);
	return status;
}

/* The last of those that wait; there is room for it. */
static void
add(struct smart_post *post, struct fabric_request request, uint64_t *seen)
{
	post->seen[post->count] = seen;
	post->waiting[post->count++] = request;
}

/*
 * A CAS of meta ahead of the next batch, with which *seen is set, as smart_word_cas
 * does; by pointers at once.
 */
smart_status
smart_post_cas(struct smart_tree *tree, fabric_address word, uint64_t expected, uint64_t desired, uint64_t *seen)
{
	smart_status status = SMART_OK;

	if (tree->direct)
		return smart_word_cas(tree, word, expected, desired, seen);
	smart_assert(expected != desired);
	if (tree->post->count == WAITING_MAX)
		status = smart_post_flush(tree);
	if (status == SMART_OK)
		add(tree->post,
			(struct fabric_request){.verb = FABRIC_CAS, .remote = word, .compare = expected, .operand = desired}, seen);
	return status;
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
	add(post,
		(struct fabric_request){.verb = FABRIC_WRITE,
								.remote = remote,
								.local = post->bytes + post->used,
								.length = (uint32_t) length},
		NULL);
	post->used += (uint32_t) length;
	return SMART_OK;
}

/* Remembers how the state's word of a block was written. */
void
smart_post_birth(struct smart_tree *tree, fabric_address word, uint64_t value)
{
	struct smart_services *services = tree->services;
	struct smart_post *post = tree->post;

	if (tree->direct)
		return;
	if (post->births == 0 && !post->carries && services->moment != NULL)
		post->moment = services->moment(services);
	post->birth[post->births++ % BIRTHS_MAX] = (struct birth){word, value};
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
		add(post,
			(struct fabric_request){.verb = FABRIC_CAS,
									.remote = word,
									.compare = birth->value,
									.operand = live(birth->value)},
			NULL);
	}
	return status;
}

/* Has what waits to be complete before a CAS on this memory node?  *fence: at least before that CAS takes effect. */
static bool
goes_first(const struct smart_post *post, unsigned int node, bool *fence)
{
	bool first = false;

	*fence = false;
	for (int i = 0; i < post->count; i++)
	{
		bool seals = post->seen[i] != NULL;

		*fence |= seals;
		first |= (seals || post->waiting[i].verb == FABRIC_WRITE) && fabric_node(post->waiting[i].remote) != node;
	}
	return first;
}

/*
 * CAS of a slot that is to lead to blocks that were made just now; *seen as in
 * smart_word_cas.  lock: NULL, or of the leaf that the slot led to, which is sealed or
 * narrowed by now, or by what waits: the rear lock is let go behind the CAS.
 */
smart_status
smart_link_and_unlock(struct smart_tree *tree, fabric_address word, uint64_t expected, uint64_t desired,
					  struct smart_leaf_lock *lock, uint64_t *seen)
{
	struct fabric_request batch[2];
	bool unlocks = lock != NULL && lock->word != 0;
	bool fence;
	smart_status status = SMART_OK;

	if (tree->direct)
		return smart_word_cas(tree, word, expected, desired, seen);
	smart_assert(expected != desired);
	if (goes_first(tree->post, fabric_node(word), &fence))
		status = smart_post_flush(tree);
	if (status != SMART_OK)
		return status;
	batch[0] = (struct fabric_request){.verb = FABRIC_CAS,
									   .remote = word,
									   .compare = expected,
									   .operand = desired,
									   .fence = fence};
	if (unlocks)
		batch[1] = (struct fabric_request){.verb = FABRIC_CAS,
										   .remote = lock->word_address,
										   .compare = lock->word,
										   .operand = 0,
										   .fence = true};
	status = smart_execute(tree, batch, unlocks ? 2 : 1);
	if (unlocks)
		lock->word = 0;
	if (status == SMART_OK)
		*seen = batch[0].result;
	return status;
}

/* The same where no lock is let go. */
smart_status
smart_link_cas(struct smart_tree *tree, fabric_address word, uint64_t expected, uint64_t desired, uint64_t *seen)
{
	return smart_link_and_unlock(tree, word, expected, desired, NULL, seen);
}

/* Is all that waits there to make blocks live, which nobody can use again before they are? */
static bool
may_stay(struct smart_tree *tree)
{
	const struct smart_post *post = tree->post;

	for (int i = 0; i < post->count; i++)
	{
		if (post->waiting[i].verb == FABRIC_WRITE || post->seen[i] != NULL)
			return false;
	}
	return tree->services->moment != NULL && tree->services->moment(tree->services) == post->moment;
}

/* Begins an operation: enters the epoch, and gives up what was left for it if that is too old. */
void
smart_enter(struct smart_tree *tree)
{
	struct smart_post *post = tree->post;

	tree->services->enter(tree->services);
	if (tree->direct)
		return;
	if (post->count > 0 && tree->services->moment(tree->services) != post->moment)
		post->count = 0;
	post->carries = post->count > 0;
}

/* Ends an operation: posts what waits and may not wait longer, if it went well, and leaves the epoch. */
smart_status
smart_leave(struct smart_tree *tree, smart_status status)
{
	if (!tree->direct && tree->post->count > 0)
	{
		bool stays = status == SMART_OK && may_stay(tree);

		if (status == SMART_OK && !stays)
			status = smart_post_flush(tree);
		if (!stays)
			tree->post->count = 0;
	}
	if (!tree->direct)
		tree->post->births = 0;
	tree->services->leave(tree->services);
	return status;
}
