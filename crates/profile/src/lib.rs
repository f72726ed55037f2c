//! What a profile is, as data: its pins, its closure's manifest, the digests
//! that were accepted, its policy and the filter compiled from it.
//!
//! This crate takes bytes and values and gives values. It must never open a
//! file, reach for the network, start a process or ask the clock, and it gives
//! no default where a value is missing.
#![forbid(unsafe_code)]

pub mod accepted;
pub mod filter;
pub mod manifest;
pub mod pins;
pub mod policy;
