//! Replays the corpora of the fuzz targets on the stable compiler.

#![expect(
    clippy::unwrap_used,
    reason = "the helpers of a test fail by panicking"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use lazaret_contract::fuzz_bodies::BODIES;

const FUZZ: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz");

fn names_in(folder: &str, extension: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(Path::new(FUZZ).join(folder)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .filter_map(|name| Some(name.strip_suffix(extension)?.to_owned()))
        .collect()
}

#[test]
fn every_corpus_passes_its_body() {
    for (name, body) in BODIES {
        let mut replayed = 0;
        for entry in fs::read_dir(Path::new(FUZZ).join("corpus").join(name)).unwrap() {
            body(&fs::read(entry.unwrap().path()).unwrap());
            replayed += 1;
        }
        assert!(replayed > 0, "the corpus of {name} is empty");
    }
}

/// The targets whose body is in this crate; other crates have theirs.
fn targets_of_this_crate() -> BTreeSet<String> {
    let targets = names_in("fuzz_targets", ".rs").into_iter();
    let is_ours = |name: &String| {
        let path = Path::new(FUZZ).join(format!("fuzz_targets/{name}.rs"));
        let body = format!("lazaret_contract::fuzz_bodies::{name}");
        fs::read_to_string(path).unwrap().contains(&body)
    };
    targets.filter(is_ours).collect()
}

#[test]
fn every_body_has_a_target_and_a_corpus_and_the_other_way_round() {
    let bodies: BTreeSet<String> = BODIES.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(targets_of_this_crate(), bodies);
    let targets = names_in("fuzz_targets", ".rs");
    assert!(
        names_in("corpus", "").is_subset(&targets),
        "a corpus has no target"
    );
    let manifest = fs::read_to_string(Path::new(FUZZ).join("Cargo.toml")).unwrap();
    for name in bodies {
        assert!(
            manifest.contains(&format!("name = \"{name}\"")),
            "{name} is in no manifest"
        );
    }
}
