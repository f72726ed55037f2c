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
//! | [`barrier`] | the facts, read from outside and judged |
//! | [`outcome`] | records on the disk |
//! | [`sys`] | system calls; the only unsafe code |

#![deny(unsafe_code)]

pub mod barrier;
pub mod bwrap_args;
pub mod control;
pub mod controller;
pub mod ending;
pub mod frame;
pub mod identity;
pub mod inherited;
pub mod limits;
pub mod outcome;
pub mod record;
pub mod sandbox;
pub mod spec;
pub mod stage;
pub mod streams;
#[expect(
    unsafe_code,
    reason = "the one module that talks to the kernel directly"
)]
pub mod sys;
pub mod token;
pub mod tracing;
pub mod warden;
