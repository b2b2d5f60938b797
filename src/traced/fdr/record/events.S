/* SPDX-License-Identifier: MIT */
/*
 * events.S - what the sleds of __xray_customevent and __xray_typedevent call
 *
 * The sled has pushed the registers that get the operands, and calls; the
 * compiler expects no other register to change, nor the flags, and in a leaf
 * function the stack is not aligned.
 *
 *	custom		rdi data, rsi bytes
 *	typed		rdi type, rsi data, rdx bytes
 *
 * Vector registers are not touched by what is called here.
 *
 * Source: LLVM 14, X86MCInstLower.cpp, LowerPATCHABLE_EVENT_CALL() and
 * LowerPATCHABLE_TYPED_EVENT_CALL().
 */
#include "traced/fdr/record/critical.h"

	.text

.macro EVENT name, function
	BEGIN	\name
	FRAME
	pushfq
.irp register, rax, rcx, rdx, rsi, rdi, r8, r9, r10, r11
	pushq	%\register
.endr
	andq	$-16, %rsp
	cld
	call	\function
	leaq	-80(%rbp), %rsp
.irp register, r11, r10, r9, r8, rdi, rsi, rdx, rcx, rax
	popq	%\register
.endr
	popfq
	RETURN
	END	\name
.endm

	EVENT seam_fdr_custom_event, seam_fdr_record_custom
	EVENT seam_fdr_typed_event, seam_fdr_record_typed

/* What programs that are linked without LLVM's runtime call. */
	.globl	__xray_CustomEvent
	.set	__xray_CustomEvent, seam_fdr_custom_event
	.globl	__xray_TypedEvent
	.set	__xray_TypedEvent, seam_fdr_typed_event

	.section .note.GNU-stack, "", @progbits
