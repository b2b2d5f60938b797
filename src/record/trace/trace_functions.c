/* SPDX-License-Identifier: MIT */
/* trace_functions.c - keep announcements, open images; trace_functions.h */
#include "record/trace/trace_functions.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
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

static uint64_t hash_of(uint64_t since_ns)
{
	return seam_hash_u64(since_ns);
}

static struct seam_trace_announced *
find(const struct seam_trace_functions *f,
     const struct seam_trace_program *program)
{
	uint32_t i = SEAM_INDEX_FIND(&f->by_since, hash_of(program->since_ns),
		k, f->programs.items[k]->program.since_ns ==
		   program->since_ns &&
		   f->programs.items[k]->program.pid == program->pid);

	return i == SEAM_NONE ? NULL : f->programs.items[i];
}

/* The parent of @pid, by its last fork; 0: not known. */
static uint32_t parent_of(const struct seam_trace_functions *f, uint32_t pid)
{
	for (size_t i = f->forks.n; i-- > 0;)
		if (f->forks.items[i].pid == pid)
			return f->forks.items[i].parent;
	return 0;
}

static bool has_announced(const struct seam_trace_functions *f, uint32_t pid)
{
	for (size_t i = 0; i < f->programs.n; i++)
		if (f->programs.items[i]->program.pid == pid)
			return true;
	return false;
}

void seam_trace_functions_fork(struct seam_trace_functions *f, uint32_t pid,
			       uint32_t parent)
{
	/* without it, the child has what the first of its connection has */
	if (f->forks.n < SEAM_TRACE_MAX_FORKS &&
	    (has_announced(f, parent) || parent_of(f, parent)))
		(void)SEAM_ARRAY_ADD(&f->forks, (struct seam_trace_fork) {
			pid, parent });
}

const struct seam_trace_announced *
seam_trace_functions_of(const struct seam_trace_functions *f,
			const struct seam_trace_program *program)
{
	struct seam_trace_program p = *program;
	const struct seam_trace_announced *found = find(f, &p);
	uint32_t i;

	for (int n = 0; !found && p.pid && n < MAX_ANCESTORS; n++) {
		p.pid = parent_of(f, p.pid);
		found = find(f, &p);
	}
	if (found)
		return found;
	/* the first of its connection to announce was there before the fork */
	i = SEAM_INDEX_FIND(&f->by_since, hash_of(program->since_ns), k,
		f->programs.items[k]->program.since_ns == program->since_ns);
	return i == SEAM_NONE ? NULL : f->programs.items[i];
}

static struct seam_trace_announced *
find_or_make(struct seam_trace_functions *f,
	     const struct seam_trace_program *program)
{
	struct seam_trace_announced *p = find(f, program);

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->program = *program;
	if (SEAM_INDEX_APPEND(&f->by_since, hash_of(program->since_ns),
			      &f->programs, p) != SEAM_NONE)
		return p;
	free(p);
	return NULL;
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

static struct seam_trace_image *
find_image(struct seam_trace_announced *p, uint32_t image)
{
	for (size_t i = p->images.n; i-- > 0;)
		if (p->images.items[i].image == image)
			return &p->images.items[i];
	return NULL;
}

static bool add_image(struct seam_trace_functions *f,
		      struct seam_trace_announced *p,
		      const struct seam_xray_image *image)
{
	struct seam_trace_image kept = {
		.image = image->image, .first_id = image->first_id,
		.n_functions = image->n_functions, .bias = image->bias,
		.fd = -1, .code = -ENOENT,
		.build_id_bytes = image->build_id_bytes,
	};

	if (find_image(p, image->image) ||
	    f->n_images >= SEAM_TRACE_MAX_IMAGES ||
	    !has_room(f, sizeof(kept) + strlen(image->path) + 1))
		return false;
	memcpy(kept.build_id, image->build_id, sizeof(kept.build_id));
	kept.path = strdup(image->path);
	if (!kept.path || !SEAM_ARRAY_ADD(&p->images, kept)) {
		free(kept.path);
		return false;
	}
	f->n_images++;
	return true;
}

/* The first address of an image says which mapping is its. */
static void open_image(struct seam_trace_functions *f,
		       struct seam_trace_announced *p,
		       const struct seam_trace_range *range)
{
	struct seam_trace_image *image = find_image(p, range->image);

	if (!image || image->is_opening || image->fd >= 0 || !f->helper)
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

/* The last name of a type counts. */
static bool add_event_type(struct seam_trace_functions *f,
			   struct seam_trace_announced *p,
			   const struct seam_xray_event_type *t)
{
	struct seam_trace_event_type kept = { .type = t->type };

	if (p->event_types.n >= SEAM_TRACE_MAX_EVENT_TYPES ||
	    !has_room(f, sizeof(kept) + strlen(t->name) + 1))
		return false;
	kept.name = strdup(t->name);
	if (kept.name && SEAM_ARRAY_ADD(&p->event_types, kept))
		return true;
	free(kept.name);
	return false;
}

/* Their number is limited by their bytes alone. */
static bool add_name(struct seam_trace_functions *f,
		     struct seam_trace_announced *p,
		     const struct seam_xray_function_name *n)
{
	struct seam_trace_name kept = { .function = n->function };

	if (!has_room(f, sizeof(kept) + strlen(n->name) + 1))
		return false;
	kept.name = strdup(n->name);
	if (kept.name && SEAM_ARRAY_ADD(&p->names, kept))
		return true;
	free(kept.name);
	return false;
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
		return add_event_type(f, p, &a->event_type);
	case SEAM_XRAY_ANNOUNCED_NAME:
		return add_name(f, p, &a->name);
	default:
		return true;
	}
}

void seam_trace_functions_add(struct seam_trace_functions *f,
			      const struct seam_trace_program *program,
			      const struct seam_xray_announcement *a)
{
	struct seam_trace_announced *p = find_or_make(f, program);

	f->n_left_out += !p || !add_to(f, p, a);
}

bool seam_trace_functions_collect(struct seam_trace_functions *f)
{
	return f->helper && seam_helper_collect(f->helper);
}

static void free_program(struct seam_trace_announced *p)
{
	for (size_t i = 0; i < p->images.n; i++) {
		seam_file_close_fd(p->images.items[i].fd);
		free(p->images.items[i].path);
	}
	for (size_t i = 0; i < p->ranges.n; i++)
		free(p->ranges.items[i].addresses);
	for (size_t i = 0; i < p->event_types.n; i++)
		free(p->event_types.items[i].name);
	for (size_t i = 0; i < p->names.n; i++)
		free(p->names.items[i].name);
	free(p->images.items);
	free(p->ranges.items);
	free(p->event_types.items);
	free(p->names.items);
	free(p);
}

void seam_trace_functions_fini(struct seam_trace_functions *f)
{
	seam_helper_free(f->helper);
	for (size_t i = 0; i < f->programs.n; i++)
		free_program(f->programs.items[i]);
	free(f->programs.items);
	free(f->forks.items);
	seam_index_fini(&f->by_since);
	*f = (struct seam_trace_functions) { 0 };
}
