//! How long 1,000 receipts take to verify: `cargo run --release -p lazaret-receipt
//! --features test-support --example verify_rate`.
//!
//! Prints milliseconds per 1,000 for each kind, signing beside it. It measures and
//! judges nothing; no test depends on its numbers.

#![expect(clippy::print_stdout, reason = "it prints what it measured")]

use std::time::Instant;

use lazaret_receipt::samples::{self, SampleError};
use lazaret_receipt::{Envelope, Expectations, Kind, verify};

const RECEIPTS: u32 = 1000;

fn main() -> Result<(), SampleError> {
    println!(
        "{:<10} {:>6} {:>12} {:>12}",
        "kind", "bytes", "sign ms", "verify ms"
    );
    for kind in Kind::ALL.iter().copied() {
        let pair = samples::pair(kind.purpose())?;
        let trust = samples::trust(&[&pair])?;
        let statement = samples::statement(kind)?;
        let receipt = Envelope::sign(&statement, &pair)?.to_bytes();
        let started = Instant::now();
        for _ in 0..RECEIPTS {
            Envelope::sign(&statement, &pair)?;
        }
        let signing = started.elapsed();
        let started = Instant::now();
        for _ in 0..RECEIPTS {
            verify(&receipt, &trust, &Expectations::default())?;
        }
        let verifying = started.elapsed();
        println!(
            "{:<10} {:>6} {:>12} {:>12}",
            kind.word(),
            receipt.len(),
            signing.as_millis(),
            verifying.as_millis()
        );
    }
    Ok(())
}
