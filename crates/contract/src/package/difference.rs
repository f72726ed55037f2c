//! What an update changes: every difference between two packages, named, and
//! marked where it allows more than before.

use super::CODE_PATH;
use super::descriptor::Contract;
use super::inspect::Package;
use crate::digest::Sha256Digest;
use crate::pointer::Pointer;
use crate::visible;

/// What a change concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Subject {
    /// The id, or an adapter and with it the capability: not an update at all.
    Identity,
    /// The version number.
    Version,
    /// The declared permissions or the resources.
    Authority,
    /// The profile or its closure.
    Dependency,
    /// What the adapter takes.
    InputSchema,
    /// What the adapter gives.
    OutputSchema,
    /// The bytes of `adapter.py`.
    Code,
    /// Text for people: name, summary, publisher, licence.
    Text,
    /// Another file: added, removed or changed.
    File,
}

impl Subject {
    /// The stable name, for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Version => "version",
            Self::Authority => "authority",
            Self::Dependency => "dependency",
            Self::InputSchema => "input_schema",
            Self::OutputSchema => "output_schema",
            Self::Code => "code",
            Self::Text => "text",
            Self::File => "file",
        }
    }
}

/// One difference between two packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What it concerns.
    pub subject: Subject,
    /// Whether more is allowed than before. Changed code is not marked: what it
    /// may do is the same, what it does is for the reviewer to read.
    pub widens: bool,
    /// Where in the values of a schema; the root for everything else.
    pub pointer: Pointer,
    /// What was and what is, safe to print.
    pub what: String,
}

/// Everything that differs from `old` to `new`. No change at all means the same
/// bytes.
pub fn compare(old: &Package, new: &Package) -> Vec<Change> {
    let mut changes = Changes(Vec::new());
    changes.identity(old, new);
    changes.contract(
        Subject::InputSchema,
        &old.descriptor.input,
        &new.descriptor.input,
    );
    changes.contract(
        Subject::OutputSchema,
        &old.descriptor.output,
        &new.descriptor.output,
    );
    changes.text(old, new);
    changes.files(old, new);
    changes.0.sort_by_key(|change| change.subject);
    changes.0
}

struct Changes(Vec<Change>);

impl Changes {
    fn add(&mut self, subject: Subject, widens: bool, what: String) {
        self.0.push(Change {
            subject,
            widens,
            pointer: Pointer::root(),
            what,
        });
    }

    fn identity(&mut self, old: &Package, new: &Package) {
        if (&old.manifest.id, &old.capability) != (&new.manifest.id, &new.capability) {
            let what = format!("{} becomes {}", old.capability, new.capability);
            self.add(Subject::Identity, true, what);
        }
        if old.manifest.version != new.manifest.version {
            let what = format!("{} becomes {}", old.manifest.version, new.manifest.version);
            self.add(Subject::Version, false, what);
        }
        if old.digests.authority != new.digests.authority && old.capability == new.capability {
            let what = format!(
                "authority {} becomes {}",
                old.digests.authority, new.digests.authority
            );
            self.add(Subject::Authority, true, what);
        }
        let (was, is) = (&old.descriptor.binding, &new.descriptor.binding);
        if was != is {
            let what = format!(
                "{} with closure {} becomes {} with closure {}",
                was.profile, was.closure, is.profile, is.closure
            );
            self.add(Subject::Dependency, false, what);
        }
    }

    fn contract(&mut self, subject: Subject, old: &Contract, new: &Contract) {
        match (old, new) {
            (Contract::Schema(old), Contract::Schema(new)) => {
                let before = self.0.len();
                self.0
                    .extend(old.changes_to(new).into_iter().map(|change| Change {
                        subject,
                        widens: change.widens,
                        pointer: change.pointer,
                        what: change.what,
                    }));
                if self.0.len() == before && old.digest() != new.digest() {
                    let what = "the same values, written in another way".to_owned();
                    self.add(subject, false, what);
                }
            }
            (old, new) if old.digest() != new.digest() => {
                let widens = matches!(new, Contract::AnyStrictJson);
                let what = format!("schema {} becomes {}", old.digest(), new.digest());
                self.add(subject, widens, what);
            }
            _ => {}
        }
    }

    fn text(&mut self, old: &Package, new: &Package) {
        let rows = [
            ("name", &old.manifest.name, &new.manifest.name),
            ("summary", &old.manifest.summary, &new.manifest.summary),
            (
                "publisher",
                &old.manifest.publisher,
                &new.manifest.publisher,
            ),
            ("license", &old.manifest.license, &new.manifest.license),
            (
                "adapter summary",
                &old.descriptor.summary,
                &new.descriptor.summary,
            ),
        ];
        for (field, was, is) in rows.into_iter().filter(|(_, was, is)| was != is) {
            let what = format!(
                "{field} \"{}\" becomes \"{}\"",
                visible::escape(was),
                visible::escape(is)
            );
            self.add(Subject::Text, false, what);
        }
    }

    fn files(&mut self, old: &Package, new: &Package) {
        let described =
            |bytes: &[u8]| format!("{} bytes, {}", bytes.len(), Sha256Digest::of(bytes));
        for (path, is) in new.files.iter() {
            let subject = if path == CODE_PATH {
                Subject::Code
            } else {
                Subject::File
            };
            match old.files.get(path) {
                None => self.add(subject, false, format!("{path} is new: {}", described(is))),
                Some(was) if was != is => {
                    let what = format!("{path}: {} becomes {}", described(was), described(is));
                    self.add(subject, false, what);
                }
                Some(_) => {}
            }
        }
        for (path, was) in old
            .files
            .iter()
            .filter(|(path, _)| new.files.get(path).is_none())
        {
            self.add(
                Subject::File,
                false,
                format!("{path} is gone: {}", described(was)),
            );
        }
    }
}
