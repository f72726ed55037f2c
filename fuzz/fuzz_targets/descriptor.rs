//! See `lazaret_contract::fuzz_bodies::descriptor`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| lazaret_contract::fuzz_bodies::descriptor(bytes));
