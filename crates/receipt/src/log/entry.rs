//! One entry of the log: its index, what it is, and a digest.
//!
//! The text of an entry is one line, and that line with its line feed is the leaf.
//! It names a receipt or an event by digest only, so the log can be shown to
//! strangers, and it carries its own index, so the same receipt at another place is
//! another leaf.

use std::fmt;

use lazaret_contract::digest::Sha256Digest;

use super::merkle::{Hash, leaf_hash};
use crate::part::words;

words! {
    /// What an entry stands for.
    pub enum EntryKind {
        /// A receipt: the digest is of its bytes.
        Receipt = "receipt",
        /// An event of the board or the lifecycle: the digest is of its record.
        Event = "event",
    }
}

/// One entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Its place, from 0.
    pub index: u64,
    /// What it stands for.
    pub kind: EntryKind,
    /// The digest of that.
    pub sha256: Sha256Digest,
}

impl Entry {
    /// The entry of a receipt with these bytes.
    pub fn of_receipt(index: u64, receipt: &[u8]) -> Self {
        Self {
            index,
            kind: EntryKind::Receipt,
            sha256: Sha256Digest::of(receipt),
        }
    }

    /// Its line, with the line feed.
    pub fn line(&self) -> String {
        format!("{self}\n")
    }

    /// Its leaf in the tree.
    pub fn leaf(&self) -> Hash {
        leaf_hash(self.line().as_bytes())
    }

    /// Reads a line without its line feed; `None` for anything but the one text of
    /// an entry.
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let entry = Self {
            index: words.next()?.parse().ok()?,
            kind: EntryKind::from_word(words.next()?)?,
            sha256: words.next()?.parse().ok()?,
        };
        // Refuses a plus sign, leading zeros and a fourth word.
        (entry.to_string() == line).then_some(entry)
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.index, self.kind, self.sha256)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_one_line() {
        let entry = Entry::of_receipt(12, b"receipt");
        let line = entry.to_string();
        assert_eq!(Entry::parse(&line), Some(entry));
        let digest = entry.sha256;
        for other in [
            format!("+12 receipt {digest}"),
            format!("012 receipt {digest}"),
            format!("12  receipt {digest}"),
            format!("12 receipt {digest} "),
            format!("12 Receipt {digest}"),
            format!("12 receipt {digest}\r"),
            format!("-1 receipt {digest}"),
            format!("18446744073709551616 receipt {digest}"),
            line.to_uppercase(),
            line[..line.len() - 1].to_owned(),
            String::new(),
        ] {
            assert_eq!(Entry::parse(&other), None, "{other:?}");
        }
    }
}
