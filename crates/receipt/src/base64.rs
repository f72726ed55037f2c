//! Base64 in its one canonical spelling (RFC 4648, section 4).
//!
//! Several texts can decode to the same bytes: without padding, with stray bits
//! in the last character, with line breaks. Whoever accepts them lets a receipt
//! be changed without changing what it says. Nothing here may accept a text that
//! [`encode`] would not have written.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The canonical text of `bytes`.
pub(crate) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// The bytes of a canonical text; `None` for any other text.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let bytes = STANDARD.decode(text).ok()?;
    // Load-bearing: whatever the decoder is lenient about, the text is compared
    // with the only one that we write.
    (encode(&bytes) == text).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_canonical_text_decodes() {
        assert_eq!(decode(""), Some(vec![]));
        assert_eq!(decode("Zm9vYg=="), Some(b"foob".to_vec()));
        let others = [
            "Zm9vYg",
            "Zm9vYg=",
            "Zm9vYh==",
            "Zm9v Yg==",
            "Zm9vYg==\n",
            "Zm9vYg===",
            "Zm9v\nYg==",
            "_-8=",
            "=",
            "Zm9vYg==Zm9v",
        ];
        for other in others {
            assert_eq!(decode(other), None, "{other:?}");
        }
    }
}
