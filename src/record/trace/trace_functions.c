/* SPDX-License-Identifier: MIT */
/* trace_functions.c - keep announcements, open images; trace_functions.h */
#include "record/trace/trace_functions.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/hash.h"
#include "record/trace/trace_image.h"

enum { MAX_ANCESTORS = 16 };

void seam_trace_functions_init(struct seam_trace_functions *f)
{
	*f = (struct seam_trace_functions) {
		.helper = seam_helper_new(NULL),
	};
}

/* ---- programs ---- */

static struct seam_trace_announced *
find(const struct seam_trace_functions *f,
     const struct seam_trace_program *program)
{
	uint32_t i = SEAM_INDEX_FIND(&f->by_pid, seam_hash_u64(program->pid),
		k, f->programs.items[k]->program.since_ns ==
		   program->since_ns &&
		   f->programs.items[k]->program.pid == program->pid);

	return i == SEAM_NONE ? NULL : f->programs.items[i];
}

/* The first of a connection to announce: it was there before its forks. */
static struct seam_trace_announced *
find_first(const struct seam_trace_functions *f, uint64_t since_ns)
{
	uint32_t i = SEAM_INDEX_FIND(&f->by_since, seam_hash_u64(since_ns), k,
		f->programs.items[k]->program.since_ns == since_ns);

	return i == SEAM_NONE ? NULL : f->programs.items[i];
}

static bool has_announced(const struct seam_trace_functions *f, uint32_t pid)
{
	return SEAM_INDEX_FIND(&f->by_pid, seam_hash_u64(pid), k,
			f->programs.items[k]->program.pid == pid) != SEAM_NONE;
}

/* The last fork that made process @pid; NULL: not known. */
static struct seam_trace_fork *find_fork(const struct seam_trace_functions *f,
					 uint32_t pid)
{
	uint32_t i = SEAM_INDEX_FIND(&f->by_child, seam_hash_u64(pid), k,
				     f->forks.items[k].pid == pid);

	return i == SEAM_NONE ? NULL : &f->forks.items[i];
}

void seam_trace_functions_fork(struct seam_trace_functions *f, uint32_t pid,
			       uint32_t parent)
{
	struct seam_trace_fork *fork = find_fork(f, pid);

	if (fork)
		fork->parent = parent;
	/* without it, the child has what the first of its connection has */
	else if (f->forks.n < SEAM_TRACE_MAX_FORKS &&
		 (has_announced(f, parent) || find_fork(f, parent)))
		(void)SEAM_INDEX_APPEND(&f->by_child, seam_hash_u64(pid),
					&f->forks,
					(struct seam_trace_fork) { pid,
								   parent });
}

/* What the nearest process has that @program was forked from. */
static const struct seam_trace_announced *
find_ancestor(const struct seam_trace_functions *f,
	      const struct seam_trace_program *program)
{
	struct seam_trace_program p = *program;
	const struct seam_trace_announced *found = NULL;
	const struct seam_trace_fork *fork = find_fork(f, p.pid);

	for (int n = 0; !found && fork && n < MAX_ANCESTORS; n++) {
		p.pid = fork->parent;
		found = find(f, &p);
		fork = find_fork(f, p.pid);
	}
	return found ? found : find_first(f, p.since_ns);
}

const struct seam_trace_announced *
seam_trace_functions_of(const struct seam_trace_functions *f,
			const struct seam_trace_program *program)
{
	const struct seam_trace_announced *own = find(f, program);

	return own ? own : find_ancestor(f, program);
}

static struct seam_trace_announced *
find_or_make(struct seam_trace_functions *f,
	     const struct seam_trace_program *program, uid_t user)
{
	struct seam_trace_announced *p = find(f, program);
	uint64_t since_ns = program->since_ns;
	uint32_t i;

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->functions = f;
	p->program = *program;
	p->user = user;
	i = SEAM_INDEX_APPEND(&f->by_pid, seam_hash_u64(program->pid),
			      &f->programs, p);
	if (i == SEAM_NONE)
		free(p);
	else if (!find_first(f, since_ns))
		/* without memory its children have no names */
		(void)seam_index_add(&f->by_since, seam_hash_u64(since_ns), i);
	return i == SEAM_NONE ? NULL : p;
}

/* ---- files ---- */

int seam_trace_keep_file(struct seam_trace_functions *f,
			 struct seam_trace_file *file)
{
	uint64_t hash = seam_hash_add(seam_hash_u64(file->inode),
				      file->device);
	uint32_t i = SEAM_INDEX_FIND(&f->by_inode, hash, k,
				     f->files.items[k].inode == file->inode &&
				     f->files.items[k].device == file->device);

	if (i != SEAM_NONE)
		return f->files.items[i].fd;
	if (f->files.n >= SEAM_TRACE_MAX_FILES)
		return -EMFILE;
	i = SEAM_INDEX_APPEND(&f->by_inode, hash, &f->files, *file);
	if (i == SEAM_NONE)
		return -ENOMEM;
	file->fd = -1;
	return f->files.items[i].fd;
}

/* ---- what they say ---- */

/* Whether @bytes more may be kept; they are counted then. */
static bool has_room(struct seam_trace_functions *f, size_t bytes)
{
	if (bytes > SEAM_TRACE_MAX_ANNOUNCED_BYTES - f->n_bytes)
		return false;
	f->n_bytes += bytes;
	return true;
}

struct seam_trace_image *
seam_trace_find_image(const struct seam_trace_announced *p, uint32_t image)
{
	uint32_t i = SEAM_INDEX_FIND(&p->by_image, seam_hash_u64(image), k,
				     p->images.items[k].image == image);

	return i == SEAM_NONE ? NULL : &p->images.items[i];
}

static bool is_same_image(const struct seam_trace_image *a,
			  const struct seam_trace_image *b)
{
	return a->first_id == b->first_id &&
	       a->n_functions == b->n_functions && a->bias == b->bias &&
	       a->build_id_bytes == b->build_id_bytes &&
	       a->entries_only == b->entries_only &&
	       memcmp(a->build_id, b->build_id, sizeof(a->build_id)) == 0 &&
	       strcmp(a->path, b->path) == 0;
}

static bool add_image(struct seam_trace_functions *f,
		      struct seam_trace_announced *p,
		      const struct seam_xray_image *image)
{
	struct seam_trace_image kept = {
		.image = image->image, .first_id = image->first_id,
		.n_functions = image->n_functions, .bias = image->bias,
		.fd = -1, .debug_fd = -1, .code = -ENOENT,
		.build_id_bytes = image->build_id_bytes,
		.entries_only = image->entries_only,
	};

	if (seam_trace_find_image(p, image->image) ||
	    p->images.n >= SEAM_TRACE_MAX_IMAGES ||
	    !has_room(f, sizeof(kept) + strlen(image->path) + 1))
		return false;
	memcpy(kept.build_id, image->build_id, sizeof(kept.build_id));
	kept.path = strdup(image->path);
	if (kept.path &&
	    SEAM_INDEX_APPEND(&p->by_image, seam_hash_u64(kept.image),
			      &p->images, kept) != SEAM_NONE)
		return true;
	free(kept.path);
	return false;
}

/* A forked child has its parent's images, and may end soon. */
static bool take_from_parent(struct seam_trace_functions *f,
			     const struct seam_trace_announced *p,
			     struct seam_trace_image *image)
{
	const struct seam_trace_announced *parent =
		find_ancestor(f, &p->program);
	const struct seam_trace_image *same = parent && parent != p ?
		seam_trace_find_image(parent, image->image) : NULL;

	if (!same || same->fd < 0 || !is_same_image(same, image))
		return false;
	image->fd = same->fd;
	image->debug_fd = same->debug_fd;
	image->code = 0;
	return true;
}

/* The first address of an image says which mapping is its. */
static void open_image(struct seam_trace_functions *f,
		       struct seam_trace_announced *p,
		       const struct seam_trace_range *range)
{
	struct seam_trace_image *image = seam_trace_find_image(p, range->image);

	if (!image || image->is_opening || image->fd >= 0 || !f->helper ||
	    take_from_parent(f, p, image))
		return;
	image->is_opening = true;
	if (seam_trace_image_open(f->helper, p, image,
				  image->bias + range->addresses[0]) < 0)
		image->is_opening = false;
}

static bool add_range(struct seam_trace_functions *f,
		      struct seam_trace_announced *p,
		      const struct seam_xray_addresses *a)
{
	size_t bytes = a->n * sizeof(*a->link_addresses);
	struct seam_trace_range range = {
		.image = a->image, .first_id = a->first_id, .n = a->n,
	};

	if (!has_room(f, sizeof(range) + bytes))
		return false;
	range.addresses = malloc(bytes);
	if (!range.addresses || !SEAM_ARRAY_ADD(&p->ranges, range)) {
		free(range.addresses);
		return false;
	}
	memcpy(range.addresses, a->link_addresses, bytes);
	open_image(f, p, &range);
	return true;
}

static bool add_name(struct seam_trace_functions *f,
		     struct seam_trace_names *names, size_t max,
		     const struct seam_xray_named *named)
{
	struct seam_trace_name kept = { .number = named->number };

	if (names->list.n >= max ||
	    !has_room(f, sizeof(kept) + strlen(named->name) + 1))
		return false;
	kept.name = strdup(named->name);
	if (kept.name && SEAM_ARRAY_ADD(&names->list, kept))
		return true;
	free(kept.name);
	return false;
}

static void free_names(struct seam_trace_names *names)
{
	for (size_t i = 0; i < names->list.n; i++)
		free(names->list.items[i].name);
	free(names->list.items);
}

static bool add_to(struct seam_trace_functions *f,
		   struct seam_trace_announced *p,
		   const struct seam_xray_announcement *a)
{
	switch (a->kind) {
	case SEAM_XRAY_ANNOUNCED_IMAGE:
		return add_image(f, p, &a->image);
	case SEAM_XRAY_ANNOUNCED_FUNCTIONS:
		return add_range(f, p, &a->addresses);
	case SEAM_XRAY_ANNOUNCED_EVENT_TYPE:
		return add_name(f, &p->event_types, SEAM_TRACE_MAX_EVENT_TYPES,
				&a->named);
	case SEAM_XRAY_ANNOUNCED_NAME:
		/* their number is limited by their bytes alone */
		return add_name(f, &p->names, SIZE_MAX, &a->named);
	default:
		return true;
	}
}

void seam_trace_functions_add(struct seam_trace_functions *f,
			      const struct seam_trace_program *program,
			      uid_t user,
			      const struct seam_xray_announcement *a)
{
	struct seam_trace_announced *p = find_or_make(f, program, user);

	f->n_left_out += !p || !add_to(f, p, a);
}

bool seam_trace_functions_collect(struct seam_trace_functions *f)
{
	return f->helper && seam_helper_collect(f->helper);
}

static void free_program(struct seam_trace_announced *p)
{
	for (size_t i = 0; i < p->images.n; i++)
		free(p->images.items[i].path);
	for (size_t i = 0; i < p->ranges.n; i++)
		free(p->ranges.items[i].addresses);
	free_names(&p->event_types);
	free_names(&p->names);
	free(p->images.items);
	seam_index_fini(&p->by_image);
	free(p->ranges.items);
	free(p);
}

void seam_trace_functions_fini(struct seam_trace_functions *f)
{
	for (size_t i = 0; i < f->programs.n; i++)
		free_program(f->programs.items[i]);
	for (size_t i = 0; i < f->files.n; i++)
		seam_helper_close(f->helper, SEAM_HELPER_NO_USER,
				  f->files.items[i].fd);
	seam_helper_free(f->helper);
	free(f->programs.items);
	free(f->forks.items);
	free(f->files.items);
	seam_index_fini(&f->by_pid);
	seam_index_fini(&f->by_child);
	seam_index_fini(&f->by_since);
	seam_index_fini(&f->by_inode);
	*f = (struct seam_trace_functions) { 0 };
}
