/* SPDX-License-Identifier: MIT */
/*
 * handler.c - begin and end to sample a thread, and from the signal to a record
 * in the ring
 *
 * A thread has one mapping, of its tick, and a second one from its first tick
 * on: most threads of a program with thousands use no CPU time.
 *
 * Most of it runs on a stack of the sampler's own, because the interrupted one
 * may be a coroutine's of a few KiB.  All signals but SIGTRAP are blocked
 * meanwhile, so no handler of the program is on that stack, unless a filter
 * traps a call of ours.  On an alternate signal stack the handler stays: the
 * kernel would begin the next signal at its top, over our frame.
 *
 * SIGTRAP is not blocked (SA_NODEFER), because a pending one is dangerous: where
 * a system call of ours is trapped, the kernel enters the handler of SIGTRAP,
 * blocked or not, before that of SIGSYS, which then answers the call by the
 * registers of our entry.  Source: Linux, kernel/signal.c,
 * dequeue_synchronous_signal().
 */
#include "traced/sampler/sampler.h"

#include <errno.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "unwind/in_process/self_memory.h"

enum {
	/* Of an alternate stack, below the handler's first frame. */
	MIN_ALTERNATE_BYTES = 16 << 10,
	/*
	 * Of the CPU time of a thread at most 1/8 is the handler's, without the
	 * signal itself.
	 */
	THROTTLE_PART = 8,
	/* No record fits for so long: nobody reads the ring any more. */
	MAX_UNWRITTEN = 1 << 16,
	RAW_BYTES_AT = sizeof(uint32_t),
};

/* The start of a record.  Source: perf_event_open(2), PERF_RECORD_SAMPLE. */
struct fixed_part {
	uint64_t id, ip;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
	uint64_t period;
};

struct seam_sampler seam_sampler;

__thread struct seam_sampler_self *seam_sampler_self
	__attribute__((tls_model("initial-exec")));

/* ---- counts ---- */

/* Where the recorder finds it, whatever becomes of this thread. */
static void publish(struct seam_sampler_thread *t)
{
	struct seam_ring_state *state;

	if (!t->has_ring)
		return;
	state = &t->claims[SEAM_SAMPLER_GUEST].ring.control->program;
	/* relaxed, all: counts of this thread */
	atomic_store_explicit(&state->n_offered, t->tick->n_due,
			      memory_order_relaxed);
	for (int i = 0; i < SEAM_RING_N_SKIPPED; i++)
		atomic_store_explicit(&state->n_skipped[i], t->n_skipped[i],
				      memory_order_relaxed);
}

/* @n ticks have no sample of their own; the next one has their weight. */
static void skip(struct seam_sampler_thread *t, enum seam_sampler_skip why,
		 uint64_t n)
{
	t->n_skipped[why] += n;
	publish(t);
}

/* ---- a thread ---- */

static _Atomic uint32_t n_ticks;	/* threads */

int seam_sampler_attach(struct seam_sampler_self *self)
{
	int r = -ENOSPC;

	/* relaxed: a thread that begins late is not sampled long */
	if (atomic_load_explicit(&seam_sampler.is_off, memory_order_relaxed))
		return -EPIPE;
	if (self->tick.source != SEAM_TICK_OFF || self->is_paused)
		return 0;
	if (atomic_fetch_add(&n_ticks, 1) < SEAM_SAMPLER_MAX_TICKS)
		r = seam_tick_start(&self->tick, (int32_t)self->tid,
				    seam_sampler.signal, seam_sampler.period_ns);
	if (r < 0)
		atomic_fetch_sub(&n_ticks, 1);
	self->is_refused = r < 0;
	return r;
}

/* The thread's pages.  NULL: there is no memory. */
static struct seam_sampler_thread *pages_of(struct seam_sampler_self *self)
{
	struct seam_sampler_thread *t = self->thread;

	if (!t) {
		t = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (t == MAP_FAILED)
			return NULL;
		if (madvise(t, sizeof(*t), MADV_WIPEONFORK)) {
			munmap(t, sizeof(*t));
			return NULL;
		}
		self->thread = t;
	}
	if (!t->tick) {
		t->tid = self->tid;
		t->spent_ns = t->n_carried = t->n_unwritten = 0;
		memset(t->n_skipped, 0, sizeof(t->n_skipped));
		t->tick = &self->tick;
	}
	return t;
}

void seam_sampler_detach(void)
{
	struct seam_sampler_self *self = seam_sampler_self;
	struct seam_sampler_thread *t = self ? self->thread : NULL;
	struct seam_link_client *c = &seam_sampler.client;

	/* a seccomp filter may be there; the recorder sees the thread's end */
	if (!self || self->tick.source == SEAM_TICK_OFF ||
	    atomic_load_explicit(&seam_sampler.is_off, memory_order_relaxed))
		return;
	self->is_busy = true;
	atomic_signal_fence(memory_order_seq_cst);
	if (t && t->tick)
		skip(t, SEAM_SAMPLER_ENDED, seam_tick_rest(&self->tick));
	seam_tick_stop(&self->tick);
	self->is_busy = false;
	atomic_fetch_sub(&n_ticks, 1);
	if (!t || !t->tick)
		return;
	for (uint32_t i = 0; i < SEAM_SAMPLER_N_SERVICES; i++) {
		if (t->claims[i].word)
			seam_ring_memory_close(&c->memories[i], &t->claims[i]);
		t->claims[i].word = 0;
	}
	t->has_ring = false;
	t->tick = NULL;
}

void seam_sampler_attach_begin_child(void)
{
	atomic_store(&n_ticks, 0);
}

/* ---- the record ---- */

/*
 * The numbers of a callchain: kernel and user part, each after its context.
 * Source: perf_event_open(2), PERF_SAMPLE_CALLCHAIN.
 */
static size_t count_chain(const struct seam_sampler_thread *t,
			  const struct seam_tick_taken *taken)
{
	return (taken->n_kernel ? taken->n_kernel + 1 : 0) +
	       1 + t->sample.stack.n;
}

static void put64(struct seam_ring_writer *w, uint64_t value)
{
	seam_ring_put(w, &value, sizeof(value));
}

static void put_chain(struct seam_ring_writer *w,
		      const struct seam_sampler_thread *t,
		      const struct seam_tick_taken *taken)
{
	put64(w, count_chain(t, taken));
	if (taken->n_kernel) {
		put64(w, (uint64_t)PERF_CONTEXT_KERNEL);
		seam_ring_put(w, taken->kernel, taken->n_kernel * 8);
	}
	put64(w, (uint64_t)PERF_CONTEXT_USER);
	for (size_t i = 0; i < t->sample.stack.n; i++)
		put64(w, t->sample.host[i].pc);
}

/* The guest record, made in t->bytes.  Its size, padded; 0: it does not fit. */
static size_t encode(struct seam_sampler_thread *t, uint64_t weight)
{
	struct seam_guest_head *head = &t->sample.head;
	size_t size;

	head->flags = t->tick->source == SEAM_TICK_TIMER ?
		      SEAM_GUEST_BY_TIMER : 0;
	if (t->tick->source == SEAM_TICK_PERF_USER)
		head->flags |= SEAM_GUEST_NO_KERNEL;
	/* where no VM is on the stack there is none to name */
	if (!head->adapter)
		head->adapter = SEAM_GUEST_LUAJIT;
	head->table = seam_sampler.table;
	head->n_ticks = weight < UINT32_MAX ? (uint32_t)weight : UINT32_MAX;
	size = seam_guest_encode_sample(t->bytes, sizeof(t->bytes) - 8, head,
					t->sample.segments, t->sample.frames);
	/* its size is before it, and a record is a multiple of 8 */
	for (; size && (size + RAW_BYTES_AT) % 8; size++)
		t->bytes[size] = 0;
	return size;
}

/* Whether the record is in the ring; the ring has counted it if not. */
static bool write_sample(struct seam_sampler_thread *t, uint64_t weight,
			 const struct seam_tick_taken *taken)
{
	struct seam_ring_producer *ring = &t->claims[SEAM_SAMPLER_GUEST].ring;
	size_t size = encode(t, weight);
	const uint32_t raw_bytes = (uint32_t)size;
	const struct fixed_part fixed = {
		.ip = t->sample.host[0].pc, .time_ns = taken->time_ns,
		.cpu = taken->cpu, .period = weight * seam_sampler.period_ns,
	};
	struct seam_ring_writer w;

	if (seam_ring_begin(ring, &w, PERF_RECORD_SAMPLE, 0, sizeof(fixed) +
			    8 + 8 * count_chain(t, taken) + RAW_BYTES_AT +
			    size))
		return false;
	seam_ring_put(&w, &fixed, sizeof(fixed));
	put_chain(&w, t, taken);
	seam_ring_put(&w, &raw_bytes, sizeof(raw_bytes));
	seam_ring_put(&w, t->bytes, size);
	seam_ring_end(&w);
	return true;
}

/* ---- names ---- */

/* False: there is no room; the ring has counted it. */
static bool write_symbol(struct seam_sampler_thread *t)
{
	struct seam_ring_producer *ring = &t->claims[SEAM_SAMPLER_SYMTAB].ring;
	uint32_t size = (uint32_t)seam_guest_encode_symbol(t->bytes,
							   &t->symbol);
	/* with its size before it, a multiple of 8 */
	uint32_t raw_bytes = size + (size % 8 == 4 ? 0 : 4);
	const struct fixed_part fixed = {
		.time_ns = seam_clock_ns(), .period = 1,
	};
	struct seam_ring_writer w;

	memset(t->bytes + size, 0, raw_bytes - size);
	if (seam_ring_begin(ring, &w, PERF_RECORD_SAMPLE, 0,
			    sizeof(fixed) + sizeof(raw_bytes) + raw_bytes))
		return false;
	seam_ring_put(&w, &fixed, sizeof(fixed));
	seam_ring_put(&w, &raw_bytes, sizeof(raw_bytes));
	seam_ring_put(&w, t->bytes, raw_bytes);
	seam_ring_end(&w);
	return true;
}

/* Write the names of functions that the sample has for the first time. */
static void announce(struct seam_sampler_thread *t)
{
	const struct seam_guest_sample *sample = &t->sample;

	for (size_t i = 0; i < sample->n_fresh; i++) {
		int r = seam_guest_describe(sample->fresh[i], &t->symbol);

		t->symbol.table = seam_sampler.table;
		if (r == -EAGAIN || (r == 0 && !write_symbol(t)))
			seam_guest_announce_again(sample->fresh[i]);
	}
}

/* ---- whether there is a sample ---- */

/* The recorder paused the ring for good, or took it away, or is gone. */
static bool is_over(const struct seam_sampler_thread *t)
{
	const struct seam_ring_memory *m =
		&seam_sampler.client.memories[SEAM_SAMPLER_GUEST];
	const struct seam_ring_claim *claim = &t->claims[SEAM_SAMPLER_GUEST];

	/* relaxed: a request */
	return !seam_ring_memory_is_held(m, claim) ||
	       t->n_unwritten > MAX_UNWRITTEN ||
	       atomic_load_explicit(&claim->ring.control->program.paused,
				    memory_order_relaxed);
}

/* Threads that start faster than the recorder makes rings try again. */
static bool has_ring(struct seam_sampler_thread *t)
{
	struct seam_link_client *c = &seam_sampler.client;

	if (t->has_ring)
		return true;
	for (uint32_t i = 0; i < SEAM_SAMPLER_N_SERVICES; i++)
		if (!t->claims[i].word &&
		    seam_link_client_claim(c, i, t->tid, &t->claims[i])) {
			seam_ring_memory_lose(&c->memories[SEAM_SAMPLER_GUEST]);
			seam_ring_wakeup_send(&c->wakeup);
			return false;
		}
	t->has_ring = true;
	return true;
}

/* ---- the sample ---- */

struct arguments {
	struct seam_sampler_thread *thread;
	const ucontext_t *context;
	const struct seam_tick_taken *taken;
};

static void sample(void *argument)
{
	const struct arguments *a = argument;
	struct seam_sampler_thread *t = a->thread;
	/* by the monotonic clock, a preemption would seem its cost */
	uint64_t begin_ns = seam_clock_thread_ns(), weight = t->n_carried;

	seam_guest_take(a->context, &t->sample);
	/* names first: they are there when the sample is read */
	announce(t);
	if (write_sample(t, weight, a->taken)) {
		t->n_carried = t->n_unwritten = 0;
	} else {
		t->n_unwritten++;
	}
	t->spent_ns += seam_clock_thread_ns() - begin_ns;
	publish(t);
}

/* Call @function(@argument) on the stack that ends at @top. */
static void call_on(void *top, void (*function)(void *), void *argument)
{
	__asm__ volatile("movq %%rsp, %%rbx\n\t"
			 "movq %[top], %%rsp\n\t"
			 "callq *%[function]\n\t"
			 "movq %%rbx, %%rsp"
			 : [top] "+r" (top), [function] "+r" (function),
			   "+D" (argument)
			 : : "rax", "rbx", "rcx", "rdx", "rsi", "r8", "r9",
			   "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3",
			   "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
			   "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
			   "xmm15", "memory", "cc");
}

static void sample_on_a_stack(struct arguments *a)
{
	const stack_t *alternate = &a->context->uc_stack;
	uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
	uint64_t low = (uint64_t)(uintptr_t)alternate->ss_sp;

	if (alternate->ss_flags & SS_DISABLE || here < low ||
	    here >= low + alternate->ss_size)
		call_on(a->thread->stack + sizeof(a->thread->stack), sample, a);
	else if (here - low >= MIN_ALTERNATE_BYTES)
		sample(a);
	else
		skip(a->thread, SEAM_SAMPLER_NO_STACK, 1);
}

static void take(struct seam_sampler_thread *t, const siginfo_t *info,
		 const ucontext_t *context)
{
	struct seam_tick_taken taken;
	struct arguments a = { t, context, &taken };

	seam_tick_take(t->tick, info, t->record, &taken);
	if (taken.weight == 0)
		return;
	t->n_carried += taken.weight;
	if (taken.weight > 1)
		skip(t, SEAM_SAMPLER_MERGED, taken.weight - 1);
	if (!has_ring(t))
		return;
	if (is_over(t)) {
		skip(t, SEAM_SAMPLER_ENDED, 1);
		seam_sampler_detach();
	} else if (!seam_sampler.is_unthrottled && t->spent_ns >
		   t->tick->n_due * seam_sampler.period_ns / THROTTLE_PART) {
		skip(t, SEAM_SAMPLER_THROTTLED, 1);
	} else {
		sample_on_a_stack(&a);
	}
}

bool seam_sampler_on_signal(int signal, siginfo_t *info, ucontext_t *context)
{
	static const struct seam_tick none;
	struct seam_sampler_self *self = seam_sampler_self;
	struct seam_sampler_thread *t;

	(void)signal;
	if (!seam_tick_is_ours(self ? &self->tick : &none, info))
		return false;
	/* relaxed: after the end, in a program that may be sandboxed */
	if (!self || self->tick.source == SEAM_TICK_OFF ||
	    atomic_load_explicit(&seam_sampler.is_off, memory_order_relaxed))
		return true;
	if (self->is_busy)
		return true;	/* its weight is in the next sample */
	self->is_busy = true;
	atomic_signal_fence(memory_order_seq_cst);
	t = pages_of(self);
	if (t) {
		take(t, info, context);
	} else {
		/* counted when the thread ends */
		seam_sampler_detach();
		self->is_refused = true;
	}
	atomic_signal_fence(memory_order_seq_cst);
	self->is_busy = false;
	return true;
}
