//! The embedded data directory: approvals, run directories, kept evidence.
//!
//! | entry | mode | holds |
//! |---|---|---|
//! | `approvals/` | 0700 | what was approved, by exact digests |
//! | `runs/` | 0700 | one directory per run under way, and nothing else |
//! | `evidence/` | 0700 | what was kept of runs |
//!
//! The directory itself is private, 0700. Where root starts runs, it and `runs/`
//! are 0711: the run's uid has to pass through them to its own directory, and can
//! list neither (DESIGN.md section 2).

use std::path::Path;

use lazaret_custody::{CustodyError, HeldDir, Refusal, RelativeName, ancestry, filesystem};

use crate::acting::Acting;
use crate::blocked::{Blocked, Cause};

const WHAT: &str = "the data directory";

/// The data directory, held.
#[derive(Debug)]
pub struct DataDir {
    dir: HeldDir,
    acting: Acting,
}

impl DataDir {
    /// Opens the directory, making it on first use, and holds it to its rules.
    ///
    /// # Errors
    /// Ancestry, file system, mode, or that the run's user cannot pass; each with
    /// what to do. Nothing is made where the run's user could not pass.
    pub fn open(path: &Path, acting: Acting) -> Result<Self, Blocked> {
        require_reachable_place(path, acting)?;
        let dir = HeldDir::create_trusted(path, acting.trust(), shared_mode(acting))
            .map_err(|error| blocked(&error))?;
        let held = Self { dir, acting };
        held.require_private(&held.dir)?;
        filesystem::require_fit(&held.dir).map_err(|error| blocked(&error))?;
        require_reachable(held.dir.path(), acting)?;
        Ok(held)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Who uses it.
    #[must_use]
    pub fn acting(&self) -> Acting {
        self.acting
    }

    /// The name of the file system that it is on.
    ///
    /// # Errors
    /// What statfs(2) says.
    pub fn filesystem(&self) -> Result<&'static str, Blocked> {
        filesystem::require_fit(&self.dir).map_err(|error| blocked(&error))
    }

    /// The directory of runs under way.
    ///
    /// # Errors
    /// As for the data directory itself.
    pub fn runs(&self) -> Result<HeldDir, Blocked> {
        let runs = self.entry("runs", shared_mode(self.acting))?;
        filesystem::require_fit(&runs).map_err(|error| blocked(&error))?;
        require_reachable(runs.path(), self.acting)?;
        Ok(runs)
    }

    /// The directory of approvals.
    ///
    /// # Errors
    /// As for the data directory itself.
    pub fn approvals(&self) -> Result<HeldDir, Blocked> {
        self.entry("approvals", 0o700)
    }

    /// The directory of kept evidence.
    ///
    /// # Errors
    /// As for the data directory itself.
    pub fn evidence(&self) -> Result<HeldDir, Blocked> {
        self.entry("evidence", 0o700)
    }

    fn entry(&self, name: &str, mode: u32) -> Result<HeldDir, Blocked> {
        let name = RelativeName::parse(name.as_bytes())
            .map_err(|error| Blocked::new(Cause::DataDirectory, WHAT, error.to_string()))?;
        let dir = self
            .dir
            .open_or_create_dir(&name, mode)
            .map_err(|error| blocked(&error))?;
        self.require_private(&dir)?;
        Ok(dir)
    }

    /// Ours alone: owned by the acting user, and nobody else can list or write.
    fn require_private(&self, dir: &HeldDir) -> Result<(), Blocked> {
        let facts = dir.facts().map_err(|error| blocked(&error))?;
        if facts.uid != self.acting.uid {
            let allowed = format!("uid {}", self.acting.uid);
            let error = CustodyError::new(
                dir.path(),
                Refusal::Owner {
                    found: facts.uid,
                    allowed,
                },
            );
            return Err(blocked(&error).advise("name another directory with --data-dir"));
        }
        let others = if self.acting.run_owner.is_some() {
            0o066
        } else {
            0o077
        };
        if facts.mode & others != 0 {
            let why = format!(
                "{}: has mode {:04o}, so others may look into it",
                lazaret_custody::error::shown(dir.path()),
                facts.mode
            );
            let step = format!(
                "chmod {:04o} {}",
                facts.mode & !others & 0o777,
                lazaret_custody::error::shown(dir.path())
            );
            return Err(Blocked::new(Cause::DataDirectory, WHAT, why).advise(step));
        }
        Ok(())
    }
}

fn shared_mode(acting: Acting) -> u32 {
    if acting.run_owner.is_some() {
        0o711
    } else {
        0o700
    }
}

fn require_reachable(path: &Path, acting: Acting) -> Result<(), Blocked> {
    let Some(owner) = acting.run_owner else {
        return Ok(());
    };
    ancestry::check_reachable(path, owner.uid, owner.gid).map_err(|error| {
        blocked(&error).advise("or name a directory such as /var/lib/lazaret with --data-dir")
    })
}

/// Before anything is made: the nearest directory that exists has to let the run's
/// user pass.
fn require_reachable_place(path: &Path, acting: Acting) -> Result<(), Blocked> {
    let absolute = std::path::absolute(path)
        .map_err(|error| Blocked::io(WHAT, "finding its place", &error))?;
    for place in absolute.ancestors() {
        match std::fs::canonicalize(place) {
            Ok(found) => return require_reachable(&found, acting),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Blocked::io(WHAT, "finding its place", &error)),
        }
    }
    Ok(())
}

fn blocked(error: &CustodyError) -> Blocked {
    Blocked::custody(WHAT, error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    fn acting() -> Acting {
        Acting::current(None).unwrap()
    }

    /// A directory through which the run's user may pass.
    fn scratch() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        std::fs::set_permissions(root.path(), Permissions::from_mode(0o711)).unwrap();
        root
    }

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn it_is_made_on_first_use_and_found_again() {
        let root = scratch();
        let place = root.path().join("lazaret");
        let expected = if acting().run_owner.is_some() {
            0o711
        } else {
            0o700
        };
        for _ in 0..2 {
            let data = DataDir::open(&place, acting()).unwrap();
            data.runs().unwrap();
            data.approvals().unwrap();
            data.evidence().unwrap();
        }
        assert_eq!(mode(&place), expected);
        assert_eq!(mode(&place.join("runs")), expected);
        assert_eq!(mode(&place.join("approvals")), 0o700);
        assert_eq!(mode(&place.join("evidence")), 0o700);
    }

    #[test]
    fn one_that_others_may_look_into_is_refused_with_the_mode_to_set() {
        let root = scratch();
        let place = root.path().join("lazaret");
        DataDir::open(&place, acting()).unwrap();
        std::fs::set_permissions(&place, Permissions::from_mode(0o755)).unwrap();
        let refused = DataDir::open(&place, acting()).unwrap_err();
        assert_eq!(refused.cause, Cause::DataDirectory);
        let wanted = if acting().run_owner.is_some() {
            "chmod 0711"
        } else {
            "chmod 0700"
        };
        assert!(
            refused.advice[0].starts_with(wanted),
            "{:?}",
            refused.advice
        );
    }

    #[test]
    fn below_a_private_home_root_is_refused_and_nothing_is_made() {
        let root = scratch();
        let home = root.path().join("home");
        std::fs::create_dir(&home).unwrap();
        std::fs::set_permissions(&home, Permissions::from_mode(0o700)).unwrap();
        let place = home.join("share/lazaret");
        let opened = DataDir::open(&place, acting());
        if acting().run_owner.is_some() {
            let refused = opened.unwrap_err();
            assert_eq!(refused.cause, Cause::Unreachable);
            assert!(
                refused
                    .advice
                    .iter()
                    .any(|step| step.contains("--data-dir"))
            );
            assert!(!home.join("share").exists());
        } else {
            opened.unwrap();
        }
    }
}
