//! The launcher's exit codes before release, as a type.
//!
//! They count only before release: afterwards every exit code is the package's
//! word, and nothing here may be used to judge it.

use core::fmt;

use crate::abi;

/// The step of the launcher that failed before release (DESIGN section 3,
/// steps 7, 8 and 10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LauncherStage {
    /// Relocated data could not be made read-only.
    Relocations,
    /// Descriptor 0, 1 or 2 was closed, or another one could not be closed.
    Descriptors,
    /// The plan was short, malformed, or stdin ended.
    Plan,
    /// A hard limit could not be set, or read back otherwise than set.
    Limits,
    /// `getrandom(GRND_NONBLOCK)` did not give exactly four bytes.
    Entropy,
    /// The interpreter did not start.
    Python,
    /// The package was unreadable, held a NUL, or had another size or digest.
    Package,
    /// `no_new_privs` or the filter could not be set.
    Filter,
    /// The ready record could not be written.
    Ready,
    /// Stdin ended, or held another byte, where the release was awaited.
    NotReleased,
}

impl LauncherStage {
    /// Every stage, in the order in which the launcher passes them.
    pub const ALL: [Self; 10] = [
        Self::Relocations,
        Self::Descriptors,
        Self::Plan,
        Self::Limits,
        Self::Entropy,
        Self::Python,
        Self::Package,
        Self::Filter,
        Self::Ready,
        Self::NotReleased,
    ];

    /// The exit code of this stage (`enum lz_exit`).
    #[must_use]
    pub const fn exit_code(self) -> u32 {
        match self {
            Self::Relocations => abi::LZ_EXIT_RELOCATIONS,
            Self::Descriptors => abi::LZ_EXIT_DESCRIPTORS,
            Self::Plan => abi::LZ_EXIT_PLAN,
            Self::Limits => abi::LZ_EXIT_LIMITS,
            Self::Entropy => abi::LZ_EXIT_ENTROPY,
            Self::Python => abi::LZ_EXIT_PYTHON,
            Self::Package => abi::LZ_EXIT_PACKAGE,
            Self::Filter => abi::LZ_EXIT_FILTER,
            Self::Ready => abi::LZ_EXIT_READY,
            Self::NotReleased => abi::LZ_EXIT_NOT_RELEASED,
        }
    }

    /// The stage that ends with `code`; `None` for every other code.
    #[must_use]
    pub fn from_exit_code(code: u32) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|stage| stage.exit_code() == code)
    }

    /// The stable name used in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Relocations => "relocations",
            Self::Descriptors => "descriptors",
            Self::Plan => "plan",
            Self::Limits => "limits",
            Self::Entropy => "entropy",
            Self::Python => "python",
            Self::Package => "package",
            Self::Filter => "filter",
            Self::Ready => "ready",
            Self::NotReleased => "not_released",
        }
    }
}

impl fmt::Display for LauncherStage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_has_its_own_code_that_the_filter_lets_pass() {
        let mut codes: Vec<u32> = LauncherStage::ALL
            .iter()
            .map(|stage| stage.exit_code())
            .collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), LauncherStage::ALL.len());
        assert!(codes.iter().all(|code| (1..128).contains(code)));
        for stage in LauncherStage::ALL {
            assert_eq!(
                LauncherStage::from_exit_code(stage.exit_code()),
                Some(stage)
            );
        }
        for code in (0..256).filter(|code| !codes.contains(code)) {
            assert_eq!(LauncherStage::from_exit_code(code), None);
        }
    }
}
