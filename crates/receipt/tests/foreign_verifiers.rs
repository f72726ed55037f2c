//! Other people's verifiers say yes to what we sign and no to what was changed.
//!
//! The tools are installed by `ci/verify-foreign/install.sh` under `.lazaret/`. Where
//! they are not, the test says so and passes; with `LAZARET_REQUIRE_FOREIGN=1` it
//! fails.

#![expect(
    clippy::unwrap_used,
    reason = "what fails in a helper of these tests fails the test"
)]
#![expect(clippy::print_stderr, reason = "a skipped test says so")]

use std::path::{Path, PathBuf};
use std::process::Command;

use lazaret_contract::json::{self, Object, Value};
use lazaret_receipt::predicate::bom;
use lazaret_receipt::{Envelope, Kind, Purpose, SigningPair, Statement, bundle, samples};

/// A folder of cases for the scripts: a folder of files and keys per key pair.
struct Cases {
    folder: tempfile::TempDir,
    group: String,
    cases: Vec<Value>,
}

impl Cases {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            group: String::new(),
            cases: Vec::new(),
        }
    }

    /// What is added from here on is judged by the keys of this pair.
    fn group(&mut self, name: &str, pair: &SigningPair) {
        let folder = self.folder.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        let public = pair.public();
        let [ed25519, p256] = public.to_pem();
        std::fs::write(folder.join("ed25519.pem"), ed25519).unwrap();
        std::fs::write(folder.join("p256.pem"), p256).unwrap();
        let ids = [("ed25519", public.ed25519_id()), ("p256", public.p256_id())];
        let ids = ids.map(|(name, id)| (name.to_owned(), id.to_string().into()));
        let ids = json::write_pretty(&Value::Object(Object::from(ids)));
        std::fs::write(folder.join("keys.json"), ids).unwrap();
        self.group = name.to_owned();
    }

    fn add(&mut self, tool: &str, name: &str, bytes: &[u8], expect: &str) {
        let file = format!("{}/{name}.json", self.group);
        std::fs::write(self.folder.path().join(&file), bytes).unwrap();
        let case = [("tool", tool), ("file", &file), ("expect", expect)];
        let case = case.map(|(key, value)| (key.to_owned(), value.into()));
        self.cases.push(Value::Object(Object::from(case)));
    }

    /// A good one, and the same with each text changed to another.
    fn add_with_changes(&mut self, tool: &str, bytes: &[u8], changes: &[(&str, &str)]) {
        self.add(tool, "good", bytes, "accept");
        let text = std::str::from_utf8(bytes).unwrap();
        for (index, (from, to)) in changes.iter().enumerate() {
            assert!(text.contains(from), "{from:?} is not there");
            let changed = text.replacen(from, to, 1);
            self.add(
                tool,
                &format!("changed-{index}"),
                changed.as_bytes(),
                "refuse",
            );
        }
    }

    fn write(&self) -> &Path {
        let bytes = json::write_pretty(&Value::Array(self.cases.clone()));
        std::fs::write(self.folder.path().join("cases.json"), bytes).unwrap();
        self.folder.path()
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Where the tools are, or why this test cannot be run.
fn place() -> Option<PathBuf> {
    let place = root().join(".lazaret/verify-foreign");
    if place.join("installed").is_file() {
        return Some(place);
    }
    let missing = "other people's verifiers are not installed: run ci/verify-foreign/install.sh";
    let required = std::env::var("LAZARET_REQUIRE_FOREIGN").is_ok_and(|value| value == "1");
    assert!(!required, "{missing}");
    eprintln!("SKIPPED: {missing}");
    None
}

/// Runs a script over the cases and demands an answer to each.
fn run(command: &mut Command, cases: &Cases) {
    assert!(!cases.cases.is_empty());
    let output = command.current_dir(root()).output().unwrap();
    let answers = String::from_utf8_lossy(&output.stdout);
    let faults = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{answers}{faults}");
    let ok = answers
        .lines()
        .filter(|line| line.starts_with("ok "))
        .count();
    assert_eq!(ok, cases.cases.len(), "{answers}{faults}");
}

fn python(place: &Path, cases: &Cases) {
    let script = "ci/verify-foreign/verify_documents.py";
    let mut command = Command::new(place.join("venv/bin/python"));
    run(command.arg("-I").arg(script).arg(cases.write()), cases);
}

fn receipt(kind: Kind) -> (SigningPair, Statement, Envelope) {
    let pair = samples::pair(kind.purpose()).unwrap();
    let statement = samples::statement(kind).unwrap();
    let envelope = Envelope::sign(&statement, &pair).unwrap();
    (pair, statement, envelope)
}

#[test]
fn securesystemslib_accepts_our_envelopes_and_refuses_changed_ones() {
    let Some(place) = place() else { return };
    let mut cases = Cases::new();
    for kind in Kind::ALL.iter().copied() {
        let (pair, statement, envelope) = receipt(kind);
        let stranger = samples::pair(kind.purpose()).unwrap();
        let other = Envelope::sign(&statement, &stranger).unwrap();
        cases.group(kind.word(), &pair);
        cases.add("dsse", "good", &envelope.to_bytes(), "accept");
        cases.add("dsse", "foreign", &other.to_bytes(), "refuse");
        let mut flipped = envelope.clone();
        flipped.payload[20] ^= 1;
        cases.add("dsse", "payload", &flipped.to_bytes(), "refuse");
        for index in 0..2 {
            let mut changed = envelope.clone();
            changed.signatures[index].bytes[12] ^= 1;
            cases.add(
                "dsse",
                &format!("signature-{index}"),
                &changed.to_bytes(),
                "refuse",
            );
            let mut crossed = envelope.clone();
            crossed.signatures[index].bytes = other.signatures[index].bytes.clone();
            cases.add(
                "dsse",
                &format!("crossed-{index}"),
                &crossed.to_bytes(),
                "refuse",
            );
        }
        let text = String::from_utf8(envelope.to_bytes()).unwrap();
        let retyped = text.replace("in-toto+json", "in-toto+JSON");
        cases.add("dsse", "type", retyped.as_bytes(), "refuse");
    }
    python(&place, &cases);
}

#[test]
fn in_toto_attestation_accepts_our_statements_and_refuses_changed_ones() {
    let Some(place) = place() else { return };
    let mut cases = Cases::new();
    for kind in Kind::ALL.iter().copied() {
        let (pair, statement, envelope) = receipt(kind);
        cases.group(kind.word(), &pair);
        cases.add("statement", "good", &envelope.to_bytes(), "accept");
        let text = String::from_utf8(statement.to_bytes().unwrap()).unwrap();
        let mut changes = vec![
            ("in-toto.io/Statement/v1", "in-toto.io/Statement/v9"),
            (
                "\"subject\":[{\"digest\":{",
                "\"subject\":[{\"digest\":7,\"x\":{",
            ),
            ("\"subject\":[", "\"subject\":[{\"name\":\"x\"},"),
        ];
        match kind {
            Kind::Build => changes.push(("\"buildType\":", "\"buildTypo\":")),
            Kind::Attack => changes.push(("\"passedTests\":[", "\"passedTests\":[{},")),
            _ => {}
        }
        for (index, (from, to)) in changes.into_iter().enumerate() {
            assert!(text.contains(from), "{kind}: {from}");
            let mut changed = envelope.clone();
            changed.payload = text.replacen(from, to, 1).into_bytes();
            cases.add(
                "statement",
                &format!("changed-{index}"),
                &changed.to_bytes(),
                "refuse",
            );
        }
    }
    python(&place, &cases);
}

#[test]
fn a_cyclonedx_schema_accepts_our_bill_of_materials_and_refuses_changed_ones() {
    let Some(place) = place() else { return };
    let mut cases = Cases::new();
    cases.group("bom", &samples::pair(Purpose::Build).unwrap());
    let document = bom::document(&samples::manifest()).unwrap();
    let changes = [
        ("CycloneDX", "CycloneDY"),
        ("\"alg\": \"SHA-256\"", "\"alg\": \"SHA-257\""),
        ("\"type\": \"file\"", "\"type\": \"fyle\""),
        ("\"version\": 1\n", "\"version\": \"1\"\n"),
        ("\"scope\": \"required\"", "\"scope\": \"wanted\""),
        ("\"bomFormat\"", "\"bomFormat_\""),
        ("\"name\": \"bwrap\",", ""),
    ];
    cases.add_with_changes("cyclonedx", &document, &changes);
    python(&place, &cases);
}

#[test]
fn sigstore_verify_accepts_our_bundles_and_refuses_changed_ones() {
    let Some(place) = place() else { return };
    let mut cases = Cases::new();
    for kind in Kind::ALL.iter().copied() {
        let (pair, statement, envelope) = receipt(kind);
        let stranger = samples::pair(kind.purpose()).unwrap();
        let other = Envelope::sign(&statement, &stranger).unwrap();
        cases.group(kind.word(), &pair);
        let foreign = pair.public().p256_id().to_string();
        let hint = format!("\"hint\":\"{}", &foreign[..1]);
        let other_hint = if hint.ends_with('0') {
            "\"hint\":\"1"
        } else {
            "\"hint\":\"0"
        };
        let changes = [
            (hint.as_str(), other_hint),
            ("in-toto+json", "in-toto+JSON"),
            ("\"signatures\":[", "\"signatures\":[],\"x\":["),
            ("\"payload\":\"e", "\"payload\":\"f"),
            ("}]}", "}]"),
        ];
        cases.add_with_changes("bundle", &bundle::to_bytes(&envelope), &changes);
        cases.add("bundle", "foreign", &bundle::to_bytes(&other), "refuse");
        let mut crossed = envelope.clone();
        crossed.signatures[1].bytes = other.signatures[1].bytes.clone();
        cases.add("bundle", "crossed", &bundle::to_bytes(&crossed), "refuse");
        let mut flipped = envelope.clone();
        flipped.signatures[1].bytes[12] ^= 1;
        cases.add("bundle", "flipped", &bundle::to_bytes(&flipped), "refuse");
        // The other signature is no part of a bundle: the control of the two above.
        let mut without = envelope.clone();
        without.signatures[0] = other.signatures[0].clone();
        cases.add("bundle", "control", &bundle::to_bytes(&without), "accept");
    }
    let mut command = Command::new("node");
    command
        .arg("ci/verify-foreign/verify_bundle.mjs")
        .arg(cases.write())
        .arg(&place);
    run(&mut command, &cases);
}
