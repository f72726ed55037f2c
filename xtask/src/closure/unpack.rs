//! Unpacks pinned archives, after their digest was verified, into a fresh directory.
//!
//! A verified digest says that the bytes are the pinned ones, not that they are
//! harmless; so the guards hold for every archive. Only regular files come out,
//! below one directory, each once, bounded in number and size, with one of two
//! modes and one fixed time. It must never create a link, follow one, overwrite
//! a file, or believe a size that an archive states.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};
use lazaret_profile::pins::ArchiveBounds;

use super::layout::{PRIVATE_MODE, make_directory};

/// The deepest path that is unpacked.
const DEPTH_MAX: usize = 24;

/// Memory that the decompressor may use.
const DECOMPRESSOR_BYTES_MAX: u64 = 256 << 20;

/// A directory that files are unpacked into, with everything that has been counted.
#[derive(Debug)]
pub struct Target {
    root: PathBuf,
    bounds: ArchiveBounds,
    time: SystemTime,
    entries: u64,
    bytes: u64,
    files: BTreeSet<String>,
    directories: BTreeSet<PathBuf>,
}

impl Target {
    /// Starts unpacking into `root`, which must not exist yet.
    ///
    /// # Errors
    /// When it exists or cannot be made.
    pub fn new(root: &Path, bounds: &ArchiveBounds, source_date_epoch: u64) -> Result<Self> {
        if root.symlink_metadata().is_ok() {
            bail!("{} exists already", root.display());
        }
        make_directory(root, PRIVATE_MODE)?;
        Ok(Self {
            root: root.to_owned(),
            bounds: bounds.clone(),
            time: SystemTime::UNIX_EPOCH + Duration::from_secs(source_date_epoch),
            entries: 0,
            bytes: 0,
            files: BTreeSet::new(),
            directories: BTreeSet::from([root.to_owned()]),
        })
    }

    /// Counts one entry of an archive, whatever becomes of it.
    fn count(&mut self) -> Result<()> {
        self.entries += 1;
        if self.entries > self.bounds.entries_max {
            bail!("more than {} entries", self.bounds.entries_max);
        }
        Ok(())
    }

    /// Writes one file. `path` has passed [`checked_path`].
    ///
    /// # Errors
    /// When the file was there before, a bound is passed, or writing fails.
    pub fn file(&mut self, path: &str, executable: bool, contents: &mut dyn Read) -> Result<()> {
        if !self.files.insert(path.to_owned()) {
            bail!("{path} is there twice");
        }
        let full = self.root.join(path);
        let parent = full.parent().context("a file without a directory")?;
        self.directory(parent)?;
        let mode = if executable { 0o755 } else { 0o644 };
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&full)
            .with_context(|| format!("creating {path}"))?;
        let written = self.copy(path, contents, &mut file)?;
        self.bytes += written;
        file.set_permissions(fs::Permissions::from_mode(mode))
            .and_then(|()| file.set_modified(self.time))
            .with_context(|| format!("setting mode and time of {path}"))
    }

    /// Copies with the bounds on what is really there.
    fn copy(&self, path: &str, contents: &mut dyn Read, file: &mut fs::File) -> Result<u64> {
        let left = self.bounds.unpacked_bytes_max.saturating_sub(self.bytes);
        let allowed = self.bounds.file_bytes_max.min(left);
        let mut buffer = vec![0; 64 * 1024];
        let mut written = 0_u64;
        loop {
            let count = match contents.read(&mut buffer) {
                Ok(0) => return Ok(written),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error).with_context(|| format!("unpacking {path}")),
            };
            written += count as u64;
            if written > allowed {
                bail!("{path} passes the bound of {allowed} bytes");
            }
            file.write_all(&buffer[..count])
                .with_context(|| format!("writing {path}"))?;
        }
    }

    fn directory(&mut self, path: &Path) -> Result<()> {
        if !path.starts_with(&self.root) {
            bail!("{} is not below {}", path.display(), self.root.display());
        }
        let mut missing = Vec::new();
        let mut at = path;
        while !self.directories.contains(at) {
            missing.push(at.to_owned());
            at = at.parent().context("a directory without a parent")?;
        }
        for directory in missing.into_iter().rev() {
            make_directory(&directory, 0o755)?;
            self.directories.insert(directory);
        }
        Ok(())
    }

    /// Gives every directory the fixed time and says which files are there.
    ///
    /// # Errors
    /// When a time cannot be set.
    pub fn finish(self) -> Result<BTreeSet<String>> {
        for directory in self.directories.iter().rev() {
            fs::File::open(directory)
                .and_then(|handle| handle.set_modified(self.time))
                .with_context(|| format!("setting the time of {}", directory.display()))?;
        }
        Ok(self.files)
    }
}

/// The path of an archive's entry, if it stays where it belongs: relative, with no component that
/// is empty, `.` or `..`, no control character and no other separator.
///
/// # Errors
/// Says what is wrong with it.
pub fn checked_path(bytes: &[u8]) -> Result<&str> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        bail!("the path {:?} is not UTF-8", String::from_utf8_lossy(bytes));
    };
    let path = text.strip_suffix('/').unwrap_or(text);
    if path.starts_with('/') {
        bail!("the path {path:?} is absolute");
    }
    if path.contains('\\') || path.chars().any(char::is_control) {
        bail!("the path {path:?} holds a character that no source of ours has");
    }
    let parts: Vec<&str> = path.split('/').collect();
    if parts.len() > DEPTH_MAX {
        bail!("the path {path:?} is deeper than {DEPTH_MAX}");
    }
    if let Some(part) = parts
        .iter()
        .find(|part| matches!(**part, "" | "." | "..") || part.len() > 255)
    {
        bail!("the path {path:?} has the component {part:?}");
    }
    Ok(path)
}

/// What an unpacked tar archive must look like.
#[derive(Debug)]
pub struct TarRules<'a> {
    /// The one directory that everything lies in.
    pub top: &'a str,
    /// Symbolic links, by path below `top`, that are left out; any other link is refused.
    pub skipped_links: &'a [String],
}

/// Unpacks those files of a `.tar.xz` that `wanted` takes, by path below the top directory.
///
/// # Errors
/// When the archive breaks a rule or a bound, or reading or writing fails.
pub fn tar_xz(
    archive: &Path,
    rules: &TarRules<'_>,
    target: &mut Target,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<()> {
    let file = fs::File::open(archive).with_context(|| format!("opening {}", archive.display()))?;
    let stream = liblzma::stream::Stream::new_stream_decoder(DECOMPRESSOR_BYTES_MAX, 0)
        .context("starting the decompressor")?;
    let decoder = liblzma::read::XzDecoder::new_stream(io::BufReader::new(file), stream);
    // Headers, padding and long names come on top of the contents.
    let overhead = target
        .bounds
        .entries_max
        .saturating_mul(2048)
        .saturating_add(1 << 20);
    let limit = target.bounds.unpacked_bytes_max.saturating_add(overhead);
    let mut tar = tar::Archive::new(Bounded {
        inner: decoder,
        left: limit,
    });
    for entry in tar.entries().context("reading the archive")? {
        let mut entry = entry.context("reading the archive")?;
        target.count()?;
        tar_entry(&mut entry, rules, target, wanted)?;
    }
    Ok(())
}

fn tar_entry<R: Read>(
    entry: &mut tar::Entry<'_, R>,
    rules: &TarRules<'_>,
    target: &mut Target,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<()> {
    use tar::EntryType;
    let kind = entry.header().entry_type();
    if kind == EntryType::XGlobalHeader {
        return Ok(());
    }
    let bytes = entry.path_bytes().into_owned();
    let path = checked_path(&bytes)?;
    if path == rules.top {
        return if kind == EntryType::Directory {
            Ok(())
        } else {
            bail!("{path} is not a directory")
        };
    }
    let Some(below) = path
        .strip_prefix(rules.top)
        .and_then(|rest| rest.strip_prefix('/'))
    else {
        bail!("{path} does not lie in {}", rules.top);
    };
    match kind {
        EntryType::Directory => Ok(()),
        EntryType::Regular => {
            if !wanted(below) {
                return Ok(());
            }
            let mode = entry
                .header()
                .mode()
                .with_context(|| format!("reading the mode of {path}"))?;
            let below = below.to_owned();
            target.file(&below, mode & 0o111 != 0, entry)
        }
        EntryType::Symlink if rules.skipped_links.iter().any(|link| link == below) => Ok(()),
        other => bail!("{path} is of a kind that is not unpacked ({other:?})"),
    }
}

/// Unpacks a wheel, which is a zip archive.
///
/// # Errors
/// When the archive breaks a rule or a bound, or reading or writing fails.
pub fn wheel(archive: &Path, target: &mut Target) -> Result<()> {
    let file = fs::File::open(archive).with_context(|| format!("opening {}", archive.display()))?;
    let mut zip = zip::ZipArchive::new(io::BufReader::new(file)).context("reading the archive")?;
    for index in 0..zip.len() {
        target.count()?;
        let mut entry = zip.by_index(index).context("reading the archive")?;
        let name = entry
            .name()
            .context("reading a name in the archive")?
            .into_owned();
        let path = checked_path(name.as_bytes())?;
        let mode = entry.unix_mode().unwrap_or(0o100_644);
        // Some writers leave the kind out.
        let kind = mode & 0o170_000;
        if entry.is_dir() {
            continue;
        }
        if kind != 0o100_000 && kind != 0 {
            bail!("{path} is of a kind that is not unpacked (mode {mode:o})");
        }
        target.file(path, mode & 0o111 != 0, &mut entry)?;
    }
    Ok(())
}

/// A reader that fails where an archive grows beyond what its bounds allow.
struct Bounded<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.left = self.left.checked_sub(count as u64).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "the archive unpacks to more than its bounds",
            )
        })?;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPOCH: u64 = 1_700_000_000;

    fn bounds() -> ArchiveBounds {
        ArchiveBounds {
            entries_max: 20,
            unpacked_bytes_max: 10_000,
            file_bytes_max: 5_000,
        }
    }

    /// An archive whose paths, kinds, modes and link targets are whatever the test says: the
    /// header is filled in by hand, because the library would refuse to write most of them.
    struct Hostile(tar::Builder<Vec<u8>>);

    impl Hostile {
        fn new() -> Self {
            Self(tar::Builder::new(Vec::new()))
        }

        fn entry(mut self, path: &str, kind: tar::EntryType, contents: &[u8]) -> Self {
            let mut header = tar::Header::new_ustar();
            header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
            header.set_entry_type(kind);
            header.set_size(contents.len() as u64);
            header.set_mode(0o4755);
            if kind == tar::EntryType::Symlink || kind == tar::EntryType::Link {
                header.set_link_name("/etc/passwd").unwrap();
            }
            header.set_cksum();
            self.0.append(&header, contents).unwrap();
            self
        }

        fn file(self, path: &str, contents: &[u8]) -> Self {
            self.entry(path, tar::EntryType::Regular, contents)
        }

        fn unpack_with(self, scratch: &Path, bounds: &ArchiveBounds) -> Result<BTreeSet<String>> {
            let bytes = self.0.into_inner().unwrap();
            let archive = scratch.join("a.tar.xz");
            let mut encoder =
                liblzma::write::XzEncoder::new(fs::File::create(&archive).unwrap(), 1);
            encoder.write_all(&bytes).unwrap();
            encoder.finish().unwrap();
            let links = vec!["skipped".to_owned()];
            let rules = TarRules {
                top: "top",
                skipped_links: &links,
            };
            let mut target = Target::new(&scratch.join("out"), bounds, EPOCH)?;
            tar_xz(&archive, &rules, &mut target, &|path| path != "unwanted")?;
            target.finish()
        }

        fn refusal(self) -> String {
            let scratch = tempfile::tempdir().unwrap();
            format!(
                "{:#}",
                self.unpack_with(scratch.path(), &bounds()).unwrap_err()
            )
        }
    }

    #[test]
    fn files_come_out_with_fixed_modes_and_times_and_set_uid_is_dropped() {
        let scratch = tempfile::tempdir().unwrap();
        let archive = Hostile::new()
            .entry("top/", tar::EntryType::Directory, b"")
            .file("top/a/b.txt", b"hello")
            .file("top/unwanted", b"x")
            .entry("top/skipped", tar::EntryType::Symlink, b"");
        let files = archive.unpack_with(scratch.path(), &bounds()).unwrap();
        assert_eq!(files, BTreeSet::from(["a/b.txt".to_owned()]));
        let path = scratch.path().join("out/a/b.txt");
        let metadata = fs::metadata(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"hello");
        assert_eq!(metadata.permissions().mode() & 0o7777, 0o755);
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(EPOCH);
        assert_eq!(metadata.modified().unwrap(), time);
        let directory = fs::metadata(scratch.path().join("out/a")).unwrap();
        assert_eq!(directory.modified().unwrap(), time);
    }

    #[test]
    fn a_path_that_leaves_the_target_is_refused() {
        for path in [
            "top/../../x",
            "/top/x",
            "top/./x",
            "top//x",
            "other/x",
            "topx/y",
            "top/a\\b",
        ] {
            let message = Hostile::new().file(path, b"x").refusal();
            assert!(
                message.contains("path") || message.contains("does not lie"),
                "{path}: {message}"
            );
        }
    }

    #[test]
    fn links_devices_and_pipes_are_refused() {
        use tar::EntryType::{Block, Char, Continuous, Fifo, GNUSparse, Link, Symlink};
        for kind in [Symlink, Link, Char, Block, Fifo, Continuous, GNUSparse] {
            let message = Hostile::new().entry("top/x", kind, b"").refusal();
            assert!(
                message.contains("kind that is not unpacked")
                    || message.contains("reading the archive"),
                "{kind:?}: {message}"
            );
        }
    }

    #[test]
    fn a_file_that_is_there_twice_or_in_the_place_of_a_directory_is_refused() {
        let twice = Hostile::new()
            .file("top/x", b"1")
            .file("top/x", b"2")
            .refusal();
        assert!(
            twice.contains("top/x is there twice") || twice.contains("x is there twice"),
            "{twice}"
        );
        let below = Hostile::new()
            .file("top/x", b"1")
            .file("top/x/y", b"2")
            .refusal();
        assert!(
            below.contains("top/x") || below.contains("out/x"),
            "{below}"
        );
    }

    #[test]
    fn too_many_entries_and_too_many_bytes_are_refused() {
        let many = (0..21).fold(Hostile::new(), |archive, i| {
            archive.file(&format!("top/{i}"), b"")
        });
        assert!(many.refusal().contains("more than 20 entries"));
        let large = Hostile::new().file("top/x", &[0; 5_001]).refusal();
        assert!(large.contains("passes the bound of 5000 bytes"), "{large}");
        let sum = (0..3).fold(Hostile::new(), |archive, i| {
            archive.file(&format!("top/{i}"), &[0; 4_000])
        });
        assert!(sum.refusal().contains("passes the bound of 2000 bytes"));
    }

    #[test]
    fn unwanted_files_do_not_hide_a_decompression_bomb() {
        let bomb = Hostile::new().file("top/unwanted", &vec![0; 4 << 20]);
        assert!(bomb.refusal().contains("unpacks to more than its bounds"));
    }

    #[test]
    fn a_cut_archive_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let archive = Hostile::new().file("top/x", &[7; 3_000]);
        let bytes = archive.0.into_inner().unwrap();
        let path = scratch.path().join("a.tar.xz");
        let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
        encoder.write_all(&bytes[..1_024]).unwrap();
        fs::write(&path, encoder.finish().unwrap()).unwrap();
        let mut target = Target::new(&scratch.path().join("out"), &bounds(), EPOCH).unwrap();
        let rules = TarRules {
            top: "top",
            skipped_links: &[],
        };
        assert!(tar_xz(&path, &rules, &mut target, &|_| true).is_err());
    }

    #[test]
    fn a_target_that_exists_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        assert!(Target::new(scratch.path(), &bounds(), EPOCH).is_err());
        std::os::unix::fs::symlink("/nowhere", scratch.path().join("link")).unwrap();
        assert!(Target::new(&scratch.path().join("link"), &bounds(), EPOCH).is_err());
    }

    fn zip_of(name: &str, mode: u32, contents: &[u8]) -> Vec<u8> {
        let mut writer = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
        let options = zip::write::SimpleFileOptions::default().unix_permissions(mode);
        writer.start_file(name, options).unwrap();
        writer.write_all(contents).unwrap();
        writer.finish().unwrap().into_inner()
    }

    fn unpack_wheel(bytes: &[u8]) -> Result<BTreeSet<String>> {
        let scratch = tempfile::tempdir().unwrap();
        let archive = scratch.path().join("a.whl");
        fs::write(&archive, bytes).unwrap();
        let mut target = Target::new(&scratch.path().join("out"), &bounds(), EPOCH)?;
        wheel(&archive, &mut target)?;
        target.finish()
    }

    #[test]
    fn a_wheel_unpacks_and_one_with_a_path_that_leaves_is_refused() {
        let files = unpack_wheel(&zip_of("package/tool", 0o755, b"x")).unwrap();
        assert_eq!(files, BTreeSet::from(["package/tool".to_owned()]));
        for name in ["../x", "/x", "a/../../x"] {
            assert!(unpack_wheel(&zip_of(name, 0o644, b"x")).is_err(), "{name}");
        }
    }

    #[test]
    fn a_wheel_with_a_link_or_a_bomb_is_refused() {
        let mut writer = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
        let options = zip::write::SimpleFileOptions::default();
        writer
            .add_symlink("package/link", "/etc/passwd", options)
            .unwrap();
        let bytes = writer.finish().unwrap().into_inner();
        assert!(
            unpack_wheel(&bytes)
                .unwrap_err()
                .to_string()
                .contains("kind that is not unpacked")
        );
        let bomb = unpack_wheel(&zip_of("x", 0o644, &vec![0; 1 << 20])).unwrap_err();
        assert!(bomb.to_string().contains("passes the bound"), "{bomb}");
    }
}
