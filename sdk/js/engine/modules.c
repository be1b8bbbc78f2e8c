// The modules that are built in: the package toolsrv, as it is in the folder above, and the host's. A script is bundled, so whatever
// else it imports at run time is not there.
#include <stdlib.h>
#include <string.h>

#include "engine.h"

struct source {
	const char *name, *text;
	size_t size; // without the zero at its end
};

// build.sh writes these: package_sources are sdk/js/NAME.js, web_sources web/NAME.js in the order in which they run.
#include "sources.inc"

static const char package[] = "toolsrv", host[] = "#host";

// file_of returns the file of a module of the package that scripts know by a name of its own.
static const char *file_of(const char *name)
{
	static const struct { const char *name, *file; } files[] = {
		{package, "index.js"}, {"toolsrv/guest", "guest.js"}, {"toolsrv:files", "files.js"}, {"toolsrv:kv", "kv.js"},
		{"toolsrv:secrets", "secrets.js"}, {"toolsrv:settings", "settings.js"}, {"toolsrv:tools", "tools.js"},
	};
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		if (strcmp(name, files[i].name) == 0)
			return files[i].file;
	return NULL;
}

static const struct source *find(const char *name)
{
	const size_t prefix = sizeof package - 1;
	const char *file = file_of(name);
	if (file == NULL && strncmp(name, package, prefix) == 0 && name[prefix] == '/')
		file = name + prefix + 1;
	for (size_t i = 0; file != NULL && i < sizeof package_sources / sizeof *package_sources; i++)
		if (strcmp(file, package_sources[i].name) == 0)
			return &package_sources[i];
	return NULL;
}

// normalize gives a module of the package one name, however it is imported.
static char *normalize(JSContext *ctx, const char *base, const char *name, void *opaque)
{
	bool within = strncmp(base, package, sizeof package - 1) == 0;
	if (!within || strncmp(name, "./", 2) != 0)
		return js_strdup(ctx, name);
	if (strcmp(name, "./index.js") == 0)
		return js_strdup(ctx, package);
	if (strcmp(name, "./guest.js") == 0)
		return js_strdup(ctx, "toolsrv/guest");
	char *full = js_malloc(ctx, sizeof package + strlen(name));
	if (full != NULL) {
		strcpy(full, package);
		strcat(full, name + 1);
	}
	return full;
}

static JSModuleDef *load(JSContext *ctx, const char *name, void *opaque)
{
	if (strcmp(name, host) == 0)
		return host_module(ctx, name);
	const struct source *source = find(name);
	if (source == NULL) {
		JS_ThrowReferenceError(ctx, "%s can't be imported at run time: import it at the top of a file, so that it is bundled", name);
		return NULL;
	}
	JSValue compiled = JS_Eval(ctx, source->text, source->size, name, JS_EVAL_TYPE_MODULE | JS_EVAL_FLAG_COMPILE_ONLY);
	if (JS_IsException(compiled))
		return NULL;
	JSModuleDef *m = JS_VALUE_GET_PTR(compiled);
	JS_FreeValue(ctx, compiled);
	return m;
}

void modules_install(JSRuntime *rt)
{
	JS_SetModuleLoaderFunc(rt, normalize, load, NULL);
}

JSValue modules_import(JSContext *ctx, const char *name, JSValue *namespace)
{
	JSModuleDef *m = load(ctx, name, NULL);
	if (m == NULL)
		return JS_EXCEPTION;
	JSValue promise = JS_EvalFunction(ctx, JS_DupValue(ctx, JS_MKPTR(JS_TAG_MODULE, m)));
	*namespace = JS_IsException(promise) ? JS_UNDEFINED : JS_GetModuleNamespace(ctx, m);
	return promise;
}

// Each file of web/ is the body of a function of the host's functions and of an object for what the engine calls.
JSValue modules_run_web(JSContext *ctx)
{
	JSValue arguments[] = {host_functions(ctx), JS_NewObject(ctx)};
	for (size_t i = 0; i < sizeof web_sources / sizeof *web_sources; i++) {
		JSValue function = JS_Eval(ctx, web_sources[i].text, web_sources[i].size, web_sources[i].name, JS_EVAL_TYPE_GLOBAL);
		JSValue result = JS_IsException(function) ? function : JS_Call(ctx, function, JS_UNDEFINED, 2, arguments);
		if (!JS_IsException(function))
			JS_FreeValue(ctx, function);
		if (JS_IsException(result))
			return JS_EXCEPTION;
		JS_FreeValue(ctx, result);
	}
	JS_FreeValue(ctx, arguments[0]);
	return arguments[1];
}
