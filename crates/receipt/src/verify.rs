//! Verification of a receipt, from its bytes and a trust file alone.
//!
//! The order is fixed: form, keys, signatures, what the statement says, place in the
//! log, what the caller expects. The first fault refuses, with its reason. What was
//! checked and what was not is part of the answer, because a receipt that verifies
//! is still only the word of its signer. Nothing here opens a file, asks a network or
//! reads a clock.

use lazaret_contract::digest::Sha256Digest;
use lazaret_contract::json::JsonErrorKind;

use crate::envelope::{Envelope, EnvelopeError, PAYLOAD_TYPE, pre_authentication_encoding};
use crate::expect::{Expectations, Unmet};
use crate::keys::Purpose;
use crate::log::checkpoint::CheckpointSigner;
use crate::log::proof::{Inclusion, InclusionError};
use crate::part::words;
use crate::predicate::Kind;
use crate::signature::{KeyId, SignatureError};
use crate::statement::{Statement, StatementError};
use crate::text::KeyName;
use crate::trust::{KnownKey, TrustStore};

words! {
    /// One of the two signatures.
    pub enum Algorithm {
        /// The first.
        Ed25519 = "Ed25519",
        /// The second.
        P256 = "P-256",
    }
}

/// Why a receipt is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The envelope is none of ours.
    #[error("{0}")]
    Envelope(#[from] EnvelopeError),
    /// The trust store believes nobody: nothing can be verified.
    #[error("no trusted key was given")]
    NoTrustedKey,
    /// The key of a signature is not in the trust store, or not for that algorithm.
    #[error("{algorithm} signature is by the key {key_id}, which is not trusted")]
    ForeignKey {
        /// Which signature.
        algorithm: Algorithm,
        /// The key that it names.
        key_id: KeyId,
    },
    /// The two signatures are by keys of two pairs.
    #[error("the two signatures are by keys of two different pairs")]
    TwoPairs,
    /// A signature is refused.
    #[error("{algorithm} signature {problem}")]
    Signature {
        /// Which one.
        algorithm: Algorithm,
        /// What is wrong with it.
        problem: SignatureError,
    },
    /// The statement is none of ours.
    #[error("{0}")]
    Statement(#[from] StatementError),
    /// The key may sign, but nothing of this kind.
    #[error("the key {name} is for {purpose} and may not sign a statement of kind {kind}")]
    WrongPurpose {
        /// The key's name.
        name: KeyName,
        /// What it may sign.
        purpose: Purpose,
        /// What it did.
        kind: Kind,
    },
    /// The key counts for a part of a log only, and where the receipt stands in it is
    /// not shown.
    #[error("the key {name} counts for a part of the log {log}; an inclusion proof is needed")]
    ProofNeeded {
        /// The key's name.
        name: KeyName,
        /// The log.
        log: KeyName,
    },
    /// The receipt stands in the log after the key was replaced.
    #[error(
        "the key {name} was replaced at index {until} of the log; the receipt is entry {index}"
    )]
    KeyExpired {
        /// The key's name.
        name: KeyName,
        /// Where it was replaced.
        until: u64,
        /// Where the receipt stands.
        index: u64,
    },
    /// The receipt stands in the log before the key was taken into use.
    #[error("the key {name} counts from index {from} of the log; the receipt is entry {index}")]
    KeyNotYet {
        /// The key's name.
        name: KeyName,
        /// Where it was taken into use.
        from: u64,
        /// Where the receipt stands.
        index: u64,
    },
    /// The receipt stands in another log than the key's.
    #[error("the key {name} counts for the log {wanted}; the receipt stands in {found}")]
    OtherLog {
        /// The key's name.
        name: KeyName,
        /// The key's log.
        wanted: KeyName,
        /// The receipt's log.
        found: KeyName,
    },
    /// The key is no longer believed.
    #[error("the key {name} is revoked")]
    KeyRevoked {
        /// The key's name.
        name: KeyName,
    },
    /// The place in the log is not proved.
    #[error("{0}")]
    Inclusion(#[from] InclusionError),
    /// The caller asked for a place in the log, and none was shown.
    #[error("an inclusion proof is expected and none was given")]
    NotLogged,
    /// The receipt says something else than the caller expects.
    #[error("{0}")]
    Unmet(#[from] Unmet),
}

impl Refused {
    /// The reason as a code: one word per variant, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Envelope(error) => envelope_code(error),
            Self::NoTrustedKey => "no_trusted_key",
            Self::ForeignKey { .. } => "foreign_key",
            Self::TwoPairs => "two_key_pairs",
            Self::Signature {
                problem: SignatureError::Encoding,
                ..
            } => "signature_encoding",
            Self::Signature {
                problem: SignatureError::HighS,
                ..
            } => "signature_malleable",
            Self::Signature {
                problem: SignatureError::Wrong,
                ..
            } => "signature_wrong",
            Self::Statement(StatementError::Json(error)) => json_code(error.kind),
            Self::Statement(StatementError::NotCanonical) => "statement_not_canonical",
            Self::Statement(StatementError::Form(_)) => "statement_form",
            Self::Statement(StatementError::UnknownPredicate(_)) => "predicate_unknown",
            Self::WrongPurpose { .. } => "key_purpose",
            Self::ProofNeeded { .. } => "proof_needed",
            Self::KeyExpired { .. } => "key_expired",
            Self::KeyNotYet { .. } => "key_not_yet",
            Self::OtherLog { .. } => "key_other_log",
            Self::KeyRevoked { .. } => "key_revoked",
            Self::Inclusion(_) => "not_in_log",
            Self::NotLogged => "not_logged",
            Self::Unmet(_) => "not_as_expected",
        }
    }
}

fn envelope_code(error: &EnvelopeError) -> &'static str {
    match error {
        EnvelopeError::Json(error) => json_code(error.kind),
        EnvelopeError::Form(_) => "envelope_form",
        EnvelopeError::NotCanonical => "envelope_not_canonical",
        EnvelopeError::PayloadType(_) => "payload_type",
        EnvelopeError::Base64(_) => "base64",
        EnvelopeError::SignatureCount(_) => "signature_count",
    }
}

fn json_code(kind: JsonErrorKind) -> &'static str {
    match kind {
        JsonErrorKind::SizeIn | JsonErrorKind::SizeOut => "too_large",
        JsonErrorKind::DuplicateKey => "duplicate_key",
        JsonErrorKind::Depth | JsonErrorKind::Nodes => "nesting",
        JsonErrorKind::IntDigits | JsonErrorKind::Nonfinite => "number",
        _ => "not_json",
    }
}

words! {
    /// What was, or was not, checked of a receipt.
    pub enum Claim {
        /// The bytes are the one text of an envelope with two signatures.
        Form = "form",
        /// Both signatures are by one trusted pair for this kind of statement.
        Signatures = "signatures",
        /// The statement keeps the rules of its kind.
        Statement = "statement",
        /// It stands in the log at an index, under a signed checkpoint.
        LogPlace = "log-place",
        /// Somebody else than the log's owner has signed that checkpoint.
        Witnessed = "witnessed",
        /// Its kind is the expected one.
        Kind = "kind",
        /// It is about the expected bytes.
        Subjects = "subjects",
        /// It is of the expected closure.
        Closure = "closure",
        /// It is of the expected profile.
        Profile = "profile",
        /// It is of the expected task.
        Task = "task",
        /// That what it says is true. Never checked by this program: a build or an
        /// attack can be repeated, a run is the word of the operator's key.
        Truth = "truth",
    }
}

impl Claim {
    /// What it means, in words, for a kind of statement.
    pub fn meaning(self, kind: Kind) -> &'static str {
        match (self, kind) {
            (Self::Form, _) => "the bytes are one envelope with two signatures",
            (Self::Signatures, _) => "both signatures are by one trusted key pair for this kind",
            (Self::Statement, _) => "the statement keeps the rules of its kind",
            (Self::LogPlace, _) => "it stands in the log under a signed checkpoint",
            (Self::Witnessed, _) => "a witness has signed that checkpoint",
            (Self::Kind, _) => "it is of the expected kind",
            (Self::Subjects, _) => "it is about the expected bytes",
            (Self::Closure, _) => "it is of the expected closure",
            (Self::Profile, _) => "it is of the expected profile",
            (Self::Task, _) => "it is of the expected task",
            (Self::Truth, Kind::Build | Kind::Bom) => "what it says is true: rebuild to see",
            (Self::Truth, Kind::Attack) => "what it says is true: run the attacks to see",
            (Self::Truth, _) => "what it says is true: that is the word of the signer",
        }
    }
}

/// Where a receipt stands in a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPlace {
    /// The log.
    pub origin: KeyName,
    /// The entry.
    pub index: u64,
    /// How many entries the checkpoint covers.
    pub size: u64,
    /// Who signed the checkpoint.
    pub signers: Vec<CheckpointSigner>,
}

/// A receipt that verifies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Digest of the receipt's bytes.
    pub digest: Sha256Digest,
    /// What it says.
    pub statement: Statement,
    /// Name of the key pair that signed it.
    pub signer: KeyName,
    /// Ids of its two keys.
    pub key_ids: [KeyId; 2],
    /// Where it stands in a log, if that was shown.
    pub log: Option<LogPlace>,
    /// What was checked, in order.
    pub checked: Vec<Claim>,
    /// What was not.
    pub not_checked: Vec<Claim>,
}

/// Verifies a receipt.
///
/// # Errors
/// The first fault, in the order that the module states.
pub fn verify(
    receipt: &[u8],
    trust: &TrustStore,
    expected: &Expectations,
) -> Result<Verified, Refused> {
    let envelope = Envelope::parse(receipt)?;
    if trust.is_empty() {
        return Err(Refused::NoTrustedKey);
    }
    let known = signer(&envelope, trust)?;
    check_signatures(&envelope, known)?;
    let statement = Statement::parse(&envelope.payload)?;
    let (kind, key) = (statement.kind(), &known.key);
    if key.purpose != kind.purpose() {
        let (name, purpose) = (key.name.clone(), key.purpose);
        return Err(Refused::WrongPurpose {
            name,
            purpose,
            kind,
        });
    }
    let log = log_place(receipt, trust, expected)?;
    check_standing(known, log.as_ref())?;
    let met = expected.check(&statement)?;
    let mut checked = vec![Claim::Form, Claim::Signatures, Claim::Statement];
    checked.extend(log.iter().map(|_| Claim::LogPlace));
    let is_witnessed = log.as_ref().is_some_and(|place| {
        place
            .signers
            .iter()
            .any(|signer| signer.purpose == Purpose::Witness)
    });
    if is_witnessed {
        checked.push(Claim::Witnessed);
    }
    checked.extend(met);
    let not_checked = Claim::ALL
        .iter()
        .copied()
        .filter(|claim| !checked.contains(claim))
        .collect();
    Ok(Verified {
        digest: Sha256Digest::of(receipt),
        signer: key.name.clone(),
        key_ids: envelope.signatures.map(|signature| signature.key_id),
        statement,
        log,
        checked,
        not_checked,
    })
}

/// The one pair that both signatures name.
fn signer<'a>(envelope: &Envelope, trust: &'a TrustStore) -> Result<&'a KnownKey, Refused> {
    let [first, second] = &envelope.signatures;
    let foreign = |algorithm, key_id| Refused::ForeignKey { algorithm, key_id };
    let by_first = trust
        .by_ed25519(first.key_id)
        .ok_or(foreign(Algorithm::Ed25519, first.key_id))?;
    let by_second = trust
        .by_p256(second.key_id)
        .ok_or(foreign(Algorithm::P256, second.key_id))?;
    if by_first.ed25519_id != by_second.ed25519_id {
        return Err(Refused::TwoPairs);
    }
    Ok(by_first)
}

fn check_signatures(envelope: &Envelope, known: &KnownKey) -> Result<(), Refused> {
    let [first, second] = &envelope.signatures;
    let signed = pre_authentication_encoding(PAYLOAD_TYPE, &envelope.payload);
    let refused = |algorithm| move |problem| Refused::Signature { algorithm, problem };
    known
        .key
        .ed25519
        .verify(&signed, &first.bytes)
        .map_err(refused(Algorithm::Ed25519))?;
    // A pair was found by the id of this key, so it is there.
    let p256 = known.key.p256.as_ref().ok_or(Refused::TwoPairs)?;
    p256.verify(&signed, &second.bytes)
        .map_err(refused(Algorithm::P256))
}

fn log_place(
    receipt: &[u8],
    trust: &TrustStore,
    expected: &Expectations,
) -> Result<Option<LogPlace>, Refused> {
    let Some(proof) = &expected.inclusion else {
        return if expected.must_be_logged {
            Err(Refused::NotLogged)
        } else {
            Ok(None)
        };
    };
    let inclusion = Inclusion::parse(proof)?;
    let opened = inclusion.verify(receipt, trust)?;
    Ok(Some(LogPlace {
        origin: opened.checkpoint.origin,
        index: inclusion.index,
        size: opened.checkpoint.size,
        signers: opened.signers,
    }))
}

/// Whether the key counts for a receipt at this place.
fn check_standing(known: &KnownKey, place: Option<&LogPlace>) -> Result<(), Refused> {
    let key = &known.key;
    let name = || key.name.clone();
    if let Some(revocation) = &key.revoked {
        // Load-bearing: a stolen key signs anything and dates it back, but it cannot
        // put it before an index that somebody else has signed.
        let is_sound = place.is_some_and(|place| {
            let by_another = |signer: &CheckpointSigner| signer.key_id != known.ed25519_id;
            revocation
                .sound_before_index
                .is_some_and(|before| place.index < before)
                && place.signers.iter().any(by_another)
        });
        if !is_sound {
            return Err(Refused::KeyRevoked { name: name() });
        }
    }
    let Some(range) = &key.range else {
        return Ok(());
    };
    let Some(place) = place else {
        return Err(Refused::ProofNeeded {
            name: name(),
            log: range.log.clone(),
        });
    };
    if place.origin != range.log {
        let (wanted, found) = (range.log.clone(), place.origin.clone());
        return Err(Refused::OtherLog {
            name: name(),
            wanted,
            found,
        });
    }
    let index = place.index;
    match range.until_index {
        Some(until) if index >= until => Err(Refused::KeyExpired {
            name: name(),
            until,
            index,
        }),
        _ if index < range.from_index => Err(Refused::KeyNotYet {
            name: name(),
            from: range.from_index,
            index,
        }),
        _ => Ok(()),
    }
}
