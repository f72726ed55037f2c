//! What is wrong with a document or a package: all of it at once, each with
//! its place, the reason and what to do.
//!
//! The texts are safe to print: whatever they quote goes through
//! [`visible`](crate::visible). The codes are a published vocabulary.

use std::fmt;

use crate::pointer::Pointer;

/// The kind of a problem, for programs. The names are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ProblemCode {
    /// A document is not strict JSON.
    Json,
    /// A field that must be there is not.
    MissingField,
    /// A field that does not exist in this format.
    UnknownField,
    /// A value of another type than wanted.
    WrongType,
    /// A value outside its bounds.
    OutOfBounds,
    /// A field that has one allowed value has another.
    NotAllowed,
    /// The same thing is listed twice.
    Duplicate,
    /// An id or path outside its grammar.
    BadName,
    /// An id that only bundled packages may have.
    ReservedId,
    /// A schema uses a keyword that the closed language does not have.
    SchemaKeyword,
    /// A schema exceeds a limit of the closed language.
    SchemaLimit,
    /// A digest or a size is not that of the bytes.
    Mismatch,
    /// The manifest lists a file that is not there.
    MissingFile,
    /// A file is there that the manifest does not list.
    UnlistedFile,
    /// More files or bytes than allowed.
    TooLarge,
    /// `adapter.py` breaks a text rule.
    CodeText,
    /// A golden vector does not fit its schema.
    Vector,
    /// The package is bound to no closure, or to another one.
    Binding,
}

impl ProblemCode {
    /// All codes.
    pub const ALL: [Self; 18] = [
        Self::Json,
        Self::MissingField,
        Self::UnknownField,
        Self::WrongType,
        Self::OutOfBounds,
        Self::NotAllowed,
        Self::Duplicate,
        Self::BadName,
        Self::ReservedId,
        Self::SchemaKeyword,
        Self::SchemaLimit,
        Self::Mismatch,
        Self::MissingFile,
        Self::UnlistedFile,
        Self::TooLarge,
        Self::CodeText,
        Self::Vector,
        Self::Binding,
    ];

    /// The published name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::MissingField => "missing_field",
            Self::UnknownField => "unknown_field",
            Self::WrongType => "wrong_type",
            Self::OutOfBounds => "out_of_bounds",
            Self::NotAllowed => "not_allowed",
            Self::Duplicate => "duplicate",
            Self::BadName => "bad_name",
            Self::ReservedId => "reserved_id",
            Self::SchemaKeyword => "schema_keyword",
            Self::SchemaLimit => "schema_limit",
            Self::Mismatch => "mismatch",
            Self::MissingFile => "missing_file",
            Self::UnlistedFile => "unlisted_file",
            Self::TooLarge => "too_large",
            Self::CodeText => "code_text",
            Self::Vector => "vector",
            Self::Binding => "binding",
        }
    }
}

impl fmt::Display for ProblemCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Where in a file a problem is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The file as a whole.
    Whole,
    /// A place in a JSON document.
    Pointer(Pointer),
    /// A place in a text; both count from 1, the column in code points.
    Line {
        /// The line.
        line: usize,
        /// The column.
        column: usize,
    },
}

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The kind, for programs.
    pub code: ProblemCode,
    /// The file within the package; empty for the package as a whole, and for a
    /// document that is not in a package.
    pub file: String,
    /// Where in the file.
    pub place: Place,
    /// What is wrong and why it matters, for people.
    pub what: String,
    /// What to do about it, for people.
    pub remedy: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A file name of a package passed a grammar of printable ASCII, or is
        // shown escaped by whoever refuses it.
        let file = if self.file.is_empty() {
            "package"
        } else {
            &self.file
        };
        match &self.place {
            Place::Whole => write!(f, "{file}: ")?,
            Place::Pointer(pointer) => write!(f, "{file} at {pointer}: ")?,
            Place::Line { line, column } => write!(f, "{file}:{line}:{column}: ")?,
        }
        write!(f, "{}; {}", self.what, self.remedy)
    }
}

/// The most problems that are kept; a hostile document could have thousands.
pub const PROBLEMS_MAX: usize = 100;

/// All problems found so far, at most [`PROBLEMS_MAX`] of them kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems {
    kept: Vec<Problem>,
    omitted: usize,
}

impl Problems {
    /// No problems.
    pub const fn none() -> Self {
        Self {
            kept: Vec::new(),
            omitted: 0,
        }
    }

    /// The problems, in the order in which they were found.
    pub fn list(&self) -> &[Problem] {
        &self.kept
    }

    /// How many more there were than are kept.
    pub const fn omitted(&self) -> usize {
        self.omitted
    }

    /// Whether nothing is wrong. Kept and omitted ones both count.
    pub const fn is_empty(&self) -> bool {
        self.kept.is_empty() && self.omitted == 0
    }

    /// Adds a problem.
    pub fn push(&mut self, problem: Problem) {
        if self.kept.len() < PROBLEMS_MAX {
            self.kept.push(problem);
        } else {
            self.omitted += 1;
        }
    }

    /// Adds a problem at a pointer of a document whose file is not named here.
    pub(crate) fn at(
        &mut self,
        code: ProblemCode,
        pointer: &Pointer,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.push(Problem {
            code,
            file: String::new(),
            place: Place::Pointer(pointer.clone()),
            what: what.into(),
            remedy: remedy.into(),
        });
    }

    /// Adds the problems of a document that stands at `pointer` of `file`.
    pub(crate) fn add_nested(&mut self, inner: Self, file: &str, pointer: &Pointer) {
        self.omitted += inner.omitted;
        for mut problem in inner.kept {
            file.clone_into(&mut problem.file);
            if let Place::Pointer(place) = &mut problem.place {
                *place = pointer.join(place);
            }
            self.push(problem);
        }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.kept.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        if self.omitted > 0 {
            write!(f, "\nand {} more", self.omitted)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}
