//! Proves that an unpacked source tree is the pinned one, file by file.
//!
//! The manifest beside the pins names every file that the build reads, with its
//! SHA-256. An archive and a git tag must both give exactly that; so they give
//! the same closure. It must never accept a file more or less.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use lazaret_contract::digest::Sha256Digest;

/// How many differences a refusal names.
const SHOWN_MAX: usize = 10;

/// The contents of a manifest in the form of sha256sum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeManifest(BTreeMap<String, Sha256Digest>);

impl TreeManifest {
    /// Reads `digest  path` lines in the order of their paths.
    ///
    /// # Errors
    /// When a line has another form, or the order or a path is wrong.
    pub fn parse(text: &str) -> Result<Self> {
        let mut files = BTreeMap::new();
        let mut last = String::new();
        for (number, line) in text.lines().enumerate() {
            let context = || format!("line {} of the tree's manifest", number + 1);
            let (digest, path) = line.split_once("  ").with_context(context)?;
            let path = super::unpack::checked_path(path.as_bytes()).with_context(context)?;
            if path <= last.as_str() {
                bail!("{}: {path} is out of order", context());
            }
            last = path.to_owned();
            files.insert(path.to_owned(), digest.parse().with_context(context)?);
        }
        if files.is_empty() {
            bail!("the tree's manifest is empty");
        }
        Ok(Self(files))
    }

    /// Every path.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The digest of one file.
    pub fn digest(&self, path: &str) -> Option<Sha256Digest> {
        self.0.get(path).copied()
    }

    /// Compares the files below `root`, which are `unpacked`, with the manifest.
    ///
    /// # Errors
    /// Names files that are missing, other or not expected.
    pub fn verify<'a>(&self, root: &Path, unpacked: impl Iterator<Item = &'a str>) -> Result<()> {
        let mut missing: BTreeMap<&str, Sha256Digest> = self
            .0
            .iter()
            .map(|(path, digest)| (path.as_str(), *digest))
            .collect();
        let mut wrong = Vec::new();
        for path in unpacked {
            let Some(wanted) = missing.remove(path) else {
                wrong.push(format!("{path}: not in the manifest"));
                continue;
            };
            let bytes =
                std::fs::read(root.join(path)).with_context(|| format!("reading {path}"))?;
            let found = Sha256Digest::of(&bytes);
            if found != wanted {
                wrong.push(format!("{path}: {found} instead of {wanted}"));
            }
        }
        wrong.extend(missing.keys().map(|path| format!("{path}: missing")));
        if wrong.is_empty() {
            return Ok(());
        }
        let count = wrong.len();
        wrong.truncate(SHOWN_MAX);
        bail!(
            "the tree is not the pinned one, {count} differences:\n  {}",
            wrong.join("\n  ")
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(files: &[(&str, &[u8])]) -> TreeManifest {
        let line = |(path, bytes): &(&str, &[u8])| format!("{}  {path}\n", Sha256Digest::of(bytes));
        TreeManifest::parse(&files.iter().map(line).collect::<String>()).unwrap()
    }

    #[test]
    fn a_tree_with_a_file_more_less_or_other_is_not_the_pinned_one() {
        let scratch = tempfile::tempdir().unwrap();
        for (name, bytes) in [("a", b"1"), ("b", b"2"), ("c", b"3")] {
            std::fs::write(scratch.path().join(name), bytes).unwrap();
        }
        let both = manifest(&[("a", b"1"), ("b", b"2")]);
        assert!(both.verify(scratch.path(), ["a", "b"].into_iter()).is_ok());
        let check = |names: &[&'static str]| {
            both.verify(scratch.path(), names.iter().copied())
                .unwrap_err()
                .to_string()
        };
        assert!(check(&["a"]).contains("b: missing"));
        assert!(check(&["a", "b", "c"]).contains("c: not in the manifest"));
        assert!(check(&["a", "a", "b"]).contains("a: not in the manifest"));
        std::fs::write(scratch.path().join("b"), b"x").unwrap();
        assert!(check(&["a", "b"]).contains("b: "));
    }

    #[test]
    fn a_manifest_of_another_form_is_refused() {
        let digest = Sha256Digest::of(b"");
        for text in [
            String::new(),
            format!("{digest} a\n"),
            format!("{digest}  ../a\n"),
            format!("{digest}  b\n{digest}  a\n"),
            format!("{digest}  a\n{digest}  a\n"),
            "zz  a\n".to_owned(),
        ] {
            assert!(TreeManifest::parse(&text).is_err(), "{text:?}");
        }
    }
}
