/* SPDX-License-Identifier: MIT */
/*
 * guest_recording.c - write a recording of a program with a VM in it
 *
 *	guest_recording FILE
 *
 * The program that it describes is this file's own binary, so that native
 * functions have names: main calls lua_pcall, the VM's lj_vm_call interprets
 * app.lua, whose main loop calls lua_payload (in Lua) and c_payload (in C).
 *
 *	10 ms	cpu-clock: main, before there was a sampler; 40 samples
 *	60 ms	lua_payload, recursive; 40 samples, 10 of which represent 3 ticks,
 *		and 5 of which have no line
 *	25 ms	c_payload
 *	 5 ms	a trace that started in lua_payload
 *	 4 ms	the garbage collector, called by lua_payload
 *	 1 ms	a function whose symbol was lost
 *
 * A tick is a millisecond; in all 105 ms in 115 samples.
 */
#include <link.h>
#include <stdio.h>

#include "../guest_file.h"

enum { PID = 100, MS = 1000000, TABLE = 5 };

/* The functions of the program; their first bytes are what is sampled. */
int lj_vm_call(int n);
int lua_pcall(int n);
int c_payload(int n);
int lj_gc_step(int n);

__attribute__((noinline)) int lj_vm_call(int n) { return n * 3 + 1; }
__attribute__((noinline)) int lua_pcall(int n) { return n * 5 + 1; }
__attribute__((noinline)) int c_payload(int n) { return n * 7 + 1; }
__attribute__((noinline)) int lj_gc_step(int n) { return n * 9 + 1; }
int main(int argc, char **argv);

enum { MAIN = 1, LUA_PAYLOAD, TRACE, LOST };

static struct bytes out = { .endian = SEAM_LITTLE };
static uint64_t now = 10 * MS;

static uint64_t address(int (*function)(int n))
{
	return (uint64_t)(uintptr_t)function + 4;
}

/* A mapping without the number of its file, which has changed since. */
static void put_text(uint64_t addr, uint64_t size, uint64_t offset,
		     const char *path)
{
	size_t at = begin_record(&out, PERF_RECORD_MMAP, PERF_RECORD_MISC_USER);

	put_u32(&out, PID);
	put_u32(&out, PID);
	put_u64(&out, addr & ~(uint64_t)4095);
	put_u64(&out, size + (addr & 4095));
	put_u64(&out, offset & ~(uint64_t)4095);
	put_name(&out, path);
	put_stamp(&out, PID, PID, 2);
	end_record(&out, at);
}

/* The text of this binary, which is the first object. */
static int map(struct dl_phdr_info *info, size_t size, void *path)
{
	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && p->p_flags & PF_X)
			put_text(info->dlpi_addr + p->p_vaddr, p->p_memsz,
				 p->p_offset, path);
	}
	return 1;
}

/* What runs: native functions from the leaf on, and the guest's. */
struct moment {
	enum seam_vmstate vmstate;
	int (*leaf)(int n);		/* called by the VM; NULL: none */
	uint32_t n_ticks;
	size_t n_frames;
	struct seam_guest_frame frames[8];
};

static void put_moment(const struct moment *m)
{
	uint64_t chain[6] = { (uint64_t)PERF_CONTEXT_USER };
	size_t n = 1;
	struct seam_guest_segment segment = {
		.join = m->leaf != NULL, .n_replaced = 1,
		.n_frames = (uint16_t)m->n_frames,
	};
	struct guest_instant instant = {
		.pid = PID, .tid = PID, .time = now += MS,
		.weight = (uint64_t)m->n_ticks * MS, .chain = chain,
		.head = {
			.adapter = SEAM_GUEST_LUAJIT, .table = TABLE,
			.vmstate = (uint8_t)m->vmstate, .n_segments = 1,
			.n_ticks = m->n_ticks, .vm = 0x1000,
		},
		.segments = &segment, .frames = m->frames,
	};

	if (m->leaf)
		chain[n++] = address(m->leaf);
	chain[n++] = address(lj_vm_call);
	chain[n++] = address(lua_pcall);
	chain[n++] = (uint64_t)(uintptr_t)main + 4;
	instant.n_chain = n;
	put_guest(&out, &instant);
}

static void put_moments(size_t n, struct moment m)
{
	for (size_t i = 0; i < n; i++)
		put_moment(&m);
}

static struct seam_guest_frame lua(uint32_t id, uint32_t line)
{
	return seam_guest_frame_make(SEAM_GUEST_FRAME_GUEST, id, line);
}

static void put_lua(void)
{
	struct moment m = {
		SEAM_VMSTATE_LFUNC, NULL, 1, 3, {
			lua(LUA_PAYLOAD, 3), lua(LUA_PAYLOAD, 4), lua(MAIN, 9),
		},
	};

	put_moments(20, m);
	m.frames[0] = lua(LUA_PAYLOAD, 4);
	put_moments(10, m);
	m.n_ticks = 3;
	put_moments(5, m);
	m.frames[0] = lua(LUA_PAYLOAD, 0);
	put_moments(5, m);
}

static void put_rest(void)
{
	put_moments(25, (struct moment) { SEAM_VMSTATE_CFUNC, c_payload, 1, 1,
					  { lua(MAIN, 10) } });
	put_moments(5, (struct moment) { SEAM_VMSTATE_TRACE, NULL, 1, 3, {
		seam_guest_frame_make(SEAM_GUEST_FRAME_TRACE, TRACE, 0),
		lua(LUA_PAYLOAD, 4), lua(MAIN, 9) } });
	put_moments(4, (struct moment) { SEAM_VMSTATE_GC, lj_gc_step, 1, 2, {
		lua(LUA_PAYLOAD, 4), lua(MAIN, 9) } });
	put_moments(1, (struct moment) { SEAM_VMSTATE_LFUNC, NULL, 1, 2, {
		lua(LOST, 1), lua(MAIN, 9) } });
}

static void put_symbols(void)
{
	put_symbol(&out, PID, now, (struct seam_guest_symbol) {
		.table = TABLE, .id = MAIN, .last_line = 12 }, "@app.lua", "");
	put_symbol(&out, PID, now, (struct seam_guest_symbol) {
		.table = TABLE, .id = LUA_PAYLOAD, .line = 2, .last_line = 5,
		.address = 0x40001000 }, "@app.lua", "lua_payload");
	put_symbol(&out, PID, now, (struct seam_guest_symbol) {
		.table = TABLE, .id = TRACE, .address = 7, .line = 4,
		.start = LUA_PAYLOAD, .kind = SEAM_GUEST_FRAME_TRACE }, "",
		"");
}

int main(int argc, char **argv)
{
	const uint64_t before[] = { (uint64_t)PERF_CONTEXT_USER,
				    (uint64_t)(uintptr_t)main + 4 };
	char path[4096] = "";
	struct bytes file;
	FILE *f;

	if (argc != 2 || readlink("/proc/self/exe", path, sizeof(path) - 1) < 0)
		return 2;
	put_comm(&out, PID, PID, "luajit", true, 1);
	dl_iterate_phdr(map, path);
	for (int i = 0; i < 40; i++)
		put_sample(&out, TEST_ID_1, PID, PID, (uint64_t)i * MS / 4 + 5,
			   before, 2);
	put_lua();
	put_rest();
	put_symbols();
	file = make_guest_file(&out, true);
	f = fopen(argv[1], "w");
	if (!f || fwrite(file.data, 1, file.size, f) != file.size || fclose(f))
		return 1;
	free(file.data);
	free(out.data);
	return 0;
}
