//! Whole files or no file, after a power loss too.
//!
//! A file is written under another name, synced, moved to its name, and the
//! directory is synced: at every moment a reader finds the old file, the new one, or
//! none, never a part. What fails leaves nothing under the name and removes the
//! other one.
//!
//! Nothing here may write through a name that existed before, nor report success
//! before the directory has been synced.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};

use nix::errno::Errno;
use nix::fcntl::renameat;

use crate::error::{CustodyError, Refusal};
use crate::held::{HeldDir, set_mode};
use crate::name::RelativeName;
use crate::resolve::{io_error, retry_on_signal};

/// What is to happen if the name is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IfTaken {
    Refuse,
    Replace,
}

impl HeldDir {
    /// Writes a file that was not there before, with exactly `mode`.
    ///
    /// # Errors
    /// [`Refusal::Exists`] if the name is taken, whatever it is; what the kernel
    /// says. In every case nothing of this call is left.
    pub fn write_new_durable(
        &self,
        name: &RelativeName,
        bytes: &[u8],
        mode: u32,
    ) -> Result<(), CustodyError> {
        self.write_durable(name, bytes, mode, IfTaken::Refuse)
    }

    /// Writes a file in the place of one that may be there, with exactly `mode`.
    ///
    /// # Errors
    /// What the kernel says; the file that was there is then still there.
    pub fn replace_durable(
        &self,
        name: &RelativeName,
        bytes: &[u8],
        mode: u32,
    ) -> Result<(), CustodyError> {
        self.write_durable(name, bytes, mode, IfTaken::Replace)
    }

    fn write_durable(
        &self,
        name: &RelativeName,
        bytes: &[u8],
        mode: u32,
        if_taken: IfTaken,
    ) -> Result<(), CustodyError> {
        self.require_single(name)?;
        let (temporary, mut file) = self.create_temporary(mode)?;
        let moved = file
            .write_all(bytes)
            .map_err(|source| io_error("write", source))
            .and_then(|()| file.sync_all().map_err(|source| io_error("fsync", source)))
            .and_then(|()| self.move_into_place(&temporary, name, if_taken));
        if let Err(refusal) = moved {
            // The first failure is the one to report; the name is ours alone, so a
            // second failure leaves a file that nobody reads.
            let _ = self.remove_file(OsStr::new(temporary.as_str()));
            return Err(self.fail_at(name, refusal));
        }
        self.sync()
    }

    fn create_temporary(&self, mode: u32) -> Result<(RelativeName, File), CustodyError> {
        let name = random_name("new-").map_err(|refusal| self.fail(refusal))?;
        let file = self.create_file(&name, mode)?;
        Ok((name, file))
    }

    fn move_into_place(
        &self,
        temporary: &RelativeName,
        name: &RelativeName,
        if_taken: IfTaken,
    ) -> Result<(), Refusal> {
        let moved = match if_taken {
            IfTaken::Replace => retry_on_signal(|| {
                renameat(
                    self.as_fd(),
                    temporary.as_str(),
                    self.as_fd(),
                    name.as_str(),
                )
            }),
            IfTaken::Refuse => retry_on_signal(|| {
                rename_no_replace(
                    self.as_fd(),
                    OsStr::new(temporary.as_str()),
                    OsStr::new(name.as_str()),
                )
            }),
        };
        moved.map_err(|errno| match errno {
            Errno::EEXIST => Refusal::Exists,
            other => io_error("rename", other.into()),
        })
    }
}

/// rename(2) within one directory that refuses a taken name with EEXIST.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn rename_no_replace(dir: BorrowedFd<'_>, from: &OsStr, to: &OsStr) -> nix::Result<()> {
    use nix::fcntl::{RenameFlags, renameat2};
    renameat2(dir, from, dir, to, RenameFlags::RENAME_NOREPLACE)
}

/// For a file link(2) refuses a taken name as well. Between the two calls the inode
/// has two names: a reader refuses it, and a second attempt finds the name taken. A
/// directory has no second name; an empty one in its place would be replaced, and one
/// with entries is refused.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn rename_no_replace(dir: BorrowedFd<'_>, from: &OsStr, to: &OsStr) -> nix::Result<()> {
    use nix::errno::Errno;
    use nix::fcntl::AtFlags;
    use nix::unistd::{UnlinkatFlags, linkat, unlinkat};
    match linkat(dir, from, dir, to, AtFlags::empty()) {
        Ok(()) => unlinkat(dir, from, UnlinkatFlags::NoRemoveDir),
        Err(Errno::EPERM) => match renameat(dir, from, dir, to) {
            Err(Errno::ENOTEMPTY | Errno::ENOTDIR) => Err(Errno::EEXIST),
            moved => moved,
        },
        Err(errno) => Err(errno),
    }
}

/// Writes a file in a place that the operator named: whole or not at all, with
/// exactly `mode`, in the place of one that may be there. A link of that name is
/// replaced, not followed.
///
/// No ancestry is checked: whoever names the place answers for it, and nothing of
/// ours is read from there.
///
/// # Errors
/// What the kernel says; the file that was there is then still there.
pub fn write_named(path: &std::path::Path, bytes: &[u8], mode: u32) -> Result<(), CustodyError> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => std::path::Path::new("."),
    };
    let fail = |operation| move |source| CustodyError::new(path, io_error(operation, source));
    let temporary = random_name("new-").map_err(|refusal| CustodyError::new(path, refusal))?;
    let temporary = parent.join(temporary.as_str());
    let written = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&temporary)
        .map_err(fail("create"))
        .and_then(|mut file| {
            set_mode(&file, mode).map_err(|refusal| CustodyError::new(path, refusal))?;
            file.write_all(bytes).map_err(fail("write"))?;
            file.sync_all().map_err(fail("fsync"))
        })
        .and_then(|()| std::fs::rename(&temporary, path).map_err(fail("rename")));
    if written.is_err() {
        // The first failure is the one to report.
        let _ = std::fs::remove_file(&temporary);
        return written;
    }
    File::open(parent)
        .and_then(|dir| dir.sync_all())
        .map_err(fail("fsync of the directory"))
}

/// `prefix` and 32 hex digits of the kernel's randomness.
///
/// # Errors
/// What reading /dev/urandom says; there is no other source.
pub fn random_name(prefix: &str) -> Result<RelativeName, Refusal> {
    let mut random = [0_u8; 16];
    File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut random))
        .map_err(|source| io_error("read of /dev/urandom", source))?;
    let mut text = String::from(prefix);
    for byte in random {
        text.push_str(&format!("{byte:02x}"));
    }
    Ok(RelativeName::parse(text.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ancestry::Trust;
    use crate::held::FileRules;
    use std::os::unix::fs::{MetadataExt as _, symlink};

    fn held() -> (tempfile::TempDir, HeldDir) {
        let root = tempfile::tempdir().unwrap();
        let held = HeldDir::open_trusted(root.path(), Trust::acting()).unwrap();
        (root, held)
    }

    fn name(text: &str) -> RelativeName {
        text.parse().unwrap()
    }

    fn entries(root: &tempfile::TempDir) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(root.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_new_file_is_whole_has_its_mode_and_leaves_nothing_else() {
        let (root, held) = held();
        held.write_new_durable(&name("approval"), b"bytes", 0o640)
            .unwrap();
        assert_eq!(entries(&root), ["approval"]);
        let found = std::fs::metadata(root.path().join("approval")).unwrap();
        assert_eq!(found.mode() & 0o7777, 0o640);
        let rules = FileRules::private(100, Trust::acting().acting_uid);
        assert_eq!(held.read_file(&name("approval"), rules).unwrap(), b"bytes");
    }

    #[test]
    fn a_taken_name_is_refused_and_what_is_there_stays() {
        let (root, held) = held();
        std::fs::write(root.path().join("taken"), b"old").unwrap();
        symlink("nowhere", root.path().join("link")).unwrap();
        for taken in ["taken", "link"] {
            let error = held
                .write_new_durable(&name(taken), b"new", 0o600)
                .unwrap_err();
            assert!(matches!(error.refusal, Refusal::Exists), "{error}");
        }
        assert_eq!(std::fs::read(root.path().join("taken")).unwrap(), b"old");
        assert_eq!(entries(&root), ["link", "taken"]);
    }

    #[test]
    fn replacing_does_not_write_through_a_link() {
        let (root, held) = held();
        std::fs::write(root.path().join("target"), b"old").unwrap();
        symlink("target", root.path().join("name")).unwrap();
        held.replace_durable(&name("name"), b"new", 0o600).unwrap();
        assert_eq!(std::fs::read(root.path().join("target")).unwrap(), b"old");
        assert_eq!(std::fs::read(root.path().join("name")).unwrap(), b"new");
        assert!(
            std::fs::symlink_metadata(root.path().join("name"))
                .unwrap()
                .is_file()
        );
        assert_eq!(entries(&root), ["name", "target"]);
    }

    #[test]
    fn a_directory_in_the_way_is_a_refusal_that_leaves_nothing() {
        let (root, held) = held();
        std::fs::create_dir(root.path().join("name")).unwrap();
        assert!(held.replace_durable(&name("name"), b"new", 0o600).is_err());
        assert_eq!(entries(&root), ["name"]);
    }

    #[test]
    fn a_name_of_two_components_is_refused() {
        let (_root, held) = held();
        let error = held
            .write_new_durable(&name("a/b"), b"", 0o600)
            .unwrap_err();
        assert!(matches!(error.refusal, Refusal::NotPlain), "{error}");
    }

    #[test]
    fn a_named_file_replaces_a_link_and_leaves_nothing_on_failure() {
        let (root, _held) = held();
        std::fs::write(root.path().join("target"), b"old").unwrap();
        symlink("target", root.path().join("record.json")).unwrap();
        write_named(&root.path().join("record.json"), b"new", 0o600).unwrap();
        assert_eq!(std::fs::read(root.path().join("target")).unwrap(), b"old");
        assert_eq!(
            std::fs::read(root.path().join("record.json")).unwrap(),
            b"new"
        );
        std::fs::create_dir(root.path().join("dir")).unwrap();
        assert!(write_named(&root.path().join("dir"), b"new", 0o600).is_err());
        assert!(write_named(&root.path().join("missing/x"), b"new", 0o600).is_err());
        assert_eq!(entries(&root), ["dir", "record.json", "target"]);
    }

    #[test]
    fn random_names_differ() {
        assert_ne!(random_name("run-").unwrap(), random_name("run-").unwrap());
    }
}
