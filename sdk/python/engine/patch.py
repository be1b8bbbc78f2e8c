"""Changes the sources of CPython where a snapshot, or the lack of threads, makes them wrong. It takes their folder."""

import os
import sys

# By file: what is replaced by what, each of which must be there exactly once.
PATCHES = {
    # random: what the OS was asked for is drawn anew after the snapshot, for random's own generator and for every Random() without a
    # seed, when it is next used; a generator that the program seeded goes on as it was. toolsrv_random_epoch counts the snapshots.
    "Modules/_randommodule.c": [
        (
            """\
    uint32_t state[N];
} RandomObject;
""",
            """\
    uint32_t state[N];
    unsigned drawn;  /* the epoch in which the state came from the OS, 0 if it comes from a seed */
    int has_gauss;
    double gauss;
} RandomObject;

#define NOT_YET ((unsigned)-1)
unsigned toolsrv_random_epoch = 1;
static void draw(RandomObject *self);
#define IS_STALE(self) ((self)->drawn != 0 && (self)->drawn != toolsrv_random_epoch)
""",
        ),
        ("    uint32_t *mt;\n\n    mt = self->state;\n    if (", "    uint32_t *mt;\n\n    if (IS_STALE(self)) draw(self);\n    mt = self->state;\n    if ("),
        (
            """\
       if (random_seed_urandom(self) < 0) {
            PyErr_Clear();

            /* Reading system entropy failed, fall back on the worst entropy:
               use the current time and process identifier. */
            if (random_seed_time_pid(self) < 0) {
                return -1;
            }
        }
        return 0;
""",
            """\
        self->drawn = NOT_YET;
        return 0;
""",
        ),
        (
            """\
static int
random_seed(RandomObject *self, PyObject *arg)
""",
            """\
static void
draw(RandomObject *self)
{
    if (random_seed_urandom(self) < 0) {
        PyErr_Clear();
        if (random_seed_time_pid(self) < 0) PyErr_Clear();
    }
    self->drawn = toolsrv_random_epoch;
    self->has_gauss = 0;
}

static int
random_seed(RandomObject *self, PyObject *arg)
""",
        ),
        ("    init_by_array(self, key, keyused);\n", "    init_by_array(self, key, keyused);\n    self->drawn = 0;\n"),
        ("    state = PyTuple_New(N+1);\n", "    if (IS_STALE(self)) draw(self);\n    state = PyTuple_New(N+1);\n"),
        ("    self->index = (int)index;\n", "    self->index = (int)index;\n    self->drawn = 0;\n"),
        (
            "PyDoc_STRVAR(random_doc,",
            """\
static PyObject *
random_get_gauss(RandomObject *self, void *closure)
{
    if (!self->has_gauss || IS_STALE(self)) Py_RETURN_NONE;
    return PyFloat_FromDouble(self->gauss);
}

static int
random_set_gauss(RandomObject *self, PyObject *value, void *closure)
{
    double gauss = 0;
    if (value && value != Py_None) {
        gauss = PyFloat_AsDouble(value);
        if (gauss == -1 && PyErr_Occurred()) return -1;
    }
    self->gauss = gauss;
    self->has_gauss = value && value != Py_None;
    return 0;
}

static PyGetSetDef random_getset[] = {
    {"gauss_next", (getter)random_get_gauss, (setter)random_set_gauss},
    {NULL},
};

PyDoc_STRVAR(random_doc,""",
        ),
        ("    {Py_tp_methods, random_methods},\n", "    {Py_tp_methods, random_methods},\n    {Py_tp_getset, random_getset},\n"),
    ],
    # Who waits for a lock that nobody can release has made a mistake, and would wait until the call's time is over.
    "Python/thread.c": [
        (
            "        if (r == PY_LOCK_FAILURE && microseconds != 0) {\n",
            """\
        if (r == PY_LOCK_FAILURE && microseconds < 0) {
            PyErr_SetString(PyExc_RuntimeError, "deadlock: the lock is held, and there is no other thread that could release it");
            return PY_LOCK_INTR;
        }
        if (r == PY_LOCK_FAILURE && microseconds != 0) {
""",
        ),
    ],
    "Python/lock.c": [
        (
            """\
    else if (timeout == 0) {
        return PY_LOCK_FAILURE;
    }

    PyTime_t now;
""",
            """\
    else if (timeout == 0) {
        return PY_LOCK_FAILURE;
    }
    else if (timeout < 0 && (flags & _PY_LOCK_HANDLE_SIGNALS)) {
        PyErr_SetString(PyExc_RuntimeError, "deadlock: the lock is held, and there is no other thread that could release it");
        return PY_LOCK_INTR;
    }

    PyTime_t now;
""",
        ),
    ],
    "Modules/_threadmodule.c": [
        (
            '        PyErr_SetString(ThreadError, "can\'t start new thread");\n',
            """\
        PyErr_SetString(ThreadError, "can't start new thread: there are none in the sandbox; use asyncio, or do one thing after the other");
""",
        ),
    ],
    # As deep as recursion through C may go with sys.setrecursionlimit, so that it ends as a RecursionError within the call stack that
    # tools have. Without it, the limit of 1,000 comes first.
    "Include/cpython/pystate.h": [
        ("   // Based on wasmtime 16.\n#  define Py_C_RECURSION_LIMIT 5000\n", "#  define Py_C_RECURSION_LIMIT 3000\n"),
    ],
}


def main(root):
    for name, patches in PATCHES.items():
        path = os.path.join(root, name)
        with open(path, encoding="utf-8") as file:
            source = file.read()
        for old, new in patches:
            if source.count(old) != 1:
                raise SystemExit(f"patch.py: {name} has {source.count(old)} times, and not once: {old!r}")
            source = source.replace(old, new)
        with open(path, "w", encoding="utf-8") as file:
            file.write(source)


if __name__ == "__main__":
    main(sys.argv[1])
