/* SPDX-License-Identifier: MIT */
/* ipc.c - framed messages over a socket; the contract is in ipc.h */
#include "symbol/sandbox/ipc.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

/* More than the instructions of the largest function take. */
#define MAX_MESSAGE ((size_t)1 << 30)

/* A receiver waits for so long, and looks whether it should go on. */
#define WAIT_NS SEAM_NS_PER_S

struct message_header {
	uint32_t kind, size;
};

static int send_all(int fd, const uint8_t *p, size_t size)
{
	while (size > 0) {
		ssize_t n = send(fd, p, size, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EPIPE;
		p += n;
		size -= (size_t)n;
	}
	return 0;
}

void seam_ipc_put(struct seam_ipc *ipc, const void *data, size_t size)
{
	ipc->is_broken = ipc->is_broken ||
			 !SEAM_ARRAY_EXTEND(&ipc->out, data, size);
}

void seam_ipc_put_u32(struct seam_ipc *ipc, uint32_t v)
{
	seam_ipc_put(ipc, &v, sizeof(v));
}

void seam_ipc_put_u64(struct seam_ipc *ipc, uint64_t v)
{
	seam_ipc_put(ipc, &v, sizeof(v));
}

void seam_ipc_put_text(struct seam_ipc *ipc, const char *text)
{
	seam_ipc_put(ipc, text ? text : "",
		     text ? strlen(text) + 1 : 1);
}

/* The header alone: a descriptor is attached to it. */
static int send_header(int fd, const struct message_header *header, int pass)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec bytes = { (void *)(uintptr_t)header, sizeof(*header) };
	struct msghdr message = {
		.msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);
	ssize_t n;

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &pass, sizeof(pass));
	do
		n = sendmsg(fd, &message, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(*header) ? 0 : -EPIPE;
}

int seam_ipc_send(struct seam_ipc *ipc, uint32_t kind, int fd)
{
	struct message_header header = { kind, (uint32_t)ipc->out.n };
	size_t size = ipc->out.n;
	int r;

	ipc->out.n = 0;
	if (ipc->is_broken || size > MAX_MESSAGE) {
		ipc->is_broken = false;
		return -ENOMEM;
	}
	if (fd >= 0) {
		r = send_header(ipc->fd, &header, fd);
	} else if (size < 4096) {
		/* one system call for a small one */
		uint8_t both[sizeof(header) + 4096];

		memcpy(both, &header, sizeof(header));
		if (size)
			memcpy(both + sizeof(header), ipc->out.items,
			       size);
		return send_all(ipc->fd, both, sizeof(header) + size);
	} else {
		r = send_all(ipc->fd, (const uint8_t *)&header,
			     sizeof(header));
	}
	return r ? r : send_all(ipc->fd, ipc->out.items, size);
}

static int count_wait(struct seam_ipc *ipc)
{
	ipc->n_waits++;
	ipc->wait_ns = seam_clock_ns();
	return ipc->is_timed_out && ipc->is_timed_out(ipc) ? -ETIMEDOUT :
	       0;
}

/* After a call that gave @n: 0 to go on, or the error. */
static int after_receive(struct seam_ipc *ipc, ssize_t n)
{
	bool is_timeout = n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);

	if (n == 0 || (n < 0 && errno != EINTR && !is_timeout))
		return -EPIPE;
	/* also of a message that comes byte by byte */
	return is_timeout || seam_clock_ns() - ipc->wait_ns >= WAIT_NS ?
	       count_wait(ipc) : 0;
}

static int receive_all(struct seam_ipc *ipc, uint8_t *p, size_t size)
{
	while (size > 0) {
		ssize_t n = recv(ipc->fd, p, size, 0);
		int r = after_receive(ipc, n);

		if (r)
			return r;
		if (n > 0) {
			p += n;
			size -= (size_t)n;
		}
	}
	return 0;
}

static int take_descriptor(struct msghdr *message)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(message);
	int fd = -1;

	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

static int receive_header(struct seam_ipc *ipc, struct message_header *header,
			  int *passed)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
	struct iovec bytes = { header, sizeof(*header) };
	struct msghdr message = {
		.msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n;
	int r;

	do {
		n = recvmsg(ipc->fd, &message, MSG_CMSG_CLOEXEC);
		r = after_receive(ipc, n);
	} while (n <= 0 && !r);
	if (r)
		return r;
	*passed = take_descriptor(&message);
	return receive_all(ipc, (uint8_t *)header + n,
			   sizeof(*header) - (size_t)n);
}

int seam_ipc_receive(struct seam_ipc *ipc, struct seam_message *message)
{
	struct message_header header;
	int r;

	*message = (struct seam_message) { .fd = -1 };
	ipc->n_waits = 0;
	ipc->wait_ns = seam_clock_ns();
	r = receive_header(ipc, &header, &message->fd);
	if (!r && header.size > MAX_MESSAGE)
		r = -EBADMSG;
	if (!r) {
		uint8_t *in = seam_array_reserve(ipc->in, &ipc->in_cap,
						 header.size + (size_t)1, 1);

		ipc->in = in ? in : ipc->in;
		r = in ? receive_all(ipc, in, header.size) : -ENOMEM;
	}
	if (r) {
		if (message->fd >= 0)
			close(message->fd);
		message->fd = -1;
		return r;
	}
	message->kind = header.kind;
	message->body = seam_cursor_make(ipc->in, header.size, SEAM_NATIVE);
	return 0;
}

void seam_ipc_put_err(struct seam_ipc *ipc, const struct seam_err *err)
{
	seam_ipc_put_u32(ipc, (uint32_t)-err->code);
	seam_ipc_put_text(ipc, err->n_causes > 0 ?
			  err->cause[err->n_causes - 1] : "");
}

int seam_ipc_take_err(struct seam_cursor *body, struct seam_err *err)
{
	uint32_t code = seam_cursor_u32(body);
	const char *text = seam_cursor_cstr(body);

	if (body->error)
		return seam_err_set(err, -EBADMSG, "invalid reply");
	if (code == 0)
		return 0;
	return seam_err_set(err, code < 4096 ? -(int)code : -EIO, "%s", text);
}

void seam_ipc_fini(struct seam_ipc *ipc)
{
	if (ipc->fd >= 0)
		close(ipc->fd);
	free(ipc->out.items);
	free(ipc->in);
	*ipc = (struct seam_ipc) { .fd = -1 };
}
