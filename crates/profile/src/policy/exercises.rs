//! For each rule, a program that needs it: what the attack suite runs live to
//! show that no rule could go.
//!
//! Each is run twice in the production launcher: under the policy as it is,
//! where it ends as `with_rule` says, and under the policy without that one
//! rule, where it must not end so. A test here fails for a rule that has none.

/// How a program shows that a rule is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exercise {
    /// A package, as the bytes of `adapter.py`, that exits with code 0.
    Package(&'static str),
    /// A raw call with these arguments that the rule answers; nothing in the
    /// closure makes it.
    RawCall([u64; 6]),
}

/// The exercise of each rule, by the rule's id.
pub const EXERCISES: &[(&str, Exercise)] = &[
    (
        "read",
        Exercise::Package("assert open('/input.json', 'rb').read()\n"),
    ),
    (
        "write",
        Exercise::Package("open('/out/result.json', 'wb').write(b'{}')\n"),
    ),
    (
        "open-for-reading",
        Exercise::Package("open('/input.json', 'rb').close()\n"),
    ),
    (
        "open-for-writing",
        Exercise::Package("open('/out/result.json', 'wb').close()\n"),
    ),
    ("open-otherwise", Exercise::Package(REFUSED_OPENS)),
    (
        "close",
        Exercise::Package("open('/input.json', 'rb').close()\n"),
    ),
    (
        "stat",
        Exercise::Package("import os\nassert os.path.exists('/input.json')\n"),
    ),
    (
        "fstat",
        Exercise::Package("open('/input.json', 'rb').close()\n"),
    ),
    (
        "lstat",
        Exercise::Package("import os\nassert not os.path.islink('/input.json')\n"),
    ),
    (
        "lseek",
        Exercise::Package("open('/input.json', 'rb').close()\n"),
    ),
    (
        "mmap-anonymous",
        Exercise::Package("assert len(bytes(8_000_000)) == 8_000_000\n"),
    ),
    ("mmap-otherwise", Exercise::Package(NO_THREAD)),
    (
        "munmap",
        Exercise::Package("for _ in range(3):\n    bytes(8_000_000)\n"),
    ),
    ("mremap-moving", Exercise::Package(GROWING)),
    (
        "ioctl",
        Exercise::Package("open('/input.json', 'rb').close()\n"),
    ),
    ("rt_sigprocmask", Exercise::Package(NO_THREAD)),
    ("getcwd", Exercise::Package(NO_DIRECTORY)),
    (
        "getrandom",
        Exercise::Package("import random\nassert 0 <= random.random() < 1\n"),
    ),
    ("clone3", Exercise::RawCall([0; 6])),
    (
        "getpid",
        Exercise::Package("import random\nassert 0 <= random.random() < 1\n"),
    ),
    ("gettid", Exercise::Package("import threading\n")),
    (
        "fcntl-getfd",
        Exercise::Package("open('/input.json', 'rb').close()\n"),
    ),
    (
        "fcntl-setfd",
        Exercise::Package("open('/input.json', 'rb').close()\n"),
    ),
    ("fcntl-dupfd", Exercise::Package(TRACEBACK)),
    (
        "clock_gettime",
        Exercise::Package("import time\nassert time.process_time() > 0\n"),
    ),
    (
        "clock_nanosleep",
        Exercise::Package("import time\ntime.sleep(0.01)\n"),
    ),
    ("writev", Exercise::Package(LOST_STDERR)),
    ("exit_group", Exercise::Package("pass\n")),
];

const REFUSED_OPENS: &str = "\
import os
for refused in (lambda: open('/out/result.json', 'a'), lambda: os.listdir('/')):
    try:
        refused()
    except PermissionError:
        continue
    raise SystemExit(1)
";

const NO_THREAD: &str = "\
import _thread
try:
    _thread.start_new_thread(print, ())
except RuntimeError:
    raise SystemExit(0)
raise SystemExit(1)
";

const GROWING: &str = "\
block = bytearray()
for _ in range(8):
    block += bytes(1_000_000)
assert len(block) == 8_000_000
";

const NO_DIRECTORY: &str = "\
import os
try:
    os.getcwd()
except PermissionError:
    raise SystemExit(0)
raise SystemExit(1)
";

/// What a destructor raises is shown by the interpreter's own traceback, which
/// reads the source line in C.
const TRACEBACK: &str = "\
class Raises:
    def __del__(self):
        1 / 0
Raises()
";

/// Python then speaks through C's stream, which must not be the end of the run.
const LOST_STDERR: &str = "\
import sys
hook = sys.__excepthook__
del sys.stderr
try:
    1 / 0
except ZeroDivisionError:
    hook(*sys.exc_info())
";
