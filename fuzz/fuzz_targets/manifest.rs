//! See `lazaret_contract::fuzz_bodies::manifest`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| lazaret_contract::fuzz_bodies::manifest(bytes));
