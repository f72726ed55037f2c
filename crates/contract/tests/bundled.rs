//! The packages that come with Lazaret.

#![expect(
    clippy::unwrap_used,
    reason = "the helpers of a test fail by panicking"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use lazaret_contract::bundled::{
    BUNDLED, Bundled, FormatterRefusal, Verb, formatter_content, guard_formatter,
};
use lazaret_contract::digest::Sha256Digest;
use lazaret_contract::identity::{FORMATTER_CAPABILITY, FORMATTER_ID};
use lazaret_contract::package::{
    BindingCheck, Package, PackageFiles, UNBOUND, content_digest, inspect, seal,
};
use lazaret_contract::problem::ProblemCode;
use lazaret_contract::profiles::{Binding, PROFILE_V1, PROFILE_V2_CANDIDATE};

fn package(bundled: &Bundled) -> Package {
    let files = bundled.package_files().unwrap();
    inspect(&files, BindingCheck::Form)
        .map_err(|problems| problems.to_string())
        .unwrap()
}

fn binding(profile: &str, byte: u8) -> Binding {
    Binding {
        profile: profile.to_owned(),
        closure: Sha256Digest::of(&[byte]),
    }
}

/// The files of a folder, with their paths below it.
fn files_below(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(folder.join(&inner)).unwrap() {
            let path = inner.join(entry.unwrap().file_name());
            if folder.join(&path).is_dir() {
                folders.push(path);
            } else {
                let bytes = fs::read(folder.join(&path)).unwrap();
                files.insert(path.to_str().unwrap().to_owned(), bytes);
            }
        }
    }
    files
}

#[test]
fn every_bundled_package_is_sound_and_sealed_to_the_accepted_profile() {
    for bundled in &BUNDLED {
        let package = package(bundled);
        assert_eq!(package.manifest.id.as_str(), bundled.id);
        assert_eq!(package.descriptor.binding.profile, PROFILE_V1);
        assert!(!package.vectors.is_empty());
        let again = seal(&package.files, &package.descriptor.binding).unwrap();
        assert!(
            again == package.files,
            "{} is not sealed: run cargo xtask packages",
            bundled.id
        );
    }
}

#[test]
fn the_binary_holds_every_file_of_the_packages_folder() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packages");
    let found = files_below(&folder);
    let held: BTreeMap<String, Vec<u8>> = BUNDLED
        .iter()
        .flat_map(|bundled| {
            bundled
                .files
                .iter()
                .map(|(path, bytes)| (format!("{}/{path}", bundled.id), bytes.to_vec()))
        })
        .collect();
    assert_eq!(
        found.keys().collect::<Vec<_>>(),
        held.keys().collect::<Vec<_>>()
    );
    assert!(found == held);
}

#[test]
fn all_are_bound_to_one_closure() {
    let closures: Vec<Sha256Digest> = BUNDLED
        .iter()
        .map(|bundled| package(bundled).descriptor.binding.closure)
        .collect();
    assert!(closures.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn capabilities_are_the_documented_ones() {
    let capabilities: Vec<String> = BUNDLED
        .iter()
        .map(|bundled| package(bundled).capability.to_string())
        .collect();
    assert_eq!(
        capabilities,
        [
            FORMATTER_CAPABILITY,
            "pack.local.time-ledger-summary.summarize.v1",
            "pack.local.table-align.align.v1"
        ]
    );
}

#[test]
fn the_candidate_form_is_marked_and_has_its_own_digests() {
    for bundled in &BUNDLED {
        let accepted = package(bundled);
        let binding = binding(PROFILE_V2_CANDIDATE, 1);
        let files = bundled.bound_to(&binding).unwrap();
        let candidate = inspect(
            &files,
            BindingCheck::Accepted(std::slice::from_ref(&binding)),
        )
        .unwrap();
        let descriptor =
            String::from_utf8(files.get("adapters/adapter.json").unwrap().to_vec()).unwrap();
        assert!(descriptor.contains("\"status\": \"candidate\""));
        assert_ne!(candidate.digests.content, accepted.digests.content);
        assert_eq!(candidate.digests.code, accepted.digests.code);
        assert_eq!(candidate.digests.authority, accepted.digests.authority);
    }
}

#[test]
fn a_package_bound_to_another_closure_is_refused_with_the_right_digest() {
    for bundled in &BUNDLED {
        let accepted = binding(PROFILE_V1, 1);
        let files = bundled.bound_to(&binding(PROFILE_V1, 2)).unwrap();
        for bindings in [
            vec![accepted.clone()],
            vec![binding(PROFILE_V2_CANDIDATE, 2)],
            vec![],
        ] {
            let problems = inspect(&files, BindingCheck::Accepted(&bindings)).unwrap_err();
            assert_eq!(problems.list().len(), 1);
            assert_eq!(problems.list()[0].code, ProblemCode::Binding);
        }
        let problems = inspect(
            &files,
            BindingCheck::Accepted(std::slice::from_ref(&accepted)),
        )
        .unwrap_err();
        assert!(
            problems.to_string().contains(&accepted.closure.to_string()),
            "{problems}"
        );
    }
}

#[test]
fn nothing_that_is_unbound_is_ever_accepted() {
    for bundled in &BUNDLED {
        let unbound = Binding {
            profile: PROFILE_V1.to_owned(),
            closure: UNBOUND,
        };
        let files = bundled.bound_to(&unbound).unwrap();
        assert!(inspect(&files, BindingCheck::Accepted(&[binding(PROFILE_V1, 1)])).is_err());
    }
}

#[test]
fn no_other_bytes_pass_under_the_formatters_id() {
    let binding = binding(PROFILE_V1, 3);
    let bundled = Bundled::find(FORMATTER_ID).unwrap();
    let files = bundled.bound_to(&binding).unwrap();
    assert!(inspect(&files, BindingCheck::Form).is_ok());
    for (path, _) in files
        .iter()
        .filter(|(path, _)| path.ends_with(".py") || path.ends_with(".md"))
    {
        let changed = files.iter().map(|(each, bytes)| {
            let tail: &[u8] = if each == path { b"\n" } else { b"" };
            (each.to_owned(), [bytes, tail].concat())
        });
        let changed = seal(&PackageFiles::new(changed).unwrap(), &binding).unwrap();
        let problems = inspect(&changed, BindingCheck::Form).unwrap_err();
        let codes: Vec<_> = problems.list().iter().map(|problem| problem.code).collect();
        assert_eq!(codes, [ProblemCode::ReservedId], "{path}: {problems}");
    }
}

#[test]
fn the_formatters_identity_refuses_by_name_what_must_not_happen_to_it() {
    let formatter = FORMATTER_ID.parse().unwrap();
    let other = "local.time-ledger-summary".parse().unwrap();
    let binding = binding(PROFILE_V1, 3);
    let content = formatter_content(&binding).unwrap();
    let found = Sha256Digest::of(b"other");
    let rows = [
        (content, Verb::Admit, Ok(())),
        (
            found,
            Verb::Admit,
            Err(FormatterRefusal::OtherContent { found }),
        ),
        (content, Verb::Update, Err(FormatterRefusal::OneVersion)),
        (found, Verb::Update, Err(FormatterRefusal::OneVersion)),
        (content, Verb::RollBack, Err(FormatterRefusal::OneVersion)),
        (
            content,
            Verb::ExecuteGeneric,
            Err(FormatterRefusal::GenericExecution),
        ),
        (
            content,
            Verb::ExecuteLocal,
            Err(FormatterRefusal::LocalExecution),
        ),
    ];
    for (content, verb, owed) in rows {
        assert_eq!(
            guard_formatter(&formatter, content, &binding, verb),
            owed,
            "{verb:?}"
        );
        assert_eq!(guard_formatter(&other, content, &binding, verb), Ok(()));
    }
}

#[test]
fn the_content_of_the_formatter_is_one_for_each_closure() {
    let contents: Vec<_> = [
        binding(PROFILE_V1, 1),
        binding(PROFILE_V1, 2),
        binding(PROFILE_V2_CANDIDATE, 1),
    ]
    .iter()
    .map(|binding| formatter_content(binding).unwrap())
    .collect();
    assert_ne!(contents[0], contents[1]);
    assert_ne!(contents[0], contents[2]);
    let bundled = Bundled::find(FORMATTER_ID).unwrap();
    let files = bundled.bound_to(&binding(PROFILE_V1, 1)).unwrap();
    assert_eq!(content_digest(&files), contents[0]);
    assert_eq!(formatter_content(&binding("json-python-bwrap-v9", 1)), None);
}
