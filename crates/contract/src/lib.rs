//! The contract between Lazaret, package authors and operators: what a
//! document, an input, an output and a package must look like, and how their
//! digests are taken.
//!
//! This crate takes bytes and values and returns values. It never opens a file
//! (the feature `test-support` excepted), never reads a clock or an
//! environment variable, never starts a process, and never looks at package
//! code other than as text. Everything that it parses is untrusted; nothing
//! that it parses can make it panic, recurse without bound or use more memory
//! than a fixed multiple of the size limit.

#![forbid(unsafe_code)]

pub mod bundled;
mod closed;
#[cfg(feature = "test-support")]
pub mod conformance;
pub mod digest;
pub mod formatter;
#[cfg(feature = "test-support")]
pub mod fuzz_bodies;
pub mod identity;
pub mod json;
pub mod limits;
pub mod package;
pub mod pointer;
pub mod problem;
pub mod profiles;
pub mod schema;
pub mod suggest;
pub mod text_rules;
pub mod visible;
