//! Signing keys: one pair of secrets per purpose.
//!
//! A pair signs every statement of one purpose twice, by Ed25519 and by P-256.
//! Its file is text of five lines, of mode 0600; this module takes and gives its
//! bytes, whoever owns the file reads and writes it. A pair must never be printed,
//! cloned or serialised otherwise, and never sign for another purpose than its own.

use std::fmt;

use zeroize::Zeroizing;

use crate::base64;
use crate::limits::KEY_FILE_BYTES_MAX;
use crate::part::words;
use crate::signature::{Ed25519Public, Ed25519Secret, KeyId, P256Public, P256Secret};
use crate::text::KeyName;

/// The version of the key file.
pub const KEY_FILE_SCHEMA: &str = "lazaret-signing-key/1";

words! {
    /// What a key may sign, and nothing else.
    pub enum Purpose {
        /// Builds of closures and their bills of materials.
        Build = "build",
        /// Attack runs.
        Attack = "attack",
        /// Runs: what ran, what was refused or Blocked, and what was cleaned up.
        Run = "run",
        /// Transitions of a package's lifecycle.
        Lifecycle = "lifecycle",
        /// Checkpoints of the log.
        Checkpoint = "checkpoint",
        /// Reviews of a closure, by somebody who did not write it.
        Review = "review",
        /// Cosignatures of checkpoints, by somebody who does not run the log.
        Witness = "witness",
    }
}

/// Why a key file or a key cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The file is larger than any of ours.
    #[error("key file is larger than {KEY_FILE_BYTES_MAX} bytes")]
    Size,
    /// The file is not of the form that [`SigningPair::to_file`] gives. What it
    /// holds is never quoted: it may be a secret.
    #[error("key file is not of the form {KEY_FILE_SCHEMA}: line {line}, {problem}")]
    Form {
        /// Which line, from 1.
        line: usize,
        /// What was wanted.
        problem: &'static str,
    },
    /// The operating system gave no randomness.
    #[error("the operating system gives no randomness: {0}")]
    Randomness(String),
}

/// The secrets of one purpose. Both are wiped when it is dropped.
pub struct SigningPair {
    purpose: Purpose,
    name: KeyName,
    ed25519: Ed25519Secret,
    p256: P256Secret,
}

impl SigningPair {
    /// A new pair from the operating system's randomness.
    ///
    /// # Errors
    /// When there is none; nothing else is used in its place.
    pub fn generate(purpose: Purpose, name: KeyName) -> Result<Self, KeyError> {
        let random = || {
            let mut bytes = Zeroizing::new([0_u8; 32]);
            getrandom::fill(bytes.as_mut_slice())
                .map_err(|error| KeyError::Randomness(error.to_string()))?;
            Ok::<_, KeyError>(bytes)
        };
        let seed = random()?;
        // A random number is no scalar once in 2^32 tries.
        let p256 = loop {
            if let Some(secret) = P256Secret::from_scalar(&*random()?) {
                break secret;
            }
        };
        Ok(Self {
            purpose,
            name,
            ed25519: Ed25519Secret::from_seed(&seed),
            p256,
        })
    }

    /// What it may sign.
    pub fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// Its name.
    pub fn name(&self) -> &KeyName {
        &self.name
    }

    /// Its public half.
    pub fn public(&self) -> PublicPair {
        PublicPair::new(
            self.purpose,
            self.name.clone(),
            self.ed25519.public(),
            self.p256.public(),
        )
    }

    /// The bytes of its key file. The caller writes them with mode 0600 and
    /// nowhere else.
    pub fn to_file(&self) -> Zeroizing<Vec<u8>> {
        let ed25519 = Zeroizing::new(base64::encode(self.ed25519.seed()));
        let p256 = Zeroizing::new(base64::encode(self.p256.scalar().as_slice()));
        Zeroizing::new(
            format!(
                "{KEY_FILE_SCHEMA}\npurpose {}\nname {}\ned25519 {}\np256 {}\n",
                self.purpose, self.name, *ed25519, *p256
            )
            .into_bytes(),
        )
    }

    /// Reads what [`Self::to_file`] writes, and nothing else.
    ///
    /// # Errors
    /// Another form; the message names the line and never quotes it.
    pub fn from_file(bytes: &[u8]) -> Result<Self, KeyError> {
        if bytes.len() > KEY_FILE_BYTES_MAX {
            return Err(KeyError::Size);
        }
        let fault = |line, problem| KeyError::Form { line, problem };
        let text = std::str::from_utf8(bytes).map_err(|_| fault(1, "not text"))?;
        let mut lines = text.split('\n');
        let mut member = |line, key: &str, problem| {
            lines
                .next()
                .and_then(|found| found.strip_prefix(key))
                .ok_or(fault(line, problem))
        };
        member(1, KEY_FILE_SCHEMA, "wants the schema").and_then(|rest| {
            rest.is_empty()
                .then_some(())
                .ok_or(fault(1, "wants the schema"))
        })?;
        let purpose = member(2, "purpose ", "wants `purpose`")?;
        let name = member(3, "name ", "wants `name`")?;
        let ed25519 = member(4, "ed25519 ", "wants `ed25519`")?;
        let p256 = member(5, "p256 ", "wants `p256`")?;
        if lines.next() != Some("") || lines.next().is_some() {
            return Err(fault(6, "wants the end"));
        }
        let scalar = secret_32(p256).ok_or(fault(5, "wants a scalar in base64"))?;
        Ok(Self {
            purpose: Purpose::from_word(purpose).ok_or(fault(2, "wants a purpose"))?,
            name: name.parse().map_err(|_| fault(3, "wants a key name"))?,
            ed25519: Ed25519Secret::from_seed(
                &*secret_32(ed25519).ok_or(fault(4, "wants a seed in base64"))?,
            ),
            p256: P256Secret::from_scalar(&scalar).ok_or(fault(5, "wants a scalar in base64"))?,
        })
    }

    pub(crate) fn sign_ed25519(&self, message: &[u8]) -> [u8; 64] {
        self.ed25519.sign(message)
    }

    pub(crate) fn sign_p256(&self, message: &[u8]) -> Vec<u8> {
        self.p256.sign(message)
    }
}

/// Shows what is public alone.
impl fmt::Debug for SigningPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningPair")
            .field("purpose", &self.purpose)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

fn secret_32(text: &str) -> Option<Zeroizing<[u8; 32]>> {
    let bytes = Zeroizing::new(base64::decode(text)?);
    bytes.as_slice().try_into().ok().map(Zeroizing::new)
}

/// The public half of a [`SigningPair`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicPair {
    /// What the pair may sign.
    pub purpose: Purpose,
    /// Its name.
    pub name: KeyName,
    /// The Ed25519 key.
    pub ed25519: Ed25519Public,
    /// The P-256 key.
    pub p256: P256Public,
    ids: [KeyId; 2],
}

impl PublicPair {
    pub(crate) fn new(
        purpose: Purpose,
        name: KeyName,
        ed25519: Ed25519Public,
        p256: P256Public,
    ) -> Self {
        let ids = [KeyId::of(&ed25519.to_spki()), KeyId::of(&p256.to_spki())];
        Self {
            purpose,
            name,
            ed25519,
            p256,
            ids,
        }
    }

    /// The id of the Ed25519 key.
    pub fn ed25519_id(&self) -> KeyId {
        self.ids[0]
    }

    /// The id of the P-256 key.
    pub fn p256_id(&self) -> KeyId {
        self.ids[1]
    }

    /// Both keys as PEM (RFC 7468), the Ed25519 key first, for other people's
    /// tools.
    pub fn to_pem(&self) -> [String; 2] {
        [pem(&self.ed25519.to_spki()), pem(&self.p256.to_spki())]
    }
}

fn pem(spki: &[u8]) -> String {
    const LINE_CHARS: usize = 64;
    let text = base64::encode(spki);
    let mut pem = String::from("-----BEGIN PUBLIC KEY-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(LINE_CHARS));
        pem.push_str(line);
        pem.push('\n');
        rest = after;
    }
    pem.push_str("-----END PUBLIC KEY-----\n");
    pem
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> SigningPair {
        SigningPair::generate(Purpose::Run, "test/run".parse().unwrap()).unwrap()
    }

    #[test]
    fn a_key_file_reads_back_and_no_other_text_does() {
        let file = pair().to_file();
        let read = SigningPair::from_file(&file).unwrap();
        assert_eq!(read.to_file(), file);
        for at in 0..file.len() {
            let mut changed = file.to_vec();
            changed[at] ^= 0x80;
            assert!(SigningPair::from_file(&changed).is_err(), "byte {at}");
            assert!(SigningPair::from_file(&file[..at]).is_err(), "cut at {at}");
        }
        for extra in ["\n", "x", "p256 x\n"] {
            let longer = [&file[..], extra.as_bytes()].concat();
            assert!(SigningPair::from_file(&longer).is_err());
        }
        let text = String::from_utf8(file.to_vec()).unwrap();
        for (from, to) in [
            ("/1\n", "/1 \n"),
            ("/1\n", "/2\n"),
            ("\n", "\r\n"),
            ("p256 ", "p256  "),
        ] {
            assert!(SigningPair::from_file(text.replacen(from, to, 1).as_bytes()).is_err());
        }
    }

    #[test]
    fn scalars_outside_the_group_are_no_keys() {
        let head = "lazaret-signing-key/1\npurpose run\nname a\ned25519 ";
        let seed = base64::encode(&[1; 32]);
        for scalar in [[0; 32], [0xff; 32]] {
            let file = format!("{head}{seed}\np256 {}\n", base64::encode(&scalar));
            let error = SigningPair::from_file(file.as_bytes()).unwrap_err();
            assert!(matches!(error, KeyError::Form { line: 5, .. }));
        }
    }

    #[test]
    fn no_secret_is_printed() {
        let pair = pair();
        let file = String::from_utf8(pair.to_file().to_vec()).unwrap();
        let seed = file.lines().nth(3).unwrap().trim_start_matches("ed25519 ");
        let shown = format!("{pair:?}");
        assert!(!shown.contains(seed) && shown.contains("Run"), "{shown}");
        let broken = file.replace("p256 ", "q256 ");
        let error = SigningPair::from_file(broken.as_bytes()).unwrap_err();
        assert!(!format!("{error} {error:?}").contains(seed));
    }

    #[test]
    fn two_generated_pairs_differ() {
        assert_ne!(pair().public().ed25519_id(), pair().public().ed25519_id());
        assert_ne!(pair().public().p256_id(), pair().public().p256_id());
    }

    #[test]
    fn pem_is_what_other_tools_read() {
        let [ed25519, p256] = pair().public().to_pem();
        let lines: Vec<usize> = p256.lines().map(str::len).collect();
        assert_eq!(lines, [26, 64, 60, 24]);
        assert!(
            ed25519
                .lines()
                .nth(1)
                .unwrap()
                .starts_with("MCowBQYDK2VwAyEA")
        );
    }
}
