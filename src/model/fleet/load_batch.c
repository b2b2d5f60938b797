/* SPDX-License-Identifier: MIT */
/* load_batch.c - rows of batches to a profile; see load_batch.h */
#include "model/fleet/load_batch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"
#include "model/fleet/batch_parts.h"

struct batch_loader {
	struct seam_profile *profile;
	const struct seam_batch *batch;	/* that is being added */
	struct seam_batch_ids frames, stacks;	/* of this batch */
	struct seam_index by_process, by_thread;
	uint32_t last_thread;		/* of the row before */
	uint32_t missing;		/* frame: of what no batch has */
	uint64_t n_missing;		/* rows with such a stack */
	uint64_t base_ns;		/* UTC of time 0 */
};

static const char *text_of(const struct batch_loader *l, uint32_t string)
{
	return seam_strings_get(&l->batch->strings, string);
}

/* A string of the batch as one of the profile; SEAM_NONE: no memory. */
static uint32_t put(struct batch_loader *l, uint32_t string)
{
	return seam_strings_put(&l->profile->strings, text_of(l, string));
}

/* -- frames and stacks -------------------------------------------------- */

static enum seam_module_kind kind_of(const char *path, uint8_t layer)
{
	switch (layer) {
	case SEAM_LAYER_KERNEL:
		return strncmp(path, "[kernel", 7) == 0 ? SEAM_MODULE_KERNEL :
		       SEAM_MODULE_KERNEL_MODULE;
	case SEAM_LAYER_JIT:
		return strcmp(path, "[jit]") == 0 ? SEAM_MODULE_JIT :
		       SEAM_MODULE_ANON;
	case SEAM_LAYER_GUEST:
		return SEAM_MODULE_GUEST;
	default:
		return seam_module_kind_of(path);
	}
}

static uint32_t add_frame(struct batch_loader *l,
			  const struct seam_batch_frame *from)
{
	struct seam_profile *p = l->profile;
	const char *path = text_of(l, from->module);
	const char *hex = text_of(l, from->build_id);
	struct seam_profile_module module = {
		.pid = -1, .path = put(l, from->module),
		.kind = (uint8_t)kind_of(path, from->layer),
	};
	struct seam_function function = {
		.name = put(l, from->function), .is_named = from->is_named,
		.layer = from->layer < SEAM_N_LAYERS ? from->layer :
			 SEAM_LAYER_NATIVE,
	};
	struct seam_frame frame = {
		.file = put(l, from->file), .line = from->line,
		.code = SEAM_NONE, .is_inlined = from->is_inlined,
		.addr = from->offset,
	};

	module.build_id_size = (uint8_t)seam_text_unhex(module.build_id,
				sizeof(module.build_id), hex, strlen(hex));
	if (module.path == SEAM_NONE || function.name == SEAM_NONE ||
	    frame.file == SEAM_NONE)
		return SEAM_NONE;
	frame.module = *path ? seam_profile_module(p, &module) : 0;
	if (frame.module == SEAM_NONE)
		return SEAM_NONE;
	function.module = frame.module;
	frame.function = seam_profile_function(p, &function);
	return frame.function == SEAM_NONE ? SEAM_NONE :
	       seam_profile_frame(p, &frame);
}

/* A frame of no batch. */
static uint32_t missing_frame(struct batch_loader *l)
{
	if (!l->missing)
		l->missing = seam_profile_marker(l->profile, "[missing]");
	return l->missing;
}

static uint32_t add_stack(struct batch_loader *l,
			  const struct seam_batch_stack *from)
{
	const uint64_t *ids = l->batch->frame_ids.items + from->first;
	uint32_t stack = 0;

	for (uint32_t i = 0; i < from->n && stack != SEAM_NONE; i++) {
		uint32_t frame = seam_batch_ids_find(&l->frames, ids[i]);

		if (frame == SEAM_NONE)
			frame = missing_frame(l);
		stack = frame == SEAM_NONE ? SEAM_NONE :
			seam_profile_stack(l->profile, stack, frame);
	}
	return stack;
}

static int add_stacks(struct batch_loader *l)
{
	const struct seam_batch *b = l->batch;

	seam_batch_ids_fini(&l->frames);
	seam_batch_ids_fini(&l->stacks);
	for (size_t i = 0; i < b->frames.n; i++)
		if (!seam_batch_ids_add(&l->frames, b->frames.items[i].id,
			  add_frame(l, &b->frames.items[i])))
			return -ENOMEM;
	for (size_t i = 0; i < b->stacks.n; i++)
		if (!seam_batch_ids_add(&l->stacks, b->stacks.items[i].id,
			  add_stack(l, &b->stacks.items[i])))
			return -ENOMEM;
	return 0;
}

/* -- threads and events ------------------------------------------------- */

static uint32_t find_process(struct batch_loader *l,
			     const struct seam_batch_sample *row)
{
	const struct seam_batch_origin *origin =
		&l->batch->origins.items[row->origin];
	struct seam_process process = {
		.pid = row->pid, .name = put(l, row->process),
		.end_ns = UINT64_MAX, .parent = SEAM_NONE,
		.service = put(l, origin->service),
		.host = put(l, origin->host),
	};
	const struct seam_process *all = l->profile->processes.items;
	uint64_t hash = seam_hash_add((uint64_t)process.name << 32 |
				      (uint32_t)process.pid,
				      (uint64_t)process.service << 32 |
				      process.host);

	if (process.name == SEAM_NONE || process.service == SEAM_NONE ||
	    process.host == SEAM_NONE)
		return SEAM_NONE;
	return SEAM_INDEX_INTERN(&l->by_process, hash, &l->profile->processes,
		i, all[i].pid == process.pid && all[i].name == process.name &&
		all[i].service == process.service &&
		all[i].host == process.host, process);
}

static uint32_t find_thread(struct batch_loader *l,
			    const struct seam_batch_sample *row)
{
	struct seam_thread thread = {
		.process = find_process(l, row), .tid = row->tid,
		.name = put(l, row->thread), .end_ns = UINT64_MAX,
	};
	const struct seam_thread *all = l->profile->threads.items;
	uint64_t hash = seam_hash_add(thread.process, (uint64_t)thread.name <<
				      32 | (uint32_t)thread.tid);

	if (thread.process == SEAM_NONE || thread.name == SEAM_NONE)
		return SEAM_NONE;
	return SEAM_INDEX_INTERN(&l->by_thread, hash, &l->profile->threads, i,
		all[i].process == thread.process &&
		all[i].name == thread.name && all[i].tid == thread.tid,
		thread);
}

/* The event of a row, added if it is new.  -errno: there are too many. */
static int find_event(struct batch_loader *l,
		      const struct seam_batch_sample *row)
{
	struct seam_profile *p = l->profile;
	struct seam_profile_event event = {
		.name = put(l, row->event),
		.unit = row->unit <= SEAM_UNIT_NS ? row->unit :
			SEAM_UNIT_COUNT,
		.is_measured = row->kind == SEAM_BATCH_CALLS,
		.is_wait = row->kind == SEAM_BATCH_BLOCKED ||
			   row->kind == SEAM_BATCH_PREEMPTED,
		.is_preempted = row->kind == SEAM_BATCH_PREEMPTED,
	};
	size_t i = 0;

	if (event.name == SEAM_NONE)
		return -ENOMEM;
	for (; i < p->events.n; i++) {
		const struct seam_profile_event *e = &p->events.items[i];

		if (e->name == event.name && e->unit == event.unit &&
		    e->is_measured == event.is_measured &&
		    e->is_preempted == event.is_preempted &&
		    e->is_wait == event.is_wait)
			return (int)i;
	}
	/* far above what people record; each row is compared with all */
	if (i == 1024)
		return -E2BIG;
	return SEAM_ARRAY_ADD(&p->events, event) ? (int)i : -ENOMEM;
}

/* -- rows --------------------------------------------------------------- */

/* The time of the profile at @ts_ns, UTC. */
static uint64_t time_of(const struct batch_loader *l, uint64_t ts_ns)
{
	return ts_ns > l->base_ns ? ts_ns - l->base_ns : 0;
}

static int add_sample(struct batch_loader *l,
		      const struct seam_batch_sample *row)
{
	struct seam_samples *s = &l->profile->samples;
	uint32_t thread = find_thread(l, row);
	uint32_t stack = !row->stack ? 0 :
			 seam_batch_ids_find(&l->stacks, row->stack);
	int event = find_event(l, row);
	size_t i = s->n;

	if (event < 0)
		return event;
	if (stack == SEAM_NONE) {
		uint32_t frame = missing_frame(l);

		l->n_missing++;
		stack = frame == SEAM_NONE ? SEAM_NONE :
			seam_profile_stack(l->profile, 0, frame);
	}
	if (thread == SEAM_NONE || stack == SEAM_NONE ||
	    !seam_samples_reserve(s, 1))
		return -ENOMEM;
	s->time_ns[i] = time_of(l, row->ts_ns);
	s->thread[i] = thread;
	s->stack[i] = stack;
	s->cpu[i] = UINT16_MAX;
	s->event[i] = (uint16_t)event;
	if (!seam_samples_set_weight(s, i, row->value) ||
	    !seam_samples_set_count(s, i, row->count))
		return -ENOMEM;
	s->n++;
	l->profile->events.items[event].n_samples += row->count;
	return 0;
}

int seam_load_batch_losses(struct seam_profile *p, const struct seam_batch *b)
{
	for (size_t i = 0; i < b->losses.n; i++) {
		const struct seam_batch_loss *loss = &b->losses.items[i];
		uint32_t cause = seam_strings_put(&p->strings,
			seam_strings_get(&b->strings, loss->cause));
		uint32_t source = seam_strings_put(&p->strings,
			seam_strings_get(&b->strings, loss->source));

		if (cause == SEAM_NONE || source == SEAM_NONE)
			return -ENOMEM;
		seam_profile_lost(p, seam_profile_text(p, cause), source,
				  loss->records, loss->bytes);
		for (size_t k = 0; k < p->events.n; k++)
			if (p->events.items[k].name == source)
				p->events.items[k].n_lost += loss->records;
	}
	return 0;
}

static int add_batch(struct batch_loader *l, const struct seam_batch *batch,
		     struct seam_err *err)
{
	struct seam_profile *p = l->profile;
	uint64_t end_ns;
	int r;

	l->batch = batch;
	r = add_stacks(l);
	for (size_t i = 0; !r && i < batch->samples.n; i++)
		r = add_sample(l, &batch->samples.items[i]);
	if (!r)
		r = seam_load_batch_losses(p, batch);
	end_ns = time_of(l, batch->to_ns);
	if (end_ns > p->end_ns)
		p->end_ns = end_ns;
	return r == -E2BIG ? seam_err_set(err, r, "more than 1024 events") :
	       r ? seam_err_no_memory(err) : 0;
}

/* How many distinct services, or hosts, there are, and the last one. */
struct origin_count {
	size_t n;
	uint32_t last;
	struct seam_index seen;
};

static void count_origin(struct batch_loader *l, struct origin_count *c,
			 uint32_t process, uint32_t string)
{
	const struct seam_process *all = l->profile->processes.items;
	uint64_t hash = seam_hash_u64(string);

	if (!string || string == c->last ||
	    SEAM_INDEX_FIND(&c->seen, hash, i, all[i].service == string ||
			    all[i].host == string) != SEAM_NONE)
		return;
	c->n++;
	c->last = string;
	/* without memory one counts twice, in a title */
	(void)seam_index_add(&c->seen, hash, process);
}

/* "web on host-1", "2 services on 5 hosts", or "" where none is known. */
static int name_origins(struct batch_loader *l)
{
	struct seam_profile *p = l->profile;
	struct origin_count services = { 0 }, hosts = { 0 };
	char service[200] = "", host[200] = "", text[420];

	for (uint32_t i = 0; i < p->processes.n; i++) {
		count_origin(l, &services, i, p->processes.items[i].service);
		count_origin(l, &hosts, i, p->processes.items[i].host);
	}
	seam_index_fini(&services.seen);
	seam_index_fini(&hosts.seen);
	if (services.n == 1)
		snprintf(service, sizeof(service), "%.190s",
			 seam_profile_text(p, services.last));
	else if (services.n)
		snprintf(service, sizeof(service), "%zu services",
			 services.n);
	if (hosts.n == 1)
		snprintf(host, sizeof(host), "%.190s",
			 seam_profile_text(p, hosts.last));
	else if (hosts.n)
		snprintf(host, sizeof(host), "%zu hosts", hosts.n);
	snprintf(text, sizeof(text), "%s%s%s", service,
		 *service && *host ? " on " : "", host);
	p->command = seam_strings_put(&p->strings, text);
	return p->command == SEAM_NONE ? -ENOMEM : 0;
}

static int end_load(struct batch_loader *l, int r, struct seam_err *err)
{
	struct seam_profile *p = l->profile;

	if (!r && name_origins(l))
		r = seam_err_no_memory(err);
	if (l->n_missing)
		seam_profile_note(p, "%" PRIu64 " rows have a stack that is in "
				  "no batch", l->n_missing);
	seam_batch_ids_fini(&l->frames);
	seam_batch_ids_fini(&l->stacks);
	seam_index_fini(&l->by_process);
	seam_index_fini(&l->by_thread);
	return r;
}

/* Time 0 is @from_ns, UTC. */
static struct batch_loader begin_load(struct seam_profile *profile,
				      uint64_t from_ns)
{
	profile->has_other_clock = true;
	profile->utc_ns = (int64_t)from_ns;
	return (struct batch_loader) {
		.profile = profile, .base_ns = from_ns,
	};
}

int seam_load_batch(struct seam_profile *profile, struct seam_bytes bytes,
		    struct seam_err *err)
{
	struct batch_loader l;
	struct seam_batch batch;
	int r = seam_batch_file_read(&batch, bytes, err);

	l = begin_load(profile, batch.from_ns);
	if (!r)
		r = add_batch(&l, &batch, err);
	r = end_load(&l, r, err);
	seam_batch_fini(&batch);
	return r;
}

/* -- folders ------------------------------------------------------------ */

/* A file that cannot be read is a loss, and a note has the reason. */
static void lose(struct seam_profile *p, const char *name,
		 const struct seam_err *why)
{
	char shown[256], text[SEAM_ERR_TEXT];

	seam_text_copy(shown, sizeof(shown), name, SEAM_TEXT_TERMINAL);
	seam_err_text(why, text);
	seam_profile_note(p, "%s is not read: %s", shown, text);
	seam_profile_lost(p, "batch not read",
			  seam_strings_put(&p->strings, shown), 0, 0);
}

/* When the first of the batches begins; UINT64_MAX: none can be read. */
static uint64_t first_of(const struct seam_batch_folder *folder)
{
	uint64_t first = UINT64_MAX;

	for (size_t i = 0; i < folder->names.n; i++) {
		struct seam_batch_head head;

		if (seam_batch_folder_head(folder->fd,
					   folder->names.items[i], &head,
					   NULL) == 0 &&
		    head.from_ns < first)
			first = head.from_ns;
		seam_batch_head_fini(&head);
	}
	return first;
}

int seam_load_batch_each(const struct seam_batch_folder *folder,
			 struct seam_profile *p, seam_load_batch_add *add,
			 void *context, struct seam_err *err)
{
	size_t n_read = 0;
	int r = 0;

	for (size_t i = 0; !r && i < folder->names.n; i++) {
		struct seam_err why = { 0 };
		struct seam_batch batch;

		r = seam_batch_folder_read(folder->fd, folder->names.items[i],
					   &batch, &why);
		if (!r) {
			n_read++;
			r = add(context, &batch, err);
		} else if (r == -ENOMEM) {
			seam_err_no_memory(err);
		} else {
			lose(p, folder->names.items[i], &why);
			r = 0;
		}
		seam_batch_fini(&batch);
	}
	return r || n_read ? r : seam_err_set(err, -ENODATA, "none of its "
					      "batches can be read");
}

static int add_to_profile(void *context, const struct seam_batch *batch,
			  struct seam_err *err)
{
	return add_batch(context, batch, err);
}

int seam_load_batch_folder(struct seam_profile *profile, const char *path,
			   struct seam_err *err)
{
	struct seam_batch_folder folder;
	struct batch_loader l;
	uint64_t first;
	int r = seam_batch_folder_open(&folder, path, err);

	first = r ? UINT64_MAX : first_of(&folder);
	l = begin_load(profile, first == UINT64_MAX ? 0 : first);
	if (!r)
		r = seam_load_batch_each(&folder, profile, add_to_profile,
					 &l, err);
	r = end_load(&l, r, err);
	seam_batch_folder_close(&folder);
	return r;
}

bool seam_load_batch_is(const char *path)
{
	struct seam_batch_folder folder;
	struct seam_file file;
	struct stat st;
	bool is;

	if (strcmp(path, "-") == 0 || stat(path, &st))
		return false;
	if (S_ISDIR(st.st_mode)) {
		is = seam_batch_folder_open(&folder, path, NULL) == 0 &&
		     folder.names.n;
		seam_batch_folder_close(&folder);
		return is;
	}
	is = S_ISREG(st.st_mode) && seam_file_open(&file, path, NULL) == 0;
	if (is) {
		is = seam_batch_file_is(file.bytes);
		seam_file_close(&file);
	}
	return is;
}
