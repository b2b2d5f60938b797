/* SPDX-License-Identifier: MIT */
/*
 * fuzz_sysprof.c - any bytes as a sysprof stream
 *
 * Oracle: every item moves the reader; all items that were read, written again,
 * read as the same and are written as the same bytes, no longer than the stream
 * but for the headers; the profile has a sample for each, in its state, as many
 * frames as host and Lua stack have but for C functions, which are one; and the
 * stack that LuaJIT's parser would make has no more than it may.
 */
#include "fuzz.h"
#include "model/sysprof/load_sysprof.h"
#include "wire/sysprof/sysprof.h"

#include <errno.h>

/* Write the items of @bytes that are whole.  Returns how many there are. */
static size_t copy_items(struct seam_bytes bytes,
			 struct seam_sysprof_buffer *to)
{
	struct seam_sysprof_reader r;
	struct seam_sysprof_item item;
	size_t n = 0, before = 0;

	seam_sysprof_begin(&r, bytes);
	for (; seam_sysprof_next(&r, &item, NULL) > 0; n++) {
		must(r.cursor.pos > before && item.offset == before);
		before = r.cursor.pos;
		must(seam_sysprof_write(to, &item) == 0);
	}
	must(seam_sysprof_next(&r, &item, NULL) == 0);
	seam_sysprof_fini(&r);
	return n;
}

static void check_copy(struct seam_bytes bytes)
{
	struct seam_sysprof_buffer one = { 0 }, two = { 0 };
	size_t n = copy_items(bytes, &one);

	must(n == copy_items((struct seam_bytes) { one.items, one.n }, &two));
	must(one.n == two.n && one.n <= bytes.size);
	must(!one.n || memcmp(one.items, two.items, one.n) == 0);
	free(one.items);
	free(two.items);
}

static size_t depth_of(const struct seam_profile *p, uint32_t stack)
{
	size_t n = 0;

	for (; stack; stack = p->stacks.items[stack].parent)
		n++;
	return n;
}

static void check_sample(const struct seam_profile *p, size_t i,
			 const struct seam_sysprof_item *item, bool as_parser)
{
	size_t n_c = 0, n = depth_of(p, p->samples.stack[i]);
	size_t all = item->n_host + item->n_lua;

	must(p->samples.vmstate[i] == item->vmstate);
	if (item->vmstate == SEAM_VMSTATE_TRACE) {
		must(n == 2);
		return;
	}
	for (size_t k = 0; k < item->n_lua; k++)
		n_c += item->lua[k].kind == SEAM_SYSPROF_CFUNC;
	must(n >= item->n_host);
	if (as_parser)
		must(n <= 65536 + 2 * all);
	else
		must(n <= all && n >= all - n_c);
}

static void check_profile(struct seam_bytes bytes, bool as_parser)
{
	struct seam_file file = {
		.bytes = { malloc(bytes.size + 1), bytes.size },
	};
	struct seam_profile p;
	struct seam_sysprof_reader r;
	struct seam_sysprof_item item;
	size_t n = 0;
	int rc;

	memcpy((uint8_t *)(uintptr_t)file.bytes.data, bytes.data, bytes.size);
	must(seam_profile_init(&p) == 0);
	rc = seam_load_sysprof(&p, &file, as_parser, NULL);
	must(rc == 0 || rc == -ENODATA || rc == -EBADMSG || rc == -ENOTSUP);
	seam_sysprof_begin(&r, bytes);
	while (seam_sysprof_next(&r, &item, NULL) > 0)
		if (item.kind == SEAM_SYSPROF_SAMPLE)
			check_sample(&p, n++, &item, as_parser);
	must(n == p.samples.n);
	seam_sysprof_fini(&r);
	seam_profile_fini(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seam_bytes bytes = { data, size };
	static FILE *out;

	if (!out)
		out = fopen("/dev/null", "w");
	check_copy(bytes);
	check_profile(bytes, false);
	check_profile(bytes, true);
	seam_sysprof_print(out, bytes, SEAM_LINE_JSON, NULL);
	return 0;
}
