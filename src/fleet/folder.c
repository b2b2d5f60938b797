/* SPDX-License-Identifier: MIT */
/*
 * folder.c - a store that is a folder of batch files
 *
 * A batch is a file called AGENT-SEQ.batch, which is complete when it has this
 * name: it is written under another one and linked.  A link never replaces a
 * file, so a batch is there once.
 */
#include "fleet/store_kind.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "fleet/batch_sum.h"
#include "model/fleet/batch_folder.h"

enum { NAME = 64 };

struct folder_store {
	struct seam_fleet_store store;
	int fd;			/* -1: nothing was put yet */
	char *path;
};

static struct folder_store *of(struct seam_fleet_store *store)
{
	return (struct folder_store *)store;
}

static void close_folder(struct seam_fleet_store *store)
{
	struct folder_store *f = of(store);

	seam_file_close_fd(f->fd);
	free(f->path);
	free(f);
}

/* -- put ---------------------------------------------------------------- */

/* Whether the file @name has the batch that @head describes. */
static bool has_batch(const struct folder_store *f, const char *name,
		      const struct seam_batch_head *head)
{
	struct seam_batch_head there;
	bool has = seam_batch_folder_head(f->fd, name, &there, NULL) == 0 &&
		   there.id.agent == head->id.agent &&
		   there.id.seq == head->id.seq &&
		   memcmp(there.rows, head->rows, sizeof(head->rows)) == 0;

	seam_batch_head_fini(&there);
	return has;
}

/* Write @file as @temporary, and to the disk: a file of that name is ours. */
static int write_file(const struct folder_store *f, const char *temporary,
		      struct seam_bytes file, struct seam_err *err)
{
	int fd, r;

	fd = openat(f->fd, temporary, O_WRONLY | O_CREAT | O_EXCL |
		    O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0)
		return seam_err_errno(err, "cannot create a file");
	r = seam_file_write_at(fd, file.data, file.size, 0, temporary, err);
	if (!r && fdatasync(fd))
		r = seam_err_errno(err, "cannot write '%s'", temporary);
	close(fd);
	return r;
}

static int put_file(const struct folder_store *f, const char *name,
		    struct seam_bytes file,
		    const struct seam_batch_head *head, struct seam_err *err)
{
	char temporary[NAME + 32];
	int r;

	if (has_batch(f, name, head))
		return 0;
	snprintf(temporary, sizeof(temporary), ".%s.%d", name, (int)getpid());
	/* of a process of this id that was killed */
	unlinkat(f->fd, temporary, 0);
	r = write_file(f, temporary, file, err);
	if (!r && linkat(f->fd, temporary, f->fd, name, 0)) {
		r = -errno;
		if (r == -EEXIST && has_batch(f, name, head))
			r = 0;
		else
			seam_err_set(err, r, "cannot make '%s': %s", name,
				     r == -EEXIST ? "another file has that "
				     "name" : strerror(-r));
	}
	unlinkat(f->fd, temporary, 0);
	return r;
}

/* Only a put makes the folder: the path of a query may be a slip. */
static int open_or_make(struct folder_store *f, struct seam_err *err)
{
	if (f->fd < 0)
		f->fd = mkdir(f->path, 0777) && errno != EEXIST ? -1 :
			open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (f->fd >= 0)
		return 0;
	seam_err_errno(err, "cannot open the folder");
	/* it may be mounted later: the batch is not to be lost */
	return -EAGAIN;
}

static int put(struct seam_fleet_store *store, struct seam_bytes file,
	       struct seam_err *err)
{
	struct folder_store *f = of(store);
	struct seam_batch_file read;
	char name[NAME];
	int r = seam_batch_file_open(&read, file, err);

	if (!r)
		r = open_or_make(of(store), err);
	snprintf(name, sizeof(name), "%016" PRIx64 "-%020" PRIu64
		 SEAM_BATCH_ENDING, read.head.id.agent, read.head.id.seq);
	if (!r)
		r = put_file(f, name, file, &read.head, err);
	seam_batch_file_close(&read);
	if (r)
		seam_err_add(err, r, "cannot store a batch in '%s'", f->path);
	/* space may be made, a limit raised: the batch is not to be lost */
	return r == -ENOSPC || r == -EDQUOT || r == -EIO || r == -EMFILE ||
	       r == -ENFILE || r == -ENOMEM ? -EAGAIN : r;
}

/* -- ask ---------------------------------------------------------------- */

/* The time of the answer is that of the batches, within that of the query. */
static void take_time(struct seam_batch *answer,
		      const struct seam_fleet_query *query,
		      const struct seam_batch_head *head)
{
	uint64_t from = head->from_ns > query->from_ns ? head->from_ns :
			query->from_ns;
	uint64_t to = head->to_ns < query->to_ns ? head->to_ns : query->to_ns;

	if (from < answer->from_ns || !answer->to_ns)
		answer->from_ns = from;
	if (to > answer->to_ns)
		answer->to_ns = to;
}

/* The rows of a file that the query wants.  0 or -errno of the file. */
static int read_file(struct seam_batch *batch, struct seam_fleet_sum *sum,
		     int folder, const char *name, struct seam_err *why)
{
	struct seam_batch_head head;
	int r = seam_batch_folder_head(folder, name, &head, why);

	if (!r && seam_fleet_sum_wants(sum->query, &head)) {
		r = seam_batch_folder_read(folder, name, batch, why);
		if (!r)
			take_time(sum->batch, sum->query, &head);
	}
	seam_batch_head_fini(&head);
	return r;
}

/* Add one file.  What cannot be read is a loss of the answer. */
static int add_file(struct seam_fleet_sum *sum, int folder, const char *name,
		    struct seam_err *err)
{
	struct seam_batch batch = { 0 };
	struct seam_err why = { 0 };
	char shown[256], text[SEAM_ERR_TEXT], all[SEAM_BATCH_MAX_TEXT];
	int r = read_file(&batch, sum, folder, name, &why);

	if (!r) {
		r = seam_fleet_sum_add(sum, &batch, err);
	} else if (r == -ENOMEM) {
		seam_err_no_memory(err);
	} else {
		seam_err_text(&why, text);
		snprintf(all, sizeof(all), "%s: %s", seam_text_copy(shown,
			 sizeof(shown), name, SEAM_TEXT_TERMINAL), text);
		r = seam_fleet_sum_lost(sum, "batch not read", all, 0, err);
	}
	seam_batch_fini(&batch);
	return r;
}

static int ask(struct seam_fleet_store *store,
	       const struct seam_fleet_query *query,
	       struct seam_fleet_answer *answer, struct seam_err *err)
{
	struct folder_store *f = of(store);
	struct seam_fleet_sum sum = {
		.query = query, .batch = &answer->batch,
	};
	struct seam_batch_folder folder;
	int r = seam_batch_folder_open(&folder, f->path, err);

	answer->n_nodes = 1;
	for (size_t i = 0; !r && i < folder.names.n; i++)
		r = add_file(&sum, folder.fd, folder.names.items[i], err);
	answer->n_rows = sum.n_rows;
	seam_fleet_sum_fini(&sum);
	seam_batch_folder_close(&folder);
	return r;
}

/* -- open --------------------------------------------------------------- */

static const struct seam_fleet_kind kind = {
	.put = put, .ask = ask, .close = close_folder,
};

int seam_fleet_open_folder(struct seam_fleet_store **store, const char *path,
			   struct seam_err *err)
{
	struct folder_store *f = calloc(1, sizeof(*f));

	*store = NULL;
	if (!f)
		return seam_err_no_memory(err);
	f->store.kind = &kind;
	f->fd = -1;
	f->path = strdup(path);
	if (!f->path) {
		close_folder(&f->store);
		return seam_err_no_memory(err);
	}
	*store = &f->store;
	return 0;
}
