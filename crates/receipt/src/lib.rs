//! Receipts: signed statements of what was observed, and the log that holds them.
//!
//! A reviewer has only the repository, the receipts and other people's tools, so
//! everything here has a published form: in-toto statements in DSSE envelopes,
//! Sigstore bundles, CycloneDX, RFC 6962 trees, C2SP checkpoints and proofs. DESIGN
//! section 7; `docs/receipts.md` is the reference for readers.
//!
//! This crate takes bytes and values and returns them; only [`store`] touches files,
//! through custody. It must never sign what it would not verify, never verify what it would not have written,
//! never believe a key that was not handed to it, and never read a clock.
//!
//! | module | holds |
//! |---|---|
//! | [`statement`] | the in-toto statement and its one text |
//! | [`predicate`] | what each kind of statement says |
//! | [`envelope`] | the DSSE envelope with its two signatures |
//! | [`bundle`] | the same for readers of Sigstore bundles |
//! | [`signature`] | Ed25519 and P-256, one encoding per signature |
//! | [`keys`] | signing keys, one pair per purpose |
//! | [`trust`] | whom a verifier believes |
//! | [`log`](mod@log) | Merkle tree, checkpoints, proofs, audit |
//! | [`verify`](mod@verify) | verification, with what was and was not checked |
//! | [`expect`] | what a caller expects of a receipt |
//! | [`show`] | a receipt for people's eyes |
//! | [`export`](mod@export) | everything about one task or package, as files |
//! | [`store`] | key files, and a log outside a board |
//! | [`text`], [`part`], [`limits`] | the kinds of text, strict reading, sizes |

#![forbid(unsafe_code)]

pub mod bundle;
pub mod envelope;
pub mod expect;
pub mod export;
pub mod keys;
pub mod limits;
pub mod log;
pub mod part;
pub mod predicate;
pub mod show;
pub mod signature;
pub mod statement;
pub mod store;
pub mod text;
pub mod trust;
pub mod verify;

#[cfg(feature = "test-support")]
pub mod fuzz_bodies;
#[cfg(feature = "test-support")]
pub mod reference;
#[cfg(feature = "test-support")]
pub mod samples;
#[cfg(feature = "test-support")]
pub mod sentinel;

mod base64;

pub use envelope::Envelope;
pub use expect::Expectations;
pub use keys::{Purpose, SigningPair};
pub use predicate::{Kind, Predicate};
pub use statement::{Statement, Subject};
pub use trust::TrustStore;
pub use verify::{Refused, Verified, verify};
