//! Why a package is refused, for people and for programs: one form for every
//! command that looks at a package.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use lazaret_contract::problem::{Place, Problem, Problems};
use lazaret_contract::visible;
use lazaret_custody::error::shown;
use lazaret_custody::{CustodyError, Refusal};
use serde::Serialize;

use crate::exit::Exit;
use crate::talk;

/// The version of the JSON form.
pub const VALIDATE_SCHEMA: &str = "lazaret-package-validate/1";

/// The code of what reading the directory refused; all others are the contract's.
const DIRECTORY_CODE: &str = "directory";

/// Why a directory holds no package that could be approved.
#[derive(Debug)]
pub enum Unfit {
    /// It could not be read safely, so nothing of it was judged.
    Directory(CustodyError),
    /// It was read, and breaks the contract.
    Problems(Problems),
}

impl From<CustodyError> for Unfit {
    fn from(error: CustodyError) -> Self {
        Self::Directory(error)
    }
}

impl From<Problems> for Unfit {
    fn from(problems: Problems) -> Self {
        Self::Problems(problems)
    }
}

/// What `validate --json` prints. Every text is printable ASCII.
#[derive(Serialize)]
pub struct Report {
    /// [`VALIDATE_SCHEMA`].
    pub schema: &'static str,
    /// The directory as it was named.
    pub directory: String,
    /// Whether the package can be approved.
    pub ok: bool,
    /// `<id>@<version>`, if it can.
    pub package: Option<String>,
    /// What a task asks for, if it can.
    pub capability: Option<String>,
    /// The digest that an approval names, if it can.
    pub content_sha256: Option<String>,
    /// Everything that is wrong.
    pub problems: Vec<Row>,
    /// How many problems more there are than are told.
    pub omitted: usize,
}

/// One problem.
#[derive(Serialize)]
pub struct Row {
    code: &'static str,
    /// Relative to the package; empty for the package as a whole. The path itself for
    /// the code `directory`.
    file: String,
    pointer: Option<String>,
    line: Option<usize>,
    column: Option<usize>,
    what: String,
    remedy: String,
}

impl Report {
    /// The report about a package that cannot be approved.
    pub fn of(dir: &Path, unfit: &Unfit) -> Self {
        let (problems, omitted) = match unfit {
            Unfit::Directory(error) => (vec![Row::of_directory(error)], 0),
            Unfit::Problems(problems) => (
                problems.list().iter().map(Row::of).collect(),
                problems.omitted(),
            ),
        };
        Self {
            schema: VALIDATE_SCHEMA,
            directory: name(dir),
            ok: false,
            package: None,
            capability: None,
            content_sha256: None,
            problems,
            omitted,
        }
    }

    fn text(&self) -> String {
        let mut said = String::new();
        for row in &self.problems {
            // Writing to a String cannot fail.
            let _ = writeln!(said, "{}: {} [{}]", row.place(), row.what, row.code);
            talk::push_step(&mut said, &row.remedy);
        }
        if self.omitted > 0 {
            let _ = writeln!(said, "and {} more", self.omitted);
        }
        said
    }
}

impl Row {
    fn of(problem: &Problem) -> Self {
        let (pointer, line, column) = match &problem.place {
            Place::Whole => (None, None, None),
            Place::Pointer(pointer) => (Some(visible::escape(pointer.as_str())), None, None),
            Place::Line { line, column } => (None, Some(*line), Some(*column)),
        };
        Self {
            code: problem.code.name(),
            file: problem.file.clone(),
            pointer,
            line,
            column,
            what: problem.what.clone(),
            remedy: problem.remedy.clone(),
        }
    }

    fn of_directory(error: &CustodyError) -> Self {
        Self {
            code: DIRECTORY_CODE,
            file: name(&error.path),
            pointer: None,
            line: None,
            column: None,
            what: error.refusal.to_string(),
            remedy: error
                .hint()
                .unwrap_or_else(|| remedy_of(&error.refusal).to_owned()),
        }
    }

    fn place(&self) -> String {
        let file = if self.file.is_empty() {
            "package"
        } else {
            &self.file
        };
        match (&self.pointer, self.line, self.column) {
            (Some(pointer), ..) if pointer.is_empty() => format!("{file} at (document)"),
            (Some(pointer), ..) => format!("{file} at {pointer}"),
            (None, Some(line), Some(column)) => format!("{file}:{line}:{column}"),
            _ => file.to_owned(),
        }
    }
}

/// A path in printable ASCII.
pub fn name(path: &Path) -> String {
    let text = shown(path);
    if text.is_ascii() {
        text
    } else {
        visible::escape(&text)
    }
}

fn remedy_of(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::NotFound => "name a directory that holds a package",
        Refusal::SymbolicLink => "put a copy of the file in its place",
        Refusal::NotRegular(_) | Refusal::NotDirectory(_) => {
            "remove it; a package is a directory of regular files"
        }
        Refusal::TooManyFiles { .. }
        | Refusal::TooManyEntries { .. }
        | Refusal::PackageTooLarge { .. } => "remove what the package does not need",
        Refusal::UnexpectedDirectory => "move its files to the top, or remove it",
        Refusal::Name(_) => "rename or remove it",
        _ => "correct it and validate again",
    }
}

/// Tells why a package is refused, on standard output, because it is the answer.
pub fn refuse(dir: &Path, unfit: &Unfit, json: bool) -> Result<Exit> {
    let report = Report::of(dir, unfit);
    if json {
        talk::give_json(&report)?;
    } else {
        talk::give(report.text().as_bytes())?;
        let count = report.problems.len() + report.omitted;
        let problems = if count == 1 { "problem" } else { "problems" };
        talk::line(&format!("{}: {count} {problems}", report.directory));
        if matches!(unfit, Unfit::Directory(_)) {
            talk::line("it could not be read safely as a whole, so nothing in it was judged");
        }
    }
    Ok(Exit::Refused)
}
