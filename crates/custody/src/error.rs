//! What was refused, where, and what to do about it.
//!
//! One error type for the crate: the path that it is about and a [`Refusal`]. The
//! text never holds a file's content, and paths are shown escaped, because a name
//! may have been chosen to look like something else.

use std::path::{Path, PathBuf};

use crate::facts::FileKind;
use crate::name::NameError;

/// A refusal or a failure, with the path that it is about.
#[derive(Debug, thiserror::Error)]
#[error("{}: {refusal}", shown(path))]
pub struct CustodyError {
    /// The path, for people; every decision was made on a descriptor.
    pub path: PathBuf,
    /// What is wrong.
    #[source]
    pub refusal: Refusal,
}

/// What is wrong with a path.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The name is outside the grammar of [`crate::name`].
    #[error("{0}")]
    Name(#[from] NameError),
    /// Nothing has that name.
    #[error("does not exist")]
    NotFound,
    /// Something has that name already.
    #[error("exists already")]
    Exists,
    /// The name is, or passes through, a symbolic link.
    #[error("is or passes through a symbolic link")]
    SymbolicLink,
    /// A mount point lies between the held directory and the name.
    #[error("lies on another mount than the directory it is in")]
    OtherMount,
    /// The kernel answered EAGAIN too often (case C04).
    #[error("could not be resolved while other files were being renamed; try again")]
    TryAgain,
    /// Not a regular file.
    #[error("is a {0}, not a regular file")]
    NotRegular(FileKind),
    /// Not a directory.
    #[error("is a {0}, not a directory")]
    NotDirectory(FileKind),
    /// More or fewer than one name for the inode (case C05).
    #[error("has {0} hard links; exactly one is allowed")]
    Links(u64),
    /// An execute, setuid, setgid or sticky bit where none may be.
    #[error("has mode {0:04o}; no execute, setuid, setgid or sticky bit is allowed")]
    ModeBits(u32),
    /// Belongs to somebody who is not trusted here.
    #[error("belongs to uid {found}; only {allowed} may own it")]
    Owner {
        /// The uid that owns it.
        found: u32,
        /// Who may, in words.
        allowed: String,
    },
    /// Group or others may write to a directory.
    #[error("has mode {mode:04o}, so group or others may write to it")]
    WritableByOthers {
        /// The mode found.
        mode: u32,
        /// The mode that would be accepted.
        mode_to_set: u32,
    },
    /// A file that group or others may write to.
    #[error("has mode {0:04o}, so group or others may change it")]
    FileWritableByOthers(u32),
    /// A directory that the run's user may not pass through.
    #[error("has mode {mode:04o} and owner uid {owner}, so uid {uid} may not pass through it")]
    Unreachable {
        /// The uid that has to pass.
        uid: u32,
        /// The directory's owner.
        owner: u32,
        /// The mode found.
        mode: u32,
        /// The mode that would let it pass.
        mode_to_set: u32,
    },
    /// More bytes than allowed.
    #[error("is larger than {limit_bytes} bytes")]
    TooLarge {
        /// The limit.
        limit_bytes: u64,
    },
    /// The package as a whole holds more bytes than allowed.
    #[error("makes the package larger than {limit_bytes} bytes")]
    PackageTooLarge {
        /// The limit.
        limit_bytes: u64,
    },
    /// More regular files than allowed.
    #[error("holds more than {limit} files")]
    TooManyFiles {
        /// The limit.
        limit: usize,
    },
    /// More entries than were asked for; the listing stopped there.
    #[error("holds more than {limit} entries")]
    TooManyEntries {
        /// The limit.
        limit: usize,
    },
    /// Something about it changed between two looks.
    #[error("changed while it was being read")]
    Changed,
    /// A directory that the grammar of packages does not know.
    #[error("is a directory that a package may not have; only adapters/ and evals/ are allowed")]
    UnexpectedDirectory,
    /// A directory without files: nothing lists it, so nothing may depend on it.
    #[error("is an empty directory")]
    EmptyDirectory,
    /// A file system that breaks promises that Lazaret relies on.
    #[error("lies on {0}, a file system that does not keep what Lazaret relies on")]
    Filesystem(&'static str),
    /// A file system of which nothing is known.
    #[error("lies on a file system of unknown type {0:#x}")]
    FilesystemUnknown(u64),
    /// The entry is no longer the inode that was created.
    #[error("is no longer the file that was created there")]
    Replaced,
    /// The path holds `..` or is empty where a directory is to be made.
    #[error("cannot be created: it holds a component that is not a plain name")]
    NotPlain,
    /// /proc is not there or is not procfs.
    #[error("cannot be reopened: /proc/self/fd is not available ({0})")]
    NoProc(&'static str),
    /// Anything else that the kernel said.
    #[error("{operation} failed: {source}")]
    Io {
        /// What was tried, in words.
        operation: &'static str,
        /// The kernel's answer.
        #[source]
        source: std::io::Error,
    },
}

impl CustodyError {
    /// Joins a path and what is wrong with it.
    #[must_use]
    pub fn new(path: &Path, refusal: impl Into<Refusal>) -> Self {
        Self {
            path: path.to_path_buf(),
            refusal: refusal.into(),
        }
    }

    /// What the reader can do about it, where that is known.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let path = shown(&self.path);
        match &self.refusal {
            Refusal::WritableByOthers { mode_to_set, .. } => {
                Some(format!("chmod {mode_to_set:04o} {path}"))
            }
            Refusal::Unreachable { mode_to_set, .. } => Some(format!(
                "choose a place that every user may pass through, or chmod {mode_to_set:04o} {path}"
            )),
            Refusal::Owner { .. } => {
                Some("make a copy that belongs to you, and use that".to_owned())
            }
            Refusal::Links(_) => Some(format!("cp {path} to a new file, and use that")),
            Refusal::ModeBits(_) => Some(format!("chmod 0644 {path}")),
            Refusal::FileWritableByOthers(mode) => {
                Some(format!("chmod {:04o} {path}", mode & !0o022))
            }
            Refusal::Filesystem(_) | Refusal::FilesystemUnknown(_) => Some(
                "use a directory on a local file system, such as ext4, xfs, btrfs, zfs or tmpfs"
                    .to_owned(),
            ),
            Refusal::EmptyDirectory => Some(format!("rmdir {path}")),
            Refusal::TryAgain | Refusal::Changed => Some("try again".to_owned()),
            _ => None,
        }
    }
}

/// A path as text that cannot mislead: quoted where needed, with everything that
/// is not printable escaped.
#[must_use]
pub fn shown(path: &Path) -> String {
    let quoted = format!("{path:?}");
    let plain = path.to_str().is_some_and(|text| {
        !text.is_empty()
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "/._-+@:=,".contains(c))
    });
    if plain {
        path.display().to_string()
    } else {
        quoted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_path_is_shown_as_it_is_and_any_other_is_escaped() {
        assert_eq!(shown(Path::new("/var/lib/lazaret")), "/var/lib/lazaret");
        assert_eq!(shown(Path::new("/a b")), "\"/a b\"");
        assert_eq!(shown(Path::new("a\nb\u{202e}c")), "\"a\\nb\\u{202e}c\"");
    }

    #[test]
    fn a_writable_directory_is_refused_with_the_mode_to_set() {
        let error = CustodyError::new(
            Path::new("/srv/x"),
            Refusal::WritableByOthers {
                mode: 0o777,
                mode_to_set: 0o755,
            },
        );
        assert_eq!(
            error.to_string(),
            "/srv/x: has mode 0777, so group or others may write to it"
        );
        assert_eq!(error.hint().as_deref(), Some("chmod 0755 /srv/x"));
    }
}
