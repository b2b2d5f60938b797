/* SPDX-License-Identifier: MIT */
/*
 * registers.S - through a trampoline with given registers, as a sled goes
 *
 *	void through(struct registers *registers, const char *trampoline,
 *		     bool is_exit, void *stack)
 *
 * All registers are loaded from @registers (test_fdr_registers.c), which has
 * those after it in the end.  The trampoline runs on @stack.
 */
#define GPR(n)		(8 * (n))
#define FLAGS		(8 * 13)
#define MXCSR		(8 * 14)
#define SP		(8 * 15)
#define X87(n)		(128 + 16 * (n))
#define MASK(n)		(160 + 2 * (n))
#define R11		176
#define R10		184
#define VECTOR(n)	(192 + 64 * (n))

.macro EACH_GPR macro
	\macro 0, rax
	\macro 1, rbx
	\macro 2, rcx
	\macro 3, rdx
	\macro 4, rsi
	\macro 5, rdi
	\macro 6, rbp
	\macro 7, r8
	\macro 8, r9
	\macro 9, r12
	\macro 10, r13
	\macro 11, r14
	\macro 12, r15
.endm

.macro LOAD n, register
	movq	GPR(\n)(%r11), %\register
.endm

.macro STORE n, register
	movq	%\register, GPR(\n)(%r11)
.endm

	.text
	.globl through
	.type through, @function
through:
	pushq	%rbx
	pushq	%rbp
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	movq	%rsp, old_stack(%rip)
	movq	%rdi, registers_at(%rip)
	movq	%rsi, trampoline_at(%rip)
	leaq	back(%rip), %rax
	movq	%rax, back_at(%rip)
	leaq	as_entry(%rip), %rax
	leaq	as_exit(%rip), %r9
	testl	%edx, %edx
	cmovnz	%r9, %rax
	movq	%rax, sled_at(%rip)
	movq	%rdi, %r11
	movq	%rcx, %rsp

	ldmxcsr	MXCSR(%r11)
	fldt	X87(0)(%r11)
	fldt	X87(1)(%r11)
	cmpl	$0, has_avx512(%rip)
	je	1f
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	vmovdqu64 VECTOR(\n)(%r11), %zmm\n
	.endr
	.irp n, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	vmovdqu64 VECTOR(\n)(%r11), %zmm\n
	.endr
	.irp n, 1, 2, 3, 4, 5, 6, 7
	kmovw	MASK(\n)(%r11), %k\n
	.endr
	jmp	2f
1:
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	movdqu	VECTOR(\n)(%r11), %xmm\n
	.endr
2:	pushq	FLAGS(%r11)
	popfq
	EACH_GPR LOAD
	movq	R10(%r11), %r10
	movq	R11(%r11), %r11
	jmp	*sled_at(%rip)
as_entry:
	call	*trampoline_at(%rip)
	jmp	back
as_exit:
	pushq	back_at(%rip)
	jmp	*trampoline_at(%rip)
back:
	movq	%r11, after_r11(%rip)
	movq	registers_at(%rip), %r11
	EACH_GPR STORE
	movq	%rsp, SP(%r11)
	pushfq
	popq	FLAGS(%r11)
	cld
	movq	after_r11(%rip), %rax
	movq	%rax, R11(%r11)
	movq	%r10, R10(%r11)
	stmxcsr	MXCSR(%r11)
	fstpt	X87(1)(%r11)
	fstpt	X87(0)(%r11)
	cmpl	$0, has_avx512(%rip)
	je	1f
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	vmovdqu64 %zmm\n, VECTOR(\n)(%r11)
	.endr
	.irp n, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	vmovdqu64 %zmm\n, VECTOR(\n)(%r11)
	.endr
	.irp n, 1, 2, 3, 4, 5, 6, 7
	kmovw	%k\n, MASK(\n)(%r11)
	.endr
	vzeroupper
	jmp	2f
1:
	.irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	movdqu	%xmm\n, VECTOR(\n)(%r11)
	.endr
2:	movq	old_stack(%rip), %rsp
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbp
	popq	%rbx
	ret
	.size through, . - through

	.bss
	.balign 8
old_stack:	.quad 0
registers_at:	.quad 0
trampoline_at:	.quad 0
back_at:	.quad 0
sled_at:	.quad 0
after_r11:	.quad 0

	.section .note.GNU-stack, "", @progbits
