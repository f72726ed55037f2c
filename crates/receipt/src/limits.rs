//! How large a receipt, a key file, a log and their parts may be.
//!
//! Every reader of this crate refuses more before it looks at a byte. The
//! numbers bound memory and time, they are no part of any statement; nothing
//! here may be raised by a setting.

/// Largest statement (the payload of an envelope), in bytes of its compact JSON.
pub const STATEMENT_BYTES_MAX: usize = 1 << 20;

/// Largest receipt (an envelope) and largest bundle, in bytes. The payload
/// grows by a third in base64; the rest is small.
pub const ENVELOPE_BYTES_MAX: usize = STATEMENT_BYTES_MAX / 3 * 4 + 4096;

/// Most JSON values of a statement or an envelope.
pub const STATEMENT_NODES_MAX: usize = 1 << 16;

/// Most subjects of a statement.
pub const SUBJECTS_MAX: usize = 64;

/// Largest integer that may stand in a receipt: every reader of JSON keeps it
/// exactly (RFC 7493, section 2.2).
pub const INTEGER_MAX: u64 = (1 << 53) - 1;

/// Largest trust file, in bytes.
pub const TRUST_BYTES_MAX: usize = 256 * 1024;

/// Most keys of a trust file.
pub const TRUSTED_KEYS_MAX: usize = 256;

/// Largest file of a signing key, in bytes.
pub const KEY_FILE_BYTES_MAX: usize = 1024;

/// Largest signed note: a checkpoint with the cosignatures of its witnesses, in
/// bytes.
pub const NOTE_BYTES_MAX: usize = 64 * 1024;

/// Most signature lines of a note. The format asks readers to bear 16.
pub const NOTE_SIGNATURES_MAX: usize = 32;

/// Largest inclusion proof with its checkpoint, in bytes.
pub const PROOF_BYTES_MAX: usize = NOTE_BYTES_MAX + 8192;

/// Largest log in its file form, in bytes.
pub const LOG_FILE_BYTES_MAX: usize = 64 << 20;
