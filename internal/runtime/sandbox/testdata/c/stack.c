// Breaks in the way that the tool's number says, some for want of the stack in its memory.
#include <stddef.h>

__attribute__((import_module("toolsrv_v1"), import_name("output_write"))) void output_write(const void *, size_t);
__attribute__((import_module("toolsrv_v1"), import_name("input_read"))) void input_read(void *);

__attribute__((noinline)) static int recurse(int n) {
	volatile char frame[1024];
	for (int i = 0; i < 1024; i++)
		frame[i] = n;
	return n == 0 ? 0 : recurse(n - 1) + frame[n % 1024];
}

__attribute__((noinline)) static int host(int n) {
	char frame[4096];
	input_read(frame);
	return n == 0 ? 0 : host(n - 1) + frame[3];
}

__attribute__((export_name("toolsrv_call"))) int toolsrv_call(int tool) {
	static volatile int sink;
	switch (tool) {
	case 0: sink = recurse(1 << 20); break;
	case 1: sink = host(1 << 20); break;
	case 2: sink = *(volatile int *)0xfffffff0; break;
	case 3: __builtin_trap();
	case 4: sink = recurse(10); break;
	}
	output_write("1", 1);
	return 0;
}
