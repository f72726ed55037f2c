//! `lazaret package diff`: what an update changes, each change named and marked where
//! it allows more than before.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use lazaret_contract::package::{self, BindingCheck, Change, Package, Subject};
use lazaret_contract::visible;
use serde::Serialize;

use super::code;
use super::lines::{Line, difference};
use super::problems;
use crate::arguments::Diff;
use crate::exit::Exit;
use crate::talk;

/// The version of the JSON form.
const DIFF_SCHEMA: &str = "lazaret-package-diff/1";

/// How many unchanged lines are shown around a change.
const AROUND_LINES: usize = 3;

/// What is said to be unchanged, if it is.
const REVIEWED: [Subject; 5] = [
    Subject::Authority,
    Subject::Dependency,
    Subject::InputSchema,
    Subject::OutputSchema,
    Subject::Code,
];

/// What `diff --json` prints. Every text is printable ASCII.
#[derive(Serialize)]
struct View {
    schema: &'static str,
    old: Side,
    new: Side,
    /// Whether both are the same bytes.
    identical: bool,
    /// Whether anything allows more than before.
    widens: bool,
    changes: Vec<ChangeRow>,
    /// The changed lines of the code with those around them.
    code: Vec<CodeRow>,
}

#[derive(Serialize)]
struct Side {
    directory: String,
    package: String,
    content_sha256: String,
}

#[derive(Serialize)]
struct ChangeRow {
    subject: &'static str,
    widens: bool,
    /// Where in the values of a schema; empty for everything else.
    pointer: String,
    what: String,
}

/// One piece of a line: `=` in both, `-` removed, `+` added.
#[derive(Serialize)]
struct CodeRow {
    mark: char,
    old_line: Option<usize>,
    new_line: Option<usize>,
    has_escapes: bool,
    text: String,
}

/// Shows the difference.
pub fn run(diff: &Diff) -> Result<Exit> {
    // The old one may be bound to a closure that an earlier build had accepted; the new
    // one is what is to be approved now.
    let old = match super::open_bound(&diff.old, BindingCheck::Form) {
        Ok(package) => package,
        Err(unfit) => return problems::refuse(&diff.old, &unfit, diff.json),
    };
    let new = match super::open(&diff.new) {
        Ok(package) => package,
        Err(unfit) => return problems::refuse(&diff.new, &unfit, diff.json),
    };
    let changes = package::compare(&old, &new);
    let view = View {
        schema: DIFF_SCHEMA,
        old: side(&diff.old, &old),
        new: side(&diff.new, &new),
        identical: changes.is_empty(),
        widens: changes.iter().any(|change| change.widens),
        changes: changes.iter().map(row).collect(),
        code: code_rows(&difference(old.code(), new.code())),
    };
    if diff.json {
        talk::give_json(&view)?;
    } else {
        talk::give(text(&view).as_bytes())?;
    }
    Ok(Exit::Done)
}

fn side(dir: &Path, package: &Package) -> Side {
    Side {
        directory: problems::name(dir),
        package: package.id_and_version(),
        content_sha256: package.digests.content.to_string(),
    }
}

fn row(change: &Change) -> ChangeRow {
    ChangeRow {
        subject: change.subject.name(),
        widens: change.widens,
        pointer: visible::escape(change.pointer.as_str()),
        what: change.what.clone(),
    }
}

fn code_rows(lines: &[Line<'_>]) -> Vec<CodeRow> {
    let changed: Vec<bool> = lines
        .iter()
        .map(|line| !matches!(line, Line::Same { .. }))
        .collect();
    let near = |at: usize| {
        let around = at.saturating_sub(AROUND_LINES)..lines.len().min(at + AROUND_LINES + 1);
        changed
            .get(around)
            .is_some_and(|around| around.contains(&true))
    };
    lines
        .iter()
        .enumerate()
        .filter(|(at, _)| near(*at))
        .flat_map(|(_, line)| pieces(*line))
        .collect()
}

fn pieces(line: Line<'_>) -> Vec<CodeRow> {
    let (mark, old_line, new_line, bytes) = match line {
        Line::Same { old, new, bytes } => ('=', Some(old), Some(new), bytes),
        Line::Removed { old, bytes } => ('-', Some(old), None, bytes),
        Line::Added { new, bytes } => ('+', None, Some(new), bytes),
    };
    let mut rows: Vec<CodeRow> = code::lines(bytes)
        .into_iter()
        .map(|shown| CodeRow {
            mark,
            old_line,
            new_line,
            has_escapes: shown.has_escapes,
            text: shown.text,
        })
        .collect();
    if let (Some(last), false) = (rows.last_mut(), bytes.ends_with(b"\n")) {
        last.text.push_str("<no line feed at the end>");
        last.has_escapes = true;
    }
    rows
}

fn text(view: &View) -> String {
    let mut shown = String::new();
    let mut put = |line: &str| {
        // Writing to a String cannot fail.
        let _ = writeln!(shown, "{line}");
    };
    for (name, side) in [("old", &view.old), ("new", &view.new)] {
        put(&format!(
            "{name}: {}, content {}, in {}",
            side.package, side.content_sha256, side.directory
        ));
    }
    if view.identical {
        put("the same bytes");
        return shown;
    }
    for change in &view.changes {
        let widens = if change.widens { "WIDENS" } else { "" };
        let at = match change.pointer.as_str() {
            "" => String::new(),
            pointer => format!("at {pointer}: "),
        };
        put(&format!(
            "  {widens:<6} {:<14} {at}{}",
            change.subject, change.what
        ));
    }
    for subject in REVIEWED.map(Subject::name) {
        if view.changes.iter().all(|change| change.subject != subject) {
            put(&format!("  {:<6} {subject:<14} unchanged", ""));
        }
    }
    put(if view.widens {
        "This allows more than before: look at each line marked WIDENS."
    } else {
        "Nothing here allows more than before. What changed code does is yours to read."
    });
    if !view.code.is_empty() {
        put("adapter.py (= in both, - removed, + added; ! holds escapes):");
    }
    let number = |line: Option<usize>| line.map_or(String::new(), |line| line.to_string());
    for row in &view.code {
        let escapes = if row.has_escapes { '!' } else { '|' };
        put(&format!(
            "  {:>5} {:>5} {} {escapes} {}",
            number(row.old_line),
            number(row.new_line),
            row.mark,
            row.text
        ));
    }
    shown
}
