//! Audit of a log against the checkpoints that somebody kept.
//!
//! A log alone shows little: whoever can rewrite it can make it fit itself. Against
//! a checkpoint that was kept elsewhere a cut tail, a changed, moved, dropped or
//! doubled entry shows, and between two checkpoints also where. Nothing here may
//! call a log sound of which no checkpoint was verified.

use std::collections::BTreeSet;

use lazaret_contract::digest::Sha256Digest;

use super::checkpoint::{self, CheckpointError, CheckpointSigner, Opened};
use super::entry::EntryKind;
use super::file::{LogFault, LogFile};
use crate::text::KeyName;
use crate::trust::TrustStore;

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuditFault {
    /// It shows in the log itself.
    #[error("{0}")]
    Log(#[from] LogFault),
    /// A checkpoint is refused.
    #[error("{0}")]
    Checkpoint(#[from] CheckpointError),
    /// There is no checkpoint to audit against.
    #[error("no checkpoint was given: nothing can be said of this log")]
    NoCheckpoint,
    /// Checkpoints of another log.
    #[error("checkpoints of two logs were given: {0} and {1}")]
    TwoLogs(KeyName, KeyName),
    /// The log is shorter than it was.
    #[error("log's tail is cut: {entries} entries, but a checkpoint covers {covered}")]
    CutTail {
        /// How many entries there are.
        entries: u64,
        /// How many there were.
        covered: u64,
    },
    /// An entry was changed, moved or dropped.
    #[error("an entry from {sound} to {} was changed, moved or dropped", covered - 1)]
    Rewritten {
        /// Entries before this one are as an older checkpoint has them.
        sound: u64,
        /// The checkpoint that disagrees covers entries before this one.
        covered: u64,
    },
    /// Two checkpoints of one size disagree: the log was shown in two versions.
    #[error("two checkpoints of size {0} disagree: the log was shown in two versions")]
    SplitView(u64),
}

/// What was found of a sound log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditReport {
    /// The log's name.
    pub origin: KeyName,
    /// How many entries there are.
    pub entries: u64,
    /// How many of them stand under a checkpoint. The rest may still be changed
    /// without a trace.
    pub covered: u64,
    /// Who signed the newest checkpoint.
    pub signers: Vec<CheckpointSigner>,
    /// Logged receipts that were not among those given.
    pub receipts_missing: Vec<Sha256Digest>,
    /// Given receipts that are not in the log.
    pub receipts_not_logged: Vec<Sha256Digest>,
}

/// Audits a log file against checkpoints, in any order, from wherever they were
/// kept. `receipts` are digests of the receipts at hand, if they are to be compared.
///
/// # Errors
/// The first fault.
pub fn audit(
    log: &[u8],
    checkpoints: &[Vec<u8>],
    trust: &TrustStore,
    receipts: Option<&BTreeSet<Sha256Digest>>,
) -> Result<AuditReport, AuditFault> {
    let mut opened = checkpoints
        .iter()
        .map(|bytes| checkpoint::open(bytes, trust))
        .collect::<Result<Vec<Opened>, _>>()?;
    opened.sort_by_key(|one| one.checkpoint.size);
    let newest = opened.last().cloned().ok_or(AuditFault::NoCheckpoint)?;
    let origin = newest.checkpoint.origin.clone();
    if let Some(other) = opened.iter().find(|one| one.checkpoint.origin != origin) {
        return Err(AuditFault::TwoLogs(other.checkpoint.origin.clone(), origin));
    }
    for pair in opened.windows(2) {
        let [older, newer] = [&pair[0].checkpoint, &pair[1].checkpoint];
        if older.size == newer.size && older.root != newer.root {
            return Err(AuditFault::SplitView(older.size));
        }
    }
    let log = LogFile::parse(log)?;
    let mut sound = 0;
    for one in &opened {
        let covered = one.checkpoint.size;
        match log.root_at(covered) {
            None => {
                return Err(AuditFault::CutTail {
                    entries: log.size(),
                    covered,
                });
            }
            Some(root) if root != one.checkpoint.root => {
                return Err(AuditFault::Rewritten { sound, covered });
            }
            Some(_) => sound = covered,
        }
    }
    let (receipts_missing, receipts_not_logged) = compare(&log, receipts);
    Ok(AuditReport {
        origin,
        entries: log.size(),
        covered: sound,
        signers: newest.signers,
        receipts_missing,
        receipts_not_logged,
    })
}

fn compare(
    log: &LogFile,
    receipts: Option<&BTreeSet<Sha256Digest>>,
) -> (Vec<Sha256Digest>, Vec<Sha256Digest>) {
    let Some(given) = receipts else {
        return (Vec::new(), Vec::new());
    };
    let logged: BTreeSet<Sha256Digest> = log
        .entries()
        .iter()
        .filter(|entry| entry.kind == EntryKind::Receipt)
        .map(|entry| entry.sha256)
        .collect();
    let missing = logged.difference(given).copied().collect();
    (missing, given.difference(&logged).copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{Purpose, SigningPair};
    use crate::trust::TrustedKey;

    struct Fixture {
        log: LogFile,
        pair: SigningPair,
        trust: TrustStore,
    }

    impl Fixture {
        fn new(entries: u64) -> Self {
            let name = "test/log".parse().unwrap();
            let pair = SigningPair::generate(Purpose::Checkpoint, name).unwrap();
            let trust = TrustStore::new([TrustedKey::of(&pair.public())]).unwrap();
            let mut log = LogFile::default();
            for index in 0..entries {
                let digest = Sha256Digest::of(&index.to_le_bytes());
                log.push(EntryKind::Receipt, digest).unwrap();
            }
            Self { log, pair, trust }
        }

        fn checkpoint(&self, size: u64) -> Vec<u8> {
            let root = self.log.root_at(size).unwrap();
            let origin = self.pair.name().clone();
            let checkpoint = checkpoint::Checkpoint { origin, size, root };
            checkpoint.sign(&self.pair).unwrap().to_bytes()
        }

        fn lines(&self) -> Vec<String> {
            self.log
                .entries()
                .iter()
                .map(|entry| entry.line())
                .collect()
        }

        fn audit(&self, lines: &[String], sizes: &[u64]) -> Result<AuditReport, AuditFault> {
            let checkpoints: Vec<_> = sizes.iter().map(|size| self.checkpoint(*size)).collect();
            audit(lines.concat().as_bytes(), &checkpoints, &self.trust, None)
        }
    }

    /// The lines with indices as a forger would write them.
    fn renumbered(lines: &[String]) -> Vec<String> {
        let renumber = |(index, line): (usize, &String)| {
            let (_, rest) = line.split_once(' ').unwrap();
            format!("{index} {rest}")
        };
        lines.iter().enumerate().map(renumber).collect()
    }

    #[test]
    fn a_sound_log_passes_and_says_how_much_is_covered() {
        let fixture = Fixture::new(9);
        let report = fixture.audit(&fixture.lines(), &[7, 3]).unwrap();
        assert_eq!((report.entries, report.covered), (9, 7));
        assert_eq!(report.signers.len(), 1);
    }

    #[test]
    fn without_a_checkpoint_nothing_is_sound() {
        let fixture = Fixture::new(3);
        assert_eq!(
            fixture.audit(&fixture.lines(), &[]),
            Err(AuditFault::NoCheckpoint)
        );
    }

    #[test]
    fn a_cut_tail_shows() {
        let fixture = Fixture::new(9);
        for kept in 0..9 {
            let cut = fixture.audit(&fixture.lines()[..kept], &[9]);
            let entries = kept as u64;
            assert_eq!(
                cut,
                Err(AuditFault::CutTail {
                    entries,
                    covered: 9
                })
            );
        }
        let mut bytes = fixture.lines().concat().into_bytes();
        bytes.pop();
        let checkpoints = [fixture.checkpoint(8)];
        let cut = audit(&bytes, &checkpoints, &fixture.trust, None);
        assert_eq!(cut, Err(AuditFault::Log(LogFault::Line { line: 9 })));
    }

    #[test]
    fn every_removed_swapped_or_doubled_entry_shows_with_and_without_new_numbers() {
        let fixture = Fixture::new(9);
        let lines = fixture.lines();
        for at in 0..9 {
            let mut removed = lines.clone();
            removed.remove(at);
            let mut doubled = lines.clone();
            doubled.insert(at, lines[at].clone());
            let mut swapped = lines.clone();
            swapped.swap(at, (at + 1) % 9);
            for forged in [removed, doubled, swapped] {
                assert!(fixture.audit(&forged, &[9]).is_err());
                assert!(fixture.audit(&renumbered(&forged), &[9]).is_err());
            }
        }
    }

    #[test]
    fn faults_without_new_numbers_are_named() {
        let fixture = Fixture::new(9);
        let lines = fixture.lines();
        let mut removed = lines.clone();
        removed.drain(3..5);
        let fault = LogFault::Missing {
            wanted: 3,
            found: 5,
        };
        assert_eq!(fault.to_string(), "entries 3 to 4 are missing from the log");
        assert_eq!(fixture.audit(&removed, &[9]), Err(fault.into()));
        let mut doubled = lines.clone();
        doubled.insert(4, lines[3].clone());
        let fault = LogFault::OutOfOrder {
            wanted: 4,
            found: 3,
        };
        assert_eq!(fixture.audit(&doubled, &[9]), Err(fault.into()));
        let fault = LogFault::Duplicate { index: 4, first: 3 };
        assert_eq!(
            fixture.audit(&renumbered(&doubled), &[9]),
            Err(fault.into())
        );
    }

    #[test]
    fn an_older_checkpoint_narrows_where_the_log_was_rewritten() {
        let fixture = Fixture::new(9);
        let mut lines = fixture.lines();
        lines[6] = lines[6].replace("receipt", "event");
        let rewritten = AuditFault::Rewritten {
            sound: 4,
            covered: 8,
        };
        assert_eq!(fixture.audit(&lines, &[4, 8, 9]), Err(rewritten));
        // What no checkpoint covers shows to nobody, and the report says so.
        assert_eq!(fixture.audit(&lines, &[4]).unwrap().covered, 4);
    }

    #[test]
    fn two_versions_of_a_log_are_a_split_view() {
        let fixture = Fixture::new(4);
        let origin = fixture.pair.name().clone();
        let root = Sha256Digest::of(b"other");
        let other = checkpoint::Checkpoint {
            origin,
            size: 4,
            root,
        };
        let checkpoints = [
            fixture.checkpoint(4),
            other.sign(&fixture.pair).unwrap().to_bytes(),
        ];
        let log = fixture.log.to_bytes();
        let fault = audit(&log, &checkpoints, &fixture.trust, None);
        assert_eq!(fault, Err(AuditFault::SplitView(4)));
    }

    #[test]
    fn receipts_and_entries_are_compared_one_to_one() {
        let fixture = Fixture::new(3);
        let digests: Vec<_> = fixture
            .log
            .entries()
            .iter()
            .map(|entry| entry.sha256)
            .collect();
        let stranger = Sha256Digest::of(b"stranger");
        let given = BTreeSet::from([digests[0], digests[1], stranger]);
        let checkpoints = [fixture.checkpoint(3)];
        let log = fixture.log.to_bytes();
        let report = audit(&log, &checkpoints, &fixture.trust, Some(&given)).unwrap();
        assert_eq!(report.receipts_missing, [digests[2]]);
        assert_eq!(report.receipts_not_logged, [stranger]);
    }
}
