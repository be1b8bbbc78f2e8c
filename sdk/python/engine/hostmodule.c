// The module _toolsrv: the functions of the host, for toolsrv/_guest.py and its neighbours.
#include "capability.h"
#include "engine.h"

static PyObject *host_input(PyObject *module, PyObject *none) {
    int size = host_input_size();
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, size);
    if (bytes && size > 0) host_input_read(PyBytes_AS_STRING(bytes));
    return bytes;
}

// text returns the UTF-8 of a str, or the bytes of a bytes.
static const char *text(PyObject *object, Py_ssize_t *size) {
    if (PyUnicode_Check(object)) return PyUnicode_AsUTF8AndSize(object, size);
    if (PyBytes_Check(object)) {
        *size = PyBytes_GET_SIZE(object);
        return PyBytes_AS_STRING(object);
    }
    PyErr_Format(PyExc_TypeError, "a str or bytes is needed, not %T", object);
    return NULL;
}

static PyObject *give(PyObject *object, void (*to)(const void *, int)) {
    Py_ssize_t size;
    const char *bytes = text(object, &size);
    if (!bytes) return NULL;
    to(bytes, (int)size);
    Py_RETURN_NONE;
}

static PyObject *output(PyObject *module, PyObject *json) { return give(json, host_output); }

static PyObject *fail(PyObject *module, PyObject *json) { return give(json, host_fail); }

// Examples that only warm a tool up say nothing: whoever tests them runs them again.
static int silent;

void host_silence(int on) { silent = on; }

static PyObject *write_log(PyObject *module, PyObject *args) {
    int level;
    PyObject *line;
    if (!PyArg_ParseTuple(args, "iU:log", &level, &line)) return NULL;
    if (silent) Py_RETURN_NONE;
    // What cannot be UTF-8, half of a surrogate pair, must not lose the line.
    PyObject *bytes = PyUnicode_AsEncodedString(line, "utf-8", "backslashreplace");
    if (!bytes) return NULL;
    host_log(level, PyBytes_AS_STRING(bytes), (int)PyBytes_GET_SIZE(bytes));
    Py_DECREF(bytes);
    Py_RETURN_NONE;
}

static PyObject *deadline(PyObject *module, PyObject *none) { return PyLong_FromLongLong(host_deadline()); }

static PyObject *progress(PyObject *module, PyObject *args) {
    double done, total = 0;
    const char *message = "";
    Py_ssize_t size = 0;
    if (!PyArg_ParseTuple(args, "d|ds#:progress", &done, &total, &message, &size)) return NULL;
    host_progress(done, total, message, (int)size);
    Py_RETURN_NONE;
}

static PyObject *use(PyObject *module, PyObject *args) {
    const char *name;
    Py_buffer first = {.buf = ""}, second = {.buf = ""};
    long long x = 0, y = 0;
    if (!PyArg_ParseTuple(args, "s|s*s*LL:use", &name, &first, &second, &x, &y)) return NULL;
    PyObject *answer = NULL;
    int function = capability_find(name), size = 0;
    if (function >= 0) {
        size = capability_use(function, (struct span){first.buf, (int)first.len}, (struct span){second.buf, (int)second.len}, x, y);
        answer = PyBytes_FromStringAndSize(NULL, size < 0 ? -size : size);
    } else {
        PyErr_Format(PyExc_ValueError, "the host has no function %s", name);
    }
    PyBuffer_Release(&first);
    PyBuffer_Release(&second);
    if (!answer) return NULL;
    capability_read(function, PyBytes_AS_STRING(answer));
    return Py_BuildValue("NN", PyBool_FromLong(size >= 0), answer);
}

static PyObject *data(PyObject *module, PyObject *name) {
    const char *wanted = PyUnicode_AsUTF8(name);
    if (!wanted) return NULL;
    for (const struct toolsrv_data *d = toolsrv_data; d->name; d++)
        if (strcmp(d->name, wanted) == 0) return PyBytes_FromStringAndSize((const char *)d->bytes, d->size);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"input", host_input, METH_NOARGS, "The call's arguments, as JSON."},
    {"output", output, METH_O, "Takes the result, as JSON."},
    {"fail", fail, METH_O, "Takes the failure, as JSON."},
    {"log", write_log, METH_VARARGS, "Writes a line to the host's log: level 0 to 3, text."},
    {"deadline", deadline, METH_NOARGS, "The milliseconds that the call has left; 0 when there are none, -1 while the tool starts."},
    {"progress", progress, METH_VARARGS, "Reports how much is done: done, total, message."},
    {"use", use, METH_VARARGS, "Calls a function of a capability: name, two bytes or texts, two numbers. Returns whether it has worked, and the answer."},
    {"data", data, METH_O, "A file of the engine's own, or None."},
    {0},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_toolsrv", .m_doc = "The host's functions.", .m_size = 0, .m_methods = methods,
};

PyMODINIT_FUNC PyInit__toolsrv(void) { return PyModuleDef_Init(&definition); }
