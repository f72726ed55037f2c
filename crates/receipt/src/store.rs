//! Files of this crate: key files and a log outside a board.
//!
//! Everything goes through held directories and is written whole or not at all. A
//! log's file is written before its checkpoint, so after a crash entries may stand
//! beyond the checkpoint, never the other way round. Nothing here may append to a
//! log that its own checkpoint contradicts, or read a key that others can read.

use lazaret_contract::digest::Sha256Digest;
use lazaret_custody::{CustodyError, FileRules, HeldDir, NameError, Refusal, RelativeName};
use zeroize::Zeroizing;

use crate::keys::{KeyError, SigningPair};
use crate::limits::{KEY_FILE_BYTES_MAX, LOG_FILE_BYTES_MAX, NOTE_BYTES_MAX};
use crate::log::audit::{self, AuditFault, AuditReport};
use crate::log::checkpoint::CheckpointError;
use crate::log::entry::{Entry, EntryKind};
use crate::log::file::{LogFault, LogFile};
use crate::trust::TrustStore;

/// Name of the log's file in its directory.
pub const LOG_FILE: &str = "log";
/// Name of the newest checkpoint in the log's directory.
pub const CHECKPOINT_FILE: &str = "checkpoint";
/// Mode of a key file.
pub const KEY_MODE: u32 = 0o600;
/// Mode of a log and its checkpoint: everybody may check them.
pub const LOG_MODE: u32 = 0o644;

/// Why a file of ours is refused or not written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// What custody says.
    #[error("{0}")]
    Custody(#[from] CustodyError),
    /// A name that there cannot be.
    #[error("{0}")]
    Name(#[from] NameError),
    /// The key file is readable for others.
    #[error("{path}: key file has mode {mode:04o} instead of 0600")]
    KeyMode {
        /// Where.
        path: String,
        /// The mode found.
        mode: u32,
    },
    /// What is in the key file.
    #[error("{0}")]
    Key(#[from] KeyError),
    /// The log contradicts its checkpoint, or itself.
    #[error("{0}")]
    Audit(#[from] AuditFault),
    /// The log refuses an entry.
    #[error("{0}")]
    Log(#[from] LogFault),
    /// The key may not sign the log's checkpoints.
    #[error("{0}")]
    Checkpoint(#[from] CheckpointError),
}

/// Writes a new key file. A key is never written over.
///
/// # Errors
/// When the name is taken, and what custody says.
pub fn write_key(dir: &HeldDir, name: &str, pair: &SigningPair) -> Result<(), StoreError> {
    let name: RelativeName = name.parse()?;
    Ok(dir.write_new_durable(&name, &pair.to_file(), KEY_MODE)?)
}

/// Reads a key file that `uid` owns.
///
/// # Errors
/// When somebody else can read it, when it is none, and what custody says.
pub fn read_key(dir: &HeldDir, name: &str, uid: u32) -> Result<SigningPair, StoreError> {
    let name: RelativeName = name.parse()?;
    let rules = FileRules::private(KEY_FILE_BYTES_MAX as u64, uid);
    let file = dir.open_file(&name, rules)?;
    let mode = file.facts().mode;
    if mode != KEY_MODE {
        let path = lazaret_custody::error::shown(file.path());
        return Err(StoreError::KeyMode { path, mode });
    }
    Ok(SigningPair::from_file(&Zeroizing::new(file.read()?))?)
}

/// A log in a directory: the entries and the newest checkpoint.
#[derive(Debug)]
pub struct LogStore {
    dir: HeldDir,
    uid: u32,
    log: LogFile,
    checkpoint: Option<Vec<u8>>,
}

impl LogStore {
    /// Opens a log that `uid` owns; an empty directory is an empty log.
    ///
    /// # Errors
    /// When the log and its checkpoint contradict each other, when there are entries
    /// and no checkpoint, when no key of `trust` signed it, and what custody says.
    pub fn open(dir: HeldDir, uid: u32, trust: &TrustStore) -> Result<Self, StoreError> {
        let entries = read_if_there(&dir, LOG_FILE, LOG_FILE_BYTES_MAX, uid)?;
        let checkpoint = read_if_there(&dir, CHECKPOINT_FILE, NOTE_BYTES_MAX, uid)?;
        let entries = entries.unwrap_or_default();
        if let Some(checkpoint) = &checkpoint {
            audit::audit(&entries, std::slice::from_ref(checkpoint), trust, None)?;
        } else if !entries.is_empty() {
            return Err(AuditFault::NoCheckpoint.into());
        }
        let log = LogFile::parse(&entries)?;
        Ok(Self {
            dir,
            uid,
            log,
            checkpoint,
        })
    }

    /// The entries.
    pub fn log(&self) -> &LogFile {
        &self.log
    }

    /// The newest checkpoint; none while the log is empty.
    pub fn checkpoint(&self) -> Option<&[u8]> {
        self.checkpoint.as_deref()
    }

    /// Appends entries and signs a new checkpoint; both are on the disk afterwards.
    ///
    /// # Errors
    /// When one of them is in the log already, when the key may not sign, and what
    /// custody says. Of entries that were refused nothing is written.
    pub fn append(
        &mut self,
        entries: &[(EntryKind, Sha256Digest)],
        pair: &SigningPair,
    ) -> Result<Vec<Entry>, StoreError> {
        let mut next = self.log.clone();
        let added = entries
            .iter()
            .map(|(kind, sha256)| next.push(*kind, *sha256))
            .collect::<Result<Vec<_>, _>>()?;
        let checkpoint = next.head(pair.name().clone()).sign(pair)?.to_bytes();
        let first = self.checkpoint.is_none();
        if first {
            // So that a crash between the two files never leaves entries alone: a
            // checkpoint of the empty log is there before them.
            let empty = LogFile::default()
                .head(pair.name().clone())
                .sign(pair)?
                .to_bytes();
            self.dir
                .replace_durable(&CHECKPOINT_FILE.parse()?, &empty, LOG_MODE)?;
        }
        self.dir
            .replace_durable(&LOG_FILE.parse()?, &next.to_bytes(), LOG_MODE)?;
        self.dir
            .replace_durable(&CHECKPOINT_FILE.parse()?, &checkpoint, LOG_MODE)?;
        self.log = next;
        self.checkpoint = Some(checkpoint);
        Ok(added)
    }

    /// Audits what is on the disk now against the checkpoint beside it and those
    /// that were kept elsewhere.
    ///
    /// # Errors
    /// The first fault, and what custody says.
    pub fn audit(&self, kept: &[Vec<u8>], trust: &TrustStore) -> Result<AuditReport, StoreError> {
        let entries = read_if_there(&self.dir, LOG_FILE, LOG_FILE_BYTES_MAX, self.uid)?;
        let own = read_if_there(&self.dir, CHECKPOINT_FILE, NOTE_BYTES_MAX, self.uid)?;
        let checkpoints: Vec<_> = own.into_iter().chain(kept.iter().cloned()).collect();
        Ok(audit::audit(
            &entries.unwrap_or_default(),
            &checkpoints,
            trust,
            None,
        )?)
    }
}

fn read_if_there(
    dir: &HeldDir,
    name: &str,
    limit_bytes: usize,
    uid: u32,
) -> Result<Option<Vec<u8>>, StoreError> {
    let rules = FileRules::private(limit_bytes as u64, uid);
    match dir.read_file(&name.parse()?, rules) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if matches!(error.refusal, Refusal::NotFound) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Purpose;
    use crate::trust::TrustedKey;
    use lazaret_custody::Trust;
    use std::os::unix::fs::PermissionsExt as _;

    struct Place {
        folder: tempfile::TempDir,
        pair: SigningPair,
        trust: TrustStore,
    }

    impl Place {
        fn new() -> Self {
            let name = "test/log".parse().unwrap();
            let pair = SigningPair::generate(Purpose::Checkpoint, name).unwrap();
            let trust = TrustStore::new([TrustedKey::of(&pair.public())]).unwrap();
            Self {
                folder: tempfile::tempdir().unwrap(),
                pair,
                trust,
            }
        }

        fn held(&self) -> HeldDir {
            HeldDir::open_trusted(self.folder.path(), Trust::acting()).unwrap()
        }

        fn open(&self) -> Result<LogStore, StoreError> {
            LogStore::open(self.held(), uid(), &self.trust)
        }

        fn file(&self, name: &str) -> std::path::PathBuf {
            self.folder.path().join(name)
        }
    }

    fn uid() -> u32 {
        Trust::acting().acting_uid
    }

    fn receipt(text: &str) -> (EntryKind, Sha256Digest) {
        (EntryKind::Receipt, Sha256Digest::of(text.as_bytes()))
    }

    #[test]
    fn a_log_grows_and_is_found_again() {
        let place = Place::new();
        let mut store = place.open().unwrap();
        assert_eq!(store.checkpoint(), None);
        let added = store
            .append(&[receipt("a"), receipt("b")], &place.pair)
            .unwrap();
        assert_eq!(
            added.iter().map(|entry| entry.index).collect::<Vec<_>>(),
            [0, 1]
        );
        store.append(&[receipt("c")], &place.pair).unwrap();
        let again = place.open().unwrap();
        assert_eq!(again.log().entries(), store.log().entries());
        assert_eq!(again.checkpoint(), store.checkpoint());
        assert_eq!(again.audit(&[], &place.trust).unwrap().covered, 3);
    }

    #[test]
    fn a_repeated_entry_is_refused_and_nothing_is_written() {
        let place = Place::new();
        let mut store = place.open().unwrap();
        store.append(&[receipt("a")], &place.pair).unwrap();
        let before = std::fs::read(place.file(LOG_FILE)).unwrap();
        let refused = store.append(&[receipt("b"), receipt("a")], &place.pair);
        assert!(matches!(
            refused,
            Err(StoreError::Log(LogFault::Duplicate { .. }))
        ));
        assert_eq!(std::fs::read(place.file(LOG_FILE)).unwrap(), before);
        assert_eq!(store.log().size(), 1);
    }

    #[test]
    fn a_log_that_was_written_and_not_yet_signed_goes_on() {
        let place = Place::new();
        let mut store = place.open().unwrap();
        store.append(&[receipt("a")], &place.pair).unwrap();
        let old = std::fs::read(place.file(CHECKPOINT_FILE)).unwrap();
        store.append(&[receipt("b")], &place.pair).unwrap();
        // The crash: the log has its second entry, the checkpoint is the first one.
        std::fs::write(place.file(CHECKPOINT_FILE), old).unwrap();
        let mut again = place.open().unwrap();
        assert_eq!(again.audit(&[], &place.trust).unwrap().covered, 1);
        again.append(&[receipt("c")], &place.pair).unwrap();
        assert_eq!(again.audit(&[], &place.trust).unwrap().covered, 3);
    }

    #[test]
    fn a_log_that_its_checkpoint_contradicts_is_not_opened() {
        let place = Place::new();
        let mut store = place.open().unwrap();
        store
            .append(&[receipt("a"), receipt("b")], &place.pair)
            .unwrap();
        let log = std::fs::read_to_string(place.file(LOG_FILE)).unwrap();
        let line = log.lines().next().unwrap();
        let other = log.replacen("receipt", "event", 1);
        for changed in [format!("{line}\n"), String::new(), other] {
            std::fs::write(place.file(LOG_FILE), changed).unwrap();
            assert!(matches!(place.open(), Err(StoreError::Audit(_))));
        }
        std::fs::write(place.file(LOG_FILE), &log).unwrap();
        std::fs::remove_file(place.file(CHECKPOINT_FILE)).unwrap();
        let refused = place.open();
        assert!(matches!(
            refused,
            Err(StoreError::Audit(AuditFault::NoCheckpoint))
        ));
    }

    #[test]
    fn a_checkpoint_kept_elsewhere_shows_a_log_that_was_rolled_back_with_its_own() {
        let place = Place::new();
        let mut store = place.open().unwrap();
        store.append(&[receipt("a")], &place.pair).unwrap();
        let read = |name| std::fs::read(place.file(name)).unwrap();
        let old = [read(LOG_FILE), read(CHECKPOINT_FILE)];
        store.append(&[receipt("b")], &place.pair).unwrap();
        let kept = vec![read(CHECKPOINT_FILE)];
        std::fs::write(place.file(LOG_FILE), &old[0]).unwrap();
        std::fs::write(place.file(CHECKPOINT_FILE), &old[1]).unwrap();
        let again = place.open().unwrap();
        assert!(again.audit(&[], &place.trust).is_ok());
        let fault = again.audit(&kept, &place.trust).unwrap_err();
        assert!(matches!(
            fault,
            StoreError::Audit(AuditFault::CutTail {
                entries: 1,
                covered: 2
            })
        ));
    }

    #[test]
    fn a_key_file_is_0600_and_no_other_mode_is_read() {
        let place = Place::new();
        let held = place.held();
        write_key(&held, "checkpoint.key", &place.pair).unwrap();
        assert!(write_key(&held, "checkpoint.key", &place.pair).is_err());
        let read = read_key(&held, "checkpoint.key", uid()).unwrap();
        assert_eq!(read.public(), place.pair.public());
        for mode in [0o640, 0o604, 0o644, 0o400, 0o700] {
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(place.file("checkpoint.key"), permissions).unwrap();
            assert!(
                read_key(&held, "checkpoint.key", uid()).is_err(),
                "{mode:o}"
            );
        }
    }
}
