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
        /* Writing runs code of the package, which may let go of the stream. */
        Py_XINCREF(stream);
        if (stream != NULL && PyFile_WriteObject(code, stream, Py_PRINT_RAW) == 0)
            (void)PyFile_WriteString("\n", stream);
        Py_XDECREF(stream);
    }
    PyErr_Clear();
    Py_XDECREF(code);
    return value >= 0 && value <= 127 ? (int)value : LZ_PACKAGE_EXCEPTION;
}

/*
 * An exception is shown and never handed to the package's own excepthook:
 * PyErr_Print() would, and a SystemExit from there ends the process inside it.
 */
static int handle_exception(void)
{
    int is_exit = PyErr_ExceptionMatches(PyExc_SystemExit);
    PyObject *exception = PyErr_GetRaisedException();
    int code = LZ_PACKAGE_EXCEPTION;

    if (is_exit)
        code = system_exit_code(exception);
    else
        PyErr_DisplayException(exception);
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
 * Instead of Py_FinalizeEx, which costs milliseconds and protects nothing, as
 * the kernel takes the process away as a whole: exit handlers run, the package's
 * globals go, which closes the files that they alone hold, and the two streams
 * are flushed. A file that something else keeps alive must be closed by the
 * package; one that is not leaves an incomplete output, which the host refuses.
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
    /* The package may take its own module out of sys.modules. */
    Py_INCREF(dict);
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
    Py_DECREF(dict);
    return exit_code;
}
