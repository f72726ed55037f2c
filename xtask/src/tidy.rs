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

use anyhow::Result;

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
        Self { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.path, self.line, self.message)
    }
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
    findings.sort();
    Ok(findings)
}
