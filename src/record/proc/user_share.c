/* SPDX-License-Identifier: MIT */
/* user_share.c - who maps, and how much; see user_share.h */
#include "record/proc/user_share.h"

#include <linux/perf_event.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "record/proc/helper.h"

static struct seam_shared_process *slot_of(struct seam_user_shares *shares,
					   int32_t pid)
{
	return &shares->processes[(uint32_t)pid % SEAM_SHARE_PROCESSES];
}

static void begin(struct seam_user_shares *shares, int32_t pid, int32_t parent)
{
	struct seam_shared_process of_parent = *slot_of(shares, parent);

	if (pid != parent)
		*slot_of(shares, pid) = (struct seam_shared_process) {
			of_parent.pid == parent ? pid : 0, true, of_parent.user,
		};
}

static uid_t user_of(struct seam_user_shares *shares, int32_t pid)
{
	struct seam_shared_process *p = slot_of(shares, pid);
	bool is_known = p->pid == pid;
	uid_t user;

	if (is_known && !p->is_old)
		return p->user;
	user = seam_helper_user_of(pid);
	/* one that has ended had the user that it, or its parent, had before */
	if (user == SEAM_HELPER_NO_USER && is_known)
		user = p->user;
	*p = (struct seam_shared_process) { pid, false, user };
	return user;
}

size_t seam_user_share_of(uid_t user)
{
	/* keyed: nobody chooses whose share is the same */
	return user == geteuid() ? SEAM_SHARE_USERS :
	       seam_hash_u64(user) % SEAM_SHARE_USERS;
}

bool seam_user_share_take_file(uint16_t counts[SEAM_SHARE_USERS + 1],
			       uid_t user)
{
	size_t i = seam_user_share_of(user);

	if (i < SEAM_SHARE_USERS && counts[i] >= SEAM_SHARE_FILES)
		return false;
	counts[i]++;
	return true;
}

static bool take(struct seam_user_shares *shares, uid_t user, size_t size,
		 uint64_t now_ns)
{
	size_t i = seam_user_share_of(user);
	struct seam_user_share *share = &shares->users[i];
	uint64_t back;

	if (i == SEAM_SHARE_USERS)
		return true;
	back = now_ns > share->ns ? (now_ns - share->ns) / SEAM_NS_PER_MS *
				    (SEAM_SHARE_RATE / 1000) : 0;
	if (back) {
		share->ns = now_ns;
		share->used_bytes -= back < share->used_bytes ? back :
				     share->used_bytes;
	}
	if (size > SEAM_SHARE_BYTES - share->used_bytes)
		return false;
	share->used_bytes += size;
	return true;
}

bool seam_user_shares_take(struct seam_user_shares *shares,
			   const struct seam_perf_sideband *record,
			   size_t size, uint64_t now_ns)
{
	switch (record->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return take(shares, user_of(shares, record->mapping.pid), size,
			    now_ns);
	case PERF_RECORD_FORK:
		begin(shares, record->task.pid, record->task.ppid);
		return true;
	case PERF_RECORD_COMM:
		if (record->misc & PERF_RECORD_MISC_COMM_EXEC)
			slot_of(shares, record->comm.pid)->is_old = true;
		return true;
	default:
		return true;
	}
}
