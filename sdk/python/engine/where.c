// Where the script is. The host asks when it has ended a call that used up its limit, in the midst of whatever the interpreter was doing.
// So nothing here allocates, or changes an object.
#define Py_BUILD_CORE 1
#include "engine.h"

#include "internal/pycore_frame.h"

static char place[256];

// toolsrv_where returns a text with a zero behind it, such as "slow.py:3", or NULL where no line of the script or its modules runs. Those of the
// engine have names such as <frozen json>.
__attribute__((export_name("toolsrv_where"))) const char *toolsrv_where(void) {
    PyThreadState *thread = PyThreadState_GetUnchecked();
    for (_PyInterpreterFrame *frame = thread ? thread->current_frame : NULL; frame; frame = frame->previous) {
        if (frame->owner == FRAME_OWNED_BY_CSTACK || !PyCode_Check(frame->f_executable)) continue;
        PyCodeObject *code = (PyCodeObject *)frame->f_executable;
        if (!PyUnicode_IS_COMPACT_ASCII(code->co_filename)) continue;
        const char *name = (const char *)PyUnicode_1BYTE_DATA(code->co_filename);
        if (*name == '<') continue;
        int line = PyCode_Addr2Line(code, _PyInterpreterFrame_LASTI(frame) * (int)sizeof(_Py_CODEUNIT));
        snprintf(place, sizeof place, line > 0 ? "%.200s:%d" : "%.200s", name, line);
        return place;
    }
    return NULL;
}
