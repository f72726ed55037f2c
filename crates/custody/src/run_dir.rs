//! The directory of one run and its single output inode.
//!
//! `run-<id>` is made fresh, 0700, and holds `result.json`, 0600, which is the only
//! inode that a package may write to (ADR-013). Started by root, both belong to the
//! run's uid, because the process that owns the run has dropped to it. The output is
//! held from its creation on: what is read back is that inode, not whatever has its
//! name.
//!
//! Nothing here may reuse a directory, read the output twice, or follow what the run
//! left behind.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Seek as _;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::durable::random_name;
use crate::error::{CustodyError, Refusal};
use crate::facts::{FileFacts, FileKind};
use crate::held::{FileRules, HeldDir, Owner, read_unchanged};
use crate::name::RelativeName;
use crate::resolve::io_error;

/// The name of the output inode.
pub const OUTPUT_NAME: &str = "result.json";

/// How every run directory's name begins.
pub const RUN_PREFIX: &str = "run-";

/// How many entries of a run directory are looked at when it is removed. A run
/// makes a handful; a package can make none.
const ENTRIES_MAX: usize = 64;

/// The ids that a run directory is given to; none where the acting user runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunOwner {
    /// The run's uid.
    pub uid: u32,
    /// The run's gid.
    pub gid: u32,
}

/// A run directory, held together with its output.
#[derive(Debug)]
pub struct RunDir {
    parent: HeldDir,
    dir: HeldDir,
    /// Locked for the life of this value, so that a sweep leaves it alone.
    lock: File,
    name: RelativeName,
    output: File,
    output_facts: FileFacts,
    output_path: PathBuf,
}

impl RunDir {
    /// Makes `run-<random>` below `runs`, with the empty output in it.
    ///
    /// # Errors
    /// What the kernel says; nothing is left then.
    pub fn create(runs: &HeldDir, owner: Option<RunOwner>) -> Result<Self, CustodyError> {
        let name = random_name(RUN_PREFIX).map_err(|refusal| runs.fail(refusal))?;
        // Shared among those who create; a sweep wants it alone, so it cannot meet a
        // directory that is made but not yet locked.
        let creating = runs.open_for_listing()?;
        creating
            .lock_shared()
            .map_err(|source| runs.fail(io_error("lock", source)))?;
        let dir = runs.create_dir(&name, 0o700)?;
        Self::fill(runs, dir, &name, owner).inspect_err(|_| {
            // The error that is under way says more than a failed clean-up would.
            let _ = remove_tree(runs, &name);
        })
    }

    fn fill(
        runs: &HeldDir,
        dir: HeldDir,
        name: &RelativeName,
        owner: Option<RunOwner>,
    ) -> Result<Self, CustodyError> {
        let lock = dir.open_for_listing()?;
        lock.try_lock().map_err(|error| {
            dir.fail(io_error("lock", std::io::Error::other(error.to_string())))
        })?;
        let output_name =
            RelativeName::parse(OUTPUT_NAME.as_bytes()).map_err(|error| dir.fail(error.into()))?;
        let output = dir.create_file(&output_name, 0o600)?;
        if let Some(RunOwner { uid, gid }) = owner {
            std::os::unix::fs::fchown(&output, Some(uid), Some(gid))
                .map_err(|source| dir.fail_at(&output_name, io_error("chown", source)))?;
            std::os::unix::fs::fchown(&lock, Some(uid), Some(gid))
                .map_err(|source| dir.fail(io_error("chown", source)))?;
        }
        let output_facts = FileFacts::of(&output)
            .map_err(|source| dir.fail_at(&output_name, io_error("fstat", source)))?;
        let output_path = dir.path().join(OUTPUT_NAME);
        let parent = runs.try_clone()?;
        Ok(Self {
            parent,
            dir,
            lock,
            name: name.clone(),
            output,
            output_facts,
            output_path,
        })
    }

    /// The directory's path, for the programs that can only take one.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The directory itself.
    #[must_use]
    pub fn dir(&self) -> &HeldDir {
        &self.dir
    }

    /// The directory's name, `run-` and 32 hex digits.
    #[must_use]
    pub fn name(&self) -> &RelativeName {
        &self.name
    }

    /// The output inode's path.
    #[must_use]
    pub fn output_path(&self) -> &Path {
        &self.output_path
    }

    /// The output inode, open for reading and writing.
    #[must_use]
    pub fn output(&self) -> BorrowedFd<'_> {
        self.output.as_fd()
    }

    /// What was known of the output when it was made: the inode to expect.
    #[must_use]
    pub fn output_facts(&self) -> &FileFacts {
        &self.output_facts
    }

    /// Reads the output back, once, through the descriptor that has been held since
    /// it was made.
    ///
    /// # Errors
    /// [`Refusal::Replaced`] if the name no longer leads to that inode or it is not
    /// the run's any more, [`Refusal::Links`], [`Refusal::ModeBits`],
    /// [`Refusal::TooLarge`], [`Refusal::Changed`], or what the kernel says.
    pub fn read_output(&mut self, limit_bytes: u64) -> Result<Vec<u8>, CustodyError> {
        let path = self.output_path.clone();
        let fail = |refusal| CustodyError::new(&path, refusal);
        let now = FileFacts::of(&self.output).map_err(|source| fail(io_error("fstat", source)))?;
        let rules = FileRules {
            limit_bytes,
            owner: Owner::Exactly(self.output_facts.uid),
            may_be_executable: false,
            may_be_writable_by_others: false,
        };
        rules.check(&now).map_err(fail)?;
        let named = RelativeName::parse(OUTPUT_NAME.as_bytes())
            .map_err(|error| fail(error.into()))
            .and_then(|name| self.dir.entry_facts(&name))?;
        if !named.same_inode(&now) || now.mode != self.output_facts.mode {
            return Err(fail(Refusal::Replaced));
        }
        self.output
            .rewind()
            .map_err(|source| fail(io_error("seek", source)))?;
        read_unchanged(&self.output, &now, limit_bytes).map_err(fail)
    }

    /// Reads another file that the run's owner has left in the directory.
    ///
    /// # Errors
    /// Every refusal of [`FileRules::private`] for the run's uid.
    pub fn read_left(
        &self,
        name: &RelativeName,
        limit_bytes: u64,
    ) -> Result<Vec<u8>, CustodyError> {
        let rules = FileRules {
            owner: Owner::RootOr(self.output_facts.uid),
            ..FileRules::private(limit_bytes, self.output_facts.uid)
        };
        self.dir.read_file(name, rules)
    }

    /// Removes the directory with everything in it. A power loss may bring it back;
    /// the next sweep takes it then.
    ///
    /// # Errors
    /// What the kernel says, or [`Refusal::NotRegular`] for a directory inside: it
    /// is not ours, and nothing is removed below it.
    pub fn remove(self) -> Result<(), CustodyError> {
        let Self {
            parent,
            dir,
            lock,
            name,
            ..
        } = self;
        let held = dir.facts()?;
        if !parent.entry_facts(&name)?.same_inode(&held) {
            return Err(parent.fail_at(&name, Refusal::Replaced));
        }
        remove_tree(&parent, &name)?;
        drop(lock);
        Ok(())
    }
}

/// The right to look through a directory of runs for what dead processes left.
///
/// While it lives nobody can make a run directory there.
#[derive(Debug)]
pub struct Sweep<'runs> {
    runs: &'runs HeldDir,
    _alone: File,
}

impl<'runs> Sweep<'runs> {
    /// Begins a sweep, or gives `None` while somebody is making a run directory or
    /// sweeping: then there is no hurry.
    ///
    /// # Errors
    /// What flock(2) says.
    pub fn begin(runs: &'runs HeldDir) -> Result<Option<Self>, CustodyError> {
        let lock = runs.open_for_listing()?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(Self { runs, _alone: lock })),
            Err(std::fs::TryLockError::WouldBlock) => Ok(None),
            Err(std::fs::TryLockError::Error(source)) => Err(runs.fail(io_error("lock", source))),
        }
    }

    /// The run directories whose maker is dead: a process holds the lock of its own
    /// for as long as it lives, however it ends. At most `limit` are looked at.
    ///
    /// # Errors
    /// Every refusal of listing and resolving; what flock(2) says.
    pub fn abandoned(&self, limit: usize) -> Result<Vec<RelativeName>, CustodyError> {
        let mut found = Vec::new();
        for entry in self.runs.list(limit)? {
            // What is not named as a run directory is not ours to judge.
            let Some(name) = run_name(&entry) else {
                continue;
            };
            let lock = self.runs.open_dir(&name)?.open_for_listing()?;
            match lock.try_lock() {
                Ok(()) => found.push(name),
                Err(std::fs::TryLockError::WouldBlock) => {}
                Err(std::fs::TryLockError::Error(source)) => {
                    return Err(self.runs.fail_at(&name, io_error("lock", source)));
                }
            }
        }
        Ok(found)
    }
}

fn run_name(entry: &OsStr) -> Option<RelativeName> {
    let name = RelativeName::parse(entry.as_bytes()).ok()?;
    name.as_str().starts_with(RUN_PREFIX).then_some(name)
}

/// Removes the directory `name` below `parent` with the files in it.
///
/// # Errors
/// [`Refusal::NotRegular`] for a directory inside, before anything is removed; what
/// the kernel says.
pub fn remove_tree(parent: &HeldDir, name: &RelativeName) -> Result<(), CustodyError> {
    let dir = parent.open_dir(name)?;
    let names = dir.list(ENTRIES_MAX)?;
    for entry in &names {
        if dir.raw_entry_facts(entry)?.kind == FileKind::Directory {
            return Err(CustodyError::new(
                &dir.path().join(entry),
                Refusal::NotRegular(FileKind::Directory),
            ));
        }
    }
    for entry in &names {
        dir.remove_file(entry)?;
    }
    parent.remove_dir(OsStr::new(name.as_str()))
}
