//! Who a package is, and what it may be asked for by.
//!
//! Ids are ASCII by grammar and have one spelling each: no case, no Unicode, no
//! trailing dot can make two ids that look alike. A capability is derived from
//! the ids and never chosen by the package; since an adapter id has no dot,
//! different packages and adapters always derive different capabilities, and
//! none can derive a built-in one.

use std::fmt;
use std::str::FromStr;

use crate::visible;

/// The longest package id, in characters.
pub const PACKAGE_ID_CHARS_MAX: usize = 64;

/// The longest label of an id, in characters; also the longest adapter id.
pub const LABEL_CHARS_MAX: usize = 32;

/// The id of the bundled formatter. Under it there is exactly one content.
pub const FORMATTER_ID: &str = "seraph.tool.json-format";

/// The formatter's capability: built in, not derived.
pub const FORMATTER_CAPABILITY: &str = "work.json-format.v1";

/// First labels that only bundled packages may have.
pub const RESERVED_LABELS: &[&str] = &[
    "seraph", "lazaret", "work", "pack", "builtin", "bundled", "core", "system",
];

/// Why a text is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// Too long, or empty.
    #[error("an id has 1 to {0} characters")]
    Length(usize),
    /// A character outside the grammar, shown escaped.
    #[error("an id holds lower-case ASCII letters, digits, '-' and '.' only, not '{0}'")]
    Character(String),
    /// Two dots in a row, or one at an end.
    #[error("a dot of an id stands between two labels")]
    EmptyLabel,
    /// A label that begins with a digit or has a `-` at an end or two in a row.
    #[error("a label of an id begins with a letter and has single '-' inside only")]
    LabelForm,
    /// A label that is too long.
    #[error("a label of an id has at most {LABEL_CHARS_MAX} characters")]
    LabelLength,
    /// A package id without a dot, or with too many.
    #[error("a package id has 2 to 5 labels, as in local.time-ledger-summary")]
    Labels,
    /// An adapter id with a dot.
    #[error("an adapter id has no dot")]
    AdapterDot,
    /// Not the form of any capability.
    #[error("a capability is {FORMATTER_CAPABILITY} or pack.<package id>.<adapter id>.v1")]
    Capability,
}

fn check_labels(text: &str, chars_max: usize) -> Result<usize, IdError> {
    let in_grammar = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '-' | '.');
    if let Some(c) = text.chars().find(|&c| !in_grammar(c)) {
        return Err(IdError::Character(visible::escape(
            c.encode_utf8(&mut [0; 4]),
        )));
    }
    if text.is_empty() || text.len() > chars_max {
        return Err(IdError::Length(chars_max));
    }
    for label in text.split('.') {
        if label.is_empty() {
            return Err(IdError::EmptyLabel);
        }
        if label.len() > LABEL_CHARS_MAX {
            return Err(IdError::LabelLength);
        }
        let begins_with_letter = label.starts_with(|c: char| c.is_ascii_lowercase());
        if !begins_with_letter || label.ends_with('-') || label.contains("--") {
            return Err(IdError::LabelForm);
        }
    }
    Ok(text.split('.').count())
}

/// The id of a package, for example `local.time-ledger-summary`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PackageId(String);

impl PackageId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether only a bundled package may have this id.
    pub fn is_reserved(&self) -> bool {
        let first = self.0.split('.').next().unwrap_or_default();
        RESERVED_LABELS.contains(&first)
    }

    /// Whether this is the bundled formatter's id.
    pub fn is_formatter(&self) -> bool {
        self.0 == FORMATTER_ID
    }
}

impl FromStr for PackageId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        match check_labels(text, PACKAGE_ID_CHARS_MAX)? {
            2..=5 => Ok(Self(text.to_owned())),
            _ => Err(IdError::Labels),
        }
    }
}

/// The id of an adapter within its package, for example `summarize`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AdapterId(String);

impl AdapterId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for AdapterId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        match check_labels(text, LABEL_CHARS_MAX)? {
            1 => Ok(Self(text.to_owned())),
            _ => Err(IdError::AdapterDot),
        }
    }
}

/// What a task asks for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Capability {
    /// [`FORMATTER_CAPABILITY`].
    JsonFormat,
    /// `pack.<package id>.<adapter id>.v1`.
    Package {
        /// The package.
        package: PackageId,
        /// Its adapter.
        adapter: AdapterId,
    },
}

impl Capability {
    /// The capability of an adapter. The package has no say in it.
    pub fn derive(package: &PackageId, adapter: &AdapterId) -> Self {
        if package.is_formatter() {
            return Self::JsonFormat;
        }
        Self::Package {
            package: package.clone(),
            adapter: adapter.clone(),
        }
    }
}

impl fmt::Display for PackageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Display for AdapterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::JsonFormat => f.pad(FORMATTER_CAPABILITY),
            Self::Package { package, adapter } => f.pad(&format!("pack.{package}.{adapter}.v1")),
        }
    }
}

impl FromStr for Capability {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        if text == FORMATTER_CAPABILITY {
            return Ok(Self::JsonFormat);
        }
        let ids = text
            .strip_prefix("pack.")
            .and_then(|rest| rest.strip_suffix(".v1"));
        let (package, adapter) = ids
            .and_then(|ids| ids.rsplit_once('.'))
            .ok_or(IdError::Capability)?;
        let package: PackageId = package.parse()?;
        if package.is_formatter() {
            return Err(IdError::Capability);
        }
        Ok(Self::Package {
            package,
            adapter: adapter.parse()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused<T: FromStr<Err = IdError> + fmt::Debug>(texts: &[&str]) {
        for text in texts {
            assert!(text.parse::<T>().is_err(), "{text:?} was taken");
        }
    }

    #[test]
    fn ids_have_one_ascii_spelling() {
        for text in [
            "local.time-ledger-summary",
            "a.b",
            FORMATTER_ID,
            "acme.tools.x1.y2.z3",
        ] {
            assert_eq!(text.parse::<PackageId>().unwrap().as_str(), text);
        }
        refused::<PackageId>(&[
            "",
            "local",
            "local.",
            ".local",
            "local..x",
            "Local.x",
            "local.X",
            "local.x ",
            " local.x",
            "local.x.",
            "local.-x",
            "local.x-",
            "local.x--y",
            "local.1x",
            "local.x_y",
            "local/x",
            "local.\u{445}",
            "local.x\u{200b}",
            "local.\u{ff58}",
            "local.x\n",
            "local.x\0",
            "a.b.c.d.e.f",
            "l\u{f6}cal.x",
            "--bind.x",
            "..",
            "a.b/../c",
            "local.x\\y",
            "xn--.x",
        ]);
        refused::<PackageId>(&[
            &format!("local.{}", "x".repeat(33)),
            &format!("{0}.{0}.{0}", "x".repeat(22)),
        ]);
        refused::<AdapterId>(&["", "a.b", "A", "a_b", "-a", "a-", "1a", "a\u{301}"]);
    }

    #[test]
    fn a_capability_is_derived_and_parses_back() {
        let derive = |package: &str, adapter: &str| {
            Capability::derive(&package.parse().unwrap(), &adapter.parse().unwrap()).to_string()
        };
        let summarize = derive("local.time-ledger-summary", "summarize");
        assert_eq!(summarize, "pack.local.time-ledger-summary.summarize.v1");
        assert_eq!(derive(FORMATTER_ID, "json-format"), FORMATTER_CAPABILITY);
        for text in [summarize.as_str(), FORMATTER_CAPABILITY] {
            assert_eq!(text.parse::<Capability>().unwrap().to_string(), text);
        }
        refused::<Capability>(&[
            "",
            "work.other.v1",
            "pack.local.x.v1",
            "pack.local.x.y.v2",
            "pack.local.x.y",
            "pack.seraph.tool.json-format.x.v1",
            "work.json-format.v1 ",
            "WORK.json-format.v1",
        ]);
    }

    #[test]
    fn reserved_ids_are_known_by_their_first_label() {
        for (text, is_reserved) in [
            (FORMATTER_ID, true),
            ("work.x", true),
            ("local.work", false),
            ("workshop.x", false),
        ] {
            assert_eq!(
                text.parse::<PackageId>().unwrap().is_reserved(),
                is_reserved,
                "{text}"
            );
        }
    }
}
