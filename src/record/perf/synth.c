/* SPDX-License-Identifier: MIT */
/* synth.c - records made from /proc; see synth.h */
#include "record/perf/synth.h"

#include "base/file.h"
#include "base/folder_walk.h"
#include "record/perf/sources.h"
#include "record/proc/cgroup.h"
#include "record/proc/procfs.h"
#include "record/proc/target_file.h"
#include "symbol/elf/build_id.h"
#include "wire/elf_notes.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	BUILD_ID_BYTES = 20,
	KERNEL_PID = -1,	/* in the records of kernel mappings */
	MAX_CGROUP_DEPTH = 64,	/* two descriptors each, while they are read */
};

/*
 * For a user who may not read where the kernel's text ends: modules begin after
 * so much.  Source: arch/x86/include/asm/page_64_types.h, KERNEL_IMAGE_SIZE.
 */
#define MAX_TEXT_BYTES (UINT64_C(1) << 30)

void seam_synth_fini(struct seam_synth *synth)
{
	free(synth->bytes.items);
	*synth = (struct seam_synth) { 0 };
}

static void put(struct seam_synth *synth, const void *data, size_t size)
{
	synth->no_memory |= !SEAM_ARRAY_EXTEND(&synth->bytes, data, size);
}

/* Append a record of @type, with the @fields of its table. */
static void put_record(struct seam_synth *synth, uint32_t type, uint16_t misc,
		       const void *fields,
		       const struct seam_perf_sample_id *sample_id)
{
	/* all or nothing, so that the next bytes begin a record */
	if (!SEAM_ARRAY_RESERVE(&synth->bytes, SEAM_PERF_SIDEBAND_MAX)) {
		synth->no_memory = true;
		return;
	}
	synth->bytes.n += seam_perf_sideband_write(&seam_sources_common,
			SEAM_NATIVE, type, misc, fields, sample_id,
			synth->bytes.items + synth->bytes.n,
			SEAM_PERF_SIDEBAND_MAX);
}

/* The same for a thread, at time 0. */
static void put_of(struct seam_synth *synth, uint32_t type, uint16_t misc,
		   const void *fields, int pid, int tid)
{
	put_record(synth, type, misc, fields, &(struct seam_perf_sample_id) {
		   .pid = pid, .tid = tid, .id = synth->id });
}

/* With the build id @id, or as @mapping is. */
static void put_mmap(struct seam_synth *synth, uint16_t misc,
		     const struct seam_perf_mmap2 *mapping, const uint8_t *id,
		     size_t id_size)
{
	struct seam_perf_mmap2_build_id other = {
		.pid = mapping->pid, .tid = mapping->tid,
		.addr = mapping->addr, .len = mapping->len,
		.pgoff = mapping->pgoff, .prot = mapping->prot,
		.flags = mapping->flags, .filename = mapping->filename,
	};

	seam_perf_mmap2_set_build_id(&other, id, id_size);
	if (id_size)
		misc |= PERF_RECORD_MISC_MMAP_BUILD_ID;
	put_of(synth, PERF_RECORD_MMAP2, misc, id_size ?
	       (const void *)&other : mapping, mapping->pid, mapping->tid);
}

static void put_kernel_mmap(struct seam_synth *synth, uint64_t addr,
			    uint64_t bytes, uint64_t offset, const uint8_t *id,
			    size_t id_size, const char *name)
{
	const struct seam_perf_mmap2 mapping = {
		.pid = KERNEL_PID, .addr = addr, .len = bytes,
		.pgoff = offset, .prot = PROT_EXEC, .filename = name,
	};

	put_mmap(synth, PERF_RECORD_MISC_KERNEL, &mapping, id, id_size);
}

/* "ext4 1000 1 - Live 0xffffffffc0400000"; the address 0 when hidden. */
static void put_module(struct seam_synth *synth, const char *line)
{
	char name[64], path[160], title[80];
	uint8_t notes[1024], id[BUILD_ID_BYTES];
	uint64_t bytes, addr;
	size_t id_size = 0;
	int fd;

	if (sscanf(line, "%63s %" SCNu64 " %*s %*s %*s %" SCNx64, name,
		   &bytes, &addr) != 3 || addr == 0)
		return;
	snprintf(path, sizeof(path),
		 "/sys/module/%s/notes/.note.gnu.build-id", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		ssize_t n = read(fd, notes, sizeof(notes));

		close(fd);
		if (n > 0)
			id_size = seam_build_id_in_notes(
				(struct seam_bytes) { notes, (size_t)n }, id);
	}
	snprintf(title, sizeof(title), "[%s]", name);
	put_kernel_mmap(synth, addr, bytes, 0, id, id_size, title);
}

void seam_synth_kernel(struct seam_synth *synth,
		       const struct seam_kernel_identity *id)
{
	FILE *memory = fopen("/proc/iomem", "re"), *modules;
	uint64_t bytes = MAX_TEXT_BYTES;
	char line[512];

	/*
	 * From _text to the end of the code.
	 * "  01000000-02209987 : Kernel code"; zeros without CAP_SYS_ADMIN.
	 */
	while (memory && fgets(line, sizeof(line), memory)) {
		char *end;
		uint64_t first = strtoull(line, &end, 16);
		uint64_t last = *end == '-' ? strtoull(end + 1, NULL, 16) : 0;

		if (strstr(line, ": Kernel code") && last > first)
			bytes = last + 1 - first;
	}
	if (memory)
		fclose(memory);
	put_kernel_mmap(synth, id->text_addr, bytes, id->text_addr,
			id->build_id, id->build_id_size,
			"[kernel.kallsyms]_text");
	modules = fopen("/proc/modules", "re");
	while (modules && fgets(line, sizeof(line), modules))
		put_module(synth, line);
	if (modules)
		fclose(modules);
}

/* Source: enum of *_NS_INDEX, linux/perf_event.h. */
static const char *const namespaces[NR_NAMESPACES] = {
	[NET_NS_INDEX] = "net", [UTS_NS_INDEX] = "uts",
	[IPC_NS_INDEX] = "ipc", [PID_NS_INDEX] = "pid",
	[USER_NS_INDEX] = "user", [MNT_NS_INDEX] = "mnt",
	[CGROUP_NS_INDEX] = "cgroup",
};

void seam_synth_threads(struct seam_synth *synth, int pid, bool with_namespaces)
{
	struct { uint64_t dev, ino; } links[NR_NAMESPACES];
	struct seam_perf_namespaces fields = {
		.pid = pid, .nr_namespaces = NR_NAMESPACES,
		.link_info = { (const uint8_t *)links, sizeof(links) },
	};
	struct seam_number_list tids = { 0 };
	bool has_link;

	seam_procfs_threads(&tids, pid, NULL);
	for (size_t i = 0; i < tids.n; i++) {
		char path[64], name[64];
		struct seam_perf_comm comm = { .pid = pid, .comm = name };

		snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", pid,
			 tids.items[i]);
		seam_procfs_text(path, name, sizeof(name));
		comm.tid = tids.items[i];
		if (name[0])
			put_of(synth, PERF_RECORD_COMM, 0, &comm, pid,
			       tids.items[i]);
		fields.tid = tids.items[i];
		has_link = false;
		for (size_t k = 0; with_namespaces && k < NR_NAMESPACES; k++) {
			struct stat st;

			links[k].dev = links[k].ino = 0;
			snprintf(path, sizeof(path), "/proc/%d/task/%d/ns/%s",
				 pid, tids.items[i], namespaces[k]);
			if (stat(path, &st) < 0)
				continue;	/* not permitted, or ended */
			links[k].dev = st.st_dev;
			links[k].ino = st.st_ino;
			has_link = true;
		}
		if (has_link)
			put_of(synth, PERF_RECORD_NAMESPACES, 0, &fields, pid,
			       tids.items[i]);
	}
	free(tids.items);
}

/* State while /proc/PID/maps is read, in the order of addresses. */
struct maps_reader {
	struct seam_synth *synth;
	struct seam_target target;
	int memory;		/* /proc/PID/mem; -1: not permitted */
	uint64_t inode, base;	/* of the last mapping of a file's offset 0 */
};

/*
 * From the mapped file itself, or the file at its path if that is the same: the
 * path may lead to a newer file, or to one of another mount namespace.  Where
 * the file cannot be opened, from memory.
 */
static size_t build_id_of(const struct maps_reader *r,
			  const struct seam_procfs_mapping *m, uint8_t *id)
{
	int fd = seam_target_open_mapping(&r->target, m->begin, m->end, NULL);
	size_t size = 0;
	struct stat st;

	if (fd < 0) {
		fd = seam_target_open_path(&r->target, m->name, NULL);
		if (fd >= 0 && (fstat(fd, &st) < 0 || st.st_ino != m->ino)) {
			close(fd);
			fd = -1;
		}
	}
	if (fd >= 0)
		size = seam_build_id_read(fd, 0, id);
	else if (r->memory >= 0 && r->inode == m->ino)
		size = seam_build_id_read(r->memory, r->base, id);
	seam_file_close_fd(fd);
	return size;
}

static bool take_mapping(void *context, const struct seam_procfs_mapping *m)
{
	struct maps_reader *r = context;
	int pid = r->target.pid;
	struct seam_perf_mmap2 mapping = {
		.pid = pid, .tid = pid, .addr = m->begin,
		.len = m->end - m->begin, .pgoff = m->offset,
		.maj = m->maj, .min = m->min, .ino = m->ino,
		.prot = PROT_READ, .flags = MAP_PRIVATE,
		.filename = m->name[0] ? m->name : "//anon",
	};
	uint16_t misc = PERF_RECORD_MISC_USER;
	uint8_t id[BUILD_ID_BYTES] = { 0 };
	size_t id_size = 0;

	if (m->offset == 0 && m->ino) {
		r->inode = m->ino;
		r->base = m->begin;
	}
	if (m->rights[2] == 'x')
		mapping.prot |= PROT_EXEC;
	else if (r->synth->data_mappings && m->rights[0] == 'r' && m->ino)
		misc |= PERF_RECORD_MISC_MMAP_DATA;
	else
		return true;
	if (r->synth->bytes.n > SEAM_SYNTH_MAX_PROCESS_BYTES) {
		r->synth->n_left_out++;
		return true;
	}
	if (m->name[0] == '/' && m->ino)
		id_size = build_id_of(r, m, id);
	put_mmap(r->synth, misc, &mapping, id, id_size);
	return true;
}

void seam_synth_process(struct seam_synth *synth, int pid, bool with_namespaces)
{
	struct maps_reader r = { .synth = synth, .memory = -1 };

	seam_synth_threads(synth, pid, with_namespaces);
	seam_target_open(&r.target, pid, NULL);
	if (r.target.process >= 0)
		r.memory = openat(r.target.process, "mem",
				  O_RDONLY | O_CLOEXEC);
	seam_procfs_maps(r.target.process, take_mapping, &r);
	seam_file_close_fd(r.memory);
	seam_target_close(&r.target);
}

static void put_cgroup(struct seam_synth *synth, const struct stat *st,
		       const char *path)
{
	/* the id is the inode.  Source: cgroup_id() of Linux */
	struct seam_perf_cgroup fields = { .id = st->st_ino, .path = path };

	put_of(synth, PERF_RECORD_CGROUP, 0, &fields, 0, 0);
}

static int visit_cgroup(void *context, const struct seam_walk_entry *entry)
{
	char path[PATH_MAX + 1];

	snprintf(path, sizeof(path), "/%s", entry->path);
	if (S_ISDIR(entry->st.st_mode))
		put_cgroup(context, &entry->st, path);
	return SEAM_WALK_ON;
}

void seam_synth_cgroups(struct seam_synth *synth)
{
	char root[PATH_MAX];
	struct stat st;
	int dir = *seam_cgroup_root(root) ?
		  open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (dir >= 0 && fstat(dir, &st) == 0) {
		put_cgroup(synth, &st, "/");
		seam_walk(dir, MAX_CGROUP_DEPTH, visit_cgroup, synth);
	}
	seam_file_close_fd(dir);
}

void seam_synth_marker(struct seam_synth *synth, int pid, const char *path,
		       uint64_t time_ns)
{
	struct seam_perf_sample_id sample_id = {
		.pid = pid, .tid = pid, .time = time_ns, .id = synth->id,
	};
	struct seam_perf_mmap2 mapping = {
		.pid = pid, .tid = pid, .len = 1,
		.prot = PROT_READ | PROT_EXEC, .flags = MAP_PRIVATE,
		.filename = path,
	};

	put_record(synth, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, &mapping,
		   &sample_id);
}

void seam_synth_lost_samples(struct seam_synth *synth, uint64_t id,
			     uint32_t cpu, uint64_t time_ns, uint64_t lost)
{
	struct seam_perf_sample_id sample_id = {
		.time = time_ns, .cpu = cpu, .id = id,
	};
	struct seam_perf_lost_samples fields = { .lost = lost };

	put_record(synth, PERF_RECORD_LOST_SAMPLES, 0, &fields, &sample_id);
}

void seam_synth_lost(struct seam_synth *synth, uint64_t id, uint32_t cpu,
		     uint64_t time_ns, uint64_t lost)
{
	struct seam_perf_sample_id sample_id = {
		.time = time_ns, .cpu = cpu, .id = id,
	};
	struct seam_perf_lost fields = { .id = id, .lost = lost };

	put_record(synth, PERF_RECORD_LOST, 0, &fields, &sample_id);
}

void seam_synth_words(struct seam_synth *synth, uint32_t type,
		      const uint64_t *words, size_t n)
{
	struct seam_perf_header header = {
		.type = type,
		.size = (uint16_t)(sizeof(header) + n * sizeof(*words)),
	};

	/* too many CPUs for a record: they are not described */
	if (n > (UINT16_MAX - sizeof(header)) / sizeof(*words))
		return;
	put(synth, &header, sizeof(header));
	put(synth, words, n * sizeof(*words));
}

void seam_synth_end(struct seam_synth *synth)
{
	struct seam_perf_header end = {
		.type = SEAM_PERF_FINISHED_INIT, .size = sizeof(end),
	};

	put(synth, &end, sizeof(end));
}
