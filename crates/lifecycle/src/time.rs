//! Time as a value: one reading of the clocks, and deadlines that a wall clock cannot move.
//!
//! A deadline is a moment of `CLOCK_BOOTTIME` of one boot (case D07: it counts suspended time;
//! case E06: a wall clock that jumps changes nothing). After another boot every deadline is past;
//! that is the stated rule, and it is the safe one. Nothing here reads a clock.

use std::fmt;

use crate::ids::NameError;

/// Largest moment of `CLOCK_BOOTTIME` that is followed, in nanoseconds: 292 years.
pub const BOOTTIME_NS_MAX: u64 = i64::MAX.cast_unsigned();

/// The kernel's id of one boot (Linux: `/proc/sys/kernel/random/boot_id`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BootId([u8; 16]);

impl BootId {
    /// The id from its 16 bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The 16 bytes.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Reads the kernel's text form: 32 hexadecimal digits in groups of 8, 4, 4, 4 and 12.
    ///
    /// # Errors
    /// When the text is anything else.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        const WRONG: NameError = NameError {
            kind: "boot id",
            rule: "a lower-case UUID with its hyphens",
        };
        let mut bytes = [0; 16];
        let mut digits = 0;
        for (at, byte) in text.bytes().enumerate() {
            if matches!(at, 8 | 13 | 18 | 23) {
                if byte != b'-' {
                    return Err(WRONG);
                }
                continue;
            }
            let value = match byte {
                b'0'..=b'9' => byte - b'0',
                b'a'..=b'f' => byte - b'a' + 10,
                _ => return Err(WRONG),
            };
            let Some(slot) = bytes.get_mut(digits / 2) else {
                return Err(WRONG);
            };
            *slot = *slot << 4 | value;
            digits += 1;
        }
        if digits == 32 {
            Ok(Self(bytes))
        } else {
            Err(WRONG)
        }
    }
}

impl fmt::Display for BootId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

/// One reading of the clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// The boot in which it was taken.
    pub boot: BootId,
    /// `CLOCK_BOOTTIME`, in nanoseconds.
    pub boottime_ns: u64,
    /// Wall time for people, in milliseconds since 1970. Decides nothing.
    pub unix_ms: i64,
}

/// A moment after which something is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Deadline {
    /// The boot in which it holds; in every other boot it is past.
    pub boot: BootId,
    /// `CLOCK_BOOTTIME`, in nanoseconds; from this moment on it is past.
    pub boottime_ns: u64,
}

impl Deadline {
    /// The deadline `duration_ms` milliseconds after `now`, at most [`BOOTTIME_NS_MAX`].
    pub fn after(now: &Now, duration_ms: u64) -> Self {
        let boottime_ns = now
            .boottime_ns
            .saturating_add(duration_ms.saturating_mul(1_000_000));
        Self {
            boot: now.boot,
            boottime_ns: boottime_ns.min(BOOTTIME_NS_MAX),
        }
    }

    /// Whether it is over.
    pub fn is_past(&self, now: &Now) -> bool {
        self.remaining_ns(now) == 0
    }

    /// Nanoseconds that are left; 0 when it is past, in another boot too.
    pub fn remaining_ns(&self, now: &Now) -> u64 {
        if self.boot == now.boot {
            self.boottime_ns.saturating_sub(now.boottime_ns)
        } else {
            0
        }
    }
}

impl fmt::Display for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.boottime_ns, self.boot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOT: BootId = BootId::from_bytes([0xab; 16]);

    fn at(boottime_ns: u64, unix_ms: i64) -> Now {
        Now {
            boot: BOOT,
            boottime_ns,
            unix_ms,
        }
    }

    #[test]
    fn a_boot_id_reads_back_and_only_in_its_one_spelling() {
        let text = "01234567-89ab-cdef-0123-456789abcdef";
        assert_eq!(
            BootId::parse(text).map(|id| id.to_string()),
            Ok(text.to_owned())
        );
        let upper = text.to_uppercase();
        let long = format!("{text}0");
        for bad in ["", &text[1..], &upper, &long, &text.replace('-', "0"), "0-"] {
            assert!(BootId::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_wall_clock_that_jumps_moves_no_deadline() {
        let hour_ms = 3_600_000;
        let deadline = Deadline::after(&at(5, 0), 60_000);
        for wall in [hour_ms, -hour_ms, i64::MIN, i64::MAX] {
            assert!(!deadline.is_past(&at(60_000_000_004, wall)));
            assert!(deadline.is_past(&at(60_000_000_005, wall)));
        }
    }

    #[test]
    fn after_another_boot_every_deadline_is_past() {
        let deadline = Deadline::after(&at(5, 0), 60_000);
        let other = Now {
            boot: BootId::from_bytes([0xac; 16]),
            boottime_ns: 5,
            unix_ms: 0,
        };
        assert!(deadline.is_past(&other));
        assert_eq!(deadline.remaining_ns(&other), 0);
    }

    #[test]
    fn a_deadline_beyond_the_range_is_the_end_of_the_range() {
        assert_eq!(
            Deadline::after(&at(5, 0), u64::MAX).boottime_ns,
            BOOTTIME_NS_MAX
        );
    }
}
