//! Whom a verifier believes: public keys with a purpose, a range and a standing.
//!
//! A trust file is written by people, so its white space is free; what it says is
//! read strictly. Keys follow each other by *log index*, never by a clock: a key
//! with a range counts for what stands in the log inside it, so an old receipt
//! stays valid after a rotation and a late one of an old key does not. A revoked key
//! counts for nothing, or, if the file says so, for what the log held before an
//! index. Nothing here may believe a key that is not in the file.

use lazaret_contract::json::{self, Bounds, JsonError, Value};

use crate::base64;
use crate::keys::{PublicPair, Purpose};
use crate::limits::{TRUST_BYTES_MAX, TRUSTED_KEYS_MAX};
use crate::part::{At, FormError, Part, constant, record, text_of};
use crate::signature::{Ed25519Public, KeyId, P256Public};
use crate::text::{KeyName, UserText};

/// The version of the trust file.
pub const TRUST_SCHEMA: &str = "lazaret-trust/1";

constant! {
    /// [`TRUST_SCHEMA`].
    pub struct TrustSchema = TRUST_SCHEMA;
}

macro_rules! public_key_part {
    ($kind:ty, $wanted:literal) => {
        impl Part for $kind {
            fn to_value(&self) -> Value {
                base64::encode(&self.to_spki()).into()
            }

            fn from_value(value: Value, at: &At<'_>) -> Result<Self, FormError> {
                let text = text_of(value, at)?;
                base64::decode(&text)
                    .and_then(|der| Self::from_spki(&der).ok())
                    .ok_or_else(|| at.error($wanted))
            }
        }
    };
}

public_key_part!(
    Ed25519Public,
    "wants an Ed25519 key as base64 of its SubjectPublicKeyInfo"
);
public_key_part!(
    P256Public,
    "wants a P-256 key as base64 of its SubjectPublicKeyInfo"
);

record! {
    /// The part of a log that a key counts for.
    pub struct Range {
        /// First index.
        "from_index" => from_index: u64,
        /// Name of the log (its checkpoints' origin).
        "log" => log: KeyName,
        /// First index that is no longer in it; absent while the key is in use.
        "until_index" => until_index: Option<u64>,
    }
}

impl Range {
    /// Whether it holds this index.
    pub fn holds(&self, index: u64) -> bool {
        index >= self.from_index && self.until_index.is_none_or(|until| index < until)
    }
}

record! {
    /// That a key is no longer believed.
    pub struct Revocation {
        /// Why, for people.
        "reason" => reason: UserText,
        /// What the log held before this index is still believed, if it stands
        /// under a checkpoint that another key or a witness has signed. Absent:
        /// nothing is.
        "sound_before_index" => sound_before_index: Option<u64>,
    }
}

record! {
    /// One key pair, or one key of a checkpoint or a witness.
    pub struct TrustedKey {
        /// The Ed25519 key.
        "ed25519" => ed25519: Ed25519Public,
        /// Its name; for checkpoints and witnesses the name in their signatures.
        "name" => name: KeyName,
        /// The P-256 key; absent for a witness, who has none.
        "p256" => p256: Option<P256Public>,
        /// What it may sign.
        "purpose" => purpose: Purpose,
        /// What it counts for; absent: everything that it signed.
        "range" => range: Option<Range>,
        /// That it is no longer believed; absent: it is.
        "revoked" => revoked: Option<Revocation>,
    }
}

record! {
    /// A trust file.
    struct TrustFile {
        /// The keys.
        "keys" => keys: Vec<TrustedKey>,
        /// The version of the form.
        "schema" => schema: TrustSchema,
    }
}

impl TrustedKey {
    /// A key that is believed for everything that it signs.
    pub fn of(pair: &PublicPair) -> Self {
        Self {
            ed25519: pair.ed25519.clone(),
            name: pair.name.clone(),
            p256: Some(pair.p256.clone()),
            purpose: pair.purpose,
            range: None,
            revoked: None,
        }
    }

    /// Id of the Ed25519 key.
    pub fn ed25519_id(&self) -> KeyId {
        KeyId::of(&self.ed25519.to_spki())
    }

    /// Id of the P-256 key, if there is one.
    pub fn p256_id(&self) -> Option<KeyId> {
        self.p256.as_ref().map(|key| KeyId::of(&key.to_spki()))
    }
}

/// Why bytes are no trust file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrustError {
    /// Not strict JSON within the limits.
    #[error("trust file is not strict JSON: {0}")]
    Json(#[from] JsonError),
    /// Not of its form, or against a rule.
    #[error("trust file is not of its form: {0}")]
    Form(#[from] FormError),
    /// A rotation that the file does not allow.
    #[error("{0}")]
    Rotation(&'static str),
}

/// A key with its ids, as it is looked up.
#[derive(Debug, Clone)]
pub(crate) struct KnownKey {
    pub(crate) key: TrustedKey,
    pub(crate) ed25519_id: KeyId,
    pub(crate) p256_id: Option<KeyId>,
}

/// The keys that a verifier believes.
#[derive(Debug, Clone, Default)]
pub struct TrustStore {
    known: Vec<KnownKey>,
}

impl TrustStore {
    /// A store of these keys.
    ///
    /// # Errors
    /// A key twice, a pair without its second key, a range without an index in it.
    pub fn new(keys: impl IntoIterator<Item = TrustedKey>) -> Result<Self, TrustError> {
        let mut store = Self::default();
        for key in keys {
            store.add(key)?;
        }
        Ok(store)
    }

    /// Reads a trust file.
    ///
    /// # Errors
    /// Names what is wrong and where.
    pub fn parse(bytes: &[u8]) -> Result<Self, TrustError> {
        let value = json::parse_bounded(bytes, Bounds::document(TRUST_BYTES_MAX))?;
        Self::new(TrustFile::from_value(value, &At::Root)?.keys)
    }

    /// The trust file of these keys.
    pub fn to_bytes(&self) -> Vec<u8> {
        let file = TrustFile {
            keys: self.keys().cloned().collect(),
            schema: TrustSchema,
        };
        json::write_pretty(&file.to_value())
    }

    /// Believes one more key.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn add(&mut self, key: TrustedKey) -> Result<(), TrustError> {
        let root = At::Root;
        let at = root.member("keys");
        let refuse = |problem: &str| TrustError::Form(at.error(format!("{}: {problem}", key.name)));
        if self.known.len() == TRUSTED_KEYS_MAX {
            return Err(refuse("the file holds too many keys"));
        }
        if key.p256.is_none() && !matches!(key.purpose, Purpose::Witness | Purpose::Checkpoint) {
            return Err(refuse("a pair for this purpose needs its P-256 key"));
        }
        let is_empty = |range: &Range| range.until_index.is_some_and(|end| end <= range.from_index);
        if key.range.as_ref().is_some_and(is_empty) {
            return Err(refuse("the range holds no index"));
        }
        let known = KnownKey {
            ed25519_id: key.ed25519_id(),
            p256_id: key.p256_id(),
            key,
        };
        // One key has one purpose: signatures of one kind must never pass as
        // another's.
        let is_twice = self.known.iter().any(|other| {
            other.ed25519_id == known.ed25519_id
                || (other.p256_id.is_some() && other.p256_id == known.p256_id)
        });
        if is_twice {
            let problem = format!("{}: the file holds one of its keys twice", known.key.name);
            return Err(TrustError::Form(at.error(problem)));
        }
        self.known.push(known);
        Ok(())
    }

    /// Adds all keys of another store.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn extend(&mut self, other: Self) -> Result<(), TrustError> {
        other
            .known
            .into_iter()
            .try_for_each(|known| self.add(known.key))
    }

    /// Every key.
    pub fn keys(&self) -> impl Iterator<Item = &TrustedKey> {
        self.known.iter().map(|known| &known.key)
    }

    /// Whether it believes nobody.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Replaces the key of `purpose` that is in use by `next`, from `index` of
    /// `log` on: the old one counts for what the log holds before, the new one for
    /// what it holds from there.
    ///
    /// # Errors
    /// When not exactly one key of that purpose is in use, when its range begins
    /// later, or when the new key may not be added.
    pub fn rotate(
        &mut self,
        next: &PublicPair,
        log: KeyName,
        index: u64,
    ) -> Result<(), TrustError> {
        let in_use = |known: &KnownKey| {
            known.key.purpose == next.purpose
                && known.key.revoked.is_none()
                && known
                    .key
                    .range
                    .as_ref()
                    .is_none_or(|range| range.until_index.is_none())
        };
        let mut current = self.known.iter_mut().filter(|known| in_use(known));
        let (Some(old), None) = (current.next(), current.next()) else {
            return Err(TrustError::Rotation(
                "not exactly one key of this purpose is in use",
            ));
        };
        let from_index = old.key.range.as_ref().map_or(0, |range| range.from_index);
        let is_other_log = old.key.range.as_ref().is_some_and(|range| range.log != log);
        if index <= from_index || is_other_log {
            return Err(TrustError::Rotation(
                "the key in use begins later, or in another log",
            ));
        }
        let old_range = Range {
            from_index,
            log: log.clone(),
            until_index: Some(index),
        };
        let new_range = Range {
            from_index: index,
            log,
            until_index: None,
        };
        let before = old.key.range.replace(old_range);
        let old_id = old.ed25519_id;
        let added = self.add(TrustedKey {
            range: Some(new_range),
            ..TrustedKey::of(next)
        });
        if added.is_err()
            && let Some(old) = self
                .known
                .iter_mut()
                .find(|known| known.ed25519_id == old_id)
        {
            old.key.range = before;
        }
        added
    }

    /// No longer believes the key with this id of either of its keys. Gives whether
    /// there was one.
    pub fn revoke(&mut self, id: KeyId, revocation: Revocation) -> bool {
        let found = self
            .known
            .iter_mut()
            .find(|known| known.ed25519_id == id || known.p256_id == Some(id));
        match found {
            Some(known) => {
                known.key.revoked = Some(revocation);
                true
            }
            None => false,
        }
    }

    pub(crate) fn known(&self) -> &[KnownKey] {
        &self.known
    }

    pub(crate) fn by_ed25519(&self, id: KeyId) -> Option<&KnownKey> {
        self.known.iter().find(|known| known.ed25519_id == id)
    }

    pub(crate) fn by_p256(&self, id: KeyId) -> Option<&KnownKey> {
        self.known.iter().find(|known| known.p256_id == Some(id))
    }
}
