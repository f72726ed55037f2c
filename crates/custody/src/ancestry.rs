//! Who could replace a directory above.
//!
//! A directory is only as safe as the directories above it: whoever may write to
//! one of them can put another in its place. Every directory from the root on has
//! to belong to root or to the acting user, and may be writable by group or others
//! only if it is sticky, as /tmp is (DESIGN.md section 3, step 3). The walk checks
//! the very descriptors that it goes through, so nothing can be exchanged between
//! the check and the use.
//!
//! Access control lists need no look of their own: an entry that lets somebody else
//! write raises the mask, which is what the group bits of the mode show (acl(5)).

use std::ffi::OsString;
use std::fs::File;
use std::path::{Component, Path, PathBuf};

use crate::error::{CustodyError, Refusal};
use crate::facts::{FileFacts, FileKind};
use crate::held::{HeldDir, Owner, create_dir_in};
use crate::resolve::{io_error, locate_component, locate_path, locate_root};

/// Whose directories are trusted besides root's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trust {
    /// The uid that acts.
    pub acting_uid: u32,
}

impl Trust {
    /// Trusts root and the user that this process runs as.
    #[must_use]
    pub fn acting() -> Self {
        Self {
            acting_uid: nix::unistd::Uid::effective().as_raw(),
        }
    }

    fn check(self, facts: &FileFacts, place: Place) -> Result<(), Refusal> {
        if facts.kind == FileKind::SymbolicLink {
            return Err(Refusal::SymbolicLink);
        }
        if facts.kind != FileKind::Directory {
            return Err(Refusal::NotDirectory(facts.kind));
        }
        Owner::RootOr(self.acting_uid).check(facts.uid)?;
        let sticky_above = place == Place::Above && facts.mode & 0o1000 != 0;
        if facts.mode & 0o022 != 0 && !sticky_above {
            return Err(Refusal::WritableByOthers {
                mode: facts.mode,
                mode_to_set: facts.mode & !0o022,
            });
        }
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Above,
    Itself,
}

impl HeldDir {
    /// Opens a directory after checking every directory above it and itself.
    ///
    /// Symbolic links on the way are resolved first; afterwards the canonical path
    /// is walked, and a link that appears meanwhile is refused.
    ///
    /// # Errors
    /// The first directory that somebody else could change, with the mode to set.
    pub fn open_trusted(path: &Path, trust: Trust) -> Result<Self, CustodyError> {
        let canonical = std::fs::canonicalize(path).map_err(|source| not_there(path, source))?;
        walk(&canonical, &[], trust, 0)
    }

    /// Opens a directory that the operator named for something to be written to. No
    /// ancestry is checked: whoever names the place answers for it, and nothing may
    /// be believed for being there.
    ///
    /// # Errors
    /// What the kernel says, or [`Refusal::NotDirectory`].
    pub fn open_named(path: &Path) -> Result<Self, CustodyError> {
        let canonical = std::fs::canonicalize(path).map_err(|source| not_there(path, source))?;
        let dir = locate_path(&canonical).map_err(|refusal| CustodyError::new(path, refusal))?;
        let facts = FileFacts::of(&dir)
            .map_err(|source| CustodyError::new(path, io_error("fstat", source)))?;
        if facts.kind != FileKind::Directory {
            return Err(CustodyError::new(path, Refusal::NotDirectory(facts.kind)));
        }
        Ok(Self::from_located(dir, canonical))
    }

    /// As [`HeldDir::open_trusted`], making each directory that is missing with
    /// `mode`; 0700 is what the XDG base directory specification wants.
    ///
    /// # Errors
    /// Those of [`HeldDir::open_trusted`]; [`Refusal::NotPlain`] if a missing
    /// component is `..`.
    pub fn create_trusted(path: &Path, trust: Trust, mode: u32) -> Result<Self, CustodyError> {
        let absolute = std::path::absolute(path).map_err(|source| not_there(path, source))?;
        let mut missing = Vec::new();
        let mut existing = absolute.as_path();
        let canonical = loop {
            match std::fs::canonicalize(existing) {
                Ok(canonical) => break canonical,
                Err(source) if source.kind() == std::io::ErrorKind::NotFound => {}
                Err(source) => return Err(not_there(existing, source)),
            }
            match (existing.file_name(), existing.parent()) {
                (Some(name), Some(parent)) => {
                    missing.push(name.to_owned());
                    existing = parent;
                }
                _ => return Err(CustodyError::new(path, Refusal::NotPlain)),
            }
        };
        missing.reverse();
        walk(&canonical, &missing, trust, mode)
    }
}

/// Walks from the root through `canonical`, then makes and enters `missing`.
fn walk(
    canonical: &Path,
    missing: &[OsString],
    trust: Trust,
    mode: u32,
) -> Result<HeldDir, CustodyError> {
    let mut names = Vec::new();
    for component in canonical.components() {
        match component {
            Component::RootDir => {}
            Component::Normal(name) => names.push(name),
            _ => return Err(CustodyError::new(canonical, Refusal::NotPlain)),
        }
    }
    let mut path = PathBuf::from("/");
    let mut current = locate_root().map_err(|refusal| CustodyError::new(&path, refusal))?;
    let steps = names.len() + missing.len();
    check_step(&current, &path, trust, steps == 0)?;
    for (index, name) in names
        .iter()
        .copied()
        .chain(missing.iter().map(OsString::as_os_str))
        .enumerate()
    {
        let parent = path.clone();
        path.push(name);
        if index >= names.len() {
            match create_dir_in(&current, name, mode) {
                // Another process may have made it in the meantime: it is checked
                // like any other.
                Ok(()) | Err(Refusal::Exists) => {}
                Err(refusal) => return Err(CustodyError::new(&parent.join(name), refusal)),
            }
        }
        current = locate_component(&current, name)
            .map_err(|refusal| CustodyError::new(&path, refusal))?;
        check_step(&current, &path, trust, index + 1 == steps)?;
    }
    Ok(HeldDir::from_located(current, path))
}

fn check_step(dir: &File, path: &Path, trust: Trust, last: bool) -> Result<(), CustodyError> {
    let facts =
        FileFacts::of(dir).map_err(|source| CustodyError::new(path, io_error("fstat", source)))?;
    let place = if last { Place::Itself } else { Place::Above };
    trust
        .check(&facts, place)
        .map_err(|refusal| CustodyError::new(path, refusal))
}

/// Whether a uid without supplementary groups may pass through every directory down
/// to and including `path`.
///
/// Needed where root starts a run: the run's uid has to reach the closure and the
/// run directory by path.
///
/// # Errors
/// [`Refusal::Unreachable`] for the first directory that does not let it pass.
pub fn check_reachable(path: &Path, uid: u32, gid: u32) -> Result<(), CustodyError> {
    let canonical = std::fs::canonicalize(path).map_err(|source| not_there(path, source))?;
    let mut above: Vec<&Path> = canonical.ancestors().collect();
    above.reverse();
    for dir in above {
        let located = std::fs::symlink_metadata(dir).map_err(|source| not_there(dir, source))?;
        let facts = FileFacts::of_metadata(&located);
        if facts.kind != FileKind::Directory {
            return Err(CustodyError::new(dir, Refusal::NotDirectory(facts.kind)));
        }
        if !may_pass(&facts, uid, gid) {
            return Err(CustodyError::new(
                dir,
                Refusal::Unreachable {
                    uid,
                    owner: facts.uid,
                    mode: facts.mode,
                    mode_to_set: facts.mode | 0o001,
                },
            ));
        }
    }
    Ok(())
}

/// The kernel's own order: owner, then group, then others; the first that applies
/// decides (path_resolution(7)).
fn may_pass(facts: &FileFacts, uid: u32, gid: u32) -> bool {
    let search = if facts.uid == uid {
        0o100
    } else if facts.gid == gid {
        0o010
    } else {
        0o001
    };
    facts.mode & search != 0
}

fn not_there(path: &Path, source: std::io::Error) -> CustodyError {
    let refusal = match source.kind() {
        std::io::ErrorKind::NotFound => Refusal::NotFound,
        _ if source.raw_os_error() == Some(nix::errno::Errno::ELOOP as i32) => {
            Refusal::SymbolicLink
        }
        _ => io_error("resolve", source),
    };
    CustodyError::new(path, refusal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn scratch() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    fn set(path: &Path, mode: u32) {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn a_directory_below_one_that_others_may_write_to_is_refused_by_name_and_mode() {
        let root = scratch();
        let open = root.path().join("open");
        let inner = open.join("inner");
        std::fs::create_dir_all(&inner).unwrap();
        set(&open, 0o777);
        let error = HeldDir::open_trusted(&inner, Trust::acting()).unwrap_err();
        assert_eq!(error.path, open.canonicalize().unwrap());
        assert!(
            matches!(
                error.refusal,
                Refusal::WritableByOthers {
                    mode: 0o777,
                    mode_to_set: 0o755
                }
            ),
            "{error}"
        );
        set(&open, 0o775);
        let error = HeldDir::open_trusted(&inner, Trust::acting()).unwrap_err();
        assert!(
            matches!(
                error.refusal,
                Refusal::WritableByOthers {
                    mode: 0o775,
                    mode_to_set: 0o755
                }
            ),
            "{error}"
        );
    }

    #[test]
    fn a_sticky_directory_may_be_above_but_not_be_the_place_itself() {
        let root = scratch();
        let open = root.path().join("open");
        let inner = open.join("inner");
        std::fs::create_dir_all(&inner).unwrap();
        set(&open, 0o1777);
        set(&inner, 0o700);
        assert!(HeldDir::open_trusted(&inner, Trust::acting()).is_ok());
        let error = HeldDir::open_trusted(&open, Trust::acting()).unwrap_err();
        assert!(
            matches!(error.refusal, Refusal::WritableByOthers { .. }),
            "{error}"
        );
    }

    #[test]
    fn a_directory_of_somebody_else_is_refused() {
        let root = scratch();
        let stranger = Trust {
            acting_uid: u32::MAX - 7,
        };
        // As root the scratch directory is root's and trusted by everybody.
        if nix::unistd::Uid::effective().is_root() {
            std::os::unix::fs::chown(root.path(), Some(12_345), None).unwrap();
        }
        let error = HeldDir::open_trusted(root.path(), stranger).unwrap_err();
        assert!(matches!(error.refusal, Refusal::Owner { .. }), "{error}");
    }

    #[test]
    fn missing_directories_are_made_with_the_mode_and_found_ones_keep_theirs() {
        let root = scratch();
        let place = root.path().join("share").join("a b").join("lazaret");
        let held = HeldDir::create_trusted(&place, Trust::acting(), 0o711).unwrap();
        assert_eq!(held.path(), place.canonicalize().unwrap());
        assert_eq!(mode(&root.path().join("share")), 0o711);
        assert_eq!(mode(&place), 0o711);
        // A second call finds it and leaves its mode alone.
        set(&place, 0o700);
        HeldDir::create_trusted(&place, Trust::acting(), 0o711).unwrap();
        assert_eq!(mode(&place), 0o700);
    }

    #[test]
    fn a_directory_never_shows_with_another_mode_than_its_own() {
        let root = scratch();
        for round in 0..20 {
            let place = root.path().join(format!("d{round}"));
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        let held = HeldDir::create_trusted(&place, Trust::acting(), 0o711).unwrap();
                        assert_eq!(held.facts().unwrap().mode, 0o711);
                    });
                }
            });
        }
        // What lost the race has left nothing.
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 20);
    }

    #[test]
    fn a_dangling_link_is_not_written_through() {
        let root = scratch();
        symlink(root.path().join("elsewhere"), root.path().join("link")).unwrap();
        let error =
            HeldDir::create_trusted(&root.path().join("link"), Trust::acting(), 0o700).unwrap_err();
        assert!(matches!(error.refusal, Refusal::SymbolicLink), "{error}");
        assert!(!root.path().join("elsewhere").exists());
    }

    #[test]
    fn a_file_in_the_way_is_refused() {
        let root = scratch();
        let file = root.path().join("file");
        std::fs::write(&file, b"x").unwrap();
        let error = HeldDir::open_trusted(&file, Trust::acting()).unwrap_err();
        assert!(
            matches!(error.refusal, Refusal::NotDirectory(FileKind::Regular)),
            "{error}"
        );
    }

    #[test]
    fn a_private_directory_is_unreachable_for_another_uid() {
        let root = scratch();
        set(root.path(), 0o711);
        let home = root.path().join("home");
        let inner = home.join("inner");
        std::fs::create_dir_all(&inner).unwrap();
        set(&home, 0o700);
        let uid = nix::unistd::Uid::effective().as_raw();
        let gid = nix::unistd::Gid::effective().as_raw();
        check_reachable(&inner, uid, gid).unwrap();
        let error = check_reachable(&inner, uid + 1, gid + 1).unwrap_err();
        assert_eq!(error.path, home.canonicalize().unwrap());
        assert!(
            matches!(
                error.refusal,
                Refusal::Unreachable {
                    mode_to_set: 0o701,
                    ..
                }
            ),
            "{error}"
        );
        set(&home, 0o711);
        set(&inner, 0o711);
        check_reachable(&inner, uid + 1, gid + 1).unwrap();
    }

    #[test]
    fn the_owner_is_judged_by_the_owner_bits_alone() {
        let root = scratch();
        let facts = FileFacts {
            mode: 0o011,
            uid: 7,
            gid: 8,
            ..FileFacts::of_metadata(&std::fs::metadata(root.path()).unwrap())
        };
        assert!(!may_pass(&facts, 7, 8));
        assert!(may_pass(&facts, 9, 8));
        assert!(may_pass(&facts, 9, 9));
    }
}
