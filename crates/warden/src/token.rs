//! The run token: what makes a record of a warden believable.
//!
//! 32 random bytes that the controller makes for one run and sends over the
//! control pipe. They never enter the namespace, never stand in a record, an
//! argument, an environment or a message, and are shown by no formatter.

use std::fmt;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// Size of a token and of an authenticator, in bytes.
pub const TOKEN_BYTES: usize = 32;

/// Separates these authenticators from any other use of the same key.
const DOMAIN: &[u8] = b"lazaret-warden-record/1\0";

/// The secret of one run.
#[derive(Clone, PartialEq, Eq)]
pub struct RunToken([u8; TOKEN_BYTES]);

impl RunToken {
    /// A token from bytes that the caller drew from the kernel.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; TOKEN_BYTES]) -> Self {
        Self(bytes)
    }

    /// A new token from the kernel's random number generator.
    ///
    /// # Errors
    /// What getrandom(2) says.
    #[cfg(all(target_os = "linux", target_arch = "x86_64", not(lazaret_no_profile)))]
    pub fn generate() -> std::io::Result<Self> {
        crate::sys::random_bytes().map(Self)
    }

    /// The bytes, for the control pipe and for the server's own store.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; TOKEN_BYTES] {
        &self.0
    }

    /// The authenticator of a record of one kind: HMAC-SHA256 (RFC 2104).
    #[must_use]
    pub fn authenticate(&self, kind: u8, payload: &[u8]) -> [u8; TOKEN_BYTES] {
        self.mac(kind, payload).finalize().into_bytes().into()
    }

    /// Whether an authenticator is this token's, compared in constant time.
    #[must_use]
    pub fn accepts(&self, kind: u8, payload: &[u8], authenticator: &[u8]) -> bool {
        self.mac(kind, payload).verify_slice(authenticator).is_ok()
    }

    fn mac(&self, kind: u8, payload: &[u8]) -> Hmac<Sha256> {
        // A key shorter than a block is padded with zeros (RFC 2104), which is what
        // makes this constructor one that cannot fail.
        let mut block = [0; 64];
        block[..TOKEN_BYTES].copy_from_slice(&self.0);
        let mut mac = Hmac::<Sha256>::new(&block.into());
        mac.update(DOMAIN);
        mac.update(&[kind]);
        mac.update(payload);
        mac
    }
}

impl fmt::Debug for RunToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RunToken(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_authenticator_is_accepted_for_its_own_token_kind_and_bytes_alone(
            key in any::<[u8; 32]>(), kind in any::<u8>(),
            payload in proptest::collection::vec(any::<u8>(), 0..200),
            at in 0_usize..32, flip in 1_u8..,
        ) {
            let token = RunToken::from_bytes(key);
            let mut authenticator = token.authenticate(kind, &payload);
            prop_assert!(token.accepts(kind, &payload, &authenticator));
            prop_assert!(!token.accepts(kind.wrapping_add(1), &payload, &authenticator));
            let mut longer = payload.clone();
            longer.push(0);
            prop_assert!(!token.accepts(kind, &longer, &authenticator));
            let mut other_key = key;
            other_key[at] ^= flip;
            prop_assert!(!RunToken::from_bytes(other_key).accepts(kind, &payload, &authenticator));
            authenticator[at] ^= flip;
            prop_assert!(!token.accepts(kind, &payload, &authenticator));
            prop_assert!(!token.accepts(kind, &payload, &authenticator[..31]));
        }
    }

    #[test]
    fn a_token_is_not_shown() {
        let shown = format!("{:?}", RunToken::from_bytes([0xab; 32]));
        assert_eq!(shown, "RunToken(secret)");
    }
}
