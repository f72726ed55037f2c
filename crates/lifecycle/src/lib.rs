//! The package state machine of a deployment: pure, no I/O, no clock.

#![forbid(unsafe_code)]
