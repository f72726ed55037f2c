//! `cargo xtask tidy`: the habits of this house that a tool can check.
//!
//! Each check reads the tracked files of the tree and answers with findings; it
//! must never change one. An exception stands in `ci/tidy.toml` with its reason,
//! and one that is no longer needed is a finding too, so that the list shrinks.

mod edges;
mod exceptions;
mod shape;
mod texts;
mod tree;

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use lazaret_profile::pins::{PROFILE_IDS, PROFILE_V1};

use crate::closure::accepted_inputs_current;
use crate::packages;

pub use exceptions::Exceptions;
pub use tree::Tree;

/// One thing that is not as it should be, at one place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Path relative to the repository's root.
    pub path: String,
    /// Line, from 1; 0 where the whole file is meant.
    pub line: usize,
    /// What is wrong and what to do.
    pub message: String,
}

impl Finding {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// Runs every check and prints the findings; the command `tidy`.
///
/// # Errors
/// When the tree cannot be read; findings give exit code 1.
pub fn main(root: &Path) -> Result<ExitCode> {
    let findings = check(root)?;
    for finding in &findings {
        println!("{finding}");
    }
    eprintln!("tidy: {} findings", findings.len());
    Ok(if findings.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Runs every check over the tree at `root`.
///
/// # Errors
/// When the tree cannot be read; findings are not errors.
pub fn check(root: &Path) -> Result<Vec<Finding>> {
    let tree = Tree::read(root)?;
    let mut exceptions = Exceptions::read(&tree)?;
    let mut findings = Vec::new();
    findings.extend(shape::check(&tree, &mut exceptions));
    findings.extend(edges::check(&tree)?);
    findings.extend(texts::check(&tree, &mut exceptions)?);
    findings.extend(exceptions.stale());
    findings.extend(acceptance(root));
    for (path, _) in packages::differing(root, PROFILE_V1)? {
        let path = path
            .strip_prefix(root)
            .unwrap_or(&path)
            .display()
            .to_string();
        findings.push(Finding::new(
            &path,
            0,
            "is not bound to the accepted closure: cargo xtask packages",
        ));
    }
    findings.sort();
    Ok(findings)
}

/// A profile whose accepted inputs are not this tree's, also where it cannot be built.
fn acceptance(root: &Path) -> Vec<Finding> {
    let stale = PROFILE_IDS.iter().filter_map(|profile| {
        let error = accepted_inputs_current(root, profile).err()?;
        let path = format!("third_party/profiles/{profile}/accepted.json");
        Some(Finding::new(&path, 0, format!("{error:#}")))
    });
    stale.collect()
}
