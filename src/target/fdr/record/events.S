/* SPDX-License-Identifier: MIT */
/*
 * events.S - what the sleds of __xray_customevent and __xray_typedevent call
 *
 * The sled has pushed the registers that it puts the operands into, and calls;
 * the compiler knows of no other register that changes, nor of the flags, and
 * in a leaf function the stack is not aligned.
 *
 *	custom		rdi data, rsi bytes
 *	typed		rdi type, rsi data, rdx bytes
 *
 * Vector registers are not touched by what is called here.
 *
 * Source: LLVM 14, X86MCInstLower.cpp, LowerPATCHABLE_EVENT_CALL() and
 * LowerPATCHABLE_TYPED_EVENT_CALL().
 */
#if defined(__x86_64__)

	.text

.macro EVENT name, function
	.globl	\name
	.hidden	\name
	.type	\name, @function
	.p2align 4
\name:
	.cfi_startproc
	endbr64
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	pushfq
	pushq	%rax
	pushq	%rcx
	pushq	%rdx
	pushq	%rsi
	pushq	%rdi
	pushq	%r8
	pushq	%r9
	pushq	%r10
	pushq	%r11
	andq	$-16, %rsp
	cld
	call	\function
	leaq	-80(%rbp), %rsp
	popq	%r11
	popq	%r10
	popq	%r9
	popq	%r8
	popq	%rdi
	popq	%rsi
	popq	%rdx
	popq	%rcx
	popq	%rax
	popfq
	popq	%rbp
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_endproc
	.size	\name, . - \name
.endm

	EVENT seam_fdr_custom_event, seam_fdr_record_custom
	EVENT seam_fdr_typed_event, seam_fdr_record_typed

/* What programs that are linked without LLVM's runtime call. */
	.globl	__xray_CustomEvent
	.set	__xray_CustomEvent, seam_fdr_custom_event
	.globl	__xray_TypedEvent
	.set	__xray_TypedEvent, seam_fdr_typed_event

#endif

	.section .note.GNU-stack, "", @progbits
