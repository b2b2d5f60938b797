/* SPDX-License-Identifier: MIT */
/* spool.c - names, locks, and the order of renames; see spool.h */
#include "fleet/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/folder_walk.h"
#include "base/text.h"

enum { NAME = 64, BLOCK = 4096 };

#define WRITER_LOCK "writer.lock"

enum spool_kind { SPOOL_OTHER, SPOOL_BATCH, SPOOL_GONE, SPOOL_CLAIMED,
		  SPOOL_PART };

/* A name of the folder: of file .number, and for CLAIMED of file .other. */
struct spool_name {
	enum spool_kind kind;
	uint64_t number, other;
};

/* ---- names ---- */

static const char *const endings[] = {
	[SPOOL_BATCH] = "batch", [SPOOL_GONE] = "gone",
	[SPOOL_CLAIMED] = "gone-", [SPOOL_PART] = "part",
};

static const char *name_of(char name[NAME], enum spool_kind kind,
			   uint64_t number, uint64_t other)
{
	int n = snprintf(name, NAME, "%020" PRIu64 ".%s", number,
			 endings[kind]);

	if (kind == SPOOL_CLAIMED)
		snprintf(name + n, NAME - (size_t)n, "%020" PRIu64, other);
	return name;
}

static struct spool_name parse(const char *name)
{
	const char *end = name + strlen(name), *at;
	struct spool_name parsed = { SPOOL_OTHER, 0, 0 };
	char again[NAME];

	at = seam_text_number(name, end, 10, &parsed.number);
	if (!at || *at++ != '.')
		return parsed;
	for (int k = SPOOL_BATCH; k <= SPOOL_PART; k++) {
		size_t n = strlen(endings[k]);

		if (strncmp(at, endings[k], n) == 0)
			parsed.kind = (enum spool_kind)k;
	}
	if (parsed.kind == SPOOL_CLAIMED &&
	    !seam_text_number(at + strlen(endings[SPOOL_CLAIMED]), end, 10,
			      &parsed.other))
		parsed.kind = SPOOL_OTHER;
	/* only names that this file makes */
	if (parsed.kind != SPOOL_OTHER &&
	    strcmp(name_of(again, parsed.kind, parsed.number, parsed.other),
		   name) != 0)
		parsed.kind = SPOOL_OTHER;
	return parsed;
}

static uint64_t blocks(uint64_t n_bytes)
{
	return (n_bytes + BLOCK - 1) / BLOCK * BLOCK;
}

/* ---- the folder ---- */

/* Each folder of @path that is not there.  0 or -errno. */
static int make_folders(const char *path)
{
	char part[PATH_MAX];
	size_t n = strlen(path);

	if (n >= sizeof(part))
		return -ENAMETOOLONG;
	memcpy(part, path, n + 1);
	for (size_t i = 1; i <= n; i++) {
		char was = part[i];

		if (was != '/' && was)
			continue;
		part[i] = 0;
		if (mkdir(part, 0700) < 0 && errno != EEXIST)
			return -errno;
		part[i] = was;
	}
	return 0;
}

int seam_spool_folder(const char *path, struct seam_err *err)
{
	int r = make_folders(path);
	int folder = r < 0 ? r : open(path, O_RDONLY | O_DIRECTORY |
				      O_NOFOLLOW | O_CLOEXEC);

	if (folder == -1)
		r = -errno;
	return r < 0 ? seam_err_set(err, r, "cannot use folder '%s': %s", path,
				    strerror(-r)) : folder;
}

int seam_spool_lock(int folder, const char *name, struct seam_err *err)
{
	int fd = openat(folder, name, O_RDWR | O_CREAT | O_NOFOLLOW |
			O_NONBLOCK | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return seam_err_errno(err, "cannot open '%s'", name);
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	r = errno == EWOULDBLOCK ? -EAGAIN : -errno;
	close(fd);
	return seam_err_set(err, r, "cannot lock '%s': %s", name,
			    r == -EAGAIN ? "another process has it" :
			    strerror(-r));
}

/* Write @bytes as file @to by way of @part, which stays after a failure. */
static int write_whole(int folder, struct seam_bytes bytes, const char *part,
		       const char *to, struct seam_err *err)
{
	int fd = openat(folder, part, O_WRONLY | O_CREAT | O_TRUNC |
			O_NOFOLLOW | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return seam_err_errno(err, "cannot create '%s'", part);
	r = seam_file_write_at(fd, bytes.data, bytes.size, 0, part, err);
	if (r == 0 && fdatasync(fd) < 0)
		r = seam_err_errno(err, "cannot write '%s'", part);
	close(fd);
	if (r == 0 && renameat(folder, part, folder, to) < 0)
		r = seam_err_errno(err, "cannot rename '%s'", part);
	return r;
}

/* ---- one file ---- */

/* 0; -ENOENT: it is not there any more; -EAGAIN: another process has it. */
static int lock_item(struct seam_spool_item *item, int folder, uint64_t number,
		     struct seam_err *err)
{
	char name[NAME], gone[NAME];
	struct stat st;

	*item = (struct seam_spool_item) { folder, -1, number, 0 };
	name_of(name, SPOOL_BATCH, number, 0);
	item->lock = seam_file_open_fd(folder, name, O_NOFOLLOW, NULL);
	if (item->lock == -ENOENT)
		return item->lock;
	if (item->lock < 0)
		return seam_err_set(err, item->lock, "cannot open '%s': %s",
				    name, strerror(-item->lock));
	if (flock(item->lock, LOCK_EX | LOCK_NB) < 0 ||
	    fstat(item->lock, &st) < 0) {
		int r = errno == EWOULDBLOCK ? -EAGAIN : -errno;

		seam_spool_release(item);
		return seam_err_set(err, r, "cannot lock '%s': %s", name,
				    strerror(-r));
	}
	item->size_bytes = (uint64_t)st.st_size;
	if (st.st_nlink && faccessat(folder, name_of(gone, SPOOL_GONE, number,
						     0), F_OK, 0) < 0)
		return 0;
	/* removed meanwhile; or its note was written, and then we were killed */
	unlinkat(folder, name, 0);
	seam_spool_release(item);
	return -ENOENT;
}

void seam_spool_release(struct seam_spool_item *item)
{
	seam_file_close_fd(item->lock);
	item->lock = -1;
}

int seam_spool_sent(struct seam_spool_item *item, struct seam_err *err)
{
	char name[NAME];
	int r = 0;

	name_of(name, SPOOL_BATCH, item->number, 0);
	if (unlinkat(item->folder, name, 0) < 0 && errno != ENOENT)
		r = seam_err_errno(err, "cannot remove '%s'", name);
	seam_spool_release(item);
	return r;
}

int seam_spool_refused(struct seam_spool_item *item, struct seam_bytes note,
		       struct seam_err *err)
{
	char part[NAME], gone[NAME];
	/* not "N.part", which is of the process that writes */
	int r;

	snprintf(part, sizeof(part), "%020" PRIu64 ".note", item->number);
	r = write_whole(item->folder, note, part,
			name_of(gone, SPOOL_GONE, item->number, 0), err);
	if (r == 0)
		return seam_spool_sent(item, err);
	unlinkat(item->folder, part, 0);
	return r;
}

/* ---- what there is ---- */

struct spool_scan {
	int (*entry)(void *context, const struct spool_name *name,
		     uint64_t n_bytes);
	void *context;
};

static int scan_entry(void *context, const struct seam_walk_entry *entry)
{
	const struct spool_scan *scan = context;
	struct spool_name name = parse(entry->name);

	return S_ISREG(entry->st.st_mode) && name.kind != SPOOL_OTHER ?
	       scan->entry(scan->context, &name,
			   (uint64_t)entry->st.st_size) :
	       S_ISDIR(entry->st.st_mode) ? SEAM_WALK_SKIP : SEAM_WALK_ON;
}

static int scan(int folder, int (*entry)(void *context,
					 const struct spool_name *name,
					 uint64_t n_bytes), void *context)
{
	struct spool_scan scan = { entry, context };

	return seam_walk(folder, 1, scan_entry, &scan);
}

static int find_oldest(void *context, const struct spool_name *name,
		       uint64_t n_bytes)
{
	uint64_t *oldest = context;

	(void)n_bytes;
	if (name->kind == SPOOL_BATCH && name->number < *oldest)
		*oldest = name->number;
	return 0;
}

int seam_spool_take(struct seam_spool_item *item, int folder,
		    struct seam_err *err)
{
	int r;

	do {
		uint64_t oldest = UINT64_MAX;

		*item = (struct seam_spool_item) { folder, -1, 0, 0 };
		r = scan(folder, find_oldest, &oldest);
		if (r < 0)
			return seam_err_set(err, r, "cannot list the spool: %s",
					    strerror(-r));
		if (oldest == UINT64_MAX)
			return -ENOENT;
		r = lock_item(item, folder, oldest, err);
	} while (r == -ENOENT);
	return r;
}

struct spool_counts {
	uint64_t n_files, n_bytes, n_notes;
};

static int count(void *context, const struct spool_name *name,
		 uint64_t n_bytes)
{
	struct spool_counts *c = context;

	c->n_files += name->kind == SPOOL_BATCH;
	c->n_bytes += name->kind == SPOOL_BATCH ? n_bytes : 0;
	c->n_notes += name->kind == SPOOL_GONE;
	return 0;
}

int seam_spool_count(int folder, uint64_t *n_files, uint64_t *n_bytes,
		     uint64_t *n_notes)
{
	struct spool_counts c = { 0, 0, 0 };
	int r = scan(folder, count, &c);

	*n_files = c.n_files;
	*n_bytes = c.n_bytes;
	*n_notes = c.n_notes;
	return r;
}

/* ---- the end that writes ---- */

struct spool_names {
	SEAM_ARRAY(struct spool_name) items;
	SEAM_ARRAY(uint64_t) sizes;
};

static int add_name(void *context, const struct spool_name *name,
		    uint64_t n_bytes)
{
	struct spool_names *names = context;

	return SEAM_ARRAY_ADD(&names->items, *name) &&
	       SEAM_ARRAY_ADD(&names->sizes, n_bytes) ? 0 : -ENOMEM;
}

static bool has_part(int folder, uint64_t number)
{
	char name[NAME];

	return faccessat(folder, name_of(name, SPOOL_PART, number, 0), F_OK,
			 AT_SYMLINK_NOFOLLOW) == 0;
}

/* A note that file M may have: it has, unless M was still being written. */
static void settle_note(int folder, const struct spool_name *name)
{
	char claimed[NAME], gone[NAME];

	name_of(claimed, SPOOL_CLAIMED, name->number, name->other);
	name_of(gone, SPOOL_GONE, name->number, 0);
	if (has_part(folder, name->other))
		renameat(folder, claimed, folder, gone);
	else
		unlinkat(folder, claimed, 0);
}

static int by_number(const void *a, const void *b)
{
	const struct seam_spool_file *x = a, *y = b;

	return SEAM_COMPARE(x->number, y->number);
}

/* First the notes, which need to know which files were being written. */
static int put_in_order(struct seam_spool *s)
{
	struct spool_names names = { { 0 }, { 0 } };
	char text[NAME];
	int r = scan(s->folder, add_name, &names);

	for (size_t i = 0; r == 0 && i < names.items.n; i++)
		if (names.items.items[i].kind == SPOOL_CLAIMED)
			settle_note(s->folder, &names.items.items[i]);
	for (size_t i = 0; r == 0 && i < names.items.n; i++) {
		const struct spool_name *name = &names.items.items[i];

		if (name->number >= s->next)
			s->next = name->number + 1;
		if (name->other >= s->next)
			s->next = name->other + 1;
		if (name->kind == SPOOL_PART)
			unlinkat(s->folder, name_of(text, SPOOL_PART,
						    name->number, 0), 0);
		if (name->kind != SPOOL_BATCH)
			continue;
		s->n_bytes += blocks(names.sizes.items[i]);
		if (!SEAM_ARRAY_ADD(&s->files, (struct seam_spool_file) {
				name->number, blocks(names.sizes.items[i]) }))
			r = -ENOMEM;
	}
	SEAM_ARRAY_SORT(&s->files, by_number);
	free(names.items.items);
	free(names.sizes.items);
	return r;
}

int seam_spool_open(struct seam_spool *s, const char *path, uint64_t max_bytes,
		    struct seam_err *err)
{
	int r;

	*s = (struct seam_spool) { .lock = -1, .next = 1,
				   .max_bytes = max_bytes };
	s->folder = seam_spool_folder(path, err);
	if (s->folder < 0)
		return s->folder;
	s->lock = seam_spool_lock(s->folder, WRITER_LOCK, err);
	r = s->lock < 0 ? s->lock : put_in_order(s);
	if (r == -EAGAIN)
		r = seam_err_set(err, -EBUSY, "another agent uses the spool "
				 "'%s': end it, or give this one another with "
				 "--spool", path);
	else if (r < 0)
		r = seam_err_add(err, r, "cannot use the spool '%s'", path);
	if (r < 0)
		seam_spool_close(s);
	return r;
}

void seam_spool_close(struct seam_spool *s)
{
	seam_file_close_fd(s->lock);
	seam_file_close_fd(s->folder);
	free(s->files.items);
	free(s->notes.items);
	*s = (struct seam_spool) { .folder = -1, .lock = -1 };
}

static int find_notes(void *context, const struct spool_name *name,
		      uint64_t n_bytes)
{
	struct seam_spool *s = context;

	(void)n_bytes;
	return name->kind != SPOOL_GONE ||
	       SEAM_ARRAY_ADD(&s->notes, name->number) ? 0 : -ENOMEM;
}

int seam_spool_notes(struct seam_spool *s,
		     int (*take)(void *context, struct seam_bytes note),
		     void *context, struct seam_err *err)
{
	char name[NAME];
	int r;

	s->notes.n = 0;
	r = scan(s->folder, find_notes, s);
	for (size_t i = 0; r == 0 && i < s->notes.n; i++) {
		struct seam_file file = { 0 };

		r = seam_file_read(&file, s->folder,
				   name_of(name, SPOOL_GONE, s->notes.items[i],
					   0), SEAM_SPOOL_MAX_FILE, err);
		if (r == 0)
			r = take(context, file.bytes);
		seam_file_close(&file);
	}
	if (r < 0)
		s->notes.n = 0;
	return r;
}

/* The notes get the name of the file that will have them. */
static void claim_notes(struct seam_spool *s)
{
	char gone[NAME], claimed[NAME], batch[NAME];

	for (size_t i = 0; i < s->notes.n; i++) {
		uint64_t number = s->notes.items[i];

		/* its file, of a process that was killed after the note */
		unlinkat(s->folder, name_of(batch, SPOOL_BATCH, number, 0), 0);
		renameat(s->folder, name_of(gone, SPOOL_GONE, number, 0),
			 s->folder, name_of(claimed, SPOOL_CLAIMED, number,
					    s->next));
	}
}

/* File @s->next is there, or not: then they wait for another. */
static void settle_notes(struct seam_spool *s, bool is_there)
{
	char gone[NAME], claimed[NAME];

	for (size_t i = 0; i < s->notes.n; i++) {
		name_of(claimed, SPOOL_CLAIMED, s->notes.items[i], s->next);
		name_of(gone, SPOOL_GONE, s->notes.items[i], 0);
		if (is_there)
			unlinkat(s->folder, claimed, 0);
		else
			renameat(s->folder, claimed, s->folder, gone);
	}
	s->notes.n = 0;
}

/* Drop file @i of the list: 0, -ENOENT, -EAGAIN, or -errno. */
static int drop(struct seam_spool *s, size_t i, seam_spool_note *make_note,
		void *context, struct seam_err *err)
{
	struct seam_spool_item item;
	struct seam_bytes note = { 0 };
	struct seam_file file = { 0 };
	int r = lock_item(&item, s->folder, s->files.items[i].number, err);

	if (r < 0)
		return r;
	r = seam_file_read_fd(&file, item.lock, SEAM_SPOOL_MAX_FILE, err);
	if (r == 0)
		r = make_note(context, file.bytes, &note);
	if (r == 0)
		r = seam_spool_refused(&item, note, err);
	free((void *)(uintptr_t)note.data);
	seam_file_close(&file);
	seam_spool_release(&item);
	return r;
}

static void forget(struct seam_spool *s, size_t i)
{
	s->n_bytes -= s->files.items[i].n_bytes;
	s->files.n--;
	memmove(s->files.items + i, s->files.items + i + 1,
		(s->files.n - i) * sizeof(*s->files.items));
}

static bool is_there(const struct seam_spool *s, size_t i)
{
	char name[NAME];

	return faccessat(s->folder, name_of(name, SPOOL_BATCH,
					    s->files.items[i].number, 0), F_OK,
			 AT_SYMLINK_NOFOLLOW) == 0;
}

/* Of files that were sent meanwhile the list does not know yet. */
static int make_room(struct seam_spool *s, seam_spool_note *make_note,
		     void *context, struct seam_err *err)
{
	int r = 0;

	while (s->n_bytes > s->max_bytes && s->files.n && !is_there(s, 0))
		forget(s, 0);
	for (size_t i = 1; s->n_bytes > s->max_bytes && i < s->files.n;) {
		r = drop(s, i, make_note, context, err);
		if (r == -EAGAIN)
			i++;
		else if (r < 0 && r != -ENOENT)
			return r;
		else
			forget(s, i);
	}
	return 0;
}

int seam_spool_put(struct seam_spool *s, struct seam_bytes file,
		   seam_spool_note *make_note, void *context,
		   struct seam_err *err)
{
	char part[NAME], batch[NAME];
	int fd, r;

	if (!SEAM_ARRAY_RESERVE(&s->files, 1))
		return seam_err_no_memory(err);
	name_of(part, SPOOL_PART, s->next, 0);
	fd = openat(s->folder, part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
		    0600);
	if (fd < 0)
		return seam_err_errno(err, "cannot create '%s'", part);
	close(fd);
	/* while there is a part, the notes that it claims are not in a file */
	claim_notes(s);
	r = write_whole(s->folder, file, part,
			name_of(batch, SPOOL_BATCH, s->next, 0), err);
	settle_notes(s, r == 0);
	if (r < 0) {
		unlinkat(s->folder, part, 0);
		return r;
	}
	s->files.items[s->files.n++] = (struct seam_spool_file) {
		s->next++, blocks(file.size) };
	s->n_bytes += blocks(file.size);
	return make_room(s, make_note, context, err);
}
