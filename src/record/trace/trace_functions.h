/* SPDX-License-Identifier: MIT */
/*
 * trace_functions.h - what the ids in a log mean, as its program announced it
 *
 * Kept until the end, when the functions that were seen get their names.  A
 * forked child that has announced nothing has what its parent has, or what the
 * process has that connected (struct seam_trace_program, same since_ns).
 *
 * The file of an image is opened when it is announced, while the process still
 * runs: the one that it has mapped where the functions are, whatever the
 * announced path says (record/proc/mapped_file.h).  So a program cannot have us
 * read a file that it has not mapped itself.  Of one that has ended, it is the
 * file at the path, if it has the build id and the user may read it that the
 * process had when it connected; of a child, if everybody may.  A file that
 * many processes have is held open once; a forked child's images are its
 * parent's where both announce the same.
 *
 * Threads: one, the recorder's; files are opened in a helper.
 */
#ifndef SEAM_TRACE_FUNCTIONS_H
#define SEAM_TRACE_FUNCTIONS_H

#include "base/index.h"
#include "record/proc/helper.h"
#include "record/trace/trace_logs.h"
#include "wire/xray/xray_functions.h"

enum {
	/* of all programs; what comes after it is counted, and has no name */
	SEAM_TRACE_MAX_ANNOUNCED_BYTES = 256 << 20,
	SEAM_TRACE_MAX_IMAGES = 4096,	/* of a program */
	SEAM_TRACE_MAX_FILES = 1024,	/* held open, of all programs */
	SEAM_TRACE_MAX_EVENT_TYPES = 4096,	/* of a program */
	SEAM_TRACE_MAX_FORKS = 1 << 16,		/* of programs with functions */
};

/* An image, or the code that is in none (image 0). */
struct seam_trace_image {
	uint32_t image;
	uint32_t first_id, n_functions;
	uint64_t bias;
	char *path;		/* as announced, owned; not trusted */
	int fd;			/* of a seam_trace_file; -1: not open */
	int debug_fd;		/* likewise, of its debug file */
	int code;		/* -errno of opening it */
	bool is_opening;	/* a job has it */
	bool entries_only;	/* exits are not recorded */
	uint8_t build_id[SEAM_XRAY_BUILD_ID_BYTES];
	uint8_t build_id_bytes;
};

/* Addresses of functions with ids in a row. */
struct seam_trace_range {
	uint32_t image;
	uint32_t first_id, n;
	uint64_t *addresses;	/* owned */
};

struct seam_trace_name {
	uint32_t number;	/* of a type; the id of a function */
	char *name;		/* owned; not trusted */
};

struct seam_trace_names {
	SEAM_ARRAY(struct seam_trace_name) list;
};

/* The file of some images. */
struct seam_trace_file {
	dev_t device;
	ino_t inode;		/* not used again while the file is open */
	int fd;			/* owned */
};

struct seam_trace_functions;

/* All that one program has announced. */
struct seam_trace_announced {
	struct seam_trace_functions *functions;	/* that it is one of */
	struct seam_trace_program program;
	uid_t user;		/* when it connected; -1: not known */
	SEAM_ARRAY(struct seam_trace_image) images;
	struct seam_index by_image;	/* of images */
	SEAM_ARRAY(struct seam_trace_range) ranges;
	struct seam_trace_names event_types;	/* the last of a type counts */
	struct seam_trace_names names;		/* of functions in no image */
};

/* A process whose functions may be its parent's. */
struct seam_trace_fork { uint32_t pid, parent; };

struct seam_trace_functions {
	struct seam_helper *helper;	/* NULL: could not be started */
	SEAM_ARRAY(struct seam_trace_announced *) programs;
	struct seam_index by_pid;	/* of programs */
	struct seam_index by_since;	/* the first of each connection */
	SEAM_ARRAY(struct seam_trace_fork) forks;	/* one of a pid */
	struct seam_index by_child;	/* of forks */
	SEAM_ARRAY(struct seam_trace_file) files;
	struct seam_index by_inode;	/* of files */
	uint64_t n_bytes;
	uint64_t n_left_out;		/* announcements, beyond the limits */
};

/* Starts no thread yet. */
void seam_trace_functions_init(struct seam_trace_functions *f);

/* Keep announcements of images, functions, names and event types. */
void seam_trace_functions_add(struct seam_trace_functions *f,
			      const struct seam_trace_program *program,
			      uid_t user,
			      const struct seam_xray_announcement *a);

/* Process @pid was forked from @parent. */
void seam_trace_functions_fork(struct seam_trace_functions *f, uint32_t pid,
			       uint32_t parent);

/* What @program, or the one that it was forked from, has; NULL: nothing. */
const struct seam_trace_announced *
seam_trace_functions_of(const struct seam_trace_functions *f,
			const struct seam_trace_program *program);

/* The image of that number; NULL: @p has none. */
struct seam_trace_image *
seam_trace_find_image(const struct seam_trace_announced *p, uint32_t image);

/*
 * Keep @file: its fd is taken over and set to -1, unless the same file is open
 * already.  A descriptor to borrow; or -errno: -EMFILE where too many are open.
 */
int seam_trace_keep_file(struct seam_trace_functions *f,
			 struct seam_trace_file *file);

/* Collect what the helper has opened; returns whether it has more to do. */
bool seam_trace_functions_collect(struct seam_trace_functions *f);

/* Valid on a zeroed struct. */
void seam_trace_functions_fini(struct seam_trace_functions *f);

#endif /* SEAM_TRACE_FUNCTIONS_H */
