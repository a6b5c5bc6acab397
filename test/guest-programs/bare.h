/* System calls for programs that are linked without a C library. */
#ifndef BARE_H
#define BARE_H

#if defined(__x86_64__)
#define BARE_WRITE 1
#define BARE_EXIT 60

static inline long bare_call(long number, long a, long b, long c)
{
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return result;
}
#elif defined(__aarch64__)
#define BARE_WRITE 64
#define BARE_EXIT 93

static inline long bare_call(long number, long a, long b, long c)
{
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
	return x0;
}
#else
#error "bare.h knows x86-64 and arm64"
#endif

#endif
