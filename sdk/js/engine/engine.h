// The parts of the engine, in the order in which they come to life: the host's functions, random numbers, the built-in modules, the
// bundle with the script, and in engine.c what the host calls.
#ifndef TOOLSRV_ENGINE_H
#define TOOLSRV_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "quickjs.h"

// edit.sh: the interpreter's frames.
bool JS_FrameAt(JSContext *ctx, int n, char *file, size_t size, int *line, int *column);

// host.c: the module #host.
JSModuleDef *host_module(JSContext *ctx, const char *name);
JSValue host_functions(JSContext *ctx); // what web/*.js need of the host
void host_silence(bool on);
void host_log(int level, const char *text, size_t size);
void host_fail(const char *text, size_t size);
void host_output(const char *text, size_t size);

// random.c: numbers that are drawn anew in each call.
int random_install(JSContext *ctx);
void random_forget(void);
void random_fill(void *to, size_t size);

// modules.c: what a script can import, and the parts of the driver that are written in JavaScript.
void modules_install(JSRuntime *rt);
JSValue modules_run_web(JSContext *ctx); // the global functions; returns those that the engine calls
JSValue modules_import(JSContext *ctx, const char *name, JSValue *namespace); // a promise

// bundle.c: the script, and the files beside it.
struct entry {
	const char *name, *data; // not terminated
	size_t name_size, data_size;
};
const char *bundle_check(void); // NULL, or what is wrong with it
bool bundle_find(const char *name, size_t size, struct entry *found);
struct entry bundle_script(void);

// memory.c: where the interpreter's objects live.
extern const JSMallocFunctions memory_functions;
bool memory_refused(void); // whether the host has refused to give more

#endif
