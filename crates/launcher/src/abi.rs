//! Generated from `c/lazaret_abi.h` by `cargo xtask abi`; the header explains each item.

#![allow(missing_docs, non_camel_case_types, reason = "names and documentation are the C header's")]

pub const LZ_ABI_VERSION: u32 = 1;
pub const LZ_PLAN_MAGIC: u64 = 3552848952063315199;
pub const LZ_READY_MAGIC: u64 = 3550034172264513356;
pub const LZ_RELEASE_BYTE: u32 = 71;
pub const LZ_LIMIT_CPU_S: u32 = 2;
pub const LZ_LIMIT_ADDRESS_SPACE_BYTES: u32 = 134217728;
pub const LZ_LIMIT_FILE_BYTES: u32 = 65536;
pub const LZ_LIMIT_DESCRIPTORS: u32 = 16;
pub const LZ_LIMIT_CORE_BYTES: u32 = 1;
pub const LZ_LIMIT_STACK_BYTES: u32 = 8388608;
pub const LZ_PACKAGE_BYTES_MAX: u32 = 32768;
pub const LZ_PATH_LAUNCHER: &[u8; 10] = b"/launcher\0";
pub const LZ_PATH_PACKAGE: &[u8; 12] = b"/package.py\0";
pub const LZ_PATH_INPUT: &[u8; 12] = b"/input.json\0";
pub const LZ_PATH_OUTPUT_DIR: &[u8; 5] = b"/out\0";
pub const LZ_PATH_OUTPUT: &[u8; 17] = b"/out/result.json\0";
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct lz_plan {
    pub magic: u64,
    pub abi_version: u32,
    pub record_bytes: u32,
    pub nonce: [u8; 32usize],
    pub package_sha256: [u8; 32usize],
    pub package_bytes: u32,
    pub reserved: [u32; 11usize],
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct lz_ready {
    pub magic: u64,
    pub abi_version: u32,
    pub record_bytes: u32,
    pub nonce: [u8; 32usize],
    pub package_sha256: [u8; 32usize],
    pub package_bytes: u32,
    pub python_version_hex: u32,
    pub filter_instructions: u32,
    pub reserved: [u32; 9usize],
}
pub const LZ_EXIT_RELOCATIONS: lz_exit = 79;
pub const LZ_EXIT_DESCRIPTORS: lz_exit = 80;
pub const LZ_EXIT_PLAN: lz_exit = 81;
pub const LZ_EXIT_LIMITS: lz_exit = 82;
pub const LZ_EXIT_ENTROPY: lz_exit = 83;
pub const LZ_EXIT_PYTHON: lz_exit = 84;
pub const LZ_EXIT_PACKAGE: lz_exit = 85;
pub const LZ_EXIT_FILTER: lz_exit = 86;
pub const LZ_EXIT_READY: lz_exit = 87;
pub const LZ_EXIT_NOT_RELEASED: lz_exit = 88;
pub type lz_exit = ::core::ffi::c_uint;
pub const LZ_PACKAGE_DONE: lz_package_exit = 0;
pub const LZ_PACKAGE_EXCEPTION: lz_package_exit = 1;
pub type lz_package_exit = ::core::ffi::c_uint;
