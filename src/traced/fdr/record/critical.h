/* SPDX-License-Identifier: MIT */
/*
 * critical.h - assembler macros of restartable sequences
 *
 * The kernel finds the sequence that a thread runs through rseq_cs, in the
 * thread's struct rseq.  When the thread is interrupted between @start and
 * @commit, it goes on at @abort, in front of which there is a signature.
 * All registers are as they were.
 *
 * Source: include/uapi/linux/rseq.h; signature: glibc, sys/rseq.h
 */
#pragma once

/* In struct rseq. */
#define RSEQ_CPU_ID	4
#define RSEQ_CS		8
#define RSEQ_SIGNATURE	0x53053053

/*
 * Offsets in structs, and numbers of theirs: critical_numbers.c checks them.
 * In struct seam_fdr_self, seam_fdr_state, seam_fdr_at:
 */
#define SELF_CURSOR	0
#define SELF_AREA	8
#define SELF_MASK	16
#define SELF_STATE	24
#define AT_TSC		0
#define AT_CPU		8
#define STATE_TID	32
#define STATE_EVENT_END	56
#define STATE_HELD	80	/* area.held */
#define FDR_CPU		0x40000000

/* In struct seam_fdr_put. */
#define PUT_STATE	0
#define PUT_CURSOR	8
#define PUT_END		16
#define PUT_WORDS	24
#define PUT_N_WORDS	32
#define PUT_PAYLOAD	40
#define PUT_BYTES	48
#define PUT_PADDING	56
#define PUT_TSC		64
#define PUT_CPU		72
#define PUT_STATE_CPU	76
#define PUT_HELD	80

/* In struct seam_fdr_trampolines. */
#define USED_ENTRY	0
#define USED_EXIT	8
#define USED_TAIL	16
#define USED_ENTRY_ONLY	24

/* Of chunks, records and cursors (wire/xray/xray_chunk.h, ring/layout.h). */
#define CHUNK		0x10000
#define PREAMBLE	64
#define WORD_EXIT	2	/* seam_xray_word(0, SEAM_XRAY_EXIT) */
#define WORD_TAIL	4
#define WORD_ENTRY_ARGS	6
#define CALL_ARGUMENT	13	/* SEAM_XRAY_CALL_ARGUMENT */
#define REWOUND		0x100000000000000

#ifdef __ASSEMBLER__

/* A register onto the stack, and off it, in the unwind table too. */
.macro PUSH register
	pushq	\register
	.cfi_adjust_cfa_offset 8
.endm

.macro POP register
	popq	\register
	.cfi_adjust_cfa_offset -8
.endm

/* Make a frame, with its base in rbp; leave it, whatever was pushed. */
.macro FRAME
	PUSH	%rbp
	.cfi_rel_offset rbp, 0
	movq	%rsp, %rbp
	.cfi_def_cfa_register rbp
.endm

.macro RETURN
	popq	%rbp
	.cfi_restore rbp
	.cfi_def_cfa rsp, 8
	ret
.endm

/* Around a function of this library. */
.macro BEGIN name
	.p2align 6
	.globl \name
	.hidden \name
	.type \name, @function
\name:
	.cfi_startproc
	endbr64
.endm

.macro END name
	.cfi_endproc
	.size \name, . - \name
.endm

/* The struct rseq_cs of sequence @name. */
.macro SEQUENCE name
	.pushsection .data.rel.ro.seam_fdr_sequences, "aw", @progbits
	.balign 32
.Lsequence_\name:
	.long	0, 0				/* version, flags */
	.quad	.Lstart_\name
	.quad	.Lcommit_\name - .Lstart_\name
	.quad	.Labort_\name
	.popsection
.endm

/* Begin sequence @name.  rcx: the offset of rseq.  Changes rax. */
.macro START name
	movq	seam_fdr_rseq_offset(%rip), %rcx
	leaq	.Lsequence_\name(%rip), %rax
	movq	%rax, %fs:RSEQ_CS(%rcx)
.Lstart_\name:
.endm

/*
 * The parts of a record: @self, the thread's seam_fdr_self; @at, the address of
 * its cursor, and r11, the cursor; @state, its state; ecx, the CPU with
 * FDR_CPU.  rcx: from START.  @at may be r11.
 */
.macro LOAD self, at, state
	movq	seam_fdr_self@gottpoff(%rip), \self
	movl	%fs:RSEQ_CPU_ID(%rcx), %ecx
	movq	%fs:SELF_CURSOR(\self), \at
	movq	%fs:SELF_STATE(\self), \state
	movq	(\at), %r11
	xorl	$FDR_CPU, %ecx
.endm

/*
 * @state: from the thread's state to state.at[i] of the cursor r11; to @slow if
 * its CPU is not ecx, which is rseq's with FDR_CPU.  Changes rax.
 */
.macro FIND_AT state, slow
	movl	%r11d, %eax
	andl	$8, %eax
	leaq	(\state,%rax,2), \state
	cmpl	AT_CPU(\state), %ecx
	jne	\slow
.endm

/* @to: the place of the cursor r11 in the area of @self; may be @self. */
.macro FIND_PLACE self, to
	movq	%fs:SELF_AREA(\self), %rax
	movq	%fs:SELF_MASK(\self), \to
	andq	%r11, \to
	addq	%rax, \to
.endm

/* rax: the time stamp counter, rdx: ticks since that of @at */
.macro READ_TICKS at
	rdtsc
	shlq	$32, %rdx
	orq	%rdx, %rax
	movq	%rax, %rdx
	subq	AT_TSC(\at), %rdx
.endm

/*
 * rdx: from ticks to the record of the word r10; to @slow where they are more
 * than 32 bits: the low half is the word's.
 */
.macro MAKE_RECORD slow
	rolq	$32, %rdx
	testl	%edx, %edx
	jnz	\slow
	orq	%r10, %rdx
.endm

/* Store rax and ecx in the other half of state.at[], for the next record. */
.macro STORE_AT at
	xorq	$16, \at
	movq	%rax, AT_TSC(\at)
	movl	%ecx, AT_CPU(\at)
.endm

/* Where an interrupted sequence goes on; the code after it is the caller's. */
.macro ABORT name
	.byte	0x0f, 0xb9, 0x3d		/* ud1 signature(%rip), %edi */
	.long	RSEQ_SIGNATURE
.Labort_\name:
.endm

#endif /* __ASSEMBLER__ */
