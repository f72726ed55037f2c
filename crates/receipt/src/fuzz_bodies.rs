//! What the fuzz targets check, as functions.
//!
//! `fuzz/` calls them with random bytes; a normal test calls them with the corpus in
//! the tree, on the stable compiler. Each asserts properties and returns; none may
//! ever panic otherwise. What is accepted must be exactly what we would have written.

use crate::envelope::Envelope;
use crate::keys::SigningPair;
use crate::log::file::LogFile;
use crate::log::note::Note;
use crate::log::proof::Inclusion;
use crate::log::{checkpoint, merkle};
use crate::statement::Statement;
use crate::trust::TrustStore;
use crate::{Expectations, show, verify};

fn is_printable(text: &str) -> bool {
    text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// Envelopes: one text, and no bytes verify without a key.
pub fn receipt_envelope(bytes: &[u8]) {
    match Envelope::parse(bytes) {
        Ok(envelope) => assert_eq!(envelope.to_bytes(), bytes),
        Err(error) => assert!(is_printable(&error.to_string())),
    }
    assert!(verify(bytes, &TrustStore::default(), &Expectations::default()).is_err());
}

/// Statements: one text, and what is shown of one is plain.
pub fn receipt_statement(bytes: &[u8]) {
    match Statement::parse(bytes) {
        Ok(statement) => {
            assert_eq!(statement.to_bytes().as_deref(), Ok(bytes));
            assert!(
                show::statement(&statement)
                    .iter()
                    .all(|line| is_printable(line))
            );
        }
        Err(error) => assert!(is_printable(&error.to_string())),
    }
}

/// Notes, checkpoints and proofs: one text, and nothing opens without a key.
pub fn receipt_note(bytes: &[u8]) {
    if let Ok(note) = Note::parse(bytes) {
        assert_eq!(note.to_bytes(), bytes);
    }
    let trust = TrustStore::default();
    assert!(checkpoint::open(bytes, &trust).is_err());
    if let Ok(proof) = Inclusion::parse(bytes) {
        assert_eq!(proof.to_bytes(), bytes);
        assert!(proof.verify(b"receipt", &trust).is_err());
    }
}

/// Logs: one text, and every entry is provable in it.
pub fn receipt_log(bytes: &[u8]) {
    let Ok(log) = LogFile::parse(bytes) else {
        return;
    };
    assert_eq!(log.to_bytes(), bytes);
    let leaves: Vec<_> = log.entries().iter().map(|entry| entry.leaf()).collect();
    let size = log.size();
    assert_eq!(log.root_at(size), Some(merkle::root(&leaves)));
    let Some(last) = log.entries().last() else {
        return;
    };
    let proof = log.inclusion(last.index, size, Vec::new());
    let root = merkle::root(&leaves);
    let verified = proof.is_some_and(|proof| {
        merkle::verify_inclusion(&last.leaf(), last.index, size, &proof.hashes, &root).is_ok()
    });
    assert!(verified);
}

/// Trust files and key files: what is read is written back the same.
pub fn receipt_keys(bytes: &[u8]) {
    match TrustStore::parse(bytes) {
        Ok(trust) => {
            let again = TrustStore::parse(&trust.to_bytes());
            assert!(again.is_ok_and(|again| again.keys().eq(trust.keys())));
        }
        Err(error) => assert!(is_printable(&error.to_string())),
    }
    if let Ok(pair) = SigningPair::from_file(bytes) {
        assert_eq!(pair.to_file().as_slice(), bytes);
    }
}

/// A fuzz body: it returns, or an assertion fails.
pub type Body = fn(&[u8]);

/// Every body with the name of its target and of its corpus folder.
pub const BODIES: &[(&str, Body)] = &[
    ("receipt_envelope", receipt_envelope),
    ("receipt_statement", receipt_statement),
    ("receipt_note", receipt_note),
    ("receipt_log", receipt_log),
    ("receipt_keys", receipt_keys),
];
