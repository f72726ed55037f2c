//! The inputs of a profile's closure, and the one digest over them.
//!
//! The digest says whether a closure and its acceptance belong to this tree:
//! pins, policy, lists, the launcher's sources and the sources that build it all.
//! Whatever can change a byte of a closure must be in it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use lazaret_contract::digest::Sha256Digest;
use lazaret_profile::pins::{PROFILE_IDS, Pins};

use super::launcher::{SOURCES, source_files};
use super::layout::Layout;
use super::subset::TreeManifest;

/// The source of our own frozen module.
const OWN_MODULE: &str = "crates/launcher/python/lazaret.py";

/// Sources that decide how a closure is made: directories with everything in them, or files.
const BUILD_SOURCES: [&str; 7] = [
    "xtask/src/closure.rs",
    "xtask/src/closure",
    "crates/profile/src/pins.rs",
    "crates/profile/src/manifest.rs",
    "crates/profile/src/policy.rs",
    "crates/profile/src/policy",
    "crates/profile/src/filter.rs",
];

/// The compiler of the filter lies in a directory beside its module.
const FILTER_SOURCES: &str = "crates/profile/src/filter";

/// One profile's data as it stands in the tree.
#[derive(Debug)]
pub struct Inputs {
    /// The profile.
    pub profile: String,
    /// The pins.
    pub pins: Pins,
    /// The text of `policy.toml`.
    pub policy: String,
    /// The text of `stdlib.txt`.
    pub stdlib: String,
    /// The manifest of CPython's subset.
    pub tree: TreeManifest,
    /// Each input's digest by its path.
    files: BTreeMap<String, Sha256Digest>,
}

impl Inputs {
    /// Reads the inputs of `profile`.
    ///
    /// # Errors
    /// When there is no such profile, or a file is missing or not valid.
    pub fn read(layout: &Layout, profile: &str) -> Result<Self> {
        if !PROFILE_IDS.contains(&profile) {
            bail!(
                "there is no profile {profile:?}; there are: {}",
                PROFILE_IDS.join(", ")
            );
        }
        let mut reader = Reader {
            root: layout.root(),
            files: BTreeMap::new(),
        };
        let directory = format!("third_party/profiles/{profile}");
        let text = reader.text(&format!("{directory}/pins.toml"))?;
        let pins = Pins::parse(&text).with_context(|| format!("reading {directory}/pins.toml"))?;
        if pins.profile != profile {
            bail!("{directory}/pins.toml is of the profile {:?}", pins.profile);
        }
        let cpython = pins.source("cpython").context("the pins lack cpython")?;
        let subset = cpython
            .subset
            .as_ref()
            .context("the pins name no subset of cpython")?;
        let tree_path = format!("{directory}/{}", subset.manifest);
        let tree = TreeManifest::parse(&reader.text(&tree_path)?)
            .with_context(|| format!("reading {tree_path}"))?;
        if let Some(path) = tree.paths().find(|path| !subset.holds(path)) {
            bail!("{tree_path} names {path}, which the subset does not hold");
        }
        let policy = reader.text(&format!("{directory}/policy.toml"))?;
        let stdlib = reader.text(&format!("{directory}/stdlib.txt"))?;
        reader.text(OWN_MODULE)?;
        for name in source_files(layout.root())? {
            reader.text(&format!("{SOURCES}/{name}"))?;
        }
        for path in BUILD_SOURCES.into_iter().chain([FILTER_SOURCES]) {
            reader.all_below(path)?;
        }
        Ok(Self {
            profile: profile.to_owned(),
            pins,
            policy,
            stdlib,
            tree,
            files: reader.files,
        })
    }

    /// The digest over all inputs, with their paths.
    pub fn digest(&self) -> Sha256Digest {
        let lines = self
            .files
            .iter()
            .map(|(path, digest)| format!("{digest}  {path}\n"));
        Sha256Digest::of(lines.collect::<String>().as_bytes())
    }

    /// The digest of one file of the profile, by its name there.
    ///
    /// # Errors
    /// When it is no input.
    pub fn file_digest(&self, name: &str) -> Result<Sha256Digest> {
        let path = format!("third_party/profiles/{}/{name}", self.profile);
        self.files
            .get(&path)
            .copied()
            .with_context(|| format!("{path} is no input"))
    }
}

struct Reader<'a> {
    root: &'a Path,
    files: BTreeMap<String, Sha256Digest>,
}

impl Reader<'_> {
    /// Reads one file and notes its digest.
    fn text(&mut self, path: &str) -> Result<String> {
        let bytes = fs::read(self.root.join(path)).with_context(|| format!("reading {path}"))?;
        self.files.insert(path.to_owned(), Sha256Digest::of(&bytes));
        String::from_utf8(bytes).with_context(|| format!("{path} is not UTF-8"))
    }

    /// Notes a file, or every Rust file below a directory.
    fn all_below(&mut self, path: &str) -> Result<()> {
        let full = self.root.join(path);
        if !full.is_dir() {
            return self.text(path).map(drop);
        }
        for entry in fs::read_dir(&full).with_context(|| format!("listing {path}"))? {
            let entry = entry.with_context(|| format!("listing {path}"))?;
            let name = entry.file_name();
            let name = name
                .to_str()
                .with_context(|| format!("a name in {path} is not UTF-8"))?;
            // Editors leave other files behind; only sources of Rust are compiled.
            if entry.path().is_dir() || name.ends_with(".rs") {
                self.all_below(&format!("{path}/{name}"))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> Layout {
        Layout::new(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()).unwrap()
    }

    #[test]
    fn the_inputs_of_both_profiles_are_complete_and_differ() {
        let digests = PROFILE_IDS.map(|id| Inputs::read(&layout(), id).unwrap().digest());
        assert_ne!(digests[0], digests[1]);
    }

    #[test]
    fn everything_that_can_change_a_closure_is_an_input() {
        let inputs = Inputs::read(&layout(), PROFILE_IDS[0]).unwrap();
        for path in [
            "third_party/profiles/json-python-bwrap-v1/pins.toml",
            "third_party/profiles/json-python-bwrap-v1/policy.toml",
            "third_party/profiles/json-python-bwrap-v1/stdlib.txt",
            "third_party/profiles/json-python-bwrap-v1/cpython-3.12.8.sha256",
            "crates/launcher/c/launcher.c",
            "crates/launcher/c/lazaret_abi.h",
            "crates/launcher/python/lazaret.py",
            "crates/profile/src/filter/compile.rs",
            "xtask/src/closure/origins/git.rs",
            "xtask/src/closure.rs",
        ] {
            assert!(inputs.files.contains_key(path), "{path}");
        }
        let acceptance = inputs.files.keys().find(|path| path.contains("accepted"));
        // The acceptance names the digest of the inputs, so it cannot be one.
        assert!(
            acceptance.is_none_or(|path| path.ends_with(".rs")),
            "{acceptance:?}"
        );
    }

    #[test]
    fn an_unknown_profile_is_refused_with_those_that_exist() {
        let error = Inputs::read(&layout(), "json-python-bwrap-v9")
            .unwrap_err()
            .to_string();
        assert!(error.contains("json-python-bwrap-v1"), "{error}");
    }
}
