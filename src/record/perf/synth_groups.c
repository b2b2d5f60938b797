/* SPDX-License-Identifier: MIT */
/* synth_groups.c - existing namespaces and cgroups; see synth.h */
#include "record/perf/synth_parts.h"
#include "record/proc/procfs.h"

#include <fts.h>
#include <linux/perf_event.h>
#include <mntent.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Source: enum of *_NS_INDEX, linux/perf_event.h. */
static const char *const names[NR_NAMESPACES] = {
	[NET_NS_INDEX] = "net", [UTS_NS_INDEX] = "uts",
	[IPC_NS_INDEX] = "ipc", [PID_NS_INDEX] = "pid",
	[USER_NS_INDEX] = "user", [MNT_NS_INDEX] = "mnt",
	[CGROUP_NS_INDEX] = "cgroup",
};

static void put_namespaces(struct seam_synth *synth, int pid, int tid)
{
	struct seam_perf_sample_id sample_id =
		seam_synth_sample_id(synth, pid, tid);
	struct { uint64_t dev, ino; } links[NR_NAMESPACES] = { 0 };
	struct seam_perf_namespaces fields = {
		.pid = pid, .tid = tid, .nr_namespaces = NR_NAMESPACES,
		.link_info = { (const uint8_t *)links, sizeof(links) },
	};
	bool any = false;

	for (size_t i = 0; i < NR_NAMESPACES; i++) {
		char path[64];
		struct stat st;

		snprintf(path, sizeof(path), "/proc/%d/task/%d/ns/%s", pid,
			 tid, names[i]);
		if (stat(path, &st) < 0)
			continue;	/* not permitted, or ended */
		links[i].dev = st.st_dev;
		links[i].ino = st.st_ino;
		any = true;
	}
	if (any)
		seam_synth_put(synth, PERF_RECORD_NAMESPACES, 0, &fields,
			       &sample_id);
}

void seam_synth_namespaces(struct seam_synth *synth, int pid)
{
	struct seam_number_list tids = { 0 };

	seam_procfs_threads(&tids, pid, NULL);
	for (size_t i = 0; i < tids.n; i++)
		put_namespaces(synth, pid, tids.items[i]);
	free(tids.items);
}

/* Find the mount point of the hierarchy that samples have ids of. */
static bool find_hierarchy(char *path, size_t cap)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	struct mntent *m;
	bool own = false;

	path[0] = '\0';
	while (mounts && !own && (m = getmntent(mounts))) {
		own = strcmp(m->mnt_type, "cgroup") == 0 &&
		      hasmntopt(m, "perf_event");
		if (own || (strcmp(m->mnt_type, "cgroup2") == 0 && !path[0]))
			snprintf(path, cap, "%s", m->mnt_dir);
	}
	if (mounts)
		endmntent(mounts);
	return path[0];
}

void seam_synth_cgroups(struct seam_synth *synth)
{
	struct seam_perf_sample_id sample_id =
		seam_synth_sample_id(synth, 0, 0);
	char root[SEAM_SYNTH_NAME];
	char *const roots[] = { root, NULL };
	size_t n = 0;
	FTSENT *entry;
	FTS *tree;

	if (!find_hierarchy(root, sizeof(root)))
		return;
	tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
	while (tree && n < SEAM_SYNTH_MAX_CGROUPS &&
	       (entry = fts_read(tree))) {
		/* the id is the inode.  Source: cgroup_id() of Linux */
		struct seam_perf_cgroup fields;

		if (entry->fts_info != FTS_D)
			continue;
		fields.id = entry->fts_statp->st_ino;
		fields.path = entry->fts_path + strlen(root);
		if (!*fields.path)
			fields.path = "/";
		seam_synth_put(synth, PERF_RECORD_CGROUP, 0, &fields,
			       &sample_id);
		n++;
	}
	if (tree)
		fts_close(tree);
}
