// Where the interpreter's objects live, and whether the host has refused to give it more memory.
#include <malloc.h>
#include <stdlib.h>

#include "engine.h"

static bool refused;

bool memory_refused(void)
{
	return refused;
}

static void *kept_account(void *block, size_t size)
{
	if (block == NULL && size > 0)
		refused = true;
	return block;
}

static void *allocate(void *opaque, size_t size)
{
	return kept_account(malloc(size), size);
}

static void *allocate_zeroed(void *opaque, size_t count, size_t size)
{
	return kept_account(calloc(count, size), count == 0 ? 0 : size);
}

static void *reallocate(void *opaque, void *block, size_t size)
{
	return kept_account(realloc(block, size), size);
}

static void release(void *opaque, void *block)
{
	free(block);
}

static size_t usable(const void *block)
{
	return malloc_usable_size((void *)block);
}

const JSMallocFunctions memory_functions = {
	.js_calloc = allocate_zeroed,
	.js_malloc = allocate,
	.js_free = release,
	.js_realloc = reallocate,
	.js_malloc_usable_size = usable,
};
