// The memory of engines: malloc and what belongs to it, for a module that runs alone in its memory. The C library of zig has one that
// rounds blocks up to powers of two and never joins what is freed, so that half the memory of a tool is lost; and none knows what calls
// need. A call begins with the memory that the start of a script left, and the host puts back each page that the call has changed: so what
// a call allocates should lie together. malloc_seal, at the end of a start, has all that is allocated later come from memory that
// nothing has used yet, and not from holes all over.
//
// A block has a header with its size and two flags, and where it is free a footer with its size, too, so that it is joined with its
// neighbours. Free blocks are in lists by their size: one for each size up to 512 bytes, and eight for each power of two above. Small
// blocks that are freed are kept as they are, in lists of their own, until memory is scarce: most are soon wanted again.
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "heap.h"

struct block {
	size_t head; // size | flags
	struct block *next, *before; // where it is free
};

enum {
	HEAD = sizeof(size_t),
	UNIT = 2 * HEAD, // what addresses and sizes are multiples of
	LEAST = 2 * UNIT,
	FREE = 1,
	BEFORE_FREE = 2, // the block before this one is free, and has a footer
	FLAGS = UNIT - 1,
	EXACT = 64,  // lists for one size each, UNIT apart
	STEPS = 8,   // lists for a power of two
	LISTS = EXACT + 32 * STEPS,
	QUICK = 32,  // sizes that are kept as they are
	PAGE = 65536,
};

static struct block *lists[LISTS];
static uint64_t filled[(LISTS + 63) / 64]; // lists that are not empty
static struct block *quick[QUICK];
static size_t kept; // bytes in quick
static char *bottom, *top; // top is where the last block ends: a header of a used block of no size is there

static size_t size_of(const struct block *b)
{
	return b->head & ~(size_t)FLAGS;
}

static struct block *after(struct block *b)
{
	return (struct block *)((char *)b + size_of(b));
}

static size_t *footer(struct block *b)
{
	return (size_t *)((char *)b + size_of(b)) - 1;
}

static struct block *block_of(const void *p)
{
	return (struct block *)((char *)p - HEAD);
}

static void *memory_of(struct block *b)
{
	return (char *)b + HEAD;
}

static int list_of(size_t size)
{
	size_t units = size / UNIT;
	if (units < EXACT)
		return units;
	int power = 63 - __builtin_clzll(units); // 2^power <= units
	int list = EXACT + (power - 6) * STEPS + (int)(units >> (power - 3) & (STEPS - 1));
	return list < LISTS ? list : LISTS - 1;
}

static void enlist(struct block *b)
{
	int list = list_of(size_of(b));
	b->before = NULL;
	b->next = lists[list];
	if (b->next != NULL)
		b->next->before = b;
	lists[list] = b;
	filled[list / 64] |= (uint64_t)1 << list % 64;
}

static void unlist(struct block *b)
{
	if (b->next != NULL)
		b->next->before = b->before;
	if (b->before != NULL) {
		b->before->next = b->next;
		return;
	}
	int list = list_of(size_of(b));
	lists[list] = b->next;
	if (b->next == NULL)
		filled[list / 64] &= ~((uint64_t)1 << list % 64);
}

// set_free makes a free block of so many bytes, which is in no list yet.
static void set_free(struct block *b, size_t size)
{
	b->head = size | FREE | (b->head & BEFORE_FREE);
	*footer(b) = size;
	after(b)->head |= BEFORE_FREE;
}

// give_back joins a block with its free neighbours, and puts it into its list.
static void give_back(struct block *b)
{
	size_t size = size_of(b);
	struct block *behind = after(b);
	if (behind->head & FREE) {
		unlist(behind);
		size += size_of(behind);
	}
	if (b->head & BEFORE_FREE) {
		b = (struct block *)((char *)b - ((size_t *)b)[-1]);
		unlist(b);
		size += size_of(b);
	}
	set_free(b, size);
	enlist(b);
}

// cut makes a block one of the size, in use; what it has more becomes a free block. The block is in no list.
static void *cut(struct block *b, size_t size)
{
	size_t rest = size_of(b) - size;
	b->head = (rest < LEAST ? size + rest : size) | (b->head & BEFORE_FREE);
	struct block *behind = after(b);
	if (rest < LEAST) {
		behind->head &= ~(size_t)BEFORE_FREE;
	} else {
		behind->head = rest; // what is behind it is not free: free blocks are joined
		give_back(behind);
	}
	return memory_of(b);
}

static void consolidate(void)
{
	for (int i = 0; i < QUICK; i++) {
		for (struct block *b = quick[i], *next; b != NULL; b = next) {
			next = b->next;
			give_back(b);
		}
		quick[i] = NULL;
	}
	kept = 0;
}

// find takes a free block of at least that size out of its list. In the list of the size itself, blocks may be too small: it looks at so
// many of them.
static struct block *find(size_t size, int tries)
{
	int list = list_of(size);
	for (struct block *b = lists[list]; b != NULL && tries-- > 0; b = b->next)
		if (size_of(b) >= size) {
			unlist(b);
			return b;
		}
	for (list++; list < LISTS; list = (list / 64 + 1) * 64) {
		uint64_t left = filled[list / 64] >> list % 64;
		if (left != 0) {
			struct block *b = lists[list + __builtin_ctzll(left)];
			unlist(b);
			return b;
		}
	}
	return NULL;
}

// more asks the host for memory, and makes one free block of it and of what is free at the end. It returns false where there is none.
static bool more(size_t size)
{
	if (top == NULL) {
		size_t space;
		bottom = memory_begin(&space);
		char *first = (char *)(((uintptr_t)bottom + HEAD + UNIT - 1) / UNIT * UNIT - HEAD);
		if (space >= (size_t)(first - bottom) + LEAST + HEAD) {
			struct block *b = (struct block *)first;
			size_t whole = (space - (size_t)(first - bottom) - HEAD) / UNIT * UNIT;
			b->head = whole;
			top = first + whole;
			((struct block *)top)->head = 0;
			give_back(b);
			if (whole >= size)
				return true;
		} else {
			top = first;
			((struct block *)top)->head = 0; // within the first page
		}
	}
	struct block *last = (struct block *)top;
	size_t there = last->head & BEFORE_FREE ? ((size_t *)last)[-1] : 0;
	if (there >= size)
		return true;
	size_t wanted = size - there + HEAD;
	if (wanted < size - there || wanted > SIZE_MAX - PAGE)
		return false;
	size_t pages = (wanted + PAGE - 1) / PAGE;
	if (!memory_grow(pages))
		return false;
	size_t grown = pages * PAGE;
	if ((uintptr_t)top + HEAD > (uintptr_t)memory_end() - grown) // cannot be: the memory grows at its end
		__builtin_trap();
	last->head = grown | (last->head & BEFORE_FREE);
	top += grown;
	((struct block *)top)->head = 0;
	give_back(last);
	return true;
}

void *malloc(size_t n)
{
	if (n > PTRDIFF_MAX) {
		errno = ENOMEM;
		return NULL;
	}
	size_t size = (n + HEAD + UNIT - 1) & ~(size_t)(UNIT - 1);
	if (size < LEAST)
		size = LEAST;
	size_t units = size / UNIT;
	if (units < QUICK && quick[units] != NULL) {
		struct block *b = quick[units];
		quick[units] = b->next;
		kept -= size;
		return memory_of(b);
	}
	struct block *b = find(size, 16);
	if (b == NULL && kept >= PAGE) {
		consolidate();
		b = find(size, 16);
	}
	if (b == NULL && more(size)) {
		b = (struct block *)(top - ((size_t *)top)[-1]);
		unlist(b);
	} else if (b == NULL) {
		consolidate();
		b = find(size, INT_MAX);
	}
	if (b == NULL) {
		errno = ENOMEM;
		return NULL;
	}
	return cut(b, size);
}

void free(void *p)
{
	if (p == NULL)
		return;
	struct block *b = block_of(p);
	size_t size = size_of(b), units = size / UNIT;
	if (units < QUICK) {
		b->next = quick[units];
		quick[units] = b;
		kept += size;
		return;
	}
	give_back(b);
}

size_t malloc_usable_size(void *p)
{
	return p == NULL ? 0 : size_of(block_of(p)) - HEAD;
}

void *calloc(size_t count, size_t size)
{
	size_t n;
	if (__builtin_mul_overflow(count, size, &n)) {
		errno = ENOMEM;
		return NULL;
	}
	void *p = malloc(n);
	return p == NULL ? NULL : memset(p, 0, n);
}

void *realloc(void *p, size_t n)
{
	if (p == NULL)
		return malloc(n);
	if (n == 0) {
		free(p);
		return NULL;
	}
	if (n > PTRDIFF_MAX) {
		errno = ENOMEM;
		return NULL;
	}
	struct block *b = block_of(p);
	size_t has = size_of(b), size = (n + HEAD + UNIT - 1) & ~(size_t)(UNIT - 1);
	if (size < LEAST)
		size = LEAST;
	if (size > has) {
		// At the end of the memory, a block grows where it is.
		struct block *behind = after(b);
		if ((char *)behind == top || ((behind->head & FREE) && (char *)after(behind) == top && has + size_of(behind) < size))
			more(size - has);
		behind = after(b);
		if ((behind->head & FREE) && has + size_of(behind) >= size) {
			unlist(behind);
			b->head += size_of(behind);
			return cut(b, size);
		}
		void *q = malloc(n);
		if (q != NULL) {
			memcpy(q, p, has - HEAD);
			free(p);
		}
		return q;
	}
	if (has - size >= LEAST && has >= QUICK * UNIT)
		cut(b, size);
	return p;
}

void *aligned_alloc(size_t alignment, size_t n)
{
	if (alignment <= UNIT)
		return malloc(n);
	if ((alignment & (alignment - 1)) != 0 || n > PTRDIFF_MAX - alignment - LEAST) {
		errno = EINVAL;
		return NULL;
	}
	char *p = malloc(n + alignment + LEAST);
	if (p == NULL || (uintptr_t)p % alignment == 0)
		return p;
	// What lies before the address becomes a block of its own.
	char *q = (char *)(((uintptr_t)p + LEAST + alignment - 1) & ~(uintptr_t)(alignment - 1));
	struct block *b = block_of(p), *at = block_of(q);
	size_t ahead = (size_t)(q - p), whole = size_of(b);
	b->head = ahead | (b->head & BEFORE_FREE);
	at->head = whole - ahead;
	give_back(b);
	return q;
}

int posix_memalign(void **to, size_t alignment, size_t n)
{
	void *p = aligned_alloc(alignment, n);
	if (p == NULL)
		return ENOMEM;
	*to = p;
	return 0;
}

void malloc_seal(void)
{
	consolidate();
	struct block *last = NULL;
	if (top != NULL && (((struct block *)top)->head & BEFORE_FREE))
		last = (struct block *)(top - ((size_t *)top)[-1]);
	for (int i = 0; i < LISTS; i++)
		for (struct block *b = lists[i], *next; b != NULL; b = next) {
			next = b->next;
			if (b == last)
				continue;
			unlist(b);
			// It stays as it is, but for everyone else it is in use.
			b->head &= ~(size_t)FREE;
			after(b)->head &= ~(size_t)BEFORE_FREE;
		}
	if (last == NULL)
		return;
	// The rest of a page that is in use already is left out, too.
	size_t rest = (SEAL - ((uintptr_t)last + HEAD) % SEAL) % SEAL;
	rest = (rest + UNIT - 1) / UNIT * UNIT;
	if (rest >= LEAST && size_of(last) >= rest + LEAST) {
		unlist(last);
		cut(last, rest);
	}
}
