/* SPDX-License-Identifier: MIT */
/* sysprof_write.c - items to bytes; see sysprof_write.h */
#include "wire/sysprof/sysprof_write.h"

#include <errno.h>

static void put_byte(struct seam_sysprof_buffer *out, unsigned int byte)
{
	out->items[out->n++] = (uint8_t)byte;
}

static void put_uleb(struct seam_sysprof_buffer *out, uint64_t v)
{
	out->n += seam_wire_put_uleb(out->items + out->n, v);
}

static int put_prologue(struct seam_sysprof_buffer *out, const char *kind,
			uint8_t version)
{
	const uint8_t bytes[SEAM_SYSPROF_PROLOGUE_BYTES] = {
		(uint8_t)kind[0], (uint8_t)kind[1], (uint8_t)kind[2], version,
	};

	return SEAM_ARRAY_EXTEND(out, bytes, sizeof(bytes)) ? 0 : -ENOMEM;
}

static int put_record(struct seam_sysprof_buffer *out, unsigned int byte,
		      const struct seam_record *table, const void *record)
{
	size_t size = seam_wire_write(table, record, SEAM_LITTLE, NULL, 0);

	if (!SEAM_ARRAY_RESERVE(out, size + 1))
		return -ENOMEM;
	put_byte(out, byte);
	out->n += seam_wire_write(table, record, SEAM_LITTLE,
				  out->items + out->n, size);
	return 0;
}

static int put_end(struct seam_sysprof_buffer *out, unsigned int byte)
{
	if (!SEAM_ARRAY_RESERVE(out, 1))
		return -ENOMEM;
	put_byte(out, byte);
	return 0;
}

static void put_lua(struct seam_sysprof_buffer *out,
		    const struct seam_sysprof_item *item)
{
	for (size_t i = 0; i < item->n_lua; i++) {
		put_byte(out, item->lua[i].kind);
		put_uleb(out, item->lua[i].value);
		if (item->lua[i].kind == SEAM_SYSPROF_LFUNC)
			put_uleb(out, item->lua[i].line);
	}
	put_byte(out, SEAM_SYSPROF_FRAMES_END);
}

static int put_sample(struct seam_sysprof_buffer *out,
		      const struct seam_sysprof_item *item)
{
	size_t most = (1 + 2 * SEAM_ULEB_BYTES) * item->n_lua +
		      SEAM_ULEB_BYTES * item->n_host + 3;

	if (item->vmstate == SEAM_VMSTATE_TRACE)
		return put_record(out, item->vmstate,
				  &seam_sysprof_trace_sample_table,
				  &item->trace);
	if (!SEAM_ARRAY_RESERVE(out, most))
		return -ENOMEM;
	put_byte(out, item->vmstate);
	if (seam_vmstate_has_stack(item->vmstate))
		put_lua(out, item);
	for (size_t i = 0; i < item->n_host; i++)
		put_uleb(out, item->host[i]);
	put_byte(out, 0);
	return 0;
}

int seam_sysprof_write(struct seam_sysprof_buffer *out,
		       const struct seam_sysprof_item *item)
{
	bool is_event = item->is_event;

	switch (item->kind) {
	case SEAM_SYSPROF_SYMTAB:
		return put_prologue(out, "ljs", SEAM_SYSPROF_SYMTAB_VERSION);
	case SEAM_SYSPROF_PROFILE:
		return put_prologue(out, "ljp", SEAM_SYSPROF_VERSION);
	case SEAM_SYSPROF_SYMBOL_LFUNC:
		return put_record(out, is_event ? SEAM_SYSPROF_EVENT_LFUNC :
				  SEAM_SYSPROF_SYMTAB_LFUNC,
				  &seam_sysprof_lfunc_table, &item->lfunc);
	case SEAM_SYSPROF_SYMBOL_CFUNC:
		return put_record(out, is_event ? SEAM_SYSPROF_EVENT_CFUNC :
				  SEAM_SYSPROF_SYMTAB_CFUNC,
				  &seam_sysprof_cfunc_table, &item->cfunc);
	case SEAM_SYSPROF_SYMBOL_TRACE:
		return put_record(out, is_event ? SEAM_SYSPROF_EVENT_TRACE :
				  SEAM_SYSPROF_SYMTAB_TRACE,
				  &seam_sysprof_trace_table, &item->trace);
	case SEAM_SYSPROF_SYMTAB_END:
		return put_end(out, SEAM_SYSPROF_FINAL);
	case SEAM_SYSPROF_END:
		return put_end(out, SEAM_SYSPROF_EPILOGUE);
	case SEAM_SYSPROF_SAMPLE:
		break;
	}
	return put_sample(out, item);
}
