//! SHA-256 digests as a type of their own.
//!
//! A digest is compared, printed and parsed in exactly one way: 64 lower-case
//! hexadecimal digits. Nothing else is accepted, so two spellings of one
//! digest can never be mistaken for two digests.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

/// The SHA-256 digest of some bytes (FIPS 180-4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha256Digest([u8; 32]);

impl Sha256Digest {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// A digest that was computed elsewhere, for example by a streaming hasher.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes of the digest.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Sha256Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&hex::encode(self.0))
    }
}

impl fmt::Debug for Sha256Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sha256Digest({})", hex::encode(self.0))
    }
}

/// A text that is not a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a SHA-256 digest: 64 lower-case hexadecimal digits are wanted")]
pub struct DigestParseError;

impl FromStr for Sha256Digest {
    type Err = DigestParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // hex::decode takes upper case as well; one digest has one spelling.
        if text.bytes().any(|b| b.is_ascii_uppercase()) {
            return Err(DigestParseError);
        }
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| DigestParseError)?;
        Ok(Self(bytes))
    }
}

impl Serialize for Sha256Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Sha256Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn the_digest_of_nothing_is_the_published_one() {
        assert_eq!(Sha256Digest::of(b"").to_string(), EMPTY);
    }

    #[test]
    fn a_digest_parses_back_and_only_in_its_one_spelling() {
        assert_eq!(EMPTY.parse(), Ok(Sha256Digest::of(b"")));
        let upper = EMPTY.to_uppercase();
        for wrong in [
            "",
            &EMPTY[1..],
            &upper,
            &format!("{EMPTY}0"),
            &format!(" {}", &EMPTY[1..]),
        ] {
            assert_eq!(
                wrong.parse::<Sha256Digest>(),
                Err(DigestParseError),
                "{wrong:?}"
            );
        }
    }

    #[test]
    fn serde_writes_the_text_form() {
        let digest = Sha256Digest::of(b"lazaret");
        let json = serde_json::to_string(&digest).unwrap();
        assert_eq!(json, format!("\"{digest}\""));
        assert_eq!(serde_json::from_str::<Sha256Digest>(&json).unwrap(), digest);
        assert!(serde_json::from_str::<Sha256Digest>(&json.to_uppercase()).is_err());
    }
}
