//! What is said to people, on standard error, and what is given out, on standard
//! output.

use std::fmt::Write as _;
use std::io::Write as _;

use anyhow::{Context as _, Result};
use lazaret_contract::visible;
use lazaret_engine::Blocked;
use serde::Serialize;

/// How many characters of what a package wrote are shown.
const PACKAGE_TEXT_CHARS_MAX: usize = 2000;

/// Says one line.
pub fn line(text: &str) {
    // Where standard error is closed there is nobody to tell.
    let _ = writeln!(std::io::stderr().lock(), "lazaret: {text}");
}

/// Says a text of several lines as it is.
pub fn text(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Says why something is Blocked, and what to do.
pub fn blocked(blocked: &Blocked) {
    let mut said = format!("lazaret: {blocked}\n");
    for step in &blocked.advice {
        push_step(&mut said, step);
    }
    text(&said);
}

/// Appends one thing to do; further lines of it are indented as they are.
pub fn push_step(said: &mut String, step: &str) {
    for (index, line) in step.lines().enumerate() {
        let lead = if index == 0 { "  to do: " } else { "         " };
        // Writing to a String cannot fail.
        let _ = writeln!(said, "{lead}{line}");
    }
}

/// Shows what a package wrote to standard error: its word, escaped and cut.
pub fn package_said(bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    let shown = visible::escape_cut(&String::from_utf8_lossy(bytes), PACKAGE_TEXT_CHARS_MAX);
    let mut said = String::from("lazaret: the package wrote to standard error:\n");
    for line in shown.split("\\n").filter(|line| !line.is_empty()) {
        let _ = writeln!(said, "  | {line}");
    }
    text(&said);
}

/// Gives bytes out.
pub fn give(bytes: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)
        .and_then(|()| out.flush())
        .context("writing to standard output")
}

/// Gives a value out as JSON, with two spaces and a newline.
pub fn give_json(value: &impl Serialize) -> Result<()> {
    let mut bytes = serde_json::to_vec_pretty(value).context("writing JSON")?;
    bytes.push(b'\n');
    give(&bytes)
}
