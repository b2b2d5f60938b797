/* SPDX-License-Identifier: MIT */
/* guest_payload.c - what payloads.lua calls by FFI */
double c_payload(double n);

__attribute__((visibility("default"))) double c_payload(double n)
{
	return n <= 1 ? n : c_payload(n - 1) + c_payload(n - 2);
}
