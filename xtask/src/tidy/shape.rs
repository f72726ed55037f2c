//! Sizes and module documentation.

use super::{Exceptions, Finding, Tree};

/// Lines of a source file.
const FILE_LINES_MAX: usize = 800;
/// Lines of a function, its signature and closing brace included.
const FUNCTION_LINES_MAX: usize = 70;
/// Lines of a function in a test program, where a table of cases may be long.
const TEST_FUNCTION_LINES_MAX: usize = 120;
/// Lines of a `lib.rs`, which is a table of contents.
const LIB_LINES_MAX: usize = 150;
/// Bytes of any file outside a fuzz corpus.
const FILE_BYTES_MAX: usize = 256 * 1024;

/// Checks sizes, module documentation and the `unsafe` policy of every crate.
pub fn check(tree: &Tree, exceptions: &mut Exceptions) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, bytes) in tree.files() {
        let corpus = path.starts_with("fuzz/corpus/");
        if bytes.len() > FILE_BYTES_MAX && !corpus && !exceptions.covers("file-bytes", path) {
            findings.push(Finding::new(
                path,
                0,
                format!("over {FILE_BYTES_MAX} bytes; is it a source?"),
            ));
        }
    }
    for (path, text) in tree.texts_ending(".rs") {
        findings.extend(check_rust(path, text, exceptions));
    }
    for suffix in [".c", ".h", ".py"] {
        for (path, text) in tree.texts_ending(suffix) {
            if text.lines().count() > FILE_LINES_MAX && !exceptions.covers("file-lines", path) {
                findings.push(Finding::new(
                    path,
                    0,
                    format!("over {FILE_LINES_MAX} lines; split it"),
                ));
            }
        }
    }
    findings
}

fn check_rust(path: &str, text: &str, exceptions: &mut Exceptions) -> Vec<Finding> {
    let mut findings = Vec::new();
    let lines = text.lines().count();
    if !text.starts_with("//!") {
        findings.push(Finding::new(
            path,
            1,
            "begins without //!: say what it is for and what it must never do",
        ));
    }
    if path.ends_with("/lib.rs") && lines > LIB_LINES_MAX && !exceptions.covers("lib-lines", path) {
        findings.push(Finding::new(
            path,
            0,
            format!("over {LIB_LINES_MAX} lines; lib.rs is a table of contents"),
        ));
    }
    if lines > FILE_LINES_MAX && !exceptions.covers("file-lines", path) {
        findings.push(Finding::new(
            path,
            0,
            format!("{lines} lines, over {FILE_LINES_MAX}; split it"),
        ));
    }
    let limit = if path.contains("/tests/") {
        TEST_FUNCTION_LINES_MAX
    } else {
        FUNCTION_LINES_MAX
    };
    for (line, name, length) in functions(text) {
        let subject = format!("{path}::{name}");
        if length > limit && !exceptions.covers("function-lines", &subject) {
            let message = format!("{name} has {length} lines, over {limit}; split it");
            findings.push(Finding::new(path, line, message));
        }
    }
    findings
}

/// Functions of rustfmt-formatted text: first line from 1, name, length in lines.
///
/// rustfmt puts a function's closing brace alone on a line with the indentation
/// of its first line, so no parser is needed.
fn functions(text: &str) -> Vec<(usize, String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else {
            continue;
        };
        let indentation = &line[..line.len() - line.trim_start().len()];
        let closing = format!("{indentation}}}");
        let end = lines[at..]
            .iter()
            .position(|candidate| *candidate == closing);
        let one_line = line.ends_with('}') || line.ends_with(';');
        if let (false, Some(length)) = (one_line, end) {
            found.push((at + 1, name.to_owned(), length + 1));
        }
    }
    found
}

/// The name in a line that begins a function, whatever its qualifiers.
fn function_name(line: &str) -> Option<&str> {
    let mut words = line.trim_start();
    loop {
        if let Some(rest) = words.strip_prefix("fn ") {
            return rest
                .split(|c: char| !(c.is_alphanumeric() || c == '_'))
                .next();
        }
        let (word, rest) = words.split_once(' ')?;
        let qualifier = matches!(
            word,
            "const" | "async" | "unsafe" | "extern" | "\"C\"" | "pub"
        ) || word.starts_with("pub(");
        if !qualifier {
            return None;
        }
        words = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let tree = Tree::of(files);
        let mut exceptions = Exceptions::read(&tree).expect("no exceptions file, or a good one");
        let mut found = check(&tree, &mut exceptions);
        found.extend(exceptions.stale());
        found.iter().map(ToString::to_string).collect()
    }

    fn long_function() -> String {
        let body = "    work();\n".repeat(80);
        format!("//! Module.\n\npub(crate) const unsafe fn long() {{\n{body}}}\n")
    }

    #[test]
    fn a_long_function_is_found_by_name_and_excepted_with_a_reason() {
        let text = long_function();
        let found = findings(&[("a.rs", &text)]);
        assert_eq!(found, ["a.rs:3: long has 82 lines, over 70; split it"]);
        let exception = "[[exception]]\nrule = \"function-lines\"\nsubject = \"a.rs::long\"\nreason = \"a table\"\n";
        assert!(findings(&[("a.rs", &text), ("ci/tidy.toml", exception)]).is_empty());
        let stale = findings(&[("a.rs", "//! Short.\n"), ("ci/tidy.toml", exception)]);
        assert_eq!(stale.len(), 1, "{stale:?}");
    }

    #[test]
    fn a_module_without_documentation_is_found() {
        assert_eq!(findings(&[("a.rs", "use core;\n")]).len(), 1);
    }

    #[test]
    fn a_long_file_and_a_large_file_are_found() {
        let long = format!("//! M.\n{}", "// x\n".repeat(900));
        assert_eq!(findings(&[("a.rs", &long)]).len(), 1);
        let large = "x".repeat(FILE_BYTES_MAX + 1);
        assert_eq!(findings(&[("data.json", &large)]).len(), 1);
        assert!(findings(&[("fuzz/corpus/json/seed", &large)]).is_empty());
    }
}
