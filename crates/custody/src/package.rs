//! An untrusted package directory as owned bytes.
//!
//! The directory is held, walked once in a fixed order, and every file in it is read
//! once through its own descriptor. The result owns its bytes: what is hashed, shown,
//! approved and staged later is exactly them, and nobody goes back to the directory
//! (DESIGN.md section 4, cases C01 to C07).
//!
//! This module must never parse what it reads, and never leave out a file silently:
//! what it does not accept refuses the whole package.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use lazaret_contract::limits;
use lazaret_contract::package::PackageFiles;
use lazaret_contract::problem::Problems;

use crate::ancestry::Trust;
use crate::error::{CustodyError, Refusal};
use crate::facts::{FileFacts, FileKind};
use crate::held::{FileRules, HeldDir};
use crate::name::RelativeName;
use crate::resolve::Resolver;

/// The directories that a package may have, directly below its own.
pub const PACKAGE_DIRECTORIES: [&str; 2] = ["adapters", "evals"];

/// The bytes of a package: every file by its name, in the order of the names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageBytes {
    files: BTreeMap<RelativeName, Vec<u8>>,
    total_bytes: u64,
}

impl PackageBytes {
    /// The files, in the order of their names' bytes.
    #[must_use]
    pub fn files(&self) -> &BTreeMap<RelativeName, Vec<u8>> {
        &self.files
    }

    /// The bytes of one file.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        let name = RelativeName::parse(name.as_bytes()).ok()?;
        self.files.get(&name).map(Vec::as_slice)
    }

    /// The same bytes as the contract's package files, to be inspected and staged.
    ///
    /// # Errors
    /// What the contract refuses and reading did not: a package has fewer names than
    /// a directory can have.
    pub fn into_package_files(self) -> Result<PackageFiles, Problems> {
        PackageFiles::new(
            self.files
                .into_iter()
                .map(|(name, bytes)| (name.to_string(), bytes)),
        )
    }

    /// The bytes of all files together.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }
}

/// Reads packages under given limits.
#[derive(Clone, Copy, Debug)]
pub struct PackageReader {
    /// The most regular files.
    pub files_max: usize,
    /// The most bytes together.
    pub bytes_max: u64,
    /// How names are resolved.
    pub resolver: Resolver,
}

impl Default for PackageReader {
    fn default() -> Self {
        Self {
            files_max: limits::PACKAGE_FILES_MAX,
            bytes_max: limits::PACKAGE_BYTES_MAX as u64,
            resolver: Resolver::default(),
        }
    }
}

/// A directory of a package that is being read.
struct Level {
    dir: HeldDir,
    facts: FileFacts,
    entries: Vec<std::ffi::OsString>,
    prefix: &'static str,
}

impl PackageReader {
    /// Reads the package in the directory `path`.
    ///
    /// # Errors
    /// The first thing that refuses the package, with its path.
    pub fn read(&self, path: &Path, trust: Trust) -> Result<PackageBytes, CustodyError> {
        let root = HeldDir::open_trusted(path, trust)?.with_resolver(self.resolver);
        self.read_held(root, trust)
    }

    /// Reads the package in a directory that is held already.
    ///
    /// # Errors
    /// The first thing that refuses the package, with its path.
    pub fn read_held(&self, root: HeldDir, trust: Trust) -> Result<PackageBytes, CustodyError> {
        let entries_max = self.files_max + PACKAGE_DIRECTORIES.len();
        let top = Level::open(root, "", entries_max)?;
        let mut files = BTreeMap::new();
        let mut total_bytes = 0;
        let mut below = Vec::new();
        for entry in &top.entries {
            let name = top.name_of(entry)?;
            if top.dir.entry_facts(&name)?.kind == FileKind::Directory {
                below.push(top.enter(&name, self.files_max)?);
                continue;
            }
            self.read_one(&top, &name, trust, &mut files, &mut total_bytes)?;
        }
        for level in &below {
            for entry in &level.entries {
                let name = level.name_of(entry)?;
                self.read_one(level, &name, trust, &mut files, &mut total_bytes)?;
            }
        }
        for level in below.iter().chain([&top]) {
            level.require_unchanged(entries_max)?;
        }
        Ok(PackageBytes { files, total_bytes })
    }

    fn read_one(
        &self,
        level: &Level,
        name: &RelativeName,
        trust: Trust,
        files: &mut BTreeMap<RelativeName, Vec<u8>>,
        total_bytes: &mut u64,
    ) -> Result<(), CustodyError> {
        if files.len() == self.files_max {
            return Err(level.dir.fail(Refusal::TooManyFiles {
                limit: self.files_max,
            }));
        }
        let left = self.bytes_max - *total_bytes;
        let bytes = level
            .dir
            .read_file(name, FileRules::untrusted(left, trust.acting_uid))
            .map_err(|error| self.name_the_whole_limit(error))?;
        // Cannot wrap: the read is bounded by what is left.
        *total_bytes += bytes.len() as u64;
        let full = format!("{}{name}", level.prefix);
        let full = RelativeName::parse(full.as_bytes())
            .map_err(|error| level.dir.fail_at(name, error.into()))?;
        files.insert(full, bytes);
        Ok(())
    }

    /// The limit is the package's; what was left of it for one file says nothing.
    fn name_the_whole_limit(&self, error: CustodyError) -> CustodyError {
        match error.refusal {
            Refusal::TooLarge { .. } => CustodyError {
                refusal: Refusal::PackageTooLarge {
                    limit_bytes: self.bytes_max,
                },
                ..error
            },
            _ => error,
        }
    }
}

impl Level {
    fn open(dir: HeldDir, prefix: &'static str, entries_max: usize) -> Result<Self, CustodyError> {
        let facts = dir.facts()?;
        let entries = dir.list(entries_max)?;
        if entries.is_empty() {
            return Err(dir.fail(Refusal::EmptyDirectory));
        }
        Ok(Self {
            dir,
            facts,
            entries,
            prefix,
        })
    }

    fn enter(&self, name: &RelativeName, entries_max: usize) -> Result<Self, CustodyError> {
        let prefix = match name.as_str() {
            "adapters" => "adapters/",
            "evals" => "evals/",
            _ => return Err(self.dir.fail_at(name, Refusal::UnexpectedDirectory)),
        };
        Self::open(self.dir.open_dir(name)?, prefix, entries_max)
    }

    fn name_of(&self, entry: &std::ffi::OsStr) -> Result<RelativeName, CustodyError> {
        RelativeName::parse(entry.as_bytes())
            .map_err(|error| CustodyError::new(&self.dir.path().join(entry), error))
    }

    /// A directory whose entries changed while they were read shows it in its times,
    /// and, should those be too coarse, in its entries.
    fn require_unchanged(&self, entries_max: usize) -> Result<(), CustodyError> {
        let unchanged =
            self.dir.facts()? == self.facts && self.dir.list(entries_max)? == self.entries;
        if unchanged {
            Ok(())
        } else {
            Err(self.dir.fail(Refusal::Changed))
        }
    }
}
