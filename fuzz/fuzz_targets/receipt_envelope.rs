//! See `lazaret_receipt::fuzz_bodies::receipt_envelope`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| lazaret_receipt::fuzz_bodies::receipt_envelope(bytes));
