/* SPDX-License-Identifier: MIT */
/* plt.cc - calls through the PLT of a static program, no more */
#include "stepper.h"

int main(void)
{
	/* rbp points to it: no return address is there */
	volatile long no_frame[2] = { 0, 0x1234567 };

	install_stepper();
	start_stepping();
	for (int i = 0; i < 10; i++) {
		const char *text = "text";
		unsigned long n;

		__asm__ volatile("mov %2, %%rbp\n\tcall strlen"
				 : "=a" (n), "+D" (text) : "r" (&no_frame)
				 : "rbp", "rcx", "rdx", "rsi", "r8", "r9",
				   "r10", "r11", "xmm0", "xmm1", "xmm2",
				   "xmm3", "cc", "memory");
	}
	stop_stepping();
	return 0;
}
