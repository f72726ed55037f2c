//! Proof that a receipt stands in a log: C2SP's tlog-proof, one file.
//!
//! Index, hashes and the signed checkpoint, so that a receipt and this file verify
//! without the log. The leaf is never in it: the verifier makes it from the
//! receipt's own bytes. A proof must never be believed for what it says of itself.

use super::checkpoint::{self, CheckpointError, Opened};
use super::entry::{Entry, EntryKind};
use super::merkle::{self, Hash, ProofError};
use crate::base64;
use crate::limits::PROOF_BYTES_MAX;
use crate::trust::TrustStore;

/// First line of every proof.
pub const PROOF_SCHEMA: &str = "c2sp.org/tlog-proof@v1";

/// Most hashes of a proof: one per bit of an index.
const HASHES_MAX: usize = 64;

/// Why a proof is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InclusionError {
    /// Not of the form.
    #[error("proof is not of the form {PROOF_SCHEMA}")]
    Form,
    /// Its checkpoint is refused.
    #[error("{0}")]
    Checkpoint(#[from] CheckpointError),
    /// The receipt is not at that place of that log.
    #[error("receipt is not entry {index} of the log {origin}: {problem}")]
    NotThere {
        /// The index that the proof names.
        index: u64,
        /// The log.
        origin: String,
        /// What is wrong.
        problem: ProofError,
    },
}

/// A proof: whatever it says is unverified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inclusion {
    /// The entry's index.
    pub index: u64,
    /// From the leaf's sibling upwards.
    pub hashes: Vec<Hash>,
    /// The signed checkpoint, verbatim.
    pub checkpoint: Vec<u8>,
}

impl Inclusion {
    /// Its text.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut text = format!("{PROOF_SCHEMA}\nindex {}\n", self.index);
        for hash in &self.hashes {
            text.push_str(&base64::encode(hash.as_bytes()));
            text.push('\n');
        }
        text.push('\n');
        [text.as_bytes(), &self.checkpoint].concat()
    }

    /// Reads exactly what [`Self::to_bytes`] writes. Verifies nothing.
    ///
    /// # Errors
    /// Anything else, the format's optional extra data included: ours has none.
    pub fn parse(bytes: &[u8]) -> Result<Self, InclusionError> {
        let form = InclusionError::Form;
        if bytes.len() > PROOF_BYTES_MAX {
            return Err(form);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| form.clone())?;
        let (head, checkpoint) = text.split_once("\n\n").ok_or(form.clone())?;
        let mut lines = head.split('\n');
        let is_ours = lines.next() == Some(PROOF_SCHEMA);
        let index = lines
            .next()
            .and_then(|line| line.strip_prefix("index "))
            .and_then(|index| index.parse().ok())
            .filter(|_| is_ours)
            .ok_or(form.clone())?;
        let hashes = lines
            .map(|line| Some(Hash::from_bytes(base64::decode(line)?.try_into().ok()?)))
            .collect::<Option<Vec<_>>>()
            .filter(|hashes| hashes.len() <= HASHES_MAX)
            .ok_or(form.clone())?;
        let proof = Self {
            index,
            hashes,
            checkpoint: checkpoint.as_bytes().to_vec(),
        };
        // Refuses a plus sign and leading zeros in the index.
        if proof.to_bytes() == bytes {
            Ok(proof)
        } else {
            Err(form)
        }
    }

    /// Verifies that the log of the checkpoint holds this receipt at the index.
    ///
    /// # Errors
    /// When the checkpoint is refused or the receipt is not there.
    pub fn verify(&self, receipt: &[u8], trust: &TrustStore) -> Result<Opened, InclusionError> {
        let entry = Entry {
            kind: EntryKind::Receipt,
            ..Entry::of_receipt(self.index, receipt)
        };
        let opened = checkpoint::open(&self.checkpoint, trust)?;
        let head = &opened.checkpoint;
        merkle::verify_inclusion(
            &entry.leaf(),
            self.index,
            head.size,
            &self.hashes,
            &head.root,
        )
        .map_err(|problem| InclusionError::NotThere {
            index: self.index,
            origin: head.origin.to_string(),
            problem,
        })?;
        Ok(opened)
    }
}
