/* SPDX-License-Identifier: MIT */
/*
 * patch_probe.c - libseam-fdr without a recorder: what was recorded, as text
 *
 * A library that is preloaded, or linked with a static program.  Threads record
 * into private memory; at the end, in each process, the file PATCH_PROBE.PID
 * has the functions, how often each record was made, and the notes that the
 * recorder's user would have got.  The recorder's side of the link is replaced
 * (--wrap).  With PATCH_PROBE_RAISES that signal comes whenever the list of
 * images is read, where it has a handler.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "traced/fdr/fdr_process.h"
#include "traced/fdr/record/fdr_thread.h"
#include "traced/fdr/sleds/function_names.h"

#include "area_walk.h"
#include "source_local.h"

enum {
	MAX_ID = 100000, N_KINDS = SEAM_XRAY_TYPED + 1,
	PAGE = 4096, RING_BYTES = 16 << 20,
};

int __wrap_seam_link_client_note(const char *address, const char *text);
int __wrap_seam_fdr_link_connect(const char *address, int timeout_ms);
int __wrap_seam_link_client_claim(struct seam_link_client *c, uint32_t i,
				  uint32_t tid, struct seam_ring_claim *claim);
int __real_seam_fdr_images_with(struct seam_fdr_images *images,
				int (*work)(struct seam_fdr_images *images,
					    bool has_changed, void *context),
				void *context);
int __wrap_seam_fdr_images_with(struct seam_fdr_images *images,
				int (*work)(struct seam_fdr_images *images,
					    bool has_changed, void *context),
				void *context);
int __real_seam_fdr_thread_init(const struct seam_fdr_source *source);
int __wrap_seam_fdr_thread_init(const struct seam_fdr_source *source);

static char notes[1 << 16];
static size_t n_notes;
static uint8_t *ring;

int __wrap_seam_link_client_note(const char *address, const char *text)
{
	(void)address;
	n_notes += (size_t)snprintf(notes + n_notes, sizeof(notes) - n_notes,
				    "note %s\n", text);
	return 0;
}

int __wrap_seam_fdr_link_connect(const char *address, int timeout_ms)
{
	(void)address;
	(void)timeout_ms;
	if (getenv("PATCH_PROBE_CONNECTS"))
		close(socket(AF_UNIX, SOCK_STREAM, 0));
	return 0;
}

/* A ring that is large enough for all that is announced. */
int __wrap_seam_link_client_claim(struct seam_link_client *c, uint32_t i,
				  uint32_t tid, struct seam_ring_claim *claim)
{
	ring = mmap(NULL, PAGE + RING_BYTES, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	(void)c;
	(void)i;
	(void)tid;
	if (ring == MAP_FAILED)
		return -ENOSPC;
	seam_ring_producer_init(&claim->ring, ring, PAGE, RING_BYTES);
	return 0;
}

int __wrap_seam_fdr_images_with(struct seam_fdr_images *images,
				int (*work)(struct seam_fdr_images *images,
					    bool has_changed, void *context),
				void *context)
{
	const char *text = getenv("PATCH_PROBE_RAISES");
	int number = text ? atoi(text) : 0;
	struct sigaction action;

	if (number && sigaction(number, NULL, &action) == 0 &&
	    action.sa_handler != SIG_DFL)
		raise(number);
	return __real_seam_fdr_images_with(images, work, context);
}

int __wrap_seam_fdr_thread_init(const struct seam_fdr_source *source)
{
	(void)source;
	return __real_seam_fdr_thread_init(&source_local);
}

/* ---- at the end ---- */

static uint64_t counts[MAX_ID][N_KINDS];

struct output {
	FILE *file;
	const struct seam_fdr_list *list;
	uint64_t bias;
};

static int put_function(void *context, uint32_t function, const char *name)
{
	const struct output *o = context;
	const struct seam_fdr_functions *f = &o->list->functions;

	fprintf(o->file, "function %u %lx %s\n", f->first_id + function,
		f->sleds.functions.items[function] - o->bias, name);
	return 0;
}

static int put_images(struct seam_fdr_images *images, bool has_changed,
		      void *context)
{
	struct output *o = context;

	(void)has_changed;
	for (size_t i = 0; i < images->list.n; i++) {
		const struct seam_fdr_image *image = images->list.items[i];

		for (size_t j = 0; j < image->n_lists; j++) {
			const struct seam_fdr_sleds *s =
				&image->lists[j].functions.sleds;

			o->list = &image->lists[j];
			o->bias = image->bias;
			fprintf(o->file, "image %u %zu %zu %zu %s\n",
				o->list->functions.first_id, s->functions.n,
				s->list.n, s->n_refused, image->path);
			seam_fdr_names_each(image, s->functions.items,
					    s->functions.n, put_function, o);
		}
	}
	return 0;
}

/* "announced ID ADDRESS" for each function. */
static void put_announced(FILE *file)
{
	const uint8_t *data = ring + PAGE;
	const struct seam_ring_control *control = (const void *)ring;
	uint64_t head = ring ? atomic_load(&control->data_head) : 0;
	struct seam_xray_announcement a;
	struct seam_ring_header header;

	for (uint64_t at = 0; at < head; at += header.size) {
		memcpy(&header, data + at, sizeof(header));
		if (seam_xray_read_announcement(
				(struct seam_bytes) { data + at + 8,
						      header.size - 8u }, &a))
			fprintf(file, "bad announcement\n");
		else if (a.kind == SEAM_XRAY_ANNOUNCED_FUNCTIONS)
			for (uint32_t i = 0; i < a.addresses.n; i++)
				fprintf(file, "announced %u %lx\n",
					a.addresses.first_id + i,
					a.addresses.link_addresses[i]);
	}
}

static void count_area(FILE *file, const struct local_area *area)
{
	struct walk w = {
		.area = local_bytes_of(area), .mask = area->size - 1,
		.end = atomic_load(&area->cursor) & ((UINT64_C(1) << 56) - 1),
	};
	struct walk_record r;

	while (walk_next(&w, &r)) {
		if (w.pid != (uint32_t)getpid())
			continue;
		if (r.function < MAX_ID)
			counts[r.function][r.kind]++;
		if (r.kind == SEAM_XRAY_ARGUMENT)
			fprintf(file, "argument %lu\n", r.value);
	}
	if (w.problem)
		fprintf(file, "bad %s\n", w.problem);
	if (atomic_load(&area->n_lost))
		fprintf(file, "lost %lu\n", atomic_load(&area->n_lost));
}

/* No code is left writable. */
static void put_rights(FILE *file)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];

	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, " rwx"))
			fprintf(file, "bad rights: %s", line);
	if (maps)
		fclose(maps);
}

__attribute__((destructor))
static void put_all(void)
{
	const char *prefix = getenv("PATCH_PROBE");
	char path[4096];
	struct output o = { NULL };

	if (!prefix)
		return;
	snprintf(path, sizeof(path), "%s.%d", prefix, getpid());
	o.file = fopen(path, "w");
	if (!o.file)
		return;
	seam_fdr_end(NULL);
	fputs(notes, o.file);
	if (seam_fdr_lock()) {
		seam_fdr_images_with(&seam_fdr_process.images, put_images, &o);
		seam_fdr_unlock();
	}
	put_announced(o.file);
	put_rights(o.file);
	for (const struct local_area *a =
		     atomic_load(&local_areas); a; a = a->next)
		count_area(o.file, a);
	for (int i = 0; i < MAX_ID; i++)
		for (int k = 0; k < N_KINDS; k++)
			if (counts[i][k])
				fprintf(o.file, "count %d %d %lu\n", i, k,
					counts[i][k]);
	fclose(o.file);
}
