//! No host path, host name, user name or secret gets into a receipt.

#![expect(
    clippy::unwrap_used,
    reason = "what fails in a helper of these tests fails the test"
)]

use lazaret_receipt::predicate::{bom, build};
use lazaret_receipt::samples::{self, SampleError};
use lazaret_receipt::sentinel::first_found;
use lazaret_receipt::text::{FactText, Id, KernelVersion, KeyName, Name, Uri, UserText, Word};
use lazaret_receipt::{Envelope, Kind, Purpose, bundle};

const MARK: &str = "sentinel-8f3a";

fn receipt(kind: Kind) -> Vec<u8> {
    let pair = samples::pair(kind.purpose()).unwrap();
    let statement = samples::statement(kind).unwrap();
    Envelope::sign(&statement, &pair).unwrap().to_bytes()
}

#[test]
fn receipts_of_every_kind_name_nothing_of_this_host() {
    let mut marks: Vec<String> = ["HOME", "USER", "LOGNAME", "PWD", "HOSTNAME", "TMPDIR"]
        .iter()
        .filter_map(|name| std::env::var(name).ok())
        .collect();
    marks.extend(std::fs::read_to_string("/proc/sys/kernel/hostname").ok());
    marks.extend(std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok());
    marks.extend(std::fs::read_to_string("/etc/machine-id").ok());
    marks.extend(
        std::env::current_dir()
            .map(|dir| dir.display().to_string())
            .ok(),
    );
    let marks: Vec<&str> = marks
        .iter()
        .map(|mark| mark.trim())
        // A name such as `root` or `bin` is a word of receipts as well.
        .filter(|mark| mark.len() >= 6)
        .collect();
    assert!(!marks.is_empty(), "nothing is known of this host");
    for kind in Kind::ALL.iter().copied() {
        assert_eq!(first_found(&receipt(kind), &marks), None, "{kind}");
    }
}

#[test]
fn what_a_build_read_back_from_its_host_stays_in_the_manifest() {
    let mut manifest = samples::manifest();
    let path = format!("/home/{MARK}/build");
    let options = &mut manifest.effective_options;
    options
        .bubblewrap_meson
        .insert("prefix".to_owned(), path.clone());
    options
        .bubblewrap_config_h
        .push(format!("#define DATADIR \"{path}\""));
    options.cpython_modules.push(MARK.to_owned());
    let pair = samples::pair(Purpose::Build).unwrap();
    let inputs = lazaret_contract::digest::Sha256Digest::of(b"inputs");
    let statements = [
        build::provenance(&manifest, inputs, Vec::new()).unwrap(),
        bom::statement(&manifest).unwrap(),
    ];
    for statement in statements {
        let envelope = Envelope::sign(&statement, &pair).unwrap();
        assert_eq!(first_found(&envelope.to_bytes(), &[MARK]), None);
        assert_eq!(first_found(&bundle::to_bytes(&envelope), &[MARK]), None);
    }
}

#[test]
fn a_path_in_a_name_of_the_manifest_gives_no_receipt() {
    let spoil: [fn(&mut lazaret_profile::manifest::ClosureManifest, String); 4] = [
        |manifest, path| manifest.profile = path,
        |manifest, path| manifest.sources[0].name = path,
        |manifest, path| manifest.toolchain[0].version = path,
        |manifest, path| manifest.materials.launcher_sources[0].path = path,
    ];
    for change in spoil {
        let mut manifest = samples::manifest();
        change(&mut manifest, format!("/home/{MARK}/x"));
        let inputs = lazaret_contract::digest::Sha256Digest::of(b"inputs");
        assert!(build::provenance(&manifest, inputs, Vec::new()).is_err());
        assert!(bom::statement(&manifest).is_err());
    }
}

#[test]
fn no_kind_of_text_but_peoples_own_takes_a_path() {
    for path in [
        format!("/home/{MARK}"),
        format!("../{MARK}"),
        format!("C:\\{MARK}"),
    ] {
        assert!(path.parse::<Word>().is_err());
        assert!(path.parse::<Id>().is_err());
        assert!(path.parse::<Name>().is_err());
        assert!(path.parse::<KeyName>().is_err());
        assert!(path.parse::<Uri>().is_err());
        assert!(path.parse::<FactText>().is_err());
        assert!(path.parse::<KernelVersion>().is_err());
    }
    assert!(format!("{MARK}@host").parse::<Id>().is_err());
}

#[test]
fn what_a_person_wrote_stands_only_in_its_own_field() -> Result<(), SampleError> {
    // The one field that a person fills is found, so that the search works.
    let text: UserText = "needed for the weekly report".parse()?;
    let found = first_found(&receipt(Kind::Lifecycle), &[text.as_str()]);
    assert_eq!(found, Some(text.as_str()));
    for kind in Kind::ALL
        .iter()
        .copied()
        .filter(|kind| *kind != Kind::Lifecycle)
    {
        assert_eq!(
            first_found(&receipt(kind), &[text.as_str()]),
            None,
            "{kind}"
        );
    }
    Ok(())
}

#[test]
fn no_secret_key_stands_in_a_receipt_or_a_trust_file() {
    let pair = samples::pair(Purpose::Run).unwrap();
    let file = String::from_utf8(pair.to_file().to_vec()).unwrap();
    let secrets: Vec<&str> = file
        .lines()
        .skip(3)
        .filter_map(|line| line.split(' ').nth(1))
        .collect();
    assert_eq!(secrets.len(), 2);
    let statement = samples::statement(Kind::Run).unwrap();
    let receipt = Envelope::sign(&statement, &pair).unwrap().to_bytes();
    assert_eq!(first_found(&receipt, &secrets), None);
    let trust = samples::trust(&[&pair]).unwrap();
    assert_eq!(first_found(&trust.to_bytes(), &secrets), None);
}
