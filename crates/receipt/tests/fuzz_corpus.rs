//! Replays the corpora of this crate's fuzz targets on the stable compiler.

use std::fs;
use std::path::Path;

use lazaret_receipt::fuzz_bodies::BODIES;

const FUZZ: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz");

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

#[test]
fn every_body_has_a_target_and_the_other_way_round() {
    let manifest = fs::read_to_string(Path::new(FUZZ).join("Cargo.toml")).unwrap();
    for (name, _) in BODIES {
        let target = Path::new(FUZZ).join(format!("fuzz_targets/{name}.rs"));
        let text = fs::read_to_string(&target).unwrap();
        assert!(text.contains(&format!("fuzz_bodies::{name}(")), "{name}");
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
    }
    let targets = fs::read_dir(Path::new(FUZZ).join("fuzz_targets")).unwrap();
    let ours = targets
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("receipt_"));
    assert_eq!(ours.count(), BODIES.len());
}
