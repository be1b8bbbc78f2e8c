// What malloc.c has beside the functions of the C library, and what it needs.
#ifndef TOOLSRV_HEAP_H
#define TOOLSRV_HEAP_H

#include <stdbool.h>
#include <stddef.h>

enum { SEAL = 4096 }; // what the host puts back at a time

// malloc_seal has all that is allocated from now on come from memory that nothing has used.
void malloc_seal(void);

#ifdef __wasm__

extern char __heap_base;

static inline char *memory_end(void)
{
	return (char *)(__builtin_wasm_memory_size(0) * (size_t)65536);
}

static inline char *memory_begin(size_t *size)
{
	*size = (size_t)(memory_end() - &__heap_base);
	return &__heap_base;
}

static inline bool memory_grow(size_t pages)
{
	return __builtin_wasm_memory_grow(0, pages) != (size_t)-1;
}

#else // in its test

char *memory_end(void);
char *memory_begin(size_t *size);
bool memory_grow(size_t pages);

#endif
#endif
