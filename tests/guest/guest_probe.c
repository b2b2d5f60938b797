/* SPDX-License-Identifier: MIT */
/*
 * guest_probe.c - a module for LuaJIT that samples the program it is in
 *
 *	local probe = require "guest_probe"
 *	probe.start(100)		-- microseconds of CPU time; 0: after
 *					-- each instruction
 *	...
 *	probe.stop("samples.txt")
 *	probe.call(f, ...)		-- lua_call(), from C
 *
 * Samples are kept in memory and written at the end, one a line, root first:
 *
 *	STATE GUEST_END HOST_END|frame;frame;...
 *
 * SEAM_PROBE_CHAOS=1 changes a word that the sample begins with, in each: a
 * register, or a field of the VM's, which gets its value back afterwards.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "traced/guest/guest_adapter.h"
#include "traced/guest/luajit/luajit.h"
#include "unwind/in_process/self_images.h"
#include "unwind/in_process/self_walk.h"

/* Of the program that loads us. */
struct lua_State;
extern double luaL_checknumber(struct lua_State *, int);
extern const char *luaL_optlstring(struct lua_State *, int, const char *,
				   size_t *);
extern int luaL_error(struct lua_State *, const char *, ...);
extern void lua_createtable(struct lua_State *, int, int);
extern void lua_pushcclosure(struct lua_State *,
			     int (*)(struct lua_State *), int);
extern void lua_setfield(struct lua_State *, int, const char *);
extern int lua_gettop(struct lua_State *);
extern void lua_call(struct lua_State *, int, int);
int luaopen_guest_probe(struct lua_State *lua);

enum { LOG_BYTES = 1 << 30 };

/* One sample in the log; then its frames. */
struct kept {
	uint8_t vmstate, guest_end, host_end;
	uint16_t n_frames;
};

struct kept_frame {
	struct seam_guest_frame frame;
	uint32_t first_line;
	uint32_t segment;	/* its place in the host's stack */
};

static struct seam_guest_sample *sample;
static uint8_t *log_bytes;
static size_t n_logged;
static int event_fd = -1;
static bool is_chaos;
static uint64_t main_thread, main_vm;	/* that start() was called in */
static void *ring;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void keep(void)
{
	size_t size = sizeof(struct kept) +
		      sample->n_frames * sizeof(struct kept_frame);
	struct kept kept = {
		.vmstate = sample->head.vmstate,
		.guest_end = sample->head.guest_end,
		.host_end = sample->head.host_end,
		.n_frames = (uint16_t)sample->n_frames };
	uint8_t *to = log_bytes + n_logged;

	if (n_logged + size > LOG_BYTES)
		abort();
	memcpy(to, &kept, sizeof(kept));
	to += sizeof(kept);
	for (size_t i = 0, segment = 0, n = 0; i < sample->n_frames; i++) {
		struct kept_frame frame = { sample->frames[i],
					    sample->origins[i].first_line, 0 };

		while (i == n + sample->segments[segment].n_frames)
			n += sample->segments[segment++].n_frames;
		frame.segment = sample->segments[segment].join;

		memcpy(to, &frame, sizeof(frame));
		to += sizeof(frame);
	}
	n_logged += size;
}

/* --- corrupted samples --- */

static uint64_t seed = UINT64_C(88172645463325252);

static uint64_t random_bits(void)
{
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return seed >> 17;
}

/* Another value: a bit of it, any address, a little off, or what is mapped. */
static uint64_t corrupt(uint64_t value)
{
	uint64_t r = random_bits();

	switch (r & 3) {
	case 0:
		return value ^ UINT64_C(1) << (r >> 2) % 47;
	case 1:
		return r & 0x7fffffffffff;
	case 2:
		return value + (r >> 2 & 0x1ff) * 8 - 2048;
	default:
		return (uint64_t)(uintptr_t)sample + (r >> 2 & 0xfff);
	}
}

static void corrupt_register(ucontext_t *context)
{
	static const int registers[] = {
		REG_RSP, REG_RBX, REG_RBP, REG_RDX, REG_R14, REG_RIP, REG_R15,
		REG_RBP };
	greg_t *word = &context->uc_mcontext.gregs[
		registers[random_bits() % SEAM_ARRAY_SIZE(registers)]];

	*word = (greg_t)corrupt((uint64_t)*word);
}

/* A field of the main thread or of the VM. */
static uint64_t *some_field(void)
{
	const struct seam_luajit *lj = seam_guest_slots[0].object;
	const struct seam_luajit_offsets *at = &lj->at;
	const uint16_t of_thread[] = { at->l_glref, at->l_base, at->l_stack,
				       at->l_maxstack, at->l_cframe };
	const uint16_t of_vm[] = { at->g_cur_l, at->g_jit_base, at->g_vmstate,
				   at->g_mainthref, at->g_trace };
	uint64_t r = random_bits(), thread = main_thread, vm = main_vm;

	return (uint64_t *)(uintptr_t)((r & 1) ?
		thread + of_thread[(r >> 1) % SEAM_ARRAY_SIZE(of_thread)] :
		vm + of_vm[(r >> 1) % SEAM_ARRAY_SIZE(of_vm)]);
}

static void take_corrupted(const ucontext_t *context)
{
	ucontext_t copy;
	uint64_t *field = random_bits() & 1 ? some_field() : NULL, value = 0;

	memcpy(&copy, context, sizeof(copy));
	if (field) {
		value = *field;
		*field = corrupt(value);
	} else {
		corrupt_register(&copy);
	}
	seam_guest_take(&copy, sample);
	if (field)
		*field = value;
}

static void take(const ucontext_t *context)
{
	if (is_chaos)
		take_corrupted(context);
	else
		seam_guest_take(context, sample);
	keep();
}

static void on_tick(int signal, siginfo_t *info, void *context)
{
	static uint64_t rest_until;
	uint64_t start = now_ns();
	int saved_errno = errno;

	(void)signal;
	(void)info;
	if (start >= rest_until) {
		take(context);
		rest_until = 2 * now_ns() - start;
	}
	errno = saved_errno;
}

/* --- after each instruction --- */

enum { TRAP_FLAG = 1 << 8 };

static volatile bool is_stepping;

static void on_step(int signal, siginfo_t *info, void *context)
{
	ucontext_t *c = context;
	int saved_errno = errno;

	(void)signal;
	(void)info;
	if (is_stepping) {
		take(context);
		c->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
	} else {
		c->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
	}
	errno = saved_errno;
}

static void start_steps(void)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO };

	action.sa_sigaction = on_step;
	sigaction(SIGTRAP, &action, NULL);
	is_stepping = true;
	raise(SIGTRAP);
}

/* --- by the thread's CPU time --- */

static int start_ticks(uint64_t period_ns)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr), .type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_TASK_CLOCK, .sample_period = period_ns,
		.wakeup_events = 1, .exclude_kernel = 1, .exclude_hv = 1,
		.disabled = 1 };
	struct f_owner_ex owner = { F_OWNER_TID, (pid_t)syscall(SYS_gettid) };
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);

	if (fd < 0)
		return -errno;
	ring = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK | O_ASYNC);
	fcntl(fd, F_SETSIG, SIGURG);
	fcntl(fd, F_SETOWN_EX, &owner);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	event_fd = fd;
	return 0;
}

static int start(struct lua_State *lua)
{
	uint64_t period_ns = (uint64_t)(luaL_checknumber(lua, 1) * 1000);
	struct sigaction action = { .sa_flags = SA_SIGINFO | SA_RESTART };
	ucontext_t context;

	if (seam_self_refresh() < 0 || seam_guest_refresh() < 0)
		return luaL_error(lua, "refused: %s", seam_guest_refusal());
	n_logged = 0;
	is_chaos = getenv("SEAM_PROBE_CHAOS") != NULL;
	getcontext(&context);
	seam_guest_take(&context, sample);
	main_thread = (uint64_t)(uintptr_t)lua;
	main_vm = sample->head.vm;
	action.sa_sigaction = on_tick;
	sigaction(SIGURG, &action, NULL);
	if (period_ns == 0)
		start_steps();
	else if (start_ticks(period_ns) < 0)
		return luaL_error(lua, "cannot open an event");
	return 0;
}

/* --- at the end --- */

static void print_frame(FILE *file, const struct kept_frame *kept)
{
	static const char kinds[] = "LCBTX?";
	uint32_t kind = seam_guest_frame_kind(kept->frame);
	struct seam_guest_symbol symbol;

	if (kind == SEAM_GUEST_FRAME_CUT ||
	    seam_guest_describe(kept->frame.id, &symbol) < 0) {
		fprintf(file, "%c", kinds[kind]);
		return;
	}
	fprintf(file, "%c:%.*s:%.*s:%u@%u/%u", kinds[kind], symbol.n_name,
		symbol.name, symbol.n_chunk < 60 ? symbol.n_chunk : 60,
		symbol.chunk, kind == SEAM_GUEST_FRAME_GUEST ?
		kept->first_line : symbol.line,
		seam_guest_frame_line(kept->frame), kept->segment);
}

static void print_samples(FILE *file)
{
	for (size_t at = 0; at < n_logged; ) {
		struct kept kept;
		struct kept_frame frame;

		memcpy(&kept, log_bytes + at, sizeof(kept));
		at += sizeof(kept);
		fprintf(file, "%d %d %d|", kept.vmstate,
			kept.guest_end, kept.host_end);
		for (size_t i = kept.n_frames; i-- > 0; ) {
			memcpy(&frame, log_bytes + at + i * sizeof(frame),
			       sizeof(frame));
			print_frame(file, &frame);
			fputc(i ? ';' : '\n', file);
		}
		if (!kept.n_frames)
			fputc('\n', file);
		at += kept.n_frames * sizeof(frame);
	}
}

static int stop(struct lua_State *lua)
{
	const char *path = luaL_optlstring(lua, 1, NULL, NULL);
	FILE *file = path ? fopen(path, "w") : NULL;

	is_stepping = false;
	if (event_fd >= 0) {
		ioctl(event_fd, PERF_EVENT_IOC_DISABLE, 0);
		close(event_fd);
		munmap(ring, 8192);
		event_fd = -1;
	}
	if (file) {
		print_samples(file);
		fclose(file);
	}
	return 0;
}

/* call(f, ...): as lua_call() of a library calls back. */
static int call(struct lua_State *lua)
{
	lua_call(lua, lua_gettop(lua) - 1, -1);
	return lua_gettop(lua);
}

__attribute__((visibility("default")))
int luaopen_guest_probe(struct lua_State *lua)
{
	static const struct {
		const char *name;
		int (*function)(struct lua_State *);
	} functions[] = {
		{ "start", start }, { "stop", stop }, { "call", call },
	};

	sample = mmap(NULL, sizeof(*sample), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	log_bytes = mmap(NULL, LOG_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (sample == MAP_FAILED || log_bytes == MAP_FAILED ||
	    seam_self_init() < 0 || seam_self_thread_begin() < 0)
		return luaL_error(lua, "cannot prepare");
	seam_guest_init();
	lua_createtable(lua, 0, 0);
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(functions); i++) {
		lua_pushcclosure(lua, functions[i].function, 0);
		lua_setfield(lua, -2, functions[i].name);
	}
	return 1;
}
