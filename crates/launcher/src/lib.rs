//! The launcher's contract, seen from outside.
//!
//! The launcher itself is C ([`c/`](../c)): the small trusted program that
//! embeds CPython inside the namespaces. `TRUSTED.md` says which files are
//! trusted, in which order they act and what a change of them requires.
//!
//! This crate is the Rust side of `c/lazaret_abi.h`: the plan that the warden
//! writes, the ready record that it gets back, and the launcher's exit codes.
//!
//! It must never start anything, open anything, or hold a layout of its own:
//! [`abi`] is generated from the header, and what is here is checked against it.

#![forbid(unsafe_code)]

#[rustfmt::skip]
pub mod abi;
mod exit;
mod record;

pub use exit::LauncherStage;
pub use record::{PLAN_BYTES, Plan, PlanError, READY_BYTES, Ready, ReadyError};
