//! Checkpoints: how large the log was and what its root was, signed.
//!
//! C2SP's tlog-checkpoint: a note of three lines. The log's own key signs it, and
//! witnesses may cosign it with a time (C2SP tlog-cosignature). Whoever keeps one
//! outside the log can prove later that the log still begins with it. A checkpoint
//! must never be believed without a signature of a key that counts for it.

use super::merkle::Hash;
use super::note::{Note, NoteError, NoteSignature, SignatureType, key_hash};
use crate::base64;
use crate::keys::{Purpose, SigningPair};
use crate::signature::{KeyId, SignatureError};
use crate::text::KeyName;
use crate::trust::{KnownKey, TrustStore};

/// What a checkpoint says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The log's name.
    pub origin: KeyName,
    /// How many entries it held.
    pub size: u64,
    /// The root over them.
    pub root: Hash,
}

/// Why a checkpoint is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// No signed note.
    #[error("checkpoint: {0}")]
    Note(#[from] NoteError),
    /// The text is not the three lines of a checkpoint.
    #[error("checkpoint's text is not an origin, a size and a root")]
    Form,
    /// A signature of a known key does not verify.
    #[error("checkpoint's signature by {name} {problem}")]
    Signature {
        /// The key's name.
        name: String,
        /// What is wrong with it.
        problem: SignatureError,
    },
    /// A cosignature without a time that there can be.
    #[error("checkpoint's cosignature by {0} has no valid time")]
    CosignatureTime(String),
    /// No key that counts for it has signed it.
    #[error("checkpoint of {origin} at size {size} is signed by no key that counts for it")]
    NoTrustedSignature {
        /// The log's name.
        origin: KeyName,
        /// How many entries it held.
        size: u64,
    },
    /// The key is no checkpoint or witness key, or has another name than the log.
    #[error("this key may not sign checkpoints of {0}")]
    Purpose(KeyName),
}

/// Who signed a checkpoint, of those that count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointSigner {
    /// Id of the key.
    pub key_id: KeyId,
    /// Its name.
    pub name: KeyName,
    /// `checkpoint` or `witness`.
    pub purpose: Purpose,
    /// When the witness saw it, in seconds of POSIX time; the witness's word.
    pub time_s: Option<u64>,
}

/// A checkpoint that is believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// What it says.
    pub checkpoint: Checkpoint,
    /// Whose word it is.
    pub signers: Vec<CheckpointSigner>,
}

impl Checkpoint {
    /// Its text.
    pub fn text(&self) -> String {
        let root = base64::encode(self.root.as_bytes());
        format!("{}\n{}\n{root}\n", self.origin, self.size)
    }

    /// Signs it with the log's own key.
    ///
    /// # Errors
    /// When the key is for something else or has another name than the log.
    pub fn sign(&self, pair: &SigningPair) -> Result<Note, CheckpointError> {
        if pair.purpose() != Purpose::Checkpoint || *pair.name() != self.origin {
            return Err(CheckpointError::Purpose(self.origin.clone()));
        }
        let text = self.text();
        let public = pair.public().ed25519;
        let name = pair.name().to_string();
        let signature = NoteSignature {
            hash: key_hash(&name, SignatureType::Ed25519, &public),
            name,
            bytes: pair.sign_ed25519(text.as_bytes()).to_vec(),
        };
        Ok(Note {
            text,
            signatures: vec![signature],
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.split('\n');
        let checkpoint = Self {
            origin: lines.next()?.parse().ok()?,
            size: lines.next()?.parse().ok()?,
            root: Hash::from_bytes(base64::decode(lines.next()?)?.try_into().ok()?),
        };
        // Refuses leading zeros and further lines: our logs have no extensions.
        (checkpoint.text() == text).then_some(checkpoint)
    }
}

/// Adds a witness's cosignature at `time_s`, in seconds of POSIX time. The witness
/// has verified that the log only grew.
///
/// # Errors
/// When the key is no witness's, or the note is no checkpoint.
pub fn cosign(note: &mut Note, pair: &SigningPair, time_s: u64) -> Result<(), CheckpointError> {
    let checkpoint = Checkpoint::parse(&note.text).ok_or(CheckpointError::Form)?;
    if pair.purpose() != Purpose::Witness {
        return Err(CheckpointError::Purpose(checkpoint.origin));
    }
    let name = pair.name().to_string();
    let signed = cosigned_message(time_s, &note.text);
    let mut bytes = time_s.to_be_bytes().to_vec();
    bytes.extend(pair.sign_ed25519(signed.as_bytes()));
    note.signatures.push(NoteSignature {
        hash: key_hash(&name, SignatureType::Cosignature, &pair.public().ed25519),
        name,
        bytes,
    });
    Ok(())
}

fn cosigned_message(time_s: u64, text: &str) -> String {
    format!("cosignature/v1\ntime {time_s}\n{text}")
}

/// Verifies a checkpoint.
///
/// # Errors
/// When it is none, when a signature of a known key does not verify, or when no key
/// that counts for it has signed it.
pub fn open(bytes: &[u8], trust: &TrustStore) -> Result<Opened, CheckpointError> {
    let note = Note::parse(bytes)?;
    let checkpoint = Checkpoint::parse(&note.text).ok_or(CheckpointError::Form)?;
    let mut signers = Vec::new();
    for signature in &note.signatures {
        for known in trust.known() {
            if let Some(signer) = check(&note.text, signature, known, &checkpoint)? {
                signers.push(signer);
            }
        }
    }
    // Two lines of one key are one signer.
    signers.sort_by_key(|signer: &CheckpointSigner| signer.key_id);
    signers.dedup_by(|a, b| a.key_id == b.key_id);
    if signers.is_empty() {
        let Checkpoint { origin, size, .. } = checkpoint;
        return Err(CheckpointError::NoTrustedSignature { origin, size });
    }
    Ok(Opened {
        checkpoint,
        signers,
    })
}

/// The signer, if the line is of this key and the key counts for the checkpoint.
fn check(
    text: &str,
    signature: &NoteSignature,
    known: &KnownKey,
    checkpoint: &Checkpoint,
) -> Result<Option<CheckpointSigner>, CheckpointError> {
    let key = &known.key;
    let kind = match key.purpose {
        Purpose::Checkpoint => SignatureType::Ed25519,
        Purpose::Witness => SignatureType::Cosignature,
        _ => return Ok(None),
    };
    let is_its_line = signature.name == key.name.as_str()
        && signature.hash == key_hash(key.name.as_str(), kind, &key.ed25519);
    if !is_its_line {
        return Ok(None);
    }
    let (time_s, message, bytes) = match kind {
        SignatureType::Ed25519 => (None, text.to_owned(), signature.bytes.as_slice()),
        SignatureType::Cosignature => {
            let invalid = || CheckpointError::CosignatureTime(signature.name.clone());
            let (time, bytes) = signature
                .bytes
                .split_first_chunk::<8>()
                .ok_or_else(invalid)?;
            let time_s = u64::from_be_bytes(*time);
            // The format's own bound.
            if i64::try_from(time_s).is_err() {
                return Err(invalid());
            }
            (Some(time_s), cosigned_message(time_s, text), bytes)
        }
    };
    key.ed25519
        .verify(message.as_bytes(), bytes)
        .map_err(|problem| CheckpointError::Signature {
            name: signature.name.clone(),
            problem,
        })?;
    let counts = key.revoked.is_none()
        && (key.purpose == Purpose::Witness || key.name == checkpoint.origin)
        && key.range.as_ref().is_none_or(|range| {
            // A checkpoint stands where its last entry stands.
            range.log == checkpoint.origin && range.holds(checkpoint.size.saturating_sub(1))
        });
    Ok(counts.then(|| CheckpointSigner {
        key_id: known.ed25519_id,
        name: key.name.clone(),
        purpose: key.purpose,
        time_s,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::UserText;
    use crate::trust::{Range, Revocation, TrustedKey};

    fn pair(purpose: Purpose, name: &str) -> SigningPair {
        SigningPair::generate(purpose, name.parse().unwrap()).unwrap()
    }

    fn checkpoint(size: u64) -> Checkpoint {
        Checkpoint {
            origin: "test/log".parse().unwrap(),
            size,
            root: Hash::of(b"root"),
        }
    }

    fn trust(keys: &[&SigningPair]) -> TrustStore {
        TrustStore::new(keys.iter().map(|pair| TrustedKey::of(&pair.public()))).unwrap()
    }

    #[test]
    fn a_signed_checkpoint_opens_and_every_changed_byte_refuses_it() {
        let log = pair(Purpose::Checkpoint, "test/log");
        let note = checkpoint(7).sign(&log).unwrap().to_bytes();
        let trust = trust(&[&log]);
        assert_eq!(open(&note, &trust).unwrap().checkpoint, checkpoint(7));
        for at in 0..note.len() {
            for bit in [1, 2, 0x20, 0x80] {
                let mut changed = note.clone();
                changed[at] ^= bit;
                assert!(open(&changed, &trust).is_err(), "byte {at} bit {bit}");
            }
        }
    }

    #[test]
    fn without_a_key_that_counts_nothing_opens() {
        let log = pair(Purpose::Checkpoint, "test/log");
        let note = checkpoint(7).sign(&log).unwrap().to_bytes();
        let other = pair(Purpose::Checkpoint, "test/log");
        let wrong_purpose = pair(Purpose::Run, "test/log");
        for store in [trust(&[]), trust(&[&other]), trust(&[&wrong_purpose])] {
            let refused = open(&note, &store);
            assert!(matches!(
                refused,
                Err(CheckpointError::NoTrustedSignature { .. })
            ));
        }
        let elsewhere = pair(Purpose::Checkpoint, "test/other");
        let refused = checkpoint(7).sign(&elsewhere);
        assert!(matches!(refused, Err(CheckpointError::Purpose(_))));
    }

    #[test]
    fn a_key_counts_for_checkpoints_inside_its_range() {
        let log = pair(Purpose::Checkpoint, "test/log");
        let range = Range {
            from_index: 2,
            log: "test/log".parse().unwrap(),
            until_index: Some(5),
        };
        let key = TrustedKey {
            range: Some(range),
            ..TrustedKey::of(&log.public())
        };
        let trust = TrustStore::new([key]).unwrap();
        let opens = |size| open(&checkpoint(size).sign(&log).unwrap().to_bytes(), &trust).is_ok();
        assert_eq!([2, 3, 5, 6].map(opens), [false, true, true, false]);
    }

    #[test]
    fn a_witness_stands_for_a_checkpoint_whose_own_key_is_revoked() {
        let log = pair(Purpose::Checkpoint, "test/log");
        let witness = pair(Purpose::Witness, "test/witness");
        let mut note = checkpoint(7).sign(&log).unwrap();
        let mut trust = trust(&[&log, &witness]);
        let reason: UserText = "lost".parse().unwrap();
        let revocation = Revocation {
            reason,
            sound_before_index: None,
        };
        assert!(trust.revoke(log.public().ed25519_id(), revocation));
        assert!(open(&note.to_bytes(), &trust).is_err());
        cosign(&mut note, &witness, 1_700_000_000).unwrap();
        let opened = open(&note.to_bytes(), &trust).unwrap();
        assert_eq!(opened.signers.len(), 1);
        assert_eq!(opened.signers[0].time_s, Some(1_700_000_000));
        // The time is signed too.
        note.signatures[1].bytes[7] ^= 1;
        let refused = open(&note.to_bytes(), &trust);
        assert!(matches!(refused, Err(CheckpointError::Signature { .. })));
        note.signatures[1].bytes[0] = 0x80;
        let refused = open(&note.to_bytes(), &trust);
        assert!(matches!(refused, Err(CheckpointError::CosignatureTime(_))));
    }

    #[test]
    fn a_strangers_signature_is_ignored_and_a_known_wrong_one_is_not() {
        let log = pair(Purpose::Checkpoint, "test/log");
        let stranger = pair(Purpose::Witness, "test/stranger");
        let mut note = checkpoint(7).sign(&log).unwrap();
        cosign(&mut note, &stranger, 1).unwrap();
        assert!(open(&note.to_bytes(), &trust(&[&log])).is_ok());
        note.signatures[1].bytes[20] ^= 1;
        assert!(open(&note.to_bytes(), &trust(&[&log])).is_ok());
        assert!(open(&note.to_bytes(), &trust(&[&log, &stranger])).is_err());
    }

    #[test]
    fn the_text_has_one_spelling() {
        let log = pair(Purpose::Checkpoint, "test/log");
        let root = base64::encode(Hash::of(b"root").as_bytes());
        for text in [
            format!("test/log\n07\n{root}\n"),
            format!("test/log\n+7\n{root}\n"),
            format!("test/log\n7\n{root}\nextension\n"),
            format!("\n7\n{root}\n"),
            format!("test/log\n7\n{}\n", &root[..40]),
            "test/log\n7\n".to_owned(),
        ] {
            let bytes = log.sign_ed25519(text.as_bytes()).to_vec();
            let mut note = checkpoint(7).sign(&log).unwrap();
            note.text = text.clone();
            note.signatures[0].bytes = bytes;
            assert_eq!(
                open(&note.to_bytes(), &trust(&[&log])),
                Err(CheckpointError::Form),
                "{text}"
            );
        }
    }
}
