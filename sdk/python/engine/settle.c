// What the end of a start does to memory, so that a call writes to few pages: each page that a call changes is copied back
// after it.
#include "engine.h"
#include "heap.h"

extern unsigned toolsrv_random_epoch; // of _randommodule.c, as patch.py leaves it

// IMMORTAL is the reference count that CPython does not count (_Py_IMMORTAL_REFCNT on 32 bits).
#define IMMORTAL ((Py_ssize_t)(UINT_MAX >> 2))

// may_live_on tells whether nobody can see that an object is never freed. That is so of what C code defines, without a
// finalizer and without a callback that waits for its end; of instances of a program's own classes it is not.
static int may_live_on(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    if (PyType_Check(object) || PyModule_CheckExact(object)) return 1;
    if (type->tp_flags & Py_TPFLAGS_HEAPTYPE && !(type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE)) return 0;
    if (type->tp_finalize || type->tp_del) return 0;
    return !PyWeakref_Check(object) && !PyFrame_Check(object) && !PyTraceBack_Check(object) && !PyExceptionInstance_Check(object);
}

static void keep(PyObject *object);

static int keep_referent(PyObject *object, void *none) {
    if (!PyObject_IS_GC(object) || !PyObject_GC_IsTracked(object)) keep(object);
    return 0;
}

// keep makes an object immortal, and what it refers to that the collector does not know by itself.
static void keep(PyObject *object) {
    if (object->ob_refcnt == IMMORTAL || !may_live_on(object)) return;
    object->ob_refcnt = IMMORTAL;
    if (PyCode_Check(object)) { // which the collector knows nothing of
        PyCodeObject *code = (PyCodeObject *)object;
        PyObject *parts[] = {code->co_consts, code->co_names, code->co_exceptiontable, code->co_localsplusnames, code->co_localspluskinds,
                             code->co_filename, code->co_name, code->co_qualname, code->co_linetable};
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) keep(parts[i]);
        return;
    }
    if (PyDict_CheckExact(object)) { // whose traversal leaves out keys that are strings
        PyObject *key, *value;
        for (Py_ssize_t at = 0; PyDict_Next(object, &at, &key, &value);) keep_referent(key, NULL);
    }
    if (Py_TYPE(object)->tp_traverse) Py_TYPE(object)->tp_traverse(object, keep_referent, NULL);
}

static int keep_tracked(PyObject *object, void *none) {
    keep(object);
    if (!may_live_on(object)) Py_TYPE(object)->tp_traverse(object, keep_referent, NULL);
    return 1;
}

static void collector(const char *method) {
    PyObject *gc = PyImport_ImportModule("gc");
    PyObject *done = gc ? PyObject_CallMethod(gc, method, NULL) : NULL;
    Py_XDECREF(done);
    Py_XDECREF(gc);
    PyErr_Clear();
}

// settle frees what the start has left behind. What stays is hidden from the collector, which then looks only at what a call
// makes, and its references are no longer counted. Random numbers that were drawn so far are not those of calls.
void settle(void) {
    collector("collect");
    PyUnstable_GC_VisitObjects(keep_tracked, NULL);
    collector("freeze");
    toolsrv_random_epoch++;
    malloc_seal();
}
