//! Which relative names exist for us at all.
//!
//! Names come from directory listings and from manifests that somebody else wrote;
//! both are judged here, by one grammar, before the kernel sees them (case C06 of
//! the public bug reports). A name that passes has exactly one spelling, cannot
//! leave the directory that it is resolved in, and shows as what it is.
//!
//! This module must never repair a name: there is no trimming, no normalisation,
//! no case folding.

use std::fmt;

/// The longest component, in bytes. Room for a digest in hex and a suffix.
pub const COMPONENT_BYTES_MAX: usize = 100;

/// The most components of a name.
pub const COMPONENTS_MAX: usize = 4;

/// A plain relative name: one to [`COMPONENTS_MAX`] components of ASCII letters,
/// digits, `.`, `_` and `-`, joined by single slashes.
///
/// A component starts with a letter, a digit or `_` and does not end with a dot, so
/// it is neither `.` nor `..`, neither hidden nor an option of some program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelativeName(String);

/// Why a name is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// No bytes at all.
    #[error("the name is empty")]
    Empty,
    /// Starts with a slash.
    #[error("the name is absolute")]
    Absolute,
    /// Two slashes in a row, or one at the end.
    #[error("the name has an empty component")]
    EmptyComponent,
    /// `.` or `..`.
    #[error("the name has the component {0:?}")]
    Dots(String),
    /// Bytes that are not UTF-8.
    #[error("the name is not valid UTF-8")]
    InvalidUtf8,
    /// A control character, NUL and newline among them.
    #[error("the name holds the control character U+{0:04X}")]
    Control(u32),
    /// Any other character outside the grammar.
    #[error(
        "the name holds {0:?}; only ASCII letters, digits, '.', '_' and '-' are allowed, \
         and '/' between directories"
    )]
    Character(char),
    /// A component that starts with `.` or `-`.
    #[error("a component of the name starts with {0:?}")]
    Start(char),
    /// A component that ends with a dot.
    #[error("a component of the name ends with a dot")]
    TrailingDot,
    /// A component above [`COMPONENT_BYTES_MAX`].
    #[error("a component of the name is longer than {COMPONENT_BYTES_MAX} bytes")]
    TooLong,
    /// More than [`COMPONENTS_MAX`] components.
    #[error("the name has more than {COMPONENTS_MAX} components")]
    TooDeep,
}

impl RelativeName {
    /// Judges `bytes` as a name.
    ///
    /// # Errors
    /// The first fault, in the order: empty, UTF-8, control characters, shape,
    /// components from left to right.
    pub fn parse(bytes: &[u8]) -> Result<Self, NameError> {
        if bytes.is_empty() {
            return Err(NameError::Empty);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| NameError::InvalidUtf8)?;
        if let Some(control) = text.chars().find(|c| c.is_control()) {
            return Err(NameError::Control(u32::from(control)));
        }
        if text.starts_with('/') {
            return Err(NameError::Absolute);
        }
        for (index, component) in text.split('/').enumerate() {
            if index >= COMPONENTS_MAX {
                return Err(NameError::TooDeep);
            }
            check_component(component)?;
        }
        Ok(Self(text.to_owned()))
    }

    /// The name as text, with `/` between components.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The components from left to right; at least one.
    pub fn components(&self) -> impl Iterator<Item = &str> {
        self.0.split('/')
    }

    /// Whether the name has exactly one component, so names an entry of the
    /// directory itself.
    #[must_use]
    pub fn is_single(&self) -> bool {
        !self.0.contains('/')
    }
}

impl fmt::Display for RelativeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for RelativeName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::parse(text.as_bytes())
    }
}

fn check_component(component: &str) -> Result<(), NameError> {
    if component.is_empty() {
        return Err(NameError::EmptyComponent);
    }
    if component == "." || component == ".." {
        return Err(NameError::Dots(component.to_owned()));
    }
    if let Some(found) = component.chars().find(|c| !is_allowed(*c)) {
        return Err(NameError::Character(found));
    }
    if component.len() > COMPONENT_BYTES_MAX {
        return Err(NameError::TooLong);
    }
    match component.chars().next() {
        Some(first @ ('.' | '-')) => return Err(NameError::Start(first)),
        Some(_) => {}
        None => return Err(NameError::EmptyComponent),
    }
    if component.ends_with('.') {
        return Err(NameError::TrailingDot);
    }
    Ok(())
}

fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(bytes: &[u8], expected: &NameError) {
        assert_eq!(
            RelativeName::parse(bytes).as_ref(),
            Err(expected),
            "{bytes:?}"
        );
    }

    #[test]
    fn names_that_escape_collide_or_hide_are_refused() {
        check(b"", &NameError::Empty);
        check(b"../x", &NameError::Dots("..".into()));
        check(b"/etc/passwd", &NameError::Absolute);
        check(b"a/../b", &NameError::Dots("..".into()));
        check(b"./a", &NameError::Dots(".".into()));
        check(b"a//b", &NameError::EmptyComponent);
        check(b"a/", &NameError::EmptyComponent);
        check(b"a\0b", &NameError::Control(0));
        check(b"a\nb", &NameError::Control(10));
        check("a\u{85}b".as_bytes(), &NameError::Control(0x85));
        check(b"a\\b", &NameError::Character('\\'));
        check(b"a ", &NameError::Character(' '));
        check("caf\u{e9}".as_bytes(), &NameError::Character('\u{e9}'));
        check("a\u{202e}b".as_bytes(), &NameError::Character('\u{202e}'));
        check(b"\xff\xfe", &NameError::InvalidUtf8);
        check(b"--bind", &NameError::Start('-'));
        check(b".hidden", &NameError::Start('.'));
        check(b"README.", &NameError::TrailingDot);
        check(&[b'a'; 300], &NameError::TooLong);
        check(&[b'a'; COMPONENT_BYTES_MAX + 1], &NameError::TooLong);
        check(b"a/b/c/d/e", &NameError::TooDeep);
    }

    #[test]
    fn names_that_differ_in_case_are_two_names() {
        let upper = RelativeName::parse(b"README").unwrap();
        let lower = RelativeName::parse(b"readme").unwrap();
        assert_ne!(upper, lower);
    }

    #[test]
    fn the_longest_component_is_accepted() {
        assert!(RelativeName::parse(&[b'a'; COMPONENT_BYTES_MAX]).is_ok());
        assert!(RelativeName::parse(b"a/b/c/d").is_ok());
    }

    proptest! {
        #[test]
        fn an_accepted_name_stays_below_its_directory(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(name) = RelativeName::parse(&bytes) {
                prop_assert_eq!(name.as_str().as_bytes(), &bytes[..]);
                let path = std::path::Path::new(name.as_str());
                prop_assert!(path.is_relative());
                let parts: Vec<_> = path.components().collect();
                prop_assert!(parts.iter().all(|c| matches!(c, std::path::Component::Normal(_))));
                // One spelling: the path's own components give the same text back.
                prop_assert_eq!(parts.len(), name.components().count());
                prop_assert!(name.as_str().is_ascii());
            }
        }

        #[test]
        fn names_of_the_grammar_are_accepted(
            parts in prop::collection::vec("[A-Za-z0-9_][A-Za-z0-9._-]{0,20}[A-Za-z0-9_-]", 1..=COMPONENTS_MAX),
        ) {
            let text = parts.join("/");
            prop_assert_eq!(RelativeName::parse(text.as_bytes()).map(|n| n.to_string()), Ok(text));
        }

        #[test]
        fn one_foreign_character_anywhere_is_refused(
            before in "[a-z]{1,5}", after in "[a-z]{1,5}",
            foreign in any::<char>().prop_filter("outside the grammar", |c| !is_allowed(*c) && *c != '/'),
        ) {
            let text = format!("{before}{foreign}{after}");
            prop_assert!(RelativeName::parse(text.as_bytes()).is_err());
        }
    }
}
