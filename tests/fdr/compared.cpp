/* SPDX-License-Identifier: MIT */
/*
 * compared.cpp - calls of every kind, for compare.py
 *
 * Linked with compiler-rt, which records it where COMPARED_RT is set; else
 * nothing of compiler-rt's runs.  The same input makes the same calls in each
 * thread.  Between begin() and end(), main's calls are compared.
 */
#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <pthread.h>
#include <xray/xray_interface.h>
#include <xray/xray_log_interface.h>

#define QUIET __attribute__((xray_never_instrument))
#define LOUD __attribute__((xray_always_instrument, noinline))

namespace {

volatile unsigned sink;
jmp_buf target;

LOUD unsigned leaf(unsigned x)
{
	sink = sink + x;
	return x * 2654435761u;
}

LOUD unsigned fib(unsigned n)
{
	return n < 2 ? leaf(n) : fib(n - 1) + fib(n - 2);
}

unsigned odd(unsigned n);

LOUD unsigned even(unsigned n)
{
	sink = sink + 1;
	if (n == 0)
		return 1;
	[[clang::musttail]] return odd(n - 1);
}

LOUD unsigned odd(unsigned n)
{
	sink = sink + 1;
	if (n == 0)
		return 0;
	[[clang::musttail]] return even(n - 1);
}

LOUD unsigned several_exits(unsigned n)
{
	if (n == 0)
		return 7;
	if (n % 3 == 0)
		return leaf(n);
	if (n % 5 == 0)
		return leaf(n) + leaf(n + 1);
	return sink;
}

struct Guard {
	LOUD ~Guard() { leaf(1); }
};

LOUD void thrower(unsigned depth)
{
	Guard guard;

	if (depth == 0)
		throw 42;
	thrower(depth - 1);
	leaf(2);
}

LOUD unsigned catcher(unsigned depth)
{
	try {
		thrower(depth);
	} catch (int value) {
		return leaf(value);
	}
	return 0;
}

LOUD void jumper(unsigned depth)
{
	if (depth == 0)
		longjmp(target, 1);
	jumper(depth - 1);
	leaf(3);
}

LOUD unsigned lander()
{
	if (setjmp(target) == 0)
		jumper(5);
	return leaf(4);
}

struct Shape {
	virtual ~Shape() = default;
	LOUD virtual unsigned area(unsigned x) const { return leaf(x); }
};

struct Square : Shape {
	LOUD unsigned area(unsigned x) const override
	{
		return Shape::area(x) * x;
	}
};

Shape plain_shape;
Square square;
const Shape *volatile shapes[] = { &plain_shape, &square };

template <typename T> LOUD T twice(T x) { return leaf(x) + leaf(x); }

/* Arguments in registers of every kind, and results in xmm0 and rdx. */
struct Pair {
	unsigned long a, b;
};

LOUD double mixed(int a, double b, const Pair &c, float d, long e, long f,
		  long g, long h, double i)
{
	return a + b + c.a + c.b + d + e + f + g + h + i + leaf(a);
}

LOUD Pair pair_of(unsigned long a, unsigned long b)
{
	return { a + leaf(5), b };
}

[[clang::xray_log_args(1)]] LOUD unsigned logged(unsigned long value)
{
	return leaf(value);
}

LOUD void on_signal(int) { leaf(6); }

LOUD void signals()
{
	for (int i = 0; i < 3; i++)
		raise(SIGUSR1);
}

LOUD void check(bool right)
{
	if (!right)
		abort();
}

LOUD void all_kinds(unsigned seed)
{
	fib(8 + seed % 4);
	even(seed % 7);
	for (unsigned i = 0; i < 16; i++)
		several_exits(i);
	for (unsigned i = 0; i < 4; i++)
		catcher(i);
	shapes[seed % 2]->area(seed);
	twice<unsigned short>(seed);
	twice<unsigned long>(seed);
	check(mixed(1, 2, { 3, 4 }, 5, 6, 7, 8, 9, 10) ==
	      1 + 2 + 3 + 4 + 5 + 6 + 7 + 8 + 9 + 10 + leaf(1));
	check(pair_of(seed, 9).b == 9);
	for (unsigned i = 0; i < 3; i++)
		logged(1000 + i);
}

template <int K> LOUD void *thread(void *)
{
	for (unsigned i = 0; i < 50; i++)
		all_kinds(i + K);
	return nullptr;
}

LOUD void begin() { leaf(7); }
LOUD void end() { leaf(8); }

LOUD void threads()
{
	void *(*const bodies[])(void *) = {
		thread<0>, thread<1>, thread<2>, thread<3>,
	};
	pthread_t ids[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&ids[i], nullptr, bodies[i], nullptr);
	for (int i = 0; i < 4; i++)
		pthread_join(ids[i], nullptr);
}

QUIET void start()
{
	const char *options = getenv("COMPARED_RT");

	if (!options)
		return;
	__xray_log_select_mode("xray-fdr");
	if (__xray_log_init_mode("xray-fdr", options) != XRAY_LOG_INITIALIZED)
		abort();
	__xray_patch();
}

QUIET void stop()
{
	if (!getenv("COMPARED_RT"))
		return;
	__xray_unpatch();
	__xray_log_finalize();
	__xray_log_flushLog();
}

} // namespace

QUIET int main()
{
	signal(SIGUSR1, on_signal);
	start();
	begin();
	for (unsigned i = 0; i < 20; i++)
		all_kinds(i);
	lander();
	signals();
	threads();
	end();
	stop();
	return 0;
}
