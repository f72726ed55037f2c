//! Signed notes (C2SP signed-note): a text and lines of signatures below it.
//!
//! Signatures of unknown keys are ignored, as the format asks, so that witnesses
//! can add theirs; one of a known key that does not verify refuses the whole note.
//! Only Ed25519 is known here, plain (type 1) for a log's own key and timestamped
//! (type 4, C2SP tlog-cosignature) for witnesses. The text must never be used before
//! a signature over it has been verified.

use sha2::{Digest as _, Sha256};

use crate::base64;
use crate::limits::{NOTE_BYTES_MAX, NOTE_SIGNATURES_MAX};
use crate::signature::Ed25519Public;
use crate::text::KeyName;

/// Begins every line of a signature: an em dash and a space.
const SIGNATURE_MARK: &str = "\u{2014} ";

/// Why bytes are no signed note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoteError {
    /// More bytes or signatures than any note of ours.
    #[error("note is too large")]
    Size,
    /// Not text, or a control character in it.
    #[error("note is not plain text")]
    Text,
    /// Not a text, an empty line and lines of signatures.
    #[error("note is not of its form")]
    Form,
}

/// What kind of signature a key makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignatureType {
    /// Plain Ed25519.
    Ed25519,
    /// Ed25519 with a time, over a checkpoint.
    Cosignature,
}

impl SignatureType {
    const fn identifier(self) -> u8 {
        match self {
            Self::Ed25519 => 0x01,
            Self::Cosignature => 0x04,
        }
    }
}

/// The four bytes by which a note names a key, together with the key's name.
pub fn key_hash(name: &str, kind: SignatureType, key: &Ed25519Public) -> [u8; 4] {
    let mut hasher = Sha256::new();
    hasher.update(name.as_bytes());
    hasher.update([b'\n', kind.identifier()]);
    hasher.update(key.to_bytes());
    let digest: [u8; 32] = hasher.finalize().into();
    [digest[0], digest[1], digest[2], digest[3]]
}

/// A key as other tools take it: `name+hash+base64` (a *vkey*).
pub fn verifier_key(name: &KeyName, kind: SignatureType, key: &Ed25519Public) -> String {
    let encoded = [&[kind.identifier()][..], &key.to_bytes()].concat();
    let hash = hex::encode(key_hash(name.as_str(), kind, key));
    format!("{name}+{hash}+{}", base64::encode(&encoded))
}

/// One line of a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteSignature {
    /// The key's name, as the line gives it.
    pub name: String,
    /// The key's four bytes.
    pub hash: [u8; 4],
    /// The rest.
    pub bytes: Vec<u8>,
}

/// A note: whatever it says is unverified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The text, with its last line feed.
    pub text: String,
    /// The signatures, as they stand.
    pub signatures: Vec<NoteSignature>,
}

impl Note {
    /// Its bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut note = format!("{}\n", self.text);
        for signature in &self.signatures {
            let bytes = [&signature.hash[..], &signature.bytes].concat();
            let encoded = base64::encode(&bytes);
            note.push_str(&format!("{SIGNATURE_MARK}{} {encoded}\n", signature.name));
        }
        note.into_bytes()
    }

    /// Reads a note. Verifies no signature.
    ///
    /// # Errors
    /// Anything but the one text of a note.
    pub fn parse(bytes: &[u8]) -> Result<Self, NoteError> {
        if bytes.len() > NOTE_BYTES_MAX {
            return Err(NoteError::Size);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| NoteError::Text)?;
        if text.bytes().any(|byte| byte < 0x20 && byte != b'\n') {
            return Err(NoteError::Text);
        }
        // The text may hold empty lines; the last one separates.
        let (text, lines) = text.rsplit_once("\n\n").ok_or(NoteError::Form)?;
        let lines = lines.strip_suffix('\n').ok_or(NoteError::Form)?;
        let signatures = lines
            .split('\n')
            .map(|line| signature_of(line).ok_or(NoteError::Form))
            .collect::<Result<Vec<_>, _>>()?;
        if signatures.len() > NOTE_SIGNATURES_MAX {
            return Err(NoteError::Size);
        }
        Ok(Self {
            text: format!("{text}\n"),
            signatures,
        })
    }
}

fn signature_of(line: &str) -> Option<NoteSignature> {
    let (name, encoded) = line.strip_prefix(SIGNATURE_MARK)?.split_once(' ')?;
    let is_name = !name.is_empty() && !name.chars().any(|c| c.is_whitespace() || c == '+');
    let bytes = base64::decode(encoded)?;
    let (hash, rest) = bytes.split_first_chunk::<4>()?;
    (is_name && !rest.is_empty()).then(|| NoteSignature {
        name: name.to_owned(),
        hash: *hash,
        bytes: rest.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of C2SP signed-note: a verifier key and a note signed by it.
    const KEY: &str = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k";
    const NOTE: &str = "This is an example message.\n\n\u{2014} example.com/foo \
        Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n";

    #[test]
    fn the_published_example_verifies() {
        let key = base64::decode(KEY.rsplit('+').next().unwrap()).unwrap();
        let public = Ed25519Public::from_bytes(&key[1..]).unwrap();
        let name: KeyName = "example.com/foo".parse().unwrap();
        assert_eq!(verifier_key(&name, SignatureType::Ed25519, &public), KEY);
        let note = Note::parse(NOTE.as_bytes()).unwrap();
        let signature = &note.signatures[0];
        assert_eq!(signature.name, "example.com/foo");
        assert_eq!(
            signature.hash,
            key_hash("example.com/foo", SignatureType::Ed25519, &public)
        );
        assert_eq!(
            public.verify(note.text.as_bytes(), &signature.bytes),
            Ok(())
        );
        assert_eq!(note.to_bytes(), NOTE.as_bytes());
    }

    #[test]
    fn what_is_no_note_is_refused() {
        let rows = [
            ("", NoteError::Form),
            ("text\n", NoteError::Form),
            ("text\n\n", NoteError::Form),
            ("text\n\n\n", NoteError::Form),
            ("text\n\n\u{2014} name\n", NoteError::Form),
            ("text\n\n- name AAAAAAE=\n", NoteError::Form),
            ("text\n\n\u{2014} na+me AAAAAAE=\n", NoteError::Form),
            ("text\n\n\u{2014}  AAAAAAE=\n", NoteError::Form),
            ("text\n\n\u{2014} name AAAAAA==\n", NoteError::Form),
            ("text\n\n\u{2014} name AAAAAAF=\n", NoteError::Form),
            ("text\n\n\u{2014} name AAAAAAE=", NoteError::Form),
            ("te\rxt\n\n\u{2014} name AAAAAAE=\n", NoteError::Text),
        ];
        for (text, error) in rows {
            assert_eq!(Note::parse(text.as_bytes()), Err(error), "{text:?}");
        }
        assert_eq!(Note::parse(&[0xff]), Err(NoteError::Text));
        assert_eq!(
            Note::parse(&vec![b'x'; NOTE_BYTES_MAX + 1]),
            Err(NoteError::Size)
        );
        let many = "\u{2014} name AAAAAAE=\n".repeat(NOTE_SIGNATURES_MAX + 1);
        assert_eq!(
            Note::parse(format!("text\n\n{many}").as_bytes()),
            Err(NoteError::Size)
        );
        assert!(Note::parse("a\n\nb\n\n\u{2014} name AAAAAAE=\n".as_bytes()).is_ok());
    }
}
