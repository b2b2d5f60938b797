#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""seam record: no frame of a stack is one that did not call the next.

Programs whose innermost function fixes its callers, with and without frame
pointers: two callers of one recursion, handlers on an alternate stack, a
coroutine, call frame information that leads to a return address of 0.
"""
import json
import os
import subprocess
import sys

from record_lib import SEAM, check, equal, record, run, run_tests

CODE_C = r"""
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#define KEPT __attribute__((noinline, noclone))
volatile long sink;
static double seconds;
static int goes_on(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9 < seconds;
}
KEPT void spin(long n) { for (volatile long i = 0; i < n; i++); sink++; }
KEPT void leafA(void) { spin(3000); sink++; }
KEPT void leafB(void) { spin(3000); sink--; }
static void (*volatile leaf)(void);
KEPT void recursion(int d)
{
	volatile char room[4000];
	room[0] = d;
	if (d) recursion(d - 1); else leaf();
	sink += room[0];
}
KEPT void callA(int d) { recursion(d); sink++; }
KEPT void callB(int d) { recursion(d); sink--; }
KEPT void rootA(int d) { leaf = leafA; callA(d); sink++; }
KEPT void rootB(int d) { leaf = leafB; callB(d); sink--; }
KEPT static void recur(void)
{
	unsigned x = 1;
	while (goes_on()) {
		x = x * 1103515245 + 12345;
		/* a little deeper than a copy */
		if (x >> 16 & 1) rootA(13); else rootB(13);
	}
}
KEPT void in3(void) { spin(20000); sink++; }
KEPT void handler3(int s) { in3(); sink++; }
KEPT void in2(void) { raise(SIGUSR2); spin(20000); sink++; }
KEPT void handler2(int s) { in2(); sink++; }
KEPT void in1(void) { raise(SIGALRM); sink++; }
KEPT void handler1(int s) { in1(); sink++; }
KEPT void outer2(void) { raise(SIGUSR1); sink++; }
KEPT void outer1(void) { outer2(); sink++; }
KEPT static void handle(void)
{
	struct sigaction a = { .sa_flags = SA_ONSTACK };
	stack_t other = { .ss_size = 1 << 16 };
	other.ss_sp = malloc(other.ss_size);
	sigaltstack(&other, 0);
	a.sa_handler = handler1; sigaction(SIGUSR1, &a, 0);
	a.sa_handler = handler2; sigaction(SIGALRM, &a, 0);
	a.sa_handler = handler3; sigaction(SIGUSR2, &a, 0);
	while (goes_on()) outer1();
}
static ucontext_t main_context, context;
static char *room;
KEPT void body(void) { spin(20000); sink++; }
KEPT void starter(void)
{
	spin(20000);
	getcontext(&context);
	context.uc_stack.ss_sp = room;
	context.uc_stack.ss_size = 65536;
	context.uc_link = &main_context;
	makecontext(&context, body, 0);
	swapcontext(&main_context, &context);
	sink++;
}
KEPT void parent(void) { starter(); sink++; }
KEPT static void switch_stacks(void)
{
	room = malloc(65536);
	while (goes_on()) parent();
}
/* Its rules omit the push: they lead to a return address of 0. */
void wrong_rules(void);
__asm__(".text\n.globl wrong_rules\n.type wrong_rules, @function\n"
	"wrong_rules:\n.cfi_startproc\n push $0\n mov $20000, %ecx\n"
	"1: dec %ecx\n jnz 1b\n pop %rcx\n ret\n.cfi_endproc\n"
	".size wrong_rules, . - wrong_rules\n");
static void mislead(void) { while (goes_on()) wrong_rules(); }
int main(int c, char **v)
{
	seconds = atof(v[2]);
	if (strcmp(v[1], "recursion") == 0) recur();
	else if (strcmp(v[1], "handlers") == 0) handle();
	else if (strcmp(v[1], "coroutine") == 0) switch_stacks();
	else mislead();
	return 0;
}
"""
FLAGS = {"without": "-fomit-frame-pointer", "with": "-fno-omit-frame-pointer"}
ROOTS = ("_start", "_dl_start_user")


def stacks_of(name, how, *options):
    """(user frames from the outermost on, samples) of each, and the counts."""
    program = f"./{name}"
    if not os.path.exists("code.c"):
        with open("code.c", "w", encoding="ascii") as out:
            out.write(CODE_C)
    if not os.path.exists(program):
        subprocess.run(["cc", "-O1", "-w", "-g", FLAGS[name],
                        "-fno-optimize-sibling-calls", "-o", program,
                        "code.c"], check=True)
    path = f"{name}-{how}.seam"
    result = record("-o", path, *options, "--", program, how, "1")
    equal(result.returncode, 0, result.stderr)
    text = run(SEAM, "convert", "--to", "folded", "--no-inline", path).stdout
    stacks = []
    for line in text.splitlines():
        stack, n = line.rsplit(None, 1)
        frames = [frame for frame in stack.split(";")[1:]
                  if not frame.endswith("_[k]")]
        if frames:
            stacks.append((frames, int(n)))
    ended = json.loads(run(SEAM, "report", "--stats", "--json", path).stdout)
    return stacks, ended["user_stacks"]["ended"]


def check_counts(stacks, ended):
    """What is called complete reaches its root by frames of its own."""
    complete = sum(n for frames, n in stacks if "[joined]" not in frames and
                   (frames[0] in ROOTS or is_coroutine(frames)))
    joined = sum(n for frames, n in stacks if "[joined]" in frames)
    check(complete >= ended["complete"], f"{complete}: {ended}")
    equal(joined, ended["joined"])
    for frames, _ in stacks:
        check("[joined]" not in frames or frames[0] in ROOTS, str(frames))


def is_coroutine(frames):
    # a C library without symbols has no name for __start_context()
    return frames[0] == "__start_context" or \
        frames[0].startswith("[libc.so.6+")


def check_recursion(name):
    stacks, ended = stacks_of(name, "recursion", "-F", "2000")
    check_counts(stacks, ended)
    check(ended["truncated"] + ended["joined"] > 100, str(ended))
    for frames, n in stacks:
        sides = {frame[-1] for frame in frames
                 if frame in ("leafA", "leafB", "callA", "callB", "rootA",
                              "rootB")}
        check(len(sides) < 2, f"{n}: {frames}")


def test_a_recursion_has_the_caller_it_had():
    check_recursion("without")


def test_a_recursion_has_the_caller_it_had_by_frame_pointers():
    check_recursion("with")


def check_handlers(name):
    chain = ["main", "handle", "outer1", "outer2", "handler1", "in1",
             "handler2", "in2", "handler3", "in3", "spin"]
    stacks, ended = stacks_of(name, "handlers")
    check_counts(stacks, ended)
    check(ended["other_stack"] + ended["joined"] > 100, str(ended))
    n_in = 0
    for frames, n in stacks:
        own = [frame for frame in frames if frame in chain]
        if not own or "goes_on" in frames:
            continue
        n_in += n * ("handler1" in own)
        if own[-2:] == ["in2", "spin"]:
            own.pop()
        first = chain.index(own[0])
        equal(own, chain[first:first + len(own)])
    check(n_in > 100, str(stacks[:3]))


def test_a_handler_on_another_stack_has_no_callee_as_caller():
    check_handlers("without")


def test_nor_has_it_by_frame_pointers():
    check_handlers("with")


def check_coroutine(name):
    stacks, ended = stacks_of(name, "coroutine")
    check_counts(stacks, ended)
    n_body = 0
    for frames, n in stacks:
        if "body" in frames:
            n_body += n
            check(is_coroutine(frames) and frames.index("body") == 1,
                  str(frames))
    check(n_body > 100, str(stacks[:3]))
    check(ended["complete"] > 0.97 * sum(ended.values()), str(ended))


def test_a_coroutine_begins_at_its_own_entry():
    check_coroutine("without")


def test_a_frame_pointer_of_before_does_not_lead_out_of_it():
    check_coroutine("with")


def test_a_return_address_of_zero_completes_no_stack():
    stacks, ended = stacks_of("without", "mislead")
    check_counts(stacks, ended)
    check(ended["no_mapping"] > 0.9 * sum(ended.values()), str(ended))


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
