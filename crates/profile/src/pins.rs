//! Pins: every source, tool and option that a closure is built from, as data.
//!
//! This module reads `third_party/profiles/<id>/pins.toml` strictly: an unknown
//! key, a missing digest, a path that leaves its place or an origin that is not
//! one of the known kinds is an error, never a default. It takes text and gives
//! values; it must never open a file, reach for the network or start a process.

use std::collections::{BTreeMap, BTreeSet};

use lazaret_contract::digest::Sha256Digest;
use serde::{Deserialize, Serialize};

/// The accepted profile, the only one that serves by default (DESIGN.md section 2).
pub const PROFILE_V1: &str = "json-python-bwrap-v1";

/// The candidate profile, how the next release is rehearsed before review.
pub const PROFILE_V2_CANDIDATE: &str = "json-python-bwrap-v2-candidate";

/// Every profile of this tree, the serving one first.
pub const PROFILE_IDS: [&str; 2] = [PROFILE_V1, PROFILE_V2_CANDIDATE];

/// The version of the format that [`Pins::parse`] reads.
pub const PINS_SCHEMA: &str = "lazaret-pins/1";

/// The text in options that stands for the stage's own working directory.
pub const WORK_PLACEHOLDER: &str = "@WORK@";

/// Why a text is not a valid set of pins.
#[derive(Debug, thiserror::Error)]
pub enum PinsError {
    /// Not TOML, or not of the expected shape.
    #[error("pins are not of the expected form: {0}")]
    Form(#[from] toml::de::Error),
    /// Well-formed, but a value breaks a rule.
    #[error("pins break a rule at {place}: {rule}")]
    Rule {
        /// Which value, for example `source bubblewrap`.
        place: String,
        /// The rule that it breaks.
        rule: &'static str,
    },
}

/// Whether a profile may serve by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProfileStatus {
    /// The accepted profile.
    Accepted,
    /// Used only where an operator asks for it by name, and called *candidate* everywhere.
    Candidate,
}

/// One place that a pinned file may come from. The order in the pins is the order of trying.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Origin {
    /// The user's cache of files by digest.
    Cache,
    /// Upstream's own release.
    Release {
        /// An https address.
        url: String,
    },
    /// A file of a Debian source package, from the mirror that apt is configured with.
    Debian {
        /// The source package.
        source: String,
        /// Its version, for the record; the digest decides.
        version: String,
        /// The file's name in the pool.
        file: String,
    },
    /// A tag of a git repository that the caller names by `--git-mirror`.
    Git {
        /// The name that `--git-mirror NAME=PATH` uses.
        mirror: String,
        /// Upstream's repository, for the reader; it is not contacted.
        repository: String,
        /// The release's tag.
        tag: String,
        /// The commit that the tag must resolve to: 40 hexadecimal digits.
        commit: String,
    },
    /// A wheel, by the Python package installer with required hashes.
    Wheel,
}

/// Bounds of an archive, checked while it is unpacked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArchiveBounds {
    /// At most this many entries.
    pub entries_max: u64,
    /// At most this many bytes in all files together.
    pub unpacked_bytes_max: u64,
    /// At most this many bytes in one file.
    pub file_bytes_max: u64,
}

/// The part of a source tree that the build reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subset {
    /// The manifest beside the pins, one `SHA-256  path` per line, that the whole must equal.
    pub manifest: String,
    /// Files, or directories with everything below them.
    pub include: Vec<String>,
    /// What is left out again, below an included directory.
    pub exclude: Vec<String>,
}

impl Subset {
    /// Whether `path`, relative to the source's top directory, belongs to the subset.
    pub fn holds(&self, path: &str) -> bool {
        let under = |set: &[String]| set.iter().any(|prefix| is_or_below(path, prefix));
        under(&self.include) && !under(&self.exclude)
    }
}

fn is_or_below(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// One source archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Our name for it.
    pub name: String,
    /// Upstream's version.
    pub version: String,
    /// SPDX expression, for the bill of materials.
    pub licence: String,
    /// The archive's file name.
    pub archive: String,
    /// Digest of the archive's bytes.
    pub sha256: Sha256Digest,
    /// Exact size of the archive, where it is known; a bound otherwise.
    pub archive_bytes_max: u64,
    /// The one directory that every entry of the archive lies in.
    pub top: String,
    /// Symbolic links that the archive holds and the build does not need, by path below `top`.
    /// They are skipped; any other link is refused.
    #[serde(default)]
    pub skipped_links: Vec<String>,
    /// Bounds while unpacking.
    pub bounds: ArchiveBounds,
    /// Where it may come from, in order.
    pub origins: Vec<Origin>,
    /// Which part of it the build reads; everything when absent.
    pub subset: Option<Subset>,
}

/// One wheel of the toolchain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wheel {
    /// The package's name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// SPDX expression.
    pub licence: String,
    /// The wheel's file name.
    pub archive: String,
    /// Digest of the wheel's bytes.
    pub sha256: Sha256Digest,
    /// Bound of the wheel's size.
    pub archive_bytes_max: u64,
    /// Bounds while unpacking.
    pub bounds: ArchiveBounds,
    /// Where it may come from, in order.
    pub origins: Vec<Origin>,
}

/// What is compiled and linked with, whatever the component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommonOptions {
    /// The compiler's target triple.
    pub target: String,
    /// The compiler's processor model.
    pub cpu: String,
    /// `SOURCE_DATE_EPOCH`, and the time of every unpacked file, in seconds.
    pub source_date_epoch: u64,
    /// Flags of every object.
    pub cflags: Vec<String>,
    /// Flags of every link.
    pub ldflags: Vec<String>,
}

/// How libcap is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LibcapOptions {
    /// Flags besides the common ones.
    pub cflags: Vec<String>,
    /// Arguments of make.
    pub make: Vec<String>,
}

/// How bubblewrap is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BubblewrapOptions {
    /// Flags besides the common ones.
    pub cflags: Vec<String>,
    /// Arguments of `meson setup`. `assume_kernel` must not be among them (ADR-013).
    pub meson: Vec<String>,
}

/// How CPython is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpythonOptions {
    /// CPython's version, as `sys.version_info` gives it.
    pub version: String,
    /// Flags besides the common ones.
    pub cflags: Vec<String>,
    /// Arguments of configure.
    pub configure: Vec<String>,
    /// Variables of configure that are set beforehand: what would else be found out by running
    /// programs on the host.
    pub preset: BTreeMap<String, String>,
    /// Variables of make.
    pub make: Vec<String>,
    /// Extension modules that must be built in, exactly these.
    pub modules_in: Vec<String>,
    /// Extension modules that are switched off.
    pub modules_out: Vec<String>,
    /// Static libraries of CPython's own sources that the launcher links, besides libpython.
    pub libraries: Vec<String>,
}

/// How the launcher is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LauncherOptions {
    /// Flags besides the common ones, for the sources that people read.
    pub cflags: Vec<String>,
    /// Flags besides the common ones, for the generated table of frozen modules.
    pub frozen_cflags: Vec<String>,
    /// Flags of the link besides the common ones.
    pub ldflags: Vec<String>,
}

/// Every build option.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// For everything.
    pub common: CommonOptions,
    /// For libcap.
    pub libcap: LibcapOptions,
    /// For bubblewrap.
    pub bubblewrap: BubblewrapOptions,
    /// For CPython.
    pub cpython: CpythonOptions,
    /// For the launcher.
    pub launcher: LauncherOptions,
}

/// The contents of one `pins.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pins {
    /// [`PINS_SCHEMA`].
    pub schema: String,
    /// Which profile these pins are of.
    pub profile: String,
    /// Whether it may serve by default.
    pub status: ProfileStatus,
    /// Every build option.
    pub options: Options,
    /// The sources.
    #[serde(rename = "source")]
    pub sources: Vec<Source>,
    /// The toolchain.
    #[serde(rename = "wheel")]
    pub wheels: Vec<Wheel>,
}

impl Pins {
    /// Reads the text of a `pins.toml`.
    ///
    /// # Errors
    /// When the text has another form or breaks a rule of this module.
    pub fn parse(text: &str) -> Result<Self, PinsError> {
        let pins: Self = toml::from_str(text)?;
        pins.check()?;
        Ok(pins)
    }

    /// The source called `name`.
    pub fn source(&self, name: &str) -> Option<&Source> {
        self.sources.iter().find(|source| source.name == name)
    }

    /// The wheel called `name`.
    pub fn wheel(&self, name: &str) -> Option<&Wheel> {
        self.wheels.iter().find(|wheel| wheel.name == name)
    }

    fn check(&self) -> Result<(), PinsError> {
        require(
            self.schema == PINS_SCHEMA,
            "schema",
            "the schema is not lazaret-pins/1",
        )?;
        require(
            PROFILE_IDS.contains(&self.profile.as_str()),
            "profile",
            "no profile of this tree has this id",
        )?;
        self.check_options()?;
        let mut names = BTreeSet::new();
        for source in &self.sources {
            let place = format!("source {}", source.name);
            require(
                names.insert(source.name.as_str()),
                &place,
                "the name is used twice",
            )?;
            check_source(source, &place)?;
        }
        for wheel in &self.wheels {
            let place = format!("wheel {}", wheel.name);
            require(
                names.insert(wheel.name.as_str()),
                &place,
                "the name is used twice",
            )?;
            check_file(
                &wheel.archive,
                wheel.archive_bytes_max,
                &wheel.bounds,
                &place,
            )?;
            check_origins(&wheel.origins, &place)?;
        }
        Ok(())
    }

    fn check_options(&self) -> Result<(), PinsError> {
        let options = &self.options;
        let meson = &options.bubblewrap.meson;
        require(
            !meson
                .iter()
                .any(|argument| argument.contains("assume_kernel")),
            "options.bubblewrap.meson",
            "assume_kernel must be left unset",
        )?;
        let cpython = &options.cpython;
        let both = cpython
            .modules_in
            .iter()
            .any(|name| cpython.modules_out.contains(name));
        require(!both, "options.cpython", "a module is both in and out")?;
        require(
            cpython.libraries.iter().all(|path| is_plain_path(path)),
            "options.cpython.libraries",
            "a path leaves the source tree",
        )
    }
}

fn check_source(source: &Source, place: &str) -> Result<(), PinsError> {
    check_file(
        &source.archive,
        source.archive_bytes_max,
        &source.bounds,
        place,
    )?;
    require(
        is_plain_name(&source.top),
        place,
        "top is not one plain name",
    )?;
    require(
        source.skipped_links.iter().all(|path| is_plain_path(path)),
        place,
        "a skipped link's path leaves the archive",
    )?;
    if let Some(subset) = &source.subset {
        require(
            is_plain_name(&subset.manifest),
            place,
            "the manifest is not one plain name",
        )?;
        require(
            !subset.include.is_empty(),
            place,
            "the subset includes nothing",
        )?;
        require(
            subset
                .include
                .iter()
                .chain(&subset.exclude)
                .all(|path| is_plain_path(path)),
            place,
            "a path of the subset leaves the source tree",
        )?;
    }
    let has_git = source
        .origins
        .iter()
        .any(|origin| matches!(origin, Origin::Git { .. }));
    require(
        !has_git || source.subset.is_some(),
        place,
        "a git origin needs a subset with a manifest",
    )?;
    check_origins(&source.origins, place)
}

fn check_file(
    archive: &str,
    archive_bytes_max: u64,
    bounds: &ArchiveBounds,
    place: &str,
) -> Result<(), PinsError> {
    require(
        is_plain_name(archive),
        place,
        "the archive is not one plain name",
    )?;
    let numbers = [
        archive_bytes_max,
        bounds.entries_max,
        bounds.unpacked_bytes_max,
        bounds.file_bytes_max,
    ];
    require(
        numbers.iter().all(|&number| number > 0),
        place,
        "a bound is zero",
    )
}

fn check_origins(origins: &[Origin], place: &str) -> Result<(), PinsError> {
    require(!origins.is_empty(), place, "no origin is named")?;
    for origin in origins {
        match origin {
            Origin::Cache | Origin::Wheel => {}
            Origin::Release { url } => {
                require(
                    url.starts_with("https://"),
                    place,
                    "a release address is not https",
                )?;
            }
            Origin::Debian { source, file, .. } => require(
                is_plain_name(source) && is_plain_name(file),
                place,
                "a Debian name is not one plain name",
            )?,
            Origin::Git {
                mirror,
                tag,
                commit,
                ..
            } => {
                require(
                    is_plain_name(mirror),
                    place,
                    "the mirror's name is not plain",
                )?;
                require(is_plain_name(tag), place, "the tag is not plain")?;
                let hex = commit.len() == 40
                    && commit
                        .bytes()
                        .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
                require(
                    hex,
                    place,
                    "the commit is not 40 lower-case hexadecimal digits",
                )?;
            }
        }
    }
    Ok(())
}

fn require(holds: bool, place: &str, rule: &'static str) -> Result<(), PinsError> {
    if holds {
        Ok(())
    } else {
        Err(PinsError::Rule {
            place: place.to_owned(),
            rule,
        })
    }
}

/// One component of a path: nothing that a file system or a command line could read as more.
fn is_plain_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._+~-".contains(&b);
    !name.is_empty() && !name.starts_with(['.', '-']) && name.bytes().all(plain)
}

/// A relative path of components none of which is empty, `.` or `..`.
fn is_plain_path(path: &str) -> bool {
    path.split('/').all(|part| {
        !matches!(part, "" | "." | "..") && !part.bytes().any(|b| b < 0x20 || b == b'\\')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = include_str!("../../../third_party/profiles/json-python-bwrap-v1/pins.toml");
    const CANDIDATE: &str =
        include_str!("../../../third_party/profiles/json-python-bwrap-v2-candidate/pins.toml");

    fn rule_of(text: &str) -> &'static str {
        match Pins::parse(text) {
            Err(PinsError::Rule { rule, .. }) => rule,
            other => panic!("a broken rule is wanted, not {other:?}"),
        }
    }

    #[test]
    fn the_pins_of_both_profiles_are_valid_and_name_their_profile() {
        let v1 = Pins::parse(V1).unwrap();
        assert_eq!(v1.profile, PROFILE_V1);
        assert_eq!(v1.status, ProfileStatus::Accepted);
        let candidate = Pins::parse(CANDIDATE).unwrap();
        assert_eq!(candidate.profile, PROFILE_V2_CANDIDATE);
        assert_eq!(candidate.status, ProfileStatus::Candidate);
    }

    #[test]
    fn the_digests_are_those_of_the_design() {
        let v1 = Pins::parse(V1).unwrap();
        let candidate = Pins::parse(CANDIDATE).unwrap();
        let digest = |pins: &Pins, name: &str| pins.source(name).unwrap().sha256.to_string();
        for pins in [&v1, &candidate] {
            assert_eq!(
                digest(pins, "bubblewrap"),
                "9760d007363e3abba7c747489910f9f82d9fca53ba3bd3282e396fa3c97a3314"
            );
            assert_eq!(
                digest(pins, "libcap"),
                "de4e7e064c9ba451d5234dd46e897d7c71c96a9ebf9a0c445bc04f4742d83632"
            );
        }
        assert_eq!(
            digest(&v1, "cpython"),
            "c909157bb25ec114e5869124cc2a9c4a4d4c1e957ca4ff553f1edc692101154e"
        );
        assert_eq!(
            digest(&candidate, "cpython"),
            "93e583f243454e6e9e4588ca2c2662206ad961659863277afcdb96801647d640"
        );
    }

    #[test]
    fn the_dangerous_modules_are_out_of_both_profiles() {
        for text in [V1, CANDIDATE] {
            let pins = Pins::parse(text).unwrap();
            for module in [
                "_ctypes",
                "_socket",
                "select",
                "mmap",
                "_posixsubprocess",
                "_multiprocessing",
                "fcntl",
                "resource",
                "zlib",
                "_bz2",
                "_lzma",
                "pyexpat",
                "_ssl",
                "_sqlite3",
            ] {
                let out = &pins.options.cpython.modules_out;
                assert!(
                    out.iter().any(|name| name == module),
                    "{module} is not switched off"
                );
            }
        }
    }

    #[test]
    fn an_unknown_key_is_an_error() {
        let text = CANDIDATE.replacen("[options.libcap]", "[options.libcap]\nextra = 1", 1);
        assert!(matches!(Pins::parse(&text), Err(PinsError::Form(_))));
    }

    #[test]
    fn assume_kernel_cannot_be_set() {
        let text = CANDIDATE.replacen("\"-Dselinux=disabled\"", "\"-Dassume_kernel=6.1.0\"", 1);
        assert_eq!(rule_of(&text), "assume_kernel must be left unset");
    }

    #[test]
    fn a_release_is_fetched_by_https_only() {
        let text = CANDIDATE.replacen("https://", "http://", 1);
        assert_eq!(rule_of(&text), "a release address is not https");
    }

    #[test]
    fn a_path_that_leaves_its_place_is_refused() {
        let text = CANDIDATE.replacen("top = \"bubblewrap-0.12.0\"", "top = \"../x\"", 1);
        assert_eq!(rule_of(&text), "top is not one plain name");
        for path in ["../a", "a/../b", "/a", "a//b", ".", "a\\b", ""] {
            assert!(!is_plain_path(path), "{path:?}");
        }
    }

    #[test]
    fn a_subset_takes_whole_components_and_leaves_out_again() {
        let subset = Subset {
            manifest: "m.sha256".into(),
            include: vec!["Lib".into(), "configure".into()],
            exclude: vec!["Lib/test".into()],
        };
        for path in ["Lib/abc.py", "Lib/testing.py", "configure"] {
            assert!(subset.holds(path), "{path}");
        }
        for path in [
            "Library/x",
            "Lib/test/a.py",
            "Lib/test",
            "configure.ac",
            "Doc/a",
        ] {
            assert!(!subset.holds(path), "{path}");
        }
    }
}
