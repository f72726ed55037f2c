//! What a verifier expects of a receipt besides that it is genuine.
//!
//! A genuine receipt of something else proves nothing to the one who asks. Each
//! expectation that is set must hold; one that a kind of statement cannot meet is
//! not met. Nothing here may treat an expectation as met because it does not apply.

use lazaret_contract::digest::Sha256Digest;

use crate::predicate::shared::{Authority, CLOSURE_SUBJECT};
use crate::predicate::{Kind, Predicate};
use crate::statement::Statement;
use crate::text::Id;
use crate::verify::Claim;

/// What is expected. The default expects nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expectations {
    /// The kind of statement.
    pub kind: Option<Kind>,
    /// Digests that must be among its subjects.
    pub subjects: Vec<Sha256Digest>,
    /// The closure that it is of.
    pub closure: Option<Sha256Digest>,
    /// The profile that it is of.
    pub profile: Option<Id>,
    /// The task that it is of.
    pub task: Option<Id>,
    /// The proof of its place in a log: the bytes of a `.tlog-proof` file.
    pub inclusion: Option<Vec<u8>>,
    /// Whether it has to stand in a log.
    pub must_be_logged: bool,
}

/// An expectation that is not met.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unmet {
    /// Another kind.
    #[error("receipt is of kind {found}, expected was {wanted}")]
    Kind {
        /// What was expected.
        wanted: Kind,
        /// What it is.
        found: Kind,
    },
    /// Not about these bytes.
    #[error("receipt is not about {0}")]
    Subject(Sha256Digest),
    /// Of another closure, or of none.
    #[error("receipt is not of the closure {0}")]
    Closure(Sha256Digest),
    /// Of another profile, or of none.
    #[error("receipt is not of the profile {0}")]
    Profile(Id),
    /// Of another task, or of none.
    #[error("receipt is not of the task {0}")]
    Task(Id),
}

/// An expectation that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given} is no expectation: {wanted}")]
pub struct ExpectationError {
    given: String,
    wanted: String,
}

impl Expectations {
    /// Adds one expectation in words: `kind=run`, `subject=DIGEST`,
    /// `closure=DIGEST`, `profile=ID`, `task=ID` or `logged`.
    ///
    /// # Errors
    /// Any other text, and a second expectation of a kind that can be met once.
    pub fn add(&mut self, text: &str) -> Result<(), ExpectationError> {
        let fail = |wanted: &str| ExpectationError {
            given: crate::part::quoted(text),
            wanted: wanted.to_owned(),
        };
        if text == "logged" {
            self.must_be_logged = true;
            return Ok(());
        }
        let (key, value) = text.split_once('=').ok_or_else(|| fail(WANTED))?;
        let digest = || {
            value
                .parse()
                .map_err(|_| fail("a SHA-256 digest is wanted"))
        };
        let id = || value.parse().map_err(|_| fail("an identifier is wanted"));
        let is_twice = match key {
            "kind" => {
                let words: Vec<_> = Kind::ALL.iter().map(|kind| kind.word()).collect();
                let wanted = || fail(&format!("the kinds are {}", words.join(", ")));
                self.kind
                    .replace(Kind::from_word(value).ok_or_else(wanted)?)
                    .is_some()
            }
            "subject" => {
                self.subjects.push(digest()?);
                false
            }
            "closure" => self.closure.replace(digest()?).is_some(),
            "profile" => self.profile.replace(id()?).is_some(),
            "task" => self.task.replace(id()?).is_some(),
            _ => return Err(fail(WANTED)),
        };
        if is_twice {
            Err(fail("it is expected twice"))
        } else {
            Ok(())
        }
    }

    /// The claims that were expected and hold.
    pub(crate) fn check(&self, statement: &Statement) -> Result<Vec<Claim>, Unmet> {
        let mut met = Vec::new();
        if let Some(wanted) = self.kind {
            let found = statement.kind();
            if found != wanted {
                return Err(Unmet::Kind { wanted, found });
            }
            met.push(Claim::Kind);
        }
        for wanted in &self.subjects {
            if !statement
                .subjects
                .iter()
                .any(|subject| subject.digest.sha256 == *wanted)
            {
                return Err(Unmet::Subject(*wanted));
            }
        }
        if !self.subjects.is_empty() {
            met.push(Claim::Subjects);
        }
        if let Some(wanted) = self.closure {
            if closure_of(statement) != Some(wanted) {
                return Err(Unmet::Closure(wanted));
            }
            met.push(Claim::Closure);
        }
        if let Some(wanted) = &self.profile {
            if profile_of(statement).as_ref() != Some(&wanted.as_str()) {
                return Err(Unmet::Profile(wanted.clone()));
            }
            met.push(Claim::Profile);
        }
        if let Some(wanted) = &self.task {
            let task = authority_of(statement).and_then(|authority| authority.task.as_ref());
            if task != Some(wanted) {
                return Err(Unmet::Task(wanted.clone()));
            }
            met.push(Claim::Task);
        }
        Ok(met)
    }
}

const WANTED: &str = "kind=, subject=, closure=, profile=, task= or logged is wanted";

/// The closure that a statement is of.
pub fn closure_of(statement: &Statement) -> Option<Sha256Digest> {
    statement.subject(CLOSURE_SUBJECT)
}

/// The profile that a statement is of.
pub fn profile_of(statement: &Statement) -> Option<&str> {
    match &statement.predicate {
        Predicate::Build(build) => {
            Some(build.build_definition.external_parameters.profile.as_str())
        }
        Predicate::Bom(bom) => Some(bom.metadata.component.name.as_str()),
        Predicate::Attack(attack) => Some(attack.details.profile.id.as_str()),
        Predicate::Run(run) => Some(run.profile.id.as_str()),
        Predicate::Blocked(blocked) => Some(blocked.profile_id.as_str()),
        Predicate::Host(host) => Some(host.profile_id.as_str()),
        Predicate::Review(review) => Some(review.details.profile_id.as_str()),
        Predicate::Cleanup(_) | Predicate::Refusal(_) | Predicate::Lifecycle(_) => None,
    }
}

/// The authority under which the thing happened.
pub fn authority_of(statement: &Statement) -> Option<&Authority> {
    match &statement.predicate {
        Predicate::Run(run) => Some(&run.authority),
        Predicate::Blocked(blocked) => Some(&blocked.authority),
        Predicate::Cleanup(cleanup) => Some(&cleanup.authority),
        Predicate::Refusal(refusal) => Some(&refusal.authority),
        Predicate::Lifecycle(lifecycle) => Some(&lifecycle.authority),
        Predicate::Build(_)
        | Predicate::Bom(_)
        | Predicate::Attack(_)
        | Predicate::Host(_)
        | Predicate::Review(_) => None,
    }
}

/// The package that a statement is of.
pub fn package_of(statement: &Statement) -> Option<&Id> {
    match &statement.predicate {
        Predicate::Run(run) => Some(&run.package.id),
        Predicate::Blocked(blocked) => blocked.package.as_ref().map(|package| &package.id),
        Predicate::Lifecycle(lifecycle) => Some(&lifecycle.version.id),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expectations_are_read_strictly() {
        let mut expected = Expectations::default();
        let digest = Sha256Digest::of(b"x");
        for text in [
            "kind=run".to_owned(),
            format!("subject={digest}"),
            format!("subject={digest}"),
            format!("closure={digest}"),
            "profile=json-python-bwrap-v1".to_owned(),
            "task=t1".to_owned(),
            "logged".to_owned(),
        ] {
            expected.add(&text).unwrap();
        }
        assert_eq!(expected.subjects.len(), 2);
        for wrong in [
            "",
            "kind",
            "kind=",
            "kind=Run",
            "kind=run",
            "subject=00",
            "logged=1",
            "x=y",
        ] {
            assert!(expected.add(wrong).is_err(), "{wrong}");
        }
    }
}
