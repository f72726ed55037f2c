//! The log: a Merkle tree of receipts and events, with signed checkpoints.
//!
//! Hashing is RFC 6962's, checkpoints and proofs have C2SP's forms, so that other
//! people's tools read them. Who holds a checkpoint can show later that an entry was
//! changed, moved, dropped or cut off. The functions are pure: leaf hashes in, hashes
//! and proofs out; where the entries are stored is their owner's affair. Nothing here
//! may take a log at its word: every claim is checked against a root.

pub mod audit;
pub mod checkpoint;
pub mod entry;
pub mod file;
pub mod merkle;
pub mod note;
pub mod proof;
