//! The process that owns one run, from both sides.
//!
//! Outside, [`controller::Controller`] starts a warden, hears what it staged, arms
//! it, hears that the launcher is at the barrier, releases it and gets the outcome.
//! Inside, [`warden::main`] is the warden itself: DESIGN section 3, steps 4, 6 and 8
//! to 12.
//!
//! This crate must never decide whether a run may happen, know a package's identity,
//! a Goal or a session, hold a long-lived secret, judge an output, or start anything
//! but the verified bwrap of a closure.
//!
//! On a host without the profile only what describes a run is there: orders, records
//! and how they are judged. Nothing there starts anything.
//!
//! | module | holds |
//! |---|---|
//! | [`controller`] | one run from outside |
//! | [`spec`], [`token`] | what a run is made of; its secret |
//! | [`record`], [`ending`] | what a warden says, and why a run ends |
//! | [`frame`] | what crosses the two pipes |
//! | [`warden`], [`control`] | the warden's steps, and its ear |
//! | [`inherited`], [`limits`] | the fixed state in which it begins |
//! | [`stage`], [`identity`] | what is staged, and which process is meant |
//! | [`bwrap_args`], [`sandbox`], [`streams`], [`tracing`] | bwrap, its child, and what the kernel says of them |
//! | [`inode`] | which file is meant |
//! | [`barrier`] | the facts, read from outside and judged |
//! | [`outcome`] | records on the disk |
//! | [`sys`] | system calls; the only unsafe code |

#![deny(unsafe_code)]

pub mod barrier;
pub mod bwrap_args;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
pub mod control;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
pub mod controller;
pub mod ending;
pub mod frame;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
pub mod identity;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
pub mod inherited;
pub mod inode;
pub mod limits;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
pub mod outcome;
pub mod record;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
pub mod sandbox;
pub mod spec;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
pub mod stage;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
pub mod streams;
#[expect(
    unsafe_code,
    reason = "the one module that talks to the kernel directly"
)]
pub mod sys;
pub mod token;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
pub mod tracing;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
pub mod warden;
