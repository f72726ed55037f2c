//! Documents: budgets that they promise, maps that they draw, words they avoid.

use anyhow::{Context, Result};

use super::{Exceptions, Finding, Tree};

/// Lines of README.md.
const README_LINES_MAX: usize = 100;

/// Checks README, ARCHITECTURE, TRUSTED.md and the words of all texts.
///
/// # Errors
/// When a budget in TRUSTED.md is not a number.
pub fn check(tree: &Tree, exceptions: &mut Exceptions) -> Result<Vec<Finding>> {
    let mut findings = readme(tree);
    findings.extend(folder_map(tree));
    findings.extend(trusted_budgets(tree)?);
    findings.extend(words(tree, exceptions));
    Ok(findings)
}

fn readme(tree: &Tree) -> Vec<Finding> {
    match tree.text("README.md") {
        None => vec![Finding::new("README.md", 0, "is missing")],
        Some(text) if text.lines().count() > README_LINES_MAX => {
            vec![Finding::new(
                "README.md",
                0,
                format!("over {README_LINES_MAX} lines"),
            )]
        }
        Some(_) => Vec::new(),
    }
}

/// ARCHITECTURE.md names every crate and every folder of the root.
fn folder_map(tree: &Tree) -> Vec<Finding> {
    const MAP: &str = "ARCHITECTURE.md";
    let Some(text) = tree.text(MAP) else {
        return vec![Finding::new(MAP, 0, "is missing")];
    };
    let mut folders: Vec<String> = tree
        .files()
        .filter_map(|(path, _)| {
            let (first, rest) = path.split_once('/')?;
            match first {
                "crates" => Some(format!("crates/{}", rest.split_once('/')?.0)),
                _ if first.starts_with('.') => None,
                _ => Some(first.to_owned()),
            }
        })
        .collect();
    folders.sort();
    folders.dedup();
    let missing = folders
        .into_iter()
        .filter(|folder| !text.contains(&format!("`{folder}/`")));
    missing
        .map(|folder| Finding::new(MAP, 0, format!("the map lacks `{folder}/`")))
        .collect()
}

/// The line budgets of the trusted files, as TRUSTED.md promises them.
fn trusted_budgets(tree: &Tree) -> Result<Vec<Finding>> {
    const PAGE: &str = "crates/launcher/TRUSTED.md";
    let Some(text) = tree.text(PAGE) else {
        return Ok(vec![Finding::new(PAGE, 0, "is missing")]);
    };
    let mut findings = Vec::new();
    let mut budgeted = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [files, _, budget] = cells.as_slice() else {
            continue;
        };
        if !files.starts_with('`') || budget.is_empty() {
            continue;
        }
        let budget: usize = budget
            .parse()
            .with_context(|| format!("{PAGE}:{}: budget of {files}", at + 1))?;
        let names: Vec<String> = files
            .split(',')
            .map(|name| format!("crates/launcher/{}", name.trim().trim_matches('`')))
            .collect();
        let mut lines = 0;
        for name in &names {
            match tree.text(name) {
                Some(source) => lines += source.lines().count(),
                None => findings.push(Finding::new(PAGE, at + 1, format!("{name} is missing"))),
            }
        }
        if lines > budget {
            findings.push(Finding::new(
                PAGE,
                at + 1,
                format!("{files}: {lines} lines, over {budget}"),
            ));
        }
        budgeted.extend(names);
    }
    for (path, _) in tree.files() {
        let trusted =
            path.starts_with("crates/launcher/c/") || path.starts_with("crates/launcher/python/");
        if trusted && !budgeted.iter().any(|name| name == path) {
            findings.push(Finding::new(PAGE, 0, format!("lists no budget for {path}")));
        }
    }
    Ok(findings)
}

/// Marks of unfinished work, which belong into an issue and not into the tree.
fn words(tree: &Tree, exceptions: &mut Exceptions) -> Vec<Finding> {
    // Spelt in two halves, so that this file does not find itself.
    let marks = [["TO", "DO"], ["FIX", "ME"], ["XX", "X:"]].map(|halves| halves.concat());
    let mut findings = Vec::new();
    for suffix in [".rs", ".c", ".h", ".py", ".toml", ".md"] {
        for (path, text) in tree.texts_ending(suffix) {
            for (at, line) in text.lines().enumerate() {
                let marked = marks.iter().find(|mark| line.contains(mark.as_str()));
                if let Some(mark) = marked
                    && !exceptions.covers("mark", path)
                {
                    findings.push(Finding::new(
                        path,
                        at + 1,
                        format!("{mark}: finish it, or file an issue"),
                    ));
                }
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let tree = Tree::of(files);
        let mut exceptions = Exceptions::read(&tree).expect("no exceptions");
        let found = check(&tree, &mut exceptions).expect("good documents");
        found.iter().map(ToString::to_string).collect()
    }

    const PAGE: (&str, &str) = (
        "crates/launcher/TRUSTED.md",
        "| file | holds | lines |\n|---|---|---|\n| `c/a.c`, `c/a.h` | x | 3 |\n",
    );

    #[test]
    fn a_complete_tree_has_no_finding() {
        let files = [
            PAGE,
            ("README.md", "# x\n"),
            ("ARCHITECTURE.md", "`crates/launcher/`\n"),
            ("crates/launcher/c/a.c", "1\n2\n"),
            ("crates/launcher/c/a.h", "1\n"),
        ];
        assert_eq!(findings(&files), Vec::<String>::new());
    }

    #[test]
    fn a_trusted_file_over_its_budget_or_without_one_is_found() {
        let files = [
            PAGE,
            ("README.md", "# x\n"),
            ("ARCHITECTURE.md", "`crates/launcher/`\n"),
            ("crates/launcher/c/a.c", "1\n2\n3\n"),
            ("crates/launcher/c/a.h", "1\n"),
            ("crates/launcher/c/new.c", "1\n"),
        ];
        let found = findings(&files);
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn a_folder_that_the_map_lacks_and_a_mark_are_found() {
        let mark = ["TO", "DO"].concat();
        let files = [
            ("crates/launcher/TRUSTED.md", ""),
            ("README.md", "# x\n"),
            ("ARCHITECTURE.md", "`crates/launcher/`\n"),
            ("docs/a.md", mark.as_str()),
        ];
        assert_eq!(findings(&files).len(), 2);
    }
}
