//! Where everything lies: the repository's `.lazaret/`, and the user's cache.
//!
//! Sources are unpacked and built only below the repository's `.lazaret/build`.
//! The cache is an origin, never a place of work: what comes from it is copied
//! and verified. This module makes paths and directories; it must never decide
//! what goes into them.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use lazaret_contract::digest::Sha256Digest;

/// Directories on the way to a closure: the operator lists them, a dropped uid passes through.
pub const PASSABLE_MODE: u32 = 0o711;

/// Directories that nobody but the operator needs.
pub const PRIVATE_MODE: u32 = 0o700;

/// The places below one repository.
#[derive(Debug, Clone)]
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    /// The layout of the repository at `root`.
    ///
    /// # Errors
    /// When the path is not absolute, or holds characters that make and configure would read as
    /// more than a path.
    pub fn new(root: &Path) -> Result<Self> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"/._+-@~".contains(&b);
        let text = root.to_str().unwrap_or("");
        if !root.is_absolute() || text.is_empty() || !text.bytes().all(plain) {
            bail!(
                "the repository lies at {}: make and configure cannot work below a path with white \
                 space or shell characters; move it",
                root.display()
            );
        }
        Ok(Self {
            root: root.to_owned(),
        })
    }

    /// The repository's root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Everything that is made and not committed.
    pub fn local(&self) -> PathBuf {
        self.root.join(".lazaret")
    }

    /// Verified copies of the pinned archives, by digest.
    pub fn sources(&self) -> PathBuf {
        self.local().join("sources")
    }

    /// Where building happens.
    pub fn build(&self) -> PathBuf {
        self.local().join("build")
    }

    /// Finished stages, by name and key.
    pub fn stages(&self) -> PathBuf {
        self.build().join("stages")
    }

    /// Working directories of unfinished stages.
    pub fn work(&self) -> PathBuf {
        self.build().join("work")
    }

    /// The compiler's own cache.
    pub fn compiler_cache(&self) -> PathBuf {
        self.build().join("zig-cache")
    }

    /// Logs of the stages, one file each.
    pub fn logs(&self) -> PathBuf {
        self.build().join("logs")
    }

    /// The file that a builder holds a lock on.
    pub fn lock(&self) -> PathBuf {
        self.build().join("lock")
    }

    /// The closures of a profile.
    pub fn closures(&self, profile: &str) -> PathBuf {
        self.local().join("closures").join(profile)
    }

    /// One closure.
    pub fn closure(&self, profile: &str, digest: Sha256Digest) -> PathBuf {
        self.closures(profile).join(digest.to_string())
    }

    /// Which closure this tree's inputs gave last.
    pub fn current(&self, profile: &str) -> PathBuf {
        self.closures(profile).join("current.json")
    }

    /// The record of the build that gave a closure.
    pub fn record(&self, profile: &str, digest: Sha256Digest) -> PathBuf {
        self.closures(profile)
            .join(format!("{digest}.build-record.json"))
    }

    /// The data of a profile in the tree.
    pub fn profile(&self, profile: &str) -> PathBuf {
        self.root.join("third_party/profiles").join(profile)
    }

    /// `path` as a person reads it: relative to the repository where it lies in it.
    pub fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.root)
            .unwrap_or(path)
            .display()
            .to_string()
    }

    /// Makes the directories that the others lie in, with their modes, whatever the umask.
    ///
    /// # Errors
    /// When one cannot be made.
    pub fn make_directories(&self, profile: &str) -> Result<()> {
        for directory in [
            self.local(),
            self.local().join("closures"),
            self.closures(profile),
        ] {
            make_directory(&directory, PASSABLE_MODE)?;
        }
        for directory in [
            self.sources(),
            self.build(),
            self.stages(),
            self.work(),
            self.compiler_cache(),
            self.logs(),
        ] {
            make_directory(&directory, PRIVATE_MODE)?;
        }
        Ok(())
    }
}

/// The user's cache of files by digest: `$XDG_CACHE_HOME/lazaret`, else `~/.cache/lazaret`.
pub fn user_cache() -> Option<PathBuf> {
    let absolute = |name: &str| {
        let path = PathBuf::from(std::env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    let base =
        absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")))?;
    Some(base.join("lazaret"))
}

/// Makes one directory (and those above it), or corrects the mode of the one that is there.
///
/// # Errors
/// When it cannot be made, or something else has its name.
pub fn make_directory(path: &Path, mode: u32) -> Result<()> {
    let made = fs::DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(path);
    made.with_context(|| format!("making the directory {}", path.display()))?;
    let metadata =
        fs::symlink_metadata(path).with_context(|| format!("looking at {}", path.display()))?;
    if !metadata.is_dir() {
        bail!("{} is not a directory", path.display());
    }
    // The umask may have taken bits away.
    if metadata.permissions().mode() & 0o7777 != mode {
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
            .with_context(|| format!("setting the mode of {}", path.display()))?;
    }
    Ok(())
}

/// Removes a file or a whole tree, whatever the modes in it; nothing there is success.
///
/// # Errors
/// When something of it stays.
pub fn remove_tree(path: &Path) -> Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).with_context(|| format!("looking at {}", path.display())),
        Ok(metadata) if !metadata.is_dir() => {
            return fs::remove_file(path).with_context(|| format!("removing {}", path.display()));
        }
        Ok(_) => {}
    }
    if fs::remove_dir_all(path).is_err() {
        // An unwritable directory inside: make the tree ours and try once more.
        unlock_directories(path);
        fs::remove_dir_all(path).with_context(|| format!("removing {}", path.display()))?;
    }
    Ok(())
}

fn unlock_directories(path: &Path) {
    // Failures show when the removal is tried again.
    let _ = fs::set_permissions(path, fs::Permissions::from_mode(PRIVATE_MODE));
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            unlock_directories(&entry.path());
        }
    }
}

/// Writes a small file so that a reader sees the old or the new one, never a part, also after a
/// power cut.
///
/// # Errors
/// When a step fails; the old file is then still there.
pub fn write_atomically(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    let context = || format!("writing {}", path.display());
    let parent = path.parent().with_context(context)?;
    let temporary = path.with_extension(format!("new-{}", std::process::id()));
    write_synced(&temporary, bytes, mode).with_context(context)?;
    fs::rename(&temporary, path).with_context(context)?;
    sync_directory(parent).with_context(context)
}

/// Writes a file with exactly `mode` and syncs it.
///
/// # Errors
/// When a step fails.
pub fn write_synced(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let _ = fs::remove_file(path);
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)?;
    io::Write::write_all(&mut file, bytes)?;
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.sync_all()
}

/// Syncs the entries of a directory.
///
/// # Errors
/// When the kernel cannot.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    fs::File::open(path)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_below_a_path_with_white_space_is_refused_by_name() {
        for root in [
            "/home/a b/lazaret",
            "relative",
            "/home/$x",
            "/home/a'b",
            "/home/ü",
        ] {
            let message = Layout::new(Path::new(root)).unwrap_err().to_string();
            assert!(message.contains(root), "{message}");
        }
        assert!(Layout::new(Path::new("/home/a/lazaret-1.0")).is_ok());
    }

    #[test]
    fn directories_get_their_mode_and_a_second_call_corrects_it() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("a/b");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        make_directory(&path, PASSABLE_MODE).unwrap();
        assert_eq!(mode(&path), 0o711);
        make_directory(&path, PRIVATE_MODE).unwrap();
        assert_eq!(mode(&path), 0o700);
        let file = scratch.path().join("file");
        fs::write(&file, b"").unwrap();
        assert!(make_directory(&file, PRIVATE_MODE).is_err());
    }

    #[test]
    fn a_tree_with_unwritable_directories_is_removed_and_nothing_is_fine() {
        let scratch = tempfile::tempdir().unwrap();
        let top = scratch.path().join("top");
        fs::create_dir_all(top.join("inner")).unwrap();
        fs::write(top.join("inner/file"), b"x").unwrap();
        fs::set_permissions(top.join("inner"), fs::Permissions::from_mode(0o555)).unwrap();
        remove_tree(&top).unwrap();
        assert!(!top.exists());
        remove_tree(&top).unwrap();
    }

    #[test]
    fn an_atomic_write_replaces_the_whole_file_with_its_mode() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("current.json");
        write_atomically(&path, b"first", 0o444).unwrap();
        write_atomically(&path, b"second", 0o444).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
            0o444
        );
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1);
    }
}
