// The host's functions as the module #host, which the package toolsrv imports, and those that only web/*.js use.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "capability.h"
#include "engine.h"

#define IMPORT(module, name) __attribute__((import_module(module), import_name(name)))

IMPORT("toolsrv_v1", "input_size") uint32_t input_size(void);
IMPORT("toolsrv_v1", "input_read") void input_read(char *to);
IMPORT("toolsrv_v1", "output_write") void output_write(const char *from, size_t size);
IMPORT("toolsrv_v1", "fail") void fail_write(const char *from, size_t size);
IMPORT("toolsrv_v1", "log") void log_write(int level, const char *from, size_t size);
IMPORT("toolsrv_v1", "deadline") int64_t deadline_left(void);
IMPORT("toolsrv_v1", "progress") void progress_report(double done, double total, const char *from, size_t size);

// silent drops what a script says while its examples only warm it up: whoever tests them runs them again.
static bool silent;

void host_silence(bool on)
{
	silent = on;
}

void host_log(int level, const char *text, size_t size)
{
	log_write(level, text, size);
}

void host_fail(const char *text, size_t size)
{
	fail_write(text, size);
}

void host_output(const char *text, size_t size)
{
	output_write(text, size);
}

static JSValue input(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv)
{
	size_t size = input_size();
	char *text = js_malloc(ctx, size + 1);
	if (text == NULL)
		return JS_EXCEPTION;
	input_read(text);
	JSValue result = JS_NewStringLen(ctx, text, size);
	js_free(ctx, text);
	return result;
}

// written hands a string to the host. Half a surrogate pair, which UTF-8 doesn't have, is replaced there.
static JSValue written(JSContext *ctx, JSValueConst value, void (*write)(const char *, size_t))
{
	size_t size;
	const char *text = JS_ToCStringLen(ctx, &size, value);
	if (text == NULL)
		return JS_EXCEPTION;
	if (!silent)
		write(text, size);
	JS_FreeCString(ctx, text);
	return JS_UNDEFINED;
}

static JSValue output(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv)
{
	return written(ctx, argv[0], output_write);
}

static JSValue fail(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv)
{
	return written(ctx, argv[0], fail_write);
}

static JSValue log_line(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv)
{
	int level;
	size_t size;
	if (JS_ToInt32(ctx, &level, argv[0]) != 0)
		return JS_EXCEPTION;
	const char *text = JS_ToCStringLen(ctx, &size, argv[1]);
	if (text == NULL)
		return JS_EXCEPTION;
	if (!silent)
		log_write(level, text, size);
	JS_FreeCString(ctx, text);
	return JS_UNDEFINED;
}

static JSValue progress(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv)
{
	double done, total;
	size_t size;
	if (JS_ToFloat64(ctx, &done, argv[0]) != 0 || JS_ToFloat64(ctx, &total, argv[1]) != 0)
		return JS_EXCEPTION;
	const char *text = JS_ToCStringLen(ctx, &size, argv[2]);
	if (text == NULL)
		return JS_EXCEPTION;
	if (!silent)
		progress_report(done, total, text, size);
	JS_FreeCString(ctx, text);
	return JS_UNDEFINED;
}

static JSValue deadline(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv)
{
	return JS_NewInt64(ctx, deadline_left());
}

static JSValue entry(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv)
{
	size_t size;
	struct entry found;
	const char *name = JS_ToCStringLen(ctx, &size, argv[0]);
	if (name == NULL)
		return JS_EXCEPTION;
	bool there = bundle_find(name, size, &found);
	JS_FreeCString(ctx, name);
	return there ? JS_NewStringLen(ctx, found.data, found.data_size) : JS_UNDEFINED;
}

// sleep waits for so many milliseconds, or until the host ends the call.
static JSValue sleep_for(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv)
{
	double milliseconds;
	if (JS_ToFloat64(ctx, &milliseconds, argv[0]) != 0)
		return JS_EXCEPTION;
	if (milliseconds > 0) {
		struct timespec time = {.tv_sec = (time_t)(milliseconds / 1000)};
		time.tv_nsec = (long)((milliseconds - (double)time.tv_sec * 1000) * 1e6);
		nanosleep(&time, NULL);
	}
	return JS_UNDEFINED;
}

// monotonic returns milliseconds since some moment.
static JSValue monotonic(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return JS_NewFloat64(ctx, (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6);
}

// random fills a buffer from an offset.
static JSValue random_bytes(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv)
{
	size_t size;
	uint32_t offset, length;
	uint8_t *buffer = JS_GetArrayBuffer(ctx, &size, argv[0]);
	if (buffer == NULL || JS_ToUint32(ctx, &offset, argv[1]) != 0 || JS_ToUint32(ctx, &length, argv[2]) != 0)
		return JS_EXCEPTION;
	if (offset > size || length > size - offset)
		return JS_ThrowRangeError(ctx, "the range is not within the buffer");
	random_fill(buffer + offset, length);
	return JS_UNDEFINED;
}

// utf8_decode writes the UTF-16 of UTF-8, at most one unit for a byte, and returns how many units it has written.
static size_t utf8_decode(const uint8_t *from, size_t size, uint16_t *to, bool *valid)
{
	size_t written = 0;
	for (size_t i = 0; i < size;) {
		uint32_t code = from[i++];
		int more = code < 0x80 ? 0 : code < 0xc2 ? -1 : code < 0xe0 ? 1 : code < 0xf0 ? 2 : code < 0xf5 ? 3 : -1;
		uint8_t low = code == 0xe0 ? 0xa0 : code == 0xf0 ? 0x90 : 0x80, high = code == 0xed ? 0x9f : code == 0xf4 ? 0x8f : 0xbf;
		if (more > 0)
			code &= 0x3f >> more;
		for (; more > 0 && i < size && from[i] >= low && from[i] <= high; more--, low = 0x80, high = 0xbf)
			code = code << 6 | (from[i++] & 0x3f);
		if (more != 0) {
			code = 0xfffd;
			*valid = false;
		}
		if (code >= 0x10000) {
			to[written++] = 0xd800 | (code - 0x10000) >> 10;
			code = 0xdc00 | (code & 0x3ff);
		}
		to[written++] = code;
	}
	return written;
}

// encode returns the UTF-8 of a string as an ArrayBuffer.
static JSValue encode(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv)
{
	size_t size;
	const char *text = JS_ToCStringLen(ctx, &size, argv[0]);
	if (text == NULL)
		return JS_EXCEPTION;
	JSValue result = JS_NewArrayBufferCopy(ctx, (const uint8_t *)text, size);
	JS_FreeCString(ctx, text);
	return result;
}

// decode returns the string that a range of an ArrayBuffer has in UTF-8. What is not valid becomes U+FFFD as the Encoding Standard has
// it, one for each longest beginning of a character; with a fourth argument that is true, the result is undefined.
static JSValue decode(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv)
{
	size_t size;
	uint32_t offset, length;
	uint8_t *bytes = JS_GetArrayBuffer(ctx, &size, argv[0]);
	if (bytes == NULL || JS_ToUint32(ctx, &offset, argv[1]) != 0 || JS_ToUint32(ctx, &length, argv[2]) != 0)
		return JS_EXCEPTION;
	if (offset > size || length > size - offset)
		return JS_ThrowRangeError(ctx, "the range is not within the buffer");
	bytes += offset;
	size_t plain = 0;
	while (plain < length && bytes[plain] < 0x80)
		plain++;
	if (plain == length)
		return JS_NewStringLen(ctx, (const char *)bytes, length);
	uint16_t *units = js_malloc(ctx, (size_t)length * sizeof *units);
	if (units == NULL)
		return JS_EXCEPTION;
	bool valid = true;
	size_t written = utf8_decode(bytes, length, units, &valid);
	JSValue result = valid || !JS_ToBool(ctx, argv[3]) ? JS_NewStringUTF16(ctx, units, written) : JS_UNDEFINED;
	js_free(ctx, units);
	return result;
}

static void *resize_answer(JSRuntime *rt, void *opaque, void *answer, size_t size)
{
	if (size != 0)
		return js_realloc_rt(rt, answer, size);
	js_free_rt(rt, answer);
	return NULL;
}

// answered returns what use does: whether it has worked, and the answer, which it takes.
static JSValue answered(JSContext *ctx, bool worked, uint8_t *answer, size_t size)
{
	JSValue result = JS_NewArray(ctx);
	JS_SetPropertyUint32(ctx, result, 0, JS_NewBool(ctx, worked));
	JS_SetPropertyUint32(ctx, result, 1, JS_NewArrayBuffer(ctx, answer, size, 0, resize_answer, NULL, false));
	return result;
}

// span_of returns the UTF-8 of a string, which is to be freed, or the bytes of an ArrayBuffer; no bytes where the value is undefined. It
// returns false where it has thrown.
static bool span_of(JSContext *ctx, JSValueConst value, struct span *to, const char **text)
{
	size_t size = 0;
	*text = NULL;
	*to = (struct span){"", 0};
	if (JS_IsUndefined(value))
		return true;
	if (JS_IsString(value))
		to->bytes = *text = JS_ToCStringLen(ctx, &size, value);
	else
		to->bytes = JS_GetArrayBuffer(ctx, &size, value);
	to->size = (int)size;
	return !JS_HasException(ctx);
}

// use calls a function of a capability by its name, with two strings or buffers and two numbers, of which each may be left out. It
// returns an array: whether it has worked, and the answer as an ArrayBuffer.
static JSValue use(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv)
{
	int64_t x = 0, y = 0;
	const char *name = JS_ToCString(ctx, argv[0]), *first_text = NULL, *second_text = NULL;
	if (name == NULL)
		return JS_EXCEPTION;
	int function = capability_find(name), size = 0;
	JS_FreeCString(ctx, name);
	if (function < 0)
		return JS_ThrowRangeError(ctx, "the host has no such function");
	if ((!JS_IsUndefined(argv[3]) && JS_ToInt64Ext(ctx, &x, argv[3]) != 0) || (!JS_IsUndefined(argv[4]) && JS_ToInt64Ext(ctx, &y, argv[4]) != 0))
		return JS_EXCEPTION;
	struct span first, second;
	bool given = span_of(ctx, argv[1], &first, &first_text) && span_of(ctx, argv[2], &second, &second_text);
	if (given)
		size = capability_use(function, first, second, x, y);
	JS_FreeCString(ctx, first_text);
	JS_FreeCString(ctx, second_text);
	if (!given)
		return JS_EXCEPTION;
	bool failed = size < 0;
	uint8_t *answer = js_malloc(ctx, failed ? -size : size + 1); // never nothing
	if (answer == NULL)
		return JS_EXCEPTION;
	capability_read(function, answer);
	return answered(ctx, !failed, answer, failed ? -size : size);
}

// read_all reads what is behind a descriptor, of which it takes the size for a hint only.
static uint8_t *read_all(JSContext *ctx, int fd, size_t *size)
{
	enum { CHUNK = 65536 };
	size_t room = CHUNK;
	uint8_t *bytes = js_malloc(ctx, room);
	for (*size = 0; bytes != NULL;) {
		ssize_t n = read(fd, bytes + *size, room - *size);
		if (n <= 0) {
			if (n == 0)
				return bytes;
			break;
		}
		if ((*size += n) < room)
			continue;
		uint8_t *more = js_realloc(ctx, bytes, room *= 2);
		if (more == NULL)
			break;
		bytes = more;
	}
	js_free(ctx, bytes);
	return NULL;
}

// list_all returns the names in a folder, each behind a zero.
static uint8_t *list_all(JSContext *ctx, DIR *folder, size_t *size)
{
	uint8_t *names = js_malloc(ctx, 1);
	struct dirent *entry;
	for (*size = 0; names != NULL && (errno = 0, entry = readdir(folder)) != NULL;) {
		size_t length = strlen(entry->d_name);
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		uint8_t *more = js_realloc(ctx, names, *size + length + 1);
		if (more == NULL) {
			js_free(ctx, names);
			return NULL;
		}
		names = more;
		names[*size] = 0;
		memcpy(names + *size + 1, entry->d_name, length);
		*size += length + 1;
	}
	if (names != NULL && errno != 0) {
		js_free(ctx, names);
		return NULL;
	}
	return names;
}

// file reads what is at a path: the bytes of a file or, with a second argument that is true, the names in a folder. It returns what use does.
static JSValue file(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv)
{
	const char *path = JS_ToCString(ctx, argv[0]);
	if (path == NULL)
		return JS_EXCEPTION;
	size_t size;
	uint8_t *bytes = NULL;
	errno = 0;
	if (JS_ToBool(ctx, argv[1])) {
		DIR *folder = opendir(path);
		if (folder != NULL) {
			bytes = list_all(ctx, folder, &size);
			int why = errno;
			closedir(folder);
			errno = why;
		}
	} else {
		int fd = open(path, O_RDONLY);
		if (fd >= 0) {
			bytes = read_all(ctx, fd, &size);
			int why = errno;
			close(fd);
			errno = why;
		}
	}
	int why = errno;
	JS_FreeCString(ctx, path);
	if (bytes != NULL)
		return answered(ctx, true, bytes, size);
	if (JS_HasException(ctx))
		return JS_EXCEPTION;
	const char *code = why == ENOENT ? "not_found" : why == ENOTCAPABLE ? "not_granted" : "unavailable";
	const char *message = why == ENOTCAPABLE ? "the tool was not granted it, or does not declare it" : strerror(why);
	char text[256];
	int length = snprintf(text, sizeof text, "{\"code\":\"%s\",\"message\":\"%s\"}", code, message);
	bytes = js_malloc(ctx, sizeof text);
	if (bytes == NULL)
		return JS_EXCEPTION;
	memcpy(bytes, text, sizeof text);
	return answered(ctx, false, bytes, length);
}

static const JSCFunctionListEntry exported[] = {
	JS_CFUNC_DEF("input", 0, input),
	JS_CFUNC_DEF("output", 1, output),
	JS_CFUNC_DEF("fail", 1, fail),
	JS_CFUNC_DEF("log", 2, log_line),
	JS_CFUNC_DEF("progress", 3, progress),
	JS_CFUNC_DEF("deadline", 0, deadline),
	JS_CFUNC_DEF("entry", 1, entry),
	JS_CFUNC_DEF("file", 2, file),
	JS_CFUNC_DEF("use", 5, use),
};

static const JSCFunctionListEntry internal[] = {
	JS_CFUNC_DEF("log", 2, log_line),
	JS_CFUNC_DEF("sleep", 1, sleep_for),
	JS_CFUNC_DEF("monotonic", 0, monotonic),
	JS_CFUNC_DEF("random", 3, random_bytes),
	JS_CFUNC_DEF("encode", 1, encode),
	JS_CFUNC_DEF("decode", 4, decode),
	JS_CFUNC_DEF("use", 5, use),
};

enum { EXPORTED = sizeof exported / sizeof *exported, INTERNAL = sizeof internal / sizeof *internal };

static int initialize(JSContext *ctx, JSModuleDef *m)
{
	return JS_SetModuleExportList(ctx, m, exported, EXPORTED);
}

JSModuleDef *host_module(JSContext *ctx, const char *name)
{
	JSModuleDef *m = JS_NewCModule(ctx, name, initialize);
	if (m == NULL || JS_AddModuleExportList(ctx, m, exported, EXPORTED) != 0)
		return NULL;
	return m;
}

JSValue host_functions(JSContext *ctx)
{
	JSValue object = JS_NewObject(ctx);
	JS_SetPropertyFunctionList(ctx, object, internal, INTERNAL);
	return object;
}
