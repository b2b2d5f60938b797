/* SPDX-License-Identifier: MIT */
/*
 * trampolines.S - see trampolines.h
 *
 * A plain trampoline is a restartable sequence from the load of the CPU to the
 * store of the new cursor.  fdr_thread.h has the idea.  At the start of a
 * chunk, on another CPU and where the delta has more than 32 bits, the slow
 * path makes the record: seam_fdr_record().
 */
#include "traced/fdr/record/critical.h"

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
 * By kind of sled: @keeps is a register that stays as it is; where that is r10,
 * the word comes in r11.  @has_flags: the flags stay too.
 *
 * r10: word	r11: cursor	rax: tsc	rdx: delta, record
 * rbx: state.at[i]	rcx: rseq, cpu	rsi: self
 */
.macro PLAIN name, keeps, has_flags=0
	BEGIN	seam_fdr_\name
.ifnb \keeps
	PUSH	%\keeps
.endif
.ifc \keeps, r10
	movl	%r11d, %r10d
.endif
	PUSH	%rax
	PUSH	%rdx
	PUSH	%rcx
	PUSH	%rsi
	PUSH	%rbx
	.cfi_rel_offset rbx, 0
.if \has_flags
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
.if \has_flags
	POP	%rax
	WRITE_FLAGS
.endif
	POP	%rbx
	.cfi_restore rbx
	POP	%rsi
	POP	%rcx
	POP	%rdx
	POP	%rax
.ifnb \keeps
	POP	%\keeps
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
	PLAIN	tail, keeps=r11, has_flags=1
	PLAIN	entry_only, keeps=r10

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
 * Call @check(word, where the return address of the function is, arguments).
 * @return_slot: from the stack pointer at the start to that.  @keeps and
 * @has_flags as above.
 */
.macro CHECKED name, check, return_slot, keeps, has_flags=0
	BEGIN	seam_fdr_checked_\name
	FRAME
	.set	pushed, 7 * 8
	pushq	%rax
.if \has_flags
	.set	pushed, pushed + 8
	READ_FLAGS
	pushq	%rax
.endif
.ifnb \keeps
	.set	pushed, pushed + 8
	pushq	%\keeps
.endif
.ifc \keeps, r10
	movl	%r11d, %r10d
.endif
	/* the arguments of an entry, in memory the first of them first */
	pushq	%r9
	pushq	%r8
	pushq	%rcx
	pushq	%rdx
	pushq	%rsi
	pushq	%rdi
	movl	%r10d, %edi
	leaq	(8 + \return_slot)(%rbp), %rsi
	movq	%rsp, %rdx
	andq	$-16, %rsp
	call	\check
	leaq	-pushed(%rbp), %rsp
	popq	%rdi
	popq	%rsi
	popq	%rdx
	popq	%rcx
	popq	%r8
	popq	%r9
.ifnb \keeps
	popq	%\keeps
.endif
.if \has_flags
	popq	%rax
	WRITE_FLAGS
.endif
	popq	%rax
	RETURN
	END	seam_fdr_checked_\name
.endm

	CHECKED	entry, seam_fdr_check_entry, return_slot=8
	CHECKED	exit, seam_fdr_check_end, return_slot=0
	CHECKED	tail, seam_fdr_check_end, return_slot=8, keeps=r11, has_flags=1
	CHECKED	entry_only, seam_fdr_check_entry, return_slot=8, keeps=r10

/* Most sleds call these jumps to the trampolines in use. */
.macro SLED name, at
	BEGIN	seam_fdr_sled_\name
	jmp	*(seam_fdr_used + \at)(%rip)
	END	seam_fdr_sled_\name
.endm

	SLED	entry, USED_ENTRY
	SLED	exit, USED_EXIT
	SLED	tail, USED_TAIL
	SLED	entry_only, USED_ENTRY_ONLY

	.section .note.GNU-stack, "", @progbits
