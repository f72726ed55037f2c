//! The receipt as bytes: a DSSE envelope with exactly two signatures.
//!
//! The payload is the statement's one text; both signatures are over its
//! pre-authentication encoding, Ed25519 first, P-256 second, by one key pair. The
//! envelope has one text as well: compact JSON and a line feed. So whoever changes
//! a byte of a receipt, white space and key ids included, has no receipt any more.
//! Nothing here decides whom to trust; see [`crate::verify`].

use lazaret_contract::digest::Sha256Digest;
use lazaret_contract::json::{self, Bounds, JsonError, Object, Value};

use crate::base64;
use crate::keys::{Purpose, SigningPair};
use crate::limits::{ENVELOPE_BYTES_MAX, STATEMENT_NODES_MAX};
use crate::part::{At, FormError, Part, nothing_left, object_of, record, text_of};
use crate::predicate::Kind;
use crate::signature::KeyId;
use crate::statement::{Statement, StatementError};

/// The type of every payload.
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

/// How many signatures an envelope has: one per algorithm.
pub const SIGNATURES: usize = 2;

/// What is signed: DSSE's pre-authentication encoding (DSSE v1).
pub fn pre_authentication_encoding(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let head = format!(
        "DSSEv1 {} {payload_type} {} ",
        payload_type.len(),
        payload.len()
    );
    [head.as_bytes(), payload].concat()
}

/// Why a statement is not signed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignError {
    /// A verifier would refuse the statement.
    #[error("{0}")]
    Statement(#[from] StatementError),
    /// The key is for something else.
    #[error("a key for {purpose} may not sign a statement of kind {kind}")]
    Purpose {
        /// What the key may sign.
        purpose: Purpose,
        /// What it was asked to sign.
        kind: Kind,
    },
}

/// Why bytes are no envelope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// Not strict JSON within the limits.
    #[error("envelope is not strict JSON: {0}")]
    Json(#[from] JsonError),
    /// Not of DSSE's form.
    #[error("envelope is not of its form: {0}")]
    Form(#[from] FormError),
    /// JSON, but not the one text of its value.
    #[error("envelope is not in its canonical form")]
    NotCanonical,
    /// The payload is of another type.
    #[error("payload has the type {0} instead of {PAYLOAD_TYPE}")]
    PayloadType(String),
    /// A text is not base64 in its canonical spelling.
    #[error("{0} is not canonical base64")]
    Base64(&'static str),
    /// More or fewer signatures than two.
    #[error("has {0} signatures instead of exactly {SIGNATURES}")]
    SignatureCount(usize),
}

record! {
    /// A signature as it stands in the envelope.
    struct SignatureText {
        /// Id of the key.
        "keyid" => keyid: KeyId,
        /// The signature.
        "sig" => sig: Text,
    }
}

/// A string that a later step judges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text(String);

impl Part for Text {
    fn to_value(&self) -> Value {
        self.0.as_str().into()
    }

    fn from_value(value: Value, at: &At<'_>) -> Result<Self, FormError> {
        text_of(value, at).map(Self)
    }
}

/// One signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvelopeSignature {
    /// Id of the key that made it.
    pub key_id: KeyId,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// An envelope: whatever it says is unverified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// The statement's bytes.
    pub payload: Vec<u8>,
    /// Ed25519, then P-256.
    pub signatures: [EnvelopeSignature; SIGNATURES],
}

impl Envelope {
    /// Signs a statement.
    ///
    /// # Errors
    /// When the key is for something else, or a verifier would refuse the
    /// statement.
    pub fn sign(statement: &Statement, pair: &SigningPair) -> Result<Self, SignError> {
        let (purpose, kind) = (pair.purpose(), statement.kind());
        if kind.purpose() != purpose {
            return Err(SignError::Purpose { purpose, kind });
        }
        let payload = statement.to_bytes()?;
        let signed = pre_authentication_encoding(PAYLOAD_TYPE, &payload);
        let public = pair.public();
        let signatures = [
            EnvelopeSignature {
                key_id: public.ed25519_id(),
                bytes: pair.sign_ed25519(&signed).to_vec(),
            },
            EnvelopeSignature {
                key_id: public.p256_id(),
                bytes: pair.sign_p256(&signed),
            },
        ];
        Ok(Self {
            payload,
            signatures,
        })
    }

    /// The receipt's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let signatures: Vec<SignatureText> = self
            .signatures
            .iter()
            .map(|signature| SignatureText {
                keyid: signature.key_id,
                sig: Text(base64::encode(&signature.bytes)),
            })
            .collect();
        let mut object = Object::new();
        object.insert("payload".to_owned(), base64::encode(&self.payload).into());
        object.insert("payloadType".to_owned(), PAYLOAD_TYPE.into());
        signatures.put(&mut object, "signatures");
        let mut bytes = json::write_compact(&Value::Object(object));
        bytes.push(b'\n');
        bytes
    }

    /// The digest by which the log and other receipts name this one.
    pub fn digest(&self) -> Sha256Digest {
        Sha256Digest::of(&self.to_bytes())
    }

    /// Reads exactly what [`Self::to_bytes`] writes. Verifies no signature.
    ///
    /// # Errors
    /// Names what is wrong and where.
    pub fn parse(bytes: &[u8]) -> Result<Self, EnvelopeError> {
        let bounds = Bounds::document(ENVELOPE_BYTES_MAX).with_nodes_max(STATEMENT_NODES_MAX);
        let value = json::parse_bounded(bytes, bounds)?;
        let at = At::Root;
        let mut object = object_of(value, &at)?;
        let payload_type = Text::take(&mut object, "payloadType", &at)?.0;
        if payload_type != PAYLOAD_TYPE {
            return Err(EnvelopeError::PayloadType(crate::part::quoted(
                &payload_type,
            )));
        }
        let payload = Text::take(&mut object, "payload", &at)?.0;
        let payload = base64::decode(&payload).ok_or(EnvelopeError::Base64("payload"))?;
        let signatures = Vec::<SignatureText>::take(&mut object, "signatures", &at)?;
        nothing_left(&object, &at)?;
        let signatures = signatures
            .into_iter()
            .map(|text| {
                let bytes =
                    base64::decode(&text.sig.0).ok_or(EnvelopeError::Base64("signature"))?;
                Ok(EnvelopeSignature {
                    key_id: text.keyid,
                    bytes,
                })
            })
            .collect::<Result<Vec<_>, EnvelopeError>>()?;
        let signatures = signatures
            .try_into()
            .map_err(|found: Vec<_>| EnvelopeError::SignatureCount(found.len()))?;
        let envelope = Self {
            payload,
            signatures,
        };
        // Load-bearing: spaces, escapes, the order of members and a missing line
        // feed are no part of what is signed; only this comparison covers them.
        if envelope.to_bytes() == bytes {
            Ok(envelope)
        } else {
            Err(EnvelopeError::NotCanonical)
        }
    }
}
