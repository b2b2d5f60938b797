/* SPDX-License-Identifier: MIT */
/*
 * trampolines.S - see trampolines.h
 *
 * A plain trampoline is a restartable sequence from the look at the CPU to the
 * store of the new cursor.  fdr_thread.h has the idea; where anything is not
 * as in most calls, the slow path does it all: seam_fdr_record().
 */
#include "target/fdr/record/critical.h"

	.text

/* The arithmetic flags to ax, and back; pushf would store all of them. */
.macro READ_FLAGS
	lahf
	seto	%al
.endm

.macro WRITE_FLAGS
	addb	$0x7f, %al
	sahf
.endm

/*
 * r10: word	r11: cursor	rax: tsc	rdx: delta, record
 * rbx: state.at[i]	rcx: rseq, cpu	rsi: self
 */
.macro PLAIN name, is_tail=0
	BEGIN	seam_fdr_\name
.if \is_tail
	PUSH	%r11
.endif
	PUSH	%rax
	PUSH	%rdx
	PUSH	%rcx
	PUSH	%rsi
	PUSH	%rbx
	.cfi_rel_offset rbx, 0
.if \is_tail
	READ_FLAGS
	PUSH	%rax
.endif
.Lagain_\name:
	START	\name
	LOAD	self=%rsi, at=%r11, state=%rbx
	/* the low 16 bits: the start of a chunk */
	testw	%r11w, %r11w
	jz	.Lslow_\name
	FIND_AT	%rbx, .Lslow_\name
	READ_TICKS %rbx
	MAKE_RECORD .Lslow_\name
	STORE_AT %rbx
	movq	%fs:SELF_MASK(%rsi), %rax
	andq	%r11, %rax
	addq	%fs:SELF_AREA(%rsi), %rax
	movq	%rdx, (%rax)
	movq	%fs:SELF_CURSOR(%rsi), %rax
	addq	$8, %r11
	movq	%r11, (%rax)
.Lcommit_\name:
	.cfi_remember_state
.Lend_\name:
.if \is_tail
	POP	%rax
	WRITE_FLAGS
.endif
	POP	%rbx
	.cfi_restore rbx
	POP	%rsi
	POP	%rcx
	POP	%rdx
	POP	%rax
.if \is_tail
	POP	%r11
.endif
	ret
	.cfi_restore_state
	ABORT	\name
	jmp	.Lagain_\name
.Lslow_\name:
	call	seam_fdr_slow
	jmp	.Lend_\name
	END	seam_fdr_\name
	SEQUENCE \name
.endm

	PLAIN	entry
	PLAIN	exit
	PLAIN	tail, is_tail=1

/* Call seam_fdr_record(r10d, NULL, 0); preserves all but rax to rsi and rbx. */
	.p2align 4
	.type seam_fdr_slow, @function
seam_fdr_slow:
	.cfi_startproc
	FRAME
	pushq	%rdi
	pushq	%r8
	pushq	%r9
	pushq	%r10
	movq	%rsp, %rbx
	andq	$-16, %rsp
	movl	%r10d, %edi
	xorl	%esi, %esi
	xorl	%edx, %edx
	call	seam_fdr_record
	movq	%rbx, %rsp
	popq	%r10
	popq	%r9
	popq	%r8
	popq	%rdi
	RETURN
	END	seam_fdr_slow

/*
 * @return_slot: from the stack pointer at the start to where the return address
 * of the function is.
 */
.macro CHECKED name, return_slot, flags=0
	BEGIN	seam_fdr_checked_\name
	FRAME
	/* struct seam_fdr_registers; lea leaves the flags alone */
	leaq	-REGISTERS_BYTES(%rsp), %rsp
	movq	%rdi, REGISTERS_RDI(%rsp)
	movq	%rsi, REGISTERS_RSI(%rsp)
	movq	%rdx, REGISTERS_RDX(%rsp)
	movq	%rcx, REGISTERS_RCX(%rsp)
	movq	%r8, REGISTERS_R8(%rsp)
	movq	%r9, REGISTERS_R9(%rsp)
	movq	%rax, REGISTERS_RAX(%rsp)
	movq	%r11, REGISTERS_R11(%rsp)
	leaq	(8 + \return_slot)(%rbp), %rax
	movq	%rax, REGISTERS_SLOT(%rsp)
.if \flags
	READ_FLAGS
	pushq	%rax
.endif
	movl	%r10d, %edi
	leaq	-REGISTERS_BYTES(%rbp), %rsi
	andq	$-16, %rsp
	call	seam_fdr_check
.if \flags
	leaq	-(REGISTERS_BYTES + 8)(%rbp), %rsp
	popq	%rax
	WRITE_FLAGS
.else
	leaq	-REGISTERS_BYTES(%rbp), %rsp
.endif
	movq	REGISTERS_RDI(%rsp), %rdi
	movq	REGISTERS_RSI(%rsp), %rsi
	movq	REGISTERS_RDX(%rsp), %rdx
	movq	REGISTERS_RCX(%rsp), %rcx
	movq	REGISTERS_R8(%rsp), %r8
	movq	REGISTERS_R9(%rsp), %r9
	movq	REGISTERS_RAX(%rsp), %rax
	movq	REGISTERS_R11(%rsp), %r11
	movq	%rbp, %rsp
	RETURN
	END	seam_fdr_checked_\name
.endm

	CHECKED	entry, return_slot=8
	CHECKED	exit, return_slot=0
	CHECKED	tail, return_slot=8, flags=1

/* uint64_t seam_fdr_call_saved(uint64_t (*f)(void *), void *argument) */
	BEGIN	seam_fdr_call_saved
	FRAME
	movq	%rdi, %r11
	movq	%rsi, %rdi
	subq	seam_fdr_saved_bytes(%rip), %rsp
	andq	$-64, %rsp
	movl	seam_fdr_saved_mask(%rip), %eax
	testl	%eax, %eax
	jz	1f
	/* xsave writes only a part of its header */
	xorl	%edx, %edx
.irp offset, 512, 520, 528, 536, 544, 552, 560, 568
	movq	%rdx, \offset(%rsp)
.endr
	xsave64	(%rsp)
	call	*%r11
	movq	%rax, %rcx
	movl	seam_fdr_saved_mask(%rip), %eax
	xorl	%edx, %edx
	xrstor64 (%rsp)
	jmp	2f
1:	fxsave64 (%rsp)
	call	*%r11
	movq	%rax, %rcx
	fxrstor64 (%rsp)
2:	movq	%rcx, %rax
	movq	%rbp, %rsp
	RETURN
	END	seam_fdr_call_saved

	.section .note.GNU-stack, "", @progbits
