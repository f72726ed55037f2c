//! The two signature algorithms, each with one accepted encoding per signature.
//!
//! A signature that can be changed into another valid one lets a stranger alter
//! a receipt's bytes. So Ed25519 is verified strictly (no points of small order,
//! no scalar beyond the group order, no second encoding of a point; RFC 8032 and
//! its known gaps), and P-256 only with the low one of the two possible `s` and in
//! the one DER encoding. P-256 nonces are derived from message and key (RFC 6979),
//! never random, so signing gives the same bytes each time. Nothing here may
//! accept what signing would not have made.

use ed25519_dalek::Signer as _;
use lazaret_contract::digest::Sha256Digest;
use p256::ecdsa::signature::Verifier as _;

/// A signature that is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// Not the bytes that the algorithm writes.
    #[error("is not a signature in its one encoding")]
    Encoding,
    /// The high one of the two possible values of `s`.
    #[error("is malleable: its s is the high one of two")]
    HighS,
    /// The signature is of other bytes or of another key.
    #[error("does not verify")]
    Wrong,
}

/// A public key that is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not an acceptable public key")]
pub struct PublicKeyError;

/// SHA-256 of a public key as SubjectPublicKeyInfo in DER: what
/// `openssl pkey -pubin -outform DER | sha256sum` prints.
pub type KeyId = Sha256Digest;

/// DER of a SubjectPublicKeyInfo up to the key itself (RFC 8410).
const ED25519_SPKI: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

/// The same for an uncompressed point of P-256 (RFC 5480).
const P256_SPKI: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// A public key of Ed25519 that a strict verifier may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ed25519Public(ed25519_dalek::VerifyingKey);

impl Ed25519Public {
    /// Reads the 32 bytes of RFC 8032.
    ///
    /// # Errors
    /// No point of the curve, one of small order, or another spelling of a point.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PublicKeyError> {
        let bytes: &[u8; 32] = bytes.try_into().map_err(|_| PublicKeyError)?;
        let key = ed25519_dalek::VerifyingKey::from_bytes(bytes).map_err(|_| PublicKeyError)?;
        // Decoding takes coordinates beyond the field's order and keeps the bytes;
        // compressing the point again shows them.
        let is_canonical = key.to_edwards().compress().as_bytes() == bytes;
        if key.is_weak() || !is_canonical {
            return Err(PublicKeyError);
        }
        Ok(Self(key))
    }

    /// Reads a SubjectPublicKeyInfo.
    ///
    /// # Errors
    /// Anything but the one encoding of an acceptable key.
    pub fn from_spki(der: &[u8]) -> Result<Self, PublicKeyError> {
        Self::from_bytes(der.strip_prefix(&ED25519_SPKI).ok_or(PublicKeyError)?)
    }

    /// The 32 bytes of RFC 8032.
    pub fn to_bytes(&self) -> [u8; 32] {
        self.0.to_bytes()
    }

    /// The SubjectPublicKeyInfo in DER.
    pub fn to_spki(&self) -> Vec<u8> {
        [ED25519_SPKI.as_slice(), &self.0.to_bytes()].concat()
    }

    /// Verifies strictly.
    ///
    /// # Errors
    /// Whatever is not the signature that the key's owner would have made.
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), SignatureError> {
        let signature = ed25519_dalek::Signature::from_slice(signature)
            .map_err(|_| SignatureError::Encoding)?;
        self.0
            .verify_strict(message, &signature)
            .map_err(|_| SignatureError::Wrong)
    }
}

/// A public key of P-256.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct P256Public(p256::ecdsa::VerifyingKey);

impl P256Public {
    /// Reads a SubjectPublicKeyInfo with an uncompressed point.
    ///
    /// # Errors
    /// Anything but the one encoding of a point of the curve.
    pub fn from_spki(der: &[u8]) -> Result<Self, PublicKeyError> {
        let point = der.strip_prefix(&P256_SPKI).ok_or(PublicKeyError)?;
        let key = p256::ecdsa::VerifyingKey::from_sec1_bytes(point).map_err(|_| PublicKeyError)?;
        let read = Self(key);
        // Refuses the compact and hybrid spellings, whatever the reader takes.
        if read.to_spki() == der {
            Ok(read)
        } else {
            Err(PublicKeyError)
        }
    }

    /// The SubjectPublicKeyInfo in DER.
    pub fn to_spki(&self) -> Vec<u8> {
        let point = self.0.to_sec1_point(false);
        [P256_SPKI.as_slice(), point.as_bytes()].concat()
    }

    /// Verifies a signature in DER over SHA-256 of the message.
    ///
    /// # Errors
    /// Whatever is not the signature that the key's owner would have made.
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), SignatureError> {
        let parsed =
            p256::ecdsa::Signature::from_der(signature).map_err(|_| SignatureError::Encoding)?;
        if parsed.to_der().as_bytes() != signature {
            return Err(SignatureError::Encoding);
        }
        if parsed.normalize_s() != parsed {
            return Err(SignatureError::HighS);
        }
        self.0
            .verify(message, &parsed)
            .map_err(|_| SignatureError::Wrong)
    }
}

/// The secret key of Ed25519; wiped when dropped.
pub(crate) struct Ed25519Secret(ed25519_dalek::SigningKey);

impl Ed25519Secret {
    pub(crate) fn from_seed(seed: &[u8; 32]) -> Self {
        Self(ed25519_dalek::SigningKey::from_bytes(seed))
    }

    pub(crate) fn seed(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    pub(crate) fn public(&self) -> Ed25519Public {
        Ed25519Public(self.0.verifying_key())
    }

    pub(crate) fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }
}

/// The secret key of P-256; wiped when dropped.
pub(crate) struct P256Secret(p256::ecdsa::SigningKey);

impl P256Secret {
    /// `None` if the bytes are no scalar from 1 to the order less 1.
    pub(crate) fn from_scalar(scalar: &[u8; 32]) -> Option<Self> {
        p256::ecdsa::SigningKey::from_slice(scalar).ok().map(Self)
    }

    pub(crate) fn scalar(&self) -> zeroize::Zeroizing<[u8; 32]> {
        zeroize::Zeroizing::new(self.0.to_bytes().into())
    }

    pub(crate) fn public(&self) -> P256Public {
        P256Public(*self.0.verifying_key())
    }

    /// The signature in DER, with low `s`.
    pub(crate) fn sign(&self, message: &[u8]) -> Vec<u8> {
        let signature: p256::ecdsa::Signature = self.0.sign(message);
        signature.normalize_s().to_der().as_bytes().to_vec()
    }
}

#[cfg(test)]
mod tests;
