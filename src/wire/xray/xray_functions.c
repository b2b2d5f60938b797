/* SPDX-License-Identifier: MIT */
/* xray_functions.c - write and read announcements; see xray_functions.h */
#include "wire/xray/xray_functions.h"

#include <errno.h>

/* By kind: the members in front of the pointer, and the longest text. */
static const struct {
	uint8_t bytes;
	uint16_t max_text;		/* with its 0; 0: no text follows */
} forms[] = {
	[SEAM_XRAY_ANNOUNCED_IMAGE] = {
		offsetof(struct seam_xray_image, entries_only) + 1,
		SEAM_XRAY_MAX_PATH },
	[SEAM_XRAY_ANNOUNCED_FUNCTIONS] = {
		offsetof(struct seam_xray_addresses, link_addresses), 0 },
	[SEAM_XRAY_ANNOUNCED_EVENT_TYPE] = {
		offsetof(struct seam_xray_named, name), SEAM_XRAY_MAX_NAME },
	[SEAM_XRAY_ANNOUNCED_TRIGGER] = { sizeof(struct seam_xray_trigger), 0 },
	[SEAM_XRAY_ANNOUNCED_MATCH] = { sizeof(struct seam_xray_match), 0 },
	[SEAM_XRAY_ANNOUNCED_NAME] = {
		offsetof(struct seam_xray_named, name), SEAM_XRAY_MAX_NAME },
};

static bool ids_exist(uint32_t first, uint32_t n)
{
	return first > 0 && first <= SEAM_XRAY_MAX_FUNCTION &&
	       n <= SEAM_XRAY_MAX_FUNCTION - first + 1;
}

static bool is_valid_image(const struct seam_xray_image *image)
{
	if (image->build_id_bytes > SEAM_XRAY_BUILD_ID_BYTES)
		return false;
	for (size_t i = image->build_id_bytes; i < SEAM_XRAY_BUILD_ID_BYTES;
	     i++)
		if (image->build_id[i])
			return false;
	return image->image && image->entries_only <= 1;
}

/* Whether the members in front of the pointer are as they may be. */
static bool is_valid(const struct seam_xray_announcement *a)
{
	switch ((enum seam_xray_announcement_kind)a->kind) {
	case SEAM_XRAY_ANNOUNCED_IMAGE:
		return is_valid_image(&a->image);
	case SEAM_XRAY_ANNOUNCED_FUNCTIONS:
		return a->addresses.n > 0 &&
		       a->addresses.n <= SEAM_XRAY_MAX_ADDRESSES &&
		       ids_exist(a->addresses.first_id, a->addresses.n);
	case SEAM_XRAY_ANNOUNCED_EVENT_TYPE:
		return a->named.number <= UINT16_MAX;
	case SEAM_XRAY_ANNOUNCED_TRIGGER:
		return a->trigger.function <= SEAM_XRAY_MAX_FUNCTION &&
		       !a->trigger.unused;
	case SEAM_XRAY_ANNOUNCED_MATCH:
		return !a->match.unused;
	case SEAM_XRAY_ANNOUNCED_NAME:
		return ids_exist(a->named.number, 1);
	}
	return false;
}

static size_t padded(size_t bytes)
{
	return (bytes + 7) & ~(size_t)7;
}

size_t seam_xray_write_announcement(uint8_t *buf, size_t cap,
				const struct seam_xray_announcement *a)
{
	const void *rest = NULL;
	size_t head, n = 0, size;

	if (!is_valid(a))
		return 0;
	head = forms[a->kind].bytes;
	if (forms[a->kind].max_text) {
		const char *text = a->kind == SEAM_XRAY_ANNOUNCED_IMAGE ?
				   a->image.path : a->named.name;

		while (n < forms[a->kind].max_text - 1u && text[n])
			n++;
		rest = text;
		size = padded(head + n + 1);
	} else {
		if (a->kind == SEAM_XRAY_ANNOUNCED_FUNCTIONS) {
			rest = a->addresses.link_addresses;
			n = a->addresses.n * sizeof(uint64_t);
		}
		size = head + n;
	}
	if (size > cap)
		return 0;
	memcpy(buf, a, head);
	if (n)
		memcpy(buf + head, rest, n);
	memset(buf + head + n, 0, size - head - n);
	return size;
}

/* The text from @at to the padding; NULL: the writer makes none such. */
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

int seam_xray_read_announcement(struct seam_bytes bytes,
				struct seam_xray_announcement *a)
{
	const void *rest;
	uint32_t kind;
	size_t head;

	if (bytes.size < sizeof(kind))
		return -EBADMSG;
	memcpy(&kind, bytes.data, sizeof(kind));
	head = kind < SEAM_ARRAY_SIZE(forms) ? forms[kind].bytes : 0;
	if (!head || bytes.size < head)
		return -EBADMSG;
	*a = (struct seam_xray_announcement) { .kind = kind };
	memcpy(a, bytes.data, head);
	if (!is_valid(a))
		return -EBADMSG;
	rest = bytes.data + head;
	if (forms[kind].max_text)
		rest = get_text(bytes, head, forms[kind].max_text);
	else if (bytes.size - head != (kind == SEAM_XRAY_ANNOUNCED_FUNCTIONS ?
				       a->addresses.n * sizeof(uint64_t) : 0))
		return -EBADMSG;
	if (kind == SEAM_XRAY_ANNOUNCED_IMAGE)
		a->image.path = rest;
	else if (kind == SEAM_XRAY_ANNOUNCED_FUNCTIONS)
		a->addresses.link_addresses = rest;
	else if (forms[kind].max_text)
		a->named.name = rest;
	return rest ? 0 : -EBADMSG;
}
