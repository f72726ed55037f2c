//! Help, usage and exit codes, as people meet them.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use support::{Place, expect_text};

#[test]
fn the_help_is_the_manual() {
    let place = Place::new();
    for (name, arguments) in [
        ("help.txt", &["--help"][..]),
        ("help-doctor.txt", &["doctor", "--help"]),
        ("help-init.txt", &["init", "--help"]),
        ("help-format.txt", &["format", "--help"]),
        ("help-package.txt", &["package", "--help"]),
        (
            "help-package-scaffold.txt",
            &["package", "scaffold", "--help"],
        ),
        ("help-package-diff.txt", &["package", "diff", "--help"]),
        (
            "help-package-validate.txt",
            &["package", "validate", "--help"],
        ),
        (
            "help-package-inspect.txt",
            &["package", "inspect", "--help"],
        ),
    ] {
        let said = place.call(arguments);
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{name}");
        expect_text(name, &said.out);
    }
    assert_eq!(place.home_entries(), Vec::<String>::new());
}

#[test]
fn a_command_line_that_is_not_understood_ends_with_2_and_says_why() {
    let place = Place::new();
    for (arguments, word) in [
        (&[][..], "Usage"),
        (&["frmat", "x"], "format"),
        (&["format"], "<FILE>"),
        (&["format", "a", "b"], "unexpected"),
        (
            &["format", "a", "--profile", "json-python-bwrap-v9"],
            "json-python-bwrap-v1",
        ),
        (&["init"], "--approve-bundled"),
        (&["init", "--approve-bundled", "--yes", "abc"], "abc"),
        (&["doctor", "--run-uid", "x"], "--run-uid"),
        (&["--accept", "0"], "--accept"),
    ] {
        let said = place.call(arguments);
        assert_eq!(said.code, Some(2), "{arguments:?}: {said:?}");
        assert_eq!(said.out, "", "{arguments:?}");
        assert!(said.err.contains(word), "{arguments:?}: {}", said.err);
    }
    assert_eq!(place.home_entries(), Vec::<String>::new());
}

#[test]
fn the_version_goes_to_standard_output() {
    let said = Place::new().call(&["--version"]);
    assert_eq!(said.code, Some(0));
    assert_eq!(said.out, format!("lazaret {}\n", env!("CARGO_PKG_VERSION")));
}
