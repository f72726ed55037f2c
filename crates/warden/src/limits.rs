//! All sixteen limits, twice: as the warden sets them for itself and bwrap, and as
//! they must be inside when the barrier looks.
//!
//! The warden's values are the smallest that the warden, bwrap and the launcher
//! need, because a hard limit can always be lowered and, by an ordinary user, never
//! raised: the smaller the value, the more hosts can start a run. The launcher then
//! sets its own six (`lazaret_abi.h`), and the warden the number of processes.

use lazaret_launcher::abi;

use serde::{Deserialize, Serialize};

/// A resource that the kernel limits (getrlimit(2)): all sixteen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resource {
    /// CPU time, in seconds.
    Cpu,
    /// Size of a file written, in bytes.
    FileSize,
    /// Data segment, in bytes.
    Data,
    /// Stack, in bytes.
    Stack,
    /// Core file, in bytes.
    Core,
    /// Resident set, in bytes (no effect on Linux).
    ResidentSet,
    /// Processes of the user.
    Processes,
    /// Open descriptors.
    Descriptors,
    /// Locked memory, in bytes.
    LockedMemory,
    /// Address space, in bytes.
    AddressSpace,
    /// File locks (no effect on Linux).
    Locks,
    /// Queued signals of the user.
    PendingSignals,
    /// POSIX message queues, in bytes.
    MessageQueues,
    /// Ceiling of the nice value.
    Nice,
    /// Ceiling of the real-time priority.
    RealTimePriority,
    /// CPU time without a blocking call under real-time scheduling, in microseconds.
    RealTimeTime,
}

impl Resource {
    /// All of them, in the order of /proc/PID/limits.
    pub const ALL: [Self; 16] = [
        Self::Cpu,
        Self::FileSize,
        Self::Data,
        Self::Stack,
        Self::Core,
        Self::ResidentSet,
        Self::Processes,
        Self::Descriptors,
        Self::LockedMemory,
        Self::AddressSpace,
        Self::Locks,
        Self::PendingSignals,
        Self::MessageQueues,
        Self::Nice,
        Self::RealTimePriority,
        Self::RealTimeTime,
    ];
}

const MIB: u64 = 1024 * 1024;

/// What the warden sets for itself and hands on, with the reason for each value.
/// The number of processes is left as inherited: it counts everything that the
/// user runs, so no fixed value fits; [`EXPECTED_INSIDE`] has it all the same.
pub const OF_WARDEN: [(Resource, u64); 15] = [
    // A run lasts at most ten seconds; the launcher lowers this to two.
    (Resource::Cpu, 30),
    // Launch record, evidence and outcome of a run together stay far below.
    (Resource::FileSize, 4 * MIB),
    (Resource::Data, 512 * MIB),
    (Resource::Stack, abi::LZ_LIMIT_STACK_BYTES as u64),
    // 1, not 0: a piped core handler ignores 0 and honours 1 (core(5)).
    (Resource::Core, abi::LZ_LIMIT_CORE_BYTES as u64),
    (Resource::ResidentSet, 512 * MIB),
    // The warden holds about 25 at most, bwrap fewer.
    (Resource::Descriptors, 256),
    (Resource::LockedMemory, 0),
    (Resource::AddressSpace, 1024 * MIB),
    (Resource::Locks, 0),
    (Resource::PendingSignals, 128),
    (Resource::MessageQueues, 0),
    (Resource::Nice, 0),
    (Resource::RealTimePriority, 0),
    (Resource::RealTimeTime, 0),
];

/// What the warden sets on the waiting launcher from outside: it is one process
/// and stays one, whatever the filter says.
pub const PROCESSES_INSIDE: u64 = 1;

/// Soft and hard value of every limit of the launcher at the barrier.
#[must_use]
pub fn expected_inside() -> [(Resource, u64); 16] {
    Resource::ALL.map(|resource| (resource, inside(resource)))
}

fn inside(resource: Resource) -> u64 {
    match resource {
        Resource::Cpu => abi::LZ_LIMIT_CPU_S.into(),
        Resource::AddressSpace => abi::LZ_LIMIT_ADDRESS_SPACE_BYTES.into(),
        Resource::FileSize => abi::LZ_LIMIT_FILE_BYTES.into(),
        Resource::Descriptors => abi::LZ_LIMIT_DESCRIPTORS.into(),
        Resource::Core => abi::LZ_LIMIT_CORE_BYTES.into(),
        Resource::Stack => abi::LZ_LIMIT_STACK_BYTES.into(),
        Resource::Processes => PROCESSES_INSIDE,
        other => OF_WARDEN
            .iter()
            .find(|(resource, _)| *resource == other)
            .map_or(0, |(_, value)| *value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lazaret_contract::limits;

    #[test]
    fn the_numbers_are_those_of_the_contract() {
        let inside: std::collections::HashMap<_, _> = expected_inside().into_iter().collect();
        assert_eq!(inside[&Resource::Cpu], limits::CPU_LIMIT_S);
        assert_eq!(
            inside[&Resource::AddressSpace],
            limits::ADDRESS_SPACE_BYTES_MAX
        );
        assert_eq!(inside[&Resource::FileSize], limits::OUTPUT_BYTES_MAX as u64);
        assert_eq!(inside[&Resource::Descriptors], limits::DESCRIPTORS_MAX);
        assert_eq!(
            inside[&Resource::Processes],
            u64::from(limits::PROCESSES_MAX)
        );
    }

    #[test]
    fn the_launcher_never_has_to_raise_what_the_warden_set() {
        for (resource, outside) in OF_WARDEN {
            assert!(inside(resource) <= outside, "{resource:?}");
        }
    }
}
