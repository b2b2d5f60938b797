/* SPDX-License-Identifier: MIT */
/* link.c - messages by their tables; see link.h */
#include "ring/link/link.h"

#include <errno.h>

#define SPEC "Seam's link, doc/design/ring.md"

#define TABLE(id, label)						\
	static const struct seam_record id##_record = {			\
		.name = (label), .spec = SPEC, .fields = id##_fields,	\
		.n_fields = SEAM_ARRAY_SIZE(id##_fields),		\
	}

#define F(member, text) SEAM_FIELD(struct seam_link_head, member, text)
static const struct seam_field head_fields[] = {
	F(magic, "\"seam\""),
	F(version, "SEAM_LINK_VERSION"),
	F(kind, "enum seam_link_kind"),
};
#undef F
TABLE(head, "head");

#define F(member, text) SEAM_FIELD(struct seam_link_hello, member, text)
static const struct seam_field hello_fields[] = {
	F(pid, "in the program's pid namespace; shown, not trusted"),
	F(services, "names with a space between them"),
	F(name, "of the program; shown, not trusted"),
};
#undef F
TABLE(hello, "HELLO");

#define F(member, text) SEAM_FIELD(struct seam_link_welcome, member, text)
static const struct seam_field welcome_fields[] = {
	F(service, "index in the list of HELLO"),
	F(n_more, "WELCOMEs that follow"),
	F(n_slots, "rings in the memory"),
	F(mode, "enum seam_ring_mode"),
	F(aux_free_running, "1: AUX buffers overwrite"),
	F(watermark, "bytes between wakeups, 0 for half a ring"),
	F(data_bytes, "of a ring"),
	F(aux_bytes, "of its AUX buffer, 0 for none"),
	F(pid, "of the program, in the recorder's pid namespace"),
};
#undef F
TABLE(welcome, "WELCOME");

#define F(member, text) SEAM_FIELD(struct seam_link_refused, member, text)
static const struct seam_field refused_fields[] = {
	F(reason, "for people"),
};
#undef F
TABLE(refused, "REFUSED");

static enum seam_endian native(void)
{
	return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? SEAM_LITTLE :
	       SEAM_BIG;
}

const struct seam_record *seam_link_table(uint16_t kind)
{
	switch (kind) {
	case SEAM_LINK_HELLO: return &hello_record;
	case SEAM_LINK_WELCOME: return &welcome_record;
	case SEAM_LINK_REFUSED: return &refused_record;
	}
	return NULL;
}

int seam_link_send(int socket, enum seam_link_kind kind, const void *body,
		   const int *fds, size_t n_fds, int timeout_ms)
{
	struct seam_link_head head = {
		.magic = SEAM_LINK_MAGIC, .version = SEAM_LINK_VERSION,
		.kind = (uint16_t)kind,
	};
	uint8_t bytes[SEAM_LINK_MAX_BYTES];
	size_t n;

	n = seam_wire_write(&head_record, &head, native(), bytes,
			    sizeof(bytes));
	n += seam_wire_write(seam_link_table(head.kind), body, native(),
			     bytes + n, sizeof(bytes) - n);
	return seam_link_send_bytes(socket, bytes, n, fds, n_fds, timeout_ms);
}

static int decode(struct seam_link_message *m, size_t size)
{
	struct seam_cursor c = seam_cursor_make(m->bytes, size, native());
	const struct seam_record *table;

	if (seam_wire_read(&c, &head_record, &m->head) ||
	    m->head.magic != SEAM_LINK_MAGIC)
		return -EBADMSG;
	table = seam_link_table(m->head.kind);
	if (!table)
		return 1;
	return seam_wire_read(&c, table, &m->hello) ? -EBADMSG : 1;
}

int seam_link_receive(int socket, struct seam_link_message *m,
		      int timeout_ms)
{
	int r = seam_link_receive_bytes(socket, m, timeout_ms);

	if (r > 0)
		r = decode(m, (size_t)r);
	if (r <= 0)
		seam_link_drop_fds(m);
	return r;
}
