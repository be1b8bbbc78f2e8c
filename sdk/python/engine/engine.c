// The module of the Python engine: what the host calls (docs/abi.md), over CPython. Each call ends in toolsrv/_guest.py,
// which knows tools; this file knows only how to start the interpreter and how to hand bytes across.
#include "engine.h"

// The bundle of a tool: toolsrv build appends a data segment that fills the beginning. Nothing else may write here.
__attribute__((aligned(65536))) unsigned char toolsrv_bundle[TOOLSRV_BUNDLE_CAPACITY];

// What kept the interpreter from starting, as the JSON of a failure; empty where nothing did.
static char broken[4096];

static PyObject *guest_load, *guest_warm, *guest_describe, *guest_call;

// keep_error makes a failure of the current exception, for an engine that cannot work: where this is seen, the engine
// is at fault and not the script, whose errors _guest.py answers for.
static void keep_error(const char *doing) {
    PyObject *error = PyErr_GetRaisedException();
    PyObject *text = error ? PyUnicode_FromFormat("%s: %s: %S", doing, Py_TYPE(error)->tp_name, error) : NULL;
    const char *reason = text ? PyUnicode_AsUTF8(text) : doing;
    char *out = broken, *end = broken + sizeof broken - 32;
    out += snprintf(out, 64, "{\"status\":500,\"message\":\"");
    for (; reason && *reason && out < end; reason++) {
        unsigned char c = (unsigned char)*reason;
        if (c == '"' || c == '\\') {
            *out++ = '\\';
            *out++ = (char)c;
        } else if (c < 0x20 || c > 0x7e) {
            out += snprintf(out, 8, "\\u%04x", c < 0x20 ? c : 0xfffd);
        } else {
            *out++ = (char)c;
        }
    }
    snprintf(out, 3, "\"}");
    Py_XDECREF(text);
    Py_XDECREF(error);
    PyErr_Clear();
}

static int fail_broken(void) {
    host_fail(broken, (int)strlen(broken));
    return 1;
}

static PyStatus configure(PyConfig *config) {
    PyPreConfig pre;
    PyPreConfig_InitIsolatedConfig(&pre);
    pre.utf8_mode = 1;
    PyStatus status = Py_PreInitialize(&pre);
    if (PyStatus_Exception(status)) return status;
    PyConfig_InitIsolatedConfig(config);
    config->site_import = 0;
    config->write_bytecode = 0;
    config->install_signal_handlers = 0;
    config->pathconfig_warnings = 0;
    config->use_frozen_modules = 1;
    config->module_search_paths_set = 1; // and empty: modules are frozen, or come out of the bundle
    config->use_hash_seed = 1;           // a snapshot has one seed for all calls, whatever it is
    config->hash_seed = 0;
    struct { wchar_t **field; const wchar_t *value; } strings[] = {
        {&config->program_name, L"toolsrv"}, {&config->executable, L""}, {&config->base_executable, L""},
        {&config->prefix, L"/"}, {&config->base_prefix, L"/"}, {&config->exec_prefix, L"/"}, {&config->base_exec_prefix, L"/"},
        {&config->stdlib_dir, L""}, {&config->stdio_encoding, L"utf-8"}, {&config->stdio_errors, L"backslashreplace"},
    };
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        status = PyConfig_SetString(config, strings[i].field, strings[i].value);
        if (PyStatus_Exception(status)) return status;
    }
    return status;
}

static PyObject *guest_function(PyObject *guest, const char *name) {
    PyObject *function = PyObject_GetAttrString(guest, name);
    if (!function) keep_error(name);
    return function;
}

// run calls a function that returns nothing of interest, and says whether it has returned.
static int run(PyObject *function, PyObject *argument, const char *doing) {
    PyObject *done = NULL;
    if (function && argument) done = PyObject_CallOneArg(function, argument);
    else if (function) done = PyObject_CallNoArgs(function);
    if (!done) keep_error(doing);
    Py_XDECREF(done);
    return done != NULL;
}

// start runs within _initialize, without a bundle: what it leaves in memory is the same for every tool of this engine.
__attribute__((constructor)) static void start(void) {
    PyImport_FrozenModules = toolsrv_frozen;
    PyImport_AppendInittab("_toolsrv", PyInit__toolsrv);
    PyConfig config;
    PyStatus status = configure(&config);
    if (!PyStatus_Exception(status)) status = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
    if (PyStatus_Exception(status)) {
        snprintf(broken, sizeof broken, "{\"status\":500,\"message\":\"Python did not start: %s\"}", status.err_msg);
        return;
    }
    PyObject *prepare = PyImport_ImportModule("_toolsrv_start");
    PyObject *guest = prepare ? PyImport_ImportModule("toolsrv._guest") : NULL;
    if (!guest) {
        keep_error("the engine's own modules");
        return;
    }
    guest_load = guest_function(guest, "load");
    guest_warm = guest_function(guest, "warm");
    guest_describe = guest_function(guest, "describe");
    guest_call = guest_function(guest, "call");
    // What a first tool makes the interpreter do once, it does before the memory that all tools share is taken.
    PyObject *rehearse = guest_function(guest, "rehearse");
    run(rehearse, NULL, "rehearse");
    Py_XDECREF(rehearse);
    settle();
}

__attribute__((export_name("toolsrv_warm"))) void toolsrv_warm(void) {
    if (*broken) return;
    PyObject *bundle = PyMemoryView_FromMemory((char *)toolsrv_bundle, TOOLSRV_BUNDLE_CAPACITY, PyBUF_READ);
    if (!bundle) keep_error("load");
    else if (run(guest_load, bundle, "load")) {
        host_silence(1);
        if (run(guest_warm, NULL, "warm")) settle();
        host_silence(0);
    }
    Py_XDECREF(bundle);
}

// answer takes what describe or call returned: 0, or 1 where fail has said why.
static int answer(PyObject *result, const char *doing) {
    if (result && PyLong_Check(result)) return (int)PyLong_AsLong(result);
    if (result) PyErr_SetString(PyExc_TypeError, "neither 0 nor 1 was returned");
    keep_error(doing);
    return fail_broken();
}

__attribute__((export_name("toolsrv_describe"))) int toolsrv_describe(void) {
    if (*broken) return fail_broken();
    return answer(PyObject_CallNoArgs(guest_describe), "describe");
}

__attribute__((export_name("toolsrv_call"))) int toolsrv_call(int tool) {
    if (*broken) return fail_broken();
    PyObject *number = PyLong_FromLong(tool);
    return answer(number ? PyObject_CallOneArg(guest_call, number) : NULL, "call");
}
