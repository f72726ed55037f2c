//! Names as types, so that a task can never be taken for an attempt.
//!
//! Every name has one grammar: ASCII lower-case letters, digits, `.`, `-`, `_` and `+`, beginning
//! with a letter or digit. Look-alikes, white space, controls and path separators cannot occur.
//! Who makes a name (the engine, from random bytes; the contract, from a manifest) is not known
//! here.

use std::fmt;
use std::str::FromStr;

/// A text that does not follow the grammar of the name that was wanted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a {kind}: {rule}")]
pub struct NameError {
    /// What was wanted.
    pub kind: &'static str,
    /// The rule that was broken.
    pub rule: &'static str,
}

fn check_name(text: &str, bytes_max: usize) -> Result<(), &'static str> {
    if text.is_empty() {
        return Err("it is empty");
    }
    if text.len() > bytes_max {
        return Err("it is too long");
    }
    let mut bytes = text.bytes();
    let first = bytes
        .next()
        .is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let rest = bytes.all(|b| {
        b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'_' | b'+')
    });
    if first && rest {
        Ok(())
    } else {
        Err("lower-case ASCII letters, digits, '.', '-', '_' and '+', first a letter or digit")
    }
}

fn check_key(text: &str, bytes_max: usize) -> Result<(), &'static str> {
    if text.is_empty() {
        return Err("it is empty");
    }
    if text.len() > bytes_max {
        return Err("it is too long");
    }
    if text.bytes().all(|b| (0x21..=0x7e).contains(&b)) {
        Ok(())
    } else {
        Err("printable ASCII without spaces")
    }
}

fn check_reason(text: &str, bytes_max: usize) -> Result<(), &'static str> {
    if text.trim().is_empty() {
        return Err("it is empty");
    }
    if text.len() > bytes_max {
        return Err("it is too long");
    }
    if text.chars().any(char::is_control) {
        return Err("it holds a control character");
    }
    Ok(())
}

macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident = $kind:literal, $check:ident, $bytes_max:literal;)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// Most bytes of the text.
            pub const BYTES_MAX: usize = $bytes_max;

            /// The text as it was given.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                match $check(text, $bytes_max) {
                    Ok(()) => Ok(Self(text.to_owned())),
                    Err(rule) => Err(NameError { kind: $kind, rule }),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
    )+};
}

texts! {
    /// A board: one database of one deployment.
    BoardId = "board id", check_name, 64;
    /// The deployment's operator authority.
    RootId = "Root id", check_name, 64;
    /// An authenticated principal.
    OwnerId = "owner id", check_name, 64;
    /// One log-in of an owner under a Root epoch.
    SessionId = "session id", check_name, 64;
    /// What work is for.
    GoalId = "Goal id", check_name, 64;
    /// A task on the WorkBoard.
    TaskId = "task id", check_name, 64;
    /// One try to run a task.
    AttemptId = "attempt id", check_name, 64;
    /// The time-bounded right to act on an attempt.
    LeaseId = "lease id", check_name, 64;
    /// The one place that an attempt may write its output to.
    OutputSlot = "output slot", check_name, 64;
    /// One process that serves a data directory.
    InstanceId = "instance id", check_name, 64;
    /// A package, for example `local.time-ledger-summary`.
    PackageId = "package id", check_name, 64;
    /// A version of a package; versions are equal or not, and have no order.
    PackageVersion = "package version", check_name, 32;
    /// What a task asks for, for example `work.json-format.v1` (ADR-020: derived by the server).
    Capability = "capability", check_name, 160;
    /// A fixed way of isolating, for example `json-python-bwrap-v1`.
    ProfileId = "profile id", check_name, 64;
    /// A review of a version.
    ReviewId = "review id", check_name, 64;
    /// A single-use permission for one action.
    ApprovalId = "approval id", check_name, 64;
    /// The mark of a version that must never run again.
    TombstoneId = "tombstone id", check_name, 64;
    /// A verified output.
    ArtifactId = "artifact id", check_name, 64;
    /// A signed statement.
    ReceiptId = "receipt id", check_name, 64;
    /// What makes a repeated admission the same admission; per owner.
    IdempotencyKey = "idempotency key", check_key, 128;
    /// Why somebody did something, in their words: the only free text of this crate.
    Reason = "reason", check_reason, 256;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_follows_its_grammar_to_the_byte() {
        let longest = "a".repeat(64);
        for good in ["a", "0", "local.time-ledger-summary", "1.0.0+x", &longest] {
            assert_eq!(
                good.parse::<PackageId>().map(|id| id.to_string()),
                Ok(good.to_owned())
            );
        }
        let too_long = "a".repeat(65);
        for bad in [
            "", "A", ".a", "-a", "a/b", "a b", "a\n", "ä", "а", "a\0", &too_long,
        ] {
            assert!(bad.parse::<PackageId>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_reason_is_one_line_with_something_in_it() {
        assert!("digest differs: page 3".parse::<Reason>().is_ok());
        for bad in ["", "  ", "two\nlines", "bell\u{7}", &"x".repeat(257)] {
            assert!(bad.parse::<Reason>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_key_is_printable_ascii() {
        assert!("9f/Ab=:~".parse::<IdempotencyKey>().is_ok());
        for bad in ["", "a b", "a\t", "ü", &"k".repeat(129)] {
            assert!(bad.parse::<IdempotencyKey>().is_err(), "{bad:?}");
        }
    }
}
