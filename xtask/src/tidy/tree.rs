//! The tracked files of a checkout, read once.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Every tracked file with its bytes, by path relative to the root.
pub struct Tree {
    files: BTreeMap<String, Vec<u8>>,
}

impl Tree {
    /// Reads what git tracks, as it stands in the work tree.
    ///
    /// # Errors
    /// When git fails or a tracked file cannot be read.
    pub fn read(root: &Path) -> Result<Self> {
        let output = Command::new("git")
            .args([
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ])
            .current_dir(root)
            .output()
            .context("listing the tracked files with git")?;
        if !output.status.success() {
            bail!(
                "git ls-files failed: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        let listing = String::from_utf8(output.stdout).context("a tracked path is not UTF-8")?;
        let mut files = BTreeMap::new();
        for path in listing.split_terminator('\0') {
            let full = root.join(path);
            // A tracked file that was removed and not yet committed is no finding of ours.
            if full.is_file() {
                let bytes = std::fs::read(&full).with_context(|| format!("reading {path}"))?;
                files.insert(path.to_owned(), bytes);
            }
        }
        Ok(Self { files })
    }

    /// A tree made of the given files, for tests.
    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Self {
        let files = files
            .iter()
            .map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()));
        Self {
            files: files.collect(),
        }
    }

    /// All paths with their bytes, in order.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files
            .iter()
            .map(|(path, bytes)| (path.as_str(), bytes.as_slice()))
    }

    /// The text of one file, if it is there and UTF-8.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files
            .get(path)
            .and_then(|bytes| std::str::from_utf8(bytes).ok())
    }

    /// Texts of all files whose name ends with `suffix`.
    pub fn texts_ending(&self, suffix: &str) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .filter(move |(path, _)| path.ends_with(suffix))
            .filter_map(|(path, bytes)| Some((path.as_str(), std::str::from_utf8(bytes).ok()?)))
    }
}
