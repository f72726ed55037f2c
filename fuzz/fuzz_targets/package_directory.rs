//! See `lazaret_contract::fuzz_bodies::package_directory`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| lazaret_contract::fuzz_bodies::package_directory(bytes));
