/*
 * SPDX-License-Identifier: ISC
 *
 * What is asked about a process while it runs and after: its output and its
 * input.  And whether there are descriptors for one more of anything, since a
 * process at its limit loses what is sent to it.  Owns nothing.
 */
#include "execd/job_int.h"

#include <errno.h>
#include <unistd.h>

#include "common/codes.h"
#include "common/msg.h"
#include "execd/session.h"

/* Descriptors: of a run with all that it has at its start, of one whose
 * output is left, and those that a packet and the work on it may need.  What a
 * run is to see comes on top while it starts, and is refused by itself. */
#define OF_RUN 14
#define OF_OUTPUT 2
#define OF_US (IMSG_PACKET_FDS + 64)

static size_t
of_job(const struct job *j)
{
	size_t n = feed_waiting(j->feed) + spool_followers(j->spool) +
		   appeared_fds(j->watch);

	if (j->state != JOB_OVER || j->bwrap != 0)
		return n + OF_RUN;
	return j->pump != NULL ? n + OF_OUTPUT : n;
}

int
job_room(size_t more)
{
	size_t n = OF_US + session_fds() + more;
	const struct job *j;

	for (j = jobs.jobs; j != NULL; j = j->next)
		n += of_job(j);
	return n <= jobs.conf.nofile;
}

int
job_room_to_start(void)
{
	return job_room(OF_RUN + SESSION_FDS);
}

static void
done(uint64_t id, uint16_t code)
{
	struct wbuf *w = job_words();

	wput_u16(w, code);
	job_tell(ME_DONE, id, -1, w);
}

void
job_follow(uint64_t id, uint64_t run, const uint64_t at[2], int follow)
{
	struct job *j = job_find(run);
	int fd;

	if (j == NULL || j->spool == NULL)
		done(id, C_ID_NOT_FOUND);
	else if (!job_room(2))
		done(id, C_SRV_UNAVAILABLE);
	else if ((fd = spool_follow(j->spool, at, follow)) != -1)
		job_tell(ME_RUN, id, fd, NULL);
	else
		done(id,
		    errno == EAGAIN ? C_LIM_CONCURRENCY : C_SRV_UNAVAILABLE);
}

void
job_feed(uint64_t id, uint64_t run, int fd, int eof)
{
	struct job *j = job_find(run);
	int asked = id != run;

	if (j == NULL || j->feed == NULL) {
		close(fd);
		if (asked)
			done(id, j != NULL && j->state != JOB_OVER
				     ? C_PROC_STDIN_CLOSED
				     : C_PROC_ENDED);
	} else if (!job_room(1)) {
		close(fd);
		if (asked)
			done(id, C_SRV_UNAVAILABLE);
		else
			job_cancel(run);
	} else if (feed_put(j->feed, asked ? id : 0, fd, eof) == -1 && !asked)
		/* it would wait for ever for what it was started with */
		job_cancel(run);
}

void
job_fed(uint64_t id, uint16_t code)
{
	done(id, code);
}
