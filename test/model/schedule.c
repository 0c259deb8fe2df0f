/*
 * schedule.c
 *	  One history: what it is like, and which process makes the next step.
 *
 * A process runs on to its next step, another is chosen, and so on; fates come in between.  A process may be stalled for
 * many steps, or end with an error before a step.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "model/world.h"

/* ---- steps ---- */

static void
hand_over(struct actor *self)
{
	coroutine_switch(&self->coroutine, &world.main);
}

void
trace(const char *who, const char *what)
{
	if (world.settings.trace)
		printf("%4u  %-11s  %s\n", world.now, who, what);
}

/* Half of those who come to one kind of step in a history are late with it. */
static void
be_late(struct actor *self, const char *what)
{
	size_t length = strlen(what);
	unsigned int kind =
		(unsigned int) (7 * length + 5 * (unsigned char) what[length / 2] + (unsigned char) what[length - 3]);

	if (kind % LATE_KINDS == world.plan.late && one_in(2))
		self->stalled_until = world.now + (8u << below(5));
}

void
step(struct actor *self, const char *what)
{
	be_late(self, what);
	hand_over(self);
	self->waiting = false;
	trace(self->name, what);
}

void
step_wait(struct actor *self)
{
	hand_over(self);
	self->waiting = true;
}

/* Until no other process has the lock. */
static void
wait_for(struct actor *self, unsigned int lock, const char *what)
{
	smart_assert(lock < LOCKS);
	be_late(self, what);
	hand_over(self);
	while (self->server->holder[lock] != NULL && self->server->holder[lock] != self)
		step_wait(self);
	self->waiting = false;
	trace(self->name, what);
}

void
step_lock(struct actor *self, unsigned int lock, const char *what)
{
	wait_for(self, lock, what);
	self->server->holder[lock] = self;
}

void
unlock(struct actor *self, unsigned int lock)
{
	smart_assert(lock < LOCKS);
	if (self->server->holder[lock] == self)
		self->server->holder[lock] = NULL;
}

struct page
step_read(struct actor *self, unsigned int block, const char *what)
{
	wait_for(self, LOCK_PAGE + block, what);
	return self->server->pages.blocks[block];
}

struct meta
step_read_meta(struct actor *self, const char *what)
{
	wait_for(self, LOCK_PAGE + 0, what);
	return self->server->pages.meta;
}

/* ---- processes ---- */

static const struct
{
	const char *name;
	void (*run)(struct actor *self);
} roles[ACTORS] = {
	[WRITER_1] = {"writer 1", writer_run},
	[WRITER_2] = {"writer 2", writer_run},
	[VACUUM] = {"VACUUM", vacuum_run},
	[WORKER] = {"worker", worker_run},
	[LOADER] = {"loader", loader_run},
	[SESSION] = {"session", loader_run},
	[COMPACTION] = {"compaction", compaction_run},
	[READER_1] = {"reader 1", reader_run},
	[READER_2] = {"reader 2", reader_run},
	[APPLIER] = {"applier", applier_run},
	[MOVER] = {"mover", mover_run},
	[CARRIER] = {"carrier", carrier_run},
	[WRITER_3] = {"writer 3", writer_run},
	[NEIGHBOUR] = {"neighbour", neighbour_run},
};

/* Where every process begins, and begins again. */
static void
actor_main(void)
{
	struct actor *self = world.running;

	for (;;)
	{
		self->run(self);
		smart_assert(!self->looks && self->xid == 0 && self->between == 0);
		self->busy = false;
		self->held = false;
		hand_over(self);
	}
}

/* All that ends with an error, or a death. */
static void
release(struct actor *actor)
{
	struct server *server = actor->server;

	for (int i = 0; i < LOCKS && server != NULL; i++)
	{
		if (server->holder[i] == actor)
			server->holder[i] = NULL;
	}
	if (actor->xid != 0)
		server->running &= ~(UINT64_C(1) << actor->xid);
	if (server != NULL)
		filter_release(server, actor);
	answers_release(actor);
	/* A move that fails: its tree is nothing to anybody. */
	if (server != NULL && server->mover == actor)
	{
		move_end(server);
		server->changes++;
	}
	/* J2-foretold. */
	if (server != NULL && server->foretold[actor - world.actors] != NONE)
	{
		server->changes++;
		server->foretold[actor - world.actors] = NONE;
	}
	actor->xid = 0;
	actor->between = 0;
	actor->looks = false;
	actor->pinned = false;
	actor->delta = NULL;
	actor->watches = false;
	actor->busy = false;
	actor->held = false;
	actor->open = false;
	actor->tail.page.block = 0;
}

void
actor_stop(struct actor *actor)
{
	if (actor->busy)
		trace(actor->name, "is stopped");
	release(actor);
	coroutine_prepare(&actor->coroutine, actor_main);
}

void
actor_abort(struct actor *self)
{
	trace(self->name, "fails");
	release(self);
	for (;;)
		hand_over(self);
}

void
actor_exhausted(struct actor *self)
{
	world.exhausted = true;
	for (;;)
		hand_over(self);
}

/* An operation begins, on a server of the role; false: there is none. */
static bool
begin_operation(struct actor *actor, enum role role)
{
	struct server *server = world.primary;

	if (role == APPLIER || ((role == READER_1 || role == READER_2) && world.standby != NULL && one_in(2)))
		server = world.standby;
	if (server == NULL)
		return false;
	if (server != actor->server)
	{
		actor->open = false;
		actor->tail.page.block = 0;
	}
	actor->server = server;
	actor->busy = true;
	actor->waiting = true;
	return true;
}

static void
run_actor(enum role role)
{
	struct actor *actor = &world.actors[role];

	if (actor->stalled_until > world.now || (!actor->busy && !begin_operation(actor, role)))
		return;
	do
	{
		world.now++;
		if (actor->busy && !actor->held && one_in(world.plan.error_one_in))
		{
			actor_stop(actor);
			return;
		}
		world.running = actor;
		coroutine_switch(&world.main, &actor->coroutine);
		if (!actor->busy)
			coroutine_prepare(&actor->coroutine, actor_main);
		if (!actor->waiting)
		{
			world.work++;
			check_world();
		}
		if (one_in(world.plan.stall_one_in))
			actor->stalled_until = world.now + (10u << below(5));
	} while (actor->busy && !actor->waiting && !one_in(world.plan.burst) && actor->stalled_until <= world.now &&
			 world.violation[0] == '\0' && !world.exhausted);
}

/* ---- a history ---- */

static unsigned int
sometimes(unsigned int one_in_n, unsigned int value)
{
	return one_in(one_in_n) ? value : 0;
}

/* Trees are views.  standby: there is one, and it is promoted; what is removed is marked. */
static void
make_paged(struct plan *plan, bool standby)
{
	plan->paged = true;
	plan->lean = world.seed % 2 == 0;
	plan->merges = one_in(2);
	plan->marks = standby || one_in(2);
	plan->pace[MOVER] = 24;
	plan->pace[COMPACTION] = 32;
	plan->pace[READER_1] = plan->pace[READER_2] = 4 + sometimes(2, 24);
	plan->pace[WORKER] = sometimes(2, 24);
	plan->stall_one_in = sometimes(2, 20);
	plan->refuse_one_in = sometimes(3, 6);
	if (!standby)
	{
		plan->full_one_in = sometimes(4, 3);
		plan->fate[FATE_LOSE_TREE] = sometimes(2, 2);
		plan->fate[FATE_CRASH] = sometimes(2, 2);
		plan->fate[FATE_POWER_LOSS] = sometimes(2, 1);
		return;
	}
	plan->full_one_in = 0;
	plan->pace[WRITER_1] = plan->pace[WRITER_2] = 8;
	plan->pace[COMPACTION] = 48;
	plan->pace[APPLIER] = 1 + sometimes(2, below(12));
	plan->asynchronous_one_in = 3;
	plan->fate[FATE_FLUSH] = plan->fate[FATE_REPLAY] = 12;
	plan->fate[FATE_PROMOTE] = 1;
}

/* The index has no tree, but a follower; or none as long as it is small. */
static void
make_carried(struct plan *plan)
{
	bool standby = one_in(4);

	plan->carries = true;
	plan->small = sometimes(2, below(plan->steps));
	plan->runs_from_tree = false;
	plan->pace[SESSION] = 0;
	plan->pace[WORKER] = sometimes(2, 16);
	plan->pace[LOADER] = 8;
	plan->pace[CARRIER] = 8 + sometimes(2, 24);
	plan->pace[READER_1] = plan->pace[READER_2] = 8 + sometimes(2, 16);
	plan->pace[COMPACTION] = sometimes(3, 8) + sometimes(2, 24);
	plan->stall_one_in = sometimes(2, 20);
	plan->error_one_in = sometimes(2, 40);
	plan->full_one_in = sometimes(4, 3);
	plan->asynchronous_one_in = one_in(2) ? 1 : 3;
	plan->fate[FATE_FLUSH] = sometimes(2, 2);
	plan->fate[FATE_LOSE_TREE] = sometimes(3, 2);
	plan->fate[FATE_CRASH] = sometimes(2, 2);
	plan->fate[FATE_POWER_LOSS] = sometimes(2, 1);
	if (one_in(5))
	{
		/* Entries come and go, and runs are not switched: J15-purge. */
		plan->small = 0;
		plan->tids = 2;
		plan->pace[COMPACTION] = sometimes(2, 2);
		plan->pace[WORKER] = 24;
		plan->pace[CARRIER] = 48;
		plan->pace[READER_1] = plan->pace[READER_2] = 32;
	}
	if (!standby)
		return;
	plan->pace[APPLIER] = 8;
	plan->fate[FATE_FLUSH] = plan->fate[FATE_REPLAY] = 12;
	plan->fate[FATE_PROMOTE] = 2;
}

/* Runs have more pages, and are switched while few of them change; some histories have views, or a standby. */
static void
make_kept(struct plan *plan)
{
	plan->keeps = true;
	plan->runs_from_tree = false;
	plan->tids = TIDS;
	plan->keys = KEYS;
	plan->steps = 350;
	plan->paged = one_in(3);
	plan->lean = world.seed % 2 == 0;
	plan->pace[WRITER_1] = plan->pace[WRITER_2] = 8;
	plan->pace[VACUUM] = sometimes(2, 16);
	plan->pace[MOVER] = plan->pace[WORKER] = sometimes(3, 16);
	plan->pace[COMPACTION] = 48;
	plan->pace[READER_1] = plan->pace[READER_2] = sometimes(2, 16);
	plan->stall_one_in = sometimes(2, 20);
	plan->error_one_in = sometimes(2, 60);
	plan->fate[FATE_LOSE_TREE] = sometimes(2, 2);
	plan->fate[FATE_CRASH] = sometimes(3, 1);
	plan->fate[FATE_POWER_LOSS] = sometimes(3, 1);
	if (!one_in(3))
		return;
	plan->pace[APPLIER] = plan->pace[READER_1] = plan->pace[READER_2] = 8;
	plan->fate[FATE_FLUSH] = plan->fate[FATE_REPLAY] = 8;
	plan->fate[FATE_PROMOTE] = sometimes(2, 1);
}

/* J16: unique checks of an index that has no tree; runs keep pages, fail, and are written again after crashes. */
static void
make_filtered(struct plan *plan)
{
	make_carried(plan);
	plan->filters = plan->keeps = plan->unique = true;
	plan->tids = TIDS;
	plan->keys = KEYS;
	plan->steps = 300;
	plan->pace[CARRIER] = 0;
	plan->pace[COMPACTION] = 48;
	plan->pace[VACUUM] = 8 + sometimes(2, 16);
	plan->pace[READER_1] = plan->pace[READER_2] = sometimes(2, 24);
	plan->pace[NEIGHBOUR] = sometimes(2, 1 + below(16));
	plan->error_one_in = sometimes(2, 60);
	plan->fate[FATE_LOSE_TREE] = 0;
}

/* J17: keys are looked up, on a standby, too. */
static void
make_answers(struct plan *plan)
{
	make_filtered(plan);
	plan->answers = true;
	plan->pace[READER_1] = plan->pace[READER_2] = 24 + sometimes(2, 40);
	plan->pace[WRITER_1] = plan->pace[WRITER_2] = 12;
	plan->pace[NEIGHBOUR] = sometimes(2, 4 + below(24));
	plan->pace[CARRIER] = sometimes(3, 16);
	plan->pace[APPLIER] = 0;
	plan->fate[FATE_FLUSH] = plan->fate[FATE_REPLAY] = plan->fate[FATE_PROMOTE] = 0;
	if (!one_in(3))
		return;
	plan->fate[FATE_FLUSH] = plan->fate[FATE_REPLAY] = 8;
	plan->fate[FATE_PROMOTE] = sometimes(2, 1);
}

/* Trees are left behind. */
static void
make_behind(struct plan *plan)
{
	plan->leaves = true;
	plan->refuse_one_in = 3;
	plan->unable_one_in = sometimes(2, 3);
	plan->full_one_in = sometimes(4, 3);
	plan->pace[READER_1] = plan->pace[WORKER] = sometimes(2, 16);
	plan->pace[COMPACTION] = sometimes(3, 24);
	plan->error_one_in = 40;
	plan->fate[FATE_CRASH] = sometimes(2, 2);
	plan->fate[FATE_LOSE_TREE] = sometimes(3, 1);
}

/* The index gets another tree while it has one. */
static void
make_moved(struct plan *plan)
{
	plan->pace[MOVER] = 32;
	plan->pace[VACUUM] = sometimes(2, 24);
	plan->pace[SESSION] = 0;
	plan->pace[WORKER] = plan->pace[READER_1] = sometimes(2, 16);
	plan->pace[COMPACTION] = sometimes(4, 16);
	plan->fate[FATE_CRASH] = sometimes(2, 2);
	plan->fate[FATE_LOSE_TREE] = sometimes(3, 1);
	plan->refuse_one_in = sometimes(3, 6);
	plan->full_one_in = sometimes(4, 3);
}

/* What a history is about makes some things frequent. */
static void
make_theme(struct plan *plan, enum theme theme)
{
	static const unsigned int alone[ACTORS] = {[WRITER_1] = 16, [WRITER_2] = 16, [LOADER] = 16, [SESSION] = 8};

	if (theme == THEME_ANY)
	{
		plan->leaves = world.seed % 2 == 0;
		return;
	}
	memset(plan->fate, 0, sizeof(plan->fate));
	memcpy(plan->pace, alone, sizeof(plan->pace));
	plan->fate[FATE_FLUSH] = 2;
	plan->pace[VACUUM] = 24;
	switch (theme)
	{
		case THEME_STALE:
			plan->full_one_in = 2;
			plan->impatient_one_in = 2;
			plan->pace[LOADER] = plan->pace[SESSION] = 24;
			plan->fate[FATE_REPLAY] = plan->pace[READER_1] = sometimes(2, 8);
			plan->fate[FATE_PROMOTE] = sometimes(2, 1);
			/* fall through */
		case THEME_LOSS:
			plan->fate[FATE_LOSE_TREE] = 2;
			plan->fate[FATE_CRASH] = sometimes(2, 2);
			plan->refuse_one_in = 6;
			plan->pace[COMPACTION] = sometimes(2, 24);
			if (theme == THEME_LOSS)
				plan->pace[VACUUM] = plan->pace[WORKER] = sometimes(2, 16);
			break;
		case THEME_RUNS:
			plan->refuse_one_in = 3;
			plan->pace[COMPACTION] = 32;
			plan->pace[VACUUM] = 16;
			break;
		case THEME_DEAD:
			plan->pace[WORKER] = 32;
			plan->refuse_one_in = sometimes(2, 6);
			break;
		case THEME_PAGED:
		case THEME_MARKS:
			make_paged(plan, theme == THEME_MARKS);
			break;
		case THEME_BEHIND:
			make_behind(plan);
			break;
		case THEME_CARRY:
			make_carried(plan);
			break;
		case THEME_KEEP:
			make_kept(plan);
			break;
		case THEME_FILTER:
			make_filtered(plan);
			break;
		case THEME_ANSWERS:
			make_answers(plan);
			break;
		case THEME_MOVE:
			make_moved(plan);
			break;
		default:
			smart_assert(theme == THEME_STANDBY || theme == THEME_WALK);
			plan->fate[FATE_REPLAY] = 8;
			plan->fate[FATE_FLUSH] = one_in(2) ? 1 : 8;
			plan->asynchronous_one_in = one_in(2) ? 1 : 3;
			plan->fate[FATE_PROMOTE] = theme == THEME_STANDBY ? 1 : 0;
			plan->fate[FATE_CRASH] = sometimes(3, 1);
			/* Trees are fed often, or hardly ever. */
			plan->pace[READER_1] = plan->pace[READER_2] = plan->pace[APPLIER] = 1 + sometimes(2, below(12));
			plan->pace[COMPACTION] = theme == THEME_WALK ? 48 : sometimes(2, 12);
			break;
	}
}

/* No dice: other histories stay as they are. */
static void
make_unique(struct plan *plan)
{
	plan->asks = !plan->carries && world.seed / 2 % 2 == 0;
	if (world.seed / 4 % 2 == 0)
		plan->pace[WRITER_3] = plan->pace[WRITER_2];
	/* Trees are left by who could not reach them, more often than by who could not add. */
	plan->misses = plan->asks && world.seed / 8 % 4 != 0;
	if (!plan->misses)
		return;
	plan->tids = TIDS;
	plan->keys = 1;
	plan->refuse_one_in = 0;
	plan->pace[VACUUM] = 12;
	plan->pace[LOADER] = plan->pace[SESSION] = 3;
	plan->pace[WRITER_1] = plan->pace[WRITER_2] = plan->pace[WRITER_3] = 24;
	if (world.seed / 32 % 2 == 0)
		return;
	plan->pace[WORKER] = plan->pace[COMPACTION] = plan->pace[READER_1] = plan->pace[READER_2] = 0;
	plan->pace[MOVER] = 0;
	memset(plan->fate, 0, sizeof(plan->fate));
	plan->fate[FATE_FLUSH] = 2;
	plan->returns = plan->leaves && !plan->runs_from_tree;
	if (!plan->returns)
		return;
	plan->steps = 350;
	plan->error_one_in = 0;
	plan->pace[LOADER] = plan->pace[SESSION] = 8;
	plan->pace[VACUUM] = 4;
}

/* J5-keep.  Most histories with views that are not lean merge pages instead.  No dice: the others stay as they are. */
static bool
keeps(const struct plan *plan)
{
	if (plan->carries)
		return world.seed / 64 % 2 == 0;
	if (plan->paged)
		return plan->lean ? !FAULT(leanmerge) : world.seed / 2 % 8 == 3;
	return true;
}

static void
make_plan(struct plan *plan)
{
	const struct settings *settings = &world.settings;

	*plan = (struct plan){.steps = 50 + below(300),
						  .tids = 1 + below(TIDS),
						  .keys = 1 + below(KEYS),
						  .burst = 1u << below(5)};
	for (int i = 0; i < MOVER; i++)
		plan->pace[i] = 8 * (i <= WRITER_2 ? 1 + below(4) : below(5));
	plan->pace[LOADER] += 8;
	plan->fate[FATE_FLUSH] = below(8);
	plan->fate[FATE_REPLAY] = one_in(3) ? 0 : 4 + below(16);
	for (int i = FATE_LOSE_TREE; i < FATES; i++)
		plan->fate[i] = sometimes(3, 1 + below(3));
	plan->stall_one_in = sometimes(2, 30);
	plan->late = below(2 * LATE_KINDS);
	plan->error_one_in = sometimes(3, 60);
	plan->refuse_one_in = sometimes(4, 4);
	plan->unable_one_in = sometimes(4, 3);
	plan->full_one_in = sometimes(6, 3);
	plan->impatient_one_in = sometimes(4, 3);
	plan->asynchronous_one_in = 1 + below(3);
	plan->unique = (settings->unique || one_in(4)) && !settings->drafted;
	plan->runs_from_tree = settings->source == FROM_EITHER ? one_in(2) : settings->source == FROM_TREE;
	plan->kept_by_name = settings->keeper == BY_EITHER ? one_in(2) : settings->keeper == BY_NAME;
	make_theme(plan, settings->theme == THEMES ? (enum theme) below(THEMES) : settings->theme);
	if (settings->drafted)
		plan->full_one_in = plan->impatient_one_in = 0;
	plan->stages = plan->carries && plan->unique;
	plan->keeps = plan->keeps || keeps(plan);
	if (plan->unique)
		make_unique(plan);
	plan->filter_bits = plan->stages ? 1 + below(KEYS) : 0;
	/* Where runs are written from a tree, the switch could not tell that it was left behind meanwhile. */
	plan->leaves = plan->leaves && !settings->drafted && !plan->runs_from_tree;
}

static void
begin_history(uint64_t seed)
{
	world.seed = seed;
	world.dice.state = seed * UINT64_C(0xd1342543de82ef95) + 1;
	world.now = 0;
	world.work = 0;
	world.exhausted = false;
	world.violation[0] = '\0';
	world.inserted = 0;
	world.flushed = 0;
	world.regions = 0;
	for (int i = 0; i < ACTORS; i++)
	{
		struct coroutine coroutine = world.actors[i].coroutine;

		world.actors[i] = (struct actor){.name = roles[i].name, .run = roles[i].run, .coroutine = coroutine};
		coroutine_prepare(&world.actors[i].coroutine, actor_main);
	}
	for (int i = 0; i < 2; i++)
	{
		memset(world.servers[i].holder, 0, sizeof(world.servers[i].holder));
		answers_begin(&world.servers[i]);
	}
	make_plan(&world.plan);
	fate_begin();
}

/* One process for some steps, or one fate. */
static void
go_on(unsigned int total)
{
	unsigned int dice = below(total);

	world.now++;
	for (int i = 0; i < ACTORS; dice -= world.plan.pace[i++])
	{
		if (dice < world.plan.pace[i])
		{
			run_actor((enum role) i);
			return;
		}
	}
	for (int i = 0; i < FATES; dice -= world.plan.fate[i++])
	{
		if (dice < world.plan.fate[i])
		{
			fate_happen((enum fate) i);
			check_world();
			return;
		}
	}
}

void
history_run(uint64_t seed)
{
	unsigned int total = 0;

	begin_history(seed);
	for (int i = 0; i < ACTORS; i++)
		total += world.plan.pace[i];
	for (int i = 0; i < FATES; i++)
		total += world.plan.fate[i];
	while (world.work < world.plan.steps && world.now < 8 * world.plan.steps && world.violation[0] == '\0' &&
		   !world.exhausted)
		go_on(total);
}
