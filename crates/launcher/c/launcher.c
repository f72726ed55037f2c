/*
 * The launcher: the small trusted program that embeds CPython inside the
 * namespaces that bubblewrap has made. It brings the process to the barrier,
 * shows that it is there, and runs the package only after the warden, outside,
 * has looked and said so. TRUSTED.md argues the order of the steps.
 *
 * It must never: take an option or a variable, open anything but the package,
 * compile or import a byte of the package before release, or go on after a
 * step that failed.
 */
#include "lazaret_abi.h"
#include "lazaret_filter.h"
#include "package.h"
#include "sys.h"
#include "util.h"

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert(sizeof(struct lz_plan) == 128, "the plan has 128 bytes and no padding");
_Static_assert(sizeof(struct lz_ready) == 128, "the ready record has 128 bytes and no padding");

/* The standard library and the module lazaret, made by the build. */
extern const struct _frozen lz_frozen_modules[];

/* The package's bytes with the NUL that CPython's compiler wants behind them. */
static uint8_t package_source[LZ_PACKAGE_BYTES_MAX + 1];

/*
 * Safe: nothing is read from the environment before or after. bubblewrap's
 * --clearenv leaves PWD, which would name a directory to the package.
 */
static void empty_environment(void)
{
    if (clearenv() != 0)
        lz_fail(LZ_EXIT_DESCRIPTORS, "emptying the environment", 0);
}

/*
 * Safe: the record has a fixed size, every field is checked before any is used,
 * and reserved fields must be zero so that a later meaning is never ignored.
 */
static void read_plan(struct lz_plan *plan)
{
    lz_read_exactly(plan, sizeof *plan, LZ_EXIT_PLAN);
    if (plan->magic != LZ_PLAN_MAGIC || plan->abi_version != LZ_ABI_VERSION ||
        plan->record_bytes != sizeof *plan)
        lz_fail(LZ_EXIT_PLAN, "the plan is not of this launcher's version", 0);
    if (!lz_all_zero(plan->reserved, sizeof plan->reserved))
        lz_fail(LZ_EXIT_PLAN, "a reserved field of the plan is set", 0);
    if (plan->package_bytes > LZ_PACKAGE_BYTES_MAX)
        lz_fail(LZ_EXIT_PLAN, "the plan names a package that is too large", 0);
}

static void require_python(PyStatus status)
{
    if (PyStatus_Exception(status))
        lz_fail(LZ_EXIT_PYTHON, status.err_msg != NULL ? status.err_msg : "CPython did not start",
                0);
}

static void set_path(PyConfig *config, wchar_t **field, const wchar_t *value)
{
    require_python(PyConfig_SetString(config, field, value));
}

/*
 * Safe: an isolated configuration with every path fixed and the search path
 * empty, so that an import can only come from the tables in this binary. No
 * environment, no site, no bytecode, no signal handlers, no arguments.
 */
static void start_python(uint32_t hash_seed)
{
    PyPreConfig preconfig;
    PyConfig config;

    PyImport_FrozenModules = lz_frozen_modules;

    PyPreConfig_InitIsolatedConfig(&preconfig);
    preconfig.utf8_mode = 1;
    preconfig.configure_locale = 0;
    require_python(Py_PreInitialize(&preconfig));

    PyConfig_InitIsolatedConfig(&config);
    config.use_hash_seed = 1;
    config.hash_seed = hash_seed;
    config.use_environment = 0;
    config.site_import = 0;
    config.write_bytecode = 0;
    config.install_signal_handlers = 0;
    config.faulthandler = 0;
    config.parse_argv = 0;
    config.safe_path = 1;
    config.user_site_directory = 0;
    config.pathconfig_warnings = 0;
    config.use_frozen_modules = 1;
    config.module_search_paths_set = 1;

    set_path(&config, &config.check_hash_pycs_mode, L"never");
    set_path(&config, &config.stdio_encoding, L"utf-8");
    set_path(&config, &config.stdio_errors, L"backslashreplace");
    set_path(&config, &config.program_name, L"" LZ_PATH_LAUNCHER);
    set_path(&config, &config.executable, L"" LZ_PATH_LAUNCHER);
    set_path(&config, &config.base_executable, L"" LZ_PATH_LAUNCHER);
    set_path(&config, &config.home, L"/");
    set_path(&config, &config.prefix, L"/");
    set_path(&config, &config.exec_prefix, L"/");
    set_path(&config, &config.base_prefix, L"/");
    set_path(&config, &config.base_exec_prefix, L"/");
    set_path(&config, &config.platlibdir, L"lib");
    set_path(&config, &config.stdlib_dir, L"");
    require_python(Py_InitializeFromConfig(&config));
    PyConfig_Clear(&config);
}

/*
 * Safe: the digest is taken over the very bytes in memory that are compiled
 * later; the file is not opened again. What a reviewer reads must be what runs,
 * so what the compiler would read otherwise is refused: it stops at a NUL, ends
 * a comment at a carriage return, and skips bytes that are no UTF-8.
 */
static void read_package(const struct lz_plan *plan, uint8_t digest[32])
{
    PyObject *text;

    lz_read_file(LZ_PATH_PACKAGE, package_source, plan->package_bytes);
    lz_sha256(package_source, plan->package_bytes, digest);
    if (memcmp(digest, plan->package_sha256, 32) != 0)
        lz_fail(LZ_EXIT_PACKAGE, "the package's digest is not the plan's", 0);
    if (memchr(package_source, 0, plan->package_bytes) != NULL ||
        memchr(package_source, '\r', plan->package_bytes) != NULL)
        lz_fail(LZ_EXIT_PACKAGE, "the package holds a NUL or a carriage return", 0);
    text = PyUnicode_DecodeUTF8((const char *)package_source, plan->package_bytes, "strict");
    if (text == NULL)
        lz_fail(LZ_EXIT_PACKAGE, "the package is not UTF-8", 0);
    Py_DECREF(text);
    package_source[plan->package_bytes] = 0;
}

/*
 * Safe: the record repeats the plan's nonce and says what was built in; the
 * warden believes none of it without the kernel's word, read from outside.
 */
static void write_ready(const struct lz_plan *plan, const uint8_t digest[32])
{
    struct lz_ready ready = {
        .magic = LZ_READY_MAGIC,
        .abi_version = LZ_ABI_VERSION,
        .record_bytes = sizeof ready,
        .package_bytes = plan->package_bytes,
        .python_version_hex = PY_VERSION_HEX,
        .filter_instructions = LZ_FILTER_INSTRUCTIONS,
    };

    memcpy(ready.nonce, plan->nonce, sizeof ready.nonce);
    memcpy(ready.package_sha256, digest, sizeof ready.package_sha256);
    lz_write_exactly(&ready, sizeof ready, LZ_EXIT_READY);
}

/* Safe: one byte of one value; the end of the pipe, as when the warden dies, ends the run. */
static void wait_for_release(void)
{
    uint8_t byte = 0;

    lz_read_exactly(&byte, sizeof byte, LZ_EXIT_NOT_RELEASED);
    if (byte != LZ_RELEASE_BYTE)
        lz_fail(LZ_EXIT_NOT_RELEASED, "another byte instead of the release", 0);
}

int main(void)
{
    struct lz_plan plan;
    uint8_t digest[32];

    lz_settle_signals();
    lz_protect_relocations();
    lz_require_standard_descriptors();
    lz_close_other_descriptors();
    empty_environment();
    read_plan(&plan);
    lz_set_hard_limits();
    start_python(lz_hash_seed());
    read_package(&plan, digest);
    lz_require_silence();
    lz_install_filter();
    write_ready(&plan, digest);
    wait_for_release();
    _exit(lz_run_package(package_source));
}
