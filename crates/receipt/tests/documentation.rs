//! The pages for readers say what the code does.

#![expect(
    clippy::unwrap_used,
    reason = "what fails in a helper of these tests fails the test"
)]

use std::path::{Path, PathBuf};

use lazaret_receipt::predicate::build::{BUILD_TYPE, BUILDER_ID};
use lazaret_receipt::predicate::review::REVIEW_POLICY;
use lazaret_receipt::{Kind, reference};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap()
}

#[test]
fn the_reference_is_what_the_code_says() {
    let path = "docs/receipts-reference.md";
    let made = reference::page().unwrap();
    if std::env::var("LAZARET_WRITE_DOCS").is_ok_and(|value| value == "1") {
        std::fs::write(root().join(path), &made).unwrap();
    }
    assert_eq!(
        page(path),
        made,
        "{path} is not current; its head says how to make it"
    );
}

#[test]
fn every_kind_and_every_name_of_ours_has_a_page() {
    let receipts = page("docs/receipts.md");
    for kind in Kind::ALL.iter().copied() {
        assert!(receipts.contains(kind.type_uri()), "{kind}");
    }
    let build_type = page("docs/build-type.md");
    assert!(build_type.contains(BUILD_TYPE) && build_type.contains(BUILDER_ID));
    assert!(page("ci/review/README.md").contains(REVIEW_POLICY));
}
