/* SPDX-License-Identifier: MIT */
/*
 * self_mutations.c - no context and no call frame information misleads a walk
 *
 * self_mutations N: N contexts whose registers were changed, then N with rules
 * compiled from changed bytes.  Each walk has to end, without a fault, with
 * frames in loaded code alone.  Half of the walks run on an alternate stack,
 * half in a thread whose stack is not known; pages right above and below the
 * stack are not readable.
 * Prints TAP.
 */
#include "unwind/in_process/self_images.c"

#include "self_stacks.h"

enum {
	MAX_WALK = 100,
	WALKS_A_TABLE = 50,
	FORGED_WORDS = 1024,
	STACK_BYTES = 512 << 10,
	ZONE_BYTES = 16 << 10,	/* not readable, as a JVM's guard zones */
	MAX_CHANGED_FRAME = 64 << 10,	/* larger ones take long to compile */
};

void library_call(void (*callee)(void));	/* self_linked.so's */

static uint64_t next_random(void)
{
	static uint64_t x = 88172645463325252;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x;
}

static uint64_t below(uint64_t n)
{
	return next_random() % n;
}

/* --- what a register may hold --- */

static uint64_t *forged;	/* a stack made of addresses; then no page */
static uint64_t stack_low, stack_high;

static uint64_t any_code(void)
{
	size_t i = below(code_ranges.n);

	return code_ranges.list[i].start +
	       below(code_ranges.list[i].end - code_ranges.list[i].start);
}

static uint64_t any_value(uint64_t real)
{
	uint64_t forged_addr = (uint64_t)(uintptr_t)forged;

	switch (below(10)) {
	case 0: return next_random();
	case 1: return real + below(65536) - 32768;
	case 2: return (real + below(65536)) & ~UINT64_C(7);
	case 3: return any_code();
	case 4: return forged_addr + 8 * below(FORGED_WORDS);
	/* the end of what is mapped, and what is not readable there */
	case 5: return forged_addr + 8 * FORGED_WORDS - below(16);
	case 6: return stack_high + below(128) - 64;
	case 7: return stack_low + below(2 * ZONE_BYTES);
	case 8: return below(4096);
	default: return UINT64_MAX - below(4096);
	}
}

static void forge_stack(void)
{
	for (int i = 0; i < FORGED_WORDS; i++)
		forged[i] = below(3) ? any_code() :
				       any_value((uint64_t)(uintptr_t)forged);
}

static void change_registers(ucontext_t *context)
{
	static const int names[] = { REG_RSP, REG_RIP, REG_RBP, REG_RBX,
				     REG_R10, REG_R12, REG_R15 };
	greg_t *regs = context->uc_mcontext.gregs;

	/* one of the first three, or some of all */
	if (below(2)) {
		greg_t *reg = &regs[names[below(3)]];

		*reg = (greg_t)any_value((uint64_t)*reg);
		return;
	}
	for (size_t i = 0; i < SEAM_ARRAY_SIZE(names); i++)
		if (below(2))
			regs[names[i]] =
				(greg_t)any_value((uint64_t)regs[names[i]]);
}

/* --- the oracle --- */

static uint64_t n_failed, n_frames, n_ends[16];

static void check(const struct seam_unwind_stack *stack)
{
	bool is_right = stack->n >= 1 && stack->n <= MAX_WALK &&
			stack->end != SEAM_UNWIND_CALLER &&
			/* there is no copy of a stack that could end */
			stack->end != SEAM_UNWIND_TRUNCATED;

	for (size_t i = 1; i < stack->n; i++) {
		const struct seam_unwind_frame *f = &stack->frames[i];

		is_right = is_right && is_code(f->pc - !f->is_interrupted);
	}
	n_failed += !is_right;
	n_frames += stack->n;
	n_ends[stack->end & 15]++;
}

static void walk_changed(const ucontext_t *context)
{
	struct seam_unwind_frame frames[MAX_WALK];
	struct seam_unwind_stack stack = { .frames = frames, .max = MAX_WALK };
	ucontext_t changed = *context;

	change_registers(&changed);
	seam_self_walk(&changed, &stack);
	check(&stack);
}

static void walk_as_it_is(const ucontext_t *context)
{
	struct seam_unwind_frame frames[MAX_WALK];
	struct seam_unwind_stack stack = { .frames = frames, .max = MAX_WALK };

	seam_self_walk(context, &stack);
	check(&stack);
}

/* --- changed call frame information --- */

enum { MAX_IMAGES = 64 };

static struct changeable {
	struct frame_copy copy;
	uint64_t start;
} images[MAX_IMAGES];
static size_t n_images;

static void copy_frames(void)
{
	struct seam_loaded_images *loaded = seam_loaded_images_list();
	uint64_t end;

	for (size_t i = 0; i < loaded->n && n_images < MAX_IMAGES; i++) {
		struct changeable *image = &images[n_images];
		size_t size;

		if (!find_code(&loaded->list[i], &image->start, &end) ||
		    copy_frame(&loaded->list[i], &image->copy) < 0)
			continue;
		size = image->copy.frame.entries.size;
		if (size && size <= MAX_CHANGED_FRAME)
			n_images++;
		else
			free_frame(&image->copy);
	}
	seam_loaded_images_free(loaded);
}

static struct table_pages *compile_changed(const struct changeable *image)
{
	struct seam_eh_frame frame = image->copy.frame;
	uint8_t *bytes = malloc(frame.entries.size);
	struct table_pages *table;

	memcpy(bytes, frame.entries.data, frame.entries.size);
	for (uint64_t n = 1 + below(64); n > 0; n--)
		bytes[below(frame.entries.size)] = (uint8_t)next_random();
	frame.entries.data = bytes;
	table = make_table(&frame, 0);
	free(bytes);
	return table;
}

/* The images as they are, but for one that has @table. */
static void use_table(struct seam_self_images *used,
		      const struct changeable *image,
		      const struct table_pages *table)
{
	for (size_t i = 0; i < used->n; i++)
		if (used->list[i].start == image->start)
			used->list[i].table = table ? &table->table : NULL;
}

static void walk_by_changed_rules(const ucontext_t *context)
{
	const struct seam_self_images *real = atomic_load(&seam_self_current);
	const struct changeable *image = &images[below(n_images)];
	struct table_pages *table = compile_changed(image);
	struct seam_self_images *changed = malloc(real->n_pages_bytes);

	memcpy(changed, real, real->n_pages_bytes);
	use_table(changed, image, table);
	atomic_store(&seam_self_current, changed);
	for (int i = 0; i < WALKS_A_TABLE; i++) {
		walk_as_it_is(context);
		walk_changed(context);
	}
	atomic_store(&seam_self_current, real);
	free(changed);
	if (table)
		free_table(table);
}

/* --- the walks --- */

static uint64_t n_contexts;
static bool are_rules_changed;

static void on_signal(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	if (are_rules_changed)
		for (uint64_t i = 0; i < n_contexts;
		     i += 2 * WALKS_A_TABLE)
			walk_by_changed_rules(context);
	else
		for (uint64_t i = 0; i < n_contexts; i++) {
			if (i % 64 == 0)
				forge_stack();
			walk_changed(context);
		}
}

static void send(void)
{
	send_signal(SIGUSR1);
}

__attribute__((noinline)) static void deep(int n)
{
	volatile int keep = n;

	if (n > 0)
		deep(n - 1);
	else
		library_call(send);
	keep++;
}

static void *walk_in_thread(void *is_known)
{
	static uint8_t alternate[256 << 10];
	stack_t other = { .ss_sp = alternate, .ss_size = sizeof(alternate) };
	stack_t before;

	sigaltstack(&other, &before);	/* a sanitizer has one of its own */
	if (is_known && seam_self_thread_begin() < 0)
		exit(2);
	for (int flags = 0; flags <= SA_ONSTACK; flags += SA_ONSTACK) {
		struct sigaction action = { .sa_flags = SA_SIGINFO | flags };

		action.sa_sigaction = on_signal;
		sigaction(SIGUSR1, &action, NULL);
		deep(20);
	}
	sigaltstack(&before, NULL);
	return NULL;
}

/* [ not readable | zone, not readable | stack | not readable ] */
static void run_thread(bool is_known)
{
	uint8_t *pages = mmap(NULL, STACK_BYTES + 2 * ZONE_BYTES, PROT_NONE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attr;
	pthread_t thread;

	stack_low = (uint64_t)(uintptr_t)pages + ZONE_BYTES;
	stack_high = stack_low + STACK_BYTES;
	mprotect(pages + 2 * ZONE_BYTES, STACK_BYTES - ZONE_BYTES,
		 PROT_READ | PROT_WRITE);
	pthread_attr_init(&attr);
	if (pages == MAP_FAILED ||
	    pthread_attr_setstack(&attr, pages + ZONE_BYTES, STACK_BYTES) ||
	    pthread_create(&thread, &attr, walk_in_thread,
			   is_known ? &attr : NULL))
		exit(2);
	pthread_join(thread, NULL);
	munmap(pages, STACK_BYTES + 2 * ZONE_BYTES);
}

static void run(int number, const char *promise)
{
	n_failed = n_frames = 0;
	memset(n_ends, 0, sizeof(n_ends));
	run_thread(true);
	run_thread(false);
	printf("%sok %d - %s\n# %llu frames; stacks by end:",
	       n_failed ? "not " : "", number, promise,
	       (unsigned long long)n_frames);
	for (int i = 0; i < 16; i++)
		printf(" %llu", (unsigned long long)n_ends[i]);
	printf("\n");
}

int main(int argc, char **argv)
{
	uint8_t *pages = mmap(NULL, FORGED_WORDS * 8 + 4096,
			      PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool has_failed;

	if (argc < 2 || pages == MAP_FAILED || seam_self_init() < 0)
		return 2;
	copy_frames();
	n_contexts = strtoull(argv[1], NULL, 10) / 4;
	forged = (uint64_t *)(void *)pages;
	mprotect(pages + FORGED_WORDS * 8, 4096, PROT_NONE);
	read_code_ranges();
	/* an endless loop ends the test */
	alarm(60 + (unsigned int)(n_contexts / 1000));
	printf("1..2\n");
	run(1, "a walk from changed registers ends, in loaded code");
	has_failed = n_failed > 0;
	are_rules_changed = true;
	run(2, "a walk by changed rules ends, in loaded code");
	has_failed |= n_failed > 0;
	for (size_t i = 0; i < n_images; i++)
		free_frame(&images[i].copy);
	return has_failed || seam_self_fini() < 0;
}
