/* SPDX-License-Identifier: MIT */
/* commit.S - see commit.h */
#include "traced/fdr/record/critical.h"

	.text
	.p2align 5
	.globl seam_fdr_commit
	.hidden seam_fdr_commit
	.type seam_fdr_commit, @function
/*
 * r8: put	rdx: self	r9: the cursor, expected and new
 * rdi: where to store; then the state; then where the cursor is
 */
seam_fdr_commit:
	.cfi_startproc
	endbr64
	movq	%rdi, %r8
	START	commit
	movq	seam_fdr_self@gottpoff(%rip), %rdx
	movq	PUT_STATE(%r8), %rax
	/* a fork in a handler: another area, and the state was wiped */
	cmpq	%rax, %fs:SELF_STATE(%rdx)
	jne	.Lfail_commit
	cmpl	$0, STATE_TID(%rax)
	je	.Lfail_commit
	movl	PUT_CPU(%r8), %eax
	cmpl	%eax, %fs:RSEQ_CPU_ID(%rcx)
	jne	.Lfail_commit
	movq	%fs:SELF_CURSOR(%rdx), %rax
	movq	PUT_CURSOR(%r8), %r9
	cmpq	%r9, (%rax)
	jne	.Lfail_commit
	/* after a membarrier of the thread that has set it, as all of this */
	movq	PUT_HELD(%r8), %rax
	testq	%rax, %rax
	jz	0f
	cmpl	$0, (%rax)
	jne	.Lfail_commit

0:	movq	%r9, %rdi
	andq	%fs:SELF_MASK(%rdx), %rdi
	addq	%fs:SELF_AREA(%rdx), %rdi
	movq	PUT_WORDS(%r8), %rsi
	movq	PUT_N_WORDS(%r8), %rcx
	leaq	(%rdi,%rcx,8), %rdi
	leaq	(%rsi,%rcx,8), %rsi
	negq	%rcx
	jz	2f
1:	movq	(%rsi,%rcx,8), %rax
	movq	%rax, (%rdi,%rcx,8)
	incq	%rcx
	jnz	1b
2:	movq	PUT_BYTES(%r8), %rcx
	movq	%rcx, %rax
	orq	PUT_PADDING(%r8), %rax
	jz	3f
	movq	PUT_PAYLOAD(%r8), %rsi
	rep movsb
	xorl	%eax, %eax
	movq	PUT_PADDING(%r8), %rcx
	rep stosb

3:	movq	PUT_END(%r8), %r9
	movq	%r9, %rax
	andl	$8, %eax
	movq	%fs:SELF_STATE(%rdx), %rdi
	leaq	(%rdi,%rax,2), %rdi
	movq	PUT_TSC(%r8), %rax
	movq	%rax, AT_TSC(%rdi)
	movl	PUT_STATE_CPU(%r8), %eax
	movl	%eax, AT_CPU(%rdi)
	movq	%fs:SELF_CURSOR(%rdx), %rdi
	movl	$1, %eax
	movq	%r9, (%rdi)
.Lcommit_commit:
	ret
.Lfail_commit:
	xorl	%eax, %eax
	ret
	ABORT	commit
	xorl	%eax, %eax
	ret
	.cfi_endproc
	.size seam_fdr_commit, . - seam_fdr_commit
	SEQUENCE commit

	.section .note.GNU-stack, "", @progbits
