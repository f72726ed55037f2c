//! Which crate may use which, who may write `unsafe`, and who may name SQLite.

use anyhow::{Context, Result};

use super::{Finding, Tree};

/// The crates in their order: each may use only those before it (DESIGN section 9).
const ORDER: &[&str] = &[
    "contract",
    "lifecycle",
    "profile",
    "custody",
    "receipt",
    "launcher",
    "warden",
    "board",
    "engine",
    "server",
    "cli",
];

/// Crates that hold `unsafe` code, each in its own module for it.
const MAY_BE_UNSAFE: &[&str] = &["warden"];

/// Dependencies that only the named crate may have.
const ONLY_IN: &[(&str, &str)] = &[("rusqlite", "board")];

/// Checks manifests and crate roots.
///
/// # Errors
/// When a manifest is not TOML.
pub fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts_ending("Cargo.toml") {
        let Some(name) = path
            .strip_prefix("crates/")
            .and_then(|rest| rest.strip_suffix("/Cargo.toml"))
        else {
            continue;
        };
        let Some(own) = ORDER.iter().position(|candidate| *candidate == name) else {
            findings.push(Finding::new(
                path,
                0,
                "this crate has no place in the order of crates",
            ));
            continue;
        };
        let manifest: toml::Table = text.parse().with_context(|| format!("reading {path}"))?;
        for dependency in dependencies(&manifest) {
            findings.extend(check_edge(path, name, own, &dependency));
        }
        findings.extend(check_unsafe(tree, name));
    }
    Ok(findings)
}

/// Names in every dependency table but those for tests.
fn dependencies(manifest: &toml::Table) -> Vec<String> {
    let mut names = Vec::new();
    let mut tables = vec![manifest];
    if let Some(targets) = manifest.get("target").and_then(toml::Value::as_table) {
        tables.extend(targets.values().filter_map(toml::Value::as_table));
    }
    for table in tables {
        for section in ["dependencies", "build-dependencies"] {
            if let Some(entries) = table.get(section).and_then(toml::Value::as_table) {
                names.extend(entries.keys().cloned());
            }
        }
    }
    names
}

fn check_edge(path: &str, name: &str, own: usize, dependency: &str) -> Option<Finding> {
    if let Some((_, owner)) = ONLY_IN
        .iter()
        .find(|(banned, owner)| *banned == dependency && *owner != name)
    {
        return Some(Finding::new(
            path,
            0,
            format!("only {owner} may use {dependency}"),
        ));
    }
    let target = dependency.strip_prefix("lazaret-")?;
    match ORDER.iter().position(|candidate| *candidate == target) {
        Some(position) if position < own => None,
        Some(_) => Some(Finding::new(
            path,
            0,
            format!("{name} may not use {target}, which comes after it"),
        )),
        None => Some(Finding::new(
            path,
            0,
            format!("{target} has no place in the order of crates"),
        )),
    }
}

/// Every crate root forbids `unsafe`, but for the crates that exist for it.
fn check_unsafe(tree: &Tree, name: &str) -> Vec<Finding> {
    let roots = ["lib.rs", "main.rs"].map(|file| format!("crates/{name}/src/{file}"));
    let mut findings = Vec::new();
    for root in &roots {
        let Some(text) = tree.text(root) else {
            continue;
        };
        let forbids = text.contains("#![forbid(unsafe_code)]");
        let denies = text.contains("#![deny(unsafe_code)]");
        if !(forbids || denies && MAY_BE_UNSAFE.contains(&name)) {
            findings.push(Finding::new(root, 0, "has no #![forbid(unsafe_code)]"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files))
            .expect("good manifests")
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn a_crate_may_use_what_comes_before_it_and_nothing_after() {
        let good = "[dependencies]\nlazaret-contract.workspace = true\n";
        assert!(findings(&[("crates/profile/Cargo.toml", good)]).is_empty());
        let bad = "[dependencies]\nlazaret-engine.workspace = true\n";
        assert_eq!(findings(&[("crates/warden/Cargo.toml", bad)]).len(), 1);
        let hidden = "[target.'cfg(unix)'.dependencies]\nlazaret-engine.workspace = true\n";
        assert_eq!(findings(&[("crates/warden/Cargo.toml", hidden)]).len(), 1);
    }

    #[test]
    fn only_the_board_names_sqlite() {
        let manifest = "[dependencies]\nrusqlite = \"1\"\n";
        assert_eq!(findings(&[("crates/engine/Cargo.toml", manifest)]).len(), 1);
        assert!(findings(&[("crates/board/Cargo.toml", manifest)]).is_empty());
    }

    #[test]
    fn a_crate_root_without_the_unsafe_policy_is_found() {
        let manifest = ("crates/contract/Cargo.toml", "[dependencies]\n");
        assert_eq!(
            findings(&[manifest, ("crates/contract/src/lib.rs", "//! x\n")]).len(),
            1
        );
        let denied = "//! x\n#![deny(unsafe_code)]\n";
        assert_eq!(
            findings(&[manifest, ("crates/contract/src/lib.rs", denied)]).len(),
            1
        );
        let forbidden = "//! x\n#![forbid(unsafe_code)]\n";
        assert!(findings(&[manifest, ("crates/contract/src/lib.rs", forbidden)]).is_empty());
    }

    #[test]
    fn an_unknown_crate_is_found() {
        assert_eq!(
            findings(&[("crates/misc/Cargo.toml", "[dependencies]\n")]).len(),
            1
        );
    }
}
