//! Every number that bounds a run, a package or a document, in one place.
//!
//! The numbers come from ADR-013 and ADR-020 and are part of the contract: a
//! test somewhere holds each of them at its value and one beyond. Nothing here
//! reads a setting; a setting may lower a limit elsewhere, never raise it.

/// Largest input of a run: one JSON document (ADR-013), in bytes.
pub const INPUT_BYTES_MAX: usize = 32 * 1024;

/// Largest output of a run, also the limit of the one writable file (ADR-013),
/// in bytes.
pub const OUTPUT_BYTES_MAX: usize = 64 * 1024;

/// Largest standard output, and the same for standard error, that the warden
/// keeps of a run (ADR-013), in bytes.
pub const STREAM_BYTES_MAX: usize = 8 * 1024;

/// Deepest nesting of a JSON document, with the root at depth 0 (ADR-013).
pub const JSON_DEPTH_MAX: usize = 32;

/// Most values of a JSON document: every object, array and scalar counts as
/// one, keys do not (ADR-013).
pub const JSON_NODES_MAX: usize = 4096;

/// Most digits of a JSON integer; the sign does not count. It is the limit of
/// CPython's `int()` (`sys.int_info.default_max_str_digits`), so both sides of
/// the sandbox refuse the same integers.
pub const JSON_INTEGER_DIGITS_MAX: usize = 4300;

/// Most open brackets that the parser follows at all. A document nested so
/// deeply has more nodes than [`JSON_NODES_MAX`] as well; stopping here keeps
/// the answer the same as CPython's, whose scanner gives up somewhat later.
pub const JSON_NESTING_FOLLOWED_MAX: usize = JSON_NODES_MAX;

/// CPU time of a run, hard (ADR-013), in seconds.
pub const CPU_LIMIT_S: u64 = 2;

/// Address space of a run, hard (ADR-013), in bytes.
pub const ADDRESS_SPACE_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// Longest time from the first accepted attempt to adoption (ADR-013), in
/// milliseconds. Never renewed.
pub const WALL_DEADLINE_MS_MAX: u64 = 10_000;

/// Processes of a run: the one that runs the package (ADR-013).
pub const PROCESSES_MAX: u32 = 1;

/// Attempts of a task (ADR-013).
pub const ATTEMPTS_MAX: u32 = 1;

/// Open descriptors of a run, hard. The launcher sets it (lazaret_abi.h).
pub const DESCRIPTORS_MAX: u64 = 16;

/// Largest `adapter.py` (ADR-020), in bytes of UTF-8.
pub const PACKAGE_CODE_BYTES_MAX: usize = 32 * 1024;

/// Most regular files of a package (ADR-020).
pub const PACKAGE_FILES_MAX: usize = 32;

/// Largest sum of the sizes of a package's files (ADR-020), in bytes.
pub const PACKAGE_BYTES_MAX: usize = 512 * 1024;

/// Largest `manifest.json`, and largest `adapters/adapter.json`, in bytes.
pub const PACKAGE_DOCUMENT_BYTES_MAX: usize = 64 * 1024;
