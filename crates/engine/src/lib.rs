//! One run from staging to verified output, and what a host must offer for it.
//!
//! [`run::run_once`] is the run of DESIGN.md section 3 without its database: stage,
//! warden, verify, record. [`preflight`] probes what such a run needs by doing it.
//!
//! This crate must never start package code itself (the warden and the launcher do),
//! believe an output because a process said that it succeeded, infer one of process
//! outcome, cleanup and output truth from another, substitute anything for a profile
//! that is not to be had, or say that isolation has been established.
//!
//! | module | holds |
//! |---|---|
//! | [`platform`] | where the profile exists at all |
//! | [`blocked`] | a refusal before package code: what, why, what to do |
//! | [`acting`] | who runs, and as whom the sandbox runs |
//! | [`data_dir`] | the embedded data directory |
//! | [`closure`] | the accepted closure, found and held to its digest |
//! | [`approval`] | what an operator approves, by exact digests |
//! | [`run`] | one run |
//! | [`record`] | the run's record |
//! | [`evidence`] | what is kept of a run, and what the dead have left |
//! | [`preflight`] | what doctor probes |

#![forbid(unsafe_code)]

pub mod acting;
pub mod approval;
pub mod blocked;
pub mod closure;
pub mod data_dir;
pub mod evidence;
pub mod platform;
pub mod preflight;
pub mod record;
pub mod run;

pub use acting::Acting;
pub use blocked::{Blocked, Cause};
pub use data_dir::DataDir;
