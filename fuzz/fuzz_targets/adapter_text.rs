//! See `lazaret_contract::fuzz_bodies::adapter_text`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| lazaret_contract::fuzz_bodies::adapter_text(bytes));
