/* SPDX-License-Identifier: MIT */
/* xray_functions.c - write and read announcements; see xray_functions.h */
#include "wire/xray/xray_functions.h"

#include <errno.h>

/* What is at the start of each record's payload. */
struct image_head {
	uint32_t kind;
	uint32_t image, first_id, n_functions;
	uint64_t bias;
	uint8_t build_id[SEAM_XRAY_BUILD_ID_BYTES];
	uint8_t build_id_bytes;
	uint8_t entries_only;		/* and the path, to the end */
};

struct addresses_head {
	uint32_t kind;
	uint32_t image, first_id, n;	/* and the addresses */
};

struct named_head {
	uint32_t kind, number;		/* and the name */
};

struct trigger_bytes {
	uint32_t kind, trigger, tid, number;
	uint64_t tsc, ticks;
	uint32_t function, unused;
};

struct match_bytes {
	uint32_t kind, trigger, n_functions, unused;
};

enum { PATH_AT = offsetof(struct image_head, entries_only) + 1 };

static bool ids_exist(uint32_t first, uint32_t n)
{
	return first > 0 && first <= SEAM_XRAY_MAX_FUNCTION &&
	       n <= SEAM_XRAY_MAX_FUNCTION - first + 1;
}

static size_t padded(size_t bytes)
{
	return (bytes + 7) & ~(size_t)7;
}

/* ---- write ---- */

static size_t length(const char *text, size_t max)
{
	size_t n = 0;

	while (n < max && text[n])
		n++;
	return n;
}

static size_t put_bytes(uint8_t *buf, size_t cap, const void *bytes,
			size_t size)
{
	if (size > cap)
		return 0;
	memcpy(buf, bytes, size);
	return size;
}

/* @head, and @text with its 0, and zeroes up to a multiple of 8. */
static size_t put_text(uint8_t *buf, size_t cap, const void *head,
		       size_t head_bytes, const char *text, size_t max)
{
	size_t n = length(text, max - 1), size = padded(head_bytes + n + 1);

	if (size > cap)
		return 0;
	memcpy(buf, head, head_bytes);
	memcpy(buf + head_bytes, text, n);
	memset(buf + head_bytes + n, 0, size - head_bytes - n);
	return size;
}

size_t seam_xray_write_image(uint8_t *buf, size_t cap,
			     const struct seam_xray_image *image)
{
	struct image_head head = {
		.kind = SEAM_XRAY_ANNOUNCED_IMAGE, .image = image->image,
		.first_id = image->first_id,
		.n_functions = image->n_functions, .bias = image->bias,
		.build_id_bytes = image->build_id_bytes,
		.entries_only = image->entries_only,
	};

	if (!image->image || image->build_id_bytes > sizeof(head.build_id) ||
	    !ids_exist(image->first_id, image->n_functions))
		return 0;
	memcpy(head.build_id, image->build_id, image->build_id_bytes);
	return put_text(buf, cap, &head, PATH_AT, image->path,
			SEAM_XRAY_MAX_PATH);
}

size_t seam_xray_write_addresses(uint8_t *buf, size_t cap,
				 const struct seam_xray_addresses *addresses)
{
	const struct addresses_head head = {
		.kind = SEAM_XRAY_ANNOUNCED_FUNCTIONS,
		.image = addresses->image, .first_id = addresses->first_id,
		.n = addresses->n,
	};
	size_t bytes = addresses->n * sizeof(*addresses->link_addresses);

	if (addresses->n == 0 || addresses->n > SEAM_XRAY_MAX_ADDRESSES ||
	    !ids_exist(addresses->first_id, addresses->n) ||
	    sizeof(head) + bytes > cap)
		return 0;
	memcpy(buf, &head, sizeof(head));
	memcpy(buf + sizeof(head), addresses->link_addresses, bytes);
	return sizeof(head) + bytes;
}

static bool may_have_name(enum seam_xray_announcement_kind kind, uint32_t n)
{
	return kind == SEAM_XRAY_ANNOUNCED_NAME ? ids_exist(n, 1) :
	       kind == SEAM_XRAY_ANNOUNCED_EVENT_TYPE && n <= UINT16_MAX;
}

size_t seam_xray_write_named(uint8_t *buf, size_t cap,
			     enum seam_xray_announcement_kind kind,
			     const struct seam_xray_named *named)
{
	const struct named_head head = {
		.kind = kind, .number = named->number,
	};

	if (!may_have_name(kind, named->number))
		return 0;
	return put_text(buf, cap, &head, sizeof(head), named->name,
			SEAM_XRAY_MAX_NAME);
}

size_t seam_xray_write_trigger(uint8_t *buf, size_t cap,
			       const struct seam_xray_trigger *trigger)
{
	const struct trigger_bytes bytes = {
		.kind = SEAM_XRAY_ANNOUNCED_TRIGGER,
		.trigger = trigger->trigger, .tid = trigger->tid,
		.number = trigger->number, .tsc = trigger->tsc,
		.ticks = trigger->ticks, .function = trigger->function,
	};

	return put_bytes(buf, cap, &bytes, sizeof(bytes));
}

size_t seam_xray_write_match(uint8_t *buf, size_t cap,
			     const struct seam_xray_match *match)
{
	const struct match_bytes bytes = {
		.kind = SEAM_XRAY_ANNOUNCED_MATCH, .trigger = match->trigger,
		.n_functions = match->n_functions,
	};

	return put_bytes(buf, cap, &bytes, sizeof(bytes));
}

/* ---- read ---- */

/* The text from @at to the padding, if it is as put_text() wrote it. */
static const char *get_text(struct seam_bytes bytes, size_t at, size_t max)
{
	const char *text = (const char *)bytes.data + at;
	size_t n;

	if (bytes.size <= at)
		return NULL;
	n = strnlen(text, bytes.size - at);
	if (n >= max || padded(at + n + 1) != bytes.size)
		return NULL;
	for (size_t i = at + n; i < bytes.size; i++)
		if (bytes.data[i])
			return NULL;
	return text;
}

static bool read_image(struct seam_bytes bytes, struct seam_xray_image *image)
{
	static const uint8_t zeroes[SEAM_XRAY_BUILD_ID_BYTES];
	struct image_head head;

	if (bytes.size <= PATH_AT)
		return false;
	memcpy(&head, bytes.data, PATH_AT);
	if (!head.image || head.build_id_bytes > sizeof(head.build_id) ||
	    memcmp(head.build_id + head.build_id_bytes, zeroes,
		   sizeof(zeroes) - head.build_id_bytes) ||
	    head.entries_only > 1 ||
	    !ids_exist(head.first_id, head.n_functions))
		return false;
	*image = (struct seam_xray_image) {
		.image = head.image, .first_id = head.first_id,
		.n_functions = head.n_functions, .bias = head.bias,
		.build_id_bytes = head.build_id_bytes,
		.entries_only = head.entries_only,
		.path = get_text(bytes, PATH_AT, SEAM_XRAY_MAX_PATH),
	};
	memcpy(image->build_id, head.build_id, sizeof(head.build_id));
	return image->path;
}

static bool read_addresses(struct seam_bytes bytes,
			   struct seam_xray_addresses *addresses)
{
	struct addresses_head head;

	if (bytes.size < sizeof(head))
		return false;
	memcpy(&head, bytes.data, sizeof(head));
	*addresses = (struct seam_xray_addresses) {
		.image = head.image, .first_id = head.first_id, .n = head.n,
		.link_addresses = (const void *)(bytes.data + sizeof(head)),
	};
	return head.n > 0 && head.n <= SEAM_XRAY_MAX_ADDRESSES &&
	       ids_exist(head.first_id, head.n) &&
	       bytes.size == sizeof(head) + head.n * sizeof(uint64_t);
}

static bool read_named(struct seam_bytes bytes, struct seam_xray_named *named)
{
	struct named_head head;

	if (bytes.size < sizeof(head))
		return false;
	memcpy(&head, bytes.data, sizeof(head));
	*named = (struct seam_xray_named) {
		.number = head.number,
		.name = get_text(bytes, sizeof(head), SEAM_XRAY_MAX_NAME),
	};
	return named->name && may_have_name(head.kind, head.number);
}

static bool read_trigger(struct seam_bytes bytes,
			 struct seam_xray_trigger *trigger)
{
	struct trigger_bytes in;

	if (bytes.size != sizeof(in))
		return false;
	memcpy(&in, bytes.data, sizeof(in));
	*trigger = (struct seam_xray_trigger) {
		.trigger = in.trigger, .tid = in.tid, .number = in.number,
		.tsc = in.tsc, .ticks = in.ticks, .function = in.function,
	};
	return in.function <= SEAM_XRAY_MAX_FUNCTION && !in.unused;
}

static bool read_match(struct seam_bytes bytes, struct seam_xray_match *match)
{
	struct match_bytes in;

	if (bytes.size != sizeof(in))
		return false;
	memcpy(&in, bytes.data, sizeof(in));
	*match = (struct seam_xray_match) {
		.trigger = in.trigger, .n_functions = in.n_functions,
	};
	return !in.unused;
}

static bool read_by_kind(struct seam_bytes bytes,
			 struct seam_xray_announcement *a)
{
	switch (a->kind) {
	case SEAM_XRAY_ANNOUNCED_IMAGE:
		return read_image(bytes, &a->image);
	case SEAM_XRAY_ANNOUNCED_FUNCTIONS:
		return read_addresses(bytes, &a->addresses);
	case SEAM_XRAY_ANNOUNCED_TRIGGER:
		return read_trigger(bytes, &a->trigger);
	case SEAM_XRAY_ANNOUNCED_MATCH:
		return read_match(bytes, &a->match);
	case SEAM_XRAY_ANNOUNCED_EVENT_TYPE:
	case SEAM_XRAY_ANNOUNCED_NAME:
		return read_named(bytes, &a->named);
	}
	return false;
}

int seam_xray_read_announcement(struct seam_bytes bytes,
				struct seam_xray_announcement *announcement)
{
	uint32_t kind;

	if (bytes.size < sizeof(kind))
		return -EBADMSG;
	memcpy(&kind, bytes.data, sizeof(kind));
	*announcement = (struct seam_xray_announcement) {
		.kind = (enum seam_xray_announcement_kind)kind,
	};
	return read_by_kind(bytes, announcement) ? 0 : -EBADMSG;
}
