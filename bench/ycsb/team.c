/*
 * team.c
 *	  The processes of a benchmark, and their memory.
 *
 * Leader and member share a pair of sockets that keep messages whole; a process
 * that ends closes its end, and the other one notices.
 */
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "team.h"

#define ALIGNMENT 128

bool
ycsb_team_part(struct ycsb_team *team, unsigned int size)
{
	smart_assert(size >= 1 && size <= YCSB_NODES_MAX);
	*team = (struct ycsb_team){.size = 1};
	/* What is in a buffer now would be written by every process. */
	fflush(NULL);
	while (team->size < size)
	{
		unsigned int number = team->size;
		int pair[2];

		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		{
			perror("ycsb: a compute node's socket");
			return false;
		}
		team->pid[number] = fork();
		if (team->pid[number] < 0)
		{
			perror("ycsb: a compute node's process");
			close(pair[0]);
			close(pair[1]);
			return false;
		}
		if (team->pid[number] == 0)
		{
			/* In the new process only its own socket stays open, or the leader's end could not be noticed. */
			for (unsigned int i = 1; i < number; i++)
				close(team->member[i]);
			close(pair[0]);
			team->self = number;
			team->leader = pair[1];
			team->size = size;
			return true;
		}
		close(pair[1]);
		team->member[number] = pair[0];
		team->size++;
	}
	return true;
}

static bool
tell(int peer, const void *message, size_t length)
{
	return send(peer, message, length, MSG_NOSIGNAL) == (ssize_t) length;
}

static bool
hear(int peer, void *message, size_t length)
{
	return recv(peer, message, length, 0) == (ssize_t) length;
}

bool
ycsb_team_tell(const struct ycsb_team *team, const void *order, size_t length)
{
	smart_assert(team->self == 0);
	for (unsigned int i = 1; i < team->size; i++)
	{
		if (!tell(team->member[i], order, length))
			return false;
	}
	return true;
}

bool
ycsb_team_answer(const struct ycsb_team *team, unsigned int member, void *answer, size_t length)
{
	smart_assert(team->self == 0 && member >= 1 && member < team->size);
	return hear(team->member[member], answer, length);
}

bool
ycsb_team_listen(const struct ycsb_team *team, void *order, size_t length)
{
	smart_assert(team->self != 0);
	return hear(team->leader, order, length);
}

bool
ycsb_team_reply(const struct ycsb_team *team, const void *answer, size_t length)
{
	smart_assert(team->self != 0);
	return tell(team->leader, answer, length);
}

void
ycsb_team_dismiss(struct ycsb_team *team)
{
	smart_assert(team->self == 0);
	for (unsigned int i = 1; i < team->size; i++)
		close(team->member[i]);
	for (unsigned int i = 1; i < team->size; i++)
		waitpid(team->pid[i], NULL, 0);
	team->size = 0;
}

/* ---- memory ---- */

bool
ycsb_shared_open(struct ycsb_shared *shared, size_t bytes)
{
	void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	smart_assert(bytes > 0);
	if (base == MAP_FAILED)
		return false;
	*shared = (struct ycsb_shared){.base = base, .size = bytes};
	return true;
}

void *
ycsb_shared_allocate(struct ycsb_shared *shared, size_t bytes)
{
	size_t taken = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	uint8_t *place = shared->base + shared->used;

	smart_assert(shared->used <= shared->size && shared->used % ALIGNMENT == 0);
	smart_assert(bytes > 0);
	if (taken > shared->size - shared->used)
		return NULL;
	shared->used += taken;
	smart_assert(shared->used <= shared->size);
	return place;
}

void
ycsb_shared_close(struct ycsb_shared *shared)
{
	munmap(shared->base, shared->size);
}
