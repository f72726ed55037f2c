//! Records on the disk: whole and synced, or not there.

use std::io::Write as _;

use lazaret_contract::digest::Sha256Digest;
use lazaret_custody::{CustodyError, HeldDir, NameError, RelativeName};

use crate::frame::Kind;
use crate::record::to_disk;
use crate::token::RunToken;

/// The launch record in a run directory.
pub const LAUNCH_NAME: &str = "launch.json";
/// The outcome in a run directory.
pub const OUTCOME_NAME: &str = "outcome.json";

/// Nobody but the run's user reads a record.
const RECORD_MODE: u32 = 0o600;

/// Why a record is not on the disk.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Its name is none.
    #[error("{0}")]
    Name(#[from] NameError),
    /// The directory refused it.
    #[error("{0}")]
    Custody(#[from] CustodyError),
    /// Writing failed.
    #[error("write: {0}")]
    Io(#[from] std::io::Error),
}

/// Keeps the kernel's raw texts beside the launch record, named by their digest.
/// Not synced: the launch record, which is, names the digest, so a loss shows.
///
/// # Errors
/// What the kernel says.
pub fn write_evidence(dir: &HeldDir, text: &str) -> Result<Sha256Digest, WriteError> {
    let digest = Sha256Digest::of(text.as_bytes());
    let name = RelativeName::parse(format!("barrier-{digest}.txt").as_bytes())?;
    dir.create_file(&name, RECORD_MODE)?
        .write_all(text.as_bytes())?;
    Ok(digest)
}

/// Writes the launch record and syncs it and its directory, before anybody is told.
///
/// # Errors
/// What the kernel says; the run must not be released then.
pub fn write_launch(dir: &HeldDir, token: &RunToken, payload: &[u8]) -> Result<(), WriteError> {
    write(dir, LAUNCH_NAME, &to_disk(token, Kind::Launched, payload))
}

/// Writes the outcome. Whoever finds the name finds the whole record.
///
/// # Errors
/// What the kernel says; the missing record is a refusal.
pub fn write_outcome(dir: &HeldDir, token: &RunToken, payload: &[u8]) -> Result<(), WriteError> {
    write(dir, OUTCOME_NAME, &to_disk(token, Kind::Outcome, payload))
}

fn write(dir: &HeldDir, name: &str, bytes: &[u8]) -> Result<(), WriteError> {
    let name = RelativeName::parse(name.as_bytes())?;
    Ok(dir.write_new_durable(&name, bytes, RECORD_MODE)?)
}
