//! The resources of a run, which a package repeats and cannot change.

use crate::json::{Object, Value};
use crate::limits::{
    ADDRESS_SPACE_BYTES_MAX, ATTEMPTS_MAX, CPU_LIMIT_S, INPUT_BYTES_MAX, OUTPUT_BYTES_MAX,
    PROCESSES_MAX, STREAM_BYTES_MAX, WALL_DEADLINE_MS_MAX,
};

/// The `resources` of every descriptor, field by field (ADR-013):
///
/// | field | value |
/// |---|---|
/// | `address_space_bytes` | [`ADDRESS_SPACE_BYTES_MAX`] |
/// | `attempts` | [`ATTEMPTS_MAX`] |
/// | `cpu_s` | [`CPU_LIMIT_S`] |
/// | `input_bytes` | [`INPUT_BYTES_MAX`] |
/// | `output_bytes` | [`OUTPUT_BYTES_MAX`] |
/// | `processes` | [`PROCESSES_MAX`] |
/// | `stderr_bytes`, `stdout_bytes` | [`STREAM_BYTES_MAX`] |
/// | `wall_ms` | [`WALL_DEADLINE_MS_MAX`] |
pub fn resources() -> Value {
    let rows: [(&str, u64); 9] = [
        ("address_space_bytes", ADDRESS_SPACE_BYTES_MAX),
        ("attempts", u64::from(ATTEMPTS_MAX)),
        ("cpu_s", CPU_LIMIT_S),
        ("input_bytes", INPUT_BYTES_MAX as u64),
        ("output_bytes", OUTPUT_BYTES_MAX as u64),
        ("processes", u64::from(PROCESSES_MAX)),
        ("stderr_bytes", STREAM_BYTES_MAX as u64),
        ("stdout_bytes", STREAM_BYTES_MAX as u64),
        ("wall_ms", WALL_DEADLINE_MS_MAX),
    ];
    let fields: Object = rows
        .into_iter()
        .map(|(name, limit)| (name.to_owned(), Value::Integer(limit.into())))
        .collect();
    Value::Object(fields)
}
