//! The record of a build, the pointer to its closure, and the differences between two.
//!
//! The record lies beside the closure: origins, times, the host's part. None of it
//! is in the closure's digest.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};
use lazaret_contract::digest::Sha256Digest;
use lazaret_profile::accepted::Accepted;
use lazaret_profile::manifest::{ClosureManifest, EffectiveOptions, Role, ToolFact};
use lazaret_profile::pins::Options;
use serde::{Deserialize, Serialize};

use super::layout::{Layout, write_atomically};
use super::origins::Provenance;
use super::progress::StageReport;
use super::runner::HostFacts;

/// The version of the record's format.
pub const RECORD_SCHEMA: &str = "lazaret-build-record/1";

const CURRENT_SCHEMA: &str = "lazaret-current-closure/1";

/// How many differences between two manifests are shown.
const DIFFERENCES_SHOWN_MAX: usize = 40;

/// What a closure is, measured against `accepted.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// Its digest is the accepted one, and so are the inputs.
    Accepted,
    /// Its digest is the accepted one, but the inputs have changed since.
    Stale,
    /// Nobody has accepted it; it does not serve.
    Unreviewed,
}

/// What gave a closure to this invocation.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum How {
    /// It was built here.
    Built,
    /// It was copied from the user's cache and verified against `accepted.json`.
    Cache,
}

/// The contents of a build record.
#[derive(Debug, Serialize)]
pub struct BuildRecord<'a> {
    /// [`RECORD_SCHEMA`].
    pub schema: &'a str,
    /// The profile.
    pub profile: &'a str,
    /// The closure's digest.
    pub closure: Sha256Digest,
    /// The digest of the inputs.
    pub inputs: Sha256Digest,
    /// Its standing when this record was written.
    pub standing: Standing,
    /// What gave the closure.
    pub how: How,
    /// Each file of the closure with its digest.
    pub files: BTreeMap<String, Sha256Digest>,
    /// Every option as the pins ask for it.
    pub options: &'a Options,
    /// The options as they took effect, `assume_kernel` among them.
    pub effective_options: &'a EffectiveOptions,
    /// The toolchain.
    pub toolchain: &'a [ToolFact],
    /// Where each source came from, every try included.
    pub origins: Vec<Provenance>,
    /// What the host contributed, if anything was built.
    pub host: Option<HostFacts>,
    /// The stages with their times.
    pub stages: Vec<StageReport>,
    /// How long the whole invocation took, in milliseconds.
    pub elapsed_ms: u64,
}

impl BuildRecord<'_> {
    /// The record's text.
    ///
    /// # Errors
    /// When it cannot be serialised.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec_pretty(self).context("serialising the build record")?;
        bytes.push(b'\n');
        Ok(bytes)
    }
}

/// Each file's digest in a manifest.
pub fn file_digests(manifest: &ClosureManifest) -> BTreeMap<String, Sha256Digest> {
    manifest
        .files
        .iter()
        .map(|file| (file.path.clone(), file.sha256))
        .collect()
}

/// Which closure the inputs of a tree gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Current {
    schema: String,
    /// The profile.
    pub profile: String,
    /// The closure's digest.
    pub closure: Sha256Digest,
    /// The digest of the inputs that gave it.
    pub inputs: Sha256Digest,
}

impl Current {
    /// A pointer to `closure`.
    pub fn new(profile: &str, closure: Sha256Digest, inputs: Sha256Digest) -> Self {
        Self {
            schema: CURRENT_SCHEMA.to_owned(),
            profile: profile.to_owned(),
            closure,
            inputs,
        }
    }

    /// Reads the pointer of a profile; a missing or invalid one is none.
    pub fn read(layout: &Layout, profile: &str) -> Option<Self> {
        let bytes = fs::read(layout.current(profile)).ok()?;
        let current: Self = serde_json::from_slice(&bytes).ok()?;
        (current.schema == CURRENT_SCHEMA && current.profile == profile).then_some(current)
    }

    /// Writes the pointer.
    ///
    /// # Errors
    /// When it cannot be written; the former one is then still there.
    pub fn write(&self, layout: &Layout) -> Result<()> {
        let mut bytes =
            serde_json::to_vec_pretty(self).context("serialising the current closure")?;
        bytes.push(b'\n');
        write_atomically(&layout.current(&self.profile), &bytes, 0o444)
    }
}

/// The standing of a closure.
pub fn standing(
    accepted: Option<&Accepted>,
    closure: Sha256Digest,
    inputs: Sha256Digest,
) -> Standing {
    match accepted {
        Some(accepted) if accepted.closure == closure && accepted.inputs == inputs => {
            Standing::Accepted
        }
        Some(accepted) if accepted.closure == closure => Standing::Stale,
        _ => Standing::Unreviewed,
    }
}

/// The difference between what is accepted and what was built, line by line.
pub fn difference(
    accepted: Option<&Accepted>,
    manifest: &ClosureManifest,
    closure: Sha256Digest,
    inputs: Sha256Digest,
) -> Vec<String> {
    let Some(accepted) = accepted else {
        return vec!["nothing is accepted yet for this profile".to_owned()];
    };
    let digest = |role| manifest.file(role).map(|file| file.sha256);
    let rows = [
        ("closure", Some(closure), accepted.closure),
        ("bwrap", digest(Role::Bwrap), accepted.bwrap),
        ("launcher", digest(Role::Launcher), accepted.launcher),
        ("filter.bpf", digest(Role::Filter), accepted.filter),
        ("inputs", Some(inputs), accepted.inputs),
    ];
    let row = |(name, built, accepted): (&str, Option<Sha256Digest>, Sha256Digest)| match built {
        Some(built) if built == accepted => format!("{name:<10} same      {built}"),
        Some(built) => format!("{name:<10} differs   {built}, accepted {accepted}"),
        None => format!("{name:<10} missing   accepted {accepted}"),
    };
    rows.into_iter().map(row).collect()
}

/// Where two manifests differ, by path inside the JSON. Lists whose entries have a name or a path
/// are compared by it.
///
/// # Errors
/// When a manifest cannot be serialised.
pub fn manifest_difference(old: &ClosureManifest, new: &ClosureManifest) -> Result<Vec<String>> {
    let flat = |manifest: &ClosureManifest| -> Result<BTreeMap<String, String>> {
        let value = serde_json::to_value(manifest).context("serialising a manifest")?;
        let mut flat = BTreeMap::new();
        flatten(String::new(), &value, &mut flat);
        Ok(flat)
    };
    let (old, new) = (flat(old)?, flat(new)?);
    let mut lines = Vec::new();
    for (path, value) in &old {
        match new.get(path) {
            Some(now) if now == value => {}
            Some(now) => lines.push(format!("{path}: {value} became {now}")),
            None => lines.push(format!("{path}: {value} is gone")),
        }
    }
    for (path, value) in new.iter().filter(|(path, _)| !old.contains_key(*path)) {
        lines.push(format!("{path}: {value} is new"));
    }
    if lines.len() > DIFFERENCES_SHOWN_MAX {
        let more = lines.len() - DIFFERENCES_SHOWN_MAX;
        lines.truncate(DIFFERENCES_SHOWN_MAX);
        lines.push(format!("and {more} more"));
    }
    Ok(lines)
}

fn flatten(path: String, value: &serde_json::Value, flat: &mut BTreeMap<String, String>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                let path = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                flatten(path, value, flat);
            }
        }
        serde_json::Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let label = ["name", "path"]
                    .iter()
                    .find_map(|field| item.get(field)?.as_str());
                let label = label.map_or_else(|| index.to_string(), str::to_owned);
                flatten(format!("{path}[{label}]"), item, flat);
            }
        }
        scalar => {
            flat.insert(path, scalar.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::assemble::tests::sample;
    use super::*;
    use lazaret_profile::accepted::ACCEPTED_SCHEMA;

    fn accepted(manifest: &ClosureManifest) -> Accepted {
        let digest = |role| manifest.file(role).unwrap().sha256;
        Accepted {
            schema: ACCEPTED_SCHEMA.to_owned(),
            profile: manifest.profile.clone(),
            closure: manifest.digest().unwrap(),
            bwrap: digest(Role::Bwrap),
            launcher: digest(Role::Launcher),
            filter: digest(Role::Filter),
            inputs: Sha256Digest::of(b"inputs"),
            review: None,
        }
    }

    #[test]
    fn the_difference_names_each_file_that_differs() {
        let old = sample(b"launcher").manifest;
        let new = sample(b"launchEr").manifest;
        let acceptance = accepted(&old);
        let digest = new.digest().unwrap();
        let lines = difference(Some(&acceptance), &new, digest, acceptance.inputs);
        let differing: Vec<&str> = lines
            .iter()
            .filter(|line| line.contains("differs"))
            .filter_map(|line| line.split_whitespace().next())
            .collect();
        assert_eq!(differing, ["closure", "launcher"]);
        let inside = manifest_difference(&old, &new).unwrap();
        assert_eq!(inside.len(), 1, "{inside:?}");
        assert!(
            inside[0].starts_with("files[launcher].sha256: "),
            "{inside:?}"
        );
    }

    #[test]
    fn only_the_accepted_digest_with_the_accepted_inputs_is_accepted() {
        let manifest = sample(b"launcher").manifest;
        let acceptance = accepted(&manifest);
        let digest = manifest.digest().unwrap();
        let other = Sha256Digest::of(b"other");
        assert_eq!(
            standing(Some(&acceptance), digest, acceptance.inputs),
            Standing::Accepted
        );
        assert_eq!(standing(Some(&acceptance), digest, other), Standing::Stale);
        assert_eq!(
            standing(Some(&acceptance), other, acceptance.inputs),
            Standing::Unreviewed
        );
        assert_eq!(standing(None, digest, other), Standing::Unreviewed);
    }

    #[test]
    fn the_pointer_reads_back_and_another_profiles_is_none() {
        let scratch = tempfile::tempdir().unwrap();
        let layout = Layout::new(&scratch.path().join("repo")).unwrap();
        layout.make_directories("a").unwrap();
        layout.make_directories("b").unwrap();
        let current = Current::new("a", Sha256Digest::of(b"c"), Sha256Digest::of(b"i"));
        current.write(&layout).unwrap();
        assert_eq!(Current::read(&layout, "a"), Some(current));
        fs::copy(layout.current("a"), layout.current("b")).unwrap();
        assert_eq!(Current::read(&layout, "b"), None);
        fs::remove_file(layout.current("a")).unwrap();
        fs::write(layout.current("a"), b"{").unwrap();
        assert_eq!(Current::read(&layout, "a"), None);
    }
}
