// Tries malloc.c natively, with a memory of its own: every block keeps its content, no two overlap, and what is freed is found again.
#include <stdio.h>

#define malloc test_malloc
#define free test_free
#define calloc test_calloc
#define realloc test_realloc
#define aligned_alloc test_aligned_alloc
#define posix_memalign test_posix_memalign
#define malloc_usable_size test_malloc_usable_size
#include "malloc.c"

static char memory[64 << 20] __attribute__((aligned(65536)));
static size_t pages = 3, limit = sizeof memory / PAGE;

char *memory_end(void)
{
	return memory + pages * PAGE;
}

char *memory_begin(size_t *size)
{
	*size = pages * PAGE - 1000;
	return memory + 1000;
}

bool memory_grow(size_t n)
{
	if (n > limit - pages)
		return false;
	pages += n;
	return true;
}

static uint64_t state = 88172645463325252u;

static uint64_t draw(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % below;
}

static void check(bool good, const char *what)
{
	if (!good) {
		fprintf(stderr, "malloc_test: %s\n", what);
		exit(1);
	}
}

// walk looks at all blocks, one after the other.
static void walk(void)
{
	if (top == NULL)
		return;
	char *first = (char *)(((uintptr_t)bottom + HEAD + UNIT - 1) / UNIT * UNIT - HEAD);
	bool before = false;
	for (struct block *b = (struct block *)first; (char *)b != top; b = after(b)) {
		bool is_free = b->head & FREE;
		check(size_of(b) >= LEAST && (char *)b + size_of(b) <= top, "a block of a wrong size");
		check(((b->head & BEFORE_FREE) != 0) == before, "a block with a wrong flag");
		check(!(is_free && before), "two free blocks that are not joined");
		check(!is_free || *footer(b) == size_of(b), "a wrong footer");
		before = is_free;
	}
	check(((((struct block *)top)->head & BEFORE_FREE) != 0) == before, "a wrong flag at the end");
}

enum { SLOTS = 3000 };
static unsigned char *slots[SLOTS];
static size_t sizes[SLOTS];

static void fill(int i)
{
	memset(slots[i], i & 0xff, sizes[i]);
}

static void verify(int i, size_t n)
{
	for (size_t k = 0; k < n; k++)
		check(slots[i][k] == (i & 0xff), "a block has lost its content");
}

static size_t any_size(void)
{
	switch (draw(20)) {
	case 0:
		return draw(200000);
	case 1:
	case 2:
		return draw(5000);
	default:
		return draw(200);
	}
}

static void churn(int rounds)
{
	for (int round = 0; round < rounds; round++) {
		int i = (int)draw(SLOTS);
		size_t n = any_size();
		if (slots[i] == NULL) {
			size_t alignment = draw(10) == 0 ? (size_t)16 << draw(9) : 0;
			slots[i] = alignment == 0 ? (draw(4) == 0 ? calloc(1, n) : malloc(n)) : aligned_alloc(alignment, n);
			if (slots[i] == NULL)
				continue;
			check((uintptr_t)slots[i] % (alignment == 0 ? UNIT : alignment) == 0, "a wrong alignment");
			check(malloc_usable_size(slots[i]) >= n, "a block that is too small");
			sizes[i] = n;
			fill(i);
		} else if (draw(3) == 0) {
			unsigned char *moved = realloc(slots[i], n + 1);
			if (moved == NULL) {
				verify(i, sizes[i]);
				continue;
			}
			slots[i] = moved;
			verify(i, sizes[i] < n + 1 ? sizes[i] : n + 1);
			sizes[i] = n + 1;
			fill(i);
		} else {
			verify(i, sizes[i]);
			free(slots[i]);
			slots[i] = NULL;
		}
		if (round % 1000 == 0)
			walk();
	}
}

static void empty(void)
{
	for (int i = 0; i < SLOTS; i++) {
		if (slots[i] != NULL)
			verify(i, sizes[i]);
		free(slots[i]);
		slots[i] = NULL;
	}
	consolidate();
	walk();
}

int main(void)
{
	check(malloc(SIZE_MAX) == NULL && malloc(PTRDIFF_MAX) == NULL && calloc(SIZE_MAX / 2, 3) == NULL, "too much was there");
	free(NULL);
	churn(300000);
	empty();

	// What was freed is one block again, of nearly all there is.
	size_t all = pages * PAGE - 1000 - 64;
	void *whole = malloc(all);
	size_t before = pages;
	check(whole != NULL && pages == before, "what was freed is not joined");
	free(whole);

	// A block that grows at the end does not move, and does not take twice its size.
	char *growing = malloc(PAGE);
	for (size_t n = PAGE; n < sizeof memory - 4 * PAGE; n += n / 3)
		check((growing = realloc(growing, n)) != NULL, "a block can't grow to nearly all there is");
	free(growing);

	// Until memory is refused, and after that.
	limit = pages;
	churn(200000);
	empty();
	check((whole = malloc(all)) != NULL, "memory is lost once it was refused");
	free(whole);

	// Sealed: what is allocated then lies behind all that was there, together, and what was there can be freed.
	limit = sizeof memory / PAGE;
	churn(20000);
	char *end = NULL;
	for (int i = 0; i < SLOTS; i++)
		if (slots[i] != NULL && (char *)slots[i] > end)
			end = (char *)slots[i];
	malloc_seal();
	walk();
	for (int i = 0; i < 100; i++) {
		char *p = malloc(40);
		check(p > end && p < end + 400000, "what is allocated after the seal is not behind the rest");
	}
	churn(100000);
	empty();
	malloc_seal();
	puts("malloc_test: ok");
	return 0;
}
