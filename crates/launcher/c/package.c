/*
 * What the launcher does once it is released: it runs the package. The filter,
 * the limits and the namespaces are in place; nothing here protects anything.
 * A test build of the launcher puts another file in the place of this one, and
 * of this one alone, to try system calls behind the very same barrier.
 */
#include "package.h"

#include "lazaret_abi.h"

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* The code of a SystemExit as the interpreter's own main program gives it. */
static int system_exit_code(PyObject *exception)
{
    PyObject *code = PyObject_GetAttrString(exception, "code");
    long value = LZ_PACKAGE_EXCEPTION;

    if (code == NULL || code == Py_None) {
        value = code == NULL ? LZ_PACKAGE_EXCEPTION : LZ_PACKAGE_DONE;
    } else if (PyLong_Check(code)) {
        value = PyLong_AsLong(code);
    } else {
        PyObject *stream = PySys_GetObject("stderr");
        if (stream != NULL && PyFile_WriteObject(code, stream, Py_PRINT_RAW) == 0)
            (void)PyFile_WriteString("\n", stream);
    }
    PyErr_Clear();
    Py_XDECREF(code);
    return value >= 0 && value <= 127 ? (int)value : LZ_PACKAGE_EXCEPTION;
}

static int handle_exception(void)
{
    PyObject *exception;
    int code;

    if (!PyErr_ExceptionMatches(PyExc_SystemExit)) {
        PyErr_Print();
        return LZ_PACKAGE_EXCEPTION;
    }
    exception = PyErr_GetRaisedException();
    code = system_exit_code(exception);
    Py_DECREF(exception);
    return code;
}

static int call_and_forget(PyObject *object, const char *method)
{
    PyObject *result = object != NULL ? PyObject_CallMethod(object, method, NULL) : NULL;

    if (result == NULL) {
        PyErr_Clear();
        return -1;
    }
    Py_DECREF(result);
    return 0;
}

/*
 * What Py_FinalizeEx would have done that a package can notice: exit handlers,
 * files closed as their last reference goes, the two streams flushed. Tearing
 * the interpreter down costs milliseconds and protects nothing: the kernel
 * takes the process away as a whole.
 */
static void finish(PyObject *main_dict)
{
    PyObject *atexit_module = PyImport_ImportModule("atexit");

    (void)call_and_forget(atexit_module, "_run_exitfuncs");
    Py_XDECREF(atexit_module);
    PyDict_Clear(main_dict);
    (void)call_and_forget(PySys_GetObject("stdout"), "flush");
    (void)call_and_forget(PySys_GetObject("stderr"), "flush");
}

/*
 * Compiles the bytes as UTF-8, coding cookies ignored, so that no codec stands
 * between what was read and what runs, and runs them once as __main__.
 */
int lz_run_package(const uint8_t *source)
{
    PyCompilerFlags flags = { .cf_flags = PyCF_IGNORE_COOKIE | PyCF_SOURCE_IS_UTF8,
                              .cf_feature_version = PY_MINOR_VERSION };
    PyObject *module = PyImport_AddModule("__main__");
    PyObject *dict = module != NULL ? PyModule_GetDict(module) : NULL;
    PyObject *code = NULL, *result = NULL, *file;
    int exit_code = LZ_PACKAGE_DONE;

    if (dict == NULL)
        return LZ_PACKAGE_EXCEPTION;
    file = PyUnicode_FromString(LZ_PATH_PACKAGE);
    if (file != NULL && PyDict_SetItemString(dict, "__file__", file) == 0)
        code = Py_CompileStringExFlags((const char *)source, LZ_PATH_PACKAGE,
                                       Py_file_input, &flags, -1);
    if (code != NULL)
        result = PyEval_EvalCode(code, dict, dict);
    if (result == NULL)
        exit_code = handle_exception();
    Py_XDECREF(result);
    Py_XDECREF(code);
    Py_XDECREF(file);
    finish(dict);
    return exit_code;
}
