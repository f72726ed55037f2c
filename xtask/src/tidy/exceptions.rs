//! `ci/tidy.toml`: what may be larger than the rule, and why.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::{Finding, Tree};

const PATH: &str = "ci/tidy.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    exception: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    rule: String,
    subject: String,
    reason: String,
}

/// The exceptions, each with whether a check needed it.
pub struct Exceptions {
    needed: BTreeMap<(String, String), bool>,
    faults: Vec<Finding>,
}

impl Exceptions {
    /// Reads the file; a missing one means that there are none.
    ///
    /// # Errors
    /// When the file is not of its form.
    pub fn read(tree: &Tree) -> Result<Self> {
        let document: Document = match tree.text(PATH) {
            Some(text) => toml::from_str(text).with_context(|| format!("reading {PATH}"))?,
            None => Document {
                exception: Vec::new(),
            },
        };
        let mut faults = Vec::new();
        let mut needed = BTreeMap::new();
        for entry in document.exception {
            if entry.reason.trim().is_empty() {
                faults.push(Finding::new(
                    PATH,
                    0,
                    format!("the exception for {} has no reason", entry.subject),
                ));
            }
            needed.insert((entry.rule, entry.subject), false);
        }
        Ok(Self { needed, faults })
    }

    /// Whether `subject` is excepted from `rule`; asking marks the entry as needed.
    pub fn covers(&mut self, rule: &str, subject: &str) -> bool {
        match self.needed.get_mut(&(rule.to_owned(), subject.to_owned())) {
            Some(needed) => {
                *needed = true;
                true
            }
            None => false,
        }
    }

    /// Entries that no check asked for, and entries without a reason.
    pub fn stale(self) -> Vec<Finding> {
        let unused =
            self.needed
                .into_iter()
                .filter(|(_, needed)| !needed)
                .map(|((rule, subject), _)| {
                    Finding::new(
                        PATH,
                        0,
                        format!("the exception from {rule} for {subject} is no longer needed"),
                    )
                });
        self.faults.into_iter().chain(unused).collect()
    }
}
