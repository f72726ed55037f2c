//! See `lazaret_receipt::fuzz_bodies::receipt_log`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| lazaret_receipt::fuzz_bodies::receipt_log(bytes));
