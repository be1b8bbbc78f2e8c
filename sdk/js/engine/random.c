// Random numbers. What happens while the engine starts is the same for all calls, so nothing that was drawn then may be drawn again:
// the state is forgotten before calls, and drawn from the host when a call first needs it.
#include <string.h>
#include <wasi/api.h>

#include "engine.h"

static uint64_t state[4]; // of xoshiro256+, by David Blackman and Sebastiano Vigna, which is in the public domain
static bool drawn;

void random_forget(void)
{
	drawn = false;
}

void random_fill(void *to, size_t size)
{
	if (__wasi_random_get(to, size) != 0)
		__builtin_trap();
}

static uint64_t next(void)
{
	while (!drawn) {
		random_fill(state, sizeof state);
		drawn = (state[0] | state[1] | state[2] | state[3]) != 0;
	}
	uint64_t result = state[0] + state[3], shifted = state[1] << 17;
	state[2] ^= state[0];
	state[3] ^= state[1];
	state[1] ^= state[2];
	state[0] ^= state[3];
	state[2] ^= shifted;
	state[3] = state[3] << 45 | state[3] >> 19;
	return result;
}

static JSValue math_random(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv)
{
	return JS_NewFloat64(ctx, (double)(next() >> 11) * 0x1p-53);
}

// random_install replaces the interpreter's own Math.random.
int random_install(JSContext *ctx)
{
	JSValue global = JS_GetGlobalObject(ctx);
	JSValue math = JS_GetPropertyStr(ctx, global, "Math");
	int result = JS_DefinePropertyValueStr(ctx, math, "random", JS_NewCFunction(ctx, math_random, "random", 0),
		JS_PROP_WRITABLE | JS_PROP_CONFIGURABLE);
	JS_FreeValue(ctx, math);
	JS_FreeValue(ctx, global);
	return result;
}
