//! Step 4: what goes into a run, held by descriptors and hashed.
//!
//! Package and input become sealed files in memory. The files of the closure are
//! opened once, without following a link, under a directory whose every ancestor is
//! checked; from then on only the descriptors count. Nothing here runs anything,
//! and nothing may be opened again by its path, except by bubblewrap, whose result
//! the barrier compares by inode and digest.

use std::ffi::CString;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use lazaret_contract::digest::Sha256Digest;
use lazaret_contract::limits;
use lazaret_custody::{HeldDir, Trust};
use sha2::{Digest as _, Sha256};

use crate::inode::InodeFacts;
use crate::record::StagedDigests;
use crate::spec::{ClosureFile, SpecRecord};
use crate::sys;

/// The name of the one output inode in a run directory.
pub const OUTPUT_NAME: &str = "result.json";

/// The largest file of a closure that is read, in bytes.
const CLOSURE_FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Bytes of one BPF instruction (`struct sock_filter`).
const BPF_INSTRUCTION_BYTES: u64 = 8;

/// Why a run cannot be staged.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// Package or input is larger than allowed.
    #[error("{what} of {found_bytes} bytes is over the limit of {limit_bytes} bytes")]
    TooLarge {
        /// Which of the two.
        what: &'static str,
        /// Its size, in bytes.
        found_bytes: usize,
        /// The limit, in bytes.
        limit_bytes: usize,
    },
    /// A directory is not to be trusted.
    #[error("{0}")]
    Directory(#[from] lazaret_custody::CustodyError),
    /// A file is not what it has to be.
    #[error("{path:?} {detail}")]
    File {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// A file's bytes are not the accepted ones.
    #[error("{path:?} has digest {found}, accepted is {accepted}")]
    Digest {
        /// Which file.
        path: PathBuf,
        /// What was found.
        found: Sha256Digest,
        /// What was accepted.
        accepted: Sha256Digest,
    },
    /// The kernel refused something else.
    #[error("{operation}: {source}")]
    Io {
        /// What was tried.
        operation: &'static str,
        /// What it said.
        source: io::Error,
    },
}

/// A file of the closure, open and checked.
#[derive(Debug)]
pub struct ClosureHeld {
    /// Where it was found; for bwrap's argument and for messages.
    pub path: PathBuf,
    /// Open for reading.
    pub file: File,
    /// What was known of it when it was hashed.
    pub facts: InodeFacts,
    /// The digest of its bytes.
    pub sha256: Sha256Digest,
}

/// The run directory and the one output inode in it.
#[derive(Debug)]
pub struct RunDirHeld {
    /// The directory.
    pub dir: HeldDir,
    /// The output file, open for reading.
    pub output: File,
    /// Its device and inode number.
    pub output_inode: (u64, u64),
}

/// Everything that step 4 leaves behind.
#[derive(Debug)]
pub struct Stage {
    /// The package in a sealed memfd.
    pub package: File,
    /// The input in a sealed memfd.
    pub input: File,
    /// bubblewrap.
    pub bwrap: ClosureHeld,
    /// The launcher.
    pub launcher: ClosureHeld,
    /// The filter.
    pub filter: ClosureHeld,
    /// The opening digests.
    pub digests: StagedDigests,
    /// Size of the package, in bytes.
    pub package_bytes: u64,
    /// Size of the input, in bytes.
    pub input_bytes: u64,
}

/// Opens the run directory for a process that has this uid.
///
/// # Errors
/// [`StageError`] names what is refused.
pub fn open_run_dir(spec: &SpecRecord, uid: u32) -> Result<RunDirHeld, StageError> {
    let dir = HeldDir::open_trusted(&spec.run_dir, Trust { acting_uid: uid })?;
    let output = open_output(&dir, uid)?;
    let facts = output.metadata().map_err(io_error("fstat of the output"))?;
    Ok(RunDirHeld {
        dir,
        output,
        output_inode: (facts.dev(), facts.ino()),
    })
}

/// Stages everything else for a process that has this uid.
///
/// # Errors
/// [`StageError`] names what is refused.
pub fn stage(
    spec: &SpecRecord,
    package: &[u8],
    input: &[u8],
    uid: u32,
) -> Result<Stage, StageError> {
    bound("package", package, limits::PACKAGE_CODE_BYTES_MAX)?;
    bound("input", input, limits::INPUT_BYTES_MAX)?;
    let trust = Trust { acting_uid: uid };
    let closure_dir = HeldDir::open_trusted(&spec.closure_dir, trust)?;
    let held = |file: &ClosureFile, runs: bool| open_closure_file(&closure_dir, file, uid, runs);
    let bwrap = held(&spec.closure.bwrap, true)?;
    let launcher = held(&spec.closure.launcher, true)?;
    let filter = held(&spec.closure.filter, false)?;
    let instructions = u64::from(spec.closure.filter_instructions);
    if filter.facts.size_bytes != instructions * BPF_INSTRUCTION_BYTES {
        return Err(refuse(
            &filter.path,
            format!("does not hold {instructions} instructions"),
        ));
    }
    let package_file = memfd(c"lazaret-package", package)?;
    let input_file = memfd(c"lazaret-input", input)?;
    let digests = StagedDigests {
        package: hash(&package_file)?,
        input: hash(&input_file)?,
        bwrap: bwrap.sha256,
        launcher: launcher.sha256,
        filter: filter.sha256,
    };
    Ok(Stage {
        package_bytes: length(&package_file)?,
        input_bytes: length(&input_file)?,
        package: package_file,
        input: input_file,
        bwrap,
        launcher,
        filter,
        digests,
    })
}

fn bound(what: &'static str, bytes: &[u8], limit_bytes: usize) -> Result<(), StageError> {
    if bytes.len() > limit_bytes {
        return Err(StageError::TooLarge {
            what,
            found_bytes: bytes.len(),
            limit_bytes,
        });
    }
    Ok(())
}

fn memfd(name: &std::ffi::CStr, bytes: &[u8]) -> Result<File, StageError> {
    sys::sealed_memfd(name, bytes).map_err(io_error("memfd"))
}

fn hash(file: &File) -> Result<Sha256Digest, StageError> {
    digest_of(file, CLOSURE_FILE_BYTES_MAX).map_err(io_error("reading a memfd"))
}

fn length(file: &File) -> Result<u64, StageError> {
    file.metadata()
        .map(|facts| facts.len())
        .map_err(io_error("fstat of a memfd"))
}

fn io_error(operation: &'static str) -> impl FnOnce(io::Error) -> StageError {
    move |source| StageError::Io { operation, source }
}

fn refuse(path: &Path, detail: impl Into<String>) -> StageError {
    StageError::File {
        path: path.to_path_buf(),
        detail: detail.into(),
    }
}

/// One plain component: no separator, no NUL, not `.` or `..`.
fn plain_name(name: &str) -> Option<CString> {
    let plain = !name.is_empty() && !name.contains('/') && name != "." && name != "..";
    if plain { CString::new(name).ok() } else { None }
}

fn open_closure_file(
    dir: &HeldDir,
    expected: &ClosureFile,
    uid: u32,
    runs: bool,
) -> Result<ClosureHeld, StageError> {
    let path = dir.path().join(&expected.name);
    let name = plain_name(&expected.name).ok_or_else(|| refuse(&path, "is not a plain name"))?;
    let file = sys::open_beneath(dir.as_fd(), &name)
        .map_err(|error| refuse(&path, format!("cannot be opened: {error}")))?;
    let facts = file.metadata().map_err(io_error("fstat of the closure"))?;
    require_safe(&path, &facts, uid, runs)?;
    let capability = sys::has_attribute(file.as_fd(), c"security.capability")
        .map_err(io_error("getxattr of the closure"))?;
    if capability {
        return Err(refuse(&path, "has file capabilities"));
    }
    let facts = InodeFacts::of(&facts);
    let sha256 = digest_of(&file, CLOSURE_FILE_BYTES_MAX)
        .map_err(|error| refuse(&path, format!("cannot be read: {error}")))?;
    let after = file.metadata().map_err(io_error("fstat of the closure"))?;
    if InodeFacts::of(&after) != facts {
        return Err(refuse(&path, "changed while it was hashed"));
    }
    if sha256 != expected.sha256 {
        return Err(StageError::Digest {
            path,
            found: sha256,
            accepted: expected.sha256,
        });
    }
    Ok(ClosureHeld {
        path,
        file,
        facts,
        sha256,
    })
}

/// What ADR-013 calls safe ownership, for one file.
fn require_safe(path: &Path, facts: &Metadata, uid: u32, runs: bool) -> Result<(), StageError> {
    if !facts.is_file() {
        return Err(refuse(path, "is not a regular file"));
    }
    if facts.uid() != 0 && facts.uid() != uid {
        let owner = facts.uid();
        return Err(refuse(
            path,
            format!("belongs to uid {owner}; only root or {uid} may own it"),
        ));
    }
    if facts.nlink() != 1 {
        return Err(refuse(
            path,
            format!("has {} links, exactly one is allowed", facts.nlink()),
        ));
    }
    let mode = facts.mode() & 0o7777;
    if mode & 0o6000 != 0 {
        return Err(refuse(
            path,
            format!("has a setuid or setgid bit (mode {mode:04o})"),
        ));
    }
    if mode & 0o022 != 0 {
        return Err(refuse(
            path,
            format!("may be written by others (mode {mode:04o})"),
        ));
    }
    if runs && mode & 0o111 == 0 {
        return Err(refuse(
            path,
            format!("may not be executed (mode {mode:04o})"),
        ));
    }
    Ok(())
}

fn open_output(dir: &HeldDir, uid: u32) -> Result<File, StageError> {
    let facts = dir.facts()?;
    if facts.uid != uid || facts.mode != 0o700 {
        let detail = format!(
            "has owner {} and mode {:04o}, not {uid} and 0700",
            facts.uid, facts.mode
        );
        return Err(refuse(dir.path(), detail));
    }
    let path = dir.path().join(OUTPUT_NAME);
    let name = plain_name(OUTPUT_NAME).ok_or_else(|| refuse(&path, "is not a plain name"))?;
    let file = sys::open_beneath(dir.as_fd(), &name)
        .map_err(|error| refuse(&path, format!("cannot be opened: {error}")))?;
    let facts = file.metadata().map_err(io_error("fstat of the output"))?;
    let mode = facts.mode() & 0o7777;
    if !facts.is_file() || facts.nlink() != 1 || facts.uid() != uid || mode != 0o600 {
        return Err(refuse(
            &path,
            "is not a regular file of the run's user with mode 0600",
        ));
    }
    if facts.size() != 0 {
        return Err(refuse(&path, "is not empty"));
    }
    Ok(file)
}

/// The digest of a whole file, read from its beginning whatever its position.
///
/// # Errors
/// What pread(2) says, or that it is longer than `limit_bytes`.
pub fn digest_of(file: &File, limit_bytes: u64) -> io::Result<Sha256Digest> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    let mut at: u64 = 0;
    loop {
        let count = match file.read_at(&mut buffer, at) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if count == 0 {
            return Ok(Sha256Digest::from_bytes(hasher.finalize().into()));
        }
        hasher.update(&buffer[..count]);
        at = at.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
        if at > limit_bytes {
            return Err(io::Error::other("file is larger than allowed"));
        }
    }
}
