//! A directory that is held, and the files below it.
//!
//! [`HeldDir`] is opened once; afterwards its path is only a text for messages. The
//! directory may be moved or its name given to something else: what is reached
//! through the descriptor stays the same. [`HeldFile`] is one regular file that has
//! passed its [`FileRules`], not yet opened for reading.
//!
//! Nothing here may return a descriptor to an inode that it has not checked, or
//! bytes that it has not counted.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};

use crate::durable::{random_name, rename_no_replace};
use crate::error::{CustodyError, Refusal};
use crate::facts::{FileFacts, FileKind};
use crate::name::RelativeName;
use crate::resolve::{
    Resolver, io_error, locate, locate_component, open_error, reopen_for_reading, retry_on_signal,
};

/// Who may own a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Root or this uid.
    RootOr(u32),
    /// This uid alone.
    Exactly(u32),
}

impl Owner {
    pub(crate) fn check(self, found: u32) -> Result<(), Refusal> {
        let (accepted, allowed) = match self {
            Self::RootOr(uid) => (found == 0 || found == uid, format!("root or uid {uid}")),
            Self::Exactly(uid) => (found == uid, format!("uid {uid}")),
        };
        if accepted {
            Ok(())
        } else {
            Err(Refusal::Owner { found, allowed })
        }
    }
}

/// What a file has to be before it is opened for reading. That it is regular and
/// has exactly one name is always required.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRules {
    /// The most bytes that are read, and the most that it may state.
    pub limit_bytes: u64,
    /// Who may own it.
    pub owner: Owner,
    /// Whether execute bits are allowed; setuid, setgid and sticky never are.
    pub may_be_executable: bool,
    /// Whether group and others may have write permission. It does no harm where
    /// the bytes are judged by their digest after reading.
    pub may_be_writable_by_others: bool,
}

impl FileRules {
    /// Rules for a file of untrusted content: no execute bit, root or `uid` owns it.
    #[must_use]
    pub fn untrusted(limit_bytes: u64, uid: u32) -> Self {
        Self {
            limit_bytes,
            owner: Owner::RootOr(uid),
            may_be_executable: false,
            may_be_writable_by_others: true,
        }
    }

    /// Rules for a file of ours: as [`FileRules::untrusted`], and nobody else may
    /// write to it.
    #[must_use]
    pub fn private(limit_bytes: u64, uid: u32) -> Self {
        Self {
            may_be_writable_by_others: false,
            ..Self::untrusted(limit_bytes, uid)
        }
    }

    pub(crate) fn check(&self, facts: &FileFacts) -> Result<(), Refusal> {
        if facts.kind != FileKind::Regular {
            return Err(Refusal::NotRegular(facts.kind));
        }
        if facts.links != 1 {
            return Err(Refusal::Links(facts.links));
        }
        let forbidden = if self.may_be_executable {
            0o7000
        } else {
            0o7111
        };
        if facts.mode & forbidden != 0 {
            return Err(Refusal::ModeBits(facts.mode));
        }
        if !self.may_be_writable_by_others && facts.mode & 0o022 != 0 {
            return Err(Refusal::FileWritableByOthers(facts.mode));
        }
        self.owner.check(facts.uid)?;
        if facts.size_bytes > self.limit_bytes {
            return Err(Refusal::TooLarge {
                limit_bytes: self.limit_bytes,
            });
        }
        Ok(())
    }
}

/// A directory held by a descriptor that only locates it.
#[derive(Debug)]
pub struct HeldDir {
    dir: File,
    path: PathBuf,
    resolver: Resolver,
}

impl HeldDir {
    /// Wraps a descriptor that has been found to be a directory.
    pub(crate) fn from_located(dir: File, path: PathBuf) -> Self {
        Self {
            dir,
            path,
            resolver: Resolver::default(),
        }
    }

    /// The same directory, with names resolved in another way from here on.
    #[must_use]
    pub fn with_resolver(mut self, resolver: Resolver) -> Self {
        self.resolver = resolver;
        self
    }

    /// Another descriptor of the same directory.
    ///
    /// # Errors
    /// What dup(2) says.
    pub fn try_clone(&self) -> Result<Self, CustodyError> {
        let dir = self
            .dir
            .try_clone()
            .map_err(|source| self.fail(io_error("dup", source)))?;
        Ok(Self {
            dir,
            path: self.path.clone(),
            resolver: self.resolver,
        })
    }

    /// Where the directory was when it was opened; for messages, and for programs
    /// that can only take a path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is known of the directory now.
    ///
    /// # Errors
    /// What fstat(2) says.
    pub fn facts(&self) -> Result<FileFacts, CustodyError> {
        FileFacts::of(&self.dir).map_err(|source| self.fail(io_error("fstat", source)))
    }

    /// What is known of an entry, which is neither followed nor opened.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] where there is none; every refusal of resolving.
    pub fn entry_facts(&self, name: &RelativeName) -> Result<FileFacts, CustodyError> {
        let located = self.locate(name)?;
        FileFacts::of(&located).map_err(|source| self.fail_at(name, io_error("fstat", source)))
    }

    /// What is known of an entry as the listing gave it, whatever its name: for
    /// looking at what somebody else has left.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], or what the kernel says.
    pub(crate) fn raw_entry_facts(&self, entry: &OsStr) -> Result<FileFacts, CustodyError> {
        let fail = |refusal| CustodyError::new(&self.path.join(entry), refusal);
        // A listing gives single components only.
        let located = locate_component(&self.dir, entry).map_err(fail)?;
        FileFacts::of(&located).map_err(|source| fail(io_error("fstat", source)))
    }

    /// Opens a directory below this one.
    ///
    /// # Errors
    /// Every refusal of resolving, and [`Refusal::NotDirectory`].
    pub fn open_dir(&self, name: &RelativeName) -> Result<Self, CustodyError> {
        let located = self.locate(name)?;
        let facts = FileFacts::of(&located)
            .map_err(|source| self.fail_at(name, io_error("fstat", source)))?;
        if facts.kind != FileKind::Directory {
            return Err(self.fail_at(name, Refusal::NotDirectory(facts.kind)));
        }
        Ok(Self {
            dir: located,
            path: self.path.join(name.as_str()),
            resolver: self.resolver,
        })
    }

    /// Finds a file and holds it to `rules`. Nothing is opened for reading yet.
    ///
    /// # Errors
    /// Every refusal of resolving and of the rules.
    pub fn open_file(
        &self,
        name: &RelativeName,
        rules: FileRules,
    ) -> Result<HeldFile, CustodyError> {
        let located = self.locate(name)?;
        let path = self.path.join(name.as_str());
        HeldFile::from_located(located, path, rules)
    }

    /// [`HeldDir::open_file`] and [`HeldFile::read`] in one.
    ///
    /// # Errors
    /// Those of both.
    pub fn read_file(
        &self,
        name: &RelativeName,
        rules: FileRules,
    ) -> Result<Vec<u8>, CustodyError> {
        self.open_file(name, rules)?.read()
    }

    /// The names in this directory, sorted, without `.` and `..`.
    ///
    /// The listing stops at the first entry beyond `limit`; a directory with
    /// 100,000 entries is not read to its end (case C07).
    ///
    /// # Errors
    /// [`Refusal::TooManyEntries`], or what the kernel says.
    pub fn list(&self, limit: usize) -> Result<Vec<OsString>, CustodyError> {
        let readable = self.open_for_listing()?;
        let mut dir = Dir::from_fd(OwnedFd::from(readable))
            .map_err(|errno| self.fail(io_error("list", errno.into())))?;
        let mut names = Vec::new();
        for entry in dir.iter() {
            let entry = entry.map_err(|errno| self.fail(io_error("list", errno.into())))?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            if names.len() == limit {
                return Err(self.fail(Refusal::TooManyEntries { limit }));
            }
            names.push(OsStr::from_bytes(name).to_os_string());
        }
        names.sort();
        Ok(names)
    }

    /// Makes a directory of exactly `mode` that was not there before.
    ///
    /// # Errors
    /// [`Refusal::Exists`], [`Refusal::NotPlain`] for more than one component, or
    /// what the kernel says.
    pub fn create_dir(&self, name: &RelativeName, mode: u32) -> Result<Self, CustodyError> {
        self.require_single(name)?;
        create_dir_in(&self.dir, OsStr::new(name.as_str()), mode)
            .map_err(|refusal| self.fail_at(name, refusal))?;
        self.open_dir(name)
    }

    /// Opens a directory below this one, or makes it with `mode`.
    ///
    /// # Errors
    /// Those of [`HeldDir::open_dir`] and [`HeldDir::create_dir`].
    pub fn open_or_create_dir(&self, name: &RelativeName, mode: u32) -> Result<Self, CustodyError> {
        match self.create_dir(name, mode) {
            Err(error) if matches!(error.refusal, Refusal::Exists) => self.open_dir(name),
            other => other,
        }
    }

    /// Makes an empty regular file of exactly `mode` that was not there before, open
    /// for reading and writing.
    ///
    /// # Errors
    /// [`Refusal::Exists`], [`Refusal::NotPlain`], or what the kernel says.
    pub fn create_file(&self, name: &RelativeName, mode: u32) -> Result<File, CustodyError> {
        self.require_single(name)?;
        // O_EXCL does not follow a link in the last component (open(2)).
        let flags = OFlag::O_RDWR
            | OFlag::O_CREAT
            | OFlag::O_EXCL
            | OFlag::O_NOFOLLOW
            | OFlag::O_NOCTTY
            | OFlag::O_CLOEXEC;
        let file = retry_on_signal(|| {
            openat(
                self.dir.as_fd(),
                name.as_str(),
                flags,
                Mode::S_IRUSR | Mode::S_IWUSR,
            )
        })
        .map(File::from)
        .map_err(|errno| self.fail_at(name, open_error(errno)))?;
        set_mode(&file, mode).map_err(|refusal| self.fail_at(name, refusal))?;
        Ok(file)
    }

    /// Removes one entry that is not a directory.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], or what the kernel says.
    pub fn remove_file(&self, name: &OsStr) -> Result<(), CustodyError> {
        self.remove(name, UnlinkatFlags::NoRemoveDir)
    }

    /// Removes one empty directory.
    ///
    /// # Errors
    /// [`Refusal::NotFound`], or what the kernel says.
    pub fn remove_dir(&self, name: &OsStr) -> Result<(), CustodyError> {
        self.remove(name, UnlinkatFlags::RemoveDir)
    }

    /// Writes the directory itself to the disk, so that its entries survive a power
    /// loss.
    ///
    /// # Errors
    /// What fsync(2) says.
    pub fn sync(&self) -> Result<(), CustodyError> {
        self.open_for_listing()?
            .sync_all()
            .map_err(|source| self.fail(io_error("fsync of the directory", source)))
    }

    /// The directory as a descriptor that can be read, locked or changed: the
    /// locating one cannot.
    pub(crate) fn open_for_listing(&self) -> Result<File, CustodyError> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        retry_on_signal(|| openat(self.dir.as_fd(), ".", flags, Mode::empty()))
            .map(File::from)
            .map_err(|errno| self.fail(open_error(errno)))
    }

    pub(crate) fn fail(&self, refusal: Refusal) -> CustodyError {
        CustodyError::new(&self.path, refusal)
    }

    pub(crate) fn fail_at(&self, name: &RelativeName, refusal: Refusal) -> CustodyError {
        CustodyError::new(&self.path.join(name.as_str()), refusal)
    }

    pub(crate) fn require_single(&self, name: &RelativeName) -> Result<(), CustodyError> {
        if name.is_single() {
            Ok(())
        } else {
            Err(self.fail_at(name, Refusal::NotPlain))
        }
    }

    fn locate(&self, name: &RelativeName) -> Result<File, CustodyError> {
        locate(&self.dir, name, self.resolver).map_err(|refusal| self.fail_at(name, refusal))
    }

    fn remove(&self, name: &OsStr, flag: UnlinkatFlags) -> Result<(), CustodyError> {
        unlinkat(self.dir.as_fd(), name, flag).map_err(|errno| {
            let refusal = match errno {
                Errno::ENOENT => Refusal::NotFound,
                other => io_error("unlink", other.into()),
            };
            CustodyError::new(&self.path.join(name), refusal)
        })
    }
}

impl AsFd for HeldDir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }
}

/// A regular file that passed its rules, held by a descriptor that only locates it.
#[derive(Debug)]
pub struct HeldFile {
    located: File,
    facts: FileFacts,
    path: PathBuf,
    limit_bytes: u64,
}

impl HeldFile {
    pub(crate) fn from_located(
        located: File,
        path: PathBuf,
        rules: FileRules,
    ) -> Result<Self, CustodyError> {
        let facts = FileFacts::of(&located)
            .map_err(|source| CustodyError::new(&path, io_error("fstat", source)))?;
        rules
            .check(&facts)
            .map_err(|refusal| CustodyError::new(&path, refusal))?;
        Ok(Self {
            located,
            facts,
            path,
            limit_bytes: rules.limit_bytes,
        })
    }

    /// What was known of the file when it passed its rules.
    #[must_use]
    pub fn facts(&self) -> &FileFacts {
        &self.facts
    }

    /// Where the file was; for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the whole file, once, from the inode that passed the rules.
    ///
    /// # Errors
    /// [`Refusal::Changed`] if anything about it is not as it was when it passed,
    /// or if the bytes counted are not the size stated; what the kernel says.
    pub fn read(&self) -> Result<Vec<u8>, CustodyError> {
        let fail = |refusal| CustodyError::new(&self.path, refusal);
        let file = reopen_for_reading(&self.located, &self.facts).map_err(fail)?;
        read_unchanged(&file, &self.facts, self.limit_bytes).map_err(fail)
    }
}

/// Reads at most one byte more than `limit_bytes` and compares what was known
/// before with what is known afterwards (case C07).
pub(crate) fn read_unchanged(
    mut file: &File,
    before: &FileFacts,
    limit_bytes: u64,
) -> Result<Vec<u8>, Refusal> {
    let mut bytes = Vec::new();
    file.by_ref()
        .take(limit_bytes.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|source| io_error("read", source))?;
    let after = FileFacts::of(file).map_err(|source| io_error("fstat", source))?;
    // Both are load-bearing: the facts catch a change of the inode, the count a
    // size that was never true, as /proc states it.
    if after != *before || u64::try_from(bytes.len()) != Ok(before.size_bytes) {
        return Err(Refusal::Changed);
    }
    Ok(bytes)
}

/// Makes the directory `name` in `parent` with exactly `mode`, whatever the umask.
///
/// Nobody ever finds it under its name with another mode, not even if this process
/// is killed half-way.
pub(crate) fn create_dir_in(parent: &File, name: &OsStr, mode: u32) -> Result<(), Refusal> {
    if mode == 0o700 {
        return make_dir(parent, name, mode);
    }
    let temporary = random_name("new-")?;
    let temporary = OsStr::new(temporary.as_str());
    make_dir(parent, temporary, mode)?;
    let moved = retry_on_signal(|| rename_no_replace(parent.as_fd(), temporary, name));
    if let Err(errno) = moved {
        // The first failure is the one to report; the name is ours alone.
        let _ = unlinkat(parent.as_fd(), temporary, UnlinkatFlags::RemoveDir);
        return Err(match errno {
            Errno::EEXIST => Refusal::Exists,
            other => io_error("rename", other.into()),
        });
    }
    Ok(())
}

fn make_dir(parent: &File, name: &OsStr, mode: u32) -> Result<(), Refusal> {
    // 0700 at birth: nobody else gets in before the final mode is set.
    mkdirat(parent.as_fd(), name, Mode::S_IRWXU).map_err(|errno| match errno {
        Errno::EEXIST => Refusal::Exists,
        other => io_error("mkdir", other.into()),
    })?;
    let located = locate_component(parent, name)?;
    let facts = FileFacts::of(&located).map_err(|source| io_error("fstat", source))?;
    if facts.kind != FileKind::Directory {
        return Err(Refusal::Replaced);
    }
    if facts.mode == mode {
        return Ok(());
    }
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let writable = retry_on_signal(|| openat(located.as_fd(), ".", flags, Mode::empty()))
        .map(File::from)
        .map_err(open_error)?;
    set_mode(&writable, mode)
}

/// Sets exactly `mode`; creation alone would be subject to the umask.
pub(crate) fn set_mode(file: &File, mode: u32) -> Result<(), Refusal> {
    use std::os::unix::fs::PermissionsExt as _;

    file.set_permissions(std::fs::Permissions::from_mode(mode))
        .map_err(|source| io_error("chmod", source))
}
