// What the host calls, in this order: _initialize starts the interpreter, the same for all scripts; toolsrv_warm loads the script;
// toolsrv_describe or toolsrv_call follow, in the state that toolsrv_warm left. Nothing that a script does wrong ends in a trap, but
// for memory that the host has refused: then a trap says so.
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "heap.h"

#define EXPORT(name) __attribute__((export_name(name)))

enum { DONE = 0, FAILED = 1 };
enum { LOG_ERROR = 3 };

static JSRuntime *rt;
static JSContext *ctx;

// What is called in JavaScript: the exports of toolsrv/guest, and what web/*.js leave for the engine.
static JSValue guest_load, guest_warm, guest_describe, guest_call, guest_stuck, guest_broken, guest_unhandled, guest_explain, guest_where;
static JSValue engine_tick, engine_begin;

static JSValue kept = JS_UNDEFINED; // what is wrong with the script, for its author; undefined where nothing is

// The promises that were rejected and are not handled, and what they were rejected with.
static JSValue rejected; // an array of pairs
static uint32_t rejections;

static void track_rejection(JSContext *c, JSValueConst promise, JSValueConst reason, bool handled, void *opaque)
{
	if (!handled) {
		JSValue pair = JS_NewArray(c);
		JS_SetPropertyUint32(c, pair, 0, JS_DupValue(c, promise));
		JS_SetPropertyUint32(c, pair, 1, JS_DupValue(c, reason));
		JS_SetPropertyUint32(c, rejected, rejections++, pair);
		return;
	}
	for (uint32_t i = 0; i < rejections; i++) {
		JSValue pair = JS_GetPropertyUint32(c, rejected, i);
		JSValue other = JS_GetPropertyUint32(c, pair, 0);
		bool same = JS_IsStrictEqual(c, other, promise);
		JS_FreeValue(c, other);
		JS_FreeValue(c, pair);
		if (same) {
			JSValue last = JS_GetPropertyUint32(c, rejected, --rejections);
			JS_SetPropertyUint32(c, rejected, i, last);
			return;
		}
	}
}

// broken_interpreter ends the start of an engine that can't work. No script is the cause, as none has been seen.
static void broken_interpreter(void)
{
	JSValue error = JS_GetException(ctx);
	size_t size = 0;
	const char *text = JS_ToCStringLen(ctx, &size, error);
	if (text != NULL)
		host_log(LOG_ERROR, text, size);
	__builtin_trap();
}

static JSValue must(JSValue value)
{
	if (JS_IsException(value))
		broken_interpreter();
	return value;
}

// unhandled tells the guest of something that was thrown and that nobody waits for.
static int unhandled(JSValue reason)
{
	JSValue result = JS_Call(ctx, guest_unhandled, JS_UNDEFINED, 1, (JSValueConst *)&reason);
	JS_FreeValue(ctx, reason);
	if (JS_IsException(result))
		JS_FreeValue(ctx, JS_GetException(ctx));
	JS_FreeValue(ctx, result);
	return FAILED;
}

enum settled { FULFILLED, REJECTED, STUCK };

// settle runs jobs and timers until the promise is settled, and gives its value or reason. A value that is no promise is fulfilled.
// What a job or a timer throws, nobody waits for: *status becomes FAILED.
static enum settled settle(JSValue promise, JSValue *value, int *status)
{
	for (;;) {
		JSContext *of;
		int ran;
		while ((ran = JS_ExecutePendingJob(rt, &of)) != 0)
			if (ran < 0)
				*status = unhandled(JS_GetException(of));
		if (!JS_IsPromise(promise)) {
			*value = promise;
			return FULFILLED;
		}
		JSPromiseStateEnum state = JS_PromiseState(ctx, promise);
		if (state != JS_PROMISE_PENDING) {
			*value = JS_PromiseResult(ctx, promise);
			if (state == JS_PROMISE_REJECTED)
				JS_PromiseMarkAsHandled(ctx, promise);
			JS_FreeValue(ctx, promise);
			return state == JS_PROMISE_FULFILLED ? FULFILLED : REJECTED;
		}
		JSValue more = JS_Call(ctx, engine_tick, JS_UNDEFINED, 0, NULL);
		if (JS_IsException(more)) {
			*status = unhandled(JS_GetException(ctx));
			continue;
		}
		if (!JS_ToBool(ctx, more)) {
			JS_FreeValue(ctx, promise);
			return STUCK;
		}
		JS_FreeValue(ctx, more);
	}
}

static JSValue function_of(JSValueConst object, const char *name)
{
	JSValue function = must(JS_GetPropertyStr(ctx, object, name));
	if (!JS_IsFunction(ctx, function))
		__builtin_trap();
	return function;
}

__attribute__((constructor)) static void start(void)
{
	rt = JS_NewRuntime2(&memory_functions, NULL);
	ctx = rt == NULL ? NULL : JS_NewContext(rt);
	if (ctx == NULL)
		__builtin_trap();
	JS_SetMaxStackSize(rt, TOOLSRV_STACK);
	rejected = JS_NewArray(ctx);
	JS_SetHostPromiseRejectionTracker(rt, track_rejection, NULL);
	if (random_install(ctx) < 0)
		broken_interpreter();
	modules_install(rt);

	JSValue engine = must(modules_run_web(ctx));
	engine_tick = function_of(engine, "tick");
	engine_begin = function_of(engine, "begin");
	JS_FreeValue(ctx, engine);

	int status = DONE;
	JSValue guest, value;
	if (settle(must(modules_import(ctx, "toolsrv/guest", &guest)), &value, &status) != FULFILLED || status != DONE) {
		JS_Throw(ctx, value);
		broken_interpreter();
	}
	guest_load = function_of(guest, "load");
	guest_warm = function_of(guest, "warm");
	guest_describe = function_of(guest, "describe");
	guest_call = function_of(guest, "call");
	guest_stuck = function_of(guest, "stuck");
	guest_broken = function_of(guest, "broken");
	guest_unhandled = function_of(guest, "unhandled");
	guest_explain = function_of(guest, "explain");
	guest_where = function_of(guest, "where");
	JS_FreeValue(ctx, guest);
	JS_RunGC(rt);
	malloc_seal();
}

// keep keeps what is wrong with the script. It takes the reason.
static void keep(JSValue reason)
{
	kept = JS_Call(ctx, guest_explain, JS_UNDEFINED, 1, (JSValueConst *)&reason);
	JS_FreeValue(ctx, reason);
	if (JS_IsException(kept)) {
		JSValue error = JS_GetException(ctx);
		kept = JS_ToString(ctx, error);
		JS_FreeValue(ctx, error);
	}
	if (!JS_IsString(kept))
		kept = JS_NewString(ctx, "the script can't be loaded, and its error has no text");
}

// evaluate runs the script and gives its namespace, or throws.
static JSValue evaluate(struct entry script)
{
	char *name = js_strndup(ctx, script.name, script.name_size);
	if (name == NULL)
		return JS_EXCEPTION;
	// The interpreter wants a zero behind the source. There the next file begins, or the rest of the region.
	char *end = (char *)script.data + script.data_size, behind = *end;
	*end = 0;
	JSValue module = JS_Eval(ctx, script.data, script.data_size, name, JS_EVAL_TYPE_MODULE | JS_EVAL_FLAG_COMPILE_ONLY);
	*end = behind;
	js_free(ctx, name);
	if (JS_IsException(module))
		return module;
	JSModuleDef *m = JS_VALUE_GET_PTR(module);
	JSValue promise = JS_EvalFunction(ctx, module), value;
	if (JS_IsException(promise))
		return promise;
	int status = DONE;
	switch (settle(promise, &value, &status)) {
	case REJECTED:
		return JS_Throw(ctx, value);
	case STUCK:
		return JS_ThrowTypeError(ctx, "the script awaits a promise that nothing settles");
	default:
		JS_FreeValue(ctx, value);
		return JS_GetModuleNamespace(ctx, m);
	}
}

static void load(void)
{
	const char *problem = bundle_check();
	if (problem != NULL) {
		kept = JS_NewString(ctx, problem);
		return;
	}
	struct entry script = bundle_script();
	JSValue namespace = evaluate(script), result = namespace;
	if (!JS_IsException(namespace)) {
		JSValueConst arguments[] = {namespace, JS_NewStringLen(ctx, script.name, script.name_size)};
		result = JS_Call(ctx, guest_load, JS_UNDEFINED, 2, arguments);
		JS_FreeValue(ctx, (JSValue)arguments[1]);
		JS_FreeValue(ctx, namespace);
	}
	if (JS_IsException(result)) {
		keep(JS_GetException(ctx));
		return;
	}
	JS_FreeValue(ctx, result);
	int status = DONE;
	JSValue value = JS_UNDEFINED;
	host_silence(true);
	result = JS_Call(ctx, guest_warm, JS_UNDEFINED, 0, NULL);
	if (JS_IsException(result))
		value = JS_GetException(ctx);
	else
		settle(result, &value, &status);
	host_silence(false);
	JS_FreeValue(ctx, value);
}

// ENOUGH is how much more memory there may be before the interpreter looks for cycles, which touches every object there is: a call
// that needs less is spared that.
enum { ENOUGH = 8 << 20 };

EXPORT("toolsrv_warm") void toolsrv_warm(void)
{
	JS_UpdateStackTop(rt);
	load();
	JS_FreeValue(ctx, must(JS_Call(ctx, engine_begin, JS_UNDEFINED, 0, NULL)));
	JS_FreeValue(ctx, rejected);
	rejected = JS_NewArray(ctx);
	rejections = 0;
	random_forget();
	JS_RunGC(rt);
	JS_SetGCThreshold(rt, JS_GetGCThreshold(rt) + ENOUGH);
	malloc_seal();
}

// toolsrv_where says at which place of the script the interpreter is, when the host has ended it there: a text with a zero behind it, or
// NULL. It is asked once, and nothing runs afterwards.
EXPORT("toolsrv_where") const char *toolsrv_where(void)
{
	char file[256];
	int line = 0, column = 0;
	for (int n = 0; n < 1000 && JS_FrameAt(ctx, n, file, sizeof file, &line, &column); n++) {
		if (*file == 0)
			continue;
		JSValue arguments[] = {JS_NewString(ctx, file), JS_NewInt32(ctx, line), JS_NewInt32(ctx, column)};
		JSValue place = JS_Call(ctx, guest_where, JS_UNDEFINED, 3, (JSValueConst *)arguments);
		if (JS_IsString(place))
			return JS_ToCString(ctx, place);
	}
	return NULL;
}

// fail_with fails the call with a text for the author.
static int fail_with(JSValueConst message, bool status)
{
	JSValue failure = JS_NewObject(ctx);
	JS_SetPropertyStr(ctx, failure, "message", JS_DupValue(ctx, message));
	if (status)
		JS_SetPropertyStr(ctx, failure, "status", JS_NewInt32(ctx, 500));
	JSValue text = JS_JSONStringify(ctx, failure, JS_UNDEFINED, JS_UNDEFINED);
	size_t size;
	const char *bytes = JS_ToCStringLen(ctx, &size, text);
	if (bytes != NULL)
		host_fail(bytes, size);
	return FAILED;
}

// finish waits for what a function of the guest has returned, and gives its status; number is the tool's.
static int finish(JSValue result, int number)
{
	int status = DONE, own = FAILED;
	JSValue value = JS_UNDEFINED, argument = JS_NewInt32(ctx, number);
	enum settled how = REJECTED;
	if (JS_IsException(result))
		value = JS_GetException(ctx);
	else
		how = settle(result, &value, &status);
	switch (how) {
	case FULFILLED:
		if (JS_ToInt32(ctx, &own, value) != 0)
			own = FAILED;
		break;
	case STUCK:
		JS_FreeValue(ctx, JS_Call(ctx, guest_stuck, JS_UNDEFINED, 1, (JSValueConst *)&argument));
		break;
	case REJECTED:
		JS_FreeValue(ctx, JS_Call(ctx, guest_broken, JS_UNDEFINED, 1, (JSValueConst *)&value));
	}
	for (uint32_t i = 0; i < rejections; i++) {
		JSValue pair = JS_GetPropertyUint32(ctx, rejected, i);
		status = unhandled(JS_GetPropertyUint32(ctx, pair, 1));
		JS_FreeValue(ctx, pair);
	}
	if (own == DONE && status == DONE)
		return DONE;
	if (memory_refused())
		__builtin_trap(); // so that the host says what it was
	return FAILED;
}

EXPORT("toolsrv_describe") int toolsrv_describe(void)
{
	JS_UpdateStackTop(rt);
	if (JS_IsUndefined(kept)) {
		JSValue manifest = JS_Call(ctx, guest_describe, JS_UNDEFINED, 0, NULL);
		int status = DONE;
		JSValue value = JS_UNDEFINED;
		enum settled how = REJECTED;
		if (JS_IsException(manifest))
			value = JS_GetException(ctx);
		else
			how = settle(manifest, &value, &status);
		if (how == FULFILLED) {
			size_t size;
			const char *text = JS_ToCStringLen(ctx, &size, value);
			if (text != NULL) {
				host_output(text, size);
				return DONE;
			}
			value = JS_GetException(ctx);
		}
		keep(value);
	}
	return fail_with(kept, false);
}

EXPORT("toolsrv_call") int toolsrv_call(int number)
{
	if (!JS_IsUndefined(kept)) {
		size_t size;
		const char *text = JS_ToCStringLen(ctx, &size, kept);
		if (text != NULL)
			host_log(LOG_ERROR, text, size);
		return fail_with(kept, true);
	}
	JS_UpdateStackTop(rt);
	JSValueConst argument = JS_NewInt32(ctx, number);
	return finish(JS_Call(ctx, guest_call, JS_UNDEFINED, 1, &argument), number);
}
