// The bundle: what toolsrv build appends to the engine, at this address, and which the engine believes nothing of. It begins with a
// magic number and the number of files. Each has the length of its name, that of its data, name and data: numbers of 32 bits, the
// lowest byte first.
#include <string.h>

#include "engine.h"

#define TO_ITS_PAGES __attribute__((aligned(4096), visibility("default"), used))

TO_ITS_PAGES char toolsrv_bundle[TOOLSRV_CAPACITY];

static const char magic[4] = {'T', 'S', 'B', '1'};
enum { HEADER = 8, FRAME = 8 };

static uint32_t number(size_t at)
{
	const unsigned char *b = (const unsigned char *)toolsrv_bundle + at;
	return b[0] | b[1] << 8 | b[2] << 16 | (uint32_t)b[3] << 24;
}

// next reads the file at *at and moves behind it. It returns false where that would not end within the region, of which the last byte
// stays free: the interpreter wants source to end with a zero.
static bool next(size_t *at, struct entry *e)
{
	size_t left = sizeof toolsrv_bundle - 1 - *at;
	if (left < FRAME)
		return false;
	e->name_size = number(*at);
	e->data_size = number(*at + 4);
	left -= FRAME;
	if (e->name_size > left || e->data_size > left - e->name_size)
		return false;
	e->name = toolsrv_bundle + *at + FRAME;
	e->data = e->name + e->name_size;
	*at += FRAME + e->name_size + e->data_size;
	return true;
}

const char *bundle_check(void)
{
	if (memcmp(toolsrv_bundle, magic, sizeof magic) != 0)
		return "there is no script in this engine: toolsrv build puts one into it";
	uint32_t count = number(sizeof magic);
	if (count == 0)
		return "the bundle is empty: build the tool again";
	size_t at = HEADER;
	struct entry e;
	for (uint32_t i = 0; i < count; i++)
		if (!next(&at, &e) || e.name_size == 0 || memchr(e.name, 0, e.name_size) != NULL)
			return "the bundle is damaged: build the tool again";
	return NULL;
}

struct entry bundle_script(void)
{
	size_t at = HEADER;
	struct entry e = {0};
	next(&at, &e);
	return e;
}

bool bundle_find(const char *name, size_t size, struct entry *found)
{
	if (bundle_check() != NULL)
		return false;
	size_t at = HEADER;
	for (uint32_t i = 0, count = number(sizeof magic); i < count && next(&at, found); i++)
		if (found->name_size == size && memcmp(found->name, name, size) == 0)
			return true;
	return false;
}
