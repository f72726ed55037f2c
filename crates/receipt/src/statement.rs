//! The statement inside a receipt: in-toto Statement v1, in one text.
//!
//! Subjects by digest, and one predicate of a known kind. The text is compact
//! JSON with sorted keys and no other; reading demands exactly that text, so equal
//! statements have equal bytes. It must never hold a member that its kind does not
//! define, a number that JSON readers may round, or anything by a name only.

use lazaret_contract::digest::Sha256Digest;
use lazaret_contract::json::{self, Bounds, JsonError, Object, Value};

use crate::limits::{STATEMENT_BYTES_MAX, STATEMENT_NODES_MAX, SUBJECTS_MAX};
use crate::part::{At, FormError, Part, constant, nothing_left, object_of, record};
use crate::predicate::{Kind, Predicate};
use crate::text::Name;

/// The type of every statement.
pub const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";

constant! {
    /// [`STATEMENT_TYPE`].
    pub struct StatementType = STATEMENT_TYPE;
}

record! {
    /// The digest of a subject or of anything else that a statement names.
    pub struct DigestSet {
        /// SHA-256, the only algorithm.
        "sha256" => sha256: Sha256Digest,
    }
}

impl From<Sha256Digest> for DigestSet {
    fn from(sha256: Sha256Digest) -> Self {
        Self { sha256 }
    }
}

record! {
    /// One thing that a statement is about.
    pub struct Subject {
        /// Its digest: what the statement is true of.
        "digest" => digest: DigestSet,
        /// Its name among the subjects, for people.
        "name" => name: Name,
    }
}

impl Subject {
    /// A subject.
    pub fn new(name: Name, sha256: Sha256Digest) -> Self {
        Self {
            digest: sha256.into(),
            name,
        }
    }
}

/// Why bytes are no statement, or values make none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StatementError {
    /// Not strict JSON within the limits: size, nesting, number of values,
    /// duplicate keys, numbers.
    #[error("statement is not strict JSON: {0}")]
    Json(#[from] JsonError),
    /// JSON, but not the one text of its value.
    #[error("statement is not in its canonical form")]
    NotCanonical,
    /// Not of the form that its kind asks for, or against one of its rules.
    #[error("statement is not of its form: {0}")]
    Form(#[from] FormError),
    /// Of a kind that this version does not know.
    #[error("statement has the unknown predicate type {0}")]
    UnknownPredicate(String),
}

/// A statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// What it is about, by name in order, each name once.
    pub subjects: Vec<Subject>,
    /// What it says.
    pub predicate: Predicate,
}

impl Statement {
    /// A statement with its subjects in order.
    ///
    /// # Errors
    /// When it is against a rule of its kind.
    pub fn new(mut subjects: Vec<Subject>, predicate: Predicate) -> Result<Self, StatementError> {
        subjects.sort_by(|a, b| a.name.cmp(&b.name));
        let statement = Self {
            subjects,
            predicate,
        };
        statement.check()?;
        Ok(statement)
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        self.predicate.kind()
    }

    /// The digest of the subject with this name.
    pub fn subject(&self, name: &str) -> Option<Sha256Digest> {
        find(&self.subjects, name)
    }

    /// Its one text.
    ///
    /// # Errors
    /// When that text would not read back as this very statement: too large, an
    /// integer beyond [`INTEGER_MAX`](crate::limits::INTEGER_MAX), a broken rule.
    pub fn to_bytes(&self) -> Result<Vec<u8>, StatementError> {
        let mut object = Object::new();
        StatementType.put(&mut object, "_type");
        self.subjects.put(&mut object, "subject");
        object.insert("predicateType".to_owned(), self.kind().type_uri().into());
        object.insert("predicate".to_owned(), self.predicate.to_value());
        let bytes = json::write_compact(&Value::Object(object));
        // Load-bearing: nothing is signed that a verifier would refuse.
        if Self::parse(&bytes)? == *self {
            Ok(bytes)
        } else {
            Err(StatementError::NotCanonical)
        }
    }

    /// Reads exactly what [`Self::to_bytes`] writes.
    ///
    /// # Errors
    /// Names what is wrong and where.
    pub fn parse(bytes: &[u8]) -> Result<Self, StatementError> {
        let bounds = Bounds::document(STATEMENT_BYTES_MAX).with_nodes_max(STATEMENT_NODES_MAX);
        let value = json::parse_bounded(bytes, bounds)?;
        if json::write_compact(&value) != bytes {
            return Err(StatementError::NotCanonical);
        }
        let at = At::Root;
        let mut object = object_of(value, &at)?;
        StatementType::take(&mut object, "_type", &at)?;
        let subjects = Vec::<Subject>::take(&mut object, "subject", &at)?;
        let kind = match object.remove("predicateType") {
            Some(Value::String(uri)) => Kind::from_type_uri(&uri)
                .ok_or_else(|| StatementError::UnknownPredicate(crate::part::quoted(&uri)))?,
            _ => return Err(at.error("lacks the member \"predicateType\"").into()),
        };
        let Some(value) = object.remove("predicate") else {
            return Err(at.error("lacks the member \"predicate\"").into());
        };
        nothing_left(&object, &at)?;
        let predicate = Predicate::from_value(kind, value, &at.member("predicate"))?;
        let statement = Self {
            subjects,
            predicate,
        };
        statement.check()?;
        Ok(statement)
    }

    /// The rules that the types do not express.
    fn check(&self) -> Result<(), StatementError> {
        let at = At::Root;
        let at = at.member("subject");
        if self.subjects.is_empty() || self.subjects.len() > SUBJECTS_MAX {
            let problem = format!("wants from 1 to {SUBJECTS_MAX} subjects");
            return Err(at.error(problem).into());
        }
        // One order and no second digest under a name, so that a statement has one
        // text and a name one meaning.
        if !self.subjects.is_sorted_by(|a, b| a.name < b.name) {
            return Err(at.error("wants every name once and in order").into());
        }
        self.predicate.check(&self.subjects)?;
        Ok(())
    }
}

/// The digest of the subject with this name.
pub(crate) fn find(subjects: &[Subject], name: &str) -> Option<Sha256Digest> {
    let subject = subjects
        .iter()
        .find(|subject| subject.name.as_str() == name)?;
    Some(subject.digest.sha256)
}
