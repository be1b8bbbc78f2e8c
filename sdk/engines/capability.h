// What a tool can reach beyond itself: the functions that the host has for capabilities (docs/abi.md), behind one. The engines share it.
#ifndef TOOLSRV_CAPABILITY_H
#define TOOLSRV_CAPABILITY_H

// A span is bytes that a function is given.
struct span {
	const void *bytes;
	int size;
};

// capability_find returns the number of a function by its name, such as "kv.get", or -1.
int capability_find(const char *name);

// capability_use calls a function, which takes of texts and numbers what it needs. It returns what the host does: the size of the
// answer, or that of a failure, negative. Then capability_read copies it to a place for as many bytes.
int capability_use(int function, struct span first, struct span second, long long x, long long y);
void capability_read(int function, void *to);

#endif
