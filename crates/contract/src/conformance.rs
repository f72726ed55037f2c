//! The conformance corpus: documents with the verdict that both sides owe.
//!
//! Rust outside the sandbox and Python inside it must give every case the same
//! verdict, and accepted documents the same bytes. The cases come from four
//! places: public bug reports of other projects (A01 to A11), our own rules at
//! their edges, documents made from a seed, and, where the folder of
//! conformance data is at hand, a public test suite with expected results and a
//! table of doubles.
//!
//! Only tests use this module; it is the one place of the crate that opens
//! files.

mod cases;
mod folder;
mod generated;

pub use cases::{public_report_cases, rule_cases};
pub use folder::{Corpus, CorpusError, open_corpus};
pub use generated::generated_cases;

use crate::digest::Sha256Digest;
use crate::json::JsonErrorKind;

/// One document and what is owed for it.
#[derive(Debug, Clone)]
pub struct Case {
    /// A short name, unique in its list.
    pub name: String,
    /// The document.
    pub input: Vec<u8>,
    /// The verdict owed.
    pub expected: Expected,
}

/// The verdict owed for a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Accepted, and formatted to these bytes.
    Accept {
        /// Size of the formatted document.
        output_bytes: usize,
        /// Its digest.
        output_sha256: Sha256Digest,
    },
    /// Refused for this reason.
    Reject(JsonErrorKind),
}

impl Case {
    fn accept(name: impl Into<String>, input: impl Into<Vec<u8>>, output: &[u8]) -> Self {
        let expected = Expected::Accept {
            output_bytes: output.len(),
            output_sha256: Sha256Digest::of(output),
        };
        Self {
            name: name.into(),
            input: input.into(),
            expected,
        }
    }

    fn reject(name: impl Into<String>, input: impl Into<Vec<u8>>, reason: JsonErrorKind) -> Self {
        Self {
            name: name.into(),
            input: input.into(),
            expected: Expected::Reject(reason),
        }
    }

    /// Compares what an implementation gave, formatted bytes or a reason, with
    /// what is owed. An error says what differs.
    pub fn judge(&self, given: Result<&[u8], JsonErrorKind>) -> Result<(), String> {
        let given = match given {
            Ok(output) => Expected::Accept {
                output_bytes: output.len(),
                output_sha256: Sha256Digest::of(output),
            },
            Err(reason) => Expected::Reject(reason),
        };
        if given == self.expected {
            return Ok(());
        }
        Err(format!(
            "{}: owed {:?}, given {given:?}",
            self.name, self.expected
        ))
    }
}
