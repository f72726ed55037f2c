//! The log as a file: one line per entry, appended and never changed.
//!
//! It is how the log exists where there is no board, and how a board's log is
//! exported. The leaves are the lines themselves, so the file and a checkpoint are
//! all that a stranger needs. Reading finds what shows without a checkpoint: a line
//! that is none, an index out of turn, an entry twice. What was changed in a form
//! that fits shows against a checkpoint only: see [`super::audit`].

use std::collections::BTreeMap;

use lazaret_contract::digest::Sha256Digest;

use super::checkpoint::Checkpoint;
use super::entry::{Entry, EntryKind};
use super::merkle::{self, Frontier, Hash};
use super::proof::Inclusion;
use crate::limits::LOG_FILE_BYTES_MAX;
use crate::text::KeyName;

/// What is wrong with a log, without looking at a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogFault {
    /// Larger than any log file of ours.
    #[error("log is larger than {LOG_FILE_BYTES_MAX} bytes")]
    Size,
    /// A line that is no entry; a cut last line is one.
    #[error("line {line} of the log is no entry")]
    Line {
        /// Which line, from 1.
        line: u64,
    },
    /// Entries are missing before this one.
    #[error("entries {wanted} to {} are missing from the log", found - 1)]
    Missing {
        /// The index that was due.
        wanted: u64,
        /// The index that stands there.
        found: u64,
    },
    /// An index that was there before, or should have been.
    #[error("entry {found} of the log stands where entry {wanted} is due")]
    OutOfOrder {
        /// The index that was due.
        wanted: u64,
        /// The index that stands there.
        found: u64,
    },
    /// The same thing is logged twice.
    #[error("entry {index} of the log repeats entry {first}")]
    Duplicate {
        /// The second place.
        index: u64,
        /// The first place.
        first: u64,
    },
}

/// A log in memory.
#[derive(Debug, Clone, Default)]
pub struct LogFile {
    entries: Vec<Entry>,
    leaves: Vec<Hash>,
    frontier: Frontier,
    places: BTreeMap<(EntryKind, Sha256Digest), u64>,
}

impl LogFile {
    /// Reads a log file.
    ///
    /// # Errors
    /// The first fault.
    pub fn parse(bytes: &[u8]) -> Result<Self, LogFault> {
        if bytes.len() > LOG_FILE_BYTES_MAX {
            return Err(LogFault::Size);
        }
        let mut log = Self::default();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let wanted = log.size();
            let entry = std::str::from_utf8(line)
                .ok()
                .and_then(|line| line.strip_suffix('\n'))
                .and_then(Entry::parse)
                .ok_or(LogFault::Line { line: wanted + 1 })?;
            let found = entry.index;
            if found > wanted {
                return Err(LogFault::Missing { wanted, found });
            }
            if found < wanted {
                return Err(LogFault::OutOfOrder { wanted, found });
            }
            log.push(entry.kind, entry.sha256)?;
        }
        Ok(log)
    }

    /// Appends an entry and gives it.
    ///
    /// # Errors
    /// [`LogFault::Duplicate`] if the same thing is in the log already.
    pub fn push(&mut self, kind: EntryKind, sha256: Sha256Digest) -> Result<Entry, LogFault> {
        let index = self.size();
        if let Some(first) = self.place(kind, sha256) {
            return Err(LogFault::Duplicate { index, first });
        }
        let entry = Entry {
            index,
            kind,
            sha256,
        };
        self.places.insert((kind, sha256), index);
        let leaf = entry.leaf();
        self.leaves.push(leaf);
        self.frontier.push(leaf);
        self.entries.push(entry);
        Ok(entry)
    }

    /// Where a thing is logged.
    pub fn place(&self, kind: EntryKind, sha256: Sha256Digest) -> Option<u64> {
        self.places.get(&(kind, sha256)).copied()
    }

    /// The entries, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// How many there are.
    pub fn size(&self) -> u64 {
        self.frontier.size()
    }

    /// The bytes of the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.entries
            .iter()
            .map(Entry::line)
            .collect::<String>()
            .into_bytes()
    }

    /// The root over the first `size` entries, if there are so many.
    pub fn root_at(&self, size: u64) -> Option<Hash> {
        if size == self.size() {
            return Some(self.frontier.root());
        }
        let size = usize::try_from(size).ok()?;
        self.leaves.get(..size).map(merkle::root)
    }

    /// What a checkpoint of the log as it is says.
    pub fn head(&self, origin: KeyName) -> Checkpoint {
        Checkpoint {
            origin,
            size: self.size(),
            root: self.frontier.root(),
        }
    }

    /// The proof that the entry at `index` stands under a checkpoint of `size`
    /// entries, whose signed bytes are `checkpoint`.
    pub fn inclusion(&self, index: u64, size: u64, checkpoint: Vec<u8>) -> Option<Inclusion> {
        let (place, size) = (usize::try_from(index).ok()?, usize::try_from(size).ok()?);
        let hashes = merkle::inclusion_proof(self.leaves.get(..size)?, place)?;
        Some(Inclusion {
            index,
            hashes,
            checkpoint,
        })
    }

    /// The proof that a checkpoint of `old_size` entries is the beginning of one of
    /// `new_size`.
    pub fn consistency(&self, old_size: u64, new_size: u64) -> Option<Vec<Hash>> {
        let (old, new) = (
            usize::try_from(old_size).ok()?,
            usize::try_from(new_size).ok()?,
        );
        merkle::consistency_proof(self.leaves.get(..new)?, old)
    }
}
