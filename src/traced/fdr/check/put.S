/* SPDX-License-Identifier: MIT */
/*
 * put.S - see checked.h
 *
 * Restartable sequences, as in trampolines.S.  An interrupted one begins again,
 * so what is before it sets all registers that it uses and changes.
 */
#include "traced/fdr/record/critical.h"

#define TAKEN_BACK	1		/* SEAM_FDR_TAKEN_BACK */

	.text

/*
 * r10: word	r9: arguments	r8: their number * 8
 * r11: cursor	rsi: state.at[i]	rcx: rseq, cpu
 * rdi: self, then where to store
 */
	BEGIN	seam_fdr_put_call
	movl	%edi, %r10d
	movq	%rsi, %r9
	leal	(,%rdx,8), %r8d
.Lagain_put_call:
	START	put_call
	LOAD	self=%rdi, at=%r11, state=%rsi
	/* it fits the chunk, which is begun: 0 - 1 is the largest there is */
	leal	-1(%r11), %eax
	andl	$(CHUNK - 1), %eax
	leal	(%rax,%r8,2), %eax
	cmpl	$(CHUNK - 8), %eax
	jae	.Lslow_put_call
	FIND_AT	%rsi, .Lslow_put_call
	FIND_PLACE self=%rdi, to=%rdi
	READ_TICKS %rsi
	MAKE_RECORD .Lslow_put_call
	movq	%rdx, (%rdi)
	STORE_AT %rsi
	leaq	8(%r11,%r8,2), %r11
	xorl	%esi, %esi
	cmpq	%r8, %rsi
	je	2f
1:	movq	(%r9,%rsi), %rdx
	movq	%rdx, %rcx
	shlq	$8, %rdx
	shrq	$56, %rcx
	orq	$CALL_ARGUMENT, %rdx
	movq	%rdx, 8(%rdi,%rsi,2)
	movq	%rcx, 16(%rdi,%rsi,2)
	addq	$8, %rsi
	cmpq	%r8, %rsi
	jne	1b
2:	movq	seam_fdr_self@gottpoff(%rip), %rdi
	movq	%fs:SELF_CURSOR(%rdi), %rdi
	movq	%r11, (%rdi)
.Lcommit_put_call:
	ret
	ABORT	put_call
	jmp	.Lagain_put_call
.Lslow_put_call:
	xorl	%eax, %eax
	ret
	END	seam_fdr_put_call
	SEQUENCE put_call

/*
 * r10: word	rbx: bytes of arguments
 * r11: cursor	r9: where it is	rsi: state.at[i]	rcx: rseq, cpu
 * rdi: self, then where to store
 * r8: the delta of the entry, then the result
 */
	BEGIN	seam_fdr_put_end
	PUSH	%rbx
	.cfi_rel_offset rbx, 0
	movl	%edi, %r10d
	movl	%esi, %ebx
	shll	$4, %ebx
.Lagain_put_end:
	START	put_end
	LOAD	self=%rdi, at=%r9, state=%rsi
	testw	%r11w, %r11w
	jz	.Lslow_put_end
	/* a payload can end with anything */
	movq	STATE_EVENT_END(%rsi), %rax
	xorq	%r11, %rax
	shlq	$8, %rax
	jz	.Lslow_put_end
	FIND_AT	%rsi, .Lslow_put_end
	FIND_PLACE self=%rdi, to=%rdi

	/* is the last record the entry; one after the preamble takes C */
	movzwl	%r11w, %eax
	subl	%ebx, %eax
	cmpl	$PREAMBLE + 16, %eax
	jl	.Lslow_put_end
	movq	%rdi, %rdx
	subq	%rbx, %rdx
	movq	-8(%rdx), %r8
	leal	-WORD_EXIT(%r10), %eax
	testl	%ebx, %ebx
	jz	1f
	orl	$WORD_ENTRY_ARGS, %eax
1:	cmpl	%eax, %r8d
	jne	2f
	/* 0: it has metadata before it, or is metadata */
	shrq	$32, %r8
	jz	.Lslow_put_end
	/* a tail exit may be taken back as well */
	movl	-16(%rdx), %eax
	andl	$15, %eax
	cmpl	$WORD_TAIL, %eax
	je	.Lslow_put_end
	READ_TICKS %rsi
	cmpq	seam_fdr_min_ticks(%rip), %rdx
	jae	3f
	/* the recorder copies the area just now */
	movq	seam_fdr_self@gottpoff(%rip), %rax
	movq	%fs:SELF_STATE(%rax), %rax
	movq	STATE_HELD(%rax), %rax
	testq	%rax, %rax
	jz	1f
	cmpl	$0, (%rax)
	jne	.Lslow_put_end
1:
	/* the state as before the entry */
	movq	AT_TSC(%rsi), %rax
	subq	%r8, %rax
	movl	$TAKEN_BACK, %r8d
	movq	$REWOUND - 8, %rdx
	addq	%rdx, %r11
	subq	%rbx, %r11
	jmp	4f

	/* or an entry with other arguments, or none */
2:	movq	-8(%rdi), %rdx
	leal	-WORD_EXIT(%r10), %eax
	cmpl	%eax, %edx
	je	.Lslow_put_end
	movq	%rdx, %rax
	shrq	$32, %rax
	jz	.Lslow_put_end
	/* what went on in a tail call may be the last in this call */
	andl	$15, %edx
	cmpl	$WORD_TAIL, %edx
	je	.Lslow_put_end
	READ_TICKS %rsi
3:	MAKE_RECORD .Lslow_put_end
	movq	%rdx, (%rdi)
	movq	%rax, %r8
	addq	$8, %r11
4:	STORE_AT %rsi
	movq	%r11, (%r9)
.Lcommit_put_end:
	movq	%r8, %rax
	.cfi_remember_state
	POP	%rbx
	.cfi_restore rbx
	ret
	.cfi_restore_state
	ABORT	put_end
	jmp	.Lagain_put_end
.Lslow_put_end:
	xorl	%eax, %eax
	POP	%rbx
	.cfi_restore rbx
	ret
	END	seam_fdr_put_end
	SEQUENCE put_end

	.section .note.GNU-stack, "", @progbits
