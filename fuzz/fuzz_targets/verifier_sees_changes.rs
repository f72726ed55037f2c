//! See `lazaret_contract::fuzz_bodies::verifier_sees_changes`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| lazaret_contract::fuzz_bodies::verifier_sees_changes(bytes));
