/* SPDX-License-Identifier: MIT */
/* images.c - loaded images and their functions; see images.h */
#include "traced/fdr/sleds/images.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "wire/elf_notes.h"

enum {
	MAX_NOTE_BYTES = 1 << 16,
	MAX_PATH = 4096,
};

/* ---- one image ---- */

static void free_functions(struct seam_fdr_functions *functions)
{
	seam_fdr_sleds_fini(&functions->sleds);
	free(functions->is_wanted);
	free(functions->stubs);
	*functions = (struct seam_fdr_functions) { .first_id = 0 };
}

static void free_image(struct seam_fdr_image *image)
{
	if (!image)
		return;
	for (size_t i = 0; i < image->n_lists; i++)
		free_functions(&image->lists[i].functions);
	free(image->code.segments.items);
	free(image->path);
	free(image->file);
	free(image->headers);
	free(image);
}

static int read_segments(struct seam_fdr_image *image)
{
	for (size_t i = 0; i < image->n_headers; i++) {
		const ElfW(Phdr) *h = &image->headers[i];
		uint64_t start = image->bias + h->p_vaddr;
		struct seam_fdr_segment segment = {
			start, start + h->p_memsz,
			(h->p_flags & PF_R ? PROT_READ : 0) |
			(h->p_flags & PF_W ? PROT_WRITE : 0) |
			(h->p_flags & PF_X ? PROT_EXEC : 0),
		};

		if (h->p_type == PT_LOAD && segment.end >= segment.start &&
		    !SEAM_ARRAY_ADD(&image->code.segments, segment))
			return -ENOMEM;
		if (h->p_type == PT_GNU_EH_FRAME)
			image->code.eh_frame_header = start;
	}
	for (size_t i = 0; i < image->n_headers; i++) {
		const ElfW(Phdr) *h = &image->headers[i];
		uint64_t start = image->bias + h->p_vaddr;

		if (h->p_type == PT_NOTE && h->p_memsz <= MAX_NOTE_BYTES &&
		    !image->build_id_bytes &&
		    seam_fdr_code_segment(&image->code, start, h->p_memsz,
					  PROT_READ))
			image->build_id_bytes = (uint8_t)seam_build_id_in_notes(
				(struct seam_bytes) { (const uint8_t *)start,
						      h->p_memsz },
				image->build_id);
	}
	return 0;
}

/* The executable's is in /proc, whatever has become of its name. */
static const char *file_of(const char *name)
{
	return name[0] ? name : "/proc/self/exe";
}

/* As others find the file; it takes some system calls. */
static char *find_path(const struct seam_fdr_image *image)
{
	char path[MAX_PATH];
	ssize_t n;

	if (strcmp(image->file, file_of("")))
		return realpath(image->file, NULL) ?: strdup(image->file);
	n = readlink(image->file, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = 0;
	return strdup(path);
}

static int make_image(struct seam_fdr_image **out,
		      const struct seam_loaded_image *loaded)
{
	struct seam_fdr_image *image = calloc(1, sizeof(*image));
	int r;

	if (!image)
		return -ENOMEM;
	image->bias = loaded->bias;
	image->n_headers = loaded->n_headers;
	image->headers = calloc(image->n_headers + 1, sizeof(ElfW(Phdr)));
	image->file = strdup(file_of(loaded->name));
	r = image->headers && image->file ? 0 : -ENOMEM;
	if (r == 0) {
		memcpy(image->headers, loaded->headers,
		       image->n_headers * sizeof(ElfW(Phdr)));
		r = read_segments(image);
	}
	if (r < 0)
		free_image(image);
	else
		*out = image;
	return r;
}

/*
 * ---- the functions of ours that an image calls by name ----
 *
 * __fentry__ of programs built with -pg -mfentry, which call it at the
 * beginning of each function: through a pointer that the loader sets, by the
 * procedure linkage table, or, where libc is in the program, directly.  And
 * the functions of seam/fdr.h and of -finstrument-functions: such an image has
 * calls to record, though it has no sleds.  A damaged image calls no function.
 */

static const char fentry_name[] = "__fentry__";

static bool is_fentry(const struct seam_image_symbols *s, size_t i)
{
	return i < s->n &&
	       !strcmp(seam_image_symbol_name(s, &s->list[i]), fentry_name);
}

static void find_slots(struct seam_fdr_image *image,
		       const struct seam_image_file *file,
		       const struct seam_image_symbols *s,
		       const ElfW(Shdr) *section)
{
	struct seam_fdr_code *code = &image->code;
	size_t n = section->sh_size / sizeof(ElfW(Rela));
	const ElfW(Rela) *rela;
	void *bytes;

	if (seam_image_file_read(file, section->sh_offset, section->sh_size,
				 &bytes) < 0)
		return;
	rela = bytes;
	for (size_t i = 0; i < n; i++)
		if (is_fentry(s, ELF64_R_SYM(rela[i].r_info)) &&
		    code->n_fentry_slots < SEAM_FDR_MAX_SLOTS)
			code->fentry_slots[code->n_fentry_slots++] =
				image->bias + rela[i].r_offset;
	free(bytes);
}

/* In a program with an interpreter it is libc's. */
static bool is_static(const struct seam_fdr_image *image)
{
	for (size_t i = 0; i < image->n_headers; i++)
		if (image->headers[i].p_type == PT_INTERP)
			return false;
	return !strcmp(image->file, "/proc/self/exe");
}

static void find_function(struct seam_fdr_image *image,
			  const struct seam_image_file *file)
{
	struct seam_image_symbols s;

	if (seam_image_file_symbols(file, SHT_SYMTAB, &s) < 0)
		return;
	for (size_t i = 0; i < s.n; i++)
		if (is_fentry(&s, i) && s.list[i].st_shndx != SHN_UNDEF)
			image->code.fentry = image->bias + s.list[i].st_value;
	seam_image_symbols_fini(&s);
}

static bool records(const char *name)
{
	return !strncmp(name, "seam_fdr_", 9) ||
	       !strncmp(name, "__cyg_profile_func_", 19);
}

static void find_imports(struct seam_fdr_image *image,
			 const struct seam_image_file *file)
{
	struct seam_image_symbols s;
	bool has_fentry = false;

	if (is_static(image)) {
		/* it is linked with this library */
		image->records_itself = true;
		find_function(image, file);
		return;
	}
	if (seam_image_file_symbols(file, SHT_DYNSYM, &s) < 0)
		return;
	for (size_t i = 0; i < s.n; i++)
		if (s.list[i].st_shndx == SHN_UNDEF) {
			has_fentry |= is_fentry(&s, i);
			image->records_itself |= records(
				seam_image_symbol_name(&s, &s.list[i]));
		}
	for (size_t i = 0; has_fentry && i < file->n_sections; i++)
		if (file->sections[i].sh_type == SHT_RELA &&
		    (file->sections[i].sh_flags & SHF_ALLOC))
			find_slots(image, file, &s, &file->sections[i]);
	seam_image_symbols_fini(&s);
}

/* ---- its lists ---- */

static int add_list(struct seam_fdr_image *image, enum seam_fdr_list_kind kind,
		    uint64_t start, uint64_t bytes)
{
	struct seam_fdr_list *list = &image->lists[image->n_lists];
	struct seam_fdr_functions *f = &list->functions;
	size_t n;
	int r;

	*list = (struct seam_fdr_list) { .kind = kind };
	r = seam_fdr_sleds_read(&f->sleds, kind, &image->code, start, bytes);
	n = f->sleds.functions.n;
	if (r < 0 || n == 0) {
		free_functions(f);
		return r;
	}
	image->n_lists++;
	f->is_wanted = calloc(n, sizeof(*f->is_wanted));
	f->stubs = calloc(n, sizeof(*f->stubs));
	return f->is_wanted && f->stubs ? 0 : -ENOMEM;
}

static const ElfW(Shdr) *find_section(const struct seam_image_file *file,
				      const char *name)
{
	for (size_t i = 0; i < file->n_sections; i++)
		if ((file->sections[i].sh_flags & SHF_ALLOC) &&
		    file->sections[i].sh_type != SHT_NOBITS &&
		    !strcmp(seam_image_file_section_name(
					file, &file->sections[i]), name))
			return &file->sections[i];
	return NULL;
}

static int read_lists(struct seam_fdr_image *image,
		      const struct seam_image_file *file)
{
	static const char *const names[SEAM_FDR_N_LISTS] = {
		[SEAM_FDR_LIST_XRAY] = "xray_instr_map",
		[SEAM_FDR_LIST_PATCHABLE] = "__patchable_function_entries",
		[SEAM_FDR_LIST_MCOUNT] = "__mcount_loc",
	};
	int r = 0;

	find_imports(image, file);
	for (int i = 0; i < SEAM_FDR_N_LISTS && r == 0; i++) {
		const ElfW(Shdr) *s = names[i] ? find_section(file, names[i]) :
						 NULL;

		if (s)
			r = add_list(image, (enum seam_fdr_list_kind)i,
				     image->bias + s->sh_addr, s->sh_size);
		else if (!names[i])
			r = add_list(image, (enum seam_fdr_list_kind)i, 0, 0);
	}
	return r;
}

/* An image whose file is unusable is added too, and not read again. */
static int find_lists(struct seam_fdr_images *images,
		      struct seam_fdr_image *image)
{
	struct seam_image_file file;
	int r;

	/* it has no sleds, and most processes have no other library of ours */
	if (strcmp(image->file, file_of("")) &&
	    seam_fdr_code_segment(&image->code, (uint64_t)find_lists, 1, 0))
		return 0;
	r = seam_fdr_image_open(image, &file);
	if (r == 0) {
		if (!file.n_sections)
			images->n_unknown++;
		r = read_lists(image, &file);
		seam_image_file_close(&file);
		if (r == 0 && (image->n_lists || image->records_itself)) {
			image->path = find_path(image);
			r = image->path ? 0 : -ENOMEM;
		}
	} else if (r != -ENOMEM) {
		images->n_unknown++;
		r = 0;
	}
	return r;
}

/* ---- ids ---- */

static bool is_same_list(const struct seam_fdr_image *a,
			 const struct seam_fdr_list *x,
			 const struct seam_fdr_image *b,
			 const struct seam_fdr_list *y)
{
	const struct seam_fdr_sleds *s = &x->functions.sleds;
	const struct seam_fdr_sleds *t = &y->functions.sleds;

	if (x->kind != y->kind || s->functions.n != t->functions.n)
		return false;
	for (size_t i = 0; i < s->functions.n; i++)
		if (s->functions.items[i] - a->bias !=
		    t->functions.items[i] - b->bias)
			return false;
	return true;
}

static bool is_same_file(const struct seam_fdr_image *a,
			 const struct seam_fdr_image *b)
{
	bool is_same = !strcmp(a->file, b->file) && a->n_lists == b->n_lists &&
		       a->n_headers == b->n_headers &&
		       a->build_id_bytes == b->build_id_bytes &&
		       !memcmp(a->build_id, b->build_id, a->build_id_bytes) &&
		       !memcmp(a->headers, b->headers,
			       a->n_headers * sizeof(*a->headers));

	for (size_t i = 0; is_same && i < a->n_lists; i++)
		is_same = is_same_list(a, &a->lists[i], b, &b->lists[i]);
	return is_same;
}

/*
 * It was loaded before: it has its ids back, and what was selected.  Its stubs
 * too where it is at the same address; else they may be out of reach.
 */
static void take_over(struct seam_fdr_image *image,
		      struct seam_fdr_image *before)
{
	for (size_t i = 0; i < image->n_lists; i++) {
		struct seam_fdr_list *list = &image->lists[i];
		struct seam_fdr_list *old = &before->lists[i];
		bool *is_wanted = list->functions.is_wanted;
		uint64_t *stubs = list->functions.stubs;

		list->number = old->number;
		list->is_selected = old->is_selected;
		list->n_announced = old->n_announced;
		list->functions.first_id = old->functions.first_id;
		list->functions.is_wanted = old->functions.is_wanted;
		old->functions.is_wanted = is_wanted;
		if (image->bias == before->bias) {
			list->functions.stubs = old->functions.stubs;
			old->functions.stubs = stubs;
		}
	}
}

/* If the ids are exhausted, the image is not recorded. */
static void give_ids(struct seam_fdr_images *images,
		     struct seam_fdr_image *image)
{
	for (size_t i = 0; i < image->n_lists; i++) {
		struct seam_fdr_list *list = &image->lists[i];
		size_t n = list->functions.sleds.functions.n;

		list->functions.first_id = seam_fdr_new_ids((uint32_t)n);
		if (!list->functions.first_id) {
			while (image->n_lists > i)
				free_functions(&image->lists
					       [--image->n_lists].functions);
			images->n_unknown++;
			return;
		}
		list->number = ++images->n_lists;
	}
}

/* ---- loaded images ---- */

static struct seam_fdr_image *
image_of(const struct seam_fdr_images *images,
	 const struct seam_loaded_image *loaded)
{
	for (size_t i = 0; i < images->list.n; i++) {
		struct seam_fdr_image *image = images->list.items[i];

		if (image->is_loaded && image->bias == loaded->bias &&
		    image->n_headers == loaded->n_headers &&
		    !strcmp(image->file, file_of(loaded->name)) &&
		    !memcmp(image->headers, loaded->headers,
			    image->n_headers * sizeof(*image->headers)))
			return image;
	}
	return NULL;
}

static int add_image(struct seam_fdr_images *images,
		     const struct seam_loaded_image *loaded)
{
	struct seam_fdr_image *image = NULL;
	int r = make_image(&image, loaded);

	r = r ?: find_lists(images, image);
	if (r == 0 && !SEAM_ARRAY_RESERVE(&images->list, 1))
		r = -ENOMEM;
	if (r < 0) {
		free_image(image);
		return r;
	}
	image->is_loaded = image->is_seen = true;
	for (size_t i = 0; i < images->list.n; i++) {
		struct seam_fdr_image *before = images->list.items[i];

		if (before->is_loaded || !is_same_file(image, before))
			continue;
		take_over(image, before);
		free_image(before);
		images->list.items[i] = image;
		return 0;
	}
	give_ids(images, image);
	images->list.items[images->list.n++] = image;
	return 0;
}

/* ---- under the loader's lock ---- */

/* First find unloaded images, whose ids are free for the same file. */
static int refresh(struct seam_fdr_images *images,
		   const struct seam_loaded_images *loaded)
{
	int r = 0;

	for (size_t i = 0; i < images->list.n; i++)
		images->list.items[i]->is_seen = false;
	for (size_t i = 0; i < loaded->n; i++) {
		struct seam_fdr_image *image = image_of(images,
							&loaded->list[i]);

		if (image)
			image->is_seen = true;
	}
	for (size_t i = 0; i < images->list.n; i++)
		images->list.items[i]->is_loaded =
			images->list.items[i]->is_seen;
	for (size_t i = 0; i < loaded->n && r == 0; i++) {
		const struct seam_loaded_image *image = &loaded->list[i];

		/* without a slash it is the kernel's vdso */
		if ((!image->name[0] || strchr(image->name, '/')) &&
		    !image_of(images, image))
			r = add_image(images, image);
	}
	if (r == 0)
		images->loads = loaded->loads;
	return r;
}

struct image_visit {
	struct seam_fdr_images *images;
	int (*work)(struct seam_fdr_images *images, bool has_changed,
		    void *context);
	void *context;
	int result;
};

/* Called once: nothing is loaded or unloaded until it returns. */
static int work_locked(struct dl_phdr_info *info, size_t size, void *context)
{
	struct image_visit *v = context;
	bool has_changed = !seam_self_loads_equal(v->images->loads,
						  seam_self_loads_of(info));

	(void)size;
	v->result = 0;
	if (has_changed) {
		struct seam_loaded_images *loaded = seam_loaded_images_list();

		v->result = loaded ? refresh(v->images, loaded) : -ENOMEM;
		seam_loaded_images_free(loaded);
	}
	if (v->result == 0 && v->work)
		v->result = v->work(v->images, has_changed, v->context);
	return 1;
}

int seam_fdr_images_with(struct seam_fdr_images *images,
			 int (*work)(struct seam_fdr_images *images,
				     bool has_changed, void *context),
			 void *context)
{
	struct image_visit v = {
		.images = images, .work = work, .context = context,
	};

	if (images->is_final)
		return work ? work(images, false, context) : 0;
	dl_iterate_phdr(work_locked, &v);
	return v.result;
}
