/* SPDX-License-Identifier: MIT */
/* guest_stub.c - until the adapter is here */
#include "target/guest/guest_sample.h"
#include "unwind/in_process/self_walk.h"
#include <errno.h>
void seam_guest_take(const ucontext_t *context, struct seam_guest_sample *s)
{
	s->stack.frames = s->host;
	s->stack.max = SEAM_GUEST_MAX_HOST;
	seam_self_walk(context, &s->stack);
	s->head = (struct seam_guest_head) { .adapter = 1, .vmstate = 0, .guest_end = SEAM_GUEST_ABSENT, .n_ticks = 1 };
	s->n_fresh = 0;
}
int seam_guest_describe(uint32_t id, struct seam_guest_symbol *symbol) { (void)id; (void)symbol; return -ENOENT; }
uint32_t seam_guest_n_symbols(void) { return 0; }
void seam_guest_announce_again(uint32_t id) { (void)id; }
void seam_guest_announce_all_again(void) { }
int seam_guest_init(void) { return 0; }
int seam_guest_refresh(void) { return 0; }
const char *seam_guest_refusal(void) { return ""; }
const char *seam_guest_vms(void) { return "stub"; }
