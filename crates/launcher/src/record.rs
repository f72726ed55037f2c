//! Plan and ready record: encoding, strict decoding, comparison.
//!
//! Written field by field in the order of `c/lazaret_abi.h`; the offsets are
//! compared with the generated layout at compile time. A ready record is only
//! the launcher's word: what it says is believed where the kernel says it too.

use core::mem::{offset_of, size_of};

use lazaret_contract::digest::Sha256Digest;

use crate::abi::{self, lz_plan, lz_ready};

/// Size of an encoded plan, in bytes.
pub const PLAN_BYTES: usize = size_of::<lz_plan>();
/// Size of an encoded ready record, in bytes.
pub const READY_BYTES: usize = size_of::<lz_ready>();

const _: () = {
    assert!(PLAN_BYTES == 128 && READY_BYTES == 128);
    assert!(offset_of!(lz_plan, abi_version) == 8 && offset_of!(lz_ready, abi_version) == 8);
    assert!(offset_of!(lz_plan, record_bytes) == 12 && offset_of!(lz_ready, record_bytes) == 12);
    assert!(offset_of!(lz_plan, nonce) == 16 && offset_of!(lz_ready, nonce) == 16);
    assert!(
        offset_of!(lz_plan, package_sha256) == 48 && offset_of!(lz_ready, package_sha256) == 48
    );
    assert!(offset_of!(lz_plan, package_bytes) == 80 && offset_of!(lz_ready, package_bytes) == 80);
    assert!(offset_of!(lz_plan, reserved) == 84);
    assert!(offset_of!(lz_ready, python_version_hex) == 84);
    assert!(offset_of!(lz_ready, filter_instructions) == 88);
    assert!(offset_of!(lz_ready, reserved) == 92);
};

/// Both records have this size in their own header.
const RECORD_BYTES: u32 = 128;

/// What the launcher is told: the one record on its standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// 32 random bytes of this run, which the ready record repeats.
    pub nonce: [u8; 32],
    /// Digest of the exact bytes of `/package.py`.
    pub package_sha256: Sha256Digest,
    /// Size of `/package.py`, in bytes.
    pub package_bytes: u32,
}

/// Why a plan cannot be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanError {
    /// The package is larger than the launcher reads.
    PackageTooLarge {
        /// Its size, in bytes.
        found_bytes: usize,
        /// The limit, in bytes (ADR-020).
        limit_bytes: usize,
    },
}

impl core::fmt::Display for PlanError {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self::PackageTooLarge {
            found_bytes,
            limit_bytes,
        } = self;
        write!(
            formatter,
            "package of {found_bytes} bytes is over the limit of {limit_bytes} bytes"
        )
    }
}

impl core::error::Error for PlanError {}

impl Plan {
    /// A plan for exactly these package bytes.
    ///
    /// # Errors
    /// [`PlanError::PackageTooLarge`] over `LZ_PACKAGE_BYTES_MAX`.
    pub fn new(nonce: [u8; 32], package: &[u8]) -> Result<Self, PlanError> {
        let limit = abi::LZ_PACKAGE_BYTES_MAX;
        match u32::try_from(package.len()) {
            Ok(package_bytes) if package_bytes <= limit => Ok(Self {
                nonce,
                package_sha256: Sha256Digest::of(package),
                package_bytes,
            }),
            _ => Err(PlanError::PackageTooLarge {
                found_bytes: package.len(),
                limit_bytes: limit as usize,
            }),
        }
    }

    /// The bytes for the launcher's standard input.
    #[must_use]
    pub fn encode(&self) -> [u8; PLAN_BYTES] {
        let mut bytes = [0; PLAN_BYTES];
        bytes[0..8].copy_from_slice(&abi::LZ_PLAN_MAGIC.to_le_bytes());
        bytes[8..12].copy_from_slice(&abi::LZ_ABI_VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&RECORD_BYTES.to_le_bytes());
        bytes[16..48].copy_from_slice(&self.nonce);
        bytes[48..80].copy_from_slice(self.package_sha256.as_bytes());
        bytes[80..84].copy_from_slice(&self.package_bytes.to_le_bytes());
        bytes
    }
}

/// What the launcher says at the barrier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    /// The plan's nonce.
    pub nonce: [u8; 32],
    /// Digest over the package's bytes in the launcher's memory.
    pub package_sha256: Sha256Digest,
    /// Size of those bytes.
    pub package_bytes: u32,
    /// `PY_VERSION_HEX` of the embedded interpreter.
    pub python_version_hex: u32,
    /// BPF instructions of the filter that was installed.
    pub filter_instructions: u32,
}

/// Why bytes are not a ready record of this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadyError {
    /// Another size than [`READY_BYTES`].
    Size,
    /// Another magic, version or recorded size.
    Header,
    /// A reserved field is not zero.
    Reserved,
}

impl core::fmt::Display for ReadyError {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.write_str(match self {
            Self::Size => "ready record has another size than 128 bytes",
            Self::Header => "ready record has another magic, version or size",
            Self::Reserved => "reserved field of the ready record is set",
        })
    }
}

impl core::error::Error for ReadyError {}

impl Ready {
    /// Reads a record; anything but the exact form is refused.
    ///
    /// # Errors
    /// [`ReadyError`] names the first difference.
    pub fn decode(bytes: &[u8]) -> Result<Self, ReadyError> {
        let bytes: &[u8; READY_BYTES] = bytes.try_into().map_err(|_| ReadyError::Size)?;
        let mut header = [0; 16];
        header[0..8].copy_from_slice(&abi::LZ_READY_MAGIC.to_le_bytes());
        header[8..12].copy_from_slice(&abi::LZ_ABI_VERSION.to_le_bytes());
        header[12..16].copy_from_slice(&RECORD_BYTES.to_le_bytes());
        if bytes[0..16] != header {
            return Err(ReadyError::Header);
        }
        if bytes[92..].iter().any(|byte| *byte != 0) {
            return Err(ReadyError::Reserved);
        }
        Ok(Self {
            nonce: array_at(bytes, 16),
            package_sha256: Sha256Digest::from_bytes(array_at(bytes, 48)),
            package_bytes: u32::from_le_bytes(array_at(bytes, 80)),
            python_version_hex: u32::from_le_bytes(array_at(bytes, 84)),
            filter_instructions: u32::from_le_bytes(array_at(bytes, 88)),
        })
    }

    /// The exact bytes that a launcher writes for this record.
    #[must_use]
    pub fn encode(&self) -> [u8; READY_BYTES] {
        let mut bytes = [0; READY_BYTES];
        bytes[0..8].copy_from_slice(&abi::LZ_READY_MAGIC.to_le_bytes());
        bytes[8..12].copy_from_slice(&abi::LZ_ABI_VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&RECORD_BYTES.to_le_bytes());
        bytes[16..48].copy_from_slice(&self.nonce);
        bytes[48..80].copy_from_slice(self.package_sha256.as_bytes());
        bytes[80..84].copy_from_slice(&self.package_bytes.to_le_bytes());
        bytes[84..88].copy_from_slice(&self.python_version_hex.to_le_bytes());
        bytes[88..92].copy_from_slice(&self.filter_instructions.to_le_bytes());
        bytes
    }
}

/// The `N` bytes at `at`; callers use offsets that the assertions above checked.
fn array_at<const N: usize>(bytes: &[u8; READY_BYTES], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_ready() -> impl Strategy<Value = Ready> {
        (any::<[u8; 32]>(), any::<[u8; 32]>(), any::<[u32; 3]>()).prop_map(
            |(nonce, digest, numbers)| Ready {
                nonce,
                package_sha256: Sha256Digest::from_bytes(digest),
                package_bytes: numbers[0],
                python_version_hex: numbers[1],
                filter_instructions: numbers[2],
            },
        )
    }

    proptest! {
        #[test]
        fn a_ready_record_reads_back_as_written(ready in any_ready()) {
            prop_assert_eq!(Ready::decode(&ready.encode()), Ok(ready));
        }

        #[test]
        fn decoding_accepts_only_what_encoding_writes(bytes in proptest::collection::vec(any::<u8>(), 0..160)) {
            if let Ok(ready) = Ready::decode(&bytes) {
                let encoded = ready.encode();
                prop_assert_eq!(encoded.as_slice(), bytes.as_slice());
            }
        }

        #[test]
        fn a_changed_header_or_reserved_byte_is_refused(ready in any_ready(), at in 0_usize..128, flip in 1_u8..) {
            let mut bytes = ready.encode();
            bytes[at] ^= flip;
            let decoded = Ready::decode(&bytes);
            if at < 16 {
                prop_assert_eq!(decoded, Err(ReadyError::Header));
            } else if at >= 92 {
                prop_assert_eq!(decoded, Err(ReadyError::Reserved));
            } else {
                prop_assert_ne!(decoded, Ok(ready));
            }
        }
    }

    #[test]
    fn a_plan_has_the_layout_of_the_header() {
        let plan = Plan::new([7; 32], b"print()\n").expect("small package");
        let bytes = plan.encode();
        assert_eq!(&bytes[0..8], b"\xffLZPLAN1");
        assert_eq!(bytes[8..12], [1, 0, 0, 0]);
        assert_eq!(bytes[12..16], [128, 0, 0, 0]);
        assert_eq!(bytes[16..48], [7; 32]);
        assert_eq!(&bytes[48..80], Sha256Digest::of(b"print()\n").as_bytes());
        assert_eq!(bytes[80..84], [8, 0, 0, 0]);
        assert!(bytes[84..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn a_package_of_the_limit_has_a_plan_and_one_byte_more_has_none() {
        let limit = abi::LZ_PACKAGE_BYTES_MAX as usize;
        assert!(Plan::new([0; 32], &vec![b'#'; limit]).is_ok());
        assert_eq!(
            Plan::new([0; 32], &vec![b'#'; limit + 1]),
            Err(PlanError::PackageTooLarge {
                found_bytes: limit + 1,
                limit_bytes: limit
            })
        );
    }
}
