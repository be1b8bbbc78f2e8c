/*
 * Tells how much two texts differ: the least number of characters to insert, remove or replace to make one of the other.
 * A plain WASI program, which knows nothing of the server that runs it: JSON on standard input, JSON on standard output;
 * where it fails, a sentence on standard error and exit code 1.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	max_input = 512 * 1024, /* bytes: two texts with all characters escaped fit */
	max_text = 10000        /* characters of a text, as the manifest says, too */
};

struct text {
	uint32_t at[max_text];
	size_t length;
	bool given;
};

static unsigned char input[max_input + 1];
static const unsigned char *next, *end;

static _Noreturn void fail(const char *message)
{
	fprintf(stderr, "%s\n", message);
	exit(1);
}

static void skip_space(void)
{
	while (next < end && (*next == ' ' || *next == '\t' || *next == '\n' || *next == '\r'))
		next++;
}

/* take consumes a character of the syntax, with the space before it, if it comes next. */
static bool take(char c)
{
	skip_space();
	if (next == end || *next != (unsigned char)c)
		return false;
	next++;
	return true;
}

static void expect(char c)
{
	if (!take(c))
		fail("The arguments are no JSON object of two texts.");
}

/* hex reads the four digits behind \u. */
static uint32_t hex(void)
{
	uint32_t value = 0;
	for (int i = 0; i < 4; i++, next++) {
		if (next == end)
			fail("A text ends within an escape.");
		unsigned char c = *next;
		if (c >= '0' && c <= '9')
			value = value * 16 + (c - '0');
		else if ((c | 32) >= 'a' && (c | 32) <= 'f')
			value = value * 16 + ((c | 32) - 'a' + 10);
		else
			fail("A text has a broken escape: \\u is followed by four hexadecimal digits.");
	}
	return value;
}

/* escape reads what follows a backslash. */
static uint32_t escape(void)
{
	if (next == end)
		fail("A text ends within an escape.");
	switch (*next++) {
	case '"': return '"';
	case '\\': return '\\';
	case '/': return '/';
	case 'b': return '\b';
	case 'f': return '\f';
	case 'n': return '\n';
	case 'r': return '\r';
	case 't': return '\t';
	case 'u': break;
	default: fail("A text has an unknown escape.");
	}
	uint32_t c = hex();
	if (c < 0xD800 || c > 0xDFFF)
		return c;
	if (c > 0xDBFF || end - next < 2 || next[0] != '\\' || next[1] != 'u')
		fail("A text has half a surrogate pair.");
	next += 2;
	uint32_t low = hex();
	if (low < 0xDC00 || low > 0xDFFF)
		fail("A text has half a surrogate pair.");
	return 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
}

/* utf8 reads a character that begins with first. */
static uint32_t utf8(unsigned char first)
{
	int more = first >= 0xF0 && first <= 0xF4 ? 3 : first >= 0xE0 && first < 0xF0 ? 2 : first >= 0xC2 && first < 0xE0 ? 1 : -1;
	static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
	if (more < 0 || end - next < more)
		fail("A text is not UTF-8.");
	uint32_t c = first & (0x3F >> more);
	for (int i = 0; i < more; i++, next++) {
		if ((*next & 0xC0) != 0x80)
			fail("A text is not UTF-8.");
		c = c << 6 | (*next & 0x3F);
	}
	if (c < least[more] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF))
		fail("A text is not UTF-8.");
	return c;
}

/* read_text reads a string into t, of which it takes max characters at most. */
static void read_text(struct text *t, size_t max)
{
	expect('"');
	for (t->length = 0;;) {
		if (next == end)
			fail("A text is not closed.");
		unsigned char first = *next++;
		if (first == '"')
			return;
		if (first < 0x20)
			fail("A text has a control character, which JSON wants escaped.");
		uint32_t c = first == '\\' ? escape() : first < 0x80 ? first : utf8(first);
		if (t->length == max)
			fail("A text is too long: 10000 characters are the most.");
		t->at[t->length++] = c;
	}
}

/* is reports whether a member's name is word. */
static bool is(const struct text *name, const char *word)
{
	size_t i = 0;
	while (i < name->length && word[i] != 0 && name->at[i] == (unsigned char)word[i])
		i++;
	return i == name->length && word[i] == 0;
}

/* read_arguments reads {"a": "…", "b": "…"}, in any order. */
static void read_arguments(struct text *a, struct text *b)
{
	static struct text name;
	expect('{');
	if (!take('}')) {
		do {
			read_text(&name, 16);
			expect(':');
			struct text *value = is(&name, "a") ? a : is(&name, "b") ? b : NULL;
			if (value == NULL || value->given)
				fail("The arguments are a and b, each once.");
			read_text(value, max_text);
			value->given = true;
		} while (take(','));
		expect('}');
	}
	skip_space();
	if (next != end)
		fail("There is more behind the arguments.");
	if (!a->given || !b->given)
		fail("An argument is missing: pass a and b.");
}

/* distance fills one row of the table of all distances after the other; each needs only the one before. */
static uint32_t distance(const struct text *a, const struct text *b)
{
	static uint32_t row[max_text + 1];
	for (size_t j = 0; j <= b->length; j++)
		row[j] = (uint32_t)j;
	for (size_t i = 0; i < a->length; i++) {
		uint32_t diagonal = row[0];
		row[0] = (uint32_t)i + 1;
		for (size_t j = 0; j < b->length; j++) {
			uint32_t best = diagonal + (a->at[i] != b->at[j]);
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j + 1] + 1 < best)
				best = row[j + 1] + 1;
			diagonal = row[j + 1];
			row[j + 1] = best;
		}
	}
	return row[b->length];
}

int main(void)
{
	static struct text a, b;
	size_t size = fread(input, 1, sizeof input, stdin);
	if (ferror(stdin))
		fail("The arguments can't be read.");
	if (size > max_input)
		fail("The arguments are too long: 512 KiB are the most.");
	next = input;
	end = input + size;
	read_arguments(&a, &b);
	uint32_t changes = distance(&a, &b);
	size_t longer = a.length > b.length ? a.length : b.length;
	double similarity = longer == 0 ? 1 : 1 - (double)changes / (double)longer;
	printf("{\"distance\":%u,\"similarity\":%.4g}\n", (unsigned)changes, similarity);
	return ferror(stdout) || fflush(stdout) != 0;
}
