//! The kinds of text that may stand in a receipt.
//!
//! A receipt travels to strangers. So no part of it is free text: each is of a
//! kind whose grammar leaves no room for a host path, a command line or a
//! message, and text of people has a kind of its own, used only in the fields
//! that are made for it. Nothing here may be constructed without its check.

use std::fmt;
use std::str::FromStr;

use lazaret_contract::json::Value;

use crate::part::{At, FormError, Part, quoted, text_of};

/// A text that is not of its kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text} is not {wanted}")]
pub struct TextError {
    /// The text, escaped and cut.
    pub text: String,
    /// What was wanted, in words.
    pub wanted: &'static str,
}

macro_rules! text_kind {
    ($(#[$meta:meta])* pub struct $name:ident, $wanted:literal, $rule:expr;) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = TextError;

            fn from_str(text: &str) -> Result<Self, TextError> {
                let rule: fn(&str) -> bool = $rule;
                if rule(text) {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(TextError { text: quoted(text), wanted: $wanted })
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl Part for $name {
            fn to_value(&self) -> Value {
                self.0.as_str().into()
            }

            fn from_value(value: Value, at: &At<'_>) -> Result<Self, FormError> {
                let text = text_of(value, at)?;
                text.parse().map_err(|error: TextError| at.error(error.to_string()))
            }
        }
    };
}

text_kind! {
    /// A word of a vocabulary that another crate owns, for example the name of a
    /// barrier fact: lower-case letters, digits and hyphens, at most 64.
    pub struct Word, "a word of lower-case letters, digits and hyphens", |text| {
        is_made_of(text, 64, |b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && !text.starts_with('-')
    };
}

text_kind! {
    /// An identifier or a version: letters, digits and `._+~-`, beginning with a
    /// letter or digit, at most 128. It has no slash, so no path is one.
    pub struct Id, "an identifier of letters, digits and ._+~-", |text| {
        is_made_of(text, 128, |b| b.is_ascii_alphanumeric() || b"._+~-".contains(&b))
            && begins_plainly(text)
    };
}

text_kind! {
    /// The name of a file or case, relative to the tree that its field is about:
    /// at most 255 bytes, components of letters, digits and `._+-`, none of them
    /// empty, `.` or `..`.
    pub struct Name, "a relative name of plain components", |text| {
        is_made_of(text, 255, |b| b.is_ascii_alphanumeric() || b"._+-/".contains(&b))
            && has_plain_components(text)
    };
}

text_kind! {
    /// The name of a key or a log (C2SP signed-note): letters, digits and `./_-`,
    /// at most 128.
    pub struct KeyName, "a key name of letters, digits and ./_-", |text| {
        is_made_of(text, 128, |b| b.is_ascii_alphanumeric() || b"./_-".contains(&b))
            && begins_plainly(text)
            && has_plain_components(text)
    };
}

text_kind! {
    /// A URI of ours (`https://lazaret.invalid/…`) or a package URL (`pkg:…`): no
    /// location on a host, and none that would be asked over a network.
    pub struct Uri, "a URI of https://lazaret.invalid/ or pkg:", |text| {
        is_made_of(text, 256, |b| b.is_ascii_alphanumeric() || b"._+~@-/:%?=".contains(&b))
            && (text.starts_with("https://lazaret.invalid/") || text.starts_with("pkg:"))
    };
}

text_kind! {
    /// A judged value of the kernel, for example a count or a mask: printable
    /// ASCII without slashes, at most 128.
    pub struct FactText, "a short value without slashes", |text| {
        is_made_of(text, 128, |b| matches!(b, b' '..=b'~') && b != b'/' && b != b'\\')
    };
}

text_kind! {
    /// The version of a kernel as numbers: `6.18` or `6.18.3`. What a
    /// distribution appends may name a host, so it is left out.
    pub struct KernelVersion, "a version of two or three numbers", |text| {
        let numbers: Vec<&str> = text.split('.').collect();
        matches!(numbers.len(), 2 | 3)
            && numbers.iter().all(|number| is_made_of(number, 5, |b| b.is_ascii_digit()))
    };
}

text_kind! {
    /// An SPDX licence expression.
    pub struct Licence, "an SPDX expression", |text| {
        is_made_of(text, 128, |b| b.is_ascii_alphanumeric() || b" .+-()".contains(&b))
            && begins_plainly(text.trim_start_matches('('))
    };
}

text_kind! {
    /// What a person wrote, for example the reason for a revocation: at most 1024
    /// bytes, no control characters. Only for fields that are made for it; always
    /// shown escaped.
    pub struct UserText, "a text of at most 1024 bytes without control characters", |text| {
        !text.is_empty() && text.len() <= 1024 && !text.chars().any(char::is_control)
    };
}

text_kind! {
    /// A time in UTC, to the second: `2026-01-31T23:59:59Z` (RFC 3339). Only
    /// where the fact is a time.
    pub struct Time, "a time such as 2026-01-31T23:59:59Z", is_time;
}

fn is_made_of(text: &str, bytes_max: usize, allowed: impl Fn(u8) -> bool) -> bool {
    (1..=bytes_max).contains(&text.len()) && text.bytes().all(allowed)
}

fn begins_plainly(text: &str) -> bool {
    text.bytes()
        .next()
        .is_some_and(|b| b.is_ascii_alphanumeric())
}

fn has_plain_components(text: &str) -> bool {
    text.split('/')
        .all(|component| !matches!(component, "" | "." | ".."))
}

fn is_time(text: &str) -> bool {
    const FORM: &[u8] = b"0000-00-00T00:00:00Z";
    let fits = text.len() == FORM.len()
        && text.bytes().zip(FORM).all(|(found, form)| match form {
            b'0' => found.is_ascii_digit(),
            other => found == *other,
        });
    if !fits {
        return false;
    }
    let number = |from: usize, to: usize| text[from..to].parse::<u32>().unwrap_or(u32::MAX);
    let (year, month, day) = (number(0, 4), number(5, 7), number(8, 10));
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day) && number(11, 13) < 24 && number(14, 16) < 60 && number(17, 19) < 60
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is<T: FromStr<Err = TextError>>(text: &str) -> bool {
        text.parse::<T>().is_ok()
    }

    #[test]
    fn host_paths_are_of_no_kind_but_peoples_own_text() {
        let paths = [
            "/home/someone/x",
            "/",
            "C:\\x",
            "../x",
            "a/../b",
            "file:///x",
            "~/x",
        ];
        for path in paths {
            assert!(!is::<Word>(path) && !is::<Id>(path), "{path}");
            assert!(!is::<Name>(path) && !is::<KeyName>(path), "{path}");
            assert!(!is::<Uri>(path) && !is::<FactText>(path), "{path}");
            assert!(!is::<KernelVersion>(path) && !is::<Licence>(path) && !is::<Time>(path));
        }
        assert!(is::<UserText>("because of /home/someone/x"));
    }

    #[test]
    fn each_kind_takes_what_it_is_for() {
        assert!(is::<Word>("filter-count") && !is::<Word>("Filter") && !is::<Word>("-x"));
        assert!(is::<Id>("seraph.tool.json-format") && is::<Id>("0.12.0-1~deb13u1"));
        assert!(!is::<Id>(".hidden") && !is::<Id>("") && !is::<Id>(&"a".repeat(129)));
        assert!(is::<Name>("launcher/c/main.c") && !is::<Name>("a//b") && !is::<Name>("a/"));
        assert!(is::<KeyName>("lazaret.invalid/log/1") && !is::<KeyName>("a b"));
        assert!(is::<Uri>("pkg:generic/bubblewrap@0.12.0") && !is::<Uri>("https://example.com/"));
        assert!(is::<FactText>("soft 2, hard 2") && !is::<FactText>("\u{e9}"));
        assert!(is::<KernelVersion>("6.18.3") && !is::<KernelVersion>("6.18.3-host"));
        assert!(is::<Licence>("MIT OR Apache-2.0") && is::<Licence>("(MIT) AND ISC"));
        assert!(!is::<UserText>("a\u{1b}[2J") && !is::<UserText>("\u{9b}"));
    }

    #[test]
    fn a_time_is_one_that_exists() {
        assert!(is::<Time>("2024-02-29T00:00:00Z") && is::<Time>("2026-12-31T23:59:59Z"));
        let others = [
            "2023-02-29T00:00:00Z",
            "1900-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-01-00T00:00:00Z",
            "2026-04-31T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:60:00Z",
            "2026-01-01T00:00:60Z",
            "2026-01-01T00:00:00+00:00",
            "2026-01-01T00:00:00",
            "2026-01-01 00:00:00Z",
        ];
        for other in others {
            assert!(!is::<Time>(other), "{other}");
        }
    }
}
