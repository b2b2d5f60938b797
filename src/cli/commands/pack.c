/* SPDX-License-Identifier: MIT */
/* pack.c - 'seam pack': a recording as one file, for another machine */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/folder_walk.h"
#include "base/text.h"
#include "cli/archive_library.h"
#include "cli/packed.h"
#include "cli/reading.h"
#include "model/origin.h"

struct pack_options {
	struct seam_reading reading;
	const char *output;
};

#define OPTION(...) SEAM_OPTION(struct pack_options, __VA_ARGS__)

static const struct seam_option options[] = {
	OPTION(output, STRING, 'o', "output", "FILE",
	       "the archive (NAME.seam.zst)"),
	SEAM_INPUT_OPTION(struct pack_options, reading),
	SEAM_SYMBOL_OPTIONS(struct pack_options, reading),
};

struct packing {
	const struct seam_opened *opened;
	const struct seam_reading *reading;
	const struct seam_archive_library *library;
	struct archive *archive;
	struct archive_entry *entry;
	const char *name;		/* NAME.seam, of all entries */
	struct seam_strings packed;	/* names: of each one entry */
	struct seam_err *err;
	size_t n_files, n_missing;
};

/* -- entries -------------------------------------------------------------- */

static int fail(struct packing *p, const char *path)
{
	const char *text = p->library->archive_error_string(p->archive);

	return seam_err_set(p->err, -EIO, "cannot pack '%.200s': %s", path,
			    text ? text : "out of memory");
}

static int begin_entry(struct packing *p, const char *path, uint64_t size,
		       time_t time)
{
	const struct seam_archive_library *lib = p->library;
	char name[PATH_MAX];

	snprintf(name, sizeof(name), "%s/%s", p->name, path);
	lib->archive_entry_clear(p->entry);
	lib->archive_entry_set_pathname(p->entry, name);
	lib->archive_entry_set_filetype(p->entry, AE_IFREG);
	lib->archive_entry_set_perm(p->entry, 0600);
	lib->archive_entry_set_mtime(p->entry, time, 0);
	lib->archive_entry_set_size(p->entry, (la_int64_t)size);
	p->n_files++;
	return seam_strings_put(&p->packed, path) == SEAM_NONE ?
	       seam_err_no_memory(p->err) :
	       lib->archive_write_header(p->archive, p->entry) == ARCHIVE_OK ?
	       0 : fail(p, path);
}

/* The first @size bytes of @fd; of a file that became shorter, zeros follow. */
static int add_fd(struct packing *p, const char *path, int fd,
		  const struct stat *st)
{
	enum { PART_BYTES = 1 << 16 };
	uint64_t size = (uint64_t)st->st_size;
	int r = begin_entry(p, path, size, st->st_mtime);

	for (uint64_t at = 0; at < size && !r;) {
		static char part[PART_BYTES];
		size_t want = size - at < PART_BYTES ? (size_t)(size - at) :
			      PART_BYTES;
		ssize_t n = pread(fd, part, want, (off_t)at);

		if (n < 0)
			return seam_err_set(p->err, -errno, "cannot read '%s':"
					    " %s", path, strerror(errno));
		if (n == 0)
			break;
		if (p->library->archive_write_data(p->archive, part,
						   (size_t)n) != n)
			r = fail(p, path);
		at += (uint64_t)n;
	}
	return r;
}

/* -- the folder ----------------------------------------------------------- */

/* Regular files, in the folders that a recording has. */
static int add_entry(void *context, const struct seam_walk_entry *entry)
{
	struct packing *p = context;
	struct stat st;
	int fd, r;

	if (S_ISDIR(entry->st.st_mode) && entry->name[0] != '.')
		return SEAM_WALK_ON;
	if (!S_ISREG(entry->st.st_mode) || entry->name[0] == '.')
		return SEAM_WALK_SKIP;
	fd = seam_file_open_fd(entry->folder, entry->name, O_NOFOLLOW, p->err);
	if (fd < 0)
		return seam_err_add(p->err, fd, "cannot open '%s'",
				    entry->path);
	r = fstat(fd, &st) ? seam_err_set(p->err, -errno, "cannot read '%s'",
					  entry->path) :
	    add_fd(p, entry->path, fd, &st);
	close(fd);
	return r;
}

static int add_folder(struct packing *p, const char *bundle)
{
	int fd = open(bundle, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = fd < 0 ? -errno : seam_walk(fd, 2, add_entry, p);

	seam_file_close_fd(fd);
	return r && !p->err->code ? seam_err_set(p->err, r, "cannot read '%s':"
			" %s", bundle, strerror(-r)) : r;
}

/* -- files of symbols ----------------------------------------------------- */

/* Where readers look for the file of @m in a bundle; false: nowhere. */
static bool name_of(const struct seam_profile_module *m, bool is_debug,
		    char name[80])
{
	char id[2 * sizeof(m->build_id) + 1];

	if (m->build_id_size)
		snprintf(name, 80, "elf/%s%s", seam_text_hex(id, m->build_id,
				m->build_id_size), is_debug ? ".debug" : "");
	else
		snprintf(name, 80, "elf/%016llx",
			 (unsigned long long)m->content_id);
	return m->build_id_size || (m->content_id && !is_debug);
}

/* The file of module @id, or its debug file, unless the bundle has it. */
static int add_module(struct packing *p, struct seam_symbols *symbols,
		      uint32_t id, bool is_debug)
{
	const struct seam_profile *profile = &p->opened->profile;
	struct seam_module_file file = { .fd = -1 };
	uint32_t module = seam_origin_symbols(profile, id, symbols);
	struct seam_err why = { 0 };
	struct stat st = { .st_size = 0 };
	char name[80];
	int r = 0;

	if (module == SEAM_NONE)
		return seam_err_no_memory(p->err);
	if (seam_symbols_open(symbols, module, is_debug, &file, &why)) {
		p->n_missing += !is_debug;
		return 0;
	}
	if (!name_of(&profile->modules.items[id], is_debug, name)) {
		p->n_missing += !is_debug;
	} else if (seam_strings_find(&p->packed, name) == SEAM_NONE) {
		if (file.fd >= 0 && fstat(file.fd, &st) == 0)
			r = add_fd(p, name, file.fd, &st);
		else if (file.fd < 0)
			r = begin_entry(p, name, file.size, time(NULL));
		if (!r && file.fd < 0 && p->library->archive_write_data(
				p->archive, file.image, file.size) !=
		    (la_ssize_t)file.size)
			r = fail(p, name);
	}
	seam_file_close_fd(file.fd);
	free(file.image);
	return r;
}

/* The modules that frames and functions are in, as far as they are files. */
static bool *find_modules(const struct seam_profile *profile)
{
	bool *used = calloc(profile->modules.n + 1, sizeof(*used));

	for (size_t i = 0; used && i < profile->frames.n; i++)
		used[profile->frames.items[i].module] = true;
	for (size_t i = 0; used && i < profile->functions.n; i++)
		used[profile->functions.items[i].module] = true;
	for (size_t i = 0; used && i < profile->modules.n; i++)
		used[i] &= profile->modules.items[i].kind == SEAM_MODULE_FILE;
	return used;
}

static int add_modules(struct packing *p, const char *bundle)
{
	const struct seam_profile *profile = &p->opened->profile;
	struct seam_symbols_options how =
		seam_reading_load_options(p->reading).symbols;
	bool *used = find_modules(profile);
	struct seam_symbols *symbols;
	int r = 0;

	how.bundle = bundle;
	symbols = seam_symbols_new(&how);
	if (!used || !symbols)
		r = seam_err_no_memory(p->err);
	for (uint32_t i = 0; i < profile->modules.n && !r; i++) {
		if (!used[i])
			continue;
		r = add_module(p, symbols, i, false);
		if (!r && profile->modules.items[i].build_id_size)
			r = add_module(p, symbols, i, true);
	}
	seam_symbols_free(symbols);
	free(used);
	return r;
}

/* -- the archive ---------------------------------------------------------- */

static int write_archive(const struct seam_export *export,
			 struct seam_err *err)
{
	/* the exporter's table of contents is const, its counts are not */
	struct packing *p = *(struct packing *const *)export->picture;
	const struct seam_archive_library *lib = p->library;
	const char *bundle = seam_profile_text(&p->opened->profile,
					       p->opened->profile.bundle);
	int r;

	p->err = err;
	p->archive = lib->archive_write_new();
	p->entry = lib->archive_entry_new();
	if (!p->archive || !p->entry)
		r = seam_err_no_memory(err);
	else if (lib->archive_write_add_filter_zstd(p->archive) ||
		 lib->archive_write_set_format_gnutar(p->archive) ||
		 /* not padded: zstd(1) reads no zeros after the end */
		 lib->archive_write_set_bytes_in_last_block(p->archive, 1) ||
		 lib->archive_write_open_FILE(p->archive, export->out))
		r = fail(p, bundle);
	else
		r = add_folder(p, bundle);
	if (!r)
		r = add_modules(p, bundle);
	if (!r && lib->archive_write_close(p->archive))
		r = fail(p, bundle);
	if (p->entry)
		lib->archive_entry_free(p->entry);
	if (p->archive)
		lib->archive_write_free(p->archive);
	seam_strings_fini(&p->packed);
	return r;
}

static const struct seam_exporter archive_exporter = {
	"pack", SEAM_NEEDS_PROFILE, write_archive, true,
};

static void say_packed(const struct packing *packing, const char *path)
{
	char missing[80] = "";

	if (packing->n_missing)
		snprintf(missing, sizeof(missing), "; %zu with samples are not "
			 "on this machine", packing->n_missing);
	seam_command_say("%zu files in '%s'%s", packing->n_files, path,
			 missing);
}

static int pack(struct seam_opened *opened, const struct pack_options *o)
{
	const char *bundle = seam_profile_text(&opened->profile,
					       opened->profile.bundle);
	struct seam_err err = { 0 };
	struct packing packing = {
		.opened = opened, .reading = &o->reading,
		.library = seam_archive_library(&err),
	}, *p = &packing;
	struct seam_export export = { .picture = &p };
	char *path = strdup(bundle), output[PATH_MAX];
	int status = SEAM_EXIT_FAILED;
	size_t n;

	for (n = path ? strlen(path) : 0; n > 1 && path[n - 1] == '/'; n--)
		path[n - 1] = '\0';
	snprintf(output, sizeof(output), "%s.zst", path ? path : "");
	if (!*bundle)
		seam_err_set(&err, -EINVAL, "cannot pack '%s': only a folder "
			     "that seam record wrote can be packed",
			     opened->path);
	else if (path && packing.library) {
		packing.name = seam_file_name(path);
		status = seam_reading_export(opened, o->output ? o->output :
					     output, &archive_exporter,
					     &export);
	}
	if (err.code)
		status = seam_command_failed(&err);
	else if (status != SEAM_EXIT_FAILED)
		say_packed(&packing, o->output ? o->output : output);
	free(path);
	return status;
}

static int run(const struct seam_command *self, int argc, char **argv)
{
	struct pack_options o = { 0 };
	struct seam_opened opened;
	int first;
	int status = seam_command_parse(self, argc, argv, &o, &first);

	if (status)
		return status;
	if (argc - first > 1)
		return seam_command_misused(self, "one recording at a time");
	status = seam_reading_open(&opened, self, &o.reading, argc, argv,
				   first);
	if (status == SEAM_EXIT_DONE)
		status = pack(&opened, &o);
	seam_reading_close(&opened);
	return status;
}

const struct seam_command seam_pack_command = {
	.name = "pack",
	.summary = "make one file of a recording and its symbols",
	.synopsis = "[options] [NAME.seam]",
	.description =
		"Writes NAME.seam.zst: the recording, and the files that its "
		"names come from, with their debug files, as far as they are "
		"found now. Every command that reads NAME.seam reads "
		"NAME.seam.zst too, on another machine as well: it is unpacked "
		"into a folder below TMPDIR (/var/tmp) that is removed when "
		"the command ends. 'tar --zstd -tf' lists it.\n\n"
		"The archive has the programs: look at whom it is for.",
	.examples =
		"seam pack\trecording.seam.zst of the last recording\n"
		"seam pack app.seam -o app.seam.zst\t"
		"for a colleague, who runs 'seam view app.seam.zst'\n",
	.options = options,
	.n_options = SEAM_ARRAY_SIZE(options),
	.reads = true,
	.run = run,
};
