//! What an update is said to change.

#![expect(
    clippy::unwrap_used,
    reason = "the helpers of a test fail by panicking"
)]

use lazaret_contract::bundled::Bundled;
use lazaret_contract::digest::Sha256Digest;
use lazaret_contract::package::{
    BindingCheck, DESCRIPTOR_PATH, MANIFEST_PATH, Package, PackageFiles, Subject, compare, inspect,
    seal,
};
use lazaret_contract::profiles::{Binding, PROFILE_V1, PROFILE_V2_CANDIDATE};

fn binding() -> Binding {
    Binding {
        profile: PROFILE_V1.to_owned(),
        closure: Sha256Digest::of(b"closure"),
    }
}

/// The time ledger with one text of one file replaced, sealed again.
fn edited(path: &str, old: &str, new: &str) -> Package {
    let bundled = Bundled::find("local.time-ledger-summary").unwrap();
    let files = bundled.files.iter().map(|(each, bytes)| {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let is_here = *each == path;
        assert!(!is_here || text.contains(old), "{old} is not in {path}");
        let text = if is_here {
            text.replacen(old, new, 1)
        } else {
            text
        };
        ((*each).to_owned(), text.into_bytes())
    });
    let files = seal(&PackageFiles::new(files).unwrap(), &binding()).unwrap();
    inspect(&files, BindingCheck::Form)
        .map_err(|problems| problems.to_string())
        .unwrap()
}

fn sound() -> Package {
    edited("adapter.py", "", "")
}

/// The subjects that change, those of the two documents left out.
fn subjects(old: &Package, new: &Package) -> Vec<(Subject, bool)> {
    let changes = compare(old, new).into_iter();
    let interesting = changes.filter(|change| {
        change.subject != Subject::File
            || ![MANIFEST_PATH, DESCRIPTOR_PATH]
                .iter()
                .any(|path| change.what.starts_with(path))
    });
    interesting
        .map(|change| (change.subject, change.widens))
        .collect()
}

#[test]
fn a_package_does_not_differ_from_itself() {
    assert_eq!(compare(&sound(), &sound()), []);
}

#[test]
fn each_kind_of_change_is_named_and_widening_is_marked() {
    let rows = [
        (
            "adapter.py",
            "def summarize",
            "def summarise",
            (Subject::Code, false),
        ),
        (
            MANIFEST_PATH,
            "\"version\": 1",
            "\"version\": 2",
            (Subject::Version, false),
        ),
        (
            MANIFEST_PATH,
            "Time ledger summary",
            "Ledger",
            (Subject::Text, false),
        ),
        (
            MANIFEST_PATH,
            "local.time-ledger-summary",
            "local.other",
            (Subject::Identity, true),
        ),
        (
            DESCRIPTOR_PATH,
            "\"adapter\": \"summarize\"",
            "\"adapter\": \"sum\"",
            (Subject::Identity, true),
        ),
        (
            DESCRIPTOR_PATH,
            "\"maximum\": 1440,",
            "\"maximum\": 1441,",
            (Subject::InputSchema, true),
        ),
        (
            DESCRIPTOR_PATH,
            "\"maximum\": 1440,",
            "\"maximum\": 1439,",
            (Subject::InputSchema, false),
        ),
        (
            DESCRIPTOR_PATH,
            "\"minimum\": 1,",
            "\"minimum\": 0,",
            (Subject::OutputSchema, true),
        ),
        ("README.md", "Sums", "Adds", (Subject::File, false)),
    ];
    for (path, old, new, owed) in rows {
        // A narrower input schema must still take the vectors, and does.
        let found = subjects(&sound(), &edited(path, old, new));
        assert_eq!(found, [owed], "{path}: {old} -> {new}");
    }
}

#[test]
fn another_closure_is_a_change_of_what_it_runs_with() {
    let old = sound();
    let other = Binding {
        profile: PROFILE_V2_CANDIDATE.to_owned(),
        ..binding()
    };
    let files = seal(&old.files, &other).unwrap();
    let new = inspect(&files, BindingCheck::Form).unwrap();
    assert_eq!(subjects(&old, &new), [(Subject::Dependency, false)]);
}

#[test]
fn a_new_field_of_the_input_is_shown_with_its_place() {
    let old = "\"category\": {\n";
    let new = "\"billable\": {\n                \"type\": \"boolean\"\n              },\n              \"category\": {\n";
    let changes = compare(&sound(), &edited(DESCRIPTOR_PATH, old, new));
    let change = changes
        .iter()
        .find(|change| change.subject == Subject::InputSchema)
        .unwrap();
    assert!(change.widens);
    assert_eq!(change.pointer.as_str(), "/rows/*/billable");
    assert_eq!(change.what, "the field \"billable\" is new: true or false");
}
