#ifndef TOOLSRV_ENGINE_H
#define TOOLSRV_ENGINE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

// The most bytes that a tool's bundle may have: modules, packages and data files of a script. Pages that are not used cost nothing.
#define TOOLSRV_BUNDLE_CAPACITY 16777216

#define HOST(name) __attribute__((import_module("toolsrv_v1"), import_name(name)))

HOST("input_size") int host_input_size(void);
HOST("input_read") void host_input_read(void *to);
HOST("output_write") void host_output(const void *json, int size);
HOST("fail") void host_fail(const void *json, int size);
HOST("log") void host_log(int level, const void *text, int size);
HOST("deadline") long long host_deadline(void);
HOST("progress") void host_progress(double done, double total, const void *text, int size);

// host_silence has log lines of the guest dropped, or written again.
void host_silence(int on);

// frozen.c, which freeze.py writes: the standard library and the SDK, compiled, and files of data.
struct toolsrv_data {
    const char *name;
    const unsigned char *bytes;
    int size;
};
extern const struct _frozen toolsrv_frozen[];
extern const struct toolsrv_data toolsrv_data[];

// hostmodule.c
PyMODINIT_FUNC PyInit__toolsrv(void);

// settle.c: puts memory into the state that makes calls cheap, at the end of a start.
void settle(void);

#endif
