//! JSON Pointers (RFC 6901): where in a document something stands.

use std::fmt;

use crate::visible;

/// A place in a JSON document. The empty pointer is the whole document.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pointer(String);

impl Pointer {
    /// The whole document.
    pub const fn root() -> Self {
        Self(String::new())
    }

    /// The member `key` of the object at this place.
    #[must_use]
    pub fn member(&self, key: &str) -> Self {
        // The order matters: the tilde of an escaped slash must stay single.
        Self(format!(
            "{}/{}",
            self.0,
            key.replace('~', "~0").replace('/', "~1")
        ))
    }

    /// The item `index` of the array at this place.
    #[must_use]
    pub fn item(&self, index: usize) -> Self {
        Self(format!("{}/{index}", self.0))
    }

    /// The place that `inner` names within the document at this place.
    #[must_use]
    pub fn join(&self, inner: &Self) -> Self {
        Self(format!("{}{}", self.0, inner.0))
    }

    /// The pointer as RFC 6901 writes it. It may hold any character of the
    /// document's keys; to show it, use its `Display`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Shows the pointer safely: see [`visible`].
impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const POINTER_CHARS_MAX: usize = 200;
        match self.0.as_str() {
            "" => f.pad("(document)"),
            pointer => f.pad(&visible::escape_cut(pointer, POINTER_CHARS_MAX)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_escaped_as_rfc_6901_has_it() {
        let pointer = Pointer::root()
            .member("a/b")
            .member("m~n")
            .member("")
            .item(3);
        assert_eq!(pointer.as_str(), "/a~1b/m~0n//3");
        assert_eq!(Pointer::root().member("~1").as_str(), "/~01");
    }

    #[test]
    fn a_hostile_key_is_shown_escaped() {
        assert_eq!(Pointer::root().member("\u{202e}").to_string(), "/\\u{202e}");
    }
}
