//! The files of a package, as owned bytes under names of one grammar.

use std::collections::BTreeMap;

use super::{DESCRIPTOR_PATH, VECTORS_DIRECTORY};
use crate::limits::{PACKAGE_BYTES_MAX, PACKAGE_FILES_MAX};
use crate::problem::{Place, Problem, ProblemCode, Problems};
use crate::visible;

/// The longest component of a path, in bytes.
const COMPONENT_BYTES_MAX: usize = 100;

/// Why a text is not the path of a file in a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// Empty, absolute, or with an empty component.
    #[error("a path has no empty component, so it neither begins nor ends with '/'")]
    EmptyComponent,
    /// A character outside the grammar.
    #[error("a path holds ASCII letters, digits, '.', '_', '-' and '/' only")]
    Character,
    /// A component that is `.` or `..`, hidden, like an option, or ends in a dot.
    #[error("a component begins with a letter, a digit or '_' and does not end with '.'")]
    ComponentForm,
    /// A component that is too long.
    #[error("a component has at most {COMPONENT_BYTES_MAX} characters")]
    TooLong,
    /// A directory that packages do not have.
    #[error("the only directories of a package are adapters and evals")]
    Directory,
    /// A file that does not belong into its directory.
    #[error("adapters holds adapter.json alone, and evals holds .json files")]
    OutOfPlace,
}

/// Checks that `path` can be the path of a file in a package: a plain relative
/// path with one spelling (case C06). It is narrower than what custody can
/// read, never wider.
pub fn check_path(path: &str) -> Result<(), PathError> {
    if path
        .chars()
        .any(|c| !matches!(c, 'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '_' | '-' | '/'))
    {
        return Err(PathError::Character);
    }
    for component in path.split('/') {
        if component.is_empty() {
            return Err(PathError::EmptyComponent);
        }
        if component.starts_with(['.', '-']) || component.ends_with('.') {
            return Err(PathError::ComponentForm);
        }
        if component.len() > COMPONENT_BYTES_MAX {
            return Err(PathError::TooLong);
        }
    }
    match path.split_once('/') {
        None => Ok(()),
        Some(("adapters", _)) if path == DESCRIPTOR_PATH => Ok(()),
        Some((VECTORS_DIRECTORY, name)) if !name.contains('/') && name.ends_with(".json") => Ok(()),
        Some(("adapters" | VECTORS_DIRECTORY, _)) => Err(PathError::OutOfPlace),
        Some(_) => Err(PathError::Directory),
    }
}

/// All files of a package with their exact bytes: at most
/// [`PACKAGE_FILES_MAX`] of them, at most [`PACKAGE_BYTES_MAX`] together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageFiles(BTreeMap<String, Vec<u8>>);

impl PackageFiles {
    /// Takes the files that somebody read; all that is wrong with their names,
    /// number and size is told at once.
    pub fn new(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Result<Self, Problems> {
        let mut problems = Problems::none();
        let mut taken = BTreeMap::new();
        for (path, bytes) in files {
            let shown = visible::escape_cut(&path, COMPONENT_BYTES_MAX);
            let mut refuse = |code, what: String, remedy: &str| {
                let remedy = remedy.to_owned();
                problems.push(Problem {
                    code,
                    file: shown.clone(),
                    place: Place::Whole,
                    what,
                    remedy,
                });
            };
            if let Err(error) = check_path(&path) {
                refuse(
                    ProblemCode::BadName,
                    error.to_string(),
                    "rename or remove the file",
                );
            } else if taken.insert(path, bytes).is_some() {
                refuse(
                    ProblemCode::Duplicate,
                    "the path is there twice".to_owned(),
                    "remove one",
                );
            }
        }
        let mut too_large = |what: String, remedy: String| {
            let (file, place) = (String::new(), Place::Whole);
            problems.push(Problem {
                code: ProblemCode::TooLarge,
                file,
                place,
                what,
                remedy,
            });
        };
        if taken.len() > PACKAGE_FILES_MAX {
            too_large(
                format!("the package has {} files", taken.len()),
                format!("use at most {PACKAGE_FILES_MAX}"),
            );
        }
        let total: usize = taken.values().map(Vec::len).sum();
        if total > PACKAGE_BYTES_MAX {
            too_large(
                format!("the files have {total} bytes together"),
                format!("use at most {PACKAGE_BYTES_MAX}"),
            );
        }
        if problems.is_empty() {
            Ok(Self(taken))
        } else {
            Err(problems)
        }
    }

    /// The bytes of one file.
    pub fn get(&self, path: &str) -> Option<&[u8]> {
        self.0.get(path).map(Vec::as_slice)
    }

    /// The files, sorted by path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0
            .iter()
            .map(|(path, bytes)| (path.as_str(), bytes.as_slice()))
    }

    /// How many files there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The sizes of all files together, in bytes.
    pub fn total_bytes(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_plain_relative_and_in_their_places() {
        for path in [
            "README",
            "readme",
            "README.md",
            "adapter.py",
            "adapters/adapter.json",
            "evals/one.json",
            "_x",
        ] {
            assert_eq!(check_path(path), Ok(()), "{path}");
        }
        let long = "x".repeat(101);
        for path in [
            "",
            "/etc/passwd",
            "../x",
            "a/../b",
            "a//b",
            "./a",
            "a/",
            "a\0",
            "a\\b",
            &long,
            "a ",
            "caf\u{e9}",
            "a\nb",
            ".hidden",
            "-rf",
            "x.",
            "sub/x",
            "adapters/other.json",
            "evals/x.txt",
            "evals/a/b.json",
            "adapters",
            "evals",
        ] {
            // The two bare directory names are files at the top, if anything.
            assert_eq!(
                check_path(path).is_ok(),
                matches!(path, "adapters" | "evals"),
                "{path:?}"
            );
        }
    }

    #[test]
    fn the_limits_on_files_and_bytes_hold_at_their_values_and_one_beyond() {
        let many = |count: usize| (0..count).map(|index| (format!("f{index}"), Vec::new()));
        assert!(PackageFiles::new(many(PACKAGE_FILES_MAX)).is_ok());
        assert!(PackageFiles::new(many(PACKAGE_FILES_MAX + 1)).is_err());
        let sized = |bytes: usize| [("f".to_owned(), vec![0; bytes])];
        assert!(PackageFiles::new(sized(PACKAGE_BYTES_MAX)).is_ok());
        assert!(PackageFiles::new(sized(PACKAGE_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn a_path_cannot_be_there_twice() {
        let twice = [("a".to_owned(), vec![1]), ("a".to_owned(), vec![2])];
        let problems = PackageFiles::new(twice).unwrap_err();
        assert_eq!(problems.list()[0].code, ProblemCode::Duplicate);
    }
}
